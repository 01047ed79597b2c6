"""May somebody act on one verdict that nobody checks? How many are wrong, by label."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_judges import metrics, verdict
from langchain_judges.metrics import Result
from langchain_judges.report import answers
from langchain_judges.report.answers import Number, UseAnswer, Word
from langchain_judges.report.sample import Sample
from langchain_judges.runs.summary import counted


def single(sample: Sample, numbers: Mapping[str, Number], most: float) -> UseAnswer:
    """Whether so few single verdicts are wrong; of labels, by what the judge says.

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
    found = answers.with_range(number)
    reason = f"{found} are wrong; at most {answers.percent_text(most)} may be. {_counted(sample)}"
    basis = sample.basis([bool(own) for own in sample.choices])
    parts = sample.pairs and any(0 < (miss or 0) < 1 for miss in sample.misses)
    half = "; a tie on one side alone counts half, and is no agreement" if parts else ""
    brief = f"{found} wrong{_far(sample)}{half}"
    answer = answers.by_number("single", number, limit, reason, basis, brief)
    lead = numbers.get("baseline.lead")
    ahead = "yes" if lead is None else answers.decided(lead.result, AHEAD)
    if answer.word != "yes" or lead is None or ahead == "yes":
        return replace(answer, reason=reason + _surest(sample))
    worse = ahead == "no"
    how = "Worse than" if worse else "Not shown to be better than"
    rule = f"{lead.note[0].lower()}{lead.note[1:]}"
    reason = f"{reason}. {how} a rule that needs no judge: {rule} ({answers.difference_text(lead)})"
    labels = None if worse else answers.labels_to_settle(lead.result, AHEAD)
    brief = f"{brief}; {how.lower()} a rule that needs no judge"
    own: Any = {"labels": labels, "brief": brief, "leaning": answers.leaning_of(lead.result, AHEAD)}
    return replace(answer, word="no" if worse else "not yet", reason=reason, **own)


# Where a lead must lie.
AHEAD = (0.0, math.inf)


def mistakes_text(sample: Sample) -> str:
    """The number of judged rows that are wrong, and that are so in part."""
    wrong = sum(miss == 1 for miss in sample.misses) - _lost(sample)
    half = len(sample.mistakes) - wrong
    part = "half wrong (a tie on one side alone)"
    if not sample.pairs:
        part = "partly wrong (right for some people only; counted in part)"
    parts = {f"{wrong:,} wrong{_far(sample)}": wrong or not half, f"{half:,} {part}": half}
    return ", ".join(text for text, there in parts.items() if there)


def _far(sample: Sample) -> str:
    """The distance from which a rating is wrong."""
    return f" by more than {answers.rounded(sample.scale.width / 4, 1)}" if sample.rated else ""


def _lost(sample: Sample) -> int:
    """Rows with a label that were not judged."""
    both = zip(sample.misses, sample.answers, strict=True)
    return sum(miss is not None and answer is None for miss, answer in both)


def _counted(sample: Sample) -> str:
    """Sentence with the numbers of wrong, half wrong and missing verdicts."""
    labelled, lost = sum(miss is not None for miss in sample.misses), _lost(sample)
    said = f"Of {labelled:,}: {mistakes_text(sample)}"
    said += f", {lost:,} not judged" if lost else ""
    return said + divided_text(sample)


def divided_text(sample: Sample) -> str:
    """Sentence about rows on which people differ, and mistakes where they agree."""
    if not sample.divided:
        return ""
    pairs = zip(sample.misses, sample.labels, strict=True)
    agreed = [None if label is None else miss for miss, label in pairs]
    number = Number("", "", metrics.rate(agreed, **sample.settings))
    rest = f"; on the other {number.result.n:,} rows {answers.with_range(number)} are wrong"
    what = "rating" if sample.rated else "label"
    divided = f"On {counted(sample.divided, 'row')} no {what} has a majority"
    return f". {divided}; each person's answer counts in part{rest if number.result.n else ''}"


# ---- by label


