"""The answer of a report: whether the judge can be trusted, for which use, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from langchain_judges.metrics import Result
from langchain_judges.report.measure import ORDER, headline_key, main_number
from langchain_judges.report.number import (
    NO_BREAK,
    Number,
    percent,
    range_text,
    rounded,
    value_text,
)
from langchain_judges.report.sample import Sample

Word = Literal["yes", "no", "not yet"]

MARGIN = 0.05
"""How far below one more person a judge may be and still take a person's place."""
FAR = 0.2
"""A gap between shares of ties that says more of the judge than its agreement does."""
CLOSE = 0.005
"""A gap that rounds to no point."""

_RULES = {
    "Always the longer text": "always picking the longer text",
    "Always the first text (A)": "always picking the first text",
}


@dataclass(frozen=True)
class TrustAnswer:
    """Whether a judge may be trusted."""

    word: Word
    text: str
    """A sentence that begins with the word, and says for what and why."""


def answer_of(
    sample: Sample, numbers: Mapping[str, Number], min_agreement: float | None = None
) -> TrustAnswer:
    """Return whether the judge may be trusted, for what, and why.

    Args:
        sample: The judged rows.
        numbers: What was measured, by key.
        min_agreement: The agreement that is enough; by default the judge is compared with
            people among themselves, and against rules that need no judge.
    """
    headline = numbers[headline_key(sample, numbers)]
    if all(row.answer is None for row in sample.rows):
        return _answer("not yet", "no row was judged")
    if sample.by_criteria:
        return _of_criteria(sample, numbers, min_agreement)
    if math.isnan(headline.result):
        return _answer("not yet", "no judged row has a label")
    if sample.rated:
        return _of_ratings(sample, numbers, min_agreement)
    return _of_agreement(sample, numbers, min_agreement)


def _of_agreement(
    sample: Sample, numbers: Mapping[str, Number], min_agreement: float | None
) -> TrustAnswer:
    """Answer by the agreement beside rules that need no judge, people, or a bar."""
    headline = numbers[headline_key(sample, numbers)]
    lead = numbers["baseline.lead"]
    if lead.result.interval is None or headline.result.interval is None:
        return _answer("not yet", f"too few labels ({headline.result.n:,}) to say")
    rule = _RULES.get(lead.note, "always giving the commonest label")
    alone = ", by one order alone" if "baseline.coin" in numbers else ""
    if lead.result.interval.high < 0:
        return _answer("no", f"worse than {rule}, by {_points(lead)}{alone}")
    people = numbers.get("agreement.over_people")
    if people and min_agreement is None and _clearly_below(people):
        return _below_people(people, rule, better=lead.result.interval.low > 0)
    if lead.result.interval.low <= 0:
        span = f"{value_text(lead)}, {range_text(lead)}{alone}"
        reason = f"not shown to be better than {rule} ({span})"
        return _answer("not yet", reason)
    if min_agreement is not None:
        return _beside_bar(headline, min_agreement)
    if people is not None and not math.isnan(people.result):
        return _in_place_of_people(people)
    wrong = 100 - int(percent(headline.result))  # both are printed, and add up to 100
    return TrustAnswer(
        "yes",
        f"Yes, for averages over many rows: better than {rule} by {_points(lead)}{alone}; a "
        f"single verdict differs from {sample.whom} {wrong} times in 100.",
    )


def _of_ratings(
    sample: Sample, numbers: Mapping[str, Number], least: float | None
) -> TrustAnswer:
    order, bar = numbers["ratings.spearman"], 0.0 if least is None else least
    others = sample.whom
    span = f"rank correlation {value_text(order)}, {range_text(order)}"
    if order.result.interval is None:
        return _answer("not yet", f"too few ratings ({order.result.n:,}) to say")
    if order.result.interval.high < bar or order.result.interval.high < 0:
        return _answer("no", f"it does not order texts as {others} do ({span})")
    if order.result.interval.low <= bar:
        return _answer("not yet", f"it may not order texts as {others} do ({span})")
    side = clearly_apart(numbers["ratings.offset"].result, 0.0)
    scale = {1: f"; it rates higher than {others}", -1: f"; it rates lower than {others}"}
    return TrustAnswer("yes", f"Yes, for ordering many texts ({span}){scale.get(side, '')}.")


