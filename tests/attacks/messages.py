"""Messages and errors of any form, as a client of a provider may hand them on.

A server may send any JSON in place of what its protocol says, and a client library keeps much
of it: blocks without a type, calls nested a thousand deep, half characters. Whatever comes, a
judge returns a result that a file can hold, and never another verdict than the model's.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from pydantic import ValidationError

from tests.fakes import FakeChatModel
from tests.judges import item_of, of_method

GOOD = {"direct": {"preference": "1"}, "rubric": {"label": "1"}}
"""A verdict of each judge that is tried."""
_texts = st.one_of(st.text(max_size=5), st.sampled_from(["\ud800", "\x00\x1b[2J", "1" * 400]))
_atoms = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), _texts)
odd = st.recursive(
    _atoms, lambda part: st.lists(part, max_size=2) | st.dictionaries(_texts, part, max_size=2)
)
_kinds = st.sampled_from(["text", "thinking", "tool_use", "refusal", "image", "output_text"])
_tokens = st.dictionaries(st.sampled_from(["token", "logprob", "bytes", "top_logprobs"]), odd)
_metadata = ("finish_reason", "status", "incomplete_details", "usage", "service_tier")


def _blocks(text: str) -> st.SearchStrategy[object]:
    names = st.sampled_from(["text", "refusal", "input", "summary", "reasoning"])
    kinds, values = _kinds | odd, odd | st.just(text)
    return st.one_of(
        st.just({"type": "text", "text": text}),
        st.just(text),
        st.builds(lambda kind, name, value: {"type": kind, name: value}, kinds, names, values),
    )


def _deep(levels: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


@st.composite
def messages(draw: Any) -> tuple[str, AIMessage]:
    """Draw the method that asks, and a message with a verdict in it or without."""
    method = draw(st.sampled_from([*GOOD]))
    text = json.dumps({"explanation": "x", **GOOD[method]})
    arguments = st.dictionaries(_texts, odd, max_size=2) | st.integers(0, 3_000).map(_deep)
    call = st.fixed_dictionaries({"name": _texts, "args": arguments, "id": _texts})
    cut = st.fixed_dictionaries(
        {"name": _texts, "args": _texts, "id": _texts, "error": _texts | st.none()}
    )
    parts = {
        "content": st.lists(_blocks(text), max_size=3) | _texts.map(lambda odd: text + odd),
        "response_metadata": st.dictionaries(st.sampled_from(_metadata), odd, max_size=1)
        | st.lists(_tokens, max_size=2).map(lambda each: {"logprobs": {"content": each}}),
        "additional_kwargs": st.dictionaries(
            st.sampled_from(["tool_calls", "function_call", "refusal"]), odd, max_size=1
        ),
        "tool_calls": st.lists(call, max_size=2),
        "invalid_tool_calls": st.lists(cut, max_size=1),
    }
    names = draw(st.sets(st.sampled_from([*parts]), min_size=1, max_size=2))
    fields = {"content": text, **{name: draw(parts[name]) for name in sorted(names)}}
    try:
        return method, AIMessage(**fields)
    except (ValidationError, TypeError, ValueError):
        return method, AIMessage(str(fields["content"]))  # LangChain makes no such message


@cache
def _judge(method: str) -> Any:
    return of_method(method, FakeChatModel(replies=[]), repairs=0)


def problem(tried: tuple[str, AIMessage]) -> str:
    """What is wrong with the result of a judge that gets a message; empty: nothing."""
    method, message = tried
    judge = _judge(method)
    judge.model.replies = lambda _: message
    try:
        result = judge.invoke(item_of(method))
        json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
    except Exception as exc:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"{method}: {exc!r}"
    verdict = result["verdict"]
    choice = verdict.get("preference", verdict.get("label"))
    return "" if choice in {"A", 1} or (choice is None and verdict["failures"]) else repr(verdict)
