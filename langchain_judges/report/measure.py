"""The numbers of a trust report, each under a name, with how it was counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.metrics.agreement import Errors
from langchain_judges.metrics.inputs import value_of
from langchain_judges.orders import Order
from langchain_judges.report.estimates import (
    calibration,
    corrected,
    length,
    position,
    ratings,
)
from langchain_judges.report.number import ERRORS, Number
from langchain_judges.report.sample import Sample
from langchain_judges.verdict import Label, is_abstention

ORDERS: tuple[Order, ...] = ("AB", "BA")


def measure(sample: Sample) -> list[Number]:
    """Return every number of a report on one judge."""
    numbers = [*_agreement(sample), *_baselines(sample)]
    if sample.pairs:
        numbers += [*position(sample), *length(sample)]
    numbers += [
        *criteria(sample),
        *ratings(sample),
        *corrected(sample),
        *calibration(sample),
    ]
    return [*numbers, *_failures(sample), *_categories(sample)]


def headline_key(sample: Sample, numbers: Mapping[str, Number]) -> str:
    """Return the key of the number that the first sentence is about."""
    if sample.by_criteria and (lowest := least(sample, numbers)):
        return lowest.key
    if sample.rated:
        return "ratings.spearman"
    return "agreement.votes.wrong" if sample.by_votes else "agreement.label.wrong"


def _agreement(sample: Sample) -> list[Number]:
    numbers = []
    lost = any(answer is None for answer in sample.answers)
    for errors in ERRORS if lost else ERRORS[:1]:
        note = "not judged is wrong" if errors == "wrong" else "not judged is left out"
        if any(sample.votes):
            title = "Each person's vote"
            result = agreement(sample, by_votes=True, errors=errors)
            numbers.append(Number(f"agreement.votes.{errors}", title, result, note=note))
        title = "The label" if not any(sample.votes) else "The majority of people"
        result = agreement(sample, by_votes=False, errors=errors)
        numbers.append(Number(f"agreement.label.{errors}", title, result, note=note))
        more = _one_order if sample.pairs else _balanced
        numbers += more(sample, errors, note)
    kappa = metrics.cohen_kappa(sample.verdicts, sample.labels, **sample.settings)
    numbers.append(Number("agreement.kappa", "Cohen's κ with the label", kappa, "number"))
    return [*numbers, *_people(sample)]


def _one_order(sample: Sample, errors: Errors, note: str) -> list[Number]:
    """The agreement of a judge asked once, of the rows that were asked in both orders."""
    if not any(row.has_orders for row in sample.rows):
        return []
    # A row that failed was asked in both orders.
    asked = [i for i, row in enumerate(sample.rows) if row.has_orders or row.answer is None]
    part = sample.part(asked)
    result = metrics.order_accuracy(
        *part.in_orders(), part.labels, "mean_of_orders", errors, **part.settings
    )
    title = "The label, by one order alone (mean of both)"
    return [Number(f"agreement.mean_of_orders.{errors}", title, result, note=note)]


def _balanced(sample: Sample, errors: Errors, note: str) -> list[Number]:
    """The mean over the classes of the share that is found, for judges of one text."""
    title = "Balanced accuracy: the mean over the labels"
    result = metrics.balanced_accuracy(
        sample.verdicts, sample.labels, errors, **sample.settings
    )
    return [Number(f"agreement.balanced.{errors}", title, result, note=note)]


def _people(sample: Sample) -> list[Number]:
    people = metrics.people_agreement(sample.votes, **sample.settings)
    numbers = [Number("agreement.people", "People among themselves", people)]
    if math.isnan(people):
        return numbers
    first = second = sample.answers
    if any(row.has_orders for row in sample.rows):
        first, second = (
            [row.in_order(order) if row.has_orders else row.answer for row in sample.rows]
            for order in ORDERS
        )
    beside = metrics.beside_people(first, sample.votes, second, **sample.settings)
    lead_title = "Over people among themselves, every row counted alike"
    return [
        *numbers,
        Number(
            "agreement.people_rows",
            "People among themselves, every row counted alike",
            beside.people,
        ),
        Number("agreement.over_people", lead_title, beside.lead, "points"),
        Number(
            "agreement.winning_rate",
            "Annotators that it could replace (winning rate ω of the alt-test)",
            beside.winning_rate,
            note="places in the lists of votes; at least 50 % passes the test",
        ),
    ]


def _baselines(sample: Sample) -> list[Number]:
    """What needs no judge to be right, by the rule that counts the judge's mistakes."""
    if not any(label is not None for label in sample.labels):
        return []
    answers, titles = _answers_without_judge(sample)
    numbers, rights = [], {}
    for name, own in answers.items():
        known = [answer is not None for answer in own]
        rights[name] = [
            None if miss is None or not there else 1 - miss
            for miss, there in zip(sample.missed(own), known, strict=True)
        ]
        result = metrics.rate(rights[name], **sample.settings)
        note = "" if all(known) else f"of the {sum(known):,} rows with texts"
        numbers.append(Number(f"baseline.{name}", titles[name], result, note=note))
    best = max(numbers, key=lambda number: number.result)
    theirs = rights[best.key.partition(".")[2]]
    lead = metrics.paired_difference(sample.rights, theirs, **sample.settings)
    title = "The judge's lead over the best of these"
    return [*numbers, Number("baseline.lead", title, lead, "points", best.title)]


