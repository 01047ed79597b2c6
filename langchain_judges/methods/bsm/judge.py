"""The judge: [reference →] branch → solve → merge (Saha et al. 2023, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update, emit, emit_each, gather
from langchain_judges.asking.question import Account, Reply, sample_seed
from langchain_judges.memory.shown import block
from langchain_judges.methods import pairs
from langchain_judges.methods import replies as shared
from langchain_judges.methods.bsm import tally
from langchain_judges.methods.bsm.options import BSM, WORDS
from langchain_judges.methods.bsm.tally import Answer, BSMState, OrderResult
from langchain_judges.methods.declaration import Phase, with_name
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order, by_identity, naming_ab, preferred_slot
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import answers_in_turn, shown, user_turns
from langchain_judges.verdict import Pair, not_judged, why_not


class BSMSteps(pairs.PairSteps):
    """The steps of the method."""

    options: BSM
    state = BSMState

    def phases(self) -> Sequence[Phase]:
        """[Reference,] branch, solve, merge."""
        written = [self.reference] if self.options.reference_model is not None else []
        return [*written, self.branch, self.solve, self.merge]

    def text(self, pair: Pair, side: str) -> str:
        """One side as a prompt shows it."""
        text = pair[side]  # type: ignore[literal-required]
        return shown(text[-1:] if self._hides(pair, side) else text)

    seen = text

    def _hides(self, pair: Pair, side: str) -> bool:
        """Whether a side has responses to earlier turns, which are not shown."""
        text = pair[side]  # type: ignore[literal-required]
        return answers_in_turn(pair["input"], text) and not self.options.show_turn1_answers

    @cached_property
    def scale(self) -> dict[str, object]:
        """The words of a prompt about the scale."""
        return pairs.scale_words(self.options.scale)

    def focus_on(self, pair: Pair) -> str:
        """Say which turn is judged, where the request has several, and what is not shown."""
        hidden = any(self._hides(pair, side) for side in ("output_a", "output_b"))
        return super().focus_on(pair) + (WORDS["not_shown"] if hidden else "")

    async def reference(self, state: BSMState, account: Account) -> Update:
        """Take the pair's own reference, or write one, once for each request."""
        if reference := state.get("reference"):
            return {"written_reference": reference}
        focus = WORDS["answer_focus"] if user_turns(state["input"]) > 1 else ""
        variables = {**self.request(pairs.pair_of(state)), "focus": focus}
        question = self.context.question("reference", Answer, is_shared=True)
        reply = await ask(question, variables, account)
        return {"written_reference": reply.data["answer"] if reply.data else None}

    async def branch(self, state: BSMState, account: Account) -> Update:
        """Plan the criteria from the request alone, once for each request."""
        criteria = [*self.options.plan] or await self._planned(state, account)
        emit_each("criterion", "branch", criteria)
        return {"criteria": criteria}

    async def _planned(self, state: BSMState, account: Account) -> list[shared.PlanLine]:
        options = self.options
        plans: Sequence[Order | None] = (None,) if options.reuse_plan else options.order_list
        replies = await gather([self._plan(state, order, account.part()) for order in plans])
        criteria: list[shared.PlanLine] = []
        for order, reply in zip(plans, replies, strict=True):
            planned = shared.distinct_criteria(reply.data["criteria"]) if reply.data else []
            plan = planned[: options.max_criteria]
            criteria += [{**c, "order": order} if order else c for c in plan]
        return criteria

    async def _plan(self, state: BSMState, order: Order | None, account: Account) -> Reply:
        options = self.options
        line = shared.MarkedCriterion if options.wording == "own" else shared.PlannedCriterion
        shape = shared.plan_shape(options.max_criteria, line)
        question = self.context.question("branch", shape, is_shared=True)
        # Overall verdicts say what counts, and nothing of one criterion: where scores are
        # summed they are for the plan.
        examples = [] if options.merge == "model" else pairs.examples_in(state)
        lessons = block(examples, order=order or "AB", noun=self.noun)
        variables = {
            **self.request(pairs.pair_of(state), lessons and lessons + WORDS["lessons"]),
            "count": pairs.how_many(options.max_criteria, options.wording),
        }
        unit = ORDER_NAMES[order] if order else ""
        return await ask(question, variables, account, unit=unit, order=order)

    async def solve(self, state: BSMState, account: Account) -> Update:
        """Score both texts on every criterion, in every order, as often as it is sampled."""
        options, pair = self.options, pairs.pair_of(state)
        if options.reference_model is not None:
            if not state.get("written_reference"):
                return {}
            pair["reference"] = state["written_reference"]
        subscores = await gather(
            [
                self._scored(pair, criterion, order, sample, account.part())
                for criterion in state["criteria"]
                for order in options.order_list
                if criterion.get("order", order) == order
                for sample in range(options.samples)
            ]
        )
        return {"subscores": [each for each in subscores if each]}

    async def _scored(
        self,
        pair: pairs.ShownPair,
        criterion: shared.PlanLine,
        order: Order,
        sample: int,
        account: Account,
    ) -> shared.PlanScore | None:
        """The scores of both texts on one criterion, in one order, by identity."""
        options, name = self.options, criterion["name"]
        rule = f"\nWork out first what is right: {self.scale['right']}"
        asks_right = criterion.get("asks_right", False)
        variables = {
            **self.prompt_variables(pair, order),
            **self.scale,
            "reply": WORDS["explained_first" if options.explain_first else "explained"],
            "criterion": with_name(name, criterion["description"]) + (rule if asks_right else ""),
        }
        several = options.samples > 1
        question = self.context.question(
            "solve",
            shared.scores_shape(options.scale, options.explain_first),
            sampled=several,
            shares_material=several or (len(options.criteria or ()) or options.max_criteria) > 1,
        )
        unit = f"{name} ({ORDER_NAMES[order]}{f', sample {sample + 1}' if several else ''})"
        seed = sample_seed(options.seed, sample) if several else None
        reply = await ask(question, variables, account, unit=unit, order=order, seed=seed)
        if not reply.data:
            return None
        subscore: shared.PlanScore = {
            "criterion": name,
            "order": order,
            "sample": sample,
            "scores": by_identity(order, reply.data["score_1"], reply.data["score_2"]),
            "explanation": naming_ab(reply.data["explanation"], order),
        }
        emit("subscore", "solve", subscore)
        return subscore

    async def merge(self, state: BSMState, account: Account) -> Update:
        """Sum or weigh the findings of each order, then combine the orders."""
        options, criteria = self.options, state["criteria"]
        cells = shared.mean_scores(criteria, state["subscores"], options.order_list)
        if lost := shared.quorum(criteria, cells, options.order_list, options.min_valid):
            why = why_not(account.failures, lost)
            return {"verdict": not_judged(**account.booked, rationale=why), "by_order": {}}
        by_order = {order: tally.order_totals(order, cells) for order in options.order_list}
        if options.merge == "model":
            weighed = [
                self._weighed(state, order, cells, totals, account.part())
                for order, totals in by_order.items()
            ]
            by_order = dict(zip(by_order, await gather(weighed), strict=True))
        return {"verdict": tally.decide(options, cells, by_order, account), "by_order": by_order}

    async def _weighed(
        self,
        state: BSMState,
        order: Order,
        cells: shared.ScoreCells,
        totals: OrderResult,
        account: Account,
    ) -> OrderResult:
        """The result of an order with the merging model's preference; None if it has none."""
        findings_text = tally.scores_shown(state["criteria"], state["subscores"], order, cells)
        lessons = block(pairs.examples_in(state), order=order, noun=self.noun)
        variables = {
            **self.request(pairs.pair_of(state), lessons, order),
            **self.scale,
            "fence_findings": fence(findings_text),
            "findings": findings_text,
        }
        question = self.context.question("merge", shared.Choice)
        reply = await ask(question, variables, account, unit=ORDER_NAMES[order], order=order)
        if not reply.data:
            return {**totals, "preference": None}
        return {
            **totals,
            "preference": preferred_slot(order, reply.data["preference"]),
            "explanation": naming_ab(reply.data["explanation"], order),
        }

    def prompt_variables(
        self, pair: pairs.ShownPair, order: Order | pairs.Alone
    ) -> dict[str, object]:
        """The variables of a prompt that shows request, reference and both texts.

        What the memory recalled stands in the plan, or where the findings are weighed.
        """
        return super().prompt_variables({**pair, "shown": []}, order)


build = BSMSteps.build
create_bsm_judge = factory(BSM, build, "create_bsm_judge")
