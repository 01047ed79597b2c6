"""The state of the baselines, and the shapes in which their models reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel, create_model
from typing_extensions import TypedDict

from langchain_judges.asking.replies.confidence import Span, json_spans, reply_tokens, spelling
from langchain_judges.asking.replies.prose import (
    LabelForms,
    SpokenLabel,
    lines_of,
    spoken_label,
)
from langchain_judges.asking.state import Emits, Gathered, joined
from langchain_judges.methods.pairs import PairResult, PairState, ShownPair
from langchain_judges.methods.replies import PlanLine, PlanScore, score_within, scores_shape
from langchain_judges.orders import Order, by_identity, naming_identities
from langchain_judges.verdict import Failure, Preference


class DirectBallot(TypedDict):
    """What one reply decided, by identity of the texts."""

    order: Order
    sample: int
    preference: Preference | None
    """The label that was said; of two scores, the text with the higher one."""
    scores: dict[str, float] | None
    """The two scores, where the judge asks for scores."""
    explanation: str
    probability: float | None
    """Of the label's tokens; None where the model gave no log-probabilities."""
    confidence: float | None
    """Length-normalised probability of explanation and label together (DRPE, equation 3)."""


class DirectState(PairState, total=False):
    """State of the graph."""

    criteria: Annotated[list[PlanLine], Emits("criterion")]
    """The plan; empty for all but plan & solve."""
    ballots: Annotated[list[DirectBallot], Emits("vote"), joined]
    subscores: Gathered[PlanScore]
    llm_score: float | None
    not_asked: list[str]


class DirectResult(PairResult):
    """What a baseline returns."""

    ballots: list[DirectBallot]


class SelfConsistencyResult(DirectResult):
    """What self-consistency returns."""

    not_asked: list[str]
    """The samples that could not change the verdict any more (`adaptive`), by name."""


class PlanSolveResult(DirectResult):
    """What plan & solve returns."""

    criteria: list[PlanLine]
    subscores: list[PlanScore]


class LLMScoreResult(DirectResult):
    """What the judge without roles returns."""

    llm_score: float | None
    """`1(A preferred) · P` in [0, 1], the number to correlate with people's."""


class JudgeWork(TypedDict):
    """Input of one parallel call."""

    pair: ShownPair
    criteria: list[PlanLine]
    order: Order
    sample: int


@cache
def sheet_shape(
    scale: tuple[int, int], criteria: int, explain_first: bool, *, whole: bool
) -> type[BaseModel]:
    """Return the shape of the scores on every criterion, in the order of the plan.

    Args:
        scale: Lowest and highest score.
        criteria: How many criteria there are.
        explain_first: Whether the explanation stands before the scores.
        whole: Whether each of them must be there; False reads what there is.
    """
    score = score_within(scale)
    line = create_model("Line", score_1=(score, ...), score_2=(score, ...))
    fields: dict[str, Any] = {
        f"criterion_{i + 1}": (line, ...) if whole else (Any, None) for i in range(criteria)
    }
    explanation: Any = {"explanation": (str, ... if whole else "")}
    fields = {**explanation, **fields} if explain_first else {**fields, **explanation}
    return create_model("Sheet", **fields)


def read_sheet(
    data: Mapping[str, Any], work: JudgeWork, unit: str, scale: tuple[int, int]
) -> tuple[list[PlanScore], list[Failure]]:
    """Return the scores of every criterion in a reply, and a failure for each without.

    Args:
        data: The reply.
        work: What was asked.
        unit: What the call is named.
        scale: Lowest and highest score.
    """
    lines: list[PlanScore] = []
    failures: list[Failure] = []
    for i, criterion in enumerate(work["criteria"]):
        line = data.get(f"criterion_{i + 1}")
        try:
            scores = scores_shape(scale).model_validate(
                {"explanation": "", **line} if isinstance(line, Mapping) else line
            )
        except ValueError:
            failures.append(
                {
                    "step": "judge",
                    "unit": ", ".join(filter(None, [criterion["name"], unit])),
                    "reason": "missing" if line is None else "invalid_label",
                    "detail": f"no two scores for {criterion['name']}: {str(line)[:80]}",
                }
            )
            continue
        pair = scores.model_dump()
        lines.append(
            {
                "criterion": criterion["name"],
                "order": work["order"],
                "sample": work["sample"],
                "scores": by_identity(work["order"], pair["score_1"], pair["score_2"]),
                "explanation": naming_identities(
                    str(data.get("explanation") or ""), work["order"]
                ),
            }
        )
    return lines, failures


