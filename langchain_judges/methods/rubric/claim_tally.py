"""From the labels of claims to precision, recall and the verdict (arXiv:2509.16093)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.verdict import Failure, LabelVerdict, Usage, not_labelled

ClaimSide = Literal["response", "expected"]
"""Whose claims: those of the response, or of the expected answer."""
_SHARES: dict[ClaimSide, str] = {"response": "precision", "expected": "recall"}
TEXTS: dict[ClaimSide, str] = {"response": "the response", "expected": "the expected answer"}
_QUOTED = 5
"""Claims that a rationale quotes."""


class Claim(TypedDict):
    """One atomic claim, and whether it holds."""

    claim: str
    of: ClaimSide
    """Whose claim: one of the response is looked up in the source or the expected answer, one
    of the expected answer in the response."""
    supported: bool | None
    """None: not checked, see the verdict's failures."""
    reason: str


def claims_verdict(
    claims: Sequence[Claim],
    sides: Sequence[ClaimSide],
    failures: Sequence[Failure],
    usage: Usage,
) -> tuple[LabelVerdict, list[CriterionScore]]:
    """Return the verdict on the claims of a text, and its precision and recall.

    With the claims of one side the score is their precision; with those of both it is F1. A
    response without claims has no precision, and none of the expected claims: its score is 0
    where an expected answer makes some, and it is not judged where there is only a source.

    Args:
        claims: The claims, checked.
        sides: Whose claims count.
        failures: Everything that went wrong.
        usage: What the judgment cost.
    """
    if empty := [side for side in sides if not _of(claims, side)]:
        if empty != ["response"] or len(sides) == 1:
            nothing = _nothing(empty[-1])
            why = f"Not judged: {nothing['detail']}."
            return not_labelled([*failures, nothing], usage, why), []
    elif few := [side for side in sides if not _has_quorum(_of(claims, side))]:
        part = _of(claims, few[0])
        checked = sum(claim["supported"] is not None for claim in part)
        share = f"{checked} of {len(part)} claims of {TEXTS[few[0]]} were checked"
        why = f"Not judged: {share}, more than half must be."
        return not_labelled(failures, usage, why), []
    subscores = [_share(_of(claims, side), side, len(sides) > 1) for side in sides]
    total = round(_harmonic_mean([each["score"] or 0.0 for each in subscores]), 4)
    heading = f"F1 {total:.2f}. " if len(sides) > 1 else ""
    verdict: LabelVerdict = {
        "label": total,
        "score": total,
        "confidence": None,
        "confidence_source": "none",
        "rationale": heading + " ".join(each["reason"] for each in subscores),
        "failures": list(failures),
        "usage": usage,
        "recalled": [],
    }
    return verdict, subscores


def _of(claims: Sequence[Claim], side: ClaimSide) -> list[Claim]:
    return [claim for claim in claims if claim["of"] == side]


def _has_quorum(claims: Sequence[Claim]) -> bool:
    return 2 * sum(claim["supported"] is not None for claim in claims) > len(claims)


def _harmonic_mean(shares: Sequence[float]) -> float:
    return len(shares) / sum(1 / share for share in shares) if all(shares) else 0.0


def _share(claims: Sequence[Claim], side: ClaimSide, compares: bool) -> CriterionScore:
    """Return the share of the claims of one side that hold, and which do not."""
    labels = [claim["supported"] for claim in claims if claim["supported"] is not None]
    share = sum(labels) / len(labels) if labels else None
    score = None if share is None else round(share, 4)
    return {
        "criterion": _SHARES[side],
        "label": score,
        "score": share,
        "weight": 1,
        "holds": None if share is None else share == 1,
        "required": False,
        "reason": _reason(claims, labels, side, compares),
        "confidence": None,
        "confidence_source": "none",
    }


def _reason(
    claims: Sequence[Claim], labels: Sequence[bool], side: ClaimSide, compares: bool
) -> str:
    if not labels:
        return "The response states nothing that can be checked."
    basis = "the expected answer" if compares else "the source"
    count = f"{sum(labels)} of {len(labels)}"
    summary = {
        "response": f"{count} claims of the response are supported by {basis}",
        "expected": f"{count} claims of the expected answer are in the response",
    }[side]
    wrong = [claim["claim"] for claim in claims if claim["supported"] is False]
    quoted = "; ".join(f"\u201c{text}\u201d" for text in wrong[:_QUOTED])
    more = f"; and {len(wrong) - _QUOTED} more" if len(wrong) > _QUOTED else ""
    return f"{summary}; not: {quoted}{more}." if wrong else f"{summary}."


def _nothing(side: ClaimSide) -> Failure:
    detail = f"{TEXTS[side]} states nothing that can be checked"
    return {"step": "split", "unit": side, "reason": "empty", "detail": detail}
