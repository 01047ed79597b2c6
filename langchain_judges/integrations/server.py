"""Judges as graphs of a LangGraph server with untrusted clients.

The context of a run or an assistant holds options of the method, and `preset`. A client sets
what the owner names (`settable`), never a path, a model or a pattern, and no number above
1,000; what the resulting judge may ask is bounded by `max_calls`, before its first call where
the number is known, and by a count while it runs.
The owner of the server sets environment variables:

- `JUDGES_MODEL`: the name of the model; default `local`. Several, separated by commas, are the
  members of a jury or cascade, and the first of them serves all other graphs. A model is
  created at the first run, never when the server starts or draws a graph.
- `JUDGES_MEMORY`: file of the memory that all judges of the server share; without it the
  ALLURE judge and its audit share one that ends with the server.
- `JUDGES_MAX_CALLS`: the most calls of one run, including repairs; default 500. Each resume of
  an audit is a run.
- `JUDGES_MAX_CHARACTERS`: the most characters of a run's input, and of its options; default
  100,000.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyInputError, GraphRecursionError
from langgraph_sdk.runtime import ServerRuntime

from langchain_judges.asking.models import ModelLike, resolve_model
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods import declaration, describe
from langchain_judges.methods.allure.audit import create_allure_audit
from langchain_judges.methods.allure.state import AuditOptions
from langchain_judges.methods.graph import Bounds, JudgeGraph, check_length
from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge, named
from langchain_judges.options import check_client, client_schema, settable
from langchain_judges.writing.writers import WRITERS, load_writer

GraphEntry = Callable[[RunnableConfig, ServerRuntime[Any]], Awaitable[JudgeGraph]]
# Takes a model and options, and returns a compiled graph without checkpointer.
Make = Callable[..., JudgeGraph]


def serve(
    name: str, *, settable: Sequence[str] | None = None, max_calls: int | None = None
) -> GraphEntry:
    """Make the entry point of a graph for a LangGraph server's `langgraph.json`.

    Args:
        name: A judge's method, `"write"` for the Branch-Solve-Merge writer, or `"audit"` for
            the audit of an ALLURE judge.
        settable: The options that a client may set; default all that are no path, no model and
            no live object. `preset` is one more of them.
        max_calls: The most calls of one run; default `JUDGES_MAX_CALLS`.

    Raises:
        OptionError: The graph does not exist, or `settable` names what no client may set.

    Example:
        >>> from langchain_judges.integrations import serve
        >>> bsm = serve("bsm", settable=("criteria", "scale"), max_calls=40)
    """
    make: Make
    kind: type[declaration.GraphOptions]
    if name == "audit":
        make, kind = lambda model, **own: create_allure_audit(model, _memory(), **own), AuditOptions
    elif name == "write":
        make, kind = partial(load_writer, "branch"), WRITERS["branch"]
    else:
        make, kind = partial(_make_judge, name), named(METHODS | COMBINATIONS, name, "graph")
    return _entry(make, _Client(kind, settable), max_calls, several=name in COMBINATIONS)


def _make_judge(name: str, model: ModelLike, **options: Any) -> JudgeGraph:
    if name == "allure" or os.environ.get("JUDGES_MEMORY"):
        options["memory"] = _memory()
    return load_judge(name, model, **options)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Filter of a log: a refused input is no error of the server, and has no traceback."""
    parts = record.msg if isinstance(record.msg, dict) else {}
    event = str(parts.get("event", record.msg))
    if not any(f"{kind.__module__}.{kind.__name__}'" in event for kind in _REFUSALS):
        return True
    for name in ("exc_info", "exception"):
        parts.pop(name, None)
    record.exc_info = record.exc_text = None
    return not event.startswith("Run encountered")  # said again when the run has ended


_REFUSALS = (InputError, OptionError, EmptyInputError, GraphRecursionError)
logging.getLogger("langgraph_api.worker").addFilter(_in_one_line)


class _Client:
    """Options that a client may set."""

    def __init__(self, kind: type[declaration.GraphOptions], names: Sequence[str] | None) -> None:
        """Refuse names that no client may set."""
        own = None if names is None else [name for name in names if name != "preset"]
        self._kind, self._names = kind, settable(kind, own)
        self._sets_preset = names is None or "preset" in names

    def schema(self) -> dict[str, Any]:
        """The JSON schema of all that may be set."""
        return client_schema(self._kind, self._names)

    def check(self, options: Mapping[str, object]) -> None:
        """Check what a client sets.

        Raises:
            OptionError: Only the owner may set it, or its value is not allowed.
        """
        values = dict(options)
        preset = values.pop("preset", None)
        if preset is not None and not (self._sets_preset and isinstance(preset, str)):
            rule = "must be a text" if self._sets_preset else "can be set by the owner only"
            raise OptionError(f"`preset` {rule}, got {preset!r}")
        check_client(self._kind, values, self._names)


def _entry(
    make: Make, client: _Client, max_calls: int | None, *, several: bool = False
) -> GraphEntry:
    """An entry point.

    Args:
        make: Makes the graph.
        client: Checks the options of a run before it is made.
        max_calls: The most calls of one run.
        several: Whether `make` takes all models that the server names, in a list.
    """

    @lru_cache(maxsize=64)
    def build(options: str) -> JudgeGraph:
        models = _models(os.environ.get("JUDGES_MODEL", "local"))
        model = list(models) if several and len(models) > 1 else models[0]
        own = json.loads(options)
        most = _number("JUDGES_MAX_CALLS", 500) if max_calls is None else max_calls
        graph = make(model, **own)
        calls = describe.metadata_of(graph).get("calls", 0) * (1 + own.get("repairs", 1))
        if calls > most:
            rule = f"may make {calls:,} calls; this server allows {most:,}"
            raise OptionError(f"a run with these options {rule}")
        return graph.copy({"bounds": Bounds(_number(*_CHARACTERS), most, client.schema())})

    async def entry(config: RunnableConfig, runtime: ServerRuntime[Any]) -> JudgeGraph:
        execution = runtime.execution_runtime
        if execution is None:
            # Drawing a graph or reading a thread needs no model.
            graph = await asyncio.to_thread(make, GenericFakeChatModel(messages=iter(())))
            return graph.copy({"bounds": Bounds(context=client.schema())})
        context = execution.context or config.get("configurable") or {}
        options = {name: value for name, value in context.items() if not _of_server(name)}
        check_length("the context", options, _number(*_CHARACTERS))
        client.check(options)
        return await asyncio.to_thread(build, json.dumps(options, sort_keys=True))

    return entry


_CHARACTERS = ("JUDGES_MAX_CHARACTERS", 100_000)


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isdecimal():
        raise OptionError(f"{variable} must be a whole number, got {text!r}")
    return int(text)


_memories = lru_cache(maxsize=None)(FailureMemory)
_memory_lock = threading.Lock()


def _memory() -> FailureMemory:
    """The one memory of this process, whichever graph asks for it first."""
    with _memory_lock:
        return _memories(path=os.environ.get("JUDGES_MEMORY"))


@lru_cache(maxsize=8)
def _models(names: str) -> tuple[BaseChatModel, ...]:
    return tuple(resolve_model(each.strip()) for each in names.split(","))


def _of_server(name: str) -> bool:
    """Whether a key of a run's context belongs to the server."""
    return name.startswith(("__", "langgraph_", "checkpoint", "x-")) or name.endswith("_id")
