"""How often the intervals of the metrics hold the truth: a table, for 95 % intervals.

Run `python -m benchmarks.coverage` for all of it (some minutes on one core), with names
of metrics for some (`kappa auc`), `--trials` for another number of simulated samples, and
`--write` to put the table into docs/evidence.md. A cell is the share of the intervals that hold
the truth, and where any sample was too small for an interval, the share of those. The standard
is .92 in every cell; with 400 trials a share of .95 has a standard error of .011.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import scipy

from benchmarks.evidence_page import write_section
from langchain_judges import metrics
from langchain_judges.metrics import Result

RHO = 0.5
"""Likeness of the items of a group: the correlation of what decides them."""
STANDARD = 0.92


@dataclass(frozen=True)
class Setting:
    """A kind of sample, and of judge."""

    name: str
    n: int
    positive: float = 0.5
    group_size: int = 1
    skill: str = "fair"

    @property
    def groups(self) -> list[int] | None:
        """The group of each item."""
        if self.group_size == 1:
            return None
        return [i // self.group_size for i in range(self.n)]

    @property
    def right(self) -> tuple[float, float]:
        """Rates at which the judge finds a positive, and a negative."""
        return {"fair": (0.75, 0.85), "perfect": (1.0, 1.0), "useless": (0.5, 0.5)}[self.skill]


SETTINGS = [
    *(Setting(f"n={n}", n) for n in (10, 20, 50, 200)),
    *(Setting(f"10%,n={n}", n, positive=0.1) for n in (10, 20, 50, 200)),
    *(Setting(f"5%,n={n}", n, positive=0.05) for n in (20, 50, 200)),
    *(Setting(f"{g}x5", 5 * g, group_size=5) for g in (5, 20)),
    *(Setting(f"10%,{g}x5", 5 * g, positive=0.1, group_size=5) for g in (5, 20)),
    *(Setting(f"perfect,n={n}", n, skill="perfect") for n in (20, 200)),
    *(Setting(f"useless,n={n}", n, skill="useless") for n in (20, 200)),
]

Rng = np.random.Generator
Floats = Any


def normals(rng: Rng, at: Setting, columns: int) -> Floats:
    """Standard normals (columns, n) that are alike within a group."""
    own = rng.normal(size=(columns, at.n))
    if at.group_size == 1:
        return own
    shared = rng.normal(size=(columns, at.n // at.group_size)).repeat(at.group_size, axis=1)
    return math.sqrt(RHO) * shared + math.sqrt(1 - RHO) * own


def chances(z: Floats) -> Floats:
    return scipy.special.ndtr(z)  # without the checks of `scipy.stats.norm`


def labels(rng: Rng, at: Setting) -> tuple[Floats, Floats]:
    """Labels of the judge and the truth, zeros and ones."""
    u, v = chances(normals(rng, at, 2))
    truth = (u < at.positive).astype(int)
    right = v < np.where(truth == 1, *at.right)
    return np.where(right, truth, 1 - truth), truth


def cells(at: Setting) -> tuple[float, float, float, float]:
    """The true shares of true positives, misses, false alarms and true negatives."""
    p, (found, let_alone) = at.positive, at.right
    return p * found, p * (1 - found), (1 - p) * (1 - let_alone), (1 - p) * let_alone


def true_kappa(at: Setting) -> float:
    tp, fn, fp, tn = cells(at)
    chance = (tp + fn) * (tp + fp) + (fn + tn) * (fp + tn)
    return (tp + tn - chance) / (1 - chance)


def true_f1(at: Setting) -> float:
    tp, fn, fp, _ = cells(at)
    return 2 * tp / (2 * tp + fn + fp)


def true_precision(at: Setting) -> float:
    tp, _, fp, _ = cells(at)
    return tp / (tp + fp)


def of_labels(compute: Callable[..., Result], truth: Callable[[Setting], float]) -> Any:
    def made(rng: Rng, at: Setting) -> tuple[Result, float]:
        return compute(*labels(rng, at), groups=at.groups), truth(at)

    return made


def offset(rng: Rng, at: Setting) -> tuple[Result, float]:
    """Excess of the judge's share of 1 over people's."""
    said, truth = labels(rng, at)
    _, fn, fp, _ = cells(at)
    return metrics.paired_difference(said, truth, groups=at.groups), fp - fn


def three_classes(rng: Rng, at: Setting) -> tuple[Result, float]:
    """A judge of three classes that is right .8 of the time, else names another by chance."""
    u, v, w = chances(normals(rng, at, 3))
    rest = (1 - at.positive) / 2
    truth = np.searchsorted([at.positive, at.positive + rest], u)
    skill = {"fair": 0.8, "perfect": 1.0, "useless": 1 / 3}[at.skill]
    said = np.where(v < skill, truth, (truth + 1 + (w < 0.5)) % 3)
    return metrics.balanced_accuracy(said, truth, groups=at.groups), skill


def few_labels(rng: Rng, at: Setting) -> tuple[Result, float]:
    """n labels and the judge's word on 500 more items."""
    more = Setting("", 500, at.positive, skill=at.skill)
    (said, truth), (rest, _) = labels(rng, at), labels(rng, more)
    return metrics.ppi_mean(truth, said, rest, groups=at.groups), at.positive