def _by_label(sample: Sample, most: float) -> UseAnswer:
    """Answer for each label that the judge gives, and with all labels weighted equally."""
    limit = (-math.inf, most)
    counts = sample.label_counts
    if len(counts) < 2:
        return UseAnswer("single", "not measured", "all labels are the same", limit=limit)
    basis = sample.basis([bool(own) for own in sample.choices])
    rare, rows = sample.rare_label, sum(map(bool, sample.choices))
    if counts[rare] < answers.LEAST_OF_A_LABEL:
        least = f"{math.floor(counts[rare])}; {answers.LEAST_OF_A_LABEL} are needed"
        reason = f"too few labels of the class `{rare}`: {least}{divided_text(sample)}"
        more = math.ceil((answers.LEAST_OF_A_LABEL - counts[rare]) * rows / counts[rare])
        missing = f"About {more:,} more labels are needed before anything can be said"
        own: Any = {"limit": limit, "labels": more, "missing": missing, "basis": basis}
        return UseAnswer("single", "not yet", reason, **own)
    words = {part: answers.decided(part.result, limit) for part in _parts(sample)}
    parts = sorted(words, key=lambda part: (_WORST_FIRST.index(words[part]), -part.result))
    word = words[parts[0]]
    # Where every label is fine, or one of them is not, all of them together say no more.
    told = [p for p in parts if p.key != BALANCED or words[p] == word != "yes"]
    notes = [f"{part.note}: {words[part]}" for part in told[:4]]
    rest = f". {len(told) - 4:,} more are in the JSON" if told[4:] else ""
    reason = ". ".join(f"{note[0].upper()}{note[1:]}" for note in notes) + rest
    reason += f". At most {answers.percent_text(most)} may be wrong"
    reason += ": have a person look" if word == "no" else ""
    still_open = [part for part in parts if words[part] == "not yet"]
    return UseAnswer(
        "single",
        word,
        reason[0].lower() + reason[1:] + divided_text(sample) + _surest(sample),
        told[0],
        limit,
        _labels(still_open, rows, limit) if word == "not yet" else None,
        basis=basis,
        brief=f"{answers.with_range(told[0])} wrong {told[0].title}",
        parts=tuple(parts),
        leaning=answers.leaning_of(told[0].result, limit),
    )


_WORST_FIRST: tuple[Word, ...] = ("no", "not yet", "yes")


def _parts(sample: Sample) -> list[Number]:
    """Error rate of the judge for each label it gives, and balanced."""
    judged = zip(sample.answers, sample.choices, strict=True)
    places: dict[verdict.Label, list[int]] = {}
    for place, (answer, own) in enumerate(judged):
        if answer is not None and own:
            places.setdefault(answer, []).append(place)
    level = 1 - (1 - sample.confidence) / (len(places) + 1)
    parts = []
    for answer in sorted(places, key=str):
        settings: Any = {**sample.settings_of(places[answer]), "confidence": level}
        wrong = metrics.rate([sample.misses[i] for i in places[answer]], **settings)
        number = Number(f"single.{answer}", f"where it says {answer}", wrong)
        count = f"{answers.rounded(wrong * wrong.n, 1).removesuffix('.0')} of {wrong.n:,} are wrong"
        parts.append(replace(number, note=f"{number.title}, {count}, {answers.with_range(number)}"))
    number = Number(BALANCED, "with all labels weighted equally", _balanced(sample, level))
    rare = sample.rare_label
    both = list(zip(sample.answers, sample.labels, strict=True))
    # A row that was not judged is missed, here as in the share.
    labelled, found = sum(label == rare for _, label in both), both.count((rare, rare))
    note = f"{number.title} {answers.with_range(number)} are wrong"
    if labelled:
        note = f"it found {found:,} of the {labelled:,} texts labelled {rare}; {note}"
    return [*parts, replace(number, note=note)]


BALANCED = "single.balanced"


def _balanced(sample: Sample, level: float) -> Result:
    """The share of wrong verdicts with all labels weighted equally, 1 − mean recall.

    Where people are divided a row stands for each of their labels, as one group.
    """
    copies = math.lcm(*(len(own) for own in sample.choices if own))
    labelled = [(i, own) for i, own in enumerate(sample.choices) if own]
    rows = [(i, label) for i, own in labelled for label in own * (copies // len(own))]
    groups = sample.groups
    if copies > 1 and groups is None:
        groups = list(range(len(sample.rows)))
    settings: Any = {"groups": groups and [groups[i] for i, _ in rows], "confidence": level}
    verdicts, labels = [sample.verdicts[i] for i, _ in rows], [label for _, label in rows]
    right = metrics.balanced_accuracy(verdicts, labels, "wrong", **settings)
    ends = right.interval and metrics.Interval(1 - right.interval.high, 1 - right.interval.low)
    return Result(1 - right, **{**vars(right), "interval": ends, "n": right.n // copies})


def _labels(parts: list[Number], labelled: int, limit: tuple[float, float]) -> int | None:
    """Number of labels that would settle all open parts, each by its own rows."""
    several = max(1, len(parts))
    found = [(answers.labels_to_settle(p.result, limit, several), p.result.n) for p in parts]
    most = max(((more or math.inf) * labelled / n for more, n in found), default=math.inf)
    return answers.rounded_up(most) if most <= answers.MOST_TO_LABEL else None


def _surest(sample: Sample) -> str:
    """Sentence about the surest verdicts, where those are nearly always right."""
    if not sample.has_confidence or sample.rated:
        return ""
    shares = (0.8, 0.6, 0.4, 0.2)
    settings: Any = {**sample.settings, "confidence": 1 - (1 - sample.confidence) / len(shares)}
    curve = metrics.abstention_curve(
        sample.verdicts, sample.labels, sample.confidences, shares, **settings
    )
    for share, right in curve:
        low = right.interval.low if right.interval else 0.0
        if low >= 1 - answers.POLICY.max_wrong / 2 and share < 0.95:
            span = answers.range_text(Number("", "", right), 0)
            surest = f"The {answers.percent_text(share)} it is surest of"
            return f". {surest} are right {answers.percent_text(right)} ({span})"
    return ""
