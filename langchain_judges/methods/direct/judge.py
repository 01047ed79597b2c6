"""The one graph that every baseline is: [plan →] judge, in parallel → merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

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
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.memory.recall import Recall
from langchain_judges.memory.rendering import (
    RememberedPair,
    Reminder,
    block,
    cut_failures,
    reminder,
    told,
)
from langchain_judges.methods.base import check_common, finish, prompt_set
from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.options import Options
from langchain_judges.methods.direct.parse import measure, spoken_choice, spoken_scores
from langchain_judges.methods.direct.shots import render_shots
from langchain_judges.methods.direct.state import (
    Ballot,
    Choice,
    DirectState,
    ForcedChoice,
    Subscore,
    Work,
    scores_shape,
    sheet_shape,
)
from langchain_judges.methods.direct.tally import decide
from langchain_judges.methods.plans import Criterion, distinct_criteria, plan_shape
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    by_identity,
    in_slots,
    prefer,
    preferred_slot,
)
from langchain_judges.rows.texts import check_pair, fence_token, judged, transcript, user_turns
from langchain_judges.verdict import Failure, Pair, add_usage, even_verdict, not_judged

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory

Judge = CompiledStateGraph[DirectState, None, Pair, Any]


@dataclass(frozen=True)
class Setting:
    """What a caller decides about any baseline beside its options."""

    model: str | BaseChatModel
    temperature: float | None
    prompts: Mapping[str, ChatPromptTemplate] | None
    name: str
    checkpointer: Checkpointer
    cache: BaseCache | None
    store: BaseStore | None
    memory: FailureMemory | None
    recall: Recall | str | None
    allow_leak: bool


def build(
    setting: Setting,
    options: Options,
    prompts: Mapping[str, ChatPromptTemplate],
    result: type[Any],
) -> Judge:
    """Build the graph of a baseline.

    Args:
        setting: The model, the caller's prompts and what LangGraph is given.
        options: The checked options.
        prompts: The baseline's own prompt for `judge`, and for `plan` if it plans.
        result: The output schema.
    """
    check_common(
        name=setting.name,
        checkpointer=setting.checkpointer,
        cache=setting.cache,
        store=setting.store,
    )
    chosen, version = prompt_set(prompts, setting.prompts)
    channel = Channel(setting.model, setting.temperature)
    questions = {
        step: Question(
            method=options.method,
            step=step,
            channel=channel,
            prompt=chosen[step],
            shape=plan_shape(options.max_criteria) if step == "plan" else _shape(options),
            version=version,
            repairs=options.repairs,
            cache=setting.cache,
        )
        for step in prompts
    }
    one_label = options.reads != "scores" and options.samples == 1
    questions["judge"] = replace(
        questions["judge"],
        sampled=options.samples > 1,
        # The name of a sample is the whole name of its run.
        label="{unit}" if options.samples > 1 else "",
        logprobs=one_label,
        measure=measure if one_label else None,
        parse=None
        if options.max_criteria
        else spoken_scores
        if options.reads == "scores"
        else spoken_choice,
    )
    reminding = reminder(setting.memory, setting.recall, setting.allow_leak, [channel.context])
    baseline = _Baseline(options, questions, reminding)
    graph: StateGraph[DirectState, None, Pair, Any] = StateGraph(
        DirectState, input_schema=RememberedPair, output_schema=result
    )
    plans = bool(options.max_criteria)
    first = "plan" if plans else "open"
    graph.add_node(first, Node(getattr(baseline, first)))
    graph.add_node("judge", Node(baseline.judge))
    graph.add_node("merge", Node(baseline.merge))
    graph.add_edge(START, first)
    graph.add_conditional_edges(first, baseline.ask_each, ["judge", END] + ["merge"] * plans)
    graph.add_edge("judge", "merge")
    graph.add_edge("merge", END)
    compiled = graph.compile(
        checkpointer=setting.checkpointer, store=setting.store, name=setting.name
    )
    return finish(
        compiled,
        method=options.method,
        options={**options.as_json(), **({"memory": reminding.mark()} if reminding else {})},
        models=dict.fromkeys(questions, channel.identity),
        prompt_version=version,
        calls=options.calls(),
        branches=len(options.order_list) * options.samples,
        memory=setting.memory,
    )


def _shape(options: Options) -> type[BaseModel]:
    if options.reads == "scores":
        return scores_shape(options.scale)
    return Choice if options.reads == "label" else ForcedChoice


@dataclass(frozen=True)
class _Baseline:
    """The steps of a baseline, with its options and questions."""

    options: Options
    questions: dict[str, Question]
    reminding: Reminder | None = None

    def open(self, state: DirectState) -> Steps[Update]:
        """Check the pair and recall examples; two identical texts are a tie already."""
        yield from ()
        check_pair(state)
        # A checkpointed thread still holds the lists of its previous run.
        lists = ("ballots", "subscores", "failures", "usages")
        fresh: Update = {key: Overwrite([]) for key in lists}
        same = judged(state["output_a"]) == judged(state["output_b"])
        fresh.update(criteria=[], llm_score=None, verdict=even_verdict() if same else None)
        if not self.reminding:
            return fresh
        if same:
            return {**fresh, **self.reminding.untouched}
        found = yield from self.reminding.remind(state)
        cut = Overwrite(cut_failures(found["account"]))
        return {**fresh, "reminded": found, "recalled": found["account"], "failures": cut}

    def plan(self, state: DirectState) -> Steps[Update]:
        """Plan the criteria from the request alone."""
        fresh = yield from self.open(state)
        if fresh["verdict"]:
            return fresh
        request = transcript(state["input"])
        reply = yield from ask(
            self.questions["plan"],
            {
                "fence": fence_token([request]),
                "request": request,
                "max_criteria": self.options.max_criteria,
                **self._frame(_pair(state)),
            },
        )
        planned = distinct_criteria(reply.data["criteria"]) if reply.data else []
        return {
            **fresh,
            "criteria": planned[: self.options.max_criteria],
            "failures": Overwrite([*fresh["failures"].value, *reply.failures]),
            "usages": Overwrite([reply.usage]),
        }

    def ask_each(self, state: DirectState) -> list[Send] | str:
        """Send every order, as often as it is sampled."""
        if state.get("verdict"):
            return END
        if self.options.max_criteria and not state["criteria"]:
            return "merge"
        pair, criteria = _pair(state), state["criteria"]
        work: list[Work] = [
            {"pair": pair, "criteria": criteria, "order": order, "sample": sample}
            for order in self.options.order_list
            for sample in range(self.options.samples)
        ]
        if (reminded := state.get("reminded")) and reminded["examples"]:
            work = [{**part, "examples": reminded["examples"]} for part in work]
        return [Send("judge", part) for part in work]

    def judge(self, work: Work) -> Steps[Update]:
        """Ask for one verdict, in one order."""
        order, sample = work["order"], work["sample"]
        question, unit, seed = self._asked(work)
        reply = yield from ask(
            question, self._material(work), unit=unit, order=order, seed=seed
        )
        update: Update = {"failures": reply.failures, "usages": [reply.usage]}
        if not reply.data:
            return update
        if self.options.max_criteria:
            lines, missing = _lines(reply, work, unit, self.options)
            return {**update, "subscores": lines, "failures": [*reply.failures, *missing]}
        ballot: Ballot = {
            "order": order,
            "sample": sample,
            "preference": None,
            "scores": None,
            "explanation": reply.data["explanation"],
            "probability": reply.measured.get("label"),
            "confidence": reply.measured.get("joint"),
        }
        if self.options.reads == "scores":
            scores = by_identity(order, reply.data["score_1"], reply.data["score_2"])
            ballot["scores"] = {side: float(score) for side, score in scores.items()}
            ballot["preference"] = prefer(scores)
        else:
            ballot["preference"] = preferred_slot(order, reply.data["preference"])
        return {**update, "ballots": [ballot]}

    def merge(self, state: DirectState) -> Steps[Update]:
        """Take the majority of each order, then combine the orders."""
        yield from ()
        options, pair = self.options, _pair(state)
        failures, usage = list(state["failures"]), add_usage(state["usages"])
        ballots = sorted(state["ballots"], key=_place)
        subscores = sorted(state["subscores"], key=lambda line: line["order"])
        if options.max_criteria:
            ballots, short = _totals(options, state["criteria"], subscores)
            if short:
                verdict = not_judged(failures, usage, short)
                return {"ballots": Overwrite([]), "verdict": verdict}
        update: Update = {"ballots": Overwrite(ballots), "subscores": Overwrite(subscores)}
        if options.method != "llm_score":
            return {**update, "verdict": decide(options, pair, ballots, failures, usage)}
        if ballots and any(ballot["confidence"] is None for ballot in ballots):
            failures.append(_NO_LOGPROBS)
            ballots = [{**b, "probability": None, "confidence": None} for b in ballots]
        verdict = decide(options, pair, ballots, failures, usage)
        if verdict["preference"] is not None:
            weights = _weights(ballots)
            verdict["scores"] = weights
            update["llm_score"] = weights["A"]
        return {**update, "verdict": verdict}

    def _asked(self, work: Work) -> tuple[Question, str, int | None]:
        """Return the question, the unit and the seed of one call."""
        options, order, sample = self.options, work["order"], work["sample"]
        both = len(options.order_list) > 1
        question = self.questions["judge"]
        if options.samples > 1:
            name = f"sample {sample + 1}" + (f" ({ORDER_NAMES[order]})" if both else "")
            # Orders have seeds of their own too.
            place = options.order_list.index(order) * options.samples + sample
            return question, name, sample_seed(options.seed, place)
        if work["criteria"]:
            scale, count = options.scale, len(work["criteria"])
            question = replace(
                question,
                shape=sheet_shape(scale, count, whole=True),
                partial=sheet_shape(scale, count, whole=False),
            )
        return question, ORDER_NAMES[order] if both else "", None

    def _material(self, work: Work) -> dict[str, object]:
        pair, order = work["pair"], work["order"]
        request, reference = transcript(pair["input"]), pair.get("reference") or ""
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        examples = work.get("examples", [])
        # Hashed by identity and not by slot, so that both orders carry the same token.
        token = fence_token([request, a, b, reference, *told(examples)])
        noun = "passage" if self.options.method == "llm_score" else "response"
        low, high = self.options.scale
        aspects = ", ".join(self.options.aspects)
        plan = [f"{i}. {_described(c)}" for i, c in enumerate(work["criteria"], 1)]
        return {
            "fence": token,
            "request": request,
            "reference": texts.REFERENCE.format(fence=token, reference=reference)
            if reference
            else "",
            "response_1": first,
            "response_2": second,
            "examples": render_shots(self.options.shots),
            "aspects": texts.ASPECTS.format(aspects=aspects) if aspects else "",
            "criteria": "\n".join(plan),
            "low": low,
            "high": high,
            **self._frame(pair, block(examples, token, order=order, noun=noun)),
        }

    def _frame(self, pair: Pair, examples: str = "") -> dict[str, str]:
        """Return what stands around the material: focus, the caller's words, examples."""
        added = self.options.instructions
        return {
            "focus": texts.FOCUS if user_turns(pair["input"]) > 1 else "",
            "instructions": (texts.INSTRUCTIONS.format(instructions=added) if added else "")
            + examples,
        }


