"""How often the intervals of the metrics hold the truth: a table, for 95 % intervals.

Run `python -m tests.benchmarks.coverage` for all of it (a few minutes on one core), with names
of metrics for some (`kappa auc`), `--trials` for another number of simulated samples, and
`--write` to put the table into docs/evidence.md. A
cell is the share of the intervals that hold the truth, and where any sample was too small for
an interval, the share of those. With 300 trials a share of .95 has a standard error of .013.
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
from scipy import stats

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.metrics.slopes import preference_slopes
from tests.benchmarks.evidence_page import write_section

RHO = 0.3
"""How far the items of a group are alike: the correlation of what decides them."""


@dataclass(frozen=True)
class Setting:
    """A kind of sample."""

    name: str
    n: int
    positive: float = 0.5
    group_size: int = 1

    @property
    def groups(self) -> list[int] | None:
        """The group of each item."""
        if self.group_size == 1:
            return None
        return [i // self.group_size for i in range(self.n)]


SETTINGS = [
    *(Setting(f"n={n}", n) for n in (20, 50, 200)),
    *(Setting(f"10%,n={n}", n, positive=0.1) for n in (20, 50, 200)),
    *(Setting(f"{g}x4", 4 * g, group_size=4) for g in (5, 10, 20, 50)),
    *(Setting(f"10%,{g}x4", 4 * g, positive=0.1, group_size=4) for g in (5, 20, 50)),
]

Rng = np.random.Generator
Floats = Any


def normals(rng: Rng, at: Setting, columns: int) -> Floats:
    """Return standard normals (columns, n) that are alike within a group."""
    own = rng.normal(size=(columns, at.n))
    if at.group_size == 1:
        return own
    shared = rng.normal(size=(columns, at.n // at.group_size)).repeat(at.group_size, axis=1)
    return math.sqrt(RHO) * shared + math.sqrt(1 - RHO) * own


def chances(z: Floats) -> Floats:
    return stats.norm.cdf(z)


SENSITIVITY, SPECIFICITY = 0.75, 0.85


def labels(rng: Rng, at: Setting) -> tuple[Floats, Floats]:
    """Return (what the judge says, the truth), zeros and ones."""
    u, v = chances(normals(rng, at, 2))
    truth = (u < at.positive).astype(int)
    right = v < np.where(truth == 1, SENSITIVITY, SPECIFICITY)
    return np.where(right, truth, 1 - truth), truth


def cells(at: Setting) -> tuple[float, float, float, float]:
    """Return the true shares of true positives, misses, false alarms and true negatives."""
    p = at.positive
    return (
        p * SENSITIVITY,
        p * (1 - SENSITIVITY),
        (1 - p) * (1 - SPECIFICITY),
        ((1 - p) * SPECIFICITY),
    )


def true_kappa(at: Setting) -> float:
    tp, fn, fp, tn = cells(at)
    chance = (tp + fn) * (tp + fp) + (fn + tn) * (fp + tn)
    return (tp + tn - chance) / (1 - chance)


def true_f1(at: Setting) -> float:
    tp, fn, fp, _ = cells(at)
    return 2 * tp / (2 * tp + fn + fp)


def of_labels(compute: Callable[..., Result], truth: Callable[[Setting], float]) -> Any:
    def made(rng: Rng, at: Setting) -> tuple[Result, float]:
        return compute(*labels(rng, at), groups=at.groups), truth(at)

    return made


TIES = 0.4


def votes(rng: Rng, at: Setting) -> list[str]:
    """Return preferences of which A has a share of (1 + positive) / 2 of the wins."""
    (u,) = chances(normals(rng, at, 1))
    win = (1 - TIES) * (1 + at.positive) / 2
    return np.where(u < win, "A", np.where(u < win + TIES, "tie", "B")).tolist()


def win_rate(rng: Rng, at: Setting) -> tuple[Result, float]:
    truth = (1 - TIES) * (1 + at.positive) / 2 + TIES / 2
    return metrics.win_rate(votes(rng, at), groups=at.groups), truth


def first_slot(rng: Rng, at: Setting) -> tuple[Result, float]:
    """A judge that mostly follows quality, and the slot on a tenth of the items."""
    u, v = chances(normals(rng, at, 2))
    follows, better = v > 0.1, np.where(u < 0.5, "A", "B")
    first, second = (np.where(follows, better, slot).tolist() for slot in "AB")
    bias = metrics.position_bias(first, second, groups=at.groups)
    return bias.first_slot_rate, 0.9 * 0.5 + 0.1


def paired(rng: Rng, at: Setting) -> tuple[list[float], list[float], float]:
    """Return the hits of two judges, who are right .85 and .75 of the time on hard items."""
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
    result = metrics.auc(score + 1.2 * truth, truth, groups=at.groups)
    return result, float(stats.norm.cdf(1.2 / math.sqrt(2)))


def ratings(rng: Rng, at: Setting) -> tuple[Floats, Floats]:
    """Return two columns of ratings from 1 to 5, skewed where positives are rare."""
    x, y = normals(rng, at, 2)
    below = [0.2, 0.4, 0.6, 0.8] if at.positive == 0.5 else [0.6, 0.8, 0.9, 0.95]
    cuts = stats.norm.ppf(below)
    return np.searchsorted(cuts, x) + 1, np.searchsorted(cuts, 0.6 * x + 0.8 * y) + 1


@cache
def true_correlation(kind: str, positive: float) -> float:
    x, y = ratings(np.random.default_rng(0), Setting("", 400_000, positive))
    if kind == "kendall":
        return float(stats.kendalltau(x[:200_000], y[:200_000]).statistic)
    return float((stats.pearsonr if kind == "pearson" else stats.spearmanr)(x, y).statistic)


def correlation(kind: str) -> Any:
    def made(rng: Rng, at: Setting) -> tuple[Result, float]:
        x, y = ratings(rng, at)
        result = metrics.correlate(x, y, kind, groups=at.groups)  # type: ignore[arg-type]
        return result, true_correlation(kind, at.positive)

    return made


def weighted_kappa(rng: Rng, at: Setting) -> tuple[Result, float]:
    result = metrics.cohen_kappa(*ratings(rng, at), weights="quadratic", groups=at.groups)
    return result, true_weighted_kappa(at.positive)


@cache
def true_weighted_kappa(positive: float) -> float:
    x, y = ratings(np.random.default_rng(0), Setting("", 400_000, positive))
    far = (np.subtract.outer(np.arange(5), np.arange(5)) ** 2).astype(float)
    p, q = (np.bincount(c - 1, minlength=5) / len(c) for c in (x, y))
    return float(1 - ((x - y) ** 2).mean() / (p @ far @ q))


def slope(rng: Rng, at: Setting) -> tuple[Result, float]:
    lead, z = normals(rng, at, 2)
    shift = 0.0 if at.positive == 0.5 else -2.2
    answers = np.where(chances(z) < 1 / (1 + np.exp(-(shift + 0.8 * lead))), "A", "B").tolist()
    results = preference_slopes(answers, {"lead": lead.tolist()}, groups=at.groups)
    # Within groups the noise is shared, but each item alone has the same odds.
    return results["lead"], 0.8


MEASURES: dict[str, Callable[[Rng, Setting], tuple[Result, float]]] = {
    "accuracy": of_labels(metrics.accuracy, lambda at: sum(cells(at)[::3])),
    "win_rate": win_rate,
    "first_slot": first_slot,
    "difference": difference(metrics.paired_difference),
    "kappa": of_labels(metrics.cohen_kappa, true_kappa),
    "weighted_kappa": weighted_kappa,
    "balanced": of_labels(
        metrics.balanced_accuracy, lambda at: (SENSITIVITY + SPECIFICITY) / 2
    ),
    "f1": of_labels(metrics.f1, true_f1),
    "auc": auc,
    "pearson": correlation("pearson"),
    "spearman": correlation("spearman"),
    "kendall": correlation("kendall"),
    "slope": slope,
}


def covered(name: str, at: Setting, trials: int) -> tuple[float, float, float]:
    """Return the share of intervals that hold the truth, that of none, and the mean width."""
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
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--width", action="store_true", help="print mean widths too")
    parser.add_argument("--write", action="store_true", help="into docs/evidence.md")
    options = parser.parse_args()
    print(f"{'':15}" + "".join(f"{at.name:>12}" for at in SETTINGS))
    lines = [
        f"| | {' | '.join(at.name for at in SETTINGS)} |",
        "|---" * (len(SETTINGS) + 1) + "|",
    ]
    for name in options.names or MEASURES:
        began, cells = time.perf_counter(), []
        for at in SETTINGS:
            share, none, width = covered(name, at, options.trials)
            cell = f"{share:.3f}" + (f" ({none:.0%})" if none else "")
            cells.append(cell + (f" {width:.2f}" if options.width else ""))
        row = "".join(f"{cell:>12}" for cell in cells)
        print(f"{name:15}{row}  {time.perf_counter() - began:5.1f} s", flush=True)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    if options.write:
        write_section("coverage", "\n".join(lines))


if __name__ == "__main__":
    main()
