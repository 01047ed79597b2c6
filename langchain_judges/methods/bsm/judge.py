"""Branch-Solve-Merge judging a pair: branch → solve → merge (Saha et al. 2023, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, Overwrite, Send
from pydantic import BaseModel

from langchain_judges.asking.ask import Question, Reply, ask
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.gate import Once
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Node, Steps, Update, together
from langchain_judges.memory.example import Example
from langchain_judges.memory.recall import Recall
from langchain_judges.memory.rendering import (
    RememberedPair,
    Reminder,
    block,
    cut_failures,
    reminder,
    told,
)
from langchain_judges.methods.bsm import prompts as texts
from langchain_judges.methods.bsm.options import CriterionLike, Options, check_options
from langchain_judges.methods.bsm.parse import parse_plan, parse_scores
from langchain_judges.methods.bsm.state import (
    Answer,
    BSMResult,
    BSMState,
    Choice,
    OrderResult,
    Subscore,
    Work,
    scores_shape,
)
from langchain_judges.methods.bsm.tally import decide, mean_scores, order_totals, quorum
from langchain_judges.methods.old_base import check_common, finish, prompt_set
from langchain_judges.methods.plans import Criterion, distinct_criteria, plan_shape
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    OrderRule,
    by_identity,
    in_slots,
    preferred_slot,
)
from langchain_judges.rows.texts import (
    check_pair,
    fence_token,
    judged,
    transcript,
    user_turns,
)
from langchain_judges.verdict import (
    Failure,
    Pair,
    add_usage,
    cached_usage,
    even_verdict,
    not_judged,
)

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory


def create_bsm_judge(  # noqa: PLR0913 - the options of the paper's settings
    model: str | BaseChatModel,
    *,
    criteria: Sequence[CriterionLike] | None = None,
    branch_model: str | BaseChatModel | None = None,
    merge_model: str | BaseChatModel | None = None,
    reference_model: str | BaseChatModel | None = None,
    max_criteria: int = 5,
    scale: tuple[int, int] = (1, 5),
    merge: Literal["sum", "model"] = "sum",
    orders: OrderRule = "strict",
    samples: int = 1,
    reuse_plan: bool = True,
    show_turn1_answers: bool = False,
    explain_first: bool = False,
    fallback_criteria: Sequence[CriterionLike] | None = None,
    min_valid: int | None = None,
    seed: int = 0,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "bsm",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[BSMState, None, Pair, BSMResult]:
    """Create a Branch-Solve-Merge judge of pairs (Saha et al. 2023, section 3, Algorithm 1).

    `branch` plans up to `max_criteria` criteria from the request alone; `solve` scores both
    texts on each criterion, in both orders; `merge` sums the scores of each order and
    prefers a text only if both orders do. With K criteria that is 1 + 2K calls.

    Where the paper is silent or we differ: the plan is made once and serves both orders
    (the paper plans twice, which is the same under greedy decoding); a criterion that
    cannot be scored in one order is left out of both; replies are JSON; a plan that fails
    is not replaced by fixed criteria unless `fallback_criteria` says so.

    Args:
        model: Chat model that scores, and plans and merges too unless others are given; a
            chat model, or a name as `resolve_model` takes it.
        criteria: The plan, if it is yours: names, `"name: description"`, or
            `{"name", "description"}`. Nothing is planned then (2K calls).
        branch_model: Plans instead of `model`.
        merge_model: Merges instead of `model`, where `merge="model"`.
        reference_model: Writes a reference answer where a pair has none, once for each
            request (one more call); judging is then by reference.
        max_criteria: Most criteria in a plan (the paper's branching factor).
        scale: Lowest and highest score.
        merge: `"sum"` adds the scores up (every result of the paper); `"model"` asks a
            model for the verdict of each order (one more call for each).
        orders: `"strict"`, `"lenient"`, `"score_mean"` or `"none"`; see `orders.py`.
        samples: Solve calls for each criterion and order, at temperature 0.7 if there are
            several; their scores are averaged (the paper's self-consistency).
        reuse_plan: Plan once; False plans for each order on its own, as printed.
        show_turn1_answers: Show the answers of earlier turns, which the paper hides.
        explain_first: Ask for the explanation before the scores; the paper scores first.
        fallback_criteria: Used, and the failure reported, where planning failed.
        min_valid: Fewest criteria that must be scored for a verdict; default more than half.
        seed: Of the samples.
        instructions: Your rubric, or the language to answer in; shown to every step.
        memory: Audited mistakes; those that fit a pair are shown to `solve` and `merge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacements for `bsm.prompts.PROMPTS`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer: `SqliteSaver` for `invoke`,
            `AsyncSqliteSaver` for `ainvoke`.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "criteria", "subscores", "by_order"}`.
        `verdict.scores` are the totals over all orders; `verdict.score` is 0.5 plus the
        mean normalised margin.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.

    Example:
        >>> from langchain_judges import create_bsm_judge
        >>> judge = create_bsm_judge("local", max_criteria=2)  # doctest: +SKIP
        >>> judge.invoke({"input": "Why is the sky blue?", "output_a": "Rayleigh "
        ...     "scattering.", "output_b": "It just is."})["verdict"]  # doctest: +SKIP
    """
    check_common(
        branch_model=branch_model,
        merge_model=merge_model,
        reference_model=reference_model,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    options = check_options(
        criteria=criteria,
        max_criteria=max_criteria,
        scale=scale,
        merge=merge,
        orders=orders,
        samples=samples,
        reuse_plan=reuse_plan,
        show_turn1_answers=show_turn1_answers,
        explain_first=explain_first,
        fallback_criteria=fallback_criteria,
        min_valid=min_valid,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        writes_reference=reference_model is not None,
    )
    chosen, version = prompt_set(texts.PROMPTS, prompts)
    solver = Channel(model, temperature)
    channels = {
        "branch": Channel(branch_model, temperature) if branch_model else solver,
        "solve": solver,
        "merge": Channel(merge_model, temperature) if merge_model else solver,
        "reference": Channel(reference_model, temperature) if reference_model else solver,
    }
    shapes: dict[str, type[BaseModel]] = {
        "branch": plan_shape(max_criteria),
        "solve": scores_shape(options.scale, explain_first),
        "merge": Choice,
        "reference": Answer,
    }
    questions = {
        step: Question(
            method="bsm",
            step=step,
            channel=channels[step],
            prompt=chosen[step],
            shape=shapes[step],
            version=version,
            parse={"branch": parse_plan, "solve": parse_scores}.get(step),
            sampled=step == "solve" and samples > 1,
            repairs=repairs,
            cache=cache,
        )
        for step in shapes
    }
    contexts = [channels[step].context for step in ("solve", "merge")]
    reminding = reminder(memory, recall, allow_leak, contexts)
    judge = _BranchSolveMerge(options, questions, Once(), reminding)
    graph: StateGraph[BSMState, None, Pair, BSMResult] = StateGraph(
        BSMState, input_schema=RememberedPair, output_schema=BSMResult
    )
    graph.add_node("branch", Node(judge.branch))
    graph.add_node("solve", Node(judge.solve))
    graph.add_node("merge", Node(judge.merge))
    graph.add_edge(START, "branch")
    graph.add_conditional_edges("branch", judge.solve_each, ["solve", "merge", END])
    graph.add_edge("solve", "merge")
    graph.add_edge("merge", END)
    compiled = graph.compile(checkpointer=checkpointer, store=store, name=name)
    return finish(
        compiled,
        method="bsm",
        options={**options.as_json(), **({"memory": reminding.mark()} if reminding else {})},
        models={step: channel.identity for step, channel in channels.items()},
        prompt_version=version,
        calls=options.calls(),
        branches=options.solves(),
        memory=memory,
    )


@dataclass(frozen=True)
class _BranchSolveMerge:
    """The three steps of the method, with their options and questions."""

    options: Options
    questions: dict[str, Question]
    references: Once[Reply]
    reminding: Reminder | None = None

    def branch(self, state: BSMState) -> Steps[Update]:
        """Plan the criteria from the request alone, and write a missing reference."""
        check_pair(state)
        pair: Pair = _pair(state)
        # A checkpointed thread still holds the lists of its previous run.
        fresh: Update = {key: Overwrite([]) for key in ("subscores", "failures", "usages")}
        nothing: Update = {"criteria": [], "by_order": {}}
        if self._seen(pair, "output_a") == self._seen(pair, "output_b"):
            untouched = self.reminding.untouched if self.reminding else {}
            return {**fresh, **nothing, **untouched, "verdict": even_verdict()}
        parts = [self._plan(pair), self._answer(pair), *self._reminders(state)]
        planned, answered, *recalled = yield from together(parts)
        found = [planned, answered, *recalled]
        failures: list[Failure] = [each for part in found for each in part["failures"]]
        return {
            **fresh,
            **nothing,
            **(recalled[0]["update"] if recalled else {}),
            "criteria": planned["criteria"],
            "written_reference": answered["reference"],
            "failures": Overwrite(failures),
            "usages": Overwrite([*planned["usages"], *answered["usages"]]),
            "verdict": None,
        }

    def solve_each(self, state: BSMState) -> list[Send] | str:
        """Send every criterion, in every order, as often as it is sampled."""
        if state.get("verdict"):
            return END
        pair = _pair(state)
        if self.options.writes_reference:
            if not state.get("written_reference"):
                return "merge"
            pair["reference"] = state["written_reference"]
        work: list[Work] = [
            {"pair": pair, "criterion": criterion, "order": order, "sample": sample}
            for criterion in state["criteria"]
            for order in self.options.order_list
            for sample in range(self.options.samples)
            if criterion.get("order", order) == order
        ]
        if examples := _examples(state):
            work = [{**part, "examples": examples} for part in work]
        return [Send("solve", part) for part in work] or "merge"

    def solve(self, work: Work) -> Steps[Update]:
        """Score both texts on one criterion, in one order."""
        criterion, order, sample = work["criterion"], work["order"], work["sample"]
        sampled = f", sample {sample + 1}" if self.options.samples > 1 else ""
        described = f": {criterion['description']}" if criterion["description"] else "."
        low, high = self.options.scale
        reply = yield from ask(
            self.questions["solve"],
            {
                **self._material(work["pair"], order, work.get("examples", [])),
                "criterion": f"{criterion['name']}{described}",
                "low": low,
                "high": high,
                "explanation": "with the explanation before the scores"
                if self.options.explain_first
                else "then explain in one or two sentences what decided",
            },
            unit=f"{criterion['name']} ({ORDER_NAMES[order]}{sampled})",
            order=order,
            seed=sample_seed(self.options.seed, sample) if self.options.samples > 1 else None,
        )
        update: Update = {"failures": reply.failures, "usages": [reply.usage]}
        if reply.data:
            found: Subscore = {
                "criterion": criterion["name"],
                "order": order,
                "sample": sample,
                "scores": by_identity(order, reply.data["score_1"], reply.data["score_2"]),
                "explanation": reply.data["explanation"],
            }
            update["subscores"] = [found]
        return update

    def merge(self, state: BSMState) -> Steps[Update]:
        """Sum or weigh the findings of each order, then combine the orders."""
        failures = list(state["failures"])
        usages = list(state["usages"])
        kept = mean_scores(state["criteria"], state["subscores"], self.options.order_list)
        missing = quorum(self.options, state["criteria"], kept)
        by_order: dict[str, OrderResult] = {}
        if missing is None:
            by_order = {o: order_totals(o, kept) for o in self.options.order_list}
        if by_order and self.options.merge == "model":
            replies = yield from together(
                [self._weigh(state, order, kept) for order in self.options.order_list]
            )
            for order, reply in zip(self.options.order_list, replies, strict=True):
                failures += reply.failures
                usages.append(reply.usage)
                by_order[order] = _chosen(order, reply, by_order[order])
        usage = add_usage(usages)
        undecided = any(result["preference"] is None for result in by_order.values())
        if missing or undecided:
            verdict = not_judged(failures, usage, missing or "")
        else:
            verdict = decide(self.options, kept, by_order, failures, usage)
        return {"verdict": verdict, "by_order": by_order}

    def _plan(self, pair: Pair) -> Steps[Update]:
        if self.options.criteria:
            return {"criteria": list(self.options.criteria), "failures": [], "usages": []}
        plans: tuple[Order | None, ...] = (None,)
        if not self.options.reuse_plan:
            plans = self.options.order_list
        replies = yield from together([self._ask_plan(pair, order) for order in plans])
        criteria: list[Criterion] = []
        for order, reply in zip(plans, replies, strict=True):
            found = list(self.options.fallback)
            if reply.data:
                found = distinct_criteria(reply.data["criteria"])[: self.options.max_criteria]
            criteria += [{**c, "order": order} if order else c for c in found]
        return {
            "criteria": criteria,
            "failures": [failure for reply in replies for failure in reply.failures],
            "usages": [reply.usage for reply in replies],
        }

    def _ask_plan(self, pair: Pair, order: Order | None) -> Steps[Reply]:
        request = transcript(pair["input"])
        return ask(
            self.questions["branch"],
            {
                "fence": fence_token([request]),
                "request": request,
                "max_criteria": self.options.max_criteria,
                **self._frame(pair),
            },
            unit=ORDER_NAMES[order] if order else "",
            order=order,
        )

    def _answer(self, pair: Pair) -> Steps[Update]:
        """Return the pair's reference; write one, once for each request, if asked to."""
        own = pair.get("reference")
        if own or not self.options.writes_reference:
            return {"reference": own, "failures": [], "usages": []}
        request = transcript(pair["input"])
        variables = {
            "fence": fence_token([request]),
            "request": request,
            "focus": texts.FOCUS if user_turns(pair["input"]) > 1 else "",
        }
        reply, reused = yield from self.references.get(
            request,
            lambda: ask(self.questions["reference"], variables),
            lambda reply: reply.data is not None,
        )
        usage = cached_usage("reference") if reused else reply.usage
        answer = reply.data["answer"] if reply.data else None
        return {"reference": answer, "failures": reply.failures, "usages": [usage]}

    def _weigh(
        self, state: BSMState, order: Order, kept: Mapping[tuple[str, Order], dict[str, float]]
    ) -> Steps[Reply]:
        request = transcript(state["input"])
        findings = _findings(state, order, kept)
        examples = _examples(state)
        token = fence_token([request, findings, *told(examples)])
        return ask(
            self.questions["merge"],
            {
                "fence": token,
                "request": request,
                "findings": findings,
                **self._frame(_pair(state), block(examples, token, order=order)),
            },
            unit=ORDER_NAMES[order],
            order=order,
        )

    def _seen(self, pair: Pair, side: Literal["output_a", "output_b"]) -> tuple[str, str]:
        """Return what a model sees of one side: its request and its judged text."""
        earlier = pair[side] if self.options.show_turn1_answers else ""
        return transcript(pair["input"], earlier), judged(pair[side])

    def _material(
        self, pair: Pair, order: Order, examples: Sequence[Example]
    ) -> dict[str, object]:
        request_a, text_a = self._seen(pair, "output_a")
        request_b, text_b = self._seen(pair, "output_b")
        request = request_a
        if request_a != request_b:
            first, second = in_slots(order, request_a, request_b)
            request = f"As response 1 saw it:\n{first}\n\nAs response 2 saw it:\n{second}"
        first, second = in_slots(order, text_a, text_b)
        reference = pair.get("reference") or ""
        # Hashed by identity and not by slot, so that both orders carry the same token.
        shown = [request_a, request_b, text_a, text_b, reference]
        token = fence_token([*shown, *told(examples)])
        return {
            "fence": token,
            "request": request,
            "reference": texts.REFERENCE_ANSWER.format(fence=token, reference=reference)
            if reference
            else "",
            "response_1": first,
            "response_2": second,
            **self._frame(pair, block(examples, token, order=order)),
        }

    def _frame(self, pair: Pair, examples: str = "") -> dict[str, str]:
        """Return what stands around the material: focus, the caller's words, examples."""
        added = self.options.instructions
        return {
            "focus": texts.FOCUS if user_turns(pair["input"]) > 1 else "",
            "instructions": (texts.INSTRUCTIONS.format(instructions=added) if added else "")
            + examples,
        }

    def _reminders(self, state: BSMState) -> list[Steps[Update]]:
        return [self._remind(self.reminding, state)] if self.reminding else []

    def _remind(self, reminding: Reminder, state: BSMState) -> Steps[Update]:
        """Recall examples for the pair."""
        found = yield from reminding.remind(state)
        update = {"reminded": found, "recalled": found["account"]}
        return {"update": update, "failures": cut_failures(found["account"])}


def _examples(state: BSMState) -> list[Example]:
    reminded = state.get("reminded")
    return reminded["examples"] if reminded else []


def _pair(state: BSMState) -> Pair:
    pair: Pair = {
        "input": state["input"],
        "output_a": state["output_a"],
        "output_b": state["output_b"],
        "reference": state.get("reference"),
    }
    return pair


def _findings(
    state: BSMState, order: Order, kept: Mapping[tuple[str, Order], dict[str, float]]
) -> str:
    """Render what the solve calls of one order found, in slots, as they saw it."""
    lines: list[str] = []
    for criterion in state["criteria"]:
        name = criterion["name"]
        if (name, order) not in kept:
            continue
        first, second = in_slots(order, kept[name, order]["A"], kept[name, order]["B"])
        said = next(
            found["explanation"]
            for found in state["subscores"]
            if (found["criterion"], found["order"]) == (name, order)
        )
        lines.append(
            f"{name}: {criterion['description']}\n"
            f"response 1 scored {first:g}, response 2 scored {second:g}. {said}"
        )
    return "\n\n".join(lines)


def _chosen(order: Order, reply: Reply, result: OrderResult) -> OrderResult:
    if not reply.data:
        return {**result, "preference": None}
    return {
        **result,
        "preference": preferred_slot(order, reply.data["preference"]),
        "explanation": reply.data["explanation"],
    }
