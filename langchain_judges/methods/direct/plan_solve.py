"""Plan & solve: a plan of criteria, then all of them scored in one call."""

from __future__ import annotations

from typing import Annotated, Self

from annotated_types import Ge
from pydantic import model_validator

from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.evidence import ANSWERS
from langchain_judges.methods.direct.options import Baseline, Form
from langchain_judges.methods.direct.replies import PlanSolveResult
from langchain_judges.methods.options import Budget, check_quorum
from langchain_judges.methods.replies import SUBSCORES, scores_by_criterion
from langchain_judges.options import Scale
from langchain_judges.orders import OrderRule


class PlanSolve(Baseline):
    """Create a judge that plans criteria, then scores all of them in one call.

    Plan & solve as Saha et al. 2023 (section 4) compare it with Branch-Solve-Merge: one
    call plans from the request alone, one call for each order scores both texts on every
    criterion, the sums are compared, and a text is preferred only if both orders prefer it.
    That is three calls. A criterion that one order lacks is left out of both.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "criteria", "subscores"}`.
        `verdict.scores` are the totals over the orders, `verdict.score` the mean of 1, 0.5
        and 0 over them.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "plan_solve"
    summary = "Plan & solve: a plan of criteria, then all of them scored in one call."
    presets = {"ten_points": {"scale": (1, 10)}}
    budgets = (Budget(3),)
    evidence = (ANSWERS, SUBSCORES)
    sketches = (scores_by_criterion,)
    templates = {"plan": texts.PLAN, "judge": texts.SOLVE}
    result = PlanSolveResult

    max_criteria: Annotated[int, Ge(1)] = 5
    """Most criteria in the plan."""
    scale: Scale = (1, 5)
    """Lowest and highest score."""
    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""
    min_valid: Annotated[int, Ge(1)] | None = None
    """Fewest criteria that must be scored; default more than half."""

    @property
    def form(self) -> Form:
        """What is asked in each order: two scores for each criterion of the plan."""
        return Form(
            reads="scores",
            scale=self.scale,
            criteria=self.max_criteria,
            min_criteria=self.min_valid,
        )

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.min_valid, self.max_criteria)
        return self