def _place(ballot: Ballot) -> tuple[str, int]:
    return ballot["order"], ballot["sample"]


def _pair(state: DirectState) -> Pair:
    return {
        "input": state["input"],
        "output_a": state["output_a"],
        "output_b": state["output_b"],
        "reference": state.get("reference"),
    }


def _described(criterion: Criterion) -> str:
    described = criterion["description"]
    return f"{criterion['name']}: {described}" if described else criterion["name"]


def _lines(
    reply: Reply, work: Work, unit: str, options: Options
) -> tuple[list[Subscore], list[Failure]]:
    """Return the scores of every criterion in a reply, and a failure for each without."""
    lines: list[Subscore] = []
    failures: list[Failure] = []
    data = reply.data or {}
    for i, criterion in enumerate(work["criteria"]):
        said = data.get(f"criterion_{i + 1}")
        try:
            scores = scores_shape(options.scale).model_validate(
                {"explanation": "", **said} if isinstance(said, Mapping) else said
            )
        except ValueError:
            failures.append(
                {
                    "step": "judge",
                    "unit": ", ".join(filter(None, [criterion["name"], unit])),
                    "reason": "missing" if said is None else "invalid_label",
                    "detail": f"no two scores for {criterion['name']}: {str(said)[:80]}",
                }
            )
            continue
        found = scores.model_dump()
        lines.append(
            {
                "criterion": criterion["name"],
                "order": work["order"],
                "sample": work["sample"],
                "scores": by_identity(work["order"], found["score_1"], found["score_2"]),
                "explanation": str(data.get("explanation") or ""),
            }
        )
    return lines, failures


