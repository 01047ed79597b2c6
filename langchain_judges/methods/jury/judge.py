"""A jury: the graph [begin → ask (each member) → merge]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from langgraph.constants import END
from langgraph.types import Send
from typing_extensions import TypedDict

from langchain_judges.asking.effects import Update
from langchain_judges.asking.nodes import Emits, Node, joined, plain
from langchain_judges.errors import OptionError
from langchain_judges.methods.describe import metadata_of
from langchain_judges.methods.ensemble import (
    Member,
    ask_member,
    begin,
    finish,
    kind_of_members,
    read_members,
    row_of,
    schema_of,
)
from langchain_judges.methods.ensemble_options import MembersLike, Opinion
from langchain_judges.methods.items import ItemResult, ItemState
from langchain_judges.methods.jury.options import (
    Ballots,
    Jury,
    MemberWeights,
    label_verdict,
    pair_verdict,
)
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.options import factory
from langchain_judges.rows.checks import Kind
from langchain_judges.verdict import Label, add_usage

if TYPE_CHECKING:
    from langchain_judges.methods.ensemble import CombinedGraph


class JuryState(PairState, total=False):
    """State of a jury on pairs."""

    members: Annotated[list[Opinion], Emits("opinion"), joined]


class JuryResult(PairResult):
    """What a jury on pairs returns."""

    members: list[Opinion]


class ItemJuryState(ItemState, total=False):
    """State of a jury on single texts."""

    members: Annotated[list[Opinion], Emits("opinion"), joined]


class ItemJuryResult(ItemResult):
    """What a jury on single texts returns."""

    members: list[Opinion]


class MemberWork(TypedDict):
    """Input of one member's judgment."""

    row: Mapping[str, object]
    place: int


def _weights(weights: MemberWeights | None, members: Sequence[Member]) -> dict[str, float]:
    names = [member.name for member in members]
    if weights is None:
        return dict.fromkeys(names, 1.0)
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise OptionError(f"`weights` must name {names!r}, got {sorted(weights)!r}")
        return dict(weights)
    if len(weights) != len(names):
        raise OptionError(f"`weights` must be one for each of {names!r}, got {weights!r}")
    return dict(zip(names, weights, strict=True))


def _grades(members: Sequence[Member]) -> tuple[float, ...]:
    """Return the labels of judges of single texts; none where a label is a text."""
    labels: set[Label] = set()
    for member in members:
        labels.update((metadata_of(member.judge).get("options") or {}).get("labels") or (0, 1))
    numbers = [label for label in labels if isinstance(label, int | float)]
    return tuple(sorted(numbers)) if len(numbers) == len(labels) else ()


@dataclass(frozen=True)
class JurySteps:
    """What each node does."""

    options: Jury
    members: tuple[Member, ...]
    kind: Kind
    weights: Mapping[str, float]
    grades: tuple[float, ...]

    def everybody(self, state: JuryState | ItemJuryState) -> list[Send]:
        """Ask all members at the same time."""
        row = row_of(self.kind, state)
        work: list[MemberWork] = [{"row": row, "place": n} for n in range(len(self.members))]
        return [Send("ask", each) for each in work]

    async def ask(self, work: MemberWork) -> Update:
        """Ask one member."""
        member = self.members[work["place"]]
        answer = await ask_member(member, self.kind, work["row"])
        return {
            "members": [answer.opinion],
            "failures": answer.failures,
            "usages": [answer.usage],
        }

    def merge(self, state: JuryState | ItemJuryState) -> Update:
        """Make one verdict of what the members say."""
        order = {member.name: place for place, member in enumerate(self.members)}
        opinions = sorted(state["members"], key=lambda each: order[each["member"]])
        ballots = Ballots(
            opinions,
            self.weights,
            self.options.combine,
            self.options.min_valid or len(self.members) // 2 + 1,
        )
        totals = (state["failures"], add_usage(state["usages"]))
        if self.kind == "item":
            return {"verdict": label_verdict(ballots, self.grades, *totals)}
        return {"verdict": pair_verdict(ballots, *totals)}


def build(options: Jury, members: MembersLike) -> CombinedGraph:
    """Return the judge."""
    return _jury(options.without_shared(), read_members(options, members))


def _jury(options: Jury, members: tuple[Member, ...]) -> CombinedGraph:
    options.check_size(len(members))
    kind = kind_of_members(members)
    steps = JurySteps(
        options, members, kind, _weights(options.weights, members), _grades(members)
    )
    by_number = {"item": {"mean", "median"}, "pair": {"median"}}[kind]
    if options.combine in by_number and not (kind == "item" and steps.grades):
        raise OptionError(f"`combine={options.combine!r}` needs labels that are numbers")
    schema = schema_of(kind, (JuryState, JuryResult), (ItemJuryState, ItemJuryResult))
    graph = schema.graph()
    graph.add_node("ask", Node(steps.ask, schema.events))
    graph.add_node("merge", plain(steps.merge, schema.events))
    begin(graph, kind, schema, steps.everybody, ["ask"])
    graph.add_edge("ask", "merge")
    graph.add_edge("merge", END)
    return finish(options, members, kind, graph)


create_jury = factory(Jury, build, "create_jury", "members")
