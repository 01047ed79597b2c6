"""The steps and the graph of every baseline: [plan →] judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from pydantic import BaseModel

from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update, emit, emit_each, gather
from langchain_judges.asking.question import Account, Question, sample_seed
from langchain_judges.asking.reading import Problem, lax_shape
from langchain_judges.methods import pairs
from langchain_judges.methods import replies as shared
from langchain_judges.methods.declaration import Phase, with_name
from langchain_judges.methods.direct import options as baselines
from langchain_judges.methods.direct import tally
from langchain_judges.methods.tasks import WorkedExample, choose_task, shown_examples, worded
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.verdict import Pair, not_judged, why_not

# What the prompts are filled with.
WORDS = pairs.words_in(baselines.PROMPTS)


class BaselineSteps(pairs.PairSteps):
    """The steps of a baseline."""

    options: baselines.Baseline
    state = tally.DirectState

    def phases(self) -> Sequence[Phase]:
        """[Plan,] judge."""
        return [self.plan, self.judge] if self.form.max_criteria else [self.judge]

    @cached_property
    def form(self) -> baselines.BaselineSpec:
        """The question of each order."""
        return self.options.form

    @property
    def noun(self) -> str:
        """The word of a prompt for a judged text."""
        return self.options.noun

    @cached_property
    def question(self) -> Question:
        """The question of each order."""
        form = self.form
        scores, several = form.reads == "scores", form.samples > 1
        one_label = not scores and not several
        return self.context.question(
            "judge",
            SHAPES.get(form.reads) or shared.scores_shape(form.scale, form.explain_first),
            sampled=several,
            shares_material=several,
            # The name of a sample is the whole name of its run.
            label="{unit}" if several else "",
            logprobs=one_label,
            measure=tally.CHOICE.measure if one_label else None,
            parse=None if scores or form.max_criteria else tally.CHOICE.parse,
        )

    @cached_property
    def shots(self) -> str:
        """The worked examples, as every prompt shows them."""
        steps = self.form.reads == "forced_label"
        return shown_examples([(shot, "", _reply(shot, steps)) for shot in self.options.worked])

    async def plan(self, state: tally.DirectState, account: Account) -> Update:
        """Ask for criteria from the request alone."""
        question = self.context.question("plan", shared.plan_shape(self.form.max_criteria))
        count = {"count": pairs.how_many(self.form.max_criteria, self.options.wording)}
        reply = await ask(question, {**self.request(pairs.pair_of(state)), **count}, account)
        plan = shared.distinct_criteria(reply.data["criteria"]) if reply.data else []
        criteria = plan[: self.form.max_criteria]
        emit_each("criterion", "plan", criteria)
        return {"criteria": criteria}

    async def judge(self, state: tally.DirectState, account: Account) -> Update:
        """Ask in every order, as often as it is sampled; then combine what was said."""
        if self.form.max_criteria:
            return await self._by_plan(state, account)
        pair, options = pairs.pair_of(state), self.options
        calls = [(o, n) for o in options.order_list for n in range(self.form.samples)]
        ballots = await gather([self._ballot(pair, *each, account.part()) for each in calls])
        return self._merged(state, [each for each in ballots if each], account)

    async def _by_plan(self, state: tally.DirectState, account: Account) -> Update:
        """Score both texts on every criterion of the plan."""
        plan, pair = state["criteria"], pairs.pair_of(state)
        orders = self.options.order_list if plan else ()
        parts = await gather([self._lines(pair, plan, o, account.part()) for o in orders])
        subscores = [each for part in parts for each in part]
        cells = shared.mean_scores(plan, subscores, orders)
        if lost := shared.quorum(plan, cells, orders):
            verdict = not_judged(**account.booked, rationale=why_not(account.failures, lost))
            return {"ballots": [], "subscores": subscores, "verdict": verdict}
        ballots = [tally.summed(order, subscores, cells) for order in orders]
        return {**self._merged(state, ballots, account), "subscores": subscores}

    async def _ballot(
        self, pair: pairs.ShownPair, order: Order, sample: int, account: Account
    ) -> tally.DirectBallot | None:
        """The decision of one reply, by identity of the texts."""
        variables = self._variables(pair, order)
        unit, seed = self._unit(order, sample)
        reply = await ask(self.question, variables, account, unit=unit, order=order, seed=seed)
        ballot = tally.balloted(self.options, order, sample, reply)
        if ballot:
            emit("vote", "judge", ballot)
        return ballot

    async def _lines(
        self, pair: pairs.ShownPair, plan: Sequence[shared.PlanLine], order: Order, account: Account
    ) -> list[shared.PlanScore]:
        """The scores on every criterion of a plan, by identity of the texts."""
        names = ("explanation", *map(tally.line_name, range(len(plan))))
        shape = tally.sheet_shape(self.form.scale, len(plan), self.form.explain_first)
        question = replace(self.question, reply_schema=shape, partial=lax_shape(names))
        variables, (unit, _) = self._variables(pair, order, plan), self._unit(order, 0)
        reply = await ask(question, variables, account, unit=unit, order=order)
        if not reply.data:
            return []
        lines, failures = tally.read_sheet(reply.data, plan, order, unit, self.form.scale)
        account.fail(failures)
        emit_each("subscore", "judge", lines)
        return lines

    def _merged(
        self, state: tally.DirectState, ballots: list[tally.DirectBallot], account: Account
    ) -> Update:
        """Combine the orders; a choice that weighs does so by its tokens, or by one."""
        weighs, counted = self.options.weighs_choice, ballots
        if weighs and any(ballot["confidence"] is None for ballot in ballots):
            account.fail([_NO_LOGPROBS.failure("judge", "")])
            counted = [{**b, "probability": None, "confidence": None} for b in ballots]
        verdict = tally.decide(self.options, pairs.pair_of(state), counted, account)
        if not weighs or verdict["preference"] is None:
            return {"ballots": ballots, "verdict": verdict}
        verdict["scores"] = scores = tally.weights(counted)
        return {"ballots": ballots, "verdict": verdict, "llm_score": scores["A"]}

    def _unit(self, order: Order, sample: int) -> tuple[str, int | None]:
        """The name of one call, and its seed where it is a sample."""
        options = self.options
        both_orders = len(options.order_list) > 1
        if self.form.samples == 1:
            return ORDER_NAMES[order] if both_orders else "", None
        name = f"sample {sample + 1}" + (f" ({ORDER_NAMES[order]})" if both_orders else "")
        # Orders have seeds of their own too.
        place = options.order_list.index(order) * self.form.samples + sample
        return name, sample_seed(self.form.seed, place)

    def _variables(
        self, pair: pairs.ShownPair, order: Order, plan: Sequence[shared.PlanLine] = ()
    ) -> dict[str, object]:
        reply = WORDS["explained_first" if self.form.explain_first else "explained"]
        aspects = ", ".join(self.form.aspects or ())
        lines = [f"{i}. {with_name(c['name'], c['description'])}" for i, c in enumerate(plan, 1)]
        return {
            **self.prompt_variables(pair, order),
            **self._task(pair),
            "examples": self.shots,
            "aspects": WORDS["by_aspects"].format(aspects=aspects) if aspects else "",
            "criteria": "\n".join(lines),
            **pairs.scale_words(self.form.scale),
            "reply": reply.format(each=" on each criterion" if plan else ""),
        }

    def frame(self, pair: Pair, examples: str = "", order: Order | None = None) -> dict[str, str]:
        """The words around the material, with the caller's criteria."""
        frame, own = super().frame(pair, examples, order), getattr(self.options, "criteria", None)
        lines = "\n".join(f"- {line}" for line in own or ())
        criteria = WORDS["criteria"].format(criteria=lines) if own else ""
        return {**frame, "instructions": frame["instructions"] + criteria}

    def _task(self, pair: Pair) -> dict[str, str]:
        """The words of the task; none where the prompt has its own question."""
        if self.form.task is None:
            return {}
        task = worded(*choose_task(self.form.task, pair), self.options.wording)
        return {**task, "about": task["about"].replace("{noun}", self.noun)}  # type: ignore[dict-item]


