"""The state of the Branch-Solve-Merge judge, and the shapes in which its models reply."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_judges.asking.state import Emits, Gathered
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.methods.replies import PlanLine, PlanScore
from langchain_judges.orders import Order
from langchain_judges.verdict import Pair, Preference


class OrderResult(TypedDict):
    """The result of one order: totals of the mean scores, and the text they prefer."""

    totals: dict[str, float]
    preference: Preference | None
    explanation: str
    """The merging model's reason; empty where scores were summed."""


class BSMState(PairState, total=False):
    """State of the graph."""

    criteria: Annotated[list[PlanLine], Emits("criterion")]
    """The plan, best first."""
    written_reference: str | None
    """The pair's own reference, or the one that `reference_model` wrote."""
    subscores: Gathered[PlanScore]
    by_order: dict[Order, OrderResult]


class BSMResult(PairResult):
    """What the graph returns."""

    criteria: list[PlanLine]
    subscores: list[PlanScore]
    by_order: dict[Order, OrderResult]


class SolveWork(TypedDict):
    """Input of one parallel solve node."""

    pair: Pair
    criterion: PlanLine
    order: Order
    sample: int


class Answer(BaseModel):
    """A reference answer."""

    answer: str = Field(min_length=1)


_NO_MARKUP = str.maketrans(dict.fromkeys('*_`"'))
_LONGEST = 200
"""Characters of a line that may say a score; a longer one is an explanation."""
_SCORE = r"(?P<score>-?\d{1,6})(?: ?(?:/|out of) ?(?P<most>\d{1,6}))?\.?"
# On lines with single spaces, so that every part has one length and none can run away.
_ALONE = re.compile(rf"(?:score ?[:=] ?)?{_SCORE}", re.IGNORECASE)
_BOUND = re.compile(
    r"(?:scores? (?:of|for) )?(?:the )?(?:response|assistant|answer) ?(?P<slot>[12AB])(?!\w)"
    rf"(?:'s)?(?: score)? ?(?:is|[:=–])? ?{_SCORE}",
    re.IGNORECASE,
)
_SLOTS = {"1": 1, "A": 1, "2": 2, "B": 2}


def parse_scores(text: str) -> dict[str, object] | None:
    r"""Read two scores, by the name of the response or as two lines of a number alone.

    >>> parse_scores("Assistant A: 4/5\nAssistant B: 2 out of 5\nA is clearer.")
    {'score_1': 4, 'score_2': 2, 'explanation': 'A is clearer.'}
    >>> parse_scores("4\n2\nThe first is clearer.")
    {'score_1': 4, 'score_2': 2, 'explanation': 'The first is clearer.'}
    >>> parse_scores("Top-3 accuracy matters, 5 points in all.") is None
    True
    """
    bound: list[tuple[int, int]] = []
    alone: list[int] = []
    scales: set[str] = set()
    rest: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        words = " ".join(line.translate(_NO_MARKUP).split()) if len(line) <= _LONGEST else ""
        if match := _BOUND.fullmatch(words.lstrip("#>-•.,;:()[] ")):
            bound.append((_SLOTS[match["slot"].upper()], int(match["score"])))
        elif match := _ALONE.fullmatch(words):
            alone.append(int(match["score"]))
        else:
            rest.append(line.strip())
        scales |= {match["most"]} - {None} if match else set()
    if len(scales) > 1:
        return None
    # A response scored twice, differently, may be a quotation: nobody knows which counts.
    scores = dict(bound)
    if len(set(bound)) != len(scores) or (bound and alone):
        return None
    if not bound and len(alone) == 2:
        scores = {1: alone[0], 2: alone[1]}
    if scores.keys() != {1, 2}:
        return None
    return {"score_1": scores[1], "score_2": scores[2], "explanation": " ".join(rest)}
