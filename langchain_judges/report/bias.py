"""Biases of a judge of pairs: the position of a text, and its length."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.judged_row import preference_points
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample


def position(sample: Sample) -> list[Number]:
    """Return how often verdicts change with the places of the texts, and which slot gains."""
    flips = [row.verdict.get("flipped") for row in sample.rows]
    if any(row.row.get("first_order") for row in sample.rows):
        # Both orders of the doubtful rows alone would make a judge look fickle.
        why = "the second order was asked only where the first was unsure"
        rate = Result.undefined(why)
        return [Number("bias.flips", "Flips when the texts swap places", rate)]
    if any(row.has_orders for row in sample.rows):
        bias = metrics.position_bias(*sample.in_orders(), **sample.settings)
        return [
            Number("bias.flips", "Flips when the texts swap places", bias.flip_rate),
            Number("bias.toward_first", "The first slot won both orders", bias.toward_first),
            Number("bias.toward_second", "The second slot won both orders", bias.toward_second),
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


def style(sample: Sample) -> list[Number]:
    """Return what length does beyond quality, on the rows with texts."""
    if not sample.texts or not any(sample.targets):
        why = "no row has a label" if sample.texts else "the texts are not known"
        undefined = Result.undefined(why)
        return [Number("bias.length_slope", "Effect of length", undefined, "number")]
    part = sample.part(sample.with_texts)
    a, b = part.lengths
    quality = [
        None
        if (points := preference_points(row)) is None
        else float(points > 0.5) - float(points < 0.5)
        for row in part.targets
    ]
    settings = part.settings
    slope = metrics.length_slope(part.verdicts, a, b, quality, **settings)
    note = f"not the shorter text, where {_prefer(sample)} it"
    return [
        Number(
            "bias.length_slope",
            "Effect of length beyond quality",
            slope,
            "number",
            "log-odds per standard deviation of the difference; no bias: 0. The interval "
            "allows for labels that are right 80 to 100 % of the time",
        ),
        Number(
            "bias.length",
            "Shorter text missed",
            metrics.length_bias(part.verdicts, part.targets, a, b, **settings),
            note=note,
        ),
    ]


def consistency(sample: Sample) -> list[Number]:
    """Return whether a judge contradicts itself, which needs no labels."""
    if any(system is None for pair in sample.systems for system in pair):
        return []
    keys = [row.data_row.get("group") for row in sample.rows]
    if None in keys:
        return []
    result = metrics.transitivity(
        sample.verdicts, sample.systems, keys, confidence=sample.confidence
    )
    if result.reason:
        return []
    title = "Three texts whose comparisons fit one order"
    note = "the others go in a circle: x over y, y over z, z over x"
    return [Number("bias.transitivity", title, result, note=note)]


def self_preference(sample: Sample) -> list[Number]:
    """Return how far a judge favours the texts of its own model, where it wrote some."""
    judge = sample.rows[0].row.get("judge")
    model = str(judge.get("model") or "") if isinstance(judge, Mapping) else ""
    own = {name for pair in sample.systems for name in pair if name and _of_family(model, name)}
    if not own or not any(sample.targets):
        return []
    favour = metrics.self_enhancement(
        sample.verdicts, sample.labels, sample.systems, own, **sample.settings
    )
    giver = "people give it" if sample.whom == "people" else "the label gives it"
    title = f"Its own model's win rate, above what {giver}"
    note = f"own: {', '.join(sorted(own))}; {favour.excess.n:,} pairs"
    return [Number("bias.self_preference", title, favour.excess, "points", note)]


def _prefer(sample: Sample) -> str:
    return "people prefer" if sample.whom == "people" else "the label prefers"


def _of_family(model: str, system: str | None) -> bool:
    """Say whether a model is a system, or a version of it: gpt-4-0613 is of gpt-4."""
    name, base = model.rpartition(":")[2].lower(), (system or "").lower()
    return bool(base) and (name == base or name.startswith((f"{base}-", f"{base}@")))
