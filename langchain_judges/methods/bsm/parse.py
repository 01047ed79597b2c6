"""Reading plans and scores in plain words, for models that ignore the asked format.

Strict on purpose: a number counts only if its line names the response it belongs to, or
consists of the score alone.
"""

from __future__ import annotations

import re
from typing import Any

_BULLET = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+(?P<text>.+)$")
_NAMED = re.compile(
    r"^[*_`\"]*(?P<name>[^:()*_`–—]{1,60}?)[*_`\"]*\s*"
    r"(?:[:–—]|\s-\s|\()[*_`\"]*\s*(?P<text>.*?)\)?$"
)
_SCORE = r"[*_`\"]*(?P<score>-?\d+)[*_`\"]*(?:\s*(?:/|out of)\s*\d+)?[*_`\"]*\.?$"
_ALONE = re.compile(rf"^\s*(?:score\s*[:=]\s*)?{_SCORE}", re.IGNORECASE)
_BOUND = re.compile(
    r"^\W*(?:score (?:of|for) )?(?:the )?(?:response|assistant|answer)[ _]?(?P<slot>[12AB])\b"
    rf"(?:'s)?[*_]*\s*(?:score)?\s*(?:is|[:=–])?[*_]*\s*{_SCORE}",
    re.IGNORECASE,
)
_SLOTS = {"1": 1, "A": 1, "2": 2, "B": 2}


def parse_plan(text: str) -> dict[str, Any] | None:
    r"""Read a bulleted or numbered list of criteria; lines between belong to the one before.

    >>> parse_plan("My plan:\n1. **Depth**: not the obvious\n2. Tone (polite)")["criteria"][1]
    {'name': 'Tone', 'description': 'polite'}
    >>> parse_plan("I like the first one.") is None
    True
    """
    items: list[str] = []
    for line in text.splitlines():
        if bullet := _BULLET.match(line):
            items.append(bullet["text"].strip())
        elif items and line.strip():
            items[-1] += " " + line.strip()
    criteria = [_criterion(item) for item in items]
    # The last line may have been cut; without a description it is worth little.
    if len(criteria) > 1 and not criteria[-1]["description"]:
        criteria.pop()
    return {"criteria": criteria} if criteria else None


def _criterion(item: str) -> dict[str, str]:
    named = _NAMED.match(item)
    if not named:
        return {"name": item.strip("*_ .")[:60], "description": ""}
    return {"name": named["name"].strip(), "description": named["text"].strip("*_ ")}


def parse_scores(text: str) -> dict[str, Any] | None:
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
    rest: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        if found := _BOUND.match(line):
            bound.append((_SLOTS[found["slot"].upper()], int(found["score"])))
        elif found := _ALONE.match(line):
            alone.append(int(found["score"]))
        else:
            rest.append(line.strip())
    # A response scored twice, differently, may be a quotation: nobody knows which counts.
    scores = dict(bound)
    if len(set(bound)) != len(scores) or (bound and alone):
        return None
    if not bound and len(alone) == 2:
        scores = {1: alone[0], 2: alone[1]}
    if scores.keys() != {1, 2}:
        return None
    return {"score_1": scores[1], "score_2": scores[2], "explanation": " ".join(rest)}
