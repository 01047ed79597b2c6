"""Branch-Solve-Merge judging a pair: branch → solve → merge (Saha et al. 2023, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal, Self

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, StateGraph
from langgraph.types import Send
from pydantic import AfterValidator, model_validator

from langchain_judges.asking.ask import Question, Reply, ask
from langchain_judges.asking.gate import Once
from langchain_judges.asking.nodes import Call
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Steps, Update, together
from langchain_judges.memory.example import Example
from langchain_judges.memory.rendering import RememberedPair, block, told
from langchain_judges.methods.base import (
    JudgeGraph,
    JudgeOptions,
    OtherModel,
    Seed,
    Setup,
    check_quorum,
)
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.bsm.evidence import EVIDENCE
from langchain_judges.methods.bsm.parse import parse_plan, parse_scores
from langchain_judges.methods.bsm.replies import (
    Answer,
    BSMResult,
    BSMState,
    Choice,
    OrderResult,
    SolveWork,
)
from langchain_judges.methods.bsm.tally import Cells, decide, mean_scores, order_totals, quorum
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.evidence import scores_by_criterion
from langchain_judges.methods.pairs import (
    Next,
    PairSteps,
    begin,
    examples_in,
    pair_of,
    reference_block,
)
from langchain_judges.methods.plans import (
    Criterion,
    CriterionLike,
    Subscore,
    distinct_criteria,
    plan_shape,
    read_criteria,
    scores_shape,
)
from langchain_judges.options import ClientMost, Rule, Scale, factory
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    OrderRule,
    by_identity,
    in_slots,
    preferred_slot,
)
from langchain_judges.rows.texts import fence_token, judged, transcript, user_turns
from langchain_judges.verdict import Pair, add_usage, cached_usage, not_judged

Criteria = Annotated[
    Sequence[CriterionLike] | None,
    AfterValidator(read_criteria),
    Rule(
        "a list with distinct names, of 'name', 'name: description' or {'name', 'description'}"
    ),
]


class BSM(JudgeOptions):
    """Create a Branch-Solve-Merge judge of pairs (Saha et al. 2023, section 3, Algorithm 1).

    `branch` plans up to `max_criteria` criteria from the request alone; `solve` scores both
    texts on each criterion, in both orders; `merge` sums the scores of each order and
    prefers a text only if both orders do. With K criteria that is 1 + 2K calls.

    Where the paper is silent or we differ: the plan is made once and serves both orders
    (the paper plans twice, which is the same under greedy decoding); a criterion that
    cannot be scored in one order is left out of both; replies are JSON; a plan that fails
    is not replaced by fixed criteria unless `fallback_criteria` says so.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "criteria", "subscores", "by_order"}`.
        `verdict.scores` are the totals over both orders.

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
    presets = {
        "paper": {"reuse_plan": False},
        "neural_merge": {"merge": "model"},
        "self_consistency": {"samples": 5},
        "ten_points": {"scale": (1, 10)},
    }
    budgets = (Budget(1, 2, "max_criteria"),)
    events = {"criteria": "criterion", "subscores": "subscore"}
    evidence = EVIDENCE
    sketches = (scores_by_criterion,)
    templates = texts.PROMPTS

    criteria: Criteria = None
    """The plan, if it is yours: names, `"name: description"`, or `{"name", "description"}`;
    nothing is planned then (2K calls)."""
    branch_model: OtherModel = None
    """Plans instead of `model`."""
    merge_model: OtherModel = None
    """Merges instead of `model`, where `merge="model"`."""
    reference_model: OtherModel = None
    """Writes a reference answer where a pair has none, once for each request (one more
    call); judging is then by reference."""
    max_criteria: Annotated[int, Ge(1), ClientMost(20)] = 5
    """Most criteria in a plan (the paper's branching factor)."""
    scale: Scale = (1, 5)
    """Lowest and highest score."""
    merge: Literal["sum", "model"] = "sum"
    """`"sum"` adds the scores up (every result of the paper); `"model"` asks a model for the
    verdict of each order (one more call for each)."""
    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`; see `orders.py`."""
    samples: Annotated[int, Ge(1), ClientMost(32)] = 1
    """Solve calls for each criterion and order, at temperature 0.7 if there are several;
    their scores are averaged (the paper's self-consistency)."""
    reuse_plan: bool = True
    """Plan once; False plans for each order on its own, as printed."""
    show_turn1_answers: bool = False
    """Show the answers of earlier turns, which the paper hides."""
    explain_first: bool = False
    """Ask for the explanation before the scores; the paper scores first."""
    fallback_criteria: Criteria = None
    """Used, and the failure reported, where planning failed."""
    min_valid: Annotated[int, Ge(1), ClientMost(32)] | None = None
    """Fewest criteria that must be scored for a verdict; default more than half."""
    seed: Seed = 0
    """Of the samples."""

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.min_valid, len(self.plan) or self.max_criteria)
        return self

    @property
    def plan(self) -> tuple[Criterion, ...]:
        """The caller's own plan; empty where one is made."""
        return read_criteria(self.criteria) or ()

    @property
    def fallback(self) -> tuple[Criterion, ...]:
        """The plan where planning failed."""
        return read_criteria(self.fallback_criteria) or ()

    def branches(self) -> int:
        """Return the most solve calls a pair can take."""
        most = len(self.plan) or max(self.max_criteria, len(self.fallback))
        return most * len(self.order_list) * self.samples

    def calls(self) -> int:
        """Return the calls for a pair with a full plan, excluding repairs: 1 + 2K."""
        plans = 0 if self.plan else 1 if self.reuse_plan else len(self.order_list)
        most = len(self.plan) or self.max_criteria
        solves = most * len(self.order_list) * self.samples
        merges = len(self.order_list) if self.merge == "model" else 0
        return plans + solves + merges + (self.reference_model is not None)

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        models = {
            "branch": self.branch_model,
            "solve": None,
            "merge": self.merge_model,
            "reference": self.reference_model,
        }
        setup = Setup.of(self, model, models, shown=("solve", "merge"))
        return _graph(BSMSteps(setup, self))


