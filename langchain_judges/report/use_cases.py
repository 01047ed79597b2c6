"""May this judge be used for averages, for single verdicts, in place of a person, for an order?

Each use has its own number, test and margin; none is inferred from another. An answer is yes
where the whole interval lies within the margin, no where all of it lies outside, else not yet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, linear_regression
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.metrics.rank_agreement import SystemOrder, SystemPair, settled
from langchain_judges.report import answers, joined_rows
from langchain_judges.report.answers import Number, TrustPolicy, Use, UseAnswer, Word
from langchain_judges.report.measurements import baselines, people_alike, slot_text, turned_text
from langchain_judges.report.sample import Sample
from langchain_judges.report.single_verdicts import AHEAD, single
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import first_names, first_of


def answers_of(
    sample: Sample, numbers: Mapping[str, Number], policy: TrustPolicy
) -> dict[Use, UseAnswer]:
    """The answer for each use.

    Args:
        sample: The judged rows.
        numbers: What else was measured, by key.
        policy: What is good enough.
    """
    if sample.by_criteria:
        by_criterion = {
            name: answers_of(part, {n.key: n for n in baselines(part) + people_alike(part)}, policy)
            for name, part in sample.parts.items()
        }
        return {
            use: _together({n: a[use] for n, a in by_criterion.items()}) for use in answers.TITLES
        }
    if why := _nothing(sample):
        return {use: UseAnswer(use, "not measured", why) for use in answers.TITLES}
    if sample.scale.apart:
        none = {use: UseAnswer(use, "not measured", sample.scale.apart) for use in answers.TITLES}
        return {**none, "ordering": _ordering(sample, policy)}
    return {
        "averages": _averages(sample, numbers, policy.margin),
        "single": single(sample, numbers, policy.max_wrong),
        "person": _person(sample, numbers, policy.below_people),
        "ordering": _ordering(sample, policy),
    }


def _nothing(sample: Sample) -> str:
    if all(answer is None for answer in sample.answers):
        return "no row was judged"
    both = zip(sample.answers, sample.choices, strict=True)
    if any(answer is not None and own for answer, own in both):
        return ""
    if named := sorted({name for row in sample.rows for name in row.labels}):
        return f"labels are by criterion ({first_names(named)}), and the judge gives a total alone"
    return "no judged row has a label"


def _together(found: Mapping[str, UseAnswer]) -> UseAnswer:
    """One answer for all criteria: the worst of theirs, with the number of each."""
    by_word: dict[Word, list[str]] = {"no": [], "not yet": [], "not measured": [], "yes": []}
    for name, answer in found.items():
        value = "" if answer.number is None else f" ({answers.with_range(answer.number)})"
        by_word[answer.word].append(f"{name}{value}")
    worst = next(word for word, names in by_word.items() if names)
    name, first = next(each for each in found.items() if each[1].word == worst)
    if first.number is None:
        alike = len({answer.reason for answer in found.values()}) == 1
        return first if alike else replace(first, reason=f"by {name}, {first.reason}")
    parts = (f"{word} for {', '.join(own)}" for word, own in by_word.items() if own)
    reason = "; ".join(parts).removeprefix(f"{worst} ")  # the answer says that word
    return replace(first, reason=reason, brief="", parts=())


# ---- does it know anything?


def _follows(sample: Sample) -> tuple[Word, str]:
    """Whether the judge's answers agree with people's beyond chance, and the finding.

    A judge that knows nothing has people's average where labels happen to be balanced, and is
    as good as a person where people agree by chance alone.
    """
    said = {answer for answer in sample.answers if answer is not None}
    if len(said) < 2:
        (always,) = said
        modes = [row.modes for row in sample.rows]
        others = sum(1 - own.count(always) / len(own) for own in modes if own)
        if others >= answers.LEAST_OF_A_LABEL:
            return "no", f"it always says {always}, whatever {sample.whom} say"
        found = f"it has said nothing but {always} so far, and {sample.whom} something else on"
        few = counted(math.floor(others), "row") if others >= 1 else "hardly a row"
        return "not yet", f"{found} {few}"
    # Two uses stand on it, and share the risk that chance alone is taken for knowledge.
    settings: Any = {**sample.settings, "confidence": (1 + sample.confidence) / 2}
    judge = sample.answers
    if sample.rated:
        title = "rank correlation"
        known = metrics.correlate(judge, sample.ratings, "spearman", **settings)
    else:
        title, known = "Cohen's κ", metrics.cohen_kappa(judge, sample.labels, **settings)
    number = Number("follows." + ("spearman" if sample.rated else "kappa"), title, known, "number")
    if turned := turned_text(number, sample.whom):
        return "no", turned
    found = f"{title} {answers.with_range(number)}"
    perfect = sample.rated and known > 1 - 1e-9 and known.n >= answers.LEAST_OF_A_LABEL
    if perfect or (word := answers.decided(known, AHEAD)) == "yes":
        return "yes", found
    return word, f"it is not shown to go with {sample.whom} beyond chance ({found})"


def _if_it_follows(answer: UseAnswer, sample: Sample, numbers: Mapping[str, Number]) -> UseAnswer:
    """The answer, which is no yes for a judge that is not shown to know anything."""
    follows, found = _follows(sample)
    if answer.word == "no" or follows in ("yes", answer.word):
        return answer
    missing = ""
    if follows == "not yet":
        missing = "More labels, until its answers are shown to go with them"
    rest = f"{answer.reason[0].upper()}{answer.reason[1:]}"
    if follows == "no":
        found = slot_text(numbers) or found
        rest = f"So its figure says nothing, however good it looks: {answer.reason}"
    reason = f"{found}. {rest}"
    own: Any = {"word": follows, "reason": reason, "missing": missing, "brief": found}
    return replace(answer, labels=None, **own)


# ---- averages


def _averages(sample: Sample, numbers: Mapping[str, Number], margin: float) -> UseAnswer:
    judge, people, what, scale = sample.averaged
    limit = (-margin * scale, margin * scale)
    unit: Any = "number" if sample.rated else "points"
    title = f"{what}: the judge minus {sample.whom}"
    # Of ratings outside the scale too, which count.
    known = [value for value in [*judge, *people] if value is not None]
    spread = max(scale, max(known) - min(known))

    def gap(places: Sequence[int], level: float, one: Any = judge, other: Any = people) -> Result:
        settings: Any = {**sample.settings_of(places), "confidence": level, "spread": spread}
        sides = [one[i] for i in places], [other[i] for i in places]
        return metrics.paired_difference(*sides, **settings)

    places = range(len(sample.rows))
    whole = Number("averages.all", title, gap(places, sample.confidence), unit)
    parts = _gap_by_part(sample, gap, unit)
    apart, near = (
        [part for part in parts if answers.decided(part.result, limit) == word]
        for word in ("no", "yes")
    )
    word: Word = "no" if apart else answers.decided(whole.result, limit)
    used = [judge[i] is not None and people[i] is not None for i in places]
    reason = _means(sample, whole, used, margin)
    brief, own = answers.difference_text(whole, sample.whom), tuple(parts)
    if apart:
        names = [f"{part.title} ({answers.plus(part)}{answers.value_text(part)})" for part in apart]
        off = f"clearly too far off for {first_of(names)}"
        reason += f". Part by part: {off}; clearly near enough for {len(near)} of {len(parts)}"
        brief = brief if answers.decided(whole.result, limit) == "no" else off
    basis = sample.basis(used)
    answer = answers.by_number("averages", whole, limit, reason, basis, brief, word=word, parts=own)
    return _if_it_follows(answer, sample, numbers)


def _means(sample: Sample, gap: Number, used: Sequence[bool], margin: float) -> str:
    """Say what the average is by either side, how far that is allowed, and for which mix."""
    judge, people, what, scale = sample.averaged
    ours, theirs = (
        [float(value) for value, there in zip(side, used, strict=True) if there]
        for side in (judge, people)
    )
    mine, right = answers.two_texts(fmean(ours), fmean(theirs), gap.unit)
    allowed = f"{answers.rounded(100 * margin, 1).removesuffix('.0')}{answers.NO_BREAK}points"
    if sample.rated:
        allowed = answers.rounded(margin * scale, 2)
    ends = f"; ratings go from {sample.scale.text}" if sample.rated else ""
    mix = "rows mixed like these"
    if len({*theirs}) > 1:
        slope = linear_regression(theirs, ours).slope
        step = answers.rounded(scale / 10, 1) if sample.rated else 10
        unit = "" if sample.rated else f"{answers.NO_BREAK}points"
        moved = answers.rounded(slope * float(step), 2 if sample.rated else 0)
        mix += f"; where {sample.whom} are {step}{unit} higher, the judge is about {moved} higher"
    found = f"{mine} by the judge and {right} by {sample.whom}{sample.by_all}"
    found += f", {answers.difference_text(gap)}; up to {allowed} higher or lower is allowed"
    return f"{what} is {found}{ends}. This is for {mix}"


# Of fewer rows of a system or category the mean says next to nothing.
LEAST_OF_A_PART = 8


def _gap_by_part(sample: Sample, gap: Any, unit: Any) -> list[Number]:
    """The gap by system where rows name some, else by category; all at one level.

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
        sides = list[Any](sample.points[:2])
        if several is systems:
            sides = [sample.points_of(name, side) for side in sides]
        parts.append(Number(f"averages.{name}", name, gap(places, level, *sides), unit))
    return sorted(parts, key=lambda part: 1.0 if math.isnan(part.result) else -abs(part.result))


