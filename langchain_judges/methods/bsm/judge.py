"""The judge: [reference →] branch → solve → merge (Saha et al. 2023, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.account import Account
from langchain_judges.asking.ask import Asked, Reply, ask, sample_seed
from langchain_judges.asking.effects import Update, emit, emit_each, gather
from langchain_judges.memory.shown import block
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.bsm.replies import (
    Answer,
    BSMResult,
    BSMState,
    OrderResult,
    SolveWork,
)
from langchain_judges.methods.bsm.tally import (
    ScoreCells,
    decide,
    findings,
    mean_scores,
    order_totals,
    quorum,
)
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.pairs import (
    PairSteps,
    ShownPair,
    examples_in,
    pair_of,
    plan_words,
    scale_words,
)
from langchain_judges.methods.replies import (
    Choice,
    PlanLine,
    PlanScore,
    distinct_criteria,
    plan_shape,
    scores_shape,
)
from langchain_judges.options import factory
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    by_identity,
    naming_identities,
    preferred_slot,
)
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import answers_in_turn, shown, shown_task, user_turns
from langchain_judges.verdict import Pair, not_judged

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


@dataclass(frozen=True)
class BSMSteps(PairSteps):
    """The steps of the method."""

    options: BSM

    def text(self, pair: Pair, side: str) -> str:
        """Return one side as a prompt shows it."""
        text = pair[side]  # type: ignore[literal-required]
        return shown(text[-1:] if self._hides(pair, side) else text)

    seen = text

    def _hides(self, pair: Pair, side: str) -> bool:
        """Return whether a side has responses to earlier turns, which are not shown."""
        text = pair[side]  # type: ignore[literal-required]
        return answers_in_turn(pair["input"], text) and not self.options.show_turn1_answers

    @cached_property
    def scale(self) -> dict[str, object]:
        """What a prompt says of the scale."""
        return scale_words(self.options.scale)

    def focus_on(self, pair: Pair) -> str:
        """Say which turn is judged, where the request has several, and what is not shown."""
        hidden = any(self._hides(pair, side) for side in ("output_a", "output_b"))
        return super().focus_on(pair) + (texts.NOT_SHOWN if hidden else "")

    async def reference(self, state: BSMState, account: Account) -> Update:
        """Take the pair's own reference, or write one, once for each request."""
        if reference := state.get("reference"):
            return {"written_reference": reference}
        request = shown_task(state["input"])
        variables = {
            **self.frame(pair_of(state)),
            "fence_request": fence(request),
            "request": request,
            "focus": texts.ANSWER_FOCUS if user_turns(state["input"]) > 1 else "",
        }
        question = self.context.question("reference", Answer, is_shared=True)
        reply = await ask(question, variables, account)
        return {"written_reference": reply.data["answer"] if reply.data else None}

    async def branch(self, state: BSMState, account: Account) -> Update:
        """Plan the criteria from the request alone, once for each request."""
        options = self.options
        criteria = [*options.plan] or await self._planned(state, account)
        emit_each("criterion", "branch", criteria)
        return {"criteria": criteria}

    async def _planned(self, state: BSMState, account: Account) -> list[PlanLine]:
        options = self.options
        plans: Sequence[Order | None] = (None,) if options.reuse_plan else options.order_list
        replies = await gather([self._plan(state, order, account) for order in plans])
        criteria: list[PlanLine] = []
        for order, reply in zip(plans, replies, strict=True):
            planned = distinct_criteria(reply.data["criteria"]) if reply.data else []
            plan = planned[: options.max_criteria]
            criteria += [{**c, "order": order} if order else c for c in plan]
        return criteria

    def _plan(self, state: BSMState, order: Order | None, account: Account) -> Asked:
        options, request = self.options, shown_task(state["input"])
        shape = plan_shape(options.max_criteria)
        question = self.context.question("branch", shape, is_shared=True)
        # Overall verdicts say what counts, and nothing of one criterion: where scores are
        # summed they are for the plan.
        examples = [] if options.merge == "model" else examples_in(state)
        lessons = block(examples, order=order or "AB", noun=self.noun)
        variables = {
            "fence_request": fence(request),
            "request": request,
            **self.frame(pair_of(state), lessons and lessons + texts.LESSONS),
            "count": plan_words(options.max_criteria),
        }
        unit = ORDER_NAMES[order] if order else ""
        return ask(question, variables, account, unit=unit, order=order)

    async def solve(self, state: BSMState, account: Account) -> Update:
        """Score both texts on every criterion, in every order, as often as it is sampled."""
        options, pair = self.options, pair_of(state)
        if options.reference_model is not None:
            if not state.get("written_reference"):
                return {}
            pair["reference"] = state["written_reference"]
        works = [
            SolveWork(pair=pair, criterion=criterion, order=order, sample=sample)
            for criterion in state["criteria"]
            for order in options.order_list
            if criterion.get("order", order) == order
            for sample in range(options.samples)
        ]
        subscores = await gather(
            [self._scored(self._solved(work, account), work) for work in works]
        )
        return {"subscores": [each for each in subscores if each]}

    def _solved(self, work: SolveWork, account: Account) -> Asked:
        """Ask for the scores of both texts on one criterion, in one order."""
        options, order, criterion = self.options, work["order"], work["criterion"]
        name, words = criterion["name"], criterion["description"] or texts.UNDESCRIBED
        rule = f"\nWork out first what is right: {self.scale['right']}"
        asks_right = name.casefold().startswith(texts.NAMED_RIGHT)
        variables = {
            **self.material(work["pair"], order),
            **self.scale,
            "reply": texts.EXPLAINED_FIRST if options.explain_first else texts.EXPLAINED,
            "criterion": f"{name}: {words}{rule if asks_right else ''}",
            "criterion_name": name,
            "criterion_description": criterion["description"],
        }
        several = options.samples > 1
        question = self.context.question(
            "solve",
            scores_shape(options.scale, options.explain_first),
            sampled=several,
            shares_material=several or (len(options.plan) or options.max_criteria) > 1,
        )
        sampled = f", sample {work['sample'] + 1}" if several else ""
        unit = f"{name} ({ORDER_NAMES[order]}{sampled})"
        seed = sample_seed(options.seed, work["sample"]) if several else None
        return ask(question, variables, account, unit=unit, order=order, seed=seed)

    async def _scored(self, asked: Asked, work: SolveWork) -> PlanScore | None:
        """Keep the scores by identity of the texts."""
        reply = await asked
        if not reply.data:
            return None
        order, data = work["order"], reply.data
        subscore: PlanScore = {
            "criterion": work["criterion"]["name"],
            "order": order,
            "sample": work["sample"],
            "scores": by_identity(order, data["score_1"], data["score_2"]),
            "explanation": naming_identities(data["explanation"], order),
        }
        emit("subscore", "solve", subscore)
        return subscore

    async def merge(self, state: BSMState, account: Account) -> Update:
        """Sum or weigh the findings of each order, then combine the orders."""
        options, criteria = self.options, state["criteria"]
        cells = mean_scores(criteria, state["subscores"], options.order_list)
        reason = quorum(options, criteria, cells)
        by_order: dict[Order, OrderResult] = {}
        if reason is None:
            by_order = {order: order_totals(order, cells) for order in options.order_list}
        if by_order and options.merge == "model":
            replies = await gather(
                [self._weigh(state, order, cells, account) for order in options.order_list]
            )
            for order, reply in zip(options.order_list, replies, strict=True):
                by_order[order] = _weighed(order, reply, by_order[order])
        failures, usage = account.failures, account.usage
        undecided = any(result["preference"] is None for result in by_order.values())
        if reason or undecided:
            verdict = not_judged(failures, usage, reason or "")
        else:
            verdict = decide(options, cells, by_order, failures, usage)
        return {"verdict": verdict, "by_order": by_order}

    def _weigh(
        self, state: BSMState, order: Order, cells: ScoreCells, account: Account
    ) -> Asked:
        criteria, request = state["criteria"], shown_task(state["input"])
        findings_text = findings(criteria, state["subscores"], order, cells)
        examples = examples_in(state)
        lessons = block(examples, order=order, noun=self.noun)
        variables = {
            "fence_request": fence(request),
            "fence_findings": fence(findings_text),
            "request": request,
            "findings": findings_text,
            **self.scale,
            **self.frame(pair_of(state), lessons),
        }
        question = self.context.question("merge", Choice)
        return ask(question, variables, account, unit=ORDER_NAMES[order], order=order)

    def material(self, pair: ShownPair, order: Order) -> dict[str, object]:
        """Return the variables of a prompt that shows request, reference and both texts.

        What the memory recalled stands in the plan, or where the findings are weighed.
        """
        return super().material({**pair, "examples": []}, order)


def _weighed(order: Order, reply: Reply, result: OrderResult) -> OrderResult:
    """Return the result of an order with the merging model's verdict; None if it has none."""
    if not reply.data:
        return {**result, "preference": None}
    return {
        **result,
        "preference": preferred_slot(order, reply.data["preference"]),
        "explanation": naming_identities(reply.data["explanation"], order),
    }


def build(options: BSM, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    models = dict.fromkeys(("branch", "solve", "merge", "reference"))
    models["reference"] = options.reference_model
    shows = "merge" if options.merge == "model" else "branch"
    schema = StateSchema(BSMState, BSMResult)
    context = JudgeContext.of(options, model, models, schema, examples_in=(shows,))
    judge = BSMSteps(context, options)
    written = [judge.reference] if options.reference_model is not None else []
    return context.compile(judge, *written, judge.branch, judge.solve, judge.merge)


create_bsm_judge = factory(BSM, build, "create_bsm_judge")