def _reply(shot: WorkedExample, steps: bool) -> dict[str, str]:
    """The reply of a worked example, step by step or with what decides.

    Of a table only its aspects are shown, as in the one-shot chain of thought of Yan et al.
    2023.
    """
    aspects = ", ".join(row["aspect"] for row in shot["rows"])
    prefix = f"Compared by {aspects}: " if aspects else ""
    explanation = shot.get("reasoning") or shot["comparison"] if steps else shot["comparison"]
    return {"explanation": prefix + explanation, "preference": shot["preferred"]}


# The shape of a reply that is a label.
SHAPES: dict[str, type[BaseModel]] = {"label": shared.Choice, "forced_label": shared.ForcedChoice}


_NO_LOGPROBS = Problem(
    "no_logprobs", "the choice weighs one: the model gave no token log-probabilities"
)


build = BaselineSteps.build
create_relative_judge = factory(baselines.Relative, build, "create_relative_judge")
create_absolute_judge = factory(baselines.Absolute, build, "create_absolute_judge")
create_direct_judge = factory(baselines.Direct, build, "create_direct_judge")
create_cot_judge = factory(baselines.ChainOfThought, build, "create_cot_judge")
create_llm_score_judge = factory(baselines.LLMScore, build, "create_llm_score_judge")
create_plan_solve_judge = factory(baselines.PlanSolve, build, "create_plan_solve_judge")
create_self_consistency_judge = factory(
    baselines.SelfConsistency, build, "create_self_consistency_judge"
)
