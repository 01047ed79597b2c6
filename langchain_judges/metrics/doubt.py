"""How sure a verdict is, in one number, whatever the judge's method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def certainty(verdict: Mapping[str, object]) -> float | None:
    """Return how sure a verdict is, from 0 to 1.

    Its confidence, where the method gives one (label probability, agreement of samples or of a
    jury); else 0 where the orders disagree; else how far its score is from the middle,
    |2 · score − 1|: the margin of a panel or of criteria, the probability of a label.

    Args:
        verdict: A verdict, or a row that holds one.

    Returns:
        None where nothing was judged, and of labels of one text that are not 0 and 1 and have
        no confidence.

    >>> certainty({"preference": "A", "confidence": None, "flipped": False, "score": 0.9})
    0.8
    """
    own: Any = verdict.get("verdict", verdict) or {}
    answer = own.get("preference", own.get("label"))
    if answer is None:
        return None
    if own.get("confidence") is not None:
        return float(own["confidence"])
    if own.get("flipped"):
        return 0.0
    score = own.get("score")
    if score is None or not 0 <= score <= 1 or answer not in ("A", "B", "tie", 0, 1):
        return None
    return abs(2 * float(score) - 1)
