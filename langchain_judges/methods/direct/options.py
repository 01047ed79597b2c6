"""What the options of all baselines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from langchain_core.prompts import ChatPromptTemplate

from langchain_judges.methods.direct.evidence import ANSWERS
from langchain_judges.methods.direct.replies import DirectResult
from langchain_judges.methods.evidence import EvidenceTable
from langchain_judges.methods.few_shot import FewShot, WorkedExample
from langchain_judges.methods.second_order import TwoOrders
from langchain_judges.methods.stopping import Adaptive
from langchain_judges.methods.tasks import AboutTask
from langchain_judges.verdict import Preference

Reads = Literal["label", "forced_label", "scores"]
"""What a reply holds: one of three labels, one of two, or scores for both texts."""


class Baseline(TwoOrders):
    """What all baselines share."""

    evidence: ClassVar[Sequence[EvidenceTable]] = (ANSWERS,)
    events: ClassVar[Mapping[str, str]] = {"ballots": "vote"}
    reply: ClassVar[Reads] = "forced_label"
    result: ClassVar[type[DirectResult]] = DirectResult
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
