"""Judges on fake models, and the situations in which they are plugged in."""

from __future__ import annotations

import json
import re
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, StateGraph

from langchain_judges import create_bsm_judge, create_drpe_judge, load_judge
from langchain_judges.methods.graph import Node
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import ServerCall, ServerReply, reply
from langchain_judges.verdict import Item, LabelVerdict, Verdict, even_verdict, no_usage
from tests import test_direct, test_sc2
from tests.fakes import FakeChatModel, goods, judged_by, writes
from tests.test_drpe import respond

PAIR = {"input": "Why?", "output_a": "good good", "output_b": "bad"}
ITEM = {"input": "Why?", "output": "good good", "expected": "good"}
FEW: dict[str, dict[str, Any]] = {
    name: dict(kind.few) for name, kind in METHODS.items() if kind.few
}
"""Options by method that keep its calls few."""
REMEMBERING: dict[str, dict[str, Any]] = {"bsm": {"merge": "model"}}
"""Options by method that have a step that is shown a memory, beside those."""


_SC2 = (
    "aspects to compare them by",
    "side by side in a table",
    "You compare two tables",
    '"preferred"',
)


def answer(prompt: str) -> str:
    """Answer as whichever judge or writer asks would have it: `good` is good."""
    # What is asked, without what the judged texts say.
    asked = re.sub(r"<response-.*?</response-", "", prompt, flags=re.DOTALL)
    if "<concepts-" in asked:
        return writes(prompt)
    if "You speak for different people" in asked:
        return respond(prompt)
    if any(text in asked for text in _SC2):
        return test_sc2.respond(prompt)
    if '"label"' in asked:
        text = prompt.split("<response-")[-1].partition("</response-")[0]
        return json.dumps({"label": str(int("good" in text)), "explanation": "because"})
    if '"reasoning"' in asked:
        return json.dumps({"reasoning": "because", "score": True})
    if "response 1 scored" in prompt:
        return judged_by(goods)(prompt)
    return test_direct.respond(prompt)


def answer_call(call: ServerCall) -> ServerReply:
    """Answer a call over HTTP, whose reply's form stands beside the prompt."""
    text = answer(call.prompt + json.dumps(call.body.get("response_format")))
    return reply(text.replace("SEED", str(call.body.get("seed"))))


def of_method(method: str, model: Any = None, **options: Any) -> Any:
    """A judge by the name of its method."""
    few = {**FEW.get(method, {}), **(REMEMBERING.get(method, {}) if "memory" in options else {})}
    return load_judge(method, model or FakeChatModel(replies=answer), **{**few, **options})


def item_of(method: str) -> dict[str, Any]:
    """A row of the kind that a method judges."""
    return PAIR if METHODS[method].takes == "pair" else ITEM


def bsm(**options: Any) -> Any:
    return create_bsm_judge(FakeChatModel(), **{"criteria": ["Depth"], **options})


def drpe(**options: Any) -> Any:
    options = {"panel": {"dynamic": 2}, "embeddings": DeterministicFakeEmbedding(size=8)}
    return create_drpe_judge(FakeChatModel(replies=respond), **options)


def broken(**options: Any) -> Any:
    """A judge whose model never says anything that can be used."""
    model = FakeChatModel(replies=lambda prompt: "I would rather not say.")
    return create_bsm_judge(model, **{"criteria": ["Depth"], "repairs": 0, **options})


class LabelState(Item, total=False):
    verdict: LabelVerdict


def labels(label: Any = None) -> Any:
    """A judge of one text, of the form of every judge here: 1 if it holds `good`."""

    async def evaluate(state: Any, _: Any) -> Any:
        value = label or int("good" in str(state["output"]))
        against = state.get("expected") or state.get("source")
        rubric = state.get("rubric")
        verdict: LabelVerdict = {
            "label": value,
            "score": 0.9 if value else 0.1,
            "confidence": None,
            "confidence_source": "none",
            "rationale": f"by {rubric}" if rubric else f"against {against}",
            "failures": [],
            "usage": no_usage(),
            "recalled": [],
        }
        return {"verdict": verdict}

    graph = StateGraph(LabelState, input_schema=Item)
    graph.add_node("evaluate", Node(evaluate, {"verdict": Any}, is_first=True, is_last=True))
    graph.add_edge(START, "evaluate")
    graph.add_edge("evaluate", END)
    return graph.compile(name="labels").with_config(metadata={"method": "labels", "model": {}})


def watched(judge: Any) -> tuple[Any, list[Any]]:
    """A judge of pairs that says what it is asked, and the list where it says so."""
    log: list[Any] = []

    def invoke(pair: Any) -> Any:
        log.append(pair)
        return judge.invoke(pair)

    return RunnableLambda(invoke).with_config(metadata={"takes": "pair"}), log


def verdicts(verdict: Verdict) -> Any:
    """A runnable that gives the same verdict on every pair."""
    judge: Runnable[Any, Any] = RunnableLambda(lambda _: {"verdict": verdict})
    return judge.with_config(metadata={"takes": "pair", "method": "fixed"})


def fixed(preference: Any, score: float | None) -> Any:
    return verdicts({**even_verdict(), "preference": preference, "score": score})
