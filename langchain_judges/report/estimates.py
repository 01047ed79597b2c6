"""Biases of a judge, ratings, confidence, and where people agree: each a number with a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.number import Number
from langchain_judges.report.rows import preference_points
from langchain_judges.report.sample import Sample, gaps


def position(sample: Sample) -> list[Number]:
    """Return how often verdicts change with the places of the texts, and which slot gains."""
    flips = [row.verdict.get("flipped") for row in sample.rows]
    if any(row.has_orders for row in sample.rows):
        bias = metrics.position_bias(*sample.in_orders(), **sample.settings)
        return [
            Number("bias.flips", "Flips when the texts swap places", bias.flip_rate),
            *_kinds_of_flips(sample),
            Number(
                "bias.first_slot_rate",
                "Winners that were shown first",
                bias.first_slot_rate,
                note="no bias: 50 %",
            ),
        ]
    if any(flip is not None for flip in flips):
        # What each order came to is not kept; whether they disagreed is.
        rate = metrics.rate(flips, **sample.settings)
    else:
        rate = Result.undefined("one order was asked")
    return [Number("bias.flips", "Flips when the texts swap places", rate)]


def _kinds_of_flips(sample: Sample) -> list[Number]:
    """Return how many orders name different texts, and how many name one in one order alone."""
    other: list[float | None] = []
    undecided: list[float | None] = []
    for pair in zip(*sample.in_orders(), strict=True):
        differ = None not in pair and pair[0] != pair[1]
        other.append(None if None in pair else float(differ and "tie" not in pair))
        undecided.append(None if None in pair else float(differ and "tie" in pair))
    return [
        Number(f"bias.flips.{key}", title, metrics.rate(hits, **sample.settings))
        for key, title, hits in (
            ("other", "… of these, each order names another text", other),
            ("undecided", "… of these, one order names none", undecided),
        )
    ]


def length(sample: Sample) -> list[Number]:
    """Return how often the shorter text is missed where it is preferred, and the longer."""
    if not sample.texts:
        undefined = Result.undefined("the texts are not known")
        return [Number("bias.length", "Shorter text missed", undefined)]
    part = sample.part(sample.with_texts)
    a, b = part.lengths
    whom = "people prefer" if sample.whom == "people" else "the label prefers"
    ways = {"length": ("Shorter", a, b), "length.longer": ("Longer", b, a)}
    return [
        Number(
            f"bias.{key}",
            f"{which} text missed",
            metrics.length_bias(part.verdicts, part.targets, first, second, **part.settings),
            note=f"not the {which.lower()} text, where {whom} it",
        )
        for key, (which, first, second) in ways.items()
    ]


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
    fit = metrics.confidence_calibration(
        sample.verdicts, sample.labels, sample.confidences, **sample.settings
    )
    numbers = [
        Number(
            "confidence.ece",
            "Distance of confidence from agreement (ECE)",
            fit.ece,
            "number",
            f"right as often as it says: 0, and by chance alone up to {fit.ece_by_chance:.2f}",
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
    curve = metrics.abstention_curve(
        sample.verdicts, sample.labels, sample.confidences, **sample.settings
    )
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
        groups=sample.groups and [sample.groups[i] for i in both],
        confidence=sample.confidence,
    )
    what = "A's win rate" if sample.pairs else "Share of label 1"
    title = f"{what} on all rows, as people would say"
    note = f"judgments of all rows, corrected by the {counts[True, True]:,} labels (PPI++)"
    return [Number("people.corrected", title, result, note=note)]


LEAST_ROWS = 10


def _points(sample: Sample, answers: Sequence[object]) -> float | None:
    if sample.pairs:
        return preference_points(answers)
    if len(answers) == 1 and isinstance(answers[0], int | float) and answers[0] in (0, 1):
        return float(answers[0])
    return None
