"""What an audit has paid for, written down before the next step: no reply is paid twice.

LangGraph writes the result of a node when its pool finds the time, so that a kill loses what
was finished meanwhile. The journal stands in the same checkpointer, in a thread of its own
beside the audit's, and each entry is written before the node that paid for it returns.
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

from langchain_judges.asking.gate import Once
from langchain_judges.asking.steps import Effect, Steps

T = TypeVar("T")


class _Page(NamedTuple):
    """The journal of one audit."""

    config: RunnableConfig
    entries: dict[str, Any]


@dataclass
class Journal:
    """Values by key, for the thread of the graph that is running.

    Args:
        saver: The audit's checkpointer; without one nothing is kept.
    """

    saver: BaseCheckpointSaver[Any] | None
    _pages: Once[_Page] = field(default_factory=Once)

    def once(self, key: str, compute: Callable[[], Steps[T]]) -> Steps[T]:
        """Return what was computed for a key, before a kill even; else compute it.

        Args:
            key: What the value follows from.
            compute: Makes the value, which must be plain data.
        """
        thread, saver = _thread(), self.saver
        if saver is None or thread is None:
            return (yield from compute())
        page, _ = yield from self._pages.get(thread, lambda: _opened(saver, thread), bool)
        if key not in page.entries:
            value = yield from compute()
            writes = [("entry", {"key": key, "value": value})]
            yield Effect(
                lambda: saver.put_writes(page.config, writes, key),
                lambda: saver.aput_writes(page.config, writes, key),
            )
            page.entries[key] = value
        return cast("T", page.entries[key])

    def close(self) -> Steps[None]:
        """Forget everything: the audit is done."""
        thread, saver = _thread(), self.saver
        if saver is None or thread is None:
            return
        self._pages = Once()
        yield Effect(
            lambda: saver.delete_thread(_name(thread)),
            lambda: saver.adelete_thread(_name(thread)),
        )


def key_of(*parts: Any) -> str:
    """Return the key of what follows from some plain data."""
    data = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _thread() -> str | None:
    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def _name(thread: str) -> str:
    return f"{thread}:journal"


def _opened(saver: BaseCheckpointSaver[Any], thread: str) -> Steps[_Page]:
    where: RunnableConfig = {"configurable": {"thread_id": _name(thread), "checkpoint_ns": ""}}
    saved: CheckpointTuple | None = yield Effect(
        lambda: saver.get_tuple(where), lambda: saver.aget_tuple(where)
    )
    if saved is None:
        empty = empty_checkpoint()
        config: RunnableConfig = yield Effect(
            lambda: saver.put(where, empty, {}, {}), lambda: saver.aput(where, empty, {}, {})
        )
        return _Page(config, {})
    entries = [value for _, channel, value in saved.pending_writes or () if channel == "entry"]
    return _Page(saved.config, {entry["key"]: entry["value"] for entry in entries})
