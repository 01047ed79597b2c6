"""Numbers by each criterion of a text, where people labelled by criterion too."""

from __future__ import annotations

import math
from collections.abc import Mapping

from langchain_judges import metrics
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample, are_numbers, gaps

ORDER = "spearman"
KAPPA = "kappa"
OFFSET = "offset"
SAME = "agreement"
MEASURES = {
    ORDER: "rank correlation",
    KAPPA: "weighted κ",
    OFFSET: "offset",
    SAME: "same label",
}
"""What is measured by each criterion, and what a table calls it."""


def criteria(sample: Sample) -> list[Number]:
    """Return how the judge's labels go with people's, criterion by criterion."""
    return [number for name in sample.criteria for number in _one(sample, name)]


def criterion_key(name: str, measure: str) -> str:
    """Return the key of a number by one criterion."""
    return f"criterion.{name}.{measure}"


def least(sample: Sample, numbers: Mapping[str, Number]) -> Number | None:
    """Return the number of the criterion on which the judge goes least with people."""
    if not sample.criteria:
        return None
    measured = [main_number(numbers, name) for name in sample.criteria]
    defined = [number for number in measured if not math.isnan(number.result)]
    return min(defined or measured, key=lambda number: number.result)


def main_number(numbers: Mapping[str, Number], name: str) -> Number:
    """Return a criterion's rank correlation, or κ where its labels are words."""
    ordered = criterion_key(name, ORDER)
    return numbers[ordered if ordered in numbers else criterion_key(name, KAPPA)]


def _one(sample: Sample, name: str) -> list[Number]:
    answers = [row.by_criterion.get(name) for row in sample.rows]
    labels = [row.labels.get(name) for row in sample.rows]
    settings = sample.settings
    same = metrics.accuracy(answers, labels, **settings)
    shares = [Number(criterion_key(name, SAME), f"{name}: the same label", same)]
    if not are_numbers([*answers, *labels]):
        kappa = metrics.cohen_kappa(answers, labels, **settings)
        return [Number(criterion_key(name, KAPPA), f"{name}: κ", kappa, "number"), *shares]
    measured = {
        ORDER: metrics.correlate(answers, labels, "spearman", **settings),
        KAPPA: metrics.cohen_kappa(answers, labels, weights="quadratic", **settings),
        OFFSET: metrics.mean(gaps(answers, labels), **settings),
    }
    return [
        Number(criterion_key(name, key), f"{name}: {MEASURES[key]}", result, "number")
        for key, result in measured.items()
    ] + shares
