"""How the Branch-Solve-Merge judge begins: a reference where one is wanted, then the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from langchain_judges.asking.ask import ask
from langchain_judges.asking.question import Reply
from langchain_judges.asking.steps import SingleFlight, Steps, Update, together
from langchain_judges.memory.shown import block, example_texts
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.bsm.parse import parse_plan
from langchain_judges.methods.bsm.replies import Answer, BSMState
from langchain_judges.methods.pairs import PairSteps, examples_in, pair_of
from langchain_judges.methods.replies import PlanLine, distinct_criteria, plan_shape
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import transcript, user_turns
from langchain_judges.verdict import cached_usage


@dataclass(frozen=True)
class PlanSteps(PairSteps):
    """The steps before anything is scored."""

    options: BSM
    references: SingleFlight[Reply] = field(default_factory=SingleFlight)
    plans: SingleFlight[Reply] = field(default_factory=SingleFlight)
    focus = texts.FOCUS

    def reference(self, state: BSMState) -> Steps[Update]:
        """Take the pair's own reference, or write one, once for each request."""
        if reference := state.get("reference"):
            return {"written_reference": reference}
        request = transcript(state["input"])
        variables = {
            "fence_request": fence(request),
            "request": request,
            "focus": texts.ANSWER_FOCUS if user_turns(state["input"]) > 1 else "",
        }
        question = self.context.question("reference", Answer)
        reply, reused = yield from self.references.get(
            request, lambda: ask(question, variables), lambda reply: reply.data is not None
        )
        return {
            "written_reference": reply.data["answer"] if reply.data else None,
            "failures": reply.failures,
            "usages": [cached_usage("reference") if reused else reply.usage],
        }

    def branch(self, state: BSMState) -> Steps[Update]:
        """Plan the criteria from the request alone, once for each request."""
        options = self.options
        if options.plan:
            return {"criteria": _weightiest_first(options.plan)}
        plans: Sequence[Order | None] = (None,) if options.reuse_plan else options.order_list
        replies = yield from together([self._plan(state, order) for order in plans])
        criteria: list[PlanLine] = []
        for order, (reply, _) in zip(plans, replies, strict=True):
            plan = list(options.fallback)
            if reply.data:
                plan = distinct_criteria(reply.data["criteria"])[: options.max_criteria]
            plan = _weightiest_first(plan)
            criteria += [{**c, "order": order} if order else c for c in plan]
        return {
            "criteria": criteria,
            "failures": [failure for reply, _ in replies for failure in reply.failures],
            "usages": [
                cached_usage("branch") if reused else reply.usage for reply, reused in replies
            ],
        }

    def _plan(self, state: BSMState, order: Order | None) -> Steps[tuple[Reply, bool]]:
        options, request = self.options, transcript(state["input"])
        question = self.context.question(
            "branch", plan_shape(options.max_criteria, options.weighted), parse=parse_plan
        )
        # Overall verdicts say what counts, and nothing of one criterion: where scores are
        # summed they are for the plan.
        examples = [] if options.merge == "model" else examples_in(state)
        lessons = block(
            examples, fence(*example_texts(examples)), order=order or "AB", noun=self.noun
        )
        variables = {
            "fence_request": fence(request),
            "request": request,
            **self.scale,
            **self.frame(pair_of(state), lessons + (texts.LESSONS if lessons else "")),
            "max_criteria": options.max_criteria,
            "weight": texts.WEIGHT if options.weighted else "",
        }
        unit = ORDER_NAMES[order] if order else ""
        return self.plans.get(
            json.dumps([unit, variables], default=str),
            lambda: ask(question, variables, unit=unit, order=order),
            lambda reply: reply.data is not None,
        )

    @cached_property
    def scale(self) -> dict[str, object]:
        """The variables of the system message, which all steps share."""
        low, high = self.options.scale
        middle = (low + high) // 2
        anchors = texts.ANCHORS if low < middle else texts.ENDS
        ends = {"low": low, "high": high, "middle": middle}
        return {**ends, "anchors": anchors.format(**ends)}


def _weightiest_first(plan: Sequence[PlanLine]) -> list[PlanLine]:
    """Return a plan by weight; criteria without weights stay in their order."""
    return sorted(plan, key=lambda criterion: -criterion.get("weight", 1.0))
