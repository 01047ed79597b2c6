"""What the graphs of combined judges share: how they begin, and their mark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.constants import END, START
from langgraph.types import Overwrite

from langchain_judges.asking.nodes import Next, Route, plain
from langchain_judges.asking.steps import Update
from langchain_judges.memory.shown import RememberedPair
from langchain_judges.methods.combination import SHARED, Combination
from langchain_judges.methods.context import SPARE_THREADS, MethodGraph
from langchain_judges.methods.marks import Kind, metadata_of
from langchain_judges.methods.members import Member
from langchain_judges.rows.checks import check_item, check_pair
from langchain_judges.rows.texts import judged
from langchain_judges.verdict import Item, even_verdict

if TYPE_CHECKING:
    from langchain_judges.methods.combined import CombinedGraph

RowState = TypeVar("RowState", bound=Mapping[str, Any])


@dataclass(frozen=True)
class Start:
    """How a judgment by members begins."""

    kind: Kind
    lists: tuple[str, ...]
    """State keys that its nodes add to."""
    empty: Mapping[str, object]
    """Other state keys as they are before it begins."""

    def begin(self, state: Mapping[str, Any]) -> Update:
        """Check the row; two identical texts are a tie already, without a call."""
        # A checkpointed thread still holds the lists of its previous run.
        update: Update = {key: Overwrite([]) for key in self.lists} | dict(self.empty)
        if self.kind == "item":
            check_item(state)
            return {**update, "verdict": None}
        check_pair(state)
        same = judged(state["output_a"]) == judged(state["output_b"])
        return {**update, "verdict": even_verdict() if same else None}


def graph_of(
    kind: Kind, of_pairs: tuple[type, type], of_items: tuple[type, type]
) -> MethodGraph:
    """Return an empty graph of a judge made of judges.

    Args:
        kind: What its members judge.
        of_pairs: The types of its state and of its result, of judges of pairs.
        of_items: The same of judges of single texts.
    """
    # Loaded on use: to check options and count calls takes no graph.
    from langgraph.graph import StateGraph

    state, result = of_pairs if kind == "pair" else of_items
    source = RememberedPair if kind == "pair" else Item
    return StateGraph(state, input_schema=source, output_schema=result)


def begin(
    graph: MethodGraph,
    start: Start,
    first: Callable[[RowState], Next],
    targets: Sequence[str],
) -> None:
    """Add the node with which every judgment by members begins.

    Args:
        graph: The graph.
        start: How it begins.
        first: Where it goes from there.
        targets: Every node that `first` may name.
    """
    graph.add_node("begin", plain(start.begin, {}))
    graph.add_edge(START, "begin")

    def unless_even(state: RowState) -> Next:
        return END if state.get("verdict") else first(state)

    graph.add_conditional_edges("begin", Route(unless_even), [*targets, END])


def finish(
    options: Combination,
    members: tuple[Member, ...],
    kind: Kind,
    builder: MethodGraph,
) -> CombinedGraph:
    """Compile a graph of members and mark it with what decides its verdicts.

    Args:
        options: The checked options.
        members: The judges that it asks.
        kind: What they judge.
        builder: The `StateGraph`.
    """
    # Loaded on use: to check options and count calls takes no graph.
    from langchain_judges.methods.combined import CombinedGraph

    compiled = builder.compile(
        checkpointer=options.checkpointer,
        store=options.store,
        name=options.name or options.method,
    )
    member_metadata = [metadata_of(member.judge) for member in members]
    plain_options = options.as_json()
    for name in (*SHARED, "methods"):
        plain_options.pop(name, None)
    metadata = {
        "method": options.method,
        "takes": kind,
        "options": {**plain_options, "members": list(map(_mark, member_metadata))},
        "model": {
            f"{member.name}: {step}": identity
            for member, marks in zip(members, member_metadata, strict=True)
            for step, identity in (marks.get("model") or {}).items()
        },
        "prompt_version": _digest([marks.get("prompt_version") for marks in member_metadata]),
        "calls": sum(int(marks.get("calls") or 0) for marks in member_metadata),
    }
    graph = CombinedGraph(**vars(compiled), options=options, model=members)  # type: ignore[arg-type]
    return graph.with_config(metadata=metadata, max_concurrency=len(members) + SPARE_THREADS)


def _mark(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides a member's verdicts; how it is called in traces does not."""
    options = {k: v for k, v in (metadata.get("options") or {}).items() if k != "name"}
    return {"method": metadata.get("method"), "options": options}


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()[:12]
