"""What the options of all baselines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from langchain_core.prompts import ChatPromptTemplate

from langchain_judges.methods.direct.evidence import ANSWERS
from langchain_judges.methods.direct.replies import DirectResult
from langchain_judges.methods.few_shot import FewShot, WorkedExample
from langchain_judges.methods.options import EvidenceTable, JudgeOptions
from langchain_judges.methods.tasks import AboutTask
from langchain_judges.verdict import Preference

Reads = Literal["label", "forced_label", "scores"]
"""What a reply holds: one of three labels, one of two, or scores for both texts."""


class Form(NamedTuple):
    """What a baseline asks in each order, and what its replies hold."""

    reads: Reads = "forced_label"
    """What a reply holds."""
    replies: int = 1
    """How many replies each order is asked for."""
    min_valid: int | None = None
    """The fewest of them that must be valid; None: more than half."""
    coin: bool = False
    """Whether a coin decides where the replies of one order are even."""
    seed: int = 0
    """The seed of samples and of the coin."""
    adaptive: bool = False
    """Whether replies are asked for only while they can change the verdict."""
    about: str | Mapping[str, str] | None = None
    """What the judgment is about; None where the prompt has its own question."""
    aspects: Sequence[str] = ()
    """What the texts are compared by."""
    scale: tuple[int, int] = (1, 10)
    """The lowest and the highest score."""
    by_mean: bool = False
    """Whether a score is its expectation over the tokens offered for it."""
    criteria: int = 0
    """Most criteria of the plan; 0 where nothing is planned."""
    min_criteria: int | None = None
    """The fewest of them that must be scored; None: more than half of the plan."""

    @property
    def labels(self) -> tuple[Preference, ...]:
        """What a reply may say."""
        return ("A", "B") if self.reads == "forced_label" else ("A", "B", "tie")

    def quorum(self, replies: int) -> int:
        """Return the fewest valid replies of an order that was asked for so many."""
        return self.min_valid or replies // 2 + 1


class Baseline(JudgeOptions):
    """What all baselines share."""

    evidence: ClassVar[Sequence[EvidenceTable]] = (ANSWERS,)
    result: ClassVar[type[DirectResult]] = DirectResult
    noun: ClassVar[str] = "response"
    weighs_choice: ClassVar[bool] = False
    """Whether the choice counts as much as its tokens are likely (DRPE, equation 4)."""

    @property
    def form(self) -> Form:
        """What is asked in each order: one reply with one of two labels."""
        return Form()

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return self.templates

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return ()

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return len(self.order_list) * self.form.replies

    def calls(self) -> int:
        """Return the calls for one pair, excluding repairs."""
        return bool(self.form.criteria) + self.branches()


class AboutATask(Baseline):
    """A baseline that asks what SC² asks, in the same words."""

    task: AboutTask = "helpful"
    """`"helpful"`, `"harmless"`, `"summary"`, `"document"`, `"dialogue"`, or `{"question",
    "quality"}` of your own; what `create_sc2_judge` takes."""

    @property
    def form(self) -> Form:
        """What is asked in each order, about the task."""
        return Form(about=self.task)


class ShownExamples(FewShot, Baseline):
    """A baseline that can show worked examples."""
