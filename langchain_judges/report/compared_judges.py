"""Several judges on the same rows, side by side, with paired tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from typing_extensions import Unpack

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.report.conclusions import Contest
from langchain_judges.report.matched_rows import rows_in
from langchain_judges.report.report import TrustOptions, TrustReport, WrittenReport, trust


class ComparisonReport(WrittenReport):
    """Reports on several judges, and tests of each against each; made by `compare`.

    Attributes:
        reports: One `TrustReport` for each judge, the one that is right most often first.
        contests: The tests, pair by pair.
    """

    def __init__(self, reports: Sequence[TrustReport]) -> None:
        """Test every judge against every other."""
        self.reports = sorted(reports, key=_rank)
        self.contests = contests(self.reports)

    def __getitem__(self, name: str) -> TrustReport:
        """Return the report on a judge by its name."""
        return next(report for report in self.reports if report.name == name)

    @property
    def sentence(self) -> str:
        """Which judge is right more often, pair by pair, a line each."""
        return "\n".join(contest.sentence for contest in self.contests)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "sentence": self.sentence,
            "judges": [report.to_dict() for report in self.reports],
            "contests": [contest.to_dict() for contest in self.contests],
        }

    def shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        """Return the reports, and the tests between their judges."""
        return self.reports, self.contests


def compare(
    runs: Mapping[str, Iterable[Mapping[str, Any]]],
    data: Iterable[Mapping[str, Any]] | None = None,
    **options: Unpack[TrustOptions],
) -> ComparisonReport:
    """Report on several judges side by side, with paired tests on the rows they share.

    Two judges are compared by the paired difference of their agreement, with the p-value that
    belongs to its interval, adjusted by Holm for all pairs of judges.

    Args:
        runs: By the name of a judge its rows; see `trust`.
        data: The rows that were judged.
        options: As for `trust`.

    Raises:
        InputError: As `trust`, or judges of pairs and of single texts are mixed.
    """
    table = None if data is None else rows_in(data, "data")
    reports = [trust(rows, table, name=name, **options) for name, rows in runs.items()]
    if not reports:
        raise InputError("there is no judge to report on")
    if len({report.sample.pairs for report in reports}) > 1:
        raise InputError("judges of pairs and of single texts cannot be compared")
    return ComparisonReport(reports)


def _rank(report: TrustReport) -> float:
    rights = [right for right in report.sample.rights if right is not None]
    return -sum(rights) / len(rights) if rights else math.inf


def contests(reports: Sequence[TrustReport]) -> list[Contest]:
    """Test every judge against every other, Holm's adjustment included."""
    drafts = [_contest(a, b) for a, b in combinations(reports, 2)]
    adjusted = _adjusted([draft["p"] for draft in drafts])
    return [Contest(**draft, holm_p=p) for draft, p in zip(drafts, adjusted, strict=True)]


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Return Holm's p-values; what is undefined stays so and counts for nothing.

    Written out, for loading statsmodels takes a second.
    """
    known = sorted(p for p in p_values if not math.isnan(p))
    steps = [(p, min(1.0, (len(known) - rank) * p)) for rank, p in enumerate(known)]
    return [max((step for own, step in steps if own <= p), default=p) for p in p_values]


def _contest(first: TrustReport, second: TrustReport) -> dict[str, Any]:
    theirs = {row.place: i for i, row in enumerate(second.sample.rows)}
    shared = [
        (i, theirs[row.place])
        for i, row in enumerate(first.sample.rows)
        if row.place in theirs and row.label is not None
    ]
    ours, others = first.sample.rights, second.sample.rights
    gap = metrics.paired_difference(
        [ours[i] for i, _ in shared],
        [others[j] for _, j in shared],
        **first.sample.settings_of(i for i, _ in shared),
    )
    if gap < 0:
        return _contest(second, first)
    names = {"first": first.name, "second": second.name}
    return {**names, "n": len(shared), "difference": gap, "p": gap.p}
