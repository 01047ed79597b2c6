"""A jury: its options, and the graph [begin → ask (each member) → merge]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from annotated_types import Ge
from langgraph.constants import END
from langgraph.types import Send
from pydantic import AfterValidator, model_validator

from langchain_judges.asking.gathering import Gathered
from langchain_judges.asking.nodes import plain
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.rendering import RememberedPair
from langchain_judges.methods.ask_member import Opinion, ask_member, row_of
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.items import ItemResult, ItemState
from langchain_judges.methods.jury.tally import Ballots, label_verdict, pair_verdict
from langchain_judges.methods.marks import Kind, metadata_of
from langchain_judges.methods.members import Combination, Member
from langchain_judges.methods.members_graph import Start, begin, finish
from langchain_judges.methods.opinions import opinion_sketch, opinion_table
from langchain_judges.methods.options import check_quorum
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.options import ClientMost, Owner, Rule, factory
from langchain_judges.verdict import Item, add_usage

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

MemberWeights = Sequence[float] | Mapping[str, float]


def _usable(weights: MemberWeights | None) -> MemberWeights | None:
    values = weights.values() if isinstance(weights, Mapping) else weights or [1.0]
    if not any(weight > 0 for weight in values) or any(weight < 0 for weight in values):
        raise ValueError
    return weights


class JuryState(PairState, total=False):
    """State of a jury on pairs."""

    members: Gathered[Opinion]


class JuryResult(PairResult):
    """What a jury on pairs returns."""

    members: list[Opinion]


class ItemJuryState(ItemState, total=False):
    """State of a jury on single texts."""

    members: Gathered[Opinion]


class ItemJuryResult(ItemResult):
    """What a jury on single texts returns."""

    members: list[Opinion]


class Jury(Combination):
    """Create a judge that asks several judges about a row and takes the majority answer.

    A panel of different models costs less and is less biased than one large model (Verga et al.
    2024, arXiv:2404.18796), if its members make different errors: `metrics.effective_voters`
    and the summary of a run say how many independent voters it is worth.

    A member may be a judge of this package, another jury, any runnable whose metadata name
    its `method` and what it `takes`, a model, or a spec. All judge pairs, or all single texts.
    One that fails is reported in `failures`, and the verdict stands with `min_valid` others.

    Returns:
        A compiled graph to `{"verdict", "members"}`: `members` holds what each one said.
        `verdict.confidence` is the share of the votes, by weight, that say what the verdict
        says; `verdict.score` the mean of 1, 0.5 and 0 over them, with `combine="mean"` of their
        scores; of single texts the mean of labels, or of scores. Calls stand in `usage.by_step`
        under `member: step`.

    Raises:
        OptionError: An option is not allowed, or the members do not fit together.
        ModelSetupError: A model cannot be made.
    """

    method = "jury"
    summary = "Jury: several judges or models on the same row, and what most of them say."
    default_methods = ("relative", "cot", "plan_solve")
    budgets = (
        Budget(6),
        Budget(4, also={"methods": ["relative", "cot", "direct"]}),
    )
    events = {"members": "opinion"}
    evidence = (opinion_table("members", "What each member said", ("score", "Score")),)
    sketches = (opinion_sketch("members"),)

    combine: Literal["majority", "mean", "weighted"] = "majority"
    """`"majority"`: the most frequent answer (equal counts give a tie, for labels the first
    member's label); `"mean"`: the mean score; `"weighted"`: a majority weighted by
    `weights`."""
    weights: Annotated[
        Sequence[float] | Mapping[str, float] | None,
        AfterValidator(_usable),
        Owner(),
        Rule("weights of at least 0, one for each member, in a list or by name; one above 0"),
    ] = None
    """For `"weighted"`: your own, or those that `metrics.learned_weights` estimates without
    labels."""
    min_valid: Annotated[int, Ge(1), ClientMost(64)] | None = None
    """Members that must have judged the row; None: more than half."""

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        if (self.weights is None) == (self.combine == "weighted"):
            raise OptionError("`weights` go with `combine='weighted'`, one for each member")
        return self

    def check_size(self, size: int) -> None:
        """Check that as many members can judge a row as must."""
        check_quorum(self.min_valid, size)

    def combine_members(self, members: tuple[Member, ...], kind: Kind) -> JudgeGraph:
        """Return the jury of these members."""
        # Loaded on use: to check options and count calls takes no graph.
        from langgraph.graph import StateGraph

        self.check_size(len(members))
        steps = JurySteps(
            self, members, kind, _weights(self.weights, members), _grades(members)
        )
        if kind == "item" and self.combine == "mean" and not steps.grades:
            raise OptionError("`combine='mean'` needs labels that are numbers")
        state: Any = (JuryState, RememberedPair, JuryResult)
        if kind == "item":
            state = (ItemJuryState, Item, ItemJuryResult)
        graph = StateGraph(state[0], input_schema=state[1], output_schema=state[2])
        graph.add_node("ask", Node(steps.ask, self.events))
        graph.add_node("merge", plain(steps.merge, self.events))
        start = Start(kind, ("members", "failures", "usages"), {})
        begin(graph, start, steps.everybody, ["ask"])
        graph.add_edge("ask", "merge")
        graph.add_edge("merge", END)
        return finish(self, members, kind, graph)


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
    labels_of_members: list[Any] = []
    for member in members:
        labels = (metadata_of(member.judge).get("options") or {}).get("labels")
        labels_of_members += labels or (0, 1)
    if not all(isinstance(label, int | float) for label in labels_of_members):
        return ()
    return tuple(sorted(set(labels_of_members)))


@dataclass(frozen=True)
class JurySteps:
    """What each node does."""

    own: Jury
    members: tuple[Member, ...]
    kind: Kind
    weights: Mapping[str, float]
    grades: tuple[float, ...]

    def everybody(self, state: Any) -> list[Send]:
        """Ask all members at the same time."""
        row = row_of(self.kind, state)
        return [Send("ask", {"row": row, "place": n}) for n in range(len(self.members))]

    def ask(self, work: Mapping[str, Any]) -> Steps[Update]:
        """Ask one member."""
        member = self.members[work["place"]]
        answer = yield from ask_member(member, self.kind, work["row"])
        return {
            "members": [answer.opinion],
            "failures": answer.failures,
            "usages": [answer.usage],
        }

    def merge(self, state: Mapping[str, Any]) -> Update:
        """Make one verdict of what the members say."""
        order = {member.name: place for place, member in enumerate(self.members)}
        opinions = sorted(state["members"], key=lambda each: order[each["member"]])
        ballots = Ballots(
            opinions,
            self.weights,
            self.own.combine == "mean",
            self.own.min_valid or len(self.members) // 2 + 1,
        )
        totals = (state["failures"], add_usage(state["usages"]))
        if self.kind == "item":
            return {"verdict": label_verdict(ballots, self.grades, *totals)}
        return {"verdict": pair_verdict(ballots, *totals)}


create_jury = factory(Jury, Jury.build, "create_jury", "members")
