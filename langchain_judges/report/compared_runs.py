"""Two runs on the same rows, compared one by one: two judges, or one now and earlier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.metrics import Result, result
from langchain_judges.report import answers
from langchain_judges.report.answers import Number, Use, UseAnswer
from langchain_judges.report.sample import Sample
from langchain_judges.rows.files import json_in


@dataclass(frozen=True)
class Contest(result.Findings):
    """Two judges on the rows that both have; a failed judgment is wrong.

    Attributes:
        first: The one that is right more often, so far.
        n: Rows that both have, and that have a label.
        difference: Agreement of the first − agreement of the second, with its interval.
        p: Two-sided, of the test that the interval inverts.
        holm_p: `p` adjusted for all pairs of judges.
    """

    first: str
    second: str
    n: int
    difference: Result
    p: float
    holm_p: float

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data, flat as the numbers of a report are."""
        found = self.difference.to_dict()
        low, high = found["interval"] or (None, None)
        return {**super().to_dict(), "difference": found["value"], "low": low, "high": high}

    @property
    def settled(self) -> bool:
        """Whether one of the two is right more often, all pairs of judges considered."""
        return self.holm_p < 0.05

    @property
    def sentence(self) -> str:
        """Sentence: which judge is right more often, by how much, and if that is settled."""
        if not self.n:
            return f"{self.first} and {self.second} have no row in common."
        if math.isnan(self.difference):
            return f"{self.first} and {self.second} are not compared: one is of another scale."
        number = Number("", "", self.difference, "points")
        lead = answers.with_range(number).lstrip("+")
        if self.settled:
            return f"{self.first} is right more often than {self.second} by {lead}."
        more = ""
        if self.difference.interval:
            needed = answers.labels_to_settle(self.difference, (0.0, math.inf))
            more = f" {answers.labels_text(needed)}"
        ahead = f"so far {self.first} leads by {lead}"
        if not self.difference:
            ahead = f"right equally often ({answers.range_text(number)})"
        return f"Not settled between {self.first} and {self.second}: {ahead}.{more}"


def contests(samples: Mapping[str, Sample]) -> list[Contest]:
    """Test every judge against every other, Holm's adjustment included."""
    drafts = [_contest(a, b) for a, b in combinations(samples.items(), 2)]
    adjusted = _adjusted([draft["p"] for draft in drafts])
    return [Contest(**draft, holm_p=p) for draft, p in zip(drafts, adjusted, strict=True)]


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Holm's p-values; what is undefined stays so and counts for nothing.

    Written out here because loading statsmodels takes a second.
    """
    known = sorted(p for p in p_values if not math.isnan(p))
    steps = [(p, min(1.0, (len(known) - rank) * p)) for rank, p in enumerate(known)]
    return [max((step for own, step in steps if own <= p), default=p) for p in p_values]


def _contest(first: tuple[str, Sample], second: tuple[str, Sample]) -> dict[str, Any]:
    (name, sample), (rival, other) = first, second
    theirs = {row.place: i for i, row in enumerate(other.rows)}
    shared = [
        (i, theirs[row.place])
        for i, row in enumerate(sample.rows)
        if row.place in theirs and row.label is not None
    ]
    gap = metrics.paired_difference(
        [sample.rights[i] for i, _ in shared],
        [other.rights[j] for _, j in shared],
        **sample.settings_of(i for i, _ in shared),
    )
    if gap < 0:
        return _contest(second, first)
    return {"first": name, "second": rival, "n": len(shared), "difference": gap, "p": gap.p}


# ---- the same judge later


@dataclass(frozen=True)
class Drift(result.Findings):
    """Comparison of a report with an earlier one, on the rows that both have.

    Attributes:
        since: When the earlier report was made.
        change: Agreement now − agreement then, in [−1, 1], paired by row.
        changed: The share of rows on which the judge now answers differently.
        words: By use, its answer then and now, if it changed.
    """

    since: str
    change: Result
    changed: Result
    words: dict[Use, tuple[str, str]]

    @property
    def sentence(self) -> str:
        """Change of each use, and the judge's accuracy now and then."""
        since = f"Since {self.since}" if self.since else "Since the baseline"
        uses = [f"{answers.TITLES[use]}: {a} → {b}" for use, (a, b) in self.words.items()]
        changes = "; ".join(uses) or "the same answer for every use"
        change = Number("", "", self.change, "points")
        other = f"another answer on {answers.value_text(Number('', '', self.changed), 0)}"
        word = "worse" if self.worse else "not shown to be worse"
        right = f"Right on the same {self.change.n:,} rows {answers.with_range(change)}"
        return f"{since}: {changes}. {right}, {other}: {word}."

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the change is below 0."""
        return self.change.interval is not None and self.change.interval.high < 0

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data."""
        return {**super().to_dict(), "worse": self.worse, "sentence": self.sentence}


def row_answers(sample: Sample) -> list[dict[str, Any]]:
    """Each row's answer, how right it is, and what its texts are called in any run."""
    names, rows = Counter[str](), list[dict[str, Any]]()
    for row, right in zip(sample.rows, sample.rights, strict=True):
        content = row.row.get("content") or {}
        name = ".".join(content[field] for field in sorted(content)) or str(row.place)
        names[name] += 1
        own = name if names[name] == 1 else f"{name}#{names[name]}"
        rows.append({"row": own, "answer": row.answer, "right": right})
    return rows


def drift(sample: Sample, uses: Mapping[Use, UseAnswer], earlier: Mapping[str, Any]) -> Drift:
    """Compare the rows of now with an earlier report, one by one.

    Args:
        sample: The judged rows.
        uses: The answers of now.
        earlier: What `to_dict` or the JSON of a report gives.

    Raises:
        InputError: It is not such a report, or shares no row with this one.
    """
    _check_report(earlier, "the baseline")
    before = {each["row"]: each for each in earlier["answers"]}
    then = {each["use"]: each["answer"] for each in earlier["uses"]}
    pairs = [
        (i, now, before[now["row"]])
        for i, now in enumerate(row_answers(sample))
        if now["row"] in before
    ]
    if not pairs:
        raise InputError("no row of the baseline is in this run")
    settings = sample.settings_of(i for i, *_ in pairs)
    rights = [[each["right"] for each in side] for side in list(zip(*pairs, strict=True))[1:]]
    words = {use: (then.get(use, now.word), now.word) for use, now in uses.items()}
    moved = [float(new["answer"] != old["answer"]) for _, new, old in pairs]
    return Drift(
        since=earlier["provenance"].get("date", ""),
        change=metrics.paired_difference(*rights, **settings),
        changed=metrics.rate(moved, **settings),
        words={use: both for use, both in words.items() if both[0] != both[1]},
    )


def read_baseline(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a report that was written as JSON.

    Raises:
        InputError: There is no such file, or it is not a report.
    """
    try:
        earlier = json_in(Path(path))
    except (OSError, ValueError) as exc:
        raise InputError(f"the baseline {path} cannot be read: {exc}") from exc
    _check_report(earlier, f"the baseline {path}")
    return dict(earlier)


def _check_report(earlier: object, name: str) -> None:
    parts = {"answers": list, "uses": list, "provenance": Mapping}
    if not isinstance(earlier, Mapping) or not all(
        isinstance(earlier.get(part), kind) for part, kind in parts.items()
    ):
        raise InputError(f"{name} is not a report: write one with `trust -o report.json`")
