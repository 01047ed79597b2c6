"""Several judges on the same rows, side by side, with paired tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from langchain_judges import metrics
from langchain_judges.errors import InputError, needs
from langchain_judges.metrics import Result
from langchain_judges.orders import OrderRule
from langchain_judges.report.answers import MARGIN, MOST_WRONG
from langchain_judges.report.content import Contest
from langchain_judges.report.report import TrustReport, WrittenReport, frame, trust
from langchain_judges.report.rows import JudgedRow, VerdictRow, join, rows_in
from langchain_judges.report.sample import MetricSettings

if TYPE_CHECKING:
    from pandas import DataFrame


class ComparisonReport(WrittenReport):
    """Reports on several judges, and tests of each against each; made by `compare`."""

    def __init__(self, reports: Sequence[TrustReport], confidence: float) -> None:
        """Test every judge against every other."""
        self.reports = sorted(reports, key=_rank)
        """One `TrustReport` for each judge, the one that agrees most first."""
        self.contests = contests(self.reports, confidence)
        """The tests, pair by pair."""

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

    def to_dataframe(self) -> DataFrame:
        """Return the numbers of all judges, one a row."""
        return frame(self.reports)

    def contests_dataframe(self) -> DataFrame:
        """Return the paired tests, one pair of judges a row."""
        with needs("trust", "A data frame"):
            from pandas import DataFrame

        return DataFrame([contest.to_dict() for contest in self.contests])

    def _shown(self) -> tuple[Sequence[TrustReport], Sequence[Contest]]:
        return self.reports, self.contests


def compare(  # noqa: PLR0913 - options
    runs: Mapping[str, Iterable[Mapping[str, Any]]],
    data: Iterable[Mapping[str, Any]] | None = None,
    *,
    data_name: str = "",
    disagreements: int = 10,
    margin: float = MARGIN,
    max_wrong: float = MOST_WRONG,
    orders: OrderRule | None = None,
    provenance: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> ComparisonReport:
    """Report on several judges side by side, with paired tests on the rows they share.

    Two judges are compared by the paired difference of their agreement, with the p-value that
    belongs to its interval, adjusted by Holm for all pairs of judges.

    Args:
        runs: By the name of a judge its rows; see `trust`.
        data: The rows that were judged.
        data_name: What the data are called.
        disagreements: How many are shown of each judge.
        margin: As for `trust`.
        max_wrong: As for `trust`.
        orders: As for `trust`.
        provenance: As for `trust`.
        confidence: The level of the intervals.

    Raises:
        InputError: As `trust`, or judges of pairs and of single texts are mixed.
    """
    table = None if data is None else rows_in(data, "data")
    reports = [
        trust(
            rows,
            table,
            name=name,
            data_name=data_name,
            disagreements=disagreements,
            margin=margin,
            max_wrong=max_wrong,
            orders=orders,
            provenance=provenance,
            confidence=confidence,
        )
        for name, rows in runs.items()
    ]
    if not reports:
        raise InputError("there is no judge to report on")
    if len({report.sample.pairs for report in reports}) > 1:
        raise InputError("judges of pairs and of single texts cannot be compared")
    return ComparisonReport(reports, confidence)


def _rank(report: TrustReport) -> float:
    share = float(report.headline.result)
    return math.inf if math.isnan(share) else -share


def contests(reports: Sequence[TrustReport], confidence: float) -> list[Contest]:
    """Test every judge against every other, Holm's adjustment included."""
    drafts = [_contest(a, b, confidence) for a, b in combinations(reports, 2)]
    adjusted = _adjusted([draft["p"] for draft in drafts])
    return [Contest(**draft, holm_p=p) for draft, p in zip(drafts, adjusted, strict=True)]