def _totals(
    options: Options, criteria: Sequence[Criterion], subscores: Sequence[Subscore]
) -> tuple[list[Ballot], str]:
    """Sum the criteria of each order, or say what is missing.

    Totals over different criteria could not be compared: a criterion that one order lacks
    is left out of the other too.
    """
    if not criteria:
        return [], "Not judged: there is no plan of criteria."
    scored = {(line["criterion"], line["order"]) for line in subscores}
    kept = [
        c["name"] for c in criteria if all((c["name"], o) in scored for o in options.order_list)
    ]
    least = options.min_valid or len(criteria) // 2 + 1
    if len(kept) < least:
        return [], (
            f"Not judged: {len(kept)} of {len(criteria)} criteria could be scored, at least "
            f"{least} must be."
        )
    return [_total(order, kept, subscores) for order in options.order_list], ""


def _total(order: Order, kept: Sequence[str], subscores: Sequence[Subscore]) -> Ballot:
    lines = [s for s in subscores if s["order"] == order and s["criterion"] in kept]
    totals = {side: float(sum(line["scores"][side] for line in lines)) for side in ("A", "B")}
    return {
        "order": order,
        "sample": 0,
        "preference": prefer(totals),
        "scores": totals,
        "explanation": lines[0]["explanation"],
        "probability": None,
        "confidence": None,
    }


def _weights(ballots: Sequence[Ballot]) -> dict[str, float]:
    """Return `1(preferred) · P` for each text, averaged over the orders (DRPE, equation 4)."""
    weighed = [
        (ballot["preference"], 1.0 if ballot["confidence"] is None else ballot["confidence"])
        for ballot in ballots
    ]
    return {
        side: fmean(p if side == said else 0.0 for said, p in weighed) for side in ("A", "B")
    }


_NO_LOGPROBS: Failure = {
    "step": "judge",
    "unit": "",
    "reason": "no_logprobs",
    "detail": "the choice weighs one: the model gave no token log-probabilities",
}
