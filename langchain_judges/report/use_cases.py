"""May this judge be used: for averages, single verdicts, in place of a person, for an order?

Each use has its own number, test and margin; none is inferred from another. An answer is yes
where the whole interval lies within the margin, no where all of it lies outside, else not yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.metrics.rank_agreement import SystemOrder
from langchain_judges.report.conclusions import (
    NO_BREAK,
    TITLES,
    Number,
    TrustPolicy,
    Use,
    UseAnswer,
    Word,
    decided,
    labels_to_settle,
    percent,
    percent_text,
    rounded,
    settled,
    value_text,
    with_range,
)
from langchain_judges.report.judged_columns import Sample
from langchain_judges.report.single_verdicts import AHEAD, single
from langchain_judges.runs.summary import counted


def answers_of(
    sample: Sample, numbers: Mapping[str, Number], policy: TrustPolicy
) -> dict[Use, UseAnswer]:
    """Return the answer for each use.

    Args:
        sample: The judged rows.
        numbers: What else was measured, by key.
        policy: What right enough means.
    """
    if sample.by_criteria:
        parts = {name: sample.by_criterion(name) for name in sample.criteria}
        answers = {name: answers_of(part, {}, policy) for name, part in parts.items()}
        return {use: _together({n: a[use] for n, a in answers.items()}) for use in TITLES}
    if why := _nothing(sample):
        return {use: UseAnswer(use, "not measured", why) for use in TITLES}
    return {
        "averages": _averages(sample, policy.margin),
        "single": single(sample, numbers, policy.max_wrong),
        "person": _person(sample, numbers, policy.below_people),
        "ordering": _ordering(sample, policy),
    }


def _nothing(sample: Sample) -> str:
    if all(answer is None for answer in sample.answers):
        return "no row was judged"
    both = zip(sample.answers, sample.labels, strict=True)
    return "" if any(None not in pair for pair in both) else "no judged row has a label"


def _together(answers: Mapping[str, UseAnswer]) -> UseAnswer:
    """Return one answer for all criteria: the worst of theirs, with the number of each."""
    by_word: dict[Word, list[str]] = {"no": [], "not yet": [], "not measured": [], "yes": []}
    for name, answer in answers.items():
        value = "" if answer.number is None else f" ({with_range(answer.number)})"
        by_word[answer.word].append(f"{name}{value}")
    worst = next(word for word, names in by_word.items() if names)
    first = next(answer for answer in answers.values() if answer.word == worst)
    if first.number is None:
        return first
    reason = "; ".join(f"{word} by {', '.join(own)}" for word, own in by_word.items() if own)
    return replace(first, reason=reason, brief="", parts=())


# ---- averages


def _averages(sample: Sample, margin: float) -> UseAnswer:
    judge, people, what, scale = sample.points
    limit = (-margin * scale, margin * scale)
    unit: Any = "number" if scale != 1 else "points"
    title = f"{what}: the judge minus {sample.whom}"

    def gap(
        places: Sequence[int], level: float, one: Any = judge, other: Any = people
    ) -> Result:
        settings: Any = {**sample.settings_of(places), "confidence": level, "spread": scale}
        sides = [one[i] for i in places], [other[i] for i in places]
        return metrics.paired_difference(*sides, **settings)

    places = range(len(sample.rows))
    whole = Number("averages.all", title, gap(places, sample.confidence), unit)
    parts = _parts(sample, gap, judge, people, unit)
    apart = [part for part in parts if decided(part.result, limit) == "no"]
    word = decided(whole.result, limit)
    if apart:
        word = "no"
    both = [i for i in places if judge[i] is not None and people[i] is not None]
    ours, theirs = (sum(side[i] for i in both) / len(both) for side in (judge, people))
    shown = percent_text if scale == 1 else (lambda value: rounded(value, 2))
    allowed = f"{rounded(100 * margin, 1).removesuffix('.0')}{NO_BREAK}points"
    if scale != 1:
        allowed = f"{rounded(margin * scale, 2)} on a scale of {rounded(scale, 1)}"
    reason = (
        f"{what} is {shown(ours)} by the judge and {shown(theirs)} by {sample.whom}, "
        f"{with_range(whole)}; up to {allowed} either way are allowed"
    )
    if apart:
        names = ", ".join(f"{part.title} ({value_text(part)})" for part in apart[:3])
        reason += f". Too far off for {names}"
    brief = with_range(whole)
    return settled(UseAnswer("averages", word, reason, whole, limit, None, brief, tuple(parts)))


LEAST_OF_A_PART = 8
"""Of fewer rows of a system or category the mean says next to nothing."""


def _parts(sample: Sample, gap: Any, judge: Any, people: Any, unit: Any) -> list[Number]:
    """Return the gap by system where rows name some, else by category; all at one level.

    Those that are furthest off come first.
    """
    systems, categories = (
        {name: places for name, places in own.items() if len(places) >= LEAST_OF_A_PART}
        for own in (sample.by_system, sample.by_category)
    )
    several = systems if len(systems) > 1 else categories
    if len(several) < 2:
        return []
    level = 1 - (1 - sample.confidence) / len(several)
    parts = []
    for name, places in several.items():
        sides = [judge, people]
        if several is systems:
            sides = [_of_system(side, sample.systems, name) for side in sides]
        parts.append(Number(f"averages.{name}", name, gap(places, level, *sides), unit))
    return sorted(parts, key=lambda part: 1.0 if math.isnan(part.result) else -abs(part.result))


def _of_system(side: Sequence[Any], systems: Sequence[tuple[Any, ...]], name: str) -> list[Any]:
    """Return the points of a system's own text in each row."""
    return [
        None if points is None else points if pair[0] == name else 1 - points
        for points, pair in zip(side, systems, strict=True)
    ]


