"""The numbers of a trust report, each under a name, with how it was counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result, agreement, inputs
from langchain_judges.report import answers
from langchain_judges.report.answers import WORDS, Number, NumberUnit, percent_text
from langchain_judges.report.sample import Sample
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import Label, is_abstention

# Of fewer labels, or fewer rows without one, nothing is estimated.
LEAST_ROWS = 10


def measure(sample: Sample) -> list[Number]:
    """Every number of a report on one judge."""
    kinds = [_agreement, people_alike, baselines, criteria, ratings, _corrected, _calibration]
    kinds += [*([_position, _length] if sample.pairs else []), _failures, _categories]
    if sample.scale.apart:  # ratings of different scales are never the same
        kinds = [people_alike, criteria, ratings, _failures]
    return [number for numbers in kinds for number in numbers(sample)]


def headline_key(sample: Sample, numbers: Mapping[str, Number]) -> str:
    """The key of the agreement that sums a report up; of criteria the worst."""
    if sample.by_criteria:
        ranks = [f"criterion.{name}.spearman" for name in sample.criteria]
        keys = [k if k in numbers else k.replace("spearman", "kappa") for k in ranks]
        return min(keys, key=lambda k: (math.isnan(numbers[k].result), numbers[k].result))
    if sample.rated:
        return "ratings.spearman"
    return "agreement.votes.wrong" if sample.by_votes else "agreement.label.wrong"


_TITLES: dict[str, Any] = WORDS["numbers"]


def _number(key: str, result: Result, unit: NumberUnit = "share", **said: object) -> Number:
    """A number under the title, and with the note, that it always has."""
    title, note = [*_TITLES[key].split(" | "), ""][:2]
    return Number(key, title.format(**said), result, unit, note.format(**said))


# ---- agreement


def _agreement(sample: Sample) -> list[Number]:
    ways = {} if sample.by_label else {"votes": _agrees(sample, by_votes=True)}
    ways["label"] = _agrees(sample, by_votes=False)
    if not sample.pairs:
        recalls = partial(metrics.balanced_accuracy, sample.verdicts, sample.labels)
        ways["balanced"] = partial(recalls, **sample.settings)
    elif sample.asked_twice:
        ways |= {rule: _agrees_in_orders(sample, rule) for rule in _ORDER_RULES}
    whose = "The label" if sample.by_label else "The majority of people"
    numbers = [
        _number(f"agreement.{key}.wrong", count(errors="wrong"), whose=whose)
        for key, count in ways.items()
    ]
    kappa = metrics.cohen_kappa(sample.verdicts, sample.labels, **sample.settings)
    return [*numbers, _number("agreement.kappa", kappa, "number")]


def _agrees(sample: Sample, *, by_votes: bool) -> Callable[..., Result]:
    """Function that measures agreement with each vote, or with the label."""
    if by_votes:
        return partial(metrics.vote_agreement, sample.verdicts, sample.targets, **sample.settings)
    return partial(metrics.accuracy, sample.verdicts, sample.labels, **sample.settings)


_ORDER_RULES: tuple[agreement.OrdersRule, ...] = ("mean_of_orders", "both_right", "sign_of_sum")


def _agrees_in_orders(sample: Sample, rule: agreement.OrdersRule) -> Callable[..., Result]:
    """Function that measures agreement by a rule for rows asked in both orders."""
    # A row that failed was asked in both orders.
    asked = [i for i, row in enumerate(sample.rows) if row.has_orders or row.answer is None]
    part = sample.part(asked)
    return partial(metrics.order_accuracy, *part.in_orders(), part.labels, rule, **part.settings)


def people_alike(sample: Sample) -> list[Number]:
    """Agreement of people with each other, and of the judge compared with theirs."""
    people = metrics.people_agreement(sample.votes, **sample.settings)
    numbers = [_number("agreement.people", people)]
    if math.isnan(people):
        return numbers
    level: Any = "interval" if sample.rated else "nominal"
    beyond = metrics.people_beyond_chance(sample.votes, level, **sample.settings)
    for key in ("alpha", "fleiss", "ac1"):
        numbers.append(_number(f"agreement.{key}", beyond[key], "number"))
    if sample.scale.apart:
        return numbers
    rows = sample.rows
    first, second = (
        [own if row.has_orders else row.answer for row, own in zip(rows, side, strict=True)]
        for side in sample.in_orders()
    )
    votes = [row.by_person for row in rows]
    beside = metrics.beside_people(first, votes, second, **sample.settings)
    over = _number("agreement.over_people", beside.lead, "points")
    if beside.called_in:
        called = counted(beside.called_in, "answer")
        over = replace(over, note=f"left out: {called}, of rows with more answers than others")
    winning = _number("agreement.winning_rate", beside.winning_rate)
    return [*numbers, _number("agreement.people_rows", beside.people), over, winning]


def _categories(sample: Sample) -> list[Number]:
    return [
        Number(f"category.{name}", name, _agrees(sample.part(own), by_votes=sample.by_votes)())
        for name, own in sorted(sample.by_category.items(), key=lambda pair: -len(pair[1]))
    ]


# ---- what needs no judge


def baselines(sample: Sample) -> list[Number]:
    """Accuracy of rules that need no judge, counted like the judge's mistakes."""
    if not any(sample.choices):
        return []
    numbers, rights, lacks = [], {}, {}
    without = [not own for own in sample.choices]
    for name, (title, said) in _answers_without_judge(sample).items():
        known = [answer is not None for answer in said]
        rights[name] = [
            None if miss is None or not there else 1 - miss
            for miss, there in zip(sample.missed(said), known, strict=True)
        ]
        textless = sum(not (there or out) for there, out in zip(known, without, strict=True))
        lacks[name] = {"no_label": sum(without), "no_texts": textless}
        result = metrics.rate(rights[name], **sample.settings).replace(n_failed=lacks[name])
        note = "" if all(known) else f"of the {sum(known):,} rows with texts"
        numbers.append(Number(f"baseline.{name}", title, result, note=note))
    best = max(numbers, key=lambda number: number.result)
    name = best.key.partition(".")[2]
    lead = metrics.paired_difference(sample.rights, rights[name], **sample.settings)
    lead = lead.replace(n_failed=lacks[name])
    return [*numbers, _number("baseline.lead", lead, "points", best=best.title)]


