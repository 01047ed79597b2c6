"""Which method pays at which noise: simulated judges, drawn.

    python -m benchmarks.when_it_pays [PAIRS] [--figure docs/figures/when_it_pays.png]

A reply is one look at a pair: it is right with the chance `skill`. With the chance `bias` it
names what stands first instead, and with the chance `shared` it repeats the pair's own error,
the same at every look. A criterion is one look, a role is one look, a sample is one look.
Printed for each world and skill: the share of the pairs on which each method prefers the
better text (a tie is wrong), and its mean calls.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

from langchain_judges import judge_many, load_judge
from tests.fakes import FakeChatModel


class World(NamedTuple):
    """Errors of a judge, beside its skill."""

    bias: float = 0.0
    shared: float = 0.0


WORLDS = {
    "independent errors": World(),
    "a fifth follows the first place": World(bias=0.2),
    "half of the errors are the pair's own": World(shared=0.5),
}
SKILLS = (0.55, 0.65, 0.75, 0.85, 0.95)
OPTIONS: dict[str, dict[str, Any]] = {
    "cot": {},
    "relative": {},
    "cot_sc": {"samples": 9},
    "drpe": {
        "panel": {"static": [f"Reader {n}: looks at point {n}" for n in range(1, 8)], "dynamic": 0},
        "voting": {"batch": False, "confidence": "none"},
    },
    "bsm": {"criteria": [f"Point {n}" for n in range(1, 6)]},
    "cascade": {
        "methods": [
            "relative",
            {"method": "bsm", "options": {"criteria": [f"Point {n}" for n in range(1, 6)]}},
        ]
    },
}
"""Each method at its own cost, without a step that plans."""
NAMES = {
    "cot": "one prompt (1 call)",
    "relative": "one prompt, both orders (2)",
    "cot_sc": "self-consistency (9)",
    "drpe": "panel of seven roles (7)",
    "bsm": "Branch-Solve-Merge (10)",
    "cascade": "cascade: both orders, then Branch-Solve-Merge",
}


class Simulated:
    """A judge's replies, the same on every run."""

    def __init__(self, skill: float, world: World) -> None:
        """Take the chance that a look is right, and how the judge errs beside."""
        self.skill, self.world = skill, world
        self.seen: dict[str, int] = {}

    def __call__(self, prompt: str) -> str:
        """Reply to one call."""
        again = self.seen[prompt] = self.seen.get(prompt, -1) + 1
        task = re.search(r"task \d+", prompt)
        pair = task[0] if task else ""
        better_first = prompt.find("alpha") < prompt.find("omega")
        chance = random.Random(f"{self.skill}:{prompt}:{again}")
        right = chance.random() < self.skill
        if chance.random() < self.world.shared:
            right = random.Random(f"{self.skill}:{pair}").random() < self.skill
        first = right == better_first
        if chance.random() < self.world.bias:
            first = True
        return _reply(prompt, "1" if first else "2")


def _reply(prompt: str, slot: str) -> str:
    if "score_1" in prompt:
        one, other = (4, 2) if slot == "1" else (2, 4)
        return json.dumps({"score_1": one, "score_2": other, "explanation": ""})
    name = "vote" if '"vote"' in prompt else "preference"
    why = next(each for each in ("reason", "explanation") if f'"{each}"' in prompt)
    return json.dumps({why: "So it is.", name: slot})


def pairs(number: int) -> list[dict[str, Any]]:
    """Pairs whose better text is `alpha`, as often A as B."""
    texts = ("alpha", "omega")
    return [
        {
            "input": f"task {n}",
            "output_a": texts[n % 2],
            "output_b": texts[1 - n % 2],
            "label": "AB"[n % 2],
        }
        for n in range(number)
    ]


Measures = dict[str, tuple[float, float]]
"""The share of right verdicts and the mean calls of each method."""


def measure(skill: float, world: World, number: int) -> Measures:
    """The share of right verdicts and the mean calls of each method."""
    model = FakeChatModel(replies=Simulated(skill, world))
    measures: Measures = {}
    for name, options in OPTIONS.items():
        judge = load_judge(name, model, **options)
        with judge_many(judge, pairs(number), progress=False, max_concurrency=1) as run:
            list(run)
        measures[name] = (run.summary.agreed / number, run.summary.calls / number)
    return measures


def majority(skill: float, looks: int) -> float:
    """The chance that most of an odd number of looks are right.

    >>> round(majority(0.7, 3), 3)
    0.784
    """
    return sum(
        comb(looks, k) * skill**k * (1 - skill) ** (looks - k)
        for k in range(looks // 2 + 1, looks + 1)
    )


def theory(skill: float) -> dict[str, float]:
    """Accuracy of each method where all looks are independent and without bias."""
    whole = majority(skill, 5) ** 2
    both = skill**2
    return {
        "cot": skill,
        "relative": both,
        "cot_sc": majority(skill, 9),
        "drpe": majority(skill, 7),
        "bsm": whole,
        # The orders agree on the right text, or disagree and the criteria decide.
        "cascade": both + 2 * skill * (1 - skill) * whole,
    }


def draw(worlds: dict[str, dict[float, Measures]], path: Path) -> None:
    """Draw the share of right verdicts over the skill, a panel for each world."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(worlds), figsize=(12, 4.2), sharey=True)
    for axes, (world, by_skill) in zip(panels, worlds.items(), strict=True):
        for name, words in NAMES.items():
            skills = list(by_skill)
            axes.plot(skills, [100 * by_skill[s][name][0] for s in skills], "o-", label=words)
            if world == next(iter(WORLDS)):
                axes.plot(skills, [100 * theory(s)[name] for s in skills], "k:", linewidth=0.8)
        axes.set_title(world, fontsize=10)
        axes.set_xlabel("a look is right, share")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("right verdicts, % (a tie is wrong)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=9)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="?", type=int, default=200)
    parser.add_argument("--figure", type=Path)
    args = parser.parse_args()
    worlds: dict[str, dict[float, Measures]] = {}
    print("| errors | skill | " + " | ".join(OPTIONS) + " |")
    print("|---" * (2 + len(OPTIONS)) + "|")
    for words, world in WORLDS.items():
        for skill in SKILLS:
            measures = measure(skill, world, args.pairs)
            worlds.setdefault(words, {})[skill] = measures
            cells = [f"{share:.0%} ({calls:.1f})" for share, calls in measures.values()]
            print(f"| {words} | {skill} | " + " | ".join(cells) + " |", flush=True)
    if args.figure:
        draw(worlds, args.figure)


if __name__ == "__main__":
    main()