def _graph(steps: BSMSteps) -> JudgeGraph:
    graph: StateGraph[BSMState, None, RememberedPair, BSMResult] = StateGraph(
        BSMState, input_schema=RememberedPair, output_schema=BSMResult
    )
    setup = steps.setup
    graph.add_node("branch", setup.node(steps.branch))
    graph.add_node("solve", setup.asks(steps.solve, steps.solved))
    graph.add_node("merge", setup.node(steps.merge))
    first = "branch"
    if steps.own.reference_model is not None:
        first = "reference"
        graph.add_node("reference", setup.node(steps.reference))
        graph.add_edge("reference", "branch")
    begin(graph, steps, lambda _: first, [first])
    graph.add_conditional_edges("branch", steps.solve_each, ["solve", "merge"])
    graph.add_edge("solve", "merge")
    graph.add_edge("merge", END)
    return setup.finish(graph)


@dataclass(frozen=True)
class BSMSteps(PairSteps):
    """The steps of the method."""

    own: BSM
    references: Once[Reply] = field(default_factory=Once)
    lists = ("subscores",)
    empty = {"criteria": [], "by_order": {}, "written_reference": None}
    focus = texts.FOCUS

    @cached_property
    def solving(self) -> Question:
        """What is asked about each criterion."""
        return self.setup.question(
            "solve",
            scores_shape(self.own.scale, self.own.explain_first),
            parse=parse_scores,
            sampled=self.own.samples > 1,
        )

    def seen(self, pair: Pair, side: str) -> tuple[str, str]:
        """Return what a model sees of one side: its request and its judged text."""
        text = pair[side]  # type: ignore[literal-required]
        earlier = text if self.own.show_turn1_answers else ""
        return transcript(pair["input"], earlier), judged(text)

    def reference(self, state: BSMState) -> Steps[Update]:
        """Take the pair's own reference, or write one, once for each request."""
        if own := state.get("reference"):
            return {"written_reference": own}
        request = transcript(state["input"])
        variables = {
            "fence": fence_token([request]),
            "request": request,
            "focus": texts.FOCUS if user_turns(state["input"]) > 1 else "",
        }
        question = self.setup.question("reference", Answer)
        reply, reused = yield from self.references.get(
            request,
            lambda: ask(question, variables),
            lambda reply: reply.data is not None,
        )
        return {
            "written_reference": reply.data["answer"] if reply.data else None,
            "failures": reply.failures,
            "usages": [cached_usage("reference") if reused else reply.usage],
        }

    def branch(self, state: BSMState) -> Steps[Update]:
        """Plan the criteria from the request alone."""
        own = self.own
        if own.plan:
            return {"criteria": list(own.plan)}
        plans: Sequence[Order | None] = (None,) if own.reuse_plan else own.order_list
        replies = yield from together([self._plan(pair_of(state), order) for order in plans])
        criteria: list[Criterion] = []
        for order, reply in zip(plans, replies, strict=True):
            plan = list(own.fallback)
            if reply.data:
                plan = distinct_criteria(reply.data["criteria"])[: own.max_criteria]
            criteria += [{**c, "order": order} if order else c for c in plan]
        return {
            "criteria": criteria,
            "failures": [failure for reply in replies for failure in reply.failures],
            "usages": [reply.usage for reply in replies],
        }

    def _plan(self, pair: Pair, order: Order | None) -> Steps[Reply]:
        most = self.own.max_criteria
        question = self.setup.question("branch", plan_shape(most), parse=parse_plan)
        return ask(
            question,
            {**self.request(pair), "max_criteria": most},
            unit=ORDER_NAMES[order] if order else "",
            order=order,
        )

    def solve_each(self, state: BSMState) -> Next:
        """Send every criterion, in every order, as often as it is sampled."""
        pair, own = pair_of(state), self.own
        if own.reference_model is not None:
            if not state.get("written_reference"):
                return "merge"
            pair["reference"] = state["written_reference"]
        examples = examples_in(state)
        return [
            Send(
                "solve",
                SolveWork(
                    pair=pair,
                    criterion=criterion,
                    order=order,
                    sample=sample,
                    examples=examples,
                ),
            )
            for criterion in state["criteria"]
            for order in self.own.order_list
            for sample in range(self.own.samples)
            if criterion.get("order", order) == order
        ] or "merge"

    def solve(self, work: SolveWork) -> Call:
        """Ask for the scores of both texts on one criterion, in one order."""
        own, several = self.own, self.own.samples > 1
        criterion, order, sample = work["criterion"], work["order"], work["sample"]
        description = f": {criterion['description']}" if criterion["description"] else "."
        low, high = own.scale
        variables = {
            **self.material(work["pair"], order, work["examples"]),
            "criterion": f"{criterion['name']}{description}",
            "low": low,
            "high": high,
            "explanation": "with the explanation before the scores"
            if own.explain_first
            else "then explain in one or two sentences what decided",
        }
        sampled = f", sample {sample + 1}" if several else ""
        unit = f"{criterion['name']} ({ORDER_NAMES[order]}{sampled})"
        seed = sample_seed(own.seed, sample) if several else None
        return Call(self.solving, variables, unit, order, seed)

    def solved(self, work: SolveWork, reply: Reply) -> Update:
        """Keep the scores by identity of the texts."""
        if not reply.data:
            return {}
        order = work["order"]
        subscore: Subscore = {
            "criterion": work["criterion"]["name"],
            "order": order,
            "sample": work["sample"],
            "scores": by_identity(order, reply.data["score_1"], reply.data["score_2"]),
            "explanation": reply.data["explanation"],
        }
        return {"subscores": [subscore]}

    def merge(self, state: BSMState) -> Steps[Update]:
        """Sum or weigh the findings of each order, then combine the orders."""
        own, failures, usages = self.own, list(state["failures"]), list(state["usages"])
        cells = mean_scores(state["criteria"], state["subscores"], own.order_list)
        missing = quorum(own, state["criteria"], cells)
        by_order: dict[str, OrderResult] = {}
        if missing is None:
            by_order = {order: order_totals(order, cells) for order in own.order_list}
        if by_order and own.merge == "model":
            replies = yield from together(
                [self._weigh(state, order, cells) for order in own.order_list]
            )
            for order, reply in zip(own.order_list, replies, strict=True):
                failures += reply.failures
                usages.append(reply.usage)
                by_order[order] = _weighed(order, reply, by_order[order])
        usage = add_usage(usages)
        undecided = any(result["preference"] is None for result in by_order.values())
        if missing or undecided:
            verdict = not_judged(failures, usage, missing or "")
        else:
            verdict = decide(own, cells, by_order, failures, usage)
        return {"verdict": verdict, "by_order": by_order}

    def _weigh(self, state: BSMState, order: Order, cells: Cells) -> Steps[Reply]:
        request = transcript(state["input"])
        findings = _findings(state, order, cells)
        examples = examples_in(state)
        token = fence_token([request, findings, *told(examples)])
        return ask(
            self.setup.question("merge", Choice),
            {
                "fence": token,
                "request": request,
                "findings": findings,
                **self.frame(pair_of(state), block(examples, token, order=order)),
            },
            unit=ORDER_NAMES[order],
            order=order,
        )

    def material(
        self, pair: Pair, order: Order, examples: Sequence[Example] = ()
    ) -> dict[str, object]:
        """Return the variables of a prompt that shows request, reference and both texts.

        With the answers of earlier turns each side has a request of its own.
        """
        request_a, text_a = self.seen(pair, "output_a")
        request_b, text_b = self.seen(pair, "output_b")
        request = request_a
        if request_a != request_b:
            first, second = in_slots(order, request_a, request_b)
            request = f"As response 1 saw it:\n{first}\n\nAs response 2 saw it:\n{second}"
        first, second = in_slots(order, text_a, text_b)
        reference = pair.get("reference") or ""
        # Hashed by identity and not by slot, so that both orders carry the same token.
        fenced = [request_a, request_b, text_a, text_b, reference]
        token = fence_token([*fenced, *told(examples)])
        return {
            "fence": token,
            "request": request,
            "reference": reference_block(token, reference),
            "response_1": first,
            "response_2": second,
            **self.frame(pair, block(examples, token, order=order)),
        }


def _findings(state: BSMState, order: Order, cells: Cells) -> str:
    """Render what the solve calls of one order found, in slots, as they saw it."""
    lines: list[str] = []
    for criterion in state["criteria"]:
        name = criterion["name"]
        if (name, order) not in cells:
            continue
        first, second = in_slots(order, cells[name, order]["A"], cells[name, order]["B"])
        explanation = next(
            subscore["explanation"]
            for subscore in state["subscores"]
            if (subscore["criterion"], subscore["order"]) == (name, order)
        )
        lines.append(
            f"{name}: {criterion['description']}\n"
            f"response 1 scored {first:g}, response 2 scored {second:g}. {explanation}"
        )
    return "\n\n".join(lines)


def _weighed(order: Order, reply: Reply, result: OrderResult) -> OrderResult:
    if not reply.data:
        return {**result, "preference": None}
    return {
        **result,
        "preference": preferred_slot(order, reply.data["preference"]),
        "explanation": reply.data["explanation"],
    }


create_bsm_judge = factory(BSM, BSM.build, "create_bsm_judge")