def _answers_without_judge(sample: Sample) -> dict[str, tuple[str, list[Label | None]]]:
    """By baseline its title and its answer to each row, None where it has none."""
    count = len(sample.rows)
    answers: dict[str, tuple[str, list[Label | None]]] = {}
    if sample.with_texts:
        longer: list[Label | None] = [None] * count
        for place, a, b in zip(sample.with_texts, *sample.lengths, strict=True):
            longer[place] = "A" if a > b else "B" if b > a else "tie"
        answers["length"] = ("Always the longer text", longer)
    if sample.pairs:
        answers["first_slot"] = ("Always the first text (A)", ["A"] * count)
    counts = sample.label_counts
    common = max(counts, key=lambda label: counts[label])
    title = f"Always the commonest label ({common})"
    if sample.rated:  # of ratings the one that is far off least often
        common = min(counts, key=lambda each: sum(filter(None, sample.missed([each] * count))))
        title = f"Always {common}"
    answers["majority"] = (title, [common] * count)
    return answers


# ---- biases


def _position(sample: Sample) -> list[Number]:
    """Share of verdicts that change with the positions of the texts, and which slot gains."""
    if sample.asked_twice:
        bias = metrics.position_bias(*sample.in_orders(), **sample.settings)
        first = _number("bias.first_slot_rate", bias.first_slot_rate)
        return [_number("bias.flips", bias.flip_rate), first]
    flips = [row.verdict.get("flipped") for row in sample.rows]
    ours = any(row.row.get("judge") for row in sample.rows)
    why = "one order was asked" if ours else "one answer a pair is given, not one in each order"
    # What each order came to is not kept; whether they disagreed is.
    known = any(flip is not None for flip in flips)
    rate = metrics.rate(flips, **sample.settings) if known else Result.undefined(why)
    return [_number("bias.flips", rate)]


def slot_text(numbers: Mapping[str, Number]) -> str:
    """Finding about a judge of pairs that mostly takes one position; empty of others."""
    slot = numbers.get("bias.first_slot_rate")
    if slot is None or slot.result.interval is None or slot.result.interval.covers(0.5):
        return ""
    ties, first = numbers["failures.ties"].result, slot.result > 0.5
    if not numbers["bias.flips"].result >= 0.5:
        return ""
    which, share = ("first", slot.result) if first else ("last", 1 - slot.result)
    end = "every pair ends as a tie" if ties >= 1 else f"{percent_text(ties)} of pairs are ties"
    return f"it takes the text shown {which} in {percent_text(share)} of answers, so {end}"


def turned_text(number: Number, whom: str) -> str:
    """Finding about answers that run against people's, by a coefficient; empty of others."""
    known, rated = number.result, number.key.endswith(".spearman")
    if known > -0.6 or not (rated or number.key.endswith(".kappa")):
        return ""
    perfect = known < -1 + 1e-9 and known.n >= answers.LEAST_OF_A_LABEL
    if not perfect and answers.decided(known, (0, math.inf)) != "no":
        return ""
    how = f"rates low what {whom} rate high" if rated else f"says the opposite of {whom}"
    title = f"{'rank correlation' if rated else 'κ'} {answers.value_text(number)}"
    what = "one side's scale ran the other way" if rated else "one side's labels were swapped"
    return f"it {how} ({title}), as if {what}"


