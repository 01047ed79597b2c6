"""A cascade: its options, and the graph [begin → ask (until a judge is sure) → decide]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from langgraph.constants import END
from pydantic import AfterValidator

from langchain_judges.asking.gathering import Gathered
from langchain_judges.asking.nodes import Route, plain
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.rendering import RememberedPair
from langchain_judges.methods.ask_member import Opinion, ask_member, row_of
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.items import ItemResult, ItemState
from langchain_judges.methods.marks import Kind
from langchain_judges.methods.members import Combination, Member
from langchain_judges.methods.members_graph import Start, begin, finish
from langchain_judges.methods.opinions import opinion_sketch, opinion_table
from langchain_judges.methods.pairs import PairResult, PairState
from langchain_judges.metrics.doubt import certainty
from langchain_judges.options import Owner, Rule, factory
from langchain_judges.verdict import Failure, Item, add_usage, not_judged, not_labelled

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

Thresholds = float | Sequence[float | None]


class Stage(Opinion):
    """What one judge of a cascade decided, and how sure it was."""

    certainty: float | None


class CascadeState(PairState, total=False):
    """State of a cascade on pairs."""

    stages: Gathered[Stage]
    stage: str | None
    answer: dict[str, Any] | None
    """The verdict of the judge that was asked last."""


class CascadeResult(PairResult):
    """What a cascade on pairs returns."""

    stages: list[Stage]
    """What each judge said that was asked."""
    stage: str | None
    """The judge that decided; None: none of them."""


class ItemCascadeState(ItemState, total=False):
    """State of a cascade on single texts."""

    stages: Gathered[Stage]
    stage: str | None
    answer: dict[str, Any] | None
    subscores: list[Any]


class ItemCascadeResult(ItemResult):
    """What a cascade on single texts returns."""

    stages: list[Stage]
    stage: str | None
    subscores: list[Any]
    """What the judge that decided found by each criterion; empty without several criteria."""


def _shares(thresholds: Thresholds) -> Thresholds:
    values = [thresholds] if isinstance(thresholds, int | float) else thresholds
    if not all(value is None or 0 <= value <= 1 for value in values):
        raise ValueError
    return thresholds


class Cascade(Combination):
    """Create a judge that asks a cheap judge, and the next one only if that one is unsure.

    "Trust or Escalate" (Jung, Brahman & Choi 2024, arXiv:2407.18370): a judge's verdict is
    accepted if its certainty is at least the threshold; otherwise the next judge is asked. The
    certainty (`metrics.certainty`) is the verdict's confidence, 0 if the orders disagree,
    otherwise the margin of its score. `calibrate_cascade` finds thresholds on labelled rows,
    with a guarantee on the agreement. Ours: the stages may be any judges, of any method.

    Returns:
        A compiled graph to `{"verdict", "stage", "stages"}`: the verdict of the judge that
        decided (`stage`), and what each judge said that was asked. Where the last one has a
        threshold and is unsure too, the row is not judged (`unsure`).

    Raises:
        OptionError: An option is not allowed, or the judges do not fit together.
        ModelSetupError: A model cannot be made.
    """

    method = "cascade"
    summary = "Cascade: a cheap judge first, the next one only where it is unsure."
    default_methods = ("relative", "bsm")
    # What `relative` leaves of its 2 calls is for Branch-Solve-Merge.
    budgets = (
        Budget(
            3,
            2,
            "methods.1.options.max_criteria",
            also={"methods": ["relative", {"method": "bsm", "options": {}}]},
        ),
    )
    events = {"stages": "opinion"}
    evidence = (opinion_table("stages", "Judges asked in turn", ("certainty", "Certainty")),)
    sketches = (opinion_sketch("stages", "certainty"),)

    thresholds: Annotated[
        float | Sequence[float | None],
        AfterValidator(_shares),
        Owner(),
        Rule("a number from 0 to 1, or one for each judge (None: it never decides)"),
    ] = 0.5
    """The lowest certainty at which a verdict is accepted: one number for all judges but the
    last, or a list. If the list has no number for the last judge, that one always decides."""
    calibration: Annotated[
        Mapping[str, Any] | None, Owner(), Rule("what `calibrate_cascade` wrote, or None")
    ] = None
    """The rows on which the thresholds were found, and the guarantee; set by
    `calibrate_cascade`."""

    def gates(self, size: int) -> list[float | None]:
        """Return the threshold of each judge; 0 of one that always decides.

        Args:
            size: How many judges there are.

        Raises:
            OptionError: There are more or fewer thresholds than judges.
        """
        if isinstance(self.thresholds, int | float):
            return [*[float(self.thresholds)] * (size - 1), 0.0]
        thresholds = list(self.thresholds)
        if len(thresholds) not in {size - 1, size}:
            raise OptionError(
                f"`thresholds` must be {size - 1}, or {size} where the last judge may abstain; "
                f"got {thresholds!r}"
            )
        return thresholds if len(thresholds) == size else [*thresholds, 0.0]

    def check_size(self, size: int) -> None:
        """Check that there is a threshold for each judge."""
        self.gates(size)

    def combine_members(self, members: tuple[Member, ...], kind: Kind) -> JudgeGraph:
        """Return the cascade of these judges."""
        # Loaded on use: to check options and count calls takes no graph.
        from langgraph.graph import StateGraph

        gates = self.gates(len(members))
        steps = CascadeSteps(members, kind, gates)
        state: Any = (CascadeState, RememberedPair, CascadeResult)
        if kind == "item":
            state = (ItemCascadeState, Item, ItemCascadeResult)
        graph = StateGraph(state[0], input_schema=state[1], output_schema=state[2])
        graph.add_node("ask", Node(steps.ask, self.events))
        graph.add_node("decide", plain(steps.decide, self.events))
        empty: dict[str, Any] = {"stage": None, "answer": None}
        empty |= {"subscores": []} if kind == "item" else {}
        start = Start(kind, ("stages", "failures", "usages"), empty)
        begin(graph, start, lambda _: "ask", ["ask"])
        graph.add_conditional_edges("ask", Route(steps.after), ["ask", "decide"])
        graph.add_edge("decide", END)
        return finish(self, members, kind, graph)


@dataclass(frozen=True)
class CascadeSteps:
    """What each node does."""

    members: tuple[Member, ...]
    kind: Kind
    gates: Sequence[float | None]

    def ask(self, state: Mapping[str, Any]) -> Steps[Update]:
        """Ask the judge whose turn it is."""
        member = self.members[len(state["stages"])]
        answer = yield from ask_member(member, self.kind, row_of(self.kind, state))
        return {
            "stages": [{**answer.opinion, "certainty": certainty(answer.verdict)}],
            "answer": answer.verdict,
            "failures": answer.failures,
            "usages": [answer.usage],
            **({"subscores": answer.subscores} if self.kind == "item" else {}),
        }

    def after(self, state: Mapping[str, Any]) -> str:
        """Say whether the next judge is asked."""
        last = len(state["stages"]) == len(self.members)
        return "decide" if last or self.decides(state) else "ask"

    def decides(self, state: Mapping[str, Any]) -> bool:
        """Say whether the judge that was asked last is sure enough."""
        place, sure = len(state["stages"]) - 1, state["stages"][-1]["certainty"]
        gate = self.gates[place]
        if place + 1 == len(self.members) and gate == 0:
            return True
        return gate is not None and sure is not None and sure >= gate

    def decide(self, state: Mapping[str, Any]) -> Update:
        """Take the verdict of the judge that was asked last, or none."""
        stages, failures = state["stages"], list(state["failures"])
        usage, last = add_usage(state["usages"]), stages[-1]
        if not self.decides(state):
            unsure: Failure = {
                "step": "decide",
                "unit": "",
                "reason": "unsure",
                "detail": "; ".join(map(_how_sure, stages)),
            }
            without: Any = not_judged if self.kind == "pair" else not_labelled
            nothing: Update = {"subscores": []} if self.kind == "item" else {}
            return {"verdict": without([*failures, unsure], usage), "stage": None, **nothing}
        totals = {"failures": failures, "usage": usage}
        place = f"{len(stages)} of {len(self.members)}"
        rationale = f"Decided by {last['member']} ({place}). {last['rationale']}".strip()
        is_judged = last.get("preference", last.get("label")) is not None
        return {
            "verdict": {
                **_blank(self.kind),
                **state["answer"],
                **totals,
                "rationale": rationale,
            },
            "stage": last["member"] if is_judged else None,
        }


def _blank(kind: Kind) -> dict[str, Any]:
    """Return what a verdict of another runnable may leave out."""
    no_cost = add_usage([])
    return dict(not_judged([], no_cost) if kind == "pair" else not_labelled([], no_cost))


def _how_sure(stage: Stage) -> str:
    sure = stage["certainty"]
    return f"{stage['member']} {'has no certainty' if sure is None else format(sure, '.2f')}"


create_cascade = factory(Cascade, Cascade.build, "create_cascade", "members")
