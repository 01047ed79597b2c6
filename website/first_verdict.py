"""Print the README's first verdict: a large language model's recorded replies, judged again.

`python -m website.first_verdict` prints it; a test holds the README to it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from langchain_judges import create_bsm_judge
from langchain_judges.report.terminal import verdict_panel
from langchain_judges.testing import FakeChatModel

RECORDED = Path(__file__).with_suffix(".json")


def replay(recorded: dict[str, Any]) -> FakeChatModel:
    """Return a chat model that gives the recorded replies."""

    def reply(prompt: str) -> dict[str, Any]:
        by_name = recorded["replies"]
        name = next((name for name in by_name if f"The criterion: {name}:" in prompt), None)
        if name is None:
            return {"criteria": recorded["criteria"]}
        pair, replies = recorded["pair"], by_name[name]
        a_first = prompt.index(pair["output_a"]) < prompt.index(pair["output_b"])
        order: dict[str, Any] = replies["A first" if a_first else "B first"]
        return order

    return FakeChatModel(replies=reply)


def first_verdict() -> str:
    """Return the verdict as the terminal shows it, 80 columns wide."""
    recorded = json.loads(RECORDED.read_text())
    result = create_bsm_judge(replay(recorded), max_criteria=3).invoke(recorded["pair"])
    console = Console(width=80, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(verdict_panel({**recorded["pair"], **result}))
    # Tokens were not recorded; those are the fake model's.
    return capture.get().replace("7 calls, 70 tokens", "7 calls" + " " * 11)


if __name__ == "__main__":
    Console(highlight=False).print(first_verdict())
