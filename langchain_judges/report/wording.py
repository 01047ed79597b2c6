"""Numbers in words, and the one sentence that sums a judge up."""

from __future__ import annotations

import math
from collections.abc import Mapping

from langchain_judges.metrics import Result
from langchain_judges.report.measure import Number, Sample, headline_key

NO_BREAK = "\u00a0"

CLOSE = 0.005
"""A gap that rounds to no point."""


def percent(value: float, digits: int = 0) -> str:
    """Return a share as a percentage without its sign."""
    return rounded(100 * value, digits)


def rounded(value: float, digits: int) -> str:
    """Return a number with halves rounded away from zero, as people do, and a true minus."""
    step = 10.0**digits
    size = math.floor(abs(value) * step + 0.5 + 1e-9) / step
    return f"{'−' if value < 0 and size else ''}{size:.{digits}f}"


def told(number: Number, digits: int = 1) -> str:
    """Return a number in its unit."""
    value = number.result
    if math.isnan(value):
        return "unknown"
    if number.unit == "share":
        return f"{percent(value, digits)}{NO_BREAK}%"
    if number.unit == "points":
        sign = "+" if value >= 0 else ""
        return f"{sign}{rounded(100 * value, digits)}{NO_BREAK}points"
    return rounded(value, 2)


def p_told(p: float) -> str:
    """Return a p-value as people print it."""
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def range_told(number: Number, digits: int = 1) -> str:
    """Return the ends of a number's interval, or nothing."""
    interval = number.result.interval
    if interval is None or math.isnan(interval.low):
        return ""
    scale, places = (1.0, 2) if number.unit == "number" else (100.0, digits)
    low, high = (rounded(scale * end, places) for end in interval)
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def sentence(sample: Sample, numbers: Mapping[str, Number]) -> str:
    """Return what the report comes to, in one sentence."""
    parts = [
        _agreed(sample, numbers),
        _beside_people(sample, numbers),
        _ties(sample),
        _flips(numbers),
        _leanings(numbers),
        _not_judged(sample),
    ]
    whole = "; ".join(part for part in parts if part)
    return f"{whole[0].upper()}{whole[1:]}."


def _agreed(sample: Sample, numbers: Mapping[str, Number]) -> str:
    found = numbers[headline_key(sample)]
    if math.isnan(found.result):
        return "how far it agrees with people is unknown, because no judged row has a label"
    whom = "people" if sample.pairs else "the labels"
    said = f"agrees with {whom} {told(found, 0)} ({range_told(found, 0)}) of the time"
    balanced = numbers.get("agreement.balanced.wrong")
    if balanced and not math.isnan(balanced.result):
        said += f", balanced over the labels {told(balanced, 0)}"
    return said


def _beside_people(sample: Sample, numbers: Mapping[str, Number]) -> str:
    gap = numbers.get("agreement.over_ceiling")
    if gap is None or math.isnan(gap.result):
        known = any(sample.targets)
        return "how often people agree among themselves is unknown" if known else ""
    points = abs(round(100 * gap.result))
    if abs(gap.result) < CLOSE:
        return "as often as people among themselves"
    word = "point" if points == 1 else "points"
    range_of = range_told(gap, 0)
    side = "under" if gap.result < 0 else "over"
    said = f"{points} {word} {side} people among themselves"
    return f"{said} ({range_of})" if range_of else said


def _flips(numbers: Mapping[str, Number]) -> str:
    flips = numbers.get("bias.flips")
    if flips is None:
        return ""
    if math.isnan(flips.result):
        failed = numbers.get("failures.failed")
        if failed and failed.result >= 1:
            return "flips unknown"
        return "flips unknown: only one order was asked"
    return f"flips on {told(flips, 0)}"


FAR = 0.2
"""A gap between shares of ties that says more of the judge than its agreement does."""


def _ties(sample: Sample) -> str:
    """Tell the ties of a judge who says far more of them than people: it decides little."""
    said = [row.answer for row in sample.rows if row.answer is not None]
    people = [vote for targets in sample.targets for vote in targets]
    if not sample.pairs or not said or not people:
        return ""
    ours, theirs = (votes.count("tie") / len(votes) for votes in (said, people))
    if ours - theirs < FAR:
        return ""
    told = f"{percent(ours)}{NO_BREAK}%", f"{percent(theirs)}{NO_BREAK}%"
    return f"calls {told[0]} of rows a tie, people {told[1]}"


def clearly_apart(result: Result, value: float) -> int:
    """Return the side of `value` on which a whole interval lies, 0 if it holds it."""
    if math.isnan(result) or result.interval is None:
        return 0
    return int(result.interval.low > value) - int(result.interval.high < value)


def _leanings(numbers: Mapping[str, Number]) -> str:
    found = []
    slot, length = numbers.get("bias.first_slot_rate"), numbers.get("bias.length_slope")
    side = clearly_apart(slot.result, 0.5) if slot else 0
    if side:
        found.append(f"to the {'first' if side > 0 else 'second'} slot")
    pull = clearly_apart(length.result, 0.0) if length else 0
    if pull:
        found.append(f"to {'longer' if pull > 0 else 'shorter'} texts")
    known = [each for each in (slot, length) if each and not math.isnan(each.result)]
    if found:
        return f"leans {' and '.join(found)}"
    names = {"bias.first_slot_rate": "a slot", "bias.length_slope": "a length"}
    return f"no clear lean to {' or '.join(names[each.key] for each in known)}" if known else ""


def _not_judged(sample: Sample) -> str:
    lost = sum(row.answer is None for row in sample.rows)
    return f"{lost:,} of {len(sample.rows):,} not judged"
