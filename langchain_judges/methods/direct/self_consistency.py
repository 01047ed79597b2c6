"""Self-consistency: the majority of several replies in each order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from annotated_types import Ge
from langchain_core.prompts import ChatPromptTemplate
from pydantic import model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.options import AboutATask, Form, ShownExamples
from langchain_judges.methods.direct.replies import SelfConsistencyResult
from langchain_judges.methods.options import Budget, Seed, check_quorum
from langchain_judges.orders import OrderRule


class SelfConsistency(ShownExamples, AboutATask):
    """Create a judge that asks for several replies and takes the majority.

    `prompt="cot"` is the self-consistency of Yan et al. 2023 (SC²): eight chains of thought,
    one order, and a seeded coin where they are even. `prompt="relative"` is that of Saha et
    al. 2023 (BSM): the relative prompt, as many samples in each order as its branching
    factor, which is five, an order without a plurality is a tie, and a text is preferred
    only if both orders prefer it. Samples are asked in parallel at temperature 0.7, each
    with a seed of its own; with one sample the judge is the chain of thought, or the
    relative judge, itself.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "not_asked"}`.
        `verdict.scores` are the votes, `verdict.score` the share of A (where a coin decided,
        just beside 0.5: a score above 0.5 always means A), `verdict.confidence` that of the
        preference.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot_sc"
    summary = "Self-consistency of SC²'s paper: the majority of eight chains of thought."
    presets = {"one_shot": {"shots": 1}, "few_shot": {"shots": 5}}
    budgets = (Budget(0, 1, "samples"),)
    templates = {"judge": texts.COT}
    result = SelfConsistencyResult

    prompt: Literal["cot", "relative"] = "cot"
    """`"cot"`, chains of thought, or `"relative"`, relative verdicts."""
    samples: Annotated[int, Ge(1)] | None = None
    """Replies in each order; default 8 for `"cot"`, 5 for `"relative"`."""
    orders: OrderRule | None = None
    """In which orders; default `"none"` for `"cot"`, `"strict"` for `"relative"`."""
    min_valid: Annotated[int, Ge(1)] | None = None
    """Fewest valid samples in an order; default more than half of those asked."""
    adaptive: bool = False
    """Ask samples one after the other, and stop when the others cannot change the verdict.
    `not_asked` names the skipped samples. Not with `orders="score_mean"`."""
    seed: Seed = 0
    """Seed of the samples and of the coin."""

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return f"{self.prompt}_sc"

    @property
    def form(self) -> Form:
        """What is asked in each order: several replies with a label."""
        cot = self.prompt == "cot"
        return Form(
            reads="forced_label" if cot else "label",
            replies=self.samples or (8 if cot else 5),
            min_valid=self.min_valid,
            coin=cot,
            seed=self.seed,
            adaptive=self.adaptive,
            about=self.task,
        )

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return {"judge": texts.COT if self.prompt == "cot" else texts.RELATIVE}

    @property
    def order_rule(self) -> OrderRule:
        """How the verdicts of the orders become one."""
        return self.orders or ("none" if self.prompt == "cot" else "strict")

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.min_valid, self.form.replies)
        return self

    @model_validator(mode="after")
    def _votes_decide(self) -> Self:
        if self.adaptive and self.order_rule == "score_mean":
            raise OptionError("`adaptive` needs votes: not `orders='score_mean'`")
        return self

    @model_validator(mode="after")
    def _task_is_asked(self) -> Self:
        if self.prompt != "cot" and self.task != "helpful":
            raise OptionError(f"`task` needs `prompt='cot'`, got {self.task!r}")
        return self


class RelativeSelfConsistency(SelfConsistency):
    """The self-consistency of Saha et al. 2023, under a name of its own."""

    method = "relative_sc"
    summary = "Self-consistency of BSM's paper: five relative verdicts in each order."
    budgets = (Budget(0, 2, "samples"),)
    templates = {"judge": texts.RELATIVE}

    prompt: Literal["cot", "relative"] = "relative"
    """`"cot"`, chains of thought, or `"relative"`, relative verdicts."""
