"""What every judging method keeps to, built in or registered: one check of all of it.

`check_method` runs a method with a model that answers whatever schema it is asked for, and
with one that answers nothing usable, in this process and without a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges.asking.state import event_names
from langchain_judges.errors import OptionError
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.options import JudgeOptions
from langchain_judges.testing.model import FakeChatModel
from langchain_judges.verdict import LabelVerdict, Verdict

PAIR = {
    "input": "How do I keep basil alive through the winter?",
    "output_a": "Give it six hours of light and water it when the soil is dry.",
    "output_b": "Basil likes sun. Hope for the best.",
}
ITEM = {
    "input": "Which gate leads to the tower?",
    "output": "The north gate, then the stairs.",
    "expected": "The north gate.",
}
LESSON = "A remembered answer about tulips."
_VERDICTS = {"pair": Verdict, "item": LabelVerdict}


def fitting_reply(prompt: str) -> str:
    """Return a reply that fits the JSON schema at the end of a prompt, drawn by its hash.

    For `FakeChatModel(replies=fitting_reply)`: any judge can be asked without a script.
    """
    schema = json.loads(prompt.rpartition("\n")[2])
    return json.dumps(_value(schema, prompt))


def _value(schema: Mapping[str, Any], key: str) -> Any:
    drawn = int(hashlib.sha256(key.encode()).hexdigest()[:12], 16)
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return choices[drawn % len(choices)]
    if parts := schema.get("anyOf"):
        return _value(parts[0], key)
    kind = schema.get("type")
    if kind == "object":
        return {name: _value(part, key + name) for name, part in schema["properties"].items()}
    if kind == "array":
        size = max(schema.get("minItems", 0), min(schema.get("maxItems", 2), 2))
        return [_value(schema["items"], f"{key}{n}") for n in range(size)]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        return low + drawn % (int(high - low) + 1)
    return f"point {drawn % 1000}"


def check_method(
    kind: type[JudgeOptions],
    build: Callable[[Any, Any], JudgeGraph],
    options: Mapping[str, Any] | None = None,
) -> None:
    """Check that a method keeps what every method promises.

    Its class says what the command line, the docs, the server and comparisons need. It makes at
    most the calls that it announces; sync and async agree; a reply that cannot be used is no
    verdict; identical texts are a tie without a call; a checkpointed thread keeps nothing of
    the row before; what a memory recalls is shown; what lands is streamed.

    Args:
        kind: The class of its options.
        build: Makes a judge of checked options and a model.
        options: Options to check it with, beside those of `kind.few`.

    Raises:
        AssertionError: It does not keep one of them, named in the message.
    """
    check_declaration(kind)
    chosen = {**kind.few, **(options or {})}
    if "embeddings" in kind.model_fields:
        chosen.setdefault("embeddings", DeterministicFakeEmbedding(size=8))
    make = partial(_make, kind, build, chosen)
    _check_calls(kind, make)
    _check_failures(kind, make)
    _check_threads(kind, make)
    _check_memory(kind, make)
    _check_events(kind, make)


def check_declaration(kind: type[JudgeOptions]) -> None:
    """Check what a method's class says of itself."""
    name = kind.method
    _expect(kind.summary.endswith("."), f"the summary of {name!r} is a sentence")
    for option, field in kind.model_fields.items():
        _expect(field.description, f"`{option}` of {name!r} has a docstring")
    for each in ({}, kind.few, *kind.presets.values()):
        json.dumps(kind(**each).as_json())
    for rule in kind.budgets:
        for option in (rule.option, rule.spare, *rule.also):
            known = option.partition(".")[0] in {"", *kind.model_fields}
            _expect(known, f"the budget of {name!r} sets `{option}`, which is an option")


def _make(
    kind: type[JudgeOptions],
    build: Callable[[Any, Any], JudgeGraph],
    chosen: Mapping[str, Any],
    model: FakeChatModel,
    **more: Any,
) -> JudgeGraph:
    return build(kind(**{**chosen, **more}), model)


Make = Callable[..., JudgeGraph]


def _row(kind: type[JudgeOptions]) -> dict[str, Any]:
    return dict(PAIR if kind.takes == "pair" else ITEM)