TIES = 0.4


def wins(rng: Rng, at: Setting) -> list[float]:
    """Wins of A, a tie as half; it has a share of (1 + positive) / 2 of the wins."""
    (u,) = chances(normals(rng, at, 1))
    win = (1 - TIES) * (1 + at.positive) / 2
    return np.where(u < win, 1, np.where(u < win + TIES, 0.5, 0)).tolist()


def rate(rng: Rng, at: Setting) -> tuple[Result, float]:
    truth = (1 - TIES) * (1 + at.positive) / 2 + TIES / 2
    return metrics.rate(wins(rng, at), groups=at.groups), truth


def first_slot(rng: Rng, at: Setting) -> tuple[Result, float]:
    """A judge that mostly follows quality, and the slot on a tenth of the items."""
    u, v = chances(normals(rng, at, 2))
    follows, better = v > 0.1, np.where(u < 0.5, "A", "B")
    first, second = (np.where(follows, better, slot).tolist() for slot in "AB")
    bias = metrics.position_bias(first, second, groups=at.groups)
    return bias.first_slot_rate, 0.9 * 0.5 + 0.1


def paired(rng: Rng, at: Setting) -> tuple[list[float], list[float], float]:
    """The hits of two judges, who are right .85 and .75 of the time on hard items."""
    u, v, w = chances(normals(rng, at, 3))
    hard = u < 2 * at.positive
    first, second = (np.where(hard, c < p, True) for c, p in ((v, 0.7), (w, 0.5)))
    share = min(1.0, 2 * at.positive)
    return first.astype(float).tolist(), second.astype(float).tolist(), 0.2 * share


def difference(compute: Callable[..., Result]) -> Any:
    def made(rng: Rng, at: Setting) -> tuple[Result, float]:
        first, second, truth = paired(rng, at)
        return compute(first, second, groups=at.groups), truth

    return made


def auc(rng: Rng, at: Setting) -> tuple[Result, float]:
    z, score = normals(rng, at, 2)
    truth = (chances(z) < at.positive).astype(int)
    lead = {"fair": 1.2, "perfect": 99.0, "useless": 0.0}[at.skill]
    result = metrics.auc(score + lead * truth, truth, groups=at.groups)
    return result, float(scipy.stats.norm.cdf(lead / math.sqrt(2)))


def ratings(rng: Rng, at: Setting) -> tuple[Floats, Floats]:
    """Two columns of ratings from 1 to 5, skewed where positives are rare."""
    x, y = normals(rng, at, 2)
    below = [0.2, 0.4, 0.6, 0.8] if at.positive == 0.5 else [0.6, 0.8, 0.9, 0.95]
    cuts = scipy.special.ndtri(below)
    r = {"fair": 0.6, "perfect": 1.0, "useless": 0.0}[at.skill]
    mixed = r * x + math.sqrt(1 - r * r) * y
    return np.searchsorted(cuts, x) + 1, np.searchsorted(cuts, mixed) + 1


@cache
def true_correlation(kind: str, positive: float, skill: str) -> float:
    x, y = ratings(np.random.default_rng(0), Setting("", 400_000, positive, skill=skill))
    if kind == "kendall":
        return float(scipy.stats.kendalltau(x[:200_000], y[:200_000]).statistic)
    other = scipy.stats.pearsonr if kind == "pearson" else scipy.stats.spearmanr
    return float(other(x, y).statistic)


def correlation(kind: str) -> Any:
    def made(rng: Rng, at: Setting) -> tuple[Result, float]:
        x, y = ratings(rng, at)
        result = metrics.correlate(x, y, kind, groups=at.groups)  # type: ignore[arg-type]
        return result, true_correlation(kind, at.positive, at.skill)

    return made


