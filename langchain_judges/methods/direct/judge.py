"""What all baselines share: options, and the graph they are: [plan →] judge → merge.

Where each order is asked once and nothing is recalled, all of it is one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.constants import END, START

from langchain_judges.asking.nodes import Route, in_one
from langchain_judges.memory.rendering import RememberedPair
from langchain_judges.methods.beginning import begin
from langchain_judges.methods.direct.evidence import ANSWERS
from langchain_judges.methods.direct.replies import DirectResult, DirectState
from langchain_judges.methods.direct.steps import BaselineSteps
from langchain_judges.methods.evidence import EvidenceTable
from langchain_judges.methods.few_shot import FewShot, WorkedExample
from langchain_judges.methods.second_order import TwoOrders, add_second_order
from langchain_judges.methods.setup import Setup
from langchain_judges.methods.stopping import Adaptive
from langchain_judges.methods.tasks import AboutTask
from langchain_judges.verdict import Preference

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

Reads = Literal["label", "forced_label", "scores"]
"""What a reply holds: one of three labels, one of two, or scores for both texts."""


class Baseline(TwoOrders):
    """What all baselines share."""

    evidence: ClassVar[Sequence[EvidenceTable]] = (ANSWERS,)
    reply: ClassVar[Reads] = "forced_label"
    result: ClassVar[type[Any]] = DirectResult
    noun: ClassVar[str] = "response"
    weighs_choice: ClassVar[bool] = False
    """Whether the choice counts as much as its tokens are likely (DRPE, equation 4)."""

    @property
    def reads(self) -> Reads:
        """What a reply holds."""
        return self.reply

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return self.templates

    @property
    def replies(self) -> int:
        """How many replies each order is asked for."""
        return 1

    @property
    def coin(self) -> bool:
        """Whether a coin decides where the replies of one order are even."""
        return False

    @property
    def chance(self) -> int:
        """The seed of samples and of the coin."""
        return 0

    @property
    def certainty(self) -> Adaptive:
        """How sure the verdict must be before no more samples are asked; False: all are."""
        return False

    @property
    def labels(self) -> tuple[Preference, ...]:
        """What a reply may say."""
        return ("A", "B") if self.reads == "forced_label" else ("A", "B", "tie")

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return ()

    @property
    def named_aspects(self) -> Sequence[str]:
        """What the texts are compared by."""
        return ()

    @property
    def about(self) -> str | Mapping[str, str] | None:
        """What the judgment is about; None where the prompt has its own question."""
        return None

    @property
    def grades(self) -> tuple[int, int]:
        """The lowest and the highest score."""
        return 1, 10

    @property
    def by_mean(self) -> bool:
        """Whether a score is its expectation over the tokens offered for it."""
        return False

    @property
    def plan_size(self) -> int:
        """Criteria of the plan; 0 where nothing is planned."""
        return 0

    @property
    def fewest_criteria(self) -> int | None:
        """The fewest criteria that must be scored; None: more than half of the plan."""
        return None

    def quorum(self, asked: int) -> int:
        """Return the fewest valid replies in an order that was asked so often."""
        return asked // 2 + 1

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return len(self.order_list) * self.replies

    def calls(self) -> int:
        """Return the calls for one pair, excluding repairs."""
        return bool(self.plan_size) + self.branches()

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        steps = dict.fromkeys(self.prompt_texts)
        setup = Setup.of(
            self, model, steps, examples_in=("judge",), templates=self.prompt_texts
        )
        return _graph(BaselineSteps(setup, self))


class AboutATask(Baseline):
    """A baseline that asks what SC² asks, in the same words."""

    task: AboutTask = "helpful"
    """`"helpful"`, `"harmless"`, `"summary"`, `"document"`, `"dialogue"`, or `{"question",
    "quality"}` of your own; what `create_sc2_judge` takes."""

    @property
    def about(self) -> str | Mapping[str, str] | None:
        """What the judgment is about."""
        return self.task


class ShownExamples(FewShot, Baseline):
    """A baseline that can show worked examples."""


def _graph(steps: BaselineSteps) -> JudgeGraph:
    # Loaded on use: to check options and count calls takes no graph.
    from langgraph.graph import StateGraph

    own = steps.own
    graph: StateGraph[DirectState, None, Any, Any] = StateGraph(
        DirectState, input_schema=RememberedPair, output_schema=own.result
    )
    judge = steps.setup.asks(steps.judge, steps.judged)
    if own.replies == 1 and not own.plan_size and not steps.setup.reminder:
        between = steps.first_order if own.waits else None
        whole = in_one(steps.begin, steps.ask_each, judge, steps.merge, between)
        graph.add_node("judge", steps.setup.node(whole))
        graph.add_edge(START, "judge")
        graph.add_edge("judge", END)
        return steps.setup.finish(graph, worked=list(own.worked))
    graph.add_node("judge", judge)
    graph.add_node("merge", steps.setup.plain(steps.merge))
    if own.plan_size:
        graph.add_node("plan", steps.setup.asks(steps.plan, steps.planned))
        graph.add_conditional_edges("plan", Route(steps.ask_each), ["judge", "merge"])
        begin(graph, steps, lambda _: "plan", ["plan"])
    elif own.certainty:
        graph.add_node("choose", steps.setup.plain(steps.choose))
        graph.add_conditional_edges("choose", Route(steps.ask_due), ["judge", "merge"])
        begin(graph, steps, lambda _: "choose", ["choose"])
    else:
        begin(graph, steps, steps.ask_each, ["judge"])
    if own.waits:
        again = ("judge", judge)
        add_second_order(graph, steps.setup, again, steps.first_order, steps.ask_each, "merge")
    else:
        graph.add_edge("judge", "choose" if own.certainty else "merge")
    graph.add_edge("merge", END)
    return steps.setup.finish(graph, worked=list(own.worked))
