"""The graph of a method: its phases, one node each, in the order of the paper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, get_origin, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import END, START

from langchain_judges.asking.account import Account, Booking, run_of
from langchain_judges.asking.effects import Step, Update, emit, run

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

# The graph of any method.
MethodGraph: TypeAlias = "StateGraph[Any, Any, Any, Any]"
# One phase of a method: from the graph's state, and the row's account, to what changes.
Phase = Callable[[Any, Account], Step[Update]]


class StepNode(Runnable[Any, Update], ABC):
    """A graph node that is one step, for threads and event loops alike.

    It adds no run of its own to a trace: LangGraph already records the node.
    """

    @abstractmethod
    async def step(self, state: Any, config: RunnableConfig | None) -> Update:
        """Do the step."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Update:
        """Run the step, waiting in this thread."""
        return run(self.step(input, config))

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> Update:
        """Run the step, waiting in the running event loop."""
        return await self.step(input, config)


class Node(StepNode):
    """A phase of a method; a state that has a verdict is left as it is."""

    def __init__(self, phase: Phase, name: str, *, is_first: bool = False) -> None:
        """Make a node.

        Args:
            phase: What it does.
            name: What the graph calls it.
            is_first: Whether a judgment begins here: a checkpointed thread holds the state of
                another one.
        """
        self._phase, self._is_first = phase, is_first
        self.name: str = name

    async def step(self, state: Mapping[str, Any], config: RunnableConfig | None) -> Update:
        """Do the step."""
        if not self._is_first and state.get("verdict"):
            return {}
        account = Account(state, run_of(config))
        if not self._is_first:
            before = Booking(state.get("failures") or [], state.get("usage"))
            account.bookings.append(before)
        update = await self._phase(state, account)
        if verdict := update.get("verdict"):
            emit("verdict", self.name, verdict)
        return {**update, "failures": account.failures, "usage": account.usage}


def chain(
    graph: MethodGraph,
    begin: Callable[[Any, Account], Update],
    phases: Sequence[Phase],
) -> MethodGraph:
    """Add the phases of a method to its graph, one after the other.

    Args:
        graph: The graph, without nodes.
        begin: What the first phase starts with: it checks the row and empties the state; a
            verdict in its update ends the judgment.
        phases: In order; a node is called as its function is.
    """

    async def first(state: Mapping[str, Any], account: Account) -> Update:
        update = begin(state, account)
        if update.get("verdict"):
            return update
        return {**update, **await phases[0]({**state, **update}, account)}

    names = [START, *(phase.__name__ for phase in phases), END]
    for number, (name, phase) in enumerate(zip(names[1:-1], phases, strict=True)):
        node = Node(phase if number else first, name, is_first=not number)
        graph.add_node(name, node)
    for here, there in pairwise(names):
        graph.add_edge(here, there)
    return graph


@cache
def blank_state(state: type, source: type) -> Mapping[str, Any]:
    """A state before its first phase, without the keys of its input.

    Args:
        state: The `TypedDict` of the state.
        source: That of the input.
    """
    given = get_type_hints(source)
    hints = get_type_hints(state).items()
    return {key: _blank(hint) for key, hint in hints if key not in given}


def _blank(hint: Any) -> object:
    kind = get_origin(hint) or hint
    return kind() if kind in (list, dict) else None
