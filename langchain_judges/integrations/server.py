"""Judges as graphs of a LangGraph server with untrusted clients.

The context of a run or an assistant holds options of the method, and `preset`. Each option
declares what a client may set: no path, no model, no pattern, and no number above its bound.
The owner of the server sets environment variables:

- `JUDGES_MODEL`: the name of the model; default `local`. Several, separated by commas, are the
  members of a jury or cascade, and the first of them serves all other graphs. A model is
  created at the first run, never when the server starts or draws a graph.
- `JUDGES_MEMORY`: folder of the memory that all judges of the server share; without it the
  ALLURE judge and its audit share one that ends with the server.
- `JUDGES_MAX_CALLS`: the most calls of one run, including repairs; default 500.
- `JUDGES_MAX_CHARACTERS`: the most characters of a run's input, and of its options; default
  100,000.
- `JUDGES_LIMITS`: other upper bounds, as JSON: `{"samples": 64, "panel.dynamic": 30}`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph_sdk.runtime import ServerRuntime

from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods.allure import create_allure_judge
from langchain_judges.methods.allure.audit import create_allure_audit
from langchain_judges.methods.allure.options import ALLURE
from langchain_judges.methods.allure.state import AuditOptions
from langchain_judges.methods.describe import metadata_of
from langchain_judges.methods.graph import JudgeGraph, check_length
from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge, named
from langchain_judges.options import Options, check_client
from langchain_judges.writing.registry import WRITERS, load_writer

Graph = CompiledStateGraph[Any, Any, Any, Any]
GraphEntry = Callable[[RunnableConfig, ServerRuntime[Any]], Awaitable[Graph]]
Make = Callable[..., Graph]
"""Takes a model and options, and returns a compiled graph without checkpointer."""
OptionCheck = Callable[[Mapping[str, object]], None]
"""Rejects options that a client may not set."""


def serve(name: str) -> GraphEntry:
    """Return the entry point of a graph for a LangGraph server's `langgraph.json`.

    Args:
        name: A judge's method, `"write"` for the Branch-Solve-Merge writer, or `"audit"` for
            the audit of an ALLURE judge, whose clients set options of both.

    Raises:
        OptionError: The graph does not exist.

    Example:
        >>> from langchain_judges import serve
        >>> bsm = serve("bsm")
    """
    if name == "audit":
        return _entry(_make_audit, _check_audit)
    if name == "write":
        return _entry(partial(load_writer, "bsm"), _check_of(WRITERS["bsm"]))
    method: type[Options] = named(METHODS | COMBINATIONS, name, "graph")

    def make(model: str | BaseChatModel, **options: Any) -> Graph:
        if name == "allure" or os.environ.get("JUDGES_MEMORY"):
            options["memory"] = _memory()
        return load_judge(name, model, **options)

    return _entry(make, _check_of(method), several=name in COMBINATIONS)


def _make_audit(model: str | BaseChatModel, **options: Any) -> Graph:
    judge_options = {
        name: value for name, value in options.items() if name in ALLURE.model_fields
    }
    judge = create_allure_judge(model, memory=_memory(), **judge_options)
    # These options of an audit apply only if the audit creates the judge.
    audit_names = set(AuditOptions.model_fields) - {"instructions", "temperature"}
    audit_options = {name: value for name, value in options.items() if name in audit_names}
    return create_allure_audit(judge, _memory(), **audit_options)


def _entry(make: Make, check: OptionCheck, *, several: bool = False) -> GraphEntry:
    """Return an entry point.

    Args:
        make: Makes the graph.
        check: Checks the options of a run before it is made.
        several: Whether `make` takes all models that the server names, in a list.
    """

    @lru_cache(maxsize=64)
    def build(options: str) -> Graph:
        models = _models(os.environ.get("JUDGES_MODEL", "local"))
        model = list(models) if several and len(models) > 1 else models[0]
        own = json.loads(options)
        graph = make(model, **own)
        _check_calls(graph, own.get("repairs", 1))
        if isinstance(graph, JudgeGraph):
            return graph.copy({"most_characters": _most_characters()})
        return graph

    async def entry(config: RunnableConfig, runtime: ServerRuntime[Any]) -> Graph:
        execution = runtime.execution_runtime
        if execution is None:
            # Drawing a graph or reading a thread needs no model.
            return await asyncio.to_thread(make, GenericFakeChatModel(messages=iter(())))
        context = execution.context or config.get("configurable") or {}
        options = {name: value for name, value in context.items() if not _of_server(name)}
        text = json.dumps(options, sort_keys=True)
        check_length("the context", options, _most_characters())
        check({name: value for name, value in options.items() if name != "preset"})
        return await asyncio.to_thread(build, text)

    return entry


def _check_of(kind: type[Options]) -> OptionCheck:
    return lambda options: check_client(kind, options, _limits())


def _check_audit(options: Mapping[str, object]) -> None:
    """Check the options of an audit and of its judge, each by its own class."""
    own = {name: value for name, value in options.items() if name in AuditOptions.model_fields}
    rest = {name: value for name, value in options.items() if name not in own}
    check_client(AuditOptions, own, _limits())
    check_client(ALLURE, rest, _limits())


def _check_calls(graph: Graph, repairs: int) -> None:
    """Check how many calls a run may make, before it starts.

    Raises:
        OptionError: There are more than the owner allows.
    """
    most = _number("JUDGES_MAX_CALLS", 500)
    calls = metadata_of(graph).get("calls", 0) * (1 + repairs)
    if calls > most:
        raise OptionError(
            f"a run with these options may make {calls:,} calls; this server allows {most:,}"
        )


def _most_characters() -> int:
    return _number("JUDGES_MAX_CHARACTERS", 100_000)


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isdecimal():
        raise OptionError(f"{variable} must be a whole number, got {text!r}")
    return int(text)


def _limits() -> dict[str, int]:
    text = os.environ.get("JUDGES_LIMITS") or "{}"
    try:
        limits = json.loads(text)
    except ValueError:
        limits = None
    if not isinstance(limits, dict) or not all(type(most) is int for most in limits.values()):
        raise OptionError(
            f"JUDGES_LIMITS must be a JSON object of whole numbers by option, got {text!r}"
        )
    return limits


@lru_cache(maxsize=1)
def _memory() -> FailureMemory:
    return FailureMemory(path=os.environ.get("JUDGES_MEMORY"))


@lru_cache(maxsize=8)
def _models(names: str) -> tuple[BaseChatModel, ...]:
    return tuple(resolve_model(each.strip()) for each in names.split(","))


def _of_server(name: str) -> bool:
    """Return whether a key of a run's context belongs to the server."""
    return name.startswith(("__", "langgraph_", "checkpoint", "x-")) or name.endswith("_id")
