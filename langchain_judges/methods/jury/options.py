"""The options of a jury."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from annotated_types import Ge
from pydantic import AfterValidator, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.combination import Combination, opinion_sketch, opinion_table
from langchain_judges.methods.options import Budget, check_quorum
from langchain_judges.options import Owner, Rule

MemberWeights = Sequence[float] | Mapping[str, float]


def _usable(weights: MemberWeights | None) -> MemberWeights | None:
    values = weights.values() if isinstance(weights, Mapping) else weights or [1.0]
    if not any(weight > 0 for weight in values) or any(weight < 0 for weight in values):
        raise ValueError
    return weights


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
    min_valid: Annotated[int, Ge(1)] | None = None
    """Members that must have judged the row; None: more than half."""

    @model_validator(mode="after")
    def _weights_fit(self) -> Self:
        if (self.weights is None) == (self.combine == "weighted"):
            raise OptionError("`weights` go with `combine='weighted'`, one for each member")
        return self

    def check_size(self, size: int) -> None:
        """Check that as many members can judge a row as must."""
        check_quorum(self.min_valid, size)
