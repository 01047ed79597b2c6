"""The figures of DRPE's studies, their tables and their plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from protocols import canvas
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from langchain_judges.metrics import correlate, williams_test
from langchain_judges.writing.overlap import wordnet_found

RIVAL = "llm_score"
"""The judge without roles that every method is tested against."""
SIZES = (0, 2, 4, 6)

Scores = dict[str, float | None]
"""The score of each summary, None where it was not judged."""
Figures = dict[str, Any]


def figures(
    scores: Scores,
    human: Mapping[str, float],
    groups: Mapping[str, str],
    rival: Scores | None,
    *,
    resamples: int,
    seed: int,
) -> Figures:
    """Return the statistics of one method; what could not be judged is left out, counted.

    Args:
        scores: Of the method.
        human: People's value of each summary.
        groups: The article of each summary, the unit that the bootstrap draws.
        rival: Scores that the method is tested against, of the same protocol.
        resamples: Of the test of τ.
        seed: Of the resamples.
    """
    ids = [each for each in human if scores.get(each) is not None]
    result: Figures = {"n": len(ids), "not_judged": len(human) - len(ids)}
    x, y = [scores[i] for i in ids], [human[i] for i in ids]
    if len(ids) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        return {**result, "pearson": None, "why": "scores or labels are all equal"}
    for name in ("pearson", "kendall"):
        value = correlate(x, y, name, groups=[groups[i] for i in ids])
        result[name] = abs(float(value))
        if value.interval:
            # The papers print absolute values; the interval is turned with the sign.
            low, high = value.interval
            result[f"{name}_95"] = [low, high] if value >= 0 else [-high, -low]
    both = [i for i in ids if rival and rival.get(i) is not None]
    if rival is None or len(both) < 4:
        return result
    own, other = [scores[i] for i in both], [rival[i] for i in both]
    truth, clusters = [human[i] for i in both], [groups[i] for i in both]
    r = [abs(float(correlate(a, b))) for a, b in ((own, truth), (other, truth), (own, other))]
    if all(value == value for value in r):
        result["williams"] = williams_test(r[0], r[1], r[2], len(both))._asdict()
        result["tau_test"] = tau_test(own, other, truth, clusters, resamples, seed)
    return result


def tau_test(
    own: Sequence[float],
    other: Sequence[float],
    truth: Sequence[float],
    groups: Sequence[str],
    resamples: int,
    seed: int,
) -> dict[str, float]:
    """Return how far τ of the first is ahead, and the one-sided p of a paired bootstrap.

    Whole groups are drawn (Deutsch, Dror & Roth 2021, BOOT-INPUTS).
    """
    columns, rng = np.array([own, other, truth], dtype=float), np.random.default_rng(seed)
    names = list(dict.fromkeys(groups))
    places = [np.flatnonzero(np.asarray(groups) == name) for name in names]

    def lead(part: Any) -> float:
        first, second, people = part
        return float(kendalltau(first, people)[0] - kendalltau(second, people)[0])

    drawn = [
        lead(columns[:, np.concatenate([places[i] for i in picks])])
        for picks in rng.integers(0, len(places), (resamples, len(places)))
    ]
    defined = [value for value in drawn if value == value]
    below = sum(value <= 0 for value in defined)
    return {"difference": lead(columns), "p": (1 + below) / (1 + len(defined))}


def spread(runs: Sequence[Scores], human: Mapping[str, float]) -> dict[str, Any]:
    """Return |Pearson| of each run, None where it is undefined, with mean and deviation."""
    values: list[float | None] = []
    for scores in runs:
        ids = [each for each in human if scores.get(each) is not None]
        r = abs(float(correlate([scores[i] for i in ids], [human[i] for i in ids])))
        values.append(r if r == r else None)
    defined = [value for value in values if value is not None]
    return {
        "values": values,
        "mean": fmean(defined) if defined else None,
        "sd": stdev(defined) if len(defined) > 1 else None,
    }


def label(name: str) -> str:
    """Return a method's name in a table, with what it lacks."""
    if name == "meteor" and not wordnet_found():
        return "meteor (no WordNet)"
    return name


