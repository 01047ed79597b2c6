"""The nodes with which every judgment begins: its check, and what a memory recalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from langgraph.constants import END, START

from langchain_judges.asking.nodes import Next, Route
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.methods.setup import Setup

if TYPE_CHECKING:
    from langgraph.graph import StateGraph


class Beginning(Protocol):
    """The steps of a judge, as far as every judge has them."""

    @property
    def setup(self) -> Setup:
        """What the steps work with."""

    def begin(self, state: Any) -> Update:
        """Check the row; a verdict in the update ends the judgment."""

    def recall(self, state: Any) -> Steps[Update]:
        """Recall the examples that fit the row."""


def begin(
    graph: StateGraph[Any, Any, Any, Any],
    steps: Beginning,
    first: Callable[[Any], Next],
    targets: Sequence[str],
) -> None:
    """Add the nodes with which every judgment begins: `begin`, and `recall`.

    Args:
        graph: The graph of the method.
        steps: Its steps.
        first: Where the method itself begins.
        targets: Every node that `first` may name.
    """

    def unless_decided(state: Any) -> Next:
        if state.get("verdict"):
            return END
        return "recall" if steps.setup.reminder else first(state)

    graph.add_node("begin", steps.setup.plain(steps.begin))
    graph.add_edge(START, "begin")
    if steps.setup.reminder:
        graph.add_node("recall", steps.setup.node(steps.recall))
        graph.add_conditional_edges("recall", Route(first), list(targets))
        graph.add_conditional_edges("begin", Route(unless_decided), ["recall", END])
    else:
        graph.add_conditional_edges("begin", Route(unless_decided), [*targets, END])
