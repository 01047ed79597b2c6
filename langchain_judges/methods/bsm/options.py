"""The options of Branch-Solve-Merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from annotated_types import Ge
from pydantic import AfterValidator, model_validator

from langchain_judges.asking.models import ModelLike
from langchain_judges.errors import OptionError
from langchain_judges.methods import declaration, lookups, pairs, replies
from langchain_judges.options import Rule, Scale
from langchain_judges.orders import OrderRule

PROMPTS = "bsm/prompts.yaml"
# What the prompts are filled with.
WORDS = pairs.words_in(PROMPTS)

Criteria = Annotated[
    Sequence[replies.PlanLineLike],
    AfterValidator(replies.read_criteria),
    Rule(declaration.WORDS["criteria"]),
]


class BSM(lookups.LookupOptions, pairs.Worded):
    """Create a Branch-Solve-Merge judge of pairs (Saha et al. 2023, section 3, Algorithm 1).

    `branch` plans up to `max_criteria` criteria from the request alone; `solve` scores both
    texts on each criterion, in both orders; `merge` sums the scores of each order and
    prefers a text only if both orders do. With K criteria that is 1 + 2K calls.

    Where the paper is silent or we differ: the plan is made once and serves both orders
    (the paper plans twice, which is the same under greedy decoding); a criterion that
    cannot be scored in one order is left out of both; replies are JSON; a plan that fails
    leaves the pair unjudged. The examples of a memory, whose verdicts are of whole texts, are
    shown to the plan or to the model that merges, never where one criterion is scored.

    Attributes:
        criteria: Your own plan (2K calls): names, `"name: description"`, or `{"name",
            "description"}`.
        reference_model: Model that writes a reference answer if a pair has none, once for each
            request (one more call).
        max_criteria: The most criteria in a plan (the paper's branching factor).
        scale: Lowest and highest score.
        merge: `"sum"` adds the scores; `"model"` asks a model for each order's verdict (one
            more call).
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.
        samples: Solve calls for each criterion and order, averaged; at temperature 0.7 if
            several.
        reuse_plan: Plan once; `False` plans for each order, as printed in the paper.
        show_turn1_answers: Show the answers of earlier turns.
        explain_first: Ask for the explanation before the scores.
        min_valid: The fewest criteria that must be scored for a verdict; default more than
            half.
        seed: Seed of the samples.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "criteria", "subscores",
        "by_order"}`. `verdict.scores` are the totals over both orders.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.

    Example:
        >>> from langchain_judges import create_bsm_judge
        >>> judge = create_bsm_judge("local", max_criteria=3)  # doctest: +SKIP
        >>> judge.invoke({"input": "Why is the sky blue?", "output_a": "Rayleigh "
        ...     "scattering.", "output_b": "It just is."})["verdict"]  # doctest: +SKIP
    """

    method = "bsm"
    summary = "Branch-Solve-Merge: a plan of criteria, each scored in both orders, summed."
    few = {"criteria": ["Depth", "Tone"]}
    result_tables = {"by_order": "Each order on its own", "subscores": "Scores by criterion"}
    templates = pairs.prompts_in(PROMPTS, "bsm")
    examples_in = ("branch", "merge")
    results = ("criteria", "subscores", "by_order")

    criteria: Criteria | None = None
    reference_model: declaration.OtherModel = None
    max_criteria: Annotated[int, Ge(1)] = 5
    scale: Scale = (1, 5)
    merge: Literal["sum", "model"] = "sum"
    orders: OrderRule = "strict"
    samples: Annotated[int, Ge(1)] = 1
    reuse_plan: bool = True
    show_turn1_answers: bool = False
    explain_first: bool = True
    min_valid: Annotated[int, Ge(1)] | None = None
    seed: declaration.Seed = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        declaration.check_quorum(self.min_valid, len(self.plan) or self.max_criteria)
        if self.memory is not None and self.plan and self.merge != "model":
            raise OptionError(declaration.WORDS["memory_of_plan"])
        return self

    @property
    def plan(self) -> tuple[replies.PlanLine, ...]:
        """The caller's own plan; empty where one is made."""
        return replies.read_criteria(self.criteria) if self.criteria else ()

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model, each with its own or None."""
        return {**super().models, "reference": self.reference_model}

    @property
    def unasked(self) -> set[str]:
        """The steps with a prompt that nothing is asked by with these options."""
        plans, merges = not self.plan, self.merge == "model"
        asked = {"branch": plans, "merge": merges, "reference": self.reference_model}
        return {step for step, is_asked in asked.items() if not is_asked}

    def branches(self) -> int:
        """The most solve calls a pair can take."""
        return (len(self.plan) or self.max_criteria) * len(self.order_list) * self.samples

    def calls(self) -> int:
        """The calls for a pair with a full plan, excluding repairs: 1 + 2K."""
        plans = 0 if self.plan else 1 if self.reuse_plan else len(self.order_list)
        merges = len(self.order_list) if self.merge == "model" else 0
        written = self.reference_model is not None
        return self.lookup_rounds + plans + self.branches() + merges + written