def _of_criteria(
    sample: Sample, numbers: Mapping[str, Number], least: float | None
) -> TrustAnswer:
    """Answer for each criterion; the whole is a yes or no where all of them are."""
    bar = 0.0 if least is None else least
    by_word: dict[Word, list[str]] = {"yes": [], "not yet": [], "no": []}
    for name in sample.criteria:
        order = main_number(numbers, name)
        span = range_text(order) or order.result.reason or order.result.no_interval
        by_word[_side(order, bar)].append(f"{name} ({value_text(order)}, {span})")
    words = [word for word, names in by_word.items() if names]
    what = (
        "for ordering many texts"
        if all(main_number(numbers, name).key.endswith(ORDER) for name in sample.criteria)
        else "for averages over many texts"
    )
    if words == ["yes"]:
        return TrustAnswer(
            "yes", f"Yes, {what}, by each criterion: {', '.join(by_word['yes'])}."
        )
    if len(words) == 1:
        return _answer(words[0], f"by no criterion {what}: {', '.join(by_word[words[0]])}")
    parts = "; ".join(f"{word} by {', '.join(by_word[word])}" for word in words)
    return _answer("not yet", f"not by every criterion. {parts[0].upper()}{parts[1:]}")


def _side(number: Number, bar: float) -> Word:
    interval = number.result.interval
    if interval is None or interval.low <= bar <= interval.high:
        return "not yet"
    return "yes" if interval.low > bar else "no"


def _answer(word: Word, reason: str) -> TrustAnswer:
    return TrustAnswer(word, f"{word.capitalize()}: {reason}.")


def _points(number: Number) -> str:
    value, span = abs(100 * number.result), number.result.interval
    size = f"{rounded(value, 0)} {'point' if rounded(value, 0) == '1' else 'points'}"
    if span is None:
        return size
    ends = sorted(abs(100 * end) for end in span)
    return f"{size} ({rounded(ends[0], 0)}–{rounded(ends[1], 0)})"


def _beside_bar(headline: Number, least: float) -> TrustAnswer:
    interval = headline.result.interval
    bar = f"{percent(least)}{NO_BREAK}%"
    agreement = f"agrees {value_text(headline, 0)} ({range_text(headline, 0)}) of the time"
    if interval is None or interval.low < least <= interval.high:
        return _answer("not yet", f"{agreement}, which may be under the {bar} asked for")
    if interval.high < least:
        return _answer("no", f"{agreement}, and {bar} are asked for")
    return _answer("yes", f"{agreement}, and {bar} are asked for")


def _clearly_below(gap: Number) -> bool:
    """Say whether the judge agrees with people less than one more person does."""
    return gap.result.interval is not None and gap.result.interval.high < -MARGIN


def _below_people(gap: Number, rule: str, *, better: bool) -> TrustAnswer:
    span = f"{value_text(gap)}, {range_text(gap)}"
    text = f"No, not in place of a person: agrees less with people than they do ({span})"
    rest = "better than" if better else "not shown to be better than"
    return TrustAnswer(
        "no", f"{text}; {rest} {rule}{' all the same' if better else ' either'}."
    )


def _in_place_of_people(gap: Number) -> TrustAnswer:
    interval = gap.result.interval
    margin = percent(MARGIN)
    span = f"{value_text(gap)}, {range_text(gap)}"
    if interval is None:
        return _answer("not yet", "too few rows with several votes to hold it against people")
    if interval.low > -MARGIN:
        return TrustAnswer(
            "yes", f"Yes, in place of one more person: no worse by {margin} points ({span})."
        )
    text = f"it may be {margin} points or more below one more person ({span})"
    return _answer("not yet", text)


