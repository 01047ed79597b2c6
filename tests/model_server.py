"""What the fake model server answers to judges, and the pairs that they judge."""

from __future__ import annotations

import json
from collections.abc import Callable

from langchain_judges.testing import ServerCall, ServerReply, reply

Behaviour = Callable[[ServerCall], ServerReply]


def refusal() -> ServerReply:
    return reply(None, refusal="I cannot help with that.")


def cut() -> ServerReply:
    return reply('{"score_1": 4, "sco', finish="length")


def filtered() -> ServerReply:
    return reply("", finish="content_filter")


def tool_call() -> ServerReply:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return reply(None, finish="tool_calls", tool_calls=[call])


def scores(first: int, second: int, why: str = "because") -> str:
    return json.dumps({"score_1": first, "score_2": second, "explanation": why})


def plan(*names: str) -> str:
    criteria = [{"name": name, "description": f"how much {name}"} for name in names]
    return json.dumps({"criteria": criteria})


FIVE = ("Accuracy", "Depth", "Clarity", "Tone", "Structure")


def good(call: ServerCall) -> ServerReply:
    """Plan five criteria; prefer the response that holds more of the word `good`."""
    if call.shape == "Plan":
        return reply(plan(*FIVE))
    if call.shape == "Choice":
        return reply(json.dumps({"explanation": "weighed", "preference": "1"}))
    if call.shape == "Answer":
        return reply(json.dumps({"answer": "the reference"}))
    first, second = responses(call.prompt)
    return reply(scores(1 + min(4, first.count("good")), 1 + min(4, second.count("good"))))


def responses(prompt: str) -> tuple[str, str]:
    """The two fenced responses of a solve prompt."""
    results = []
    for slot in ("1", "2"):
        start = prompt.index(f"<response-{slot}-")
        begin = prompt.index(">", start) + 1
        results.append(prompt[begin : prompt.index(f"</response-{slot}-", begin)])
    return results[0], results[1]


def pairs(n: int) -> list[dict[str, str]]:
    """Pairs of which `good` prefers A."""
    return [
        {"id": f"p{i}", "input": f"Why {i}?", "output_a": "good", "output_b": f"bad {i}"}
        for i in range(n)
    ]