# ---- in place of a person


def _person(sample: Sample, numbers: Mapping[str, Number], below: float) -> UseAnswer:
    gap = numbers.get("agreement.over_people")
    limit = (-below, math.inf)
    if gap is None or math.isnan(gap.result):
        one = "label" if sample.by_label else "person's answer"
        one_criterion = joined_rows.judge_in(sample.rows[0].row).get("criterion")
        reason = REASONS["one_each"].format(one=one, of=".CRITERION" if one_criterion else "")
        return UseAnswer("person", "not measured", reason, limit=limit)
    alone = " (each of its two answers by itself)" if sample.asked_twice else ""
    people = numbers["agreement.people_rows"].result
    ours, theirs = answers.two_texts(people + gap.result, people, "share")
    found = answers.difference_text(gap)
    same = "gives the same rating as a person" if sample.rated else "agrees with people"
    with_one = "as" if sample.rated else "with"
    shares = f"it {same} {ours} of the time{alone}, one person {with_one} another {theirs}"
    rule = f"{answers.percent(below)} below are allowed{gap.note and f'; {gap.note}'}"
    reason = f"{shares}: {found}; {rule}"
    basis = sample.basis([len(own) > 1 for own in sample.votes])
    brief = answers.difference_text(gap, "another person")
    answer = answers.by_number("person", gap, limit, reason, basis, brief)
    said = Sample([row.by_votes_alone for row in sample.rows], sample.confidence)
    return _if_it_follows(answer, said, numbers)