def _other(kind: type[JudgeOptions]) -> dict[str, Any]:
    if kind.takes == "item":
        return {**ITEM, "output": "The south gate."}
    return {**PAIR, "output_a": PAIR["output_b"], "output_b": PAIR["output_a"]}


def _label(verdict: Mapping[str, Any]) -> object:
    return verdict.get("preference", verdict.get("label"))


def _check_calls(kind: type[JudgeOptions], make: Make) -> None:
    model = FakeChatModel(replies=fitting_reply)
    judge = make(model)
    result = judge.invoke(_row(kind))
    verdict, announced = result["verdict"], judge.options.calls()
    missing = set(_VERDICTS[kind.takes].__annotations__) - set(verdict) - {"recalled"}
    _expect(not missing, f"a verdict lacks {sorted(missing)!r}")
    _expect(_label(verdict) is not None, f"fitting replies are judged: {verdict['failures']}")
    made = verdict["usage"]["calls"]
    _expect(made == len(model.prompts), f"{made} calls are counted, {len(model.prompts)} made")
    _expect(0 < made <= announced, f"{made} calls are made, and {announced} announced")
    json.dumps(result)
    later = asyncio.run(make(FakeChatModel(replies=fitting_reply)).ainvoke(_row(kind)))
    _expect(later["verdict"] == verdict, "sync and async give the same verdict")
    if kind.takes == "pair":
        same = {**PAIR, "output_b": PAIR["output_a"]}
        tie = make(FakeChatModel(replies=[])).invoke(same)["verdict"]
        _expect(tie["preference"] == "tie", "identical texts are a tie without a call")


def _check_failures(kind: type[JudgeOptions], make: Make) -> None:
    silent = FakeChatModel(replies=lambda _: "I would rather not say.")
    verdict = make(silent, repairs=0).invoke(_row(kind))["verdict"]
    _expect(_label(verdict) is None, "a reply that cannot be used is no verdict")
    _expect(verdict["failures"], "a reply that cannot be used is a failure with its reason")


def _check_threads(kind: type[JudgeOptions], make: Make) -> None:
    thread: Any = {"configurable": {"thread_id": "1"}}
    judge = make(FakeChatModel(replies=fitting_reply), checkpointer=InMemorySaver())
    judge.invoke(_row(kind), thread)
    again = judge.invoke(_other(kind), thread)
    fresh = make(FakeChatModel(replies=fitting_reply)).invoke(_other(kind))
    for each in (again, fresh):
        # What one request is asked for once costs nothing the second time.
        each["verdict"].pop("usage")
    _expect(again == fresh, "a thread keeps nothing of the row before")


def _check_memory(kind: type[JudgeOptions], make: Make) -> None:
    memory = FailureMemory(embeddings=DeterministicFakeEmbedding(size=8))
    pair = kind.takes == "pair"
    lesson = {"input": "When are tulips planted?", "expected": "In autumn."}
    output = {"output_a": LESSON, "output_b": "In May."} if pair else LESSON
    wrong, right = ("B", "A") if pair else (0, 1)
    memory.remember([{**lesson, "output": output, "wrong": wrong, "corrected": right}])
    model = FakeChatModel(replies=fitting_reply)
    try:
        judge = make(model, memory=memory, recall="all")
    except OptionError:
        return  # It says that it takes none, or not with these options.
    result = judge.invoke(_row(kind))
    recalled = result["recalled"]["ids"]
    shown = sum(LESSON in prompt for prompt in model.prompts)
    _expect(bool(recalled) == bool(shown), f"{len(recalled)} recalled, in {shown} prompts")
    _expect(recalled, "a memory of one example recalls it")


def _check_events(kind: type[JudgeOptions], make: Make) -> None:
    judge = make(FakeChatModel(replies=fitting_reply))
    events: list[Any] = list(judge.stream(_row(kind), stream_mode="custom"))
    named = event_names(judge.builder.state_schema, judge.builder.output_schema)
    kinds = {event["kind"] for event in events}
    extra = kinds - {"reply", "verdict", *named.values()}
    _expect(not extra, f"events are those of the state, got {sorted(extra)!r} too")
    _expect({"reply", "verdict"} <= kinds, "replies and the verdict are streamed")
    json.dumps(events)


def _expect(holds: object, promise: str) -> None:
    # An `assert` would be left out by `python -O`.
    if not holds:
        raise AssertionError(f"not kept: {promise}")
