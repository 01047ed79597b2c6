"""The numbers of a trust report, each under a name, with how it was counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.metrics import Result
from langchain_judges.report.rows import JudgedRow, preference_points
from langchain_judges.rows.labels import SIDES

Unit = Literal["share", "points", "number"]
"""A share in [0, 1], a difference of shares, or a number in units of its own."""

Errors = Literal["wrong", "drop"]
ERRORS: tuple[Errors, ...] = ("wrong", "drop")


@dataclass(frozen=True)
class Number:
    """One number of a report."""

    key: str
    """Its name, such as `agreement.label.wrong`; the first part is the section."""
    title: str
    result: Result
    unit: Unit = "share"
    note: str = ""

    @property
    def section(self) -> str:
        """The section it stands in."""
        return self.key.partition(".")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data, flat."""
        told = self.result.to_dict()
        low, high = told["interval"] or (None, None)
        return {
            "section": self.section,
            "key": self.key,
            "title": self.title,
            "value": told["value"],
            "low": low,
            "high": high,
            "n": told["n"],
            "n_failed": sum(told["n_failed"].values()),
            "unit": self.unit,
            "reason": told["reason"],
        }


class Sample:
    """The rows of one judge, column by column."""

    def __init__(self, rows: Sequence[JudgedRow], confidence: float) -> None:
        """Take the columns that the metrics need."""
        self.rows = rows
        self.confidence = confidence
        self.pairs = "label" not in rows[0].verdict
        self.verdicts = [row.row for row in rows]
        self.labels = [row.label for row in rows]
        self.votes = [row.votes for row in rows]
        self.targets = [row.target for row in rows]
        if self.pairs:
            self._check()
        keys = [row.known.get("group") for row in rows]
        self.groups: list[Any] | None = None
        if None not in keys and 1 < len(set(keys)) < len(keys):
            self.groups = keys
        texts = [(row.text("output_a"), row.text("output_b")) for row in rows]
        self.texts = [(a, b) for a, b in texts if a is not None and b is not None]
        self.has_texts = len(self.texts) == len(texts)
        self.by_votes = any(len(votes) > 1 for votes in self.votes)
        """Whether the judge is held against each vote, as people are against each other."""

    def _check(self) -> None:
        for value in [v for votes in self.targets for v in votes] + self.labels:
            if value is not None and value not in SIDES:
                raise InputError(
                    f"labels of pairs must be 'A', 'B' or 'tie', got {value!r}; name what "
                    "they mean by `datasets.rows(…, labels={…})`"
                )

    @property
    def told(self) -> dict[str, Any]:
        """What every metric is told."""
        return {"groups": self.groups, "confidence": self.confidence}

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """Characters of the texts A and of the texts B."""
        return [len(a) for a, _ in self.texts], [len(b) for _, b in self.texts]

    def spread(self, values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Repeat one value of each row for each of its targets; return them and the targets."""
        pairs = [(v, t) for v, row in zip(values, self.targets, strict=True) for t in row]
        return [v for v, _ in pairs], [t for _, t in pairs]

    def hits(self, answers: Iterable[Any]) -> list[float | None]:
        """Return for each row the share of its targets that an answer matches."""
        return [
            sum(float(answer == t) for t in row) / len(row) if row else None
            for answer, row in zip(answers, self.targets, strict=True)
        ]

    def judge_hits(self) -> list[float | None]:
        """Return for each row how far the judge was right; a failed judgment is wrong."""
        return self.hits(row.answer for row in self.rows)


def measure(sample: Sample) -> list[Number]:
    """Return every number of a report on one judge."""
    found = [*_agreement(sample), *_baselines(sample)]
    if sample.pairs:
        found += [*_position(sample), *_style(sample)]
    return [*found, *_failures(sample), *_categories(sample)]


def headline_key(sample: Sample) -> str:
    """Return the key of the number that the first sentence tells."""
    return "agreement.votes.wrong" if sample.by_votes else "agreement.label.wrong"


def _agreement(sample: Sample) -> list[Number]:
    found = []
    counted: dict[str, str] = {
        "wrong": "not judged counts as wrong",
        "drop": "not judged is left out",
    }
    for errors in ERRORS:
        told = {**sample.told, "errors": errors}
        note = counted[errors]
        if any(sample.votes):
            title = "Each person's vote"
            result = metrics.vote_agreement(sample.verdicts, sample.votes, **told)
            found.append(Number(f"agreement.votes.{errors}", title, result, note=note))
        title = "The label" if not any(sample.votes) else "The majority of people"
        result = metrics.accuracy(sample.verdicts, sample.labels, **told)
        found.append(Number(f"agreement.label.{errors}", title, result, note=note))
        more = _pair_agreement if sample.pairs else _balanced
        found += more(sample, errors, note)
    kappa = metrics.cohen_kappa(sample.verdicts, sample.labels, **sample.told)
    found.append(Number("agreement.kappa", "Cohen's κ with the label", kappa, "number"))
    return [*found, *_ceiling(sample)]


def _pair_agreement(sample: Sample, errors: Errors, note: str) -> list[Number]:
    found = []
    decided = [[label] if label is not None else [] for label in sample.labels]
    alone = metrics.majority_agreement(
        sample.verdicts, decided, ties="drop", errors=errors, **sample.told
    )
    title = "The label, ties of either left out"
    found.append(Number(f"agreement.no_ties.{errors}", title, alone, note=note))
    if any(row.has_orders for row in sample.rows):
        first, second = in_orders(sample)
        for rule, title in (
            ("mean_of_orders", "The label, by one order alone (mean of both)"),
            ("both_right", "The label, right in both orders"),
        ):
            result = metrics.order_accuracy(
                first,
                second,
                sample.labels,
                rule,  # type: ignore[arg-type]
                errors,
                **sample.told,
            )
            found.append(Number(f"agreement.{rule}.{errors}", title, result, note=note))
    return found


def in_orders(sample: Sample) -> tuple[list[Any], list[Any]]:
    """Return what the judge said with A first and with B first."""
    return (
        [row.in_order("AB") for row in sample.rows],
        [row.in_order("BA") for row in sample.rows],
    )


def _balanced(sample: Sample, errors: Errors, note: str) -> list[Number]:
    """The mean over the classes of the share that is found, for judges of one text."""
    title = "Balanced accuracy: the mean over the labels"
    result = metrics.balanced_accuracy(sample.verdicts, sample.labels, errors, **sample.told)
    return [Number(f"agreement.balanced.{errors}", title, result, note=note)]


def _ceiling(sample: Sample) -> list[Number]:
    people = metrics.people_agreement(sample.votes, **sample.told)
    found = [Number("agreement.ceiling", "People among themselves", people)]
    if math.isnan(people):
        return found
    oracle = metrics.oracle_agreement(sample.votes, **sample.told)
    beside = metrics.beside_people(sample.verdicts, sample.votes, **sample.told)
    title = "Over people among themselves, every row counted alike"
    return [
        *found,
        Number("agreement.oracle", "The most that any answers could reach", oracle),
        Number("agreement.over_ceiling", title, beside.lead, "points"),
    ]


def _baselines(sample: Sample) -> list[Number]:
    """What needs no judge to be right, against the same labels or votes."""
    if not any(sample.targets):
        return []
    rows = range(len(sample.rows)) if sample.groups is None else sample.groups
    keys, targets = sample.spread(rows)
    told: dict[str, Any] = {"groups": keys, "confidence": sample.confidence}
    answers: dict[str, list[Any]] = {}
    found = []
    if sample.pairs and sample.has_texts:
        a, b = sample.lengths
        answers["length"] = [
            "A" if x > y else "B" if y > x else "tie" for x, y in zip(a, b, strict=True)
        ]
        lengths = sample.spread(a)[0], sample.spread(b)[0]
        result = metrics.length_baseline(targets, *lengths, **told)
        found.append(Number("baseline.length", "Always the longer text", result))
    if sample.pairs:
        answers["first_slot"] = ["A"] * len(sample.rows)
        result = metrics.first_slot_baseline(targets, **told)
        found.append(Number("baseline.first_slot", "Always the first text (A)", result))
    common = Counter(targets).most_common(1)[0][0]
    answers["majority"] = [common] * len(sample.rows)
    title = f"Always the commonest label ({common})"
    result = metrics.majority_baseline(targets, **told)
    found.append(Number("baseline.majority", title, result))
    best = max(found, key=lambda number: number.result)
    theirs = sample.hits(answers[best.key.partition(".")[2]])
    lead = metrics.paired_difference(sample.judge_hits(), theirs, **sample.told)
    lead_title = "The judge's lead over the best of these"
    return [*found, Number("baseline.lead", lead_title, lead, "points", best.title)]


def _position(sample: Sample) -> list[Number]:
    flips = [row.verdict.get("flipped") for row in sample.rows]
    if any(row.has_orders for row in sample.rows):
        bias = metrics.position_bias(*in_orders(sample), **sample.told)
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
        rate = metrics.rate(flips, **sample.told)
    else:
        rate = Result.undefined("one order was asked")
    return [Number("bias.flips", "Flips when the texts swap places", rate)]


def _style(sample: Sample) -> list[Number]:
    if not sample.has_texts or not any(sample.targets):
        why = "the texts are not known" if not sample.has_texts else "no row has a label"
        undefined = Result.undefined(why)
        return [Number("bias.length_slope", "Effect of length", undefined, "number")]
    a, b = sample.lengths
    quality = [
        None
        if (points := preference_points(row)) is None
        else float(points > 0.5) - float(points < 0.5)
        for row in sample.targets
    ]
    told = sample.told
    outputs = [x for x, _ in sample.texts], [y for _, y in sample.texts]
    slope = metrics.length_slope(sample.verdicts, a, b, quality, **sample.told)
    lesser = "not the lesser text, where people prefer it"
    found = [
        Number(
            "bias.length_slope",
            "Effect of length beyond quality",
            slope,
            "number",
            "log-odds per standard deviation of the difference; no bias: 0",
        ),
        Number(
            "bias.length",
            "Shorter text missed",
            metrics.length_bias(sample.verdicts, sample.targets, a, b, **told),
            note=lesser,
        ),
    ]
    for key, title, compute in (
        ("lists", "Fewer list items missed", metrics.list_bias),
        ("markdown", "Less markdown missed", metrics.markdown_bias),
    ):
        result = compute(sample.verdicts, sample.targets, *outputs, **told)
        found.append(Number(f"bias.{key}", title, result, note=lesser))
    return found


def _failures(sample: Sample) -> list[Number]:
    rates = metrics.failure_rates(sample.verdicts, **sample.told)
    found = [Number("failures.failed", "Not judged", rates.failed)]
    found += [
        Number(f"failures.reason.{reason}", f"Not judged: {reason}", result)
        for reason, result in rates.by_reason.items()
    ]
    if sample.pairs:
        ties = metrics.tie_rate(sample.verdicts, **sample.told)
        found.append(Number("failures.ties", "Verdicts that are ties", ties))
    return found


def _categories(sample: Sample) -> list[Number]:
    names = Counter(row.category for row in sample.rows if row.category is not None)
    found = []
    for name, _ in names.most_common():
        kept = [i for i, row in enumerate(sample.rows) if row.category == name]
        part = Sample([sample.rows[i] for i in kept], sample.confidence)
        result = agreement(part, by_votes=sample.by_votes)
        found.append(Number(f"category.{name}", name, result))
    return found


def agreement(sample: Sample, *, by_votes: bool, errors: Errors = "wrong") -> Result:
    """Return the headline number: agreement with each vote, or with the label."""
    told = {**sample.told, "errors": errors}
    if by_votes:
        return metrics.vote_agreement(sample.verdicts, sample.votes, **told)
    return metrics.accuracy(sample.verdicts, sample.labels, **told)
