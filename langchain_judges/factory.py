"""What every factory does: choose prompts, and mark a graph with what it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypeVar, get_origin, get_type_hints

from langchain_core.prompts import ChatPromptTemplate
from langgraph.constants import START
from langgraph.pregel import Pregel

from langchain_judges.errors import InputError, OptionError

Graph = TypeVar("Graph", bound=Pregel[Any, Any, Any, Any])

SPARE_THREADS = 8
"""Threads of a synchronous run beyond its branches: checkpoints are written by the same
pool, and a full pool would leave a finished branch unsaved when the process dies."""


def prompt_set(
    own: Mapping[str, ChatPromptTemplate], replaced: Mapping[str, ChatPromptTemplate] | None
) -> tuple[dict[str, ChatPromptTemplate], str]:
    """Return a method's prompts, some replaced by the caller's, and a hash of them all.

    Raises:
        OptionError: A name is unknown, or a replacement asks for a variable that the step
            does not fill.
    """
    chosen = dict(own)
    for step, prompt in (replaced or {}).items():
        if step not in own:
            raise OptionError(f"`prompts` takes {sorted(own)!r}, got {step!r}")
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
    graph.nodes[START].mapper = _whole(graph.builder.input_schema)  # type: ignore[attr-defined]
    if memory is not None:
        # Not in the metadata, which traces carry: its version changes. Copies of a graph
        # share their builder.
        graph.builder.memory = memory  # type: ignore[attr-defined]
    return graph.with_config(metadata=metadata, max_concurrency=branches + SPARE_THREADS)


def _whole(schema: Any) -> Callable[[object], dict[str, Any]]:
    """Return how an input is read: it is a dictionary, and what it leaves out is None.

    A checkpointed thread keeps every key that its next run is not given: a pair would be
    judged by the reference of the pair before it.
    """
    hints = get_type_hints(schema, include_extras=True)
    optional = dict.fromkeys(key for key in hints if get_origin(hints[key]) is NotRequired)
    needed = ", ".join(f"`{key}`" for key in hints if key not in optional)

    def read(given: object) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise InputError(
                f"the input must be a dictionary with {needed}, got {type(given).__name__}"
            )
        return {**optional, **given}

    return read


def memory_of(graph: object) -> Any:
    """Return the memory that a graph's verdicts depend on, or None."""
    return getattr(getattr(graph, "builder", None), "memory", None)
