"""Calls saved against the share of verdicts that stay, by the bound that is asked for.

    python -m tests.benchmarks.stopping_curve [PAIRS]

The simulated judges of `adaptive` without the graph: Branch-Solve-Merge by five criteria in
both orders, and self-consistency of eight samples. After every criterion or sample the
probability that the verdict stays is computed, and each line stops where it reaches its own.
Nothing is fitted to these pairs.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from functools import cache

from langchain_judges.methods.bsm.bound import chance_to_stay
from langchain_judges.methods.stopping import first_wave, outcomes, plurality, settled
from langchain_judges.orders import combine, prefer
from langchain_judges.verdict import Preference
from tests.benchmarks.adaptive import scores

CRITERIA, SCALE, SAMPLES = 5, (1, 5), 8
WORLDS = {"clear": (0.8, 0.0), "mixed": (0.5, 0.0), "biased": (0.5, 0.2)}
"""The least chance to be right, and the chance that a reply names what stands first."""
LEVELS = (0.9, 0.93, 0.95, 0.97, 0.99)
Leads = tuple[tuple[int, int], ...]


def leads_of(number: int, skill: float, bias: float) -> Leads:
    """Return how far A leads on each criterion, with A first and with B first."""
    usual = skill + (1 - skill) * random.Random(number).random()
    return tuple(
        (lead(f"{number}:{k}", True, usual, bias), lead(f"{number}:{k}", False, usual, bias))
        for k in range(CRITERIA)
    )


def lead(seed: str, a_first: bool, usual: float, bias: float) -> int:
    """Return A's lead by one reply."""
    chance = random.Random(f"{seed}:{a_first}")
    right = float(a_first) if chance.random() < bias else usual
    reply = json.loads(scores("", a_first, chance, right))
    difference = int(reply["score_1"] - reply["score_2"])
    return difference if a_first else -difference


def verdict(leads: Sequence[tuple[int, int]]) -> str:
    """Return the verdict of some criteria by the strict rule."""
    sums = [sum(pair[order] for pair in leads) for order in (0, 1)]
    return combine("strict", [prefer({"A": each, "B": 0}) for each in sums])


@cache
def stays(leads: Leads) -> float:
    """Return how probable the verdict of these criteria is to stay."""
    rest = [1.0] * (CRITERIA - len(leads))
    return chance_to_stay(leads, [1.0] * len(leads), rest, SCALE, "strict")


@cache
def votes_settle(for_a: int, for_b: int, level: bool | float) -> bool:
    """Say whether these votes of `SAMPLES` settle a verdict."""
    counts: dict[Preference, int] = {"A": for_a, "B": for_b}
    ends = [outcomes(counts, SAMPLES - for_a - for_b, ["A", "B"])]
    return settled(level, ends, lambda labels: labels[0], plurality(counts))


def majority(votes: Sequence[bool]) -> Preference:
    """Return what most votes say; True is a vote for A."""
    return plurality({"A": sum(votes), "B": len(votes) - sum(votes)})


def votes_of(number: int, skill: float, bias: float) -> list[bool]:
    """Return the samples of one pair, A first."""
    usual = skill + (1 - skill) * random.Random(number).random()
    chance = random.Random(f"votes {number}")
    return [chance.random() < bias or chance.random() < usual for _ in range(SAMPLES)]


def samples(pairs: int) -> None:
    """Print the lines of self-consistency."""
    for world, figures in WORLDS.items():
        drawn = [votes_of(number, *figures) for number in range(pairs)]
        for level in (True, 0.95, 0.97, 0.99):
            asked = same = 0
            first = first_wave(level, SAMPLES, ["A", "B"], 1)
            for votes in drawn:
                count = first
                while count < SAMPLES and not votes_settle(
                    sum(votes[:count]), count - sum(votes[:count]), level
                ):
                    count += 1
                asked += count
                same += majority(votes[:count]) == majority(votes)
            saved = 1 - asked / pairs / SAMPLES
            name = f"self-consistency, {world}"
            print(f"| {name} | {level} | {saved:.0%} | {same / pairs:.1%} |", flush=True)


def main(pairs: int) -> None:
    """Print the table."""
    print("| judge | probability | saved | same verdict |\n|---|---|---|---|")
    samples(pairs)
    for world, figures in WORLDS.items():
        plans = [leads_of(number, *figures) for number in range(pairs)]
        for level in LEVELS:
            solved = same = 0
            for plan in plans:
                # What is sorted is as likely to stay, and is computed once.
                count = next(
                    (n for n in range(1, CRITERIA) if stays(tuple(sorted(plan[:n]))) >= level),
                    CRITERIA,
                )
                solved += count
                same += verdict(plan[:count]) == verdict(plan)
            saved = 1 - solved / pairs / CRITERIA
            print(f"| bsm, {world} | {level} | {saved:.0%} | {same / pairs:.1%} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
