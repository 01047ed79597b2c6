"""The rows of one judge, column by column, and what cannot be counted of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.report.rows import JudgedRow
from langchain_judges.rows.kinds import kind_of_verdict
from langchain_judges.rows.labels import SIDES


class Sample:
    """The rows of one judge, column by column."""

    def __init__(
        self,
        rows: Sequence[JudgedRow],
        confidence: float,
        repeats: Sequence[Sequence[JudgedRow]] = (),
    ) -> None:
        """Take the columns that the metrics need.

        Args:
            rows: Each row once.
            confidence: The level of the intervals.
            repeats: For rows that were judged more than once, all their judgments.
        """
        self.rows = rows
        self.confidence = confidence
        self.repeats = repeats
        self.pairs = kind_of_verdict(rows[0].verdict) == "pair"
        self.verdicts = [row.row for row in rows]
        self.labels = [row.label for row in rows]
        self.votes = [row.votes for row in rows]
        self.targets = [row.target for row in rows]
        if self.pairs:
            self._check()
        self.systems = [_systems(row.data_row.get("systems")) for row in rows]
        """Who wrote A and who wrote B, None where it is not known."""
        keys = [row.data_row.get("group") for row in rows]
        sizes = Counter(key for key in keys if key is not None)
        self.groups: list[Any] | None = None
        """The cluster of each row; a row without a group is one of its own."""
        if 0 < len(sizes) < sum(sizes.values()) and (len(sizes) > 1 or None in keys):
            self.groups = [("row", i) if key is None else key for i, key in enumerate(keys)]
        self.ungrouped = keys.count(None) if self.groups else 0
        """Rows without a group where others have one."""
        texts = [(row.text("output_a"), row.text("output_b")) for row in rows]
        both = {i: (a, b) for i, (a, b) in enumerate(texts) if a is not None and b is not None}
        self.with_texts = list(both)
        """Places of the rows whose two texts are known; numbers of style count these alone."""
        self.texts = list(both.values())
        self.rated = not self.pairs and _are_ratings(self.labels, [row.answer for row in rows])
        """Whether labels are ratings on a scale of three steps or more."""
        self.criteria = [] if self.pairs else _criteria(rows)
        """The criteria by which both the judge and people labelled the texts."""
        self.by_criteria = bool(self.criteria) and not any(self.targets)
        """Whether people labelled the criteria alone, and not the whole."""
        # That of a total is of its labels: nobody is right by the very same mean.
        self.has_confidence = any(
            row.verdict.get("confidence") is not None
            and (self.pairs or len(row.by_criterion) < 2)
            for row in rows
        )
        self.by_label = not any(self.votes)
        """Whether nothing is known of single people: labels may be an objective key."""
        self.by_votes = any(len(votes) > 1 for votes in self.votes)
        """Whether the judge is compared with each vote, as people are with each other."""

    def _check(self) -> None:
        for value in [v for votes in self.targets for v in votes] + self.labels:
            if value is not None and value not in SIDES:
                raise InputError(
                    f"labels of pairs must be 'A', 'B' or 'tie', got {value!r}; name what "
                    "they mean by `datasets.rows(…, labels={…})`"
                )

    @property
    def settings(self) -> dict[str, Any]:
        """The keywords of every metric."""
        return {"groups": self.groups, "confidence": self.confidence}

    @property
    def whom(self) -> str:
        """What the judge is compared with, in words; labels may be an objective key."""
        if not self.by_label:
            return "people"
        return "the label" if self.pairs else "the labels"

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """Characters of the texts A and of the texts B, of the rows with texts."""
        return [len(a) for a, _ in self.texts], [len(b) for _, b in self.texts]

    def in_orders(self) -> tuple[list[Any], list[Any]]:
        """Return what the judge said with A first and with B first."""
        return (
            [row.in_order("AB") for row in self.rows],
            [row.in_order("BA") for row in self.rows],
        )

    def part(self, places: Sequence[int]) -> Sample:
        """Return the sample of some of the rows."""
        return Sample([self.rows[i] for i in places], self.confidence)

    def spread(self, values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Repeat one value of each row for each of its targets; return them and the targets."""
        pairs = [(v, t) for v, row in zip(values, self.targets, strict=True) for t in row]
        return [v for v, _ in pairs], [t for _, t in pairs]

    def hits(self, answers: Iterable[Any]) -> list[float | None]:
        """Return for each row the share of its targets that an answer matches."""
        return [
            sum(float(answer == t) for t in row) / len(row) if row else None
            for answer, row in zip(answers, self.targets, strict=True)
        ]

    def judge_hits(self) -> list[float | None]:
        """Return for each row how far the judge was right; a failed judgment is wrong."""
        return self.hits(row.answer for row in self.rows)

    def notes(self) -> list[str]:
        """Say which rows some numbers cannot count, a sentence each."""
        notes = []
        missing = len(self.rows) - len(self.with_texts)
        if self.pairs and self.texts and missing:
            rows = "1 row lacks" if missing == 1 else f"{missing:,} rows lack"
            notes.append(f"{rows} a text; numbers of length and style are of the others.")
        if self.ungrouped:
            rows = (
                "1 row has no group and counts as a group of its own"
                if self.ungrouped == 1
                else f"{self.ungrouped:,} rows have no group and count as groups of their own"
            )
            notes.append(f"{rows}.")
        if unlabelled := sum(not (row.target or row.labels) for row in self.rows):
            rows = "1 row has" if unlabelled == 1 else f"{unlabelled:,} rows have"
            notes.append(f"{rows} no label; agreement is of the others.")
        return notes


def _systems(names: Any) -> tuple[Any, Any]:
    pair = isinstance(names, list | tuple) and len(names) == 2
    return (names[0], names[1]) if pair else (None, None)


def _criteria(rows: Sequence[JudgedRow]) -> list[str]:
    """Return the criteria that both sides have, in the judge's order."""
    names = dict.fromkeys(name for row in rows for name in row.by_criterion)
    labelled = {name for row in rows for name in row.labels}
    return [name for name in names if name in labelled]


def _are_ratings(labels: Sequence[Any], answers: Sequence[Any]) -> bool:
    steps = {label for label in labels if label is not None}
    return len(steps) > 2 and are_numbers([*labels, *answers])


def are_numbers(values: Iterable[Any]) -> bool:
    """Say whether every value that is there is a number."""
    there = (value for value in values if value is not None)
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in there)
