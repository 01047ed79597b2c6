"""How often a report says yes to a judge that deserves none, and whether its labels settle.

Run `python -m benchmarks.answers` for the table, `--trials` for another number of drawn samples
a cell, `--write` to put it into docs/evidence.md. Judges that know nothing, judges just beyond
each limit of the policy, and judges that turn systems round are drawn at several sizes; a cell
is the share of samples whose report says yes for the use that the judge does not deserve. The
standard is 2.5 % in each cell. The last lines extend samples that say "not yet" by the number
of labels that they ask for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.evidence_page import write_section
from langchain_judges.report import TrustReport, trust_columns
from langchain_judges.report.answers import TITLES, Use

SIZES = (12, 60, 200, 500)
Rng = np.random.Generator
Table = list[dict[str, Any]]


def table(**columns: Any) -> Table:
    """Columns as rows."""
    lists = {name: list(np.asarray(own).tolist()) for name, own in columns.items()}
    return [dict(zip(lists, own, strict=True)) for own in zip(*lists.values(), strict=True)]


def sides(first: Any) -> Any:
    """A where something holds, else B."""
    return np.where(first, "A", "B")


def people(rng: Rng, n: int, right: float = 0.85, count: int = 2) -> tuple[Any, dict[str, Any]]:
    """The better text, and the votes of people who are right this often."""
    truth = rng.random(n) < 0.5
    votes = {f"p{i}": sides(truth ^ (rng.random(n) > right)) for i in range(count)}
    return truth, votes


def coin(rng: Rng, n: int) -> Table:
    return table(judge=sides(rng.random(n) < 0.5), **people(rng, n)[1])


def tie(rng: Rng, n: int) -> Table:
    return table(judge=np.full(n, "tie"), **people(rng, n)[1])


def first_text(rng: Rng, n: int) -> Table:
    return table(judge=np.full(n, "A"), **people(rng, n)[1])


def coin_of_agreed(rng: Rng, n: int) -> Table:
    """A coin beside people who are coins themselves."""
    return table(judge=sides(rng.random(n) < 0.5), **people(rng, n, right=0.5)[1])


def middle(rng: Rng, n: int) -> Table:
    ratings = {f"p{i}": rng.integers(1, 6, n) for i in range(2)}
    return table(judge=np.full(n, 3), **ratings)


def wrong_too_often(rng: Rng, n: int) -> Table:
    """Wrong on 21 % of the pairs, where 20 % may be."""
    truth = rng.random(n) < 0.5
    return table(judge=sides(truth ^ (rng.random(n) < 0.21)), p0=sides(truth))


def too_generous(rng: Rng, n: int) -> Table:
    """Right on A; calls 11 % of the B an A: 5.5 points above people, where 5 are allowed."""
    truth = rng.random(n) < 0.5
    return table(judge=sides(truth | (rng.random(n) < 0.11)), p0=sides(truth))


def below_people(rng: Rng, n: int) -> Table:
    """5.6 points below one more person: people who are right .9 agree .82, and it .764."""
    truth, votes = people(rng, n, right=0.9)
    return table(judge=sides(truth ^ (rng.random(n) > 0.83)), **votes)


def turned_round(rng: Rng, n: int) -> Table:
    """Of three systems it has the two best the other way round, 60 to 40 %."""
    names = np.asarray([["x", "y"], ["y", "z"], ["x", "z"]])[rng.integers(0, 3, n)]
    close = (names == ["x", "y"]).all(axis=1)
    truth = rng.random(n) < np.where(close, 0.6, 0.8)
    said = rng.random(n) < np.where(close, 0.4, 0.8)
    return table(judge=sides(said), p0=sides(truth), systems=names)


WORLDS: dict[str, tuple[Callable[[Rng, int], Table], tuple[Use, ...]]] = {
    "a coin": (coin, ("averages", "single", "person")),
    "a coin, and people who guess": (coin_of_agreed, ("averages", "single", "person")),
    "always a tie": (tie, ("averages", "single", "person")),
    "always the first text": (first_text, ("averages", "single", "person")),
    "always the middle of 1 to 5": (middle, ("averages", "single", "person", "ordering")),
    "wrong on 21 %": (wrong_too_often, ("single",)),
    "5.5 points too generous": (too_generous, ("averages",)),
    "5.6 points below one more person": (below_people, ("person",)),
    "the two best systems swapped": (turned_round, ("ordering",)),
}


def report_of(rows: Table) -> TrustReport:
    """The report on a table."""
    labels = [name for name in rows[0] if name.startswith("p")]
    report = trust_columns(rows, "judge", labels if len(labels) > 1 else labels[0])
    assert isinstance(report, TrustReport)
    return report


def yes(world: str, n: int, trials: int) -> float:
    """The highest share of yes over the uses that a judge does not deserve."""
    make, uses = WORLDS[world]
    rng = np.random.default_rng(crc32(f"{world} {n}".encode()))
    answers = [report_of(make(rng, n)).uses for _ in range(trials)]
    return max(float(np.mean([own[use].word == "yes" for own in answers])) for use in uses)


def wrong_on(rng: Rng, n: int, share: float) -> Table:
    """Wrong on a share of the pairs."""
    truth = rng.random(n) < 0.5
    return table(judge=sides(truth ^ (rng.random(n) < share)), p0=sides(truth))


def generous(rng: Rng, n: int, share: float) -> Table:
    """Calls a share of the B an A."""
    truth = rng.random(n) < 0.5
    return table(judge=sides(truth | (rng.random(n) < share)), p0=sides(truth))


def beside_two(rng: Rng, n: int, share: float) -> Table:
    """Wrong on a share of the pairs, beside two people who are right .9."""
    truth, votes = people(rng, n, right=0.9)
    return table(judge=sides(truth ^ (rng.random(n) < share)), **votes)


# For each use a judge, and how far off it is in turn.
OPEN: dict[Use, tuple[Callable[[Rng, int, float], Table], list[float]]] = {
    "single": (wrong_on, [0.03, 0.08, 0.14, 0.26, 0.35]),
    "averages": (generous, [0.0, 0.02, 0.2, 0.3, 0.4]),
    "person": (beside_two, [0.03, 0.05, 0.1, 0.3, 0.4]),
}


def settled(use: Use, n: int, trials: int) -> tuple[float, int]:
    """Number of times that the labels an answer asks for settle it, and of how many."""
    rng, (make, shares) = np.random.default_rng(n), OPEN[use]
    hits = []
    for share in np.resize(shares, trials):
        rows = make(rng, n, share)
        answer = report_of(rows).uses[use]
        if answer.word == "not yet" and answer.labels and not answer.missing:
            longer = [*rows, *make(rng, answer.labels, share)]
            hits.append(report_of(longer).uses[use].word != "not yet")
    return (float(np.mean(hits)) if hits else float("nan")), len(hits)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="into docs/evidence.md")
    options = parser.parse_args()
    sizes = ", ".join(map(str, SIZES))
    head = f"judge ({options.trials} samples a cell)"
    lines = [f"| {head} | most of n = {sizes} |", "|---|---|"]
    for world in WORLDS:
        shares = [yes(world, n, options.trials) for n in SIZES]
        lines.append(f"| {world} | {max(shares):.1%} |")
        print(world, *(f"{share:.1%}" for share in shares), flush=True)
    for use in OPEN:
        ends = [settled(use, n, options.trials // 2) for n in SIZES[:3]]
        shown = "; ".join(f"{share:.0%} of {count}" for share, count in ends)
        lines.append(f"| labels asked for settle {TITLES[use].lower()} | {shown} |")
        print(lines[-1])
    if options.write:
        write_section("answers", "\n".join(lines))


if __name__ == "__main__":
    main()