_FORMS = LabelForms(
    fields=("preferred", "preference", "verdict", "winner", "choice", "answer", "better"),
    nouns=("response", "summary", "passage", "candidate", "text", "option"),
    # Letters are what models write that have read many comparisons of an A and a B.
    labels={"1": "1", "2": "2", "a": "1", "b": "2", "tie": "tie"},
    slack=20,
)
_LONGEST = 200
"""Characters of a line in which scores are looked for."""
_NUMBER = r"\d{1,6}(?:\.0{1,6})?(?: ?/ ?\d{1,6})?"
"""A whole number without a sign, and what it may be out of: `8`, `8.0`, `8/10`."""
_SCORE = re.compile(
    r"(?:response|assistant|passage|score)? ?(?P<slot>[12]) ?(?:scores?)? ?[:=] ?[(\[]?"
    rf"(?P<score>{_NUMBER})[)\]]?(?: (?:out of \d{{1,6}}|points?))?"
    r"(?:$|[.,;:](?!\d)| ?\(| ?[-\u2013\u2014](?! ?\d))",
    re.IGNORECASE,
)
"""One response and its score; words may follow after a mark, for `2 errors` is no score.
Neither is a range, `7-8`."""
_PAIR = re.compile(rf"(?P<first>{_NUMBER})(?: ?[,;] ?| )(?P<second>{_NUMBER})[ .]?")
_MARKUP = str.maketrans(dict.fromkeys("*_`\"'"))


def label_of(text: str) -> SpokenLabel | None:
    r"""Return the label that a reply in plain words ends on.

    >>> label_of("It quotes 'Preferred: 1', which is odd.\nPreferred: 2.").label
    '2'
    >>> label_of("Preferred: 1\nPreferred: 2") is None
    True
    """
    return spoken_label(text, _FORMS)


def spoken_choice(text: str) -> dict[str, object] | None:
    """Read a reply in plain words into the shape that JSON replies have."""
    choice = label_of(text)
    return {"explanation": choice.before, "preference": choice.label} if choice else None


def spoken_scores(text: str) -> dict[str, object] | None:
    r"""Read two scores in plain words: one line `7 4`, or `Response 1: 7` for each.

    A score below zero, a broken one, or two that differ for one response are none.

    >>> spoken_scores("8 6\nThe first is fuller.")
    {'score_1': 8, 'score_2': 6, 'explanation': 'The first is fuller.'}
    >>> spoken_scores("Response 1: 8/10\nResponse 2: 6/10")["score_2"]
    6
    """
    by_slot: dict[str, set[int]] = {"1": set(), "2": set()}
    pairs: set[tuple[int, int]] = set()
    rest: list[str] = []
    lines = lines_of(text)
    for line in lines:
        words = _bare(line.text)
        if pair := _PAIR.fullmatch(words.strip("()[]")):
            pairs.add((_whole(pair["first"]), _whole(pair["second"])))
        elif match := _SCORE.match(words):
            by_slot[match["slot"]].add(_whole(match["score"]))
        else:
            rest.append(line.text)
    named_pair = [(first, second) for first in by_slot["1"] for second in by_slot["2"]]
    score_pairs = pairs | set(named_pair)
    # A response scored twice, differently, may be a quotation: nobody knows which counts.
    if len(score_pairs) != 1 or any(len(scores) > 1 for scores in by_slot.values()):
        return None
    ((first, second),) = score_pairs
    explanation = rest if pairs else [line.text for line in lines]
    return {"score_1": first, "score_2": second, "explanation": "\n".join(explanation).strip()}


def _bare(line: str) -> str:
    """Return the beginning of a line without emphasis, bullets and double spaces."""
    spaced = " ".join(line[:_LONGEST].translate(_MARKUP).split())
    return spaced if spaced.startswith("-") and spaced[1:2].isdigit() else spaced.lstrip(" -#")


def _whole(number: str) -> int:
    return int(re.split(r"[./\s]", number)[0])


def measure(message: AIMessage, data: Mapping[str, object]) -> dict[str, float]:
    """Return the probabilities of a reply's label, and of explanation and label together.

    Each is the length-normalised probability of its own tokens; what the model gave no
    log-probabilities for is left out.
    """
    text = str(message.text)
    letters = spelling(text, reply_tokens(message))
    if letters is None:
        return {}
    spans = _spans(text, data)
    measured = {"label": letters.confidence(spans[-1:]), "joint": letters.confidence(spans)}
    return {name: confidence.value for name, confidence in measured.items() if confidence}


def _spans(text: str, data: Mapping[str, object]) -> list[Span]:
    """Return where the explanation and, last, the label stand; empty if there is none."""
    json_places = json_spans(text, data)
    if ("preference",) in json_places:
        parts = (("explanation",), ("preference",))
        return [json_places[part] for part in parts if part in json_places]
    choice = label_of(text)
    if choice is None or choice.label != data.get("preference"):
        return []
    return [(0, len(choice.before)), choice.span]
