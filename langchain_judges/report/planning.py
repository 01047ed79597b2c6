"""How far two judges are apart, for planning how many labels tell which is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.report.join import join
from langchain_judges.report.judged_row import VerdictRow

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
