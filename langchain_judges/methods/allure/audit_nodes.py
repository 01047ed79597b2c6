"""Nodes of an audit, whose loop of rounds and questions to people is a graph of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Send

from langchain_judges.asking.effects import Update, emit_each
from langchain_judges.asking.nodes import StepNode

# Where a graph goes from a node.
Next = Sequence[Send] | Sequence[str] | str


class AuditNode(StepNode):
    """A node that tells one by one what it adds to some lists of the state."""

    def __init__(
        self,
        step: Callable[[Any], Update | Awaitable[Update]],
        name: str,
        events: Mapping[str, str],
    ) -> None:
        """Make a node.

        Args:
            step: From the state, or what a branch was sent, to what changes.
            name: What the graph calls it.
            events: State keys whose items are told one by one, and what an item is called.
        """
        self._step, self._events = step, events
        self.name: str = name

    async def step(self, state: Any, config: RunnableConfig | None) -> Update:
        """Do the step."""
        update = self._step(state)
        found: Update = await update if inspect.isawaitable(update) else update
        for key, kind in self._events.items():
            if isinstance(results := found.get(key), list):
                emit_each(kind, self.name, results)
        return found


class Route(Runnable[Any, Any]):
    """Says where a graph goes next, in the thread or event loop of the graph.

    LangGraph itself would call a plain function in a thread for asynchronous callers, and give
    it a run of its own in every trace.
    """

    def __init__(self, function: Callable[[Any], Next]) -> None:
        """Make a path for `add_conditional_edges`."""
        self._function = function
        self.name: str = function.__name__

    def invoke(self, input: object, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the next nodes."""
        return self._function(input)

    async def ainvoke(
        self, input: object, config: RunnableConfig | None = None, **_: Any
    ) -> Next:
        """Return the next nodes, in the running event loop."""
        return self._function(input)
