"""Look-ups in long runs: 60 synthetic runs of an agent of each size, judged by an ideal judge.

Each run holds the line that decides once, at a random place of a tool's result or of an
offloaded file. The judge searches for it where it is offered look-ups, and says what it has
seen. Tokens are bytes of all prompts by 4.

    python -m benchmarks.lookups 60
"""

from __future__ import annotations

import random
import sys
from typing import Any

from langchain_judges import create_rubric_judge
from langchain_judges.testing import FakeChatModel

SIZES = (4_000, 40_000, 400_000, 4_000_000)
PLACES = ("result", "file")
LINE, TASK = "refund issued: 41 euros", "Refund 41 euros."
# Tokens of the model's context: a run of 4,000 characters fits, one of 40,000 does not.
ROOM = 8_000


def searching(prompt: str) -> dict[str, Any]:
    """Search once, then say whether the line that decides was seen."""
    if "You collect evidence" in prompt:
        call = {"tool": "search", "arguments": '{"text": "refund issued"}'}
        return {"calls": [] if "Looked up" in prompt else [call]}
    return {"explanation": "seen", "label": "1" if LINE in prompt else "0"}


def run_with(size: int, seed: int, place: str) -> list[dict[str, Any]]:
    """A run of an agent that holds the line that decides once, in a result or in a file."""
    at = random.Random(seed).randrange(size - 40)
    text = "The quick brown fox. " * (size // 21 + 1)
    text = f"{text[:at]}\n{LINE}\n{text[at:size]}"
    call = {"name": "log", "args": {}, "id": "1"}
    result = "see file" if place == "file" else text
    output: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": result},
        {"role": "assistant", "content": "I have refunded 41 euros."},
    ]
    file = {"role": "file", "name": "/log.txt", "content": text}
    return [*output, file] if place == "file" else output


def measured(size: int, place: str, runs: int, **options: Any) -> dict[str, float]:
    """Number of runs judged right, and the mean calls, look-ups and tokens of each."""
    model = FakeChatModel(replies=searching)
    judge = create_rubric_judge(model, rubric="Was the refund issued?", **options)
    right = lookups = 0
    for seed in range(runs):
        row = {"input": TASK, "output": run_with(size, seed, place)}
        verdict = judge.invoke(row)["verdict"]
        right += verdict["label"] == 1
        lookups += len(verdict.get("lookups") or [])
    tokens = sum(len(prompt.encode()) for prompt in model.prompts) / 4
    calls = len(model.prompts)
    means = {"calls": calls / runs, "look-ups": lookups / runs, "tokens": tokens / runs}
    return {"right": right, **means}


ARMS: dict[str, dict[str, Any]] = {
    "look-ups": {"evidence": "auto", "context": ROOM},
    "the middle cut": {"context": ROOM},
    "whole": {},
}
"""With 8,000 tokens of room, and in a model that has room for all of it."""


def main(runs: int) -> None:
    """Print a line for each size, place and arm."""
    for size in SIZES:
        for place in PLACES:
            for name, options in ARMS.items():
                cells = measured(size, place, runs, **options)
                told = ", ".join(f"{each}: {value:,.1f}" for each, value in cells.items())
                print(f"{size:>9,} {place:6} {name:14} {told}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
