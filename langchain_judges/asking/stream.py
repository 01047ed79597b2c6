"""Emitting to a graph's stream what has landed, while the rest is still at work.

`judge.astream(pair, stream_mode="custom")` yields an `Event` for each question that was
answered, for each result (a vote, a sub-score, a table, a match) and for the verdict; a
writer emits its divisions and drafts, an audit the verdict of each item (the unit is its id),
its proposals, decisions and rounds.
Outside a graph, or where nobody listens, nothing is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph.config import get_stream_writer
from typing_extensions import TypedDict


class Event(TypedDict):
    """One thing that landed."""

    kind: str
    """`reply`, `verdict`, or what landed: `vote`, `subscore`, `table`, `match`, `role` …"""
    step: str
    """The node, such as `solve`."""
    unit: str
    """Of a reply: what was asked about, such as `Clarity (A first)`; else mostly empty."""
    data: Any
    """The result as the judge's state holds it; of a reply `{"failures", "usage"}`."""


def emit(kind: str, step: str, data: object, unit: str = "") -> None:
    """Send an event to the stream of the graph that is running, if there is one."""
    if writer := _writer():
        event: Event = {"kind": kind, "step": step, "unit": unit, "data": data}
        writer(event)


def emit_update(step: str, update: Mapping[str, object], events: Mapping[str, str]) -> None:
    """Emit every result among the state keys that a node changed.

    Args:
        step: The node.
        update: What it changed.
        events: State keys whose items are emitted one by one, and what an item is called.
    """
    parts = [
        (events[key], part)
        for key, value in update.items()
        if key in events and isinstance(value, list)
        for part in value
    ]
    if update.get("verdict"):
        parts.append(("verdict", update["verdict"]))
    for kind, part in parts:
        emit(kind, step, part)


def _writer() -> Callable[[Event], None] | None:
    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):  # not inside a graph
        return None
