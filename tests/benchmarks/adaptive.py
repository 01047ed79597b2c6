"""How many calls stopping early saves, and how often it changes a preference.

    python -m tests.benchmarks.adaptive [PAIRS] [METHOD]

Simulated judges: for each pair the chance that a sample, a role or a point of a score goes
the right way is drawn evenly from `skill` to 1; `bias` is the chance that a reply names
what stands first. The whole method and the early one get the same replies.
Printed for each method and setting: mean calls of both, the share saved, and on
how many pairs both prefer the same text.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage

from langchain_judges import (
    create_bsm_judge,
    create_drpe_judge,
    create_relative_judge,
    create_sc2_judge,
    create_self_consistency_judge,
)
from langchain_judges.testing import with_logprobs
from tests.fakes import FakeChatModel

Reply = Callable[[str, bool, random.Random, float], Any]
"""Prompt, whether A stands first, a source of chance of the call, the chance to be right."""


def choice(prompt: str, a_first: bool, chance: random.Random, right: float) -> str:
    """Return a label, or a role's vote."""
    slot = "12"[(chance.random() < right) != a_first]
    name = "vote" if '"vote"' in prompt else "preference"
    return json.dumps({"explanation": "", "reason": "x", name: slot})


def scores(prompt: str, a_first: bool, chance: random.Random, right: float) -> str:
    """Return the scores of one criterion: three points, and one more or less for each text."""
    lead = sum(1 if chance.random() < right else -1 for _ in range(3))
    a = min(5, max(1, 3 + (lead + 1) // 2))
    b = min(5, max(1, 3 - lead // 2))
    first, second = (a, b) if a_first else (b, a)
    return json.dumps({"score_1": first, "score_2": second, "explanation": ""})


def tables(prompt: str, a_first: bool, chance: random.Random, right: float) -> str:
    """Return a table whose cells carry its quality, a comparison by it, or a preference."""
    if "set them side by side" in prompt:
        grade = f"grade {chance.randrange(1000):03}"
        cells = {"common": grade, "only_1": "alpha", "only_2": "omega"}
        return json.dumps({f"aspect_{n}": cells for n in range(1, 6)})
    if "two tables that were made" in prompt:
        first, second = re.findall(r"grade (\d+)", prompt)[::5][:2]
        slot = "12"[(first > second) != (chance.random() < right)]
        return json.dumps({"more_consistent": slot, "justification": ""})
    return json.dumps(
        {"comparison": "", "preferred": "12"[(chance.random() < right) != a_first]}
    )


def likely(prompt: str, a_first: bool, chance: random.Random, right: float) -> AIMessage:
    """Return the more probable label and its probability; an order moves its log-odds."""
    odds = math.log(max(right, 1e-9) / max(1 - right, 1e-9)) + chance.gauss(0, 1)
    probability = 1 / (1 + math.exp(-abs(odds)))
    slot = "12"[(odds > 0) != a_first]
    start = ('{"explanation": "", "preference": "', 1.0)
    return with_logprobs(start, (slot, probability), ('"}', 1.0))


class Simulated:
    """A judge's replies, the same for the same call of the same pair."""

    def __init__(self, reply: Reply, skill: float, bias: float) -> None:
        """Take how replies are made, the least skill and the bias to the first text."""
        self.reply, self.skill, self.bias = reply, skill, bias
        self.calls = 0
        self.seen: dict[str, int] = {}

    def __call__(self, prompt: str) -> Any:
        """Reply to one call."""
        self.calls += 1
        again = self.seen[prompt] = self.seen.get(prompt, -1) + 1
        task = re.search(r"task (\d+)", prompt)
        number = int(task[1]) if task else 0
        right = self.skill + (1 - self.skill) * random.Random(number).random()
        a_first = prompt.find("alpha") < prompt.find("omega")
        chance = random.Random(f"{prompt}:{again}")
        if chance.random() < self.bias:
            right = 1.0 if a_first else 0.0
        return self.reply(prompt, a_first, chance, right)


ROLES = [f"Reader {n}: looks at point {n}" for n in range(1, 8)]
CRITERIA = [f"Point {n}" for n in range(1, 6)]
METHODS: dict[str, tuple[Any, Reply, dict[str, Any], str]] = {
    "self-consistency, 8": (create_self_consistency_judge, choice, {}, "adaptive"),
    "self-consistency, 5 + 5": (
        create_self_consistency_judge,
        choice,
        {"prompt": "relative"},
        "adaptive",
    ),
    "DRPE, 7 roles alone": (create_drpe_judge, choice, {"roles": ROLES}, "voting"),
    "SC², 8 tables, all with all": (
        create_sc2_judge,
        tables,
        {"aspects": CRITERIA, "inference": "exact_unordered"},
        "adaptive",
    ),
    "BSM, 5 criteria": (create_bsm_judge, scores, {"criteria": CRITERIA}, "adaptive"),
    "relative, second order": (create_relative_judge, likely, {}, "second_order"),
    "BSM, second order": (create_bsm_judge, scores, {"criteria": CRITERIA}, "second_order"),
    "self-consistency, second order": (
        create_self_consistency_judge,
        choice,
        {"prompt": "relative"},
        "second_order",
    ),
}
"""Factory, replies, options and what holds `adaptive`, by name."""

SETTINGS: dict[str, tuple[bool | float, ...]] = {
    "SC², 8 tables, all with all": (True,),
    "relative, second order": (0.8, 0.9, 0.95),
    "BSM, second order": (0.1, 0.2, 0.3),
    "self-consistency, second order": (0.8, 1.0),
}
"""What is tried, where it is not the usual."""


def judged(name: str, adaptive: bool | float, world: tuple[float, float], pairs: int) -> Any:
    """Return the preferences of all pairs, and the calls of each."""
    create, reply, options, where = METHODS[name]
    model = Simulated(reply, *world)
    value: Any = adaptive
    if where == "voting":
        value = {"batch": False, "confidence": "none", "adaptive": adaptive}
    if where == "second_order" and not adaptive:
        value = "always"
    judge = create(FakeChatModel(replies=model), **options, **{where: value})
    answers = []
    for n in range(pairs):
        model.seen.clear()
        pair = {"input": f"task {n}", "output_a": "alpha", "output_b": "omega"}
        answers.append(judge.invoke(pair, {"max_concurrency": 1})["verdict"]["preference"])
    return answers, model.calls / pairs


def main() -> None:
    """Print the table."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    worlds = {"clear": (0.8, 0.0), "mixed": (0.5, 0.0), "biased": (0.5, 0.2)}
    print("| method | judge | adaptive | calls | of | saved | same preference |")
    print("|---|---|---|---|---|---|---|")
    for name in [each for each in METHODS if each.startswith(only)]:
        for world, figures in worlds.items():
            whole, calls = judged(name, False, figures, pairs)
            for adaptive in SETTINGS.get(name, (True, 0.95, 0.99)):
                early, fewer = judged(name, adaptive, figures, pairs)
                same = sum(a == b for a, b in zip(whole, early, strict=True)) / pairs
                saved = 1 - fewer / calls
                print(
                    f"| {name} | {world} | {adaptive} | {fewer:.1f} | {calls:.0f} | "
                    f"{saved:.0%} | {same:.1%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