def details(sample: Sample, numbers: Mapping[str, Number]) -> str:
    """Return what the report measures, in one sentence."""
    parts = [
        _agreed(sample, numbers),
        _beside_people(sample, numbers),
        _ties(sample),
        _flips(numbers),
        _leanings(numbers),
        _failures(sample),
    ]
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _agreed(sample: Sample, numbers: Mapping[str, Number]) -> str:
    headline = numbers[headline_key(sample, numbers)]
    if sample.by_criteria:
        return f"least with {sample.whom} by {headline.title} {value_text(headline)}"
    if math.isnan(headline.result):
        return "how far it agrees with people is unknown, because no judged row has a label"
    span = range_text(headline, 0) or headline.result.no_interval or ""
    if sample.rated:
        parts = f"rank correlation with {sample.whom} {value_text(headline)} ({span})"
        names = {"ratings.error": "mean distance", "ratings.offset": "offset"}
        return ", ".join([parts, *(f"{n} {value_text(numbers[k])}" for k, n in names.items())])
    share = f"agrees with {sample.whom} {value_text(headline, 0)} ({span}) of the time"
    balanced = numbers.get("agreement.balanced.wrong")
    if balanced and not math.isnan(balanced.result):
        share += f", balanced over the labels {value_text(balanced, 0)}"
    return share


def _beside_people(sample: Sample, numbers: Mapping[str, Number]) -> str:
    gap = numbers.get("agreement.over_people")
    if gap is None or math.isnan(gap.result):
        has_labels = any(sample.targets)
        return "how often people agree among themselves is unknown" if has_labels else ""
    points = abs(round(100 * gap.result))
    if abs(gap.result) < CLOSE:
        return "as often as people among themselves"
    word = "point" if points == 1 else "points"
    span = range_text(gap, 0)
    side = "under" if gap.result < 0 else "over"
    text = f"{points} {word} {side} people among themselves"
    return f"{text} ({span})" if span else text


def _flips(numbers: Mapping[str, Number]) -> str:
    flips = numbers.get("bias.flips")
    if flips is None:
        return ""
    if math.isnan(flips.result):
        failed = numbers.get("failures.failed")
        if failed and failed.result >= 1:
            return "flips unknown"
        return f"flips unknown: {flips.result.reason or 'only one order was asked'}"
    return f"flips on {value_text(flips, 0)}"


def _ties(sample: Sample) -> str:
    """Report the ties of a judge who calls far more than people do: it decides little."""
    answers = [row.answer for row in sample.rows if row.answer is not None]
    people = [vote for targets in sample.targets for vote in targets]
    if not sample.pairs or not answers or not people:
        return ""
    ours, theirs = (votes.count("tie") / len(votes) for votes in (answers, people))
    if ours - theirs < FAR:
        return ""
    shares = f"{percent(ours)}{NO_BREAK}%", f"{percent(theirs)}{NO_BREAK}%"
    return f"calls {shares[0]} of rows a tie, {sample.whom} {shares[1]}"


def clearly_apart(result: Result, value: float) -> int:
    """Return the side of `value` on which a whole interval lies, 0 if it holds it."""
    if math.isnan(result) or result.interval is None:
        return 0
    return int(result.interval.low > value) - int(result.interval.high < value)


def _leanings(numbers: Mapping[str, Number]) -> str:
    leans = []
    slot, length = numbers.get("bias.first_slot_rate"), numbers.get("bias.length_slope")
    side = clearly_apart(slot.result, 0.5) if slot else 0
    if side:
        leans.append(f"to the {'first' if side > 0 else 'second'} slot")
    pull = clearly_apart(length.result, 0.0) if length else 0
    if pull:
        leans.append(f"to {'longer' if pull > 0 else 'shorter'} texts")
    if leans:
        return f"leans {' and '.join(leans)}"
    names = {"bias.first_slot_rate": "a slot", "bias.length_slope": "a length"}
    measured = [
        names[each.key]
        for each in (slot, length)
        if each and not math.isnan(each.result) and each.result.interval
    ]
    return f"no clear lean to {' or '.join(measured)}" if measured else ""


def _failures(sample: Sample) -> str:
    count = sum(row.answer is None for row in sample.rows)
    return f"{count:,} of {len(sample.rows):,} not judged"
