"""May somebody act on one verdict that nobody checks? How many are wrong, by label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.answers import (
    LEAST_OF_A_LABEL,
    MOST_LABELS,
    MOST_WRONG,
    Number,
    UseAnswer,
    Word,
    decided,
    labels_to_settle,
    percent_text,
    range_text,
    rounded,
    rounded_up,
    settled,
    with_range,
)
from langchain_judges.report.sample import Sample


def single(sample: Sample, numbers: Mapping[str, Number], most: float) -> UseAnswer:
    """Return whether so few single verdicts are wrong; of labels, by what the judge says.

    Args:
        sample: The judged rows.
        numbers: What else was measured: verdicts on pairs must beat rules without a judge.
        most: The share that may be wrong.
    """
    if not sample.pairs and not sample.rated:
        return _by_label(sample, most)
    limit = (-math.inf, most)
    wrong = metrics.rate(sample.misses, **sample.settings)
    number = Number("single.wrong", "Single verdicts that are wrong", wrong)
    word = decided(wrong, limit)
    found = f"{percent_text(wrong)} are wrong{_span(number)}"
    reason = f"{found}; at most {percent_text(most)} may be. {_counted(sample)}"
    brief = f"{percent_text(wrong)} wrong{_span(number)}"
    lead = numbers.get("baseline.lead")
    if word == "yes" and sample.pairs and lead is not None:
        low, high = lead.result.interval or (-math.inf, math.inf)
        if low <= 0:
            word = "no" if high < 0 else "not yet"
            verb = "Worse than" if high < 0 else "Not shown to be better than"
            rule = f"{lead.note[0].lower()}{lead.note[1:]}"
            reason += f". {verb} a rule that needs no judge: {rule} ({with_range(lead)})"
            labels = labels_to_settle(lead.result, (0.0, math.inf))
            return UseAnswer("single", word, reason, number, limit, labels, brief)
    reason += _surest(sample)
    return settled(UseAnswer("single", word, reason, number, limit, brief=brief))


def _span(number: Number) -> str:
    span = range_text(number)
    return f" ({span})" if span else ""


def _counted(sample: Sample) -> str:
    """Say of how many rows the verdict is wrong, or half wrong, or is none."""
    labelled = sum(miss is not None for miss in sample.misses)
    half = sum(miss == 0.5 for miss in sample.misses)
    wrong = len(sample.mistakes) - half
    far = f" by more than {rounded(sample.scale / 4, 1)}" if sample.rated else ""
    lost = sample.misses.count(1.0) - wrong
    parts = [f"{wrong:,} are wrong{far}"] if wrong or not half else []
    are = "" if parts else "are "
    parts += [f"{half:,} {are}half wrong (only one side says tie)"] if half else []
    parts += [f"{lost:,} not judged"] if lost else []
    return f"Of {labelled:,}, {', '.join(parts)}"


# ---- by label


def _by_label(sample: Sample, most: float) -> UseAnswer:
    """Answer for each label that the judge gives, and with all labels weighed alike."""
    limit = (-math.inf, most)
    counts = Counter(label for label in sample.labels if label is not None)
    if len(counts) < 2:
        return UseAnswer("single", "not measured", "all labels are the same", limit=limit)
    rare = sample.rare_label
    if counts[rare] < LEAST_OF_A_LABEL:
        least = f"{counts[rare]}; {LEAST_OF_A_LABEL} are needed"
        reason = f"too few labels of the class `{rare}`: {least}"
        more = math.ceil((LEAST_OF_A_LABEL - counts[rare]) * counts.total() / counts[rare])
        return UseAnswer("single", "not yet", reason, limit=limit, labels=more)
    by_word: dict[Word, list[Number]] = {"no": [], "not yet": [], "not measured": [], "yes": []}
    for part in _parts(sample):
        by_word[decided(part.result, limit)].append(part)
    word, worst = next((word, own) for word, own in by_word.items() if own)
    if word == "yes":  # as every label is, all of them together are too
        worst = [part for part in worst if part.key != BALANCED]
    worst.sort(key=lambda part: -part.result)
    reason = f"{_sentences(worst)}; at most {percent_text(most)} may be"
    reason += ": have a person look" if word == "no" else ""
    for other in by_word:
        rest = [part for part in by_word[other] if part.key != BALANCED]
        if other != word and rest:
            reason += f". {_sentences(rest)}: {other}"
    return UseAnswer(
        "single",
        word,
        reason[0].lower() + reason[1:] + _surest(sample),
        worst[0],
        limit,
        _labels(by_word["not yet"], counts.total(), limit) if word == "not yet" else None,
        f"{percent_text(worst[0].result)} wrong {worst[0].title}{_span(worst[0])}",
        tuple(part for own in by_word.values() for part in own),
    )


def _sentences(parts: list[Number]) -> str:
    """Say the first few in a sentence each."""
    notes = [f"{part.note[0].upper()}{part.note[1:]}" for part in parts[:3]]
    return ". ".join(notes) + (f", and so for {len(parts) - 3} more" if parts[3:] else "")


def _parts(sample: Sample) -> list[Number]:
    """Return how often the judge is wrong where it gives each label, and on balance."""
    judged = zip(sample.answers, sample.labels, strict=True)
    given = {own for own, label in judged if own is not None and label is not None}
    level = 1 - (1 - sample.confidence) / (len(given) + 1)
    settings: Any = {**sample.settings, "confidence": level}
    parts = []
    for own in sorted(given, key=str):
        right = metrics.precision(sample.answers, sample.labels, own, **settings)
        number = Number(f"single.{own}", f"where it says {own}", _complement(right))
        count = f"{round(number.result * right.n):,} of {right.n:,} are wrong"
        parts.append(replace(number, note=f"{number.title}, {count} ({_with_span(number)})"))
    right = metrics.balanced_accuracy(sample.verdicts, sample.labels, "wrong", **settings)
    number = Number(BALANCED, "with every label weighed alike", _complement(right))
    rare = sample.rare_label
    found = metrics.sensitivity(sample.answers, sample.labels, rare, **settings)
    # A row that was not judged is missed, here as in the share.
    labelled = sum(label == rare for label in sample.labels)
    count = f"of {labelled:,} with the label {rare} it finds {round(found * found.n):,}"
    note = f"{number.title} it misses {percent_text(number.result)}{_span(number)}: {count}"
    return [*parts, replace(number, note=note)]


BALANCED = "single.balanced"


def _with_span(number: Number) -> str:
    span = range_text(number)
    return percent_text(number.result) + (f", {span}" if span else "")


def _complement(right: Result) -> Result:
    """Return the share of wrong ones from that of right ones."""
    ends = right.interval and metrics.Interval(1 - right.interval.high, 1 - right.interval.low)
    return Result(1 - right, **{**vars(right), "interval": ends})


def _labels(parts: list[Number], labelled: int, limit: tuple[float, float]) -> int | None:
    """Return how many labels would settle all parts that are open, each by its own rows."""
    needed = [
        (labels_to_settle(part.result, limit) or math.inf) * labelled / part.result.n
        for part in parts
    ]
    most = max(needed, default=math.inf)
    return rounded_up(most) if most <= MOST_LABELS else None


def _surest(sample: Sample) -> str:
    """Say which of its surest verdicts are right nearly always."""
    if not sample.has_confidence or sample.rated:
        return ""
    shares = (0.8, 0.6, 0.4, 0.2)
    level = 1 - (1 - sample.confidence) / len(shares)
    settings: Any = {**sample.settings, "confidence": level}
    curve = metrics.abstention_curve(
        sample.verdicts, sample.labels, sample.confidences, shares, **settings
    )
    for share, right in curve:
        if right.interval and right.interval.low >= 1 - MOST_WRONG / 2 and share < 0.95:
            span = range_text(Number("", "", right), 0)
            surest = f"The {percent_text(share)} it is surest of"
            return f". {surest} are right {percent_text(right)} ({span})"
    return ""
