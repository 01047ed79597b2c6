"""What a graph's thread has paid for, written down before the next step: nothing is paid twice.

LangGraph writes the result of a node when its pool finds the time, and drops the results of
branches that an exception in another one cancels. The journal stands in the same checkpointer,
in a thread of its own beside the graph's, and each entry is written before the node that paid
for it returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.config import get_config

from langchain_judges.asking.steps import SingleFlight, Steps, Wait

T = TypeVar("T")


def _always(_: object) -> bool:
    return True


class _Page(NamedTuple):
    """The journal of one thread."""

    config: RunnableConfig
    entries: dict[str, object]


@dataclass
class ThreadJournal:
    """Plain values by key, for the thread of the graph that is running.

    Args:
        saver: The graph's checkpointer; without one nothing is kept.
    """

    saver: BaseCheckpointSaver[Any] | None
    _pages: SingleFlight[_Page] = field(default_factory=SingleFlight)

    @classmethod
    def of(cls, checkpointer: BaseCheckpointSaver[Any] | bool | None) -> ThreadJournal:
        """Return the journal of a graph, by what its option `checkpointer` is."""
        return cls(checkpointer if isinstance(checkpointer, BaseCheckpointSaver) else None)

    def once(
        self,
        key: str,
        compute: Callable[[], Steps[T]],
        keep: Callable[[T], bool] = _always,
    ) -> Steps[T]:
        """Return what was computed for a key, before a kill even; else compute it.

        Args:
            key: What the value follows from.
            compute: Makes the value, which must be plain data.
            keep: Says whether a value is one to keep.
        """
        thread, saver = _running(), self.saver
        if saver is None or thread is None:
            return (yield from compute())
        page, _ = yield from self._pages.get(thread, lambda: _opened(saver, thread), bool)
        if key in page.entries:
            return cast("T", page.entries[key])
        value = yield from compute()
        if keep(value):
            writes = [("entry", {"key": key, "value": value})]
            yield Wait(
                lambda: saver.put_writes(page.config, writes, key),
                lambda: saver.aput_writes(page.config, writes, key),
            )
            page.entries[key] = value
        return value

    def close(self, config: RunnableConfig | None = None) -> Steps[None]:
        """Forget a thread's entries: its graph is done.

        Args:
            config: Names the thread; None: the one that is running.
        """
        saver = self.saver
        thread = _running() if config is None else thread_of(config)
        if saver is None or thread is None:
            return
        self._pages.forget(thread)
        yield Wait(
            lambda: saver.delete_thread(_name(thread)),
            lambda: saver.adelete_thread(_name(thread)),
        )


def key_of(*parts: object) -> str:
    """Return the key of what follows from some plain data."""
    data = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def thread_of(config: RunnableConfig | None) -> str | None:
    """Return the name of the thread that a configuration asks for."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def _running() -> str | None:
    try:
        return thread_of(get_config())
    except RuntimeError:  # not inside a graph
        return None


def _name(thread: str) -> str:
    return f"{thread}:journal"


def _opened(saver: BaseCheckpointSaver[Any], thread: str) -> Steps[_Page]:
    place: RunnableConfig = {"configurable": {"thread_id": _name(thread), "checkpoint_ns": ""}}
    saved: CheckpointTuple | None = yield Wait(
        lambda: saver.get_tuple(place), lambda: saver.aget_tuple(place)
    )
    if saved is None:
        empty = empty_checkpoint()
        config: RunnableConfig = yield Wait(
            lambda: saver.put(place, empty, {}, {}), lambda: saver.aput(place, empty, {}, {})
        )
        return _Page(config, {})
    entries = [value for _, adapter, value in saved.pending_writes or () if adapter == "entry"]
    return _Page(saved.config, {entry["key"]: entry["value"] for entry in entries})