def _length(sample: Sample) -> list[Number]:
    """Share of preferred shorter texts that are missed, and of preferred longer ones."""
    if not sample.with_texts:
        unknown = Result.undefined("the texts are not known")
        return [_number("bias.length", unknown, whom=sample.whom)]
    part = sample.part(sample.with_texts)
    missed = partial(metrics.length_bias, part.verdicts, part.targets, **part.settings)
    shorter, longer = missed(*part.lengths), missed(*part.lengths[::-1])
    results = {"bias.length": shorter, "bias.length.longer": longer}
    return [_number(key, own, whom=sample.whom) for key, own in results.items()]


# ---- ratings, criteria, confidence


def ratings(sample: Sample) -> list[Number]:
    """Correlation of ratings with people's; nothing for other labels."""
    if not sample.rated:
        return []
    order = metrics.correlate(sample.answers, sample.ratings, "spearman", **sample.settings)
    columns = sample.answers, sample.labels
    kappa = metrics.cohen_kappa(*columns, weights="quadratic", **sample.settings)
    whom = " with people's majority" if sample.by_votes else ""
    numbers = [
        _number("ratings.spearman", order, "number", whom=f"{sample.whom}{sample.by_all}"),
        _number("ratings.kappa", kappa, "number", whom=whom),
    ]
    return numbers[:1] if sample.scale.apart else numbers


def criteria(sample: Sample) -> list[Number]:
    """Agreement of the judge's labels with people's, by criterion."""
    numbers = []
    for name in sample.criteria:
        part = sample.by_criterion(name)
        kappa = metrics.cohen_kappa(part.answers, part.labels, **part.settings)
        same = metrics.accuracy(part.answers, part.labels, **part.settings)
        own = ratings(part) or [Number("ratings.kappa", "Cohen's κ", kappa, "number")]
        own.append(Number("ratings.agreement", "The same label", same))
        for number in own[:1] if part.scale.apart else own:
            key = f"criterion.{name}.{number.key.partition('.')[2]}"
            numbers.append(replace(number, key=key, title=f"{name}: {number.title}"))
    return numbers


def _calibration(sample: Sample) -> list[Number]:
    """Whether the judge is right as often as it says, where it has a confidence."""
    if not sample.has_confidence:
        return []
    fit = metrics.confidence_calibration(
        sample.verdicts, sample.labels, sample.confidences, **sample.settings
    )
    return [
        _number("confidence.ece", fit.ece, "number", luck=fit.ece_by_chance),
        _number("confidence.brier", fit.brier, "number"),
        _number("confidence.auc", fit.auc),
    ]


# ---- rows without a label, and without a verdict


def _corrected(sample: Sample) -> list[Number]:
    """Estimate of people's answer on all rows, if only some have a label."""
    judge, people, what, _ = sample.averaged
    if what == "The share of 0":  # whichever label is rare
        judge, people = ([v if v is None else 1 - v for v in side] for side in (judge, people))
        what = "The share of 1"
    both = [i for i, value in enumerate(people) if value is not None]
    alone = [i for i, value in enumerate(people) if value is None]
    labels, rest = (sum(judge[i] is not None for i in own) for own in (both, alone))
    if min(labels, rest) < LEAST_ROWS:
        return []
    result: Result = metrics.ppi_mean(
        [people[i] for i in both],
        [judge[i] for i in both],
        [judge[i] for i in alone],
        **sample.settings_of(both),
    )
    return [_number("people.corrected", result, what=what, labels=labels)]


def _failures(sample: Sample) -> list[Number]:
    readings = [inputs.value_of(verdict) for verdict in sample.verdicts]
    reasons = [reason if answer is None else "" for answer, reason in readings]

    def number(key: str, title: str, hits: inputs.Judgments) -> Number:
        return Number(f"failures.{key}", title, metrics.rate(hits, **sample.settings))

    numbers = [number("failed", "Not judged", [bool(reason) for reason in reasons])]
    for name in sorted({*reasons} - {""}):
        own = [reason == name for reason in reasons]
        numbers.append(number(f"reason.{name}", f"Not judged: {name}", own))
    if sample.pairs:
        both = zip(sample.verdicts, sample.answers, strict=True)
        ties = [v if answer is None else answer == "tie" for v, answer in both]
        numbers.append(number("ties", "Verdicts that are ties", ties))
    abstained = [bool(row.target) for row in sample.rows if is_abstention(row.verdict)]
    if abstained:
        result = metrics.rate(abstained, confidence=sample.confidence)
        numbers.append(_number("failures.abstained.labelled", result))
    return numbers
