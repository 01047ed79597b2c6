"""Which rows are doubtful, and what people would answer on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from langchain_judges.metrics import stratified_ppi_mean
from langchain_judges.report.rows import join, preference_points

LEAST = 2
"""Labels, and rows without, of each kind of row of which a rate is estimated."""


def points(label: object) -> float | None:
    """Return a label as a number: how far it prefers A, or the label of a single text."""
    if label is None or label == "":
        return None
    if isinstance(label, int | float):
        return float(label)
    return preference_points([label])


def doubts(
    rows: Sequence[Mapping[str, object]], runs: Sequence[Sequence[Mapping[str, object]]]
) -> tuple[list[float | None], list[tuple[str, str]]]:
    """Return the first judge's number for each row, and a stratum by category and doubt."""
    answers: list[list[object]] = [[] for _ in rows]
    first: list[float | None] = [None] * len(rows)
    flipped: set[int] = set()
    for number, run in enumerate(runs):
        for judgment in join(run, rows).rows:
            answers[judgment.place].append(judgment.answer)
            if number == 0:
                first[judgment.place] = points(judgment.answer)
            if judgment.verdict.get("flipped"):
                flipped.add(judgment.place)
    strata = []
    for place, (row, own) in enumerate(zip(rows, answers, strict=True)):
        doubt = "sure"
        if None in own or not own:
            doubt = "not judged"
        elif len(set(own)) > 1:
            doubt = "judges disagree"
        elif place in flipped:
            doubt = "flipped"
        strata.append((str(row.get("category") or ""), doubt))
    return first, strata


def estimate(
    scores: Sequence[float | None],
    labels: Sequence[float | None],
    strata: Sequence[tuple[str, str]],
    *,
    pairs: bool,
) -> str:
    """Say what people would answer on all rows, from the labels so far."""
    there = [i for i in range(len(labels)) if scores[i] is not None]
    indices = [i for i in there if labels[i] is not None]
    rest = [i for i in there if labels[i] is None]
    if not rest:
        return "Every row that was judged has a label: there is none left to estimate."
    kinds = _joined_strata(strata, indices, rest)
    if thin := _thin(kinds, indices, rest):
        return (
            "Too few labels to correct the judge's rate: two labels, and two rows without, are "
            f"needed of the rows that are {', '.join(sorted({doubt for _, doubt in thin}))}."
        )
    names = {kinds[i] for i in rest}
    both = [i for i in indices if kinds[i] in names]
    result = stratified_ppi_mean(
        [labels[i] for i in both],
        [scores[i] for i in both],
        [kinds[i] for i in both],
        [scores[i] for i in rest],
        [kinds[i] for i in rest],
    )
    if result.interval is None:
        return f"The judge's rate cannot be corrected: {result.reason or result.no_interval}."
    low, high = result.interval
    if not pairs:
        return (
            "On the rows without a label people's mean label would be "
            f"{result:.2f} ({low:.2f} to {high:.2f})."
        )
    return (
        f"On the rows without a label people would prefer A {100 * result:.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f}) of the time."
    )


def _joined_strata(
    strata: Sequence[tuple[str, str]], labelled: Sequence[int], rest: Sequence[int]
) -> list[tuple[str, str]]:
    """Return strata in which categories with too few labels are one, for each doubt apart.

    Labels are chosen by doubt, so that rows of different doubt are no sample of each other.
    """
    thin = _thin(strata, labelled, rest)
    kinds = [("", kind[1]) if kind in thin else kind for kind in strata]
    # What is still too thin takes in all categories of its doubt.
    doubts = {doubt for _, doubt in _thin(kinds, labelled, rest)}
    return [("", kind[1]) if kind[1] in doubts else kind for kind in kinds]


def _thin(
    strata: Sequence[tuple[str, str]], labelled: Sequence[int], rest: Sequence[int]
) -> set[tuple[str, str]]:
    """Return the strata of the rest that have fewer than two labels or two other rows."""
    counts = [Counter(strata[i] for i in part) for part in (labelled, rest)]
    return {kind for kind in counts[1] if min(count[kind] for count in counts) < LEAST}
