"""Whether an audit can be fooled: memories that disturb a judge, and memories that help it.

In each world a judge labels 70 % of the items rightly. In the first kind anything that it is
shown changes its label of 15 % of the items, by no rule; in the second, what it is shown mends
six of ten mistakes and breaks one label of thirty. No model is asked. `python -m
benchmarks.audit_worlds` audits 24 worlds of each kind and prints how many memories stayed
empty, how many were reported as a loss, and what each audit said and was worth on new items.
Measured: all 24 that disturb stay empty; 23 of 24 that help learn something, worth .13 to .21.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_judges import FailureMemory, create_allure_audit, create_allure_judge
from langchain_judges.testing import FakeChatModel

WORLDS, ITEMS, NEW = 24, 120, 400
KINDS = {"disturbing": (0.15, 0.15), "helping": (0.6, 1 / 30)}
"""Chances that what is shown mends a mistake, and that it breaks a right label."""


class Places(Embeddings):
    """Puts a text at the place that its number says."""

    def embed_query(self, text: str) -> list[float]:
        """Return a point of the unit circle."""
        place = random.Random(_number(text)).random()
        return [1.0, place, 1 - place]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the point of each text."""
        return [self.embed_query(text) for text in texts]


def _number(text: str) -> int:
    return int(re.findall(r"Question (\d+)", text)[-1])


def items_of(world: int, first: int, count: int) -> list[dict[str, Any]]:
    """Return items of a world, half of each label, each with a task of its own."""
    return [
        {
            "id": f"i{n}",
            "input": f"Question {world * 10_000 + n}?",
            "output": f"Reply {random.Random(world * 10_000 + n).random()}.",
            "label": n % 2,
        }
        for n in range(first, first + count)
    ]


def judge_of(world: int, kind: str) -> Callable[[str], str]:
    """Return what the judge of a world replies to a prompt."""
    mends, breaks = KINDS[kind]

    def reply(prompt: str) -> str:
        number = _number(prompt)
        truth, shown = number % 2, sorted(set(re.findall(r"Question (\d+)", prompt)))
        right = random.Random(f"{world} {number}").random() < 0.7
        if len(shown) > 1:
            lot = random.Random(f"{world} {number} {shown}").random()
            right = lot >= breaks if right else lot < mends
        return json.dumps({"label": str(truth if right else 1 - truth), "explanation": "so"})

    return reply


def audited(world: int, kind: str, size: int = ITEMS) -> tuple[FailureMemory, Any, Any]:
    """Audit a world of some size; return its memory, the result, and the judge."""
    memory = FailureMemory(embeddings=Places())
    model = FakeChatModel(replies=judge_of(world, kind))
    judge = create_allure_judge(model, memory=memory, rubric="Is the reply right?")
    settings: dict[str, Any] = {
        "auditor": "labels",
        "check": "annotated",
        "dev": 1 / 3,
        "seed": world,
    }
    audit = create_allure_audit(judge, memory, **settings)
    return memory, audit.invoke({"items": items_of(world, 0, size)}), judge


def worth(judge: Any, world: int, kind: str) -> float:
    """Return what an audited judge gained on new items of its world."""
    plain = create_allure_judge(FakeChatModel(replies=judge_of(world, kind)), rubric="Right?")
    items = items_of(world, 1000, NEW)
    before, after = (
        sum(
            said["verdict"]["label"] == item["label"]
            for said, item in zip(each.batch([*map(_shown, items)]), items, strict=True)
        )
        for each in (plain, judge)
    )
    return (after - before) / NEW


def _shown(item: Any) -> dict[str, str]:
    return {key: item[key] for key in ("input", "output")}


def main() -> None:
    """Print what became of every world."""
    for kind in KINDS:
        empty = losses = 0
        for world in range(WORLDS):
            memory, result, judge = audited(world, kind)
            size, said = len(memory), result["gain"]["gain"]
            empty, losses = empty + (not size), losses + (size > 0 and said < 0)
            gain = worth(judge, world, kind)
            print(f"{kind} {world}: {size} examples, said {said:+.3f}, worth {gain:+.3f}")
        print(
            f"{kind}: {empty} memories stayed empty, {losses} reported as a loss, of {WORLDS}"
        )


if __name__ == "__main__":
    main()