# ---- in place of a person


def _person(sample: Sample, numbers: Mapping[str, Number], below: float) -> UseAnswer:
    gap = numbers.get("agreement.over_people")
    limit = (-below, math.inf)
    if gap is None or math.isnan(gap.result):
        reason = "no row has answers of two people (column human_votes)"
        return UseAnswer("person", "not measured", reason, limit=limit)
    word = decided(gap.result, limit)
    twice = sample.asked_twice
    alone = " (each of its two answers by itself)" if twice else ""
    people = numbers["agreement.people_rows"].result
    reason = (
        f"it agrees with people {percent_text(people + gap.result)} of the time{alone}, one "
        f"person with another {percent_text(people)}: {with_range(gap)}; "
        f"{percent(below)} below are allowed"
    )
    rate = numbers.get("agreement.winning_rate")
    if rate is not None and not math.isnan(rate.result):
        passed = f"{round(rate.result * rate.result.n)} of {rate.result.n}"
        reason += f". It does as well in the place of {passed} people, one by one (alt-test)"
    brief = with_range(gap)
    return settled(UseAnswer("person", word, reason, gap, limit, brief=brief))


# ---- ordering systems


def _ordering(sample: Sample, policy: TrustPolicy) -> UseAnswer:
    if len(sample.by_system) > 1:
        return _of_systems(sample)
    if sample.rated:
        return _of_texts(sample, policy.in_order)
    reason = "no row names who wrote its texts (column systems)"
    return UseAnswer("ordering", "not measured", reason)


def _of_texts(sample: Sample, least: float) -> UseAnswer:
    result = metrics.concordance(sample.answers, sample.labels, **sample.settings)
    number = Number("ordering.texts", "Texts in the same order as by people", result)
    limit = (least, math.inf)
    if math.isnan(result):
        return UseAnswer("ordering", "not measured", result.reason or "", limit=limit)
    found = with_range(number)
    reason = (
        f"of two texts that {sample.whom} rate apart it has the same one ahead {found} of the "
        f"time; a coin would {percent_text(0.5)}, {percent_text(least)} are asked for"
    )
    word = decided(result, limit)
    return settled(UseAnswer("ordering", word, reason, number, limit, brief=found))


def _of_systems(sample: Sample) -> UseAnswer:
    order = _system_order(sample)
    told = [pair for pair in order.pairs if _apart(pair.people)]
    same = sum(pair.matches is True for pair in told)
    turned = [f"{p.first} and {p.second}" for p in told if p.matches is False]
    word: Word = "no" if turned else "yes" if told and same == len(told) else "not yet"
    pairs = f"{counted(len(order.pairs), 'pair')} of systems"
    apart = sum(_apart(pair.judge) for pair in order.neighbours)
    reason = (
        f"by {sample.whom} {len(told)} of {pairs} can be told apart, and the judge has {same} "
        "of these in the same order"
        f"{'. It turns round ' if turned else ''}{', '.join(turned[:3])}. Of "
        f"{counted(len(order.neighbours), 'step')} in the ranking it can tell {apart} apart"
    )
    candidates = [
        labels_to_settle(pair.judge if pair in told else pair.people, AHEAD)
        for pair in order.pairs
        if pair.matches is None and word == "not yet"
    ]
    labels = min((each for each in candidates if each is not None), default=None)
    brief = f"{same} of {counted(len(told), 'pair')} of systems"
    return UseAnswer("ordering", word, reason, labels=labels, brief=brief)


def _system_order(sample: Sample) -> SystemOrder:
    """Return the systems in the order of the judge and of people."""
    judge, people, *_ = sample.points
    names = [[name for name in own if name is not None] for own in sample.systems]
    named = [i for i, own in enumerate(names) if own]
    columns = [
        [
            [points, 1 - points] if len(own) > 1 and points is not None else [points] * len(own)
            for own, points in zip(names, side, strict=True)
        ]
        for side in (judge, people)
    ]
    rows = [[column[i] for i in named] for column in (names, *columns)]
    return metrics.system_order(*rows, **sample.settings_of(named))


def _apart(gap: Result) -> bool:
    return gap.interval is not None and not gap.interval.covers(0.0)
