"""What every entry point of the server shares: the model, the options, the judge for them.

The model is named by `JUDGES_MODEL` (default `local`) and made at the first run, never when
the server starts or only draws a graph. A run's context, or its assistant's, holds options
of the method's factory, and `preset`. `JUDGES_MEMORY` names the folder of the memory that all
judges of the server share; without it the ALLURE judge and its audit have one that ends with
the server.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph_sdk.runtime import ServerRuntime

from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError
from langchain_judges.memory.failures import FailureMemory
from langchain_judges.methods.allure import create_allure_audit, create_allure_judge
from langchain_judges.methods.registry import METHODS, load_judge
from langchain_judges.writing.registry import WRITERS, load_writer

Graph = CompiledStateGraph[Any, Any, Any, Any]
Entry = Callable[[RunnableConfig, ServerRuntime[Any]], Awaitable[Graph]]
Make = Callable[..., Graph]

_SERVERS_OWN = {"cache", "checkpointer", "embeddings", "memory", "name", "prompts", "store"}
"""Keywords of factories that no client of the server may set."""


def serve(method: str) -> Entry:
    """Return the entry point of a judge by the name of its method."""

    def make(model: str | BaseChatModel, **options: Any) -> Graph:
        if method == "allure" or os.environ.get("JUDGES_MEMORY"):
            options["memory"] = _memory()
        return load_judge(method, model, **options)

    return serve_factory(make, {"preset", *METHODS[method].defaults})


def serve_writer(method: str) -> Entry:
    """Return the entry point of a writer by the name of its method."""

    def make(model: str | BaseChatModel, **options: Any) -> Graph:
        return load_writer(method, model, **options)

    return serve_factory(make, {"preset", *WRITERS[method].defaults})


def serve_audit() -> Entry:
    """Return the entry point of the audit of an ALLURE judge; options of both are its own."""
    of_judge, of_audit = _keywords(create_allure_judge), _keywords(create_allure_audit)

    def make(model: str | BaseChatModel, **options: Any) -> Graph:
        told = {name: value for name, value in options.items() if name in of_judge}
        judge = create_allure_judge(model, memory=_memory(), **told)
        # An audit takes these two only where it makes the judge.
        loop = of_audit - {"instructions", "temperature"}
        rest = {name: value for name, value in options.items() if name in loop}
        return create_allure_audit(judge, _memory(), **rest)

    return serve_factory(make, of_judge | of_audit)


def serve_factory(make: Make, accepted: set[str]) -> Entry:
    """Return the entry point of any graph that is made of a model and options.

    Args:
        make: Takes a model and options, and returns a compiled graph without checkpointer.
        accepted: Names of the options that a client may set.
    """

    @lru_cache(maxsize=64)
    def made(options: str) -> Graph:
        return make(_model(os.environ.get("JUDGES_MODEL", "local")), **json.loads(options))

    async def entry(config: RunnableConfig, runtime: ServerRuntime[Any]) -> Graph:
        execution = runtime.execution_runtime
        if execution is None:
            # Drawing a graph or reading a thread needs its form and no model.
            return await asyncio.to_thread(make, GenericFakeChatModel(messages=iter(())))
        given = execution.context or config.get("configurable") or {}
        options = json.dumps(_options(given, accepted - _SERVERS_OWN), sort_keys=True)
        return await asyncio.to_thread(made, options)

    return entry


@lru_cache(maxsize=1)
def _memory() -> FailureMemory:
    return FailureMemory(path=os.environ.get("JUDGES_MEMORY"))


def _keywords(factory: Callable[..., Graph]) -> set[str]:
    return set(factory.__kwdefaults__ or {})


@lru_cache(maxsize=8)
def _model(name: str) -> BaseChatModel:
    return resolve_model(name)


def _options(given: Mapping[str, Any], accepted: set[str]) -> dict[str, Any]:
    """Return the options among what the server gives a run.

    Raises:
        OptionError: A name is neither an option nor the server's own.
    """
    unknown = [name for name in given if name not in accepted and not _of_server(name)]
    if unknown:
        raise OptionError(f"there is no option {unknown[0]!r}; there are {sorted(accepted)}")
    options = {name: value for name, value in given.items() if name in accepted}
    for name, value in options.items():
        if isinstance(value, str) and value.startswith("local:"):
            raise OptionError(f"`{name}` may not open files of the server, got {value!r}")
    return options


def _of_server(name: str) -> bool:
    return name.startswith(("__", "langgraph_", "checkpoint", "x-")) or name.endswith("_id")
