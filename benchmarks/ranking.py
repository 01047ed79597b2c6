"""How many comparisons `rank` saves: ten simulated systems, against all pairs on all tasks.

    python -m benchmarks.ranking [RUNS]

A simulated judge prefers a system by its strength and errs at random (Bradley–Terry with 10 %
ties). Printed for each spacing of the strengths: how often all pairs give the true order, how
often `rank` does, with a budget of 40 % of them, and the share that it asked; and of five times
as many rankings of two equal systems how many `rank` calls settled.
"""

from __future__ import annotations

import math
import random
import sys
from itertools import combinations
from typing import Any

import numpy as np
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_judges.metrics.tournament import tournament
from langchain_judges.runs.comparison import rank
from langchain_judges.verdict import even_verdict

SYSTEMS, TASKS, TIES, TASKS_OF_EQUAL = 10, 100, 0.1, 1000


def judge_of(strengths: dict[str, float], seed: int) -> Any:
    """A judge that prefers by strength, the same on every run for the same pair."""

    def prefer(row: dict[str, Any]) -> str:
        draw = random.Random(f"{seed} {sorted((row['output_a'], row['output_b']))}")
        if draw.random() < TIES:
            return "tie"
        first, second = sorted((row["output_a"], row["output_b"]))
        lead = strengths[first.split()[0]] - strengths[second.split()[0]]
        wins = first if draw.random() < 1 / (1 + math.exp(-lead)) else second
        return "A" if wins == row["output_a"] else "B"

    judge: Runnable[Any, Any] = RunnableLambda(
        lambda row: {"verdict": {**even_verdict(), "preference": prefer(row)}}
    )
    return judge.with_config(metadata={"takes": "pair", "method": "simulated"})


def all_pairs(names: list[str], judge: Any) -> list[str]:
    """The order that all comparisons give."""
    points = np.zeros((len(names), len(names)))
    for i, j in combinations(range(len(names)), 2):
        for task in range(TASKS):
            row = {"input": "x", "output_a": f"{names[i]} {task}", "output_b": f"{names[j]} {task}"}
            won = {"A": 1.0, "tie": 0.5, "B": 0.0}[judge.invoke(row)["verdict"]["preference"]]
            points[i, j] += won
            points[j, i] += 1 - won
    return [names[place] for place in tournament(points).order]


def study(spacing: float, runs: int) -> tuple[int, int, int, float]:
    """Rates at which all pairs and `rank` are right and the same, and the share asked."""
    whole = active = same = 0
    shares = []
    for seed in range(runs):
        names = [f"s{n}" for n in random.Random(seed).sample(range(SYSTEMS), SYSTEMS)]
        judge = judge_of({name: -spacing * place for place, name in enumerate(names)}, seed)
        tasks = [
            {"input": f"task {t}", "outputs": {name: f"{name} {t}" for name in sorted(names)}}
            for t in range(TASKS)
        ]
        possible = TASKS * SYSTEMS * (SYSTEMS - 1) // 2
        results = rank(tasks, judge, max_calls=possible * 2 // 5, seed=seed, progress=False)
        order, full = [each["system"] for each in results["systems"]], all_pairs(names, judge)
        whole += full == names
        active += order == names
        same += order == full
        shares.append(results["comparisons"] / possible)
    return whole, active, same, sum(shares) / runs


def equal(runs: int) -> int:
    """How many rankings of two equal systems are settled."""
    settled = 0
    for seed in range(runs):
        tasks = [
            {"input": f"task {t}", "outputs": {"x": f"x {t}", "y": f"y {t}"}}
            for t in range(TASKS_OF_EQUAL)
        ]
        judge = judge_of({"x": 0.0, "y": 0.0}, seed)
        settled += rank(tasks, judge, seed=seed, progress=False)["settled"]
    return settled


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"of {count} draws:\nspacing | all pairs right | rank right | same order | share asked")
    for gap in (0.6, 0.4, 0.3, 0.2):
        whole, active, same, share = study(gap, count)
        print(f"{gap:7} | {whole:3} of {count} | {active:3} of {count} | {same:3} | {share:.0%}")
    print(f"equal systems, called settled: {equal(5 * count)} of {5 * count}")
