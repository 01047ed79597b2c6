"""Whether an audit can be fooled: memories that disturb a judge, and memories that help it.

In each world a judge labels 70 % of the items rightly. In the first kind anything that it is
shown changes its label of 15 % of the items, by no rule; in the second, what it is shown mends
six of ten mistakes and breaks one label of thirty. No model is asked. `python -m
benchmarks.audit_worlds` audits 24 worlds of each kind and prints what each audit said and was
worth on new items; `--write` puts the table into docs/evidence.md.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from benchmarks.evidence_page import write_section
from langchain_judges import FailureMemory, create_allure_audit, create_allure_judge
from langchain_judges.testing import FakeChatModel

WORLDS, ITEMS, NEW = 24, 120, 400
KINDS = {"disturbing": (0.15, 0.15), "helping": (0.6, 1 / 30)}
"""Chances that what is shown mends a mistake, and that it breaks a right label."""


class Places(Embeddings):
    """Puts a text at the place that its number says."""

    def embed_query(self, text: str) -> list[float]:
        """A point of the unit circle."""
        place = random.Random(_number(text)).random()
        return [1.0, place, 1 - place]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The point of each text."""
        return [self.embed_query(text) for text in texts]


def _number(text: str) -> int:
    return int(re.findall(r"Question (\d+)", text)[-1])


def items_of(world: int, first: int, count: int) -> list[dict[str, Any]]:
    """Items of a world, half of each label, each with a task of its own."""
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
    """The reply of a world's judge to a prompt."""
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
    """The gain of an audited judge on new items of its world."""
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


def outcome(world: int, kind: str) -> tuple[int, float, float]:
    """A world's number of examples, the gain that was said, and what it was worth."""
    memory, result, judge = audited(world, kind)
    size, said, gain = len(memory), result["gain"]["gain"], worth(judge, world, kind)
    print(f"{kind} {world}: {size} examples, said {said:+.3f}, worth {gain:+.3f}", flush=True)
    return size, said, gain


def row_of(kind: str, outcomes: Sequence[tuple[int, float, float]]) -> str:
    """The row of a kind of world in the table."""
    empty = sum(not size for size, _, _ in outcomes)
    losses = sum(size > 0 and said < 0 for size, said, _ in outcomes)
    columns = [[round(100 * each[place]) for each in outcomes] for place in (1, 2)]
    said, gains = (f"{min(each)} to {max(each)}" for each in columns)
    taken = len(outcomes) - empty - losses
    return f"| {kind} | {empty} | {losses} | {taken} | {said} | {gains} |"


def lines_of(outcomes: Mapping[str, Sequence[tuple[int, float, float]]]) -> list[str]:
    """The table of what became of the worlds of each kind."""
    columns = ["stayed empty", "reported as a loss", "taken", "points said on `test`"]
    head = [f"{WORLDS} memories", *columns, f"points on {NEW} new items"]
    rows = [row_of(kind, own) for kind, own in outcomes.items()]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows]


def main() -> None:
    """Print what became of every world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/evidence.md")
    options = parser.parse_args()
    outcomes = {kind: [outcome(n, kind) for n in range(WORLDS)] for kind in KINDS}
    lines = lines_of(outcomes)
    print("\n".join(lines))
    if options.write:
        write_section("audits", "\n".join(lines))


if __name__ == "__main__":
    main()