def _adjusted(p_values: Sequence[float]) -> list[float]:
    """Return Holm's p-values; what is undefined stays so and counts for nothing.

    Written out, for loading statsmodels takes a second.
    """
    adjusted, highest = list(p_values), 0.0
    places = [place for place, p in enumerate(p_values) if not math.isnan(p)]
    places.sort(key=p_values.__getitem__)
    for rank, place in enumerate(places):
        highest = max(highest, min(1.0, (len(places) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _contest(first: TrustReport, second: TrustReport, confidence: float) -> dict[str, Any]:
    theirs = {row.place: i for i, row in enumerate(second.sample.rows)}
    shared = [
        (i, theirs[row.place])
        for i, row in enumerate(first.sample.rows)
        if row.place in theirs and row.label is not None
    ]
    sides = [
        [report.sample.rows[pair[side]] for pair in shared]
        for side, report in enumerate((first, second))
    ]
    groups = first.sample.groups and [first.sample.groups[i] for i, _ in shared]
    right = [[row.answer == row.label for row in side] for side in sides]
    alone = Counter(zip(*right, strict=True))
    hits = [report.sample.judge_hits() for report in (first, second)]
    gap = metrics.paired_difference(
        [hits[0][i] for i, _ in shared],
        [hits[1][j] for _, j in shared],
        groups=groups,
        confidence=confidence,
    )
    return {
        "first": first.name,
        "second": second.name,
        "n": len(shared),
        "difference": gap,
        "p": gap.p,
        "only_first": alone[True, False],
        "only_second": alone[False, True],
        **_in_common(sides, groups, confidence),
    }


def _in_common(
    sides: Sequence[Sequence[JudgedRow]], groups: list[int] | None, confidence: float
) -> dict[str, Result]:
    """Return how often two judges say the same, and how many errors they share."""
    same: list[float | None] = []
    errors: list[float | None] = []
    for one, other in zip(*sides, strict=True):
        both_judged = None not in (one.answer, other.answer)
        alike = one.answer == other.answer
        wrong = one.answer != one.label or other.answer != other.label
        same.append(float(alike) if both_judged else None)
        errors.append(float(alike) if both_judged and wrong else None)
    settings: MetricSettings = {"groups": groups, "confidence": confidence}
    return {
        "same": metrics.rate(same, **settings),
        "same_error": metrics.rate(errors, **settings),
    }


LEAST_LABELLED = 20
"""With fewer labelled rows the share on which one judge alone is right is hardly known."""


@dataclass(frozen=True)
class Apart:
    """Two judges on the rows that both judged."""

    disagreement: float
    """The share of rows on which one alone is right; without labels, on which they differ."""
    lead: float | None
    """How much more often the first is right, in [−1, 1]; None: too few labels."""
    rows: int
    """Rows that these shares are of."""


USUAL_LEAD, LEAST_LEAD = 0.05, 0.01
"""The lead to plan for where none is seen yet, and the smallest one that is planned for."""


def labels_to_part(apart: Apart) -> str:
    """Say how far two judges are apart, and how many labels tell which is better.

    The test is McNemar's, its power 80 % at a level of 5 %, found by simulation.
    """
    # Loaded on use, for the metrics load scipy.
    from langchain_judges.metrics import labels_needed

    share = f"{100 * apart.disagreement:.1f} % of {apart.rows:,} rows"
    if not apart.disagreement:
        return f"The judges agree on all of {apart.rows:,} rows: no label tells them apart."
    if apart.lead is None:
        seen = f"The judges differ on {share}, and one alone is right on at most these."
    else:
        so_far = f"{100 * apart.lead:+.1f} points for the first"
        seen = f"One judge alone is right on {share} with labels; so far {so_far}."
    lead = min(max(LEAST_LEAD, abs(apart.lead or USUAL_LEAD)), apart.disagreement)
    needed = labels_needed(lead, apart.disagreement)
    return (
        f"{seen} Finding a lead of {100 * lead:.1f} points in 80 of 100 samples takes about "
        f"{needed:,} labels; rows that share a question count as one."
    )


def how_far_apart(
    first: Iterable[VerdictRow],
    second: Iterable[VerdictRow],
    data: Iterable[Mapping[str, Any]] | None = None,
) -> Apart:
    """Return on how many rows two judges are apart.

    Args:
        first: Rows of a run of the first judge.
        second: Rows of a run of the second one.
        data: The rows that were judged, with labels where there are any.

    Raises:
        InputError: They have no row in common.
    """
    table = None if data is None else list(data)
    one, other = ({row.place: row for row in join(run, table).rows} for run in (first, second))
    both = [(one[place], other[place]) for place in one if place in other]
    if not both:
        raise InputError("the two runs have no row in common")
    labelled = [(a, b) for a, b in both if a.label is not None]
    if len(labelled) < LEAST_LABELLED:
        differ = sum(bool(a.answer != b.answer) for a, b in both)
        return Apart(differ / len(both), None, len(both))
    only_first = sum(a.answer == a.label != b.answer for a, b in labelled)
    only_second = sum(b.answer == a.label != a.answer for a, b in labelled)
    size = len(labelled)
    return Apart((only_first + only_second) / size, (only_first - only_second) / size, size)
