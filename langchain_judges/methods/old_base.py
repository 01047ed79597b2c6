"""What every factory does: check, choose prompts, and mark a graph with what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NotRequired, TypeVar, get_origin, get_type_hints

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.messages import plain_row

Graph = TypeVar("Graph", bound=Pregel[Any, Any, Any, Any])

SPARE_THREADS = 8
"""Threads of a synchronous run beyond its branches: checkpoints are written by the same
pool, and a full pool would leave a finished branch unsaved when the process dies."""


def check_common(**given: object) -> None:
    """Check options that many factories take, each given by its own name.

    Raises:
        OptionError: The message names the option, the rule and the value.
    """
    for option, value in given.items():
        allowed, rule = _COMMON["*_model" if option.endswith("_model") else option]
        if not allowed(value):
            raise OptionError(f"`{option}` must be {rule}, got {value!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_written(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _none_or(kind: Any) -> Callable[[object], bool]:
    return lambda value: value is None or isinstance(value, kind)


_WHOLE = "a whole number of at least 0"
_COMMON: dict[str, tuple[Callable[[object], bool], str]] = {
    "cache": (_none_or(BaseCache), "a LangChain `BaseCache` or None"),
    "checkpointer": (
        _none_or(BaseCheckpointSaver | bool),
        "a LangGraph checkpointer, such as `SqliteSaver`, or None",
    ),
    "embeddings": (
        lambda value: value is None or hasattr(value, "embed_documents"),
        "a LangChain `Embeddings` or None",
    ),
    "instructions": (_none_or(str), "a text"),
    "name": (_is_written, "a text that is not empty"),
    "repairs": (_is_whole, _WHOLE),
    "seed": (_is_whole, _WHOLE),
    "store": (_none_or(BaseStore), "a LangGraph `BaseStore` or None"),
    "*_model": (
        lambda value: value is None or isinstance(value, BaseChatModel) or _is_written(value),
        "a chat model (without `bind` or `with_retry`), 'local', 'local:/path/to.gguf' or a "
        "name such as 'openai:gpt-5-mini'",
    ),
}
"""What the values of common options may be, and how that is said."""


def prompt_set(
    own: Mapping[str, ChatPromptTemplate], replaced: Mapping[str, ChatPromptTemplate] | None
) -> tuple[dict[str, ChatPromptTemplate], str]:
    """Return a method's prompts, some replaced by the caller's, and a hash of them all.

    Raises:
        OptionError: A name is unknown, or a replacement is no prompt or asks for a variable
            that the step does not fill.
    """
    if not isinstance(replaced, Mapping | None):
        raise OptionError(f"`prompts` must be prompts by {sorted(own)!r}, got {replaced!r}")
    chosen = dict(own)
    for step, prompt in (replaced or {}).items():
        if step not in own:
            raise OptionError(f"`prompts` takes {sorted(own)!r}, got {step!r}")
        if not isinstance(prompt, ChatPromptTemplate):
            raise OptionError(
                f"`prompts` takes a `ChatPromptTemplate` for {step!r}, got {prompt!r}"
            )
        extra = set(prompt.input_variables) - set(own[step].input_variables)
        if extra:
            raise OptionError(
                f"the prompt {step!r} may use {sorted(own[step].input_variables)!r}, "
                f"got {sorted(extra)!r} too"
            )
        chosen[step] = prompt
    templates = {step: _templates(prompt) for step, prompt in chosen.items()}
    digest = hashlib.sha256(json.dumps(templates, sort_keys=True).encode())
    return chosen, digest.hexdigest()[:12]


def _templates(prompt: ChatPromptTemplate) -> list[str]:
    return [message.pretty_repr() for message in prompt.messages]


def finish(  # noqa: PLR0913 - one keyword for each thing a graph is marked with
    graph: Graph,
    *,
    method: str,
    options: dict[str, Any],
    models: dict[str, dict[str, Any]],
    prompt_version: str,
    calls: int,
    branches: int,
    memory: Any = None,
) -> Graph:
    """Mark a compiled graph with what decides its verdicts, and give it room to work.

    Args:
        graph: The compiled graph.
        method: The method's name.
        options: Every option, as plain data.
        models: The identity of the model of each step.
        prompt_version: Hash of the prompts.
        calls: Calls for one pair, by the closed form of its settings.
        branches: Most branches at work at the same time.
        memory: The memory that its verdicts depend on; its version then keys results.
    """
    metadata = {
        "method": method,
        "options": options,
        "model": models,
        "prompt_version": prompt_version,
        "calls": calls,
    }
    if memory is not None:
        # Not in the metadata, which traces carry: its version changes. Copies of a graph
        # share their builder.
        graph.builder.memory = memory  # type: ignore[attr-defined]
    graph.channels[START] = _Input(graph.builder.input_schema)  # type: ignore[attr-defined]
    return graph.with_config(metadata=metadata, max_concurrency=branches + SPARE_THREADS)


class _Input(EphemeralValue[Any]):
    """The input of a graph, read before any checkpoint holds it.

    Messages become dictionaries, so that the state is plain JSON. What is left out becomes
    None: a checkpointed thread keeps every key that its next run is not given, and a pair
    would be judged by the texts or the reference of the pair before it.
    """

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self._read(value) for value in values])

    def _read(self, given: object) -> dict[str, Any]:
        needed, optional = _fields(self.typ)
        if not isinstance(given, Mapping):
            named = ", ".join(f"`{key}`" for key in needed)
            raise InputError(
                f"the input must be a dictionary with {named}, got {type(given).__name__}"
            )
        lacking = [key for key in needed if given.get(key) is None]
        # LangGraph draws a graph by an input without anything.
        if given and lacking:
            there = ", ".join(map(repr, given)) or "no fields"
            raise InputError(f"the field `{lacking[0]}` is missing or null; there are {there}")
        return {**dict.fromkeys((*needed, *optional)), **plain_row(given)}


@cache
def _fields(schema: Any) -> tuple[list[str], list[str]]:
    """Return what an input must have, and what it may leave out."""
    hints = get_type_hints(schema, include_extras=True)
    optional = [key for key, hint in hints.items() if get_origin(hint) is NotRequired]
    return [key for key in hints if key not in optional], optional