# ---- ordering systems


REASONS: dict[str, str] = answers.WORDS["reasons"]


def _ordering(sample: Sample, policy: TrustPolicy) -> UseAnswer:
    if len(sample.by_system) > 1:
        return _of_systems(sample, policy)
    if sample.rated:
        return _of_texts(sample, policy.in_order)
    reason = "no row names who wrote its texts (column systems)"
    return UseAnswer("ordering", "not measured", reason)


def _of_texts(sample: Sample, least: float) -> UseAnswer:
    result = metrics.concordance(sample.answers, sample.ratings, **sample.settings)
    number = Number("ordering.texts", "Texts in the same order as by people", result)
    limit = (least, math.inf)
    if math.isnan(result):
        return UseAnswer("ordering", "not measured", result.reason or "", limit=limit)
    found, asked = answers.with_range(number), answers.percent_text(least)
    words = {"whom": sample.whom, "by_all": sample.by_all, "found": found, "asked": asked}
    reason = REASONS["order_of_texts"].format(**words)
    both = zip(sample.answers, sample.ratings, strict=True)
    basis = sample.basis([None not in pair for pair in both])
    return answers.by_number("ordering", number, limit, reason, basis, found)


def _of_systems(sample: Sample, policy: TrustPolicy) -> UseAnswer:
    """Answer for each two systems, and for the ranking by its neighbours."""
    order, (judge, people, *_) = _system_order(sample), sample.points
    used = [
        any(own) and None not in sides
        for own, *sides in zip(sample.systems, judge, people, strict=True)
    ]
    turned = [pair for pair in order.pairs if pair.matches is False]
    open_steps = [pair for pair in order.neighbours if pair.matches is None]
    own, of_all = _counts(order.neighbours), _counts(order.pairs)
    enough = own["same"] >= policy.settled * len(order.neighbours)
    word: Word = "no" if turned else "yes" if enough else "not yet"
    found = REASONS["neighbours"].format(**own, whom=sample.whom)
    asked = answers.percent_text(policy.settled)
    reason = f"{found}; {asked} are asked for. {REASONS['pairs'].format(**of_all)}"
    if turned:
        reason += f": swapped are {first_of([_systems_in(pair) for pair in turned])}"
    missing = ""
    if word == "not yet":
        names = [f"{_systems_in(pair)} ({_open_by(pair)})" for pair in open_steps]
        missing = f"Not clear: {first_of(names)}"
    return UseAnswer(
        "ordering",
        word,
        reason,
        missing=missing,
        basis=sample.basis(used),
        brief=f"{counted(of_all['swapped'], 'pair')} of systems swapped" if turned else found,
        parts=tuple(
            Number(f"ordering.{_systems_in(p)}", _systems_in(p), p.judge, "points", _open_by(p))
            for p in order.pairs
        ),
    )


def _counts(pairs: Sequence[SystemPair]) -> dict[str, Any]:
    counts = Counter(pair.matches for pair in pairs)
    own = {"same": counts[True], "swapped": counts[False], "unclear": counts[None]}
    return {"pairs": counted(len(pairs), "pair"), **own}


def _systems_in(pair: SystemPair) -> str:
    return f"{pair.first} before {pair.second}"


def _open_by(pair: SystemPair) -> str:
    """Say by whom the order of two systems is not clear, or how the judge has it."""
    if pair.matches is not None:
        return "in the same order" if pair.matches else "swapped"
    sides = {"people": pair.people, "the judge": pair.judge}
    said = (f"{'' if settled(gap) else 'un'}clear by {who}" for who, gap in sides.items())
    return ", ".join(said)


def _system_order(sample: Sample) -> SystemOrder:
    """The systems in the order of the judge and of people."""
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