def concordance(rng: Rng, at: Setting) -> tuple[Result, float]:
    result = metrics.concordance(*ratings(rng, at), groups=at.groups)
    return result, true_concordance(at.positive, at.skill)


@cache
def true_concordance(positive: float, skill: str) -> float:
    said, truth = ratings(np.random.default_rng(0), Setting("", 400_000, positive, skill=skill))
    return (scipy.stats.somersd(truth, said).statistic + 1) / 2


def weighted_kappa(rng: Rng, at: Setting) -> tuple[Result, float]:
    result = metrics.cohen_kappa(*ratings(rng, at), weights="quadratic", groups=at.groups)
    return result, true_weighted_kappa(at.positive, at.skill)


@cache
def true_weighted_kappa(positive: float, skill: str) -> float:
    x, y = ratings(np.random.default_rng(0), Setting("", 400_000, positive, skill=skill))
    far = (np.subtract.outer(np.arange(5), np.arange(5)) ** 2).astype(float)
    p, q = (np.bincount(c - 1, minlength=5) / len(c) for c in (x, y))
    return float(1 - ((x - y) ** 2).mean() / (p @ far @ q))


MEASURES: dict[str, Callable[[Rng, Setting], tuple[Result, float]]] = {
    "accuracy": of_labels(metrics.accuracy, lambda at: sum(cells(at)[::3])),
    "rate": rate,
    "first_slot": first_slot,
    "difference": difference(metrics.paired_difference),
    "offset": offset,
    "few labels": few_labels,
    "kappa": of_labels(metrics.cohen_kappa, true_kappa),
    "weighted_kappa": weighted_kappa,
    "balanced": of_labels(metrics.balanced_accuracy, lambda at: sum(at.right) / 2),
    "balanced of 3": three_classes,
    "precision": of_labels(metrics.precision, true_precision),
    "f1": of_labels(metrics.f1, true_f1),
    "auc": auc,
    "concordance": concordance,
    "pearson": correlation("pearson"),
    "spearman": correlation("spearman"),
    "kendall": correlation("kendall"),
}


def covered(name: str, at: Setting, trials: int) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, that of none, and the mean width."""
    # A seed of its own for every cell: measures of the same samples would share their luck.
    rng = np.random.default_rng(crc32(f"{name} {at.name}".encode()))
    hits, none, width = 0, 0, 0.0
    for _ in range(trials):
        result, truth = MEASURES[name](rng, at)
        if result.interval is None:
            none += 1
            continue
        hits += result.interval.covers(truth)
        width += result.interval.high - result.interval.low
    trials_with_interval = trials - none
    if not trials_with_interval:
        return math.nan, 1.0, math.nan
    return hits / trials_with_interval, none / trials, width / trials_with_interval


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(MEASURES))
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--width", action="store_true", help="print mean widths too")
    parser.add_argument("--write", action="store_true", help="into docs/evidence.md")
    options = parser.parse_args()
    print(f"{'':15}" + "".join(f"{at.name:>12}" for at in SETTINGS))
    lines: dict[str, dict[str, tuple[float, float]]] = {}
    for name in options.names or MEASURES:
        began, cells = time.perf_counter(), []
        lines[name] = {}
        for at in SETTINGS:
            share, none, width = covered(name, at, options.trials)
            lines[name][at.name] = (share, none)
            cell = f"{share:.0%}" + (f" ({none:.0%})" if none else "") if none < 1 else "–"
            cells.append(cell + (f" {width:.2f}" if options.width else ""))
        row = "".join(f"{cell:>12}" for cell in cells)
        print(f"{name:15}{row}  {time.perf_counter() - began:5.1f} s", flush=True)
    if options.write:
        write_section("coverage", table(lines))


def table(lines: dict[str, dict[str, tuple[float, float]]]) -> str:
    """Line of each statistic as Markdown: its mean, its worst settings."""
    rows = []
    for name, cells in lines.items():
        shares = {at: share for at, (share, none) in cells.items() if none < 1}
        low = min(shares, key=lambda at: shares[at])
        small = max(cells, key=lambda at: cells[at][1])
        none = f"; none for {cells[small][1]:.0%} ({small})" if cells[small][1] else ""
        mean = sum(shares.values()) / len(shares)
        rows.append(f"- `{name}`: {mean:.0%}; {shares[low]:.0%} ({low}){none}")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