def print_study(console: Console, title: str, table: Mapping[str, Figures]) -> None:
    """Print one protocol of one study: every method with its tests and its cost."""
    screen = Table(
        *("method", "n", "not judged", "|Pearson| (95 %)", "tau (95 %)"),
        *(f"p (r) against {RIVAL}", "p (tau)", "calls", "tokens"),
        title=title,
    )
    for name, row in table.items():
        r, tau = row.get("why", ""), "-"
        if row["pearson"] is not None:
            r, tau = (_with_interval(row, kind) for kind in ("pearson", "kendall"))
        tests = [f"{row[key]['p']:.4f}" if key in row else "-" for key in _TESTS]
        counts = [f"{row.get(key, 0):,}" for key in ("n", "not_judged", "calls", "tokens")]
        screen.add_row(label(name), *counts[:2], r, tau, *tests, *counts[2:])
    console.print(screen)
    if table.get("drpe", {}).get("tokens") and table.get("no_batch", {}).get("tokens"):
        whole, batch = table["no_batch"]["tokens"], table["drpe"]["tokens"]
        console.print(
            f"Asking all roles in one call took {batch:,} tokens instead of {whole:,}: "
            f"{1 - batch / whole:.0%} saved."
        )


_TESTS = ("williams", "tau_test")


def _with_interval(row: Figures, name: str) -> str:
    ends = row.get(f"{name}_95")
    return f"{row[name]:.3f}" + (f" ({ends[0]:.3f} to {ends[1]:.3f})" if ends else "")


def print_main_table(
    console: Console, studies: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, float | None]]:
    """Print |Pearson| of each method on each set, and their mean; return the numbers.

    A method has a mean only where it has a number on every set.
    """
    rows: dict[str, dict[str, Figures]] = {}
    for which, suffix in (("methods", ""), ("pairs", ", in pairs")):
        for study, result in studies.items():
            for name, cell in result.get(which, {}).items():
                rows.setdefault(label(name) + suffix, {})[study] = cell
    screen = Table("method", *studies, "AVG", title="|Pearson| with people")
    numbers: dict[str, dict[str, float | None]] = {}
    for name, cells in rows.items():
        values = {study: _value(cells.get(study, {})) for study in studies}
        defined = [value for value in values.values() if value is not None]
        mean = fmean(defined) if len(defined) == len(studies) else None
        numbers[name] = {**values, "AVG": mean}
        texts = [_cell(cells.get(study, {})) for study in studies]
        screen.add_row(name, *texts, "-" if mean is None else f"{mean:.3f}")
    console.print(screen)
    return numbers


def _value(cell: Figures) -> float | None:
    value: float | None = (
        cell["wordings"]["mean"] if "wordings" in cell else cell.get("pearson")
    )
    return value


def _cell(cell: Figures) -> str:
    value, sd = _value(cell), cell.get("wordings", {}).get("sd")
    if value is None:
        return "-"
    return f"{value:.3f}" + (f" ± {sd:.3f}" if sd is not None else "")


def draw_sizes(
    console: Console, name: str, sizes: Mapping[str, Sequence[float | None]], path: Path
) -> None:
    """Print and draw |Pearson| over the number of generated roles."""
    table = Table("panel", *[f"{size} roles" for size in SIZES], title=f"{name}: |Pearson|")
    for panel, values in sizes.items():
        table.add_row(panel, *["-" if value is None else f"{value:.3f}" for value in values])
    console.print(table)
    figure, axes = canvas(6, 4)
    for (panel, values), style in zip(sizes.items(), ("o-", "s--", "^:"), strict=True):
        points = [(k, v) for k, v in zip(SIZES, values, strict=True) if v is not None]
        axes.plot([k for k, _ in points], [v for _, v in points], style, label=panel)
    axes.set(xlabel="roles beside the static ones", ylabel="|Pearson| with people", title=name)
    axes.set_xticks(SIZES)
    axes.legend()
    figure.savefig(path, dpi=150)