def _answers_without_judge(
    sample: Sample,
) -> tuple[dict[str, list[Label | None]], dict[str, str]]:
    """Return by baseline its answer to each row, None where it has none, and its title."""
    count = len(sample.rows)
    answers: dict[str, list[Label | None]] = {}
    if sample.pairs and sample.texts:
        answers["length"] = [None] * count
        for place, a, b in zip(sample.with_texts, *sample.lengths, strict=True):
            answers["length"][place] = "A" if a > b else "B" if b > a else "tie"
    if sample.pairs:
        answers["first_slot"] = ["A"] * count
    common = Counter(v for v in sample.labels if v is not None).most_common(1)[0][0]
    answers["majority"] = [common] * count
    return answers, {
        "length": "Always the longer text",
        "first_slot": "Always the first text (A)",
        "majority": f"Always the commonest label ({common})",
    }


def _failures(sample: Sample) -> list[Number]:
    readings = [value_of(verdict) for verdict in sample.verdicts]
    reasons = [reason if answer is None else "" for answer, reason in readings]
    failed = metrics.rate([bool(reason) for reason in reasons], **sample.settings)
    numbers = [Number("failures.failed", "Not judged", failed)]
    for name in sorted({*reasons} - {""}):
        result = metrics.rate([reason == name for reason in reasons], **sample.settings)
        numbers.append(Number(f"failures.reason.{name}", f"Not judged: {name}", result))
    abstained = [bool(row.target) for row in sample.rows if is_abstention(row.verdict)]
    if abstained:
        title = "Cannot be assessed for the judge, and labelled by people"
        result = metrics.rate(abstained, confidence=sample.confidence)
        numbers.append(Number("failures.abstained.labelled", title, result))
    if sample.pairs:
        both = zip(sample.verdicts, sample.answers, strict=True)
        tied = [verdict if answer is None else answer == "tie" for verdict, answer in both]
        ties = metrics.rate(tied, **sample.settings)
        numbers.append(Number("failures.ties", "Verdicts that are ties", ties))
    return numbers


def _categories(sample: Sample) -> list[Number]:
    places: dict[str, list[int]] = {}
    for place, row in enumerate(sample.rows):
        if row.category is not None:
            places.setdefault(row.category, []).append(place)
    ranked = sorted(places.items(), key=lambda pair: -len(pair[1]))
    return [
        Number(f"category.{name}", name, agreement(sample.part(own), by_votes=sample.by_votes))
        for name, own in ranked
    ]


def agreement(sample: Sample, *, by_votes: bool, errors: Errors = "wrong") -> Result:
    """Return the headline number: agreement with each vote, or with the label."""
    if by_votes:
        return metrics.vote_agreement(
            sample.verdicts, sample.votes, errors=errors, **sample.settings
        )
    return metrics.accuracy(sample.verdicts, sample.labels, errors=errors, **sample.settings)


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
    ordered = criterion_key(name, "spearman")
    return numbers[ordered if ordered in numbers else criterion_key(name, "kappa")]


def _one(sample: Sample, name: str) -> list[Number]:
    part = sample.by_criterion(name)
    kappa = metrics.cohen_kappa(part.answers, part.labels, **part.settings)
    numbers = ratings(part) or [Number("ratings.kappa", "Cohen's κ", kappa, "number")]
    same = metrics.accuracy(part.answers, part.labels, **part.settings)
    numbers.append(Number("ratings.agreement", "The same label", same))
    return [
        replace(
            number,
            key=criterion_key(name, number.key.partition(".")[2]),
            title=f"{name}: {number.title}",
        )
        for number in numbers
    ]
