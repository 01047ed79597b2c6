"""From the labels by each criterion to the verdict on the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, prod

from langchain_judges.asking.account import Account
from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.verdict import LabelVerdict, not_labelled


def subscore(
    criterion: Criterion,
    answer: Mapping[str, object] | None,
    probabilities: Mapping[str, float],
) -> CriterionScore:
    """The finding by one criterion.

    Args:
        criterion: The criterion.
        answer: The label and the reason; None: it was not judged. Another label than those
            of the criterion says that it cannot be assessed.
        probabilities: Of the labels, where the model gave any: the score is then their mean
            (arXiv:2503.03064). Those of a judge that may abstain hold the probability of that
            too: it lowers the confidence, and the score is the mean of the other labels.
    """
    label = None
    if answer is not None:
        label = {str(each): each for each in criterion.names}.get(str(answer["label"]))
    confidence = probabilities.get(str(label))
    score = None if label is None else criterion.position(label)
    known = _of_labels(criterion, probabilities)
    if label is not None and len(known) == len(criterion.names):
        score = fsum(criterion.position(each) * known[str(each)] for each in criterion.names)
    return {
        "criterion": criterion.name,
        "label": label,
        "score": score,
        "weight": criterion.weight,
        "holds": None if label is None else criterion.holds(label),
        "required": criterion.required,
        "reason": str((answer or {}).get("explanation") or "").strip(),
        "confidence": confidence,
        "confidence_source": "none" if confidence is None else "logprobs",
    }


def _of_labels(criterion: Criterion, probabilities: Mapping[str, float]) -> dict[str, float]:
    """The probabilities of the criterion's labels, given that it has one of them."""
    known = {str(name): probabilities.get(str(name)) for name in criterion.names}
    listed = {name: chance for name, chance in known.items() if chance is not None}
    if len(listed) == len(probabilities):
        return dict(probabilities)
    total = fsum(listed.values())
    return {name: chance / total for name, chance in listed.items()} if total else {}


def one_verdict(part: CriterionScore, account: Account, recalled: list[str]) -> LabelVerdict:
    """The verdict of a rubric with one criterion: its label and its score."""
    if part["label"] is None:
        why = f"Cannot be assessed. {part['reason']}" if part["reason"] else ""
        return {**not_labelled(**account.booked, rationale=why), "recalled": recalled}
    return {
        "label": part["label"],
        "score": part["score"],
        "confidence": part["confidence"],
        "confidence_source": part["confidence_source"],
        "rationale": part["reason"] or f"Label {part['label']}, without a reason.",
        "failures": account.failures,
        "usage": account.usage,
        "recalled": recalled,
    }


def total_verdict(
    criteria: Sequence[Criterion],
    subscores: Sequence[CriterionScore],
    least: int,
    account: Account,
) -> LabelVerdict:
    """The verdict of a rubric with several criteria.

    Its label and its score are the mean of the scores, weighed; 0 where a required criterion
    does not hold. Its confidence is how probable it is that all labels that decide it are
    right, each independently of the others.

    Args:
        criteria: The criteria.
        subscores: What was found by each, in the same order.
        least: Fewest criteria that must be judged.
        account: Of the row.
    """
    broken = [each for each in subscores if each["required"] and each["holds"] is False]
    open_ = [each for each in subscores if each["required"] and each["label"] is None]
    valid = [
        (criterion, each)
        for criterion, each in zip(criteria, subscores, strict=True)
        if each["score"] is not None
    ]
    if open_ and not broken:
        why = f"the required criterion {open_[0]['criterion']!r} has no label"
        return not_labelled(**account.booked, rationale=f"Not judged: {why}.")
    if len(valid) < least and not broken:
        why = f"{len(valid)} of {len(subscores)} criteria have a label, at least {least} must"
        return not_labelled(**account.booked, rationale=f"Not judged: {why}.")
    weights = fsum(criterion.weight for criterion, _ in valid)
    points = fsum(c.weight * (each["score"] or 0.0) for c, each in valid)
    total = 0.0 if broken else round(points / weights, 4)
    confidences = [each["confidence"] for each in broken or [each for _, each in valid]]
    known = [each for each in confidences if each is not None]
    confidence = prod(known) if len(known) == len(confidences) else None
    return {
        "label": total,
        "score": total,
        "confidence": confidence,
        "confidence_source": "none" if confidence is None else "logprobs",
        "rationale": _rationale(total, subscores, broken),
        "failures": account.failures,
        "usage": account.usage,
        "recalled": [],
    }


def _rationale(
    total: float, subscores: Sequence[CriterionScore], broken: Sequence[CriterionScore]
) -> str:
    if broken:
        names = ", ".join(each["criterion"] for each in broken)
        reason = broken[0]["reason"]
        return f"It fails what is required: {names}." + (f" {reason}" if reason else "")
    parts = [
        f"{each['criterion']}: {'not judged' if each['label'] is None else each['label']}"
        for each in subscores
    ]
    return f"Total {total:.2f} of 1. " + "; ".join(parts) + "."
