"""Numbers of ratings, of the judge's confidence, and of what people would say of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.judged_row import preference_points
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample, gaps


def ratings(sample: Sample) -> list[Number]:
    """Return how ratings of single texts go with people's; nothing of other labels."""
    if not sample.rated:
        return []
    answers, labels, settings = sample.answers, sample.labels, sample.settings
    order = metrics.correlate(answers, labels, "spearman", **settings)
    kappa = metrics.cohen_kappa(answers, labels, weights="quadratic", **settings)
    offsets = gaps(answers, labels)
    offset = metrics.mean(offsets, **settings)
    error = metrics.mean([None if gap is None else abs(gap) for gap in offsets], **settings)
    others = sample.whom
    return [
        Number(
            "ratings.spearman", f"Rank correlation with {others} (Spearman)", order, "number"
        ),
        Number("ratings.kappa", "Cohen's κ, weighted by squared distance", kappa, "number"),
        Number("ratings.error", f"Mean distance from {others}", error, "number"),
        Number(
            "ratings.offset",
            f"Mean of the judge's rating minus {others}",
            offset,
            "number",
            f"above 0: the judge rates higher than {others}",
        ),
    ]


def calibration(sample: Sample) -> list[Number]:
    """Return whether the judge is right as often as it says, where it has a confidence."""
    if not sample.has_confidence:
        return []
    fit = metrics.confidence_calibration(sample.verdicts, sample.labels, **sample.settings)
    numbers = [
        Number(
            "confidence.ece",
            "Distance of confidence from agreement (ECE)",
            fit.ece,
            "number",
            "0: right as often as it says",
        ),
        Number(
            "confidence.brier",
            "Squared error of the confidence (Brier)",
            fit.brier,
            "number",
            "0 is best; always saying 50 % makes 0.25",
        ),
        Number(
            "confidence.auc",
            "Right answers have more confidence than wrong ones",
            fit.auc,
            note="confidence that says nothing: 50 %",
        ),
    ]
    curve = metrics.abstention_curve(sample.verdicts, sample.labels, **sample.settings)
    for share, agreement in curve[1:]:
        percents = round(100 * share)
        title = f"Agreement on the surest {percents} % of the answers"
        key = f"confidence.surest.{percents}"
        if not any(number.key == key for number in numbers):
            numbers.append(Number(key, title, agreement))
    return numbers


def corrected(sample: Sample) -> list[Number]:
    """Return what people would say of all rows, where only some of them have a label."""
    points: list[float | None] = []
    people: list[float | None] = []
    for row in sample.rows:
        points.append(_points(sample, [] if row.answer is None else [row.answer]))
        people.append(_points(sample, row.target))
    counts = Counter(
        (j is not None, p is not None) for j, p in zip(points, people, strict=True)
    )
    if min(counts[True, True], counts[True, False]) < LEAST_ROWS:
        return []
    both = [place for place, value in enumerate(people) if value is not None]
    alone = [place for place, value in enumerate(people) if value is None]
    result: Result = metrics.ppi_mean(
        [people[i] for i in both],
        [points[i] for i in both],
        [points[i] for i in alone],
        confidence=sample.confidence,
    )
    what = "A's win rate" if sample.pairs else "Share of label 1"
    title = f"{what} on all rows, as people would say"
    note = f"judgments of all rows, corrected by the {counts[True, True]:,} labels (PPI++)"
    note += "; its range counts rows, not groups" if sample.groups else ""
    return [Number("people.corrected", title, result, note=note)]


LEAST_ROWS = 10


def _points(sample: Sample, answers: Sequence[object]) -> float | None:
    if sample.pairs:
        return preference_points(answers)
    if len(answers) == 1 and isinstance(answers[0], int | float) and answers[0] in (0, 1):
        return float(answers[0])
    return None
