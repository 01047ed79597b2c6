"""How every judgment begins: its check, and what a memory recalls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from langgraph.constants import END, START
from langgraph.types import Overwrite

from langchain_judges.asking.nodes import Next, Route
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.memory.shown import Recaller
from langchain_judges.methods.context import JudgeContext, MethodGraph
from langchain_judges.verdict import Item, LabelVerdict, Pair, Verdict


@dataclass(frozen=True)
class RowSteps(ABC):
    """The steps of a judge: what a judgment begins with, whatever is judged."""

    context: JudgeContext
    empty: ClassVar[Mapping[str, object]] = {}
    """State keys of the method as they are before it begins."""
    lists: ClassVar[tuple[str, ...]] = ()
    """State keys of the method that parallel calls add to."""

    @abstractmethod
    def begin(self, state: Any) -> Update:
        """Check the row; a verdict in the update ends the judgment."""

    @abstractmethod
    def recall(self, state: Any) -> Steps[Update]:
        """Recall the examples that fit the row."""

    def blank(self, row: Pair | Item) -> Update:
        """Return the state before a row is judged: what a checkpointed thread holds is old."""
        lists = {key: Overwrite([]) for key in (*self.lists, "usages")}
        failures = Overwrite(self.context.cut(row))
        return {**lists, "failures": failures, **self.empty, "verdict": None}

    def decided(self, row: Pair | Item, verdict: Verdict | LabelVerdict) -> Update:
        """Return the state where a verdict needs no call: no example is recalled either."""
        recaller = self.context.recaller
        return {
            **self.blank(row),
            **(recaller.empty_update if recaller else {}),
            "verdict": verdict,
        }

    @property
    def recaller(self) -> Recaller:
        """How the judge asks its memory; only for nodes of a judge that has one."""
        assert self.context.recaller  # noqa: S101 - the nodes that ask it exist only with a memory
        return self.context.recaller


def begin(
    graph: MethodGraph,
    steps: RowSteps,
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
        return "recall" if steps.context.recaller else first(state)

    graph.add_node("begin", steps.context.plain(steps.begin))
    graph.add_edge(START, "begin")
    if steps.context.recaller:
        graph.add_node("recall", steps.context.node(steps.recall))
        graph.add_conditional_edges("recall", Route(first), list(targets))
        graph.add_conditional_edges("begin", Route(unless_decided), ["recall", END])
    else:
        graph.add_conditional_edges("begin", Route(unless_decided), [*targets, END])
