"""May somebody act on one verdict that nobody checks? How many are wrong, by label."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.conclusions import (
    LEAST_OF_A_LABEL,
    MOST_LABELS,
    POLICY,
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
from langchain_judges.report.judged_columns import Sample


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
    found = with_range(number)
    reason = f"{found} are wrong; at most {percent_text(most)} may be. {_counted(sample)}"
    word = decided(wrong, limit)
    answer = UseAnswer("single", word, reason, number, limit, brief=f"{found} wrong")
    lead = numbers.get("baseline.lead")
    ahead = "yes" if lead is None else decided(lead.result, AHEAD)
    if word != "yes" or not sample.pairs or lead is None or ahead == "yes":
        return settled(replace(answer, reason=reason + _surest(sample)))
    worse = ahead == "no"
    verb = "Worse than" if worse else "Not shown to be better than"
    rule = f"{lead.note[0].lower()}{lead.note[1:]}"
    return replace(
        answer,
        word="no" if worse else "not yet",
        reason=f"{reason}. {verb} a rule that needs no judge: {rule} ({with_range(lead)})",
        labels=labels_to_settle(lead.result, AHEAD),
    )


AHEAD = (0.0, math.inf)
"""Where a lead must lie."""


def _counted(sample: Sample) -> str:
    """Say of how many rows the verdict is wrong, or half wrong, or is none."""
    half = sum(miss == 0.5 for miss in sample.misses)
    wrong = len(sample.mistakes) - half
    lost = sample.misses.count(1.0) - wrong
    far = f" by more than {rounded(sample.scale / 4, 1)}" if sample.rated else ""
    parts = {
        f"{wrong:,} wrong{far}": wrong or not half,
        f"{half:,} half wrong (only one side says tie)": half,
        f"{lost:,} not judged": lost,
    }
    labelled = sum(miss is not None for miss in sample.misses)
    return f"Of {labelled:,}: {', '.join(text for text, there in parts.items() if there)}"


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
    words = {part: decided(part.result, limit) for part in _parts(sample)}
    parts = sorted(words, key=lambda part: (_WORST_FIRST.index(words[part]), -part.result))
    word = words[parts[0]]
    # Where every label is fine, or one of them is not, all of them together say no more.
    told = [p for p in parts if p.key != BALANCED or words[p] == word != "yes"]
    notes = [f"{part.note}: {words[part]}" for part in told[:4]]
    rest = f". {len(told) - 4:,} more are in the JSON" if told[4:] else ""
    reason = ". ".join(f"{note[0].upper()}{note[1:]}" for note in notes) + rest
    reason += f". At most {percent_text(most)} may be wrong"
    reason += ": have a person look" if word == "no" else ""
    still_open = [part for part in parts if words[part] == "not yet"]
    return UseAnswer(
        "single",
        word,
        reason[0].lower() + reason[1:] + _surest(sample),
        told[0],
        limit,
        _labels(still_open, counts.total(), limit) if word == "not yet" else None,
        f"{with_range(told[0])} wrong {told[0].title}",
        tuple(parts),
    )


_WORST_FIRST: tuple[Word, ...] = ("no", "not yet", "yes")


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
        parts.append(replace(number, note=f"{number.title}, {count}, {with_range(number)}"))
    right = metrics.balanced_accuracy(sample.verdicts, sample.labels, "wrong", **settings)
    number = Number(BALANCED, "with every label weighed alike", _complement(right))
    rare = sample.rare_label
    found = metrics.sensitivity(sample.answers, sample.labels, rare, **settings)
    # A row that was not judged is missed, here as in the share.
    labelled = sum(label == rare for label in sample.labels)
    count = f"of {labelled:,} with the label {rare} it finds {round(found * found.n):,}"
    note = f"{number.title} it misses {with_range(number)}: {count}"
    return [*parts, replace(number, note=note)]


BALANCED = "single.balanced"


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
        if right.interval and right.interval.low >= 1 - POLICY.max_wrong / 2 and share < 0.95:
            span = range_text(Number("", "", right), 0)
            surest = f"The {percent_text(share)} it is surest of"
            return f". {surest} are right {percent_text(right)} ({span})"
    return ""
