"""The baselines: options, and the one graph that all of them are: [plan →] judge → merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, StateGraph
from langgraph.types import Overwrite, Send
from pydantic import AfterValidator, BaseModel, model_validator

from langchain_judges.asking.ask import Question, Reply
from langchain_judges.asking.nodes import Call
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.rendering import RememberedPair
from langchain_judges.methods.base import JudgeGraph, JudgeOptions, Seed, Setup, check_quorum
from langchain_judges.methods.budgets import ASPECTS, Budget
from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.evidence import ANSWERS
from langchain_judges.methods.direct.parse import measure, spoken_choice, spoken_scores
from langchain_judges.methods.direct.replies import (
    Ballot,
    Choice,
    DirectResult,
    DirectState,
    ForcedChoice,
    JudgeWork,
    LLMScoreResult,
    PlanSolveResult,
    SelfConsistencyResult,
    read_sheet,
    sheet_shape,
)
from langchain_judges.methods.direct.shots import render_shots
from langchain_judges.methods.direct.stopping import next_samples
from langchain_judges.methods.direct.tally import decide, order_totals, weights
from langchain_judges.methods.evidence import SUBSCORES, EvidenceTable, scores_by_criterion
from langchain_judges.methods.few_shot import FewShot, WorkedExample
from langchain_judges.methods.pairs import (
    FOCUS,
    Next,
    PairSteps,
    begin,
    examples_in,
    middle,
    pair_of,
)
from langchain_judges.methods.plans import (
    Criterion,
    distinct_criteria,
    plan_shape,
    scores_shape,
)
from langchain_judges.methods.stopping import Adaptive, not_asked_sentence
from langchain_judges.methods.tasks import AboutTask, AutoTask, settle
from langchain_judges.options import ClientMost, Rule, Scale, factory
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    OrderRule,
    by_identity,
    orders_of,
    prefer,
    preferred_slot,
)
from langchain_judges.verdict import Failure, Pair, Preference, add_usage, not_judged

Reads = Literal["label", "forced_label", "scores"]
"""What a reply holds: one of three labels, one of two, or scores for both texts."""


class Baseline(JudgeOptions):
    """What all baselines share."""

    evidence: ClassVar[Sequence[EvidenceTable]] = (ANSWERS,)
    reply: ClassVar[Reads] = "forced_label"
    result: ClassVar[type[Any]] = DirectResult
    noun: ClassVar[str] = "response"

    @property
    def reads(self) -> Reads:
        """What a reply holds."""
        return self.reply

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return self.templates

    @property
    def replies(self) -> int:
        """How many replies each order is asked for."""
        return 1

    @property
    def coin(self) -> bool:
        """Whether a coin decides where the replies of one order are even."""
        return False

    @property
    def chance(self) -> int:
        """The seed of samples and of the coin."""
        return 0

    @property
    def stops_early(self) -> bool:
        """Whether samples are asked only while they can change the verdict."""
        return False

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return ()

    @property
    def named_aspects(self) -> Sequence[str]:
        """What the texts are compared by."""
        return ()

    @property
    def about(self) -> str | Mapping[str, str] | None:
        """What the judgment is about; None where the prompt has its own question."""
        return None

    @property
    def grades(self) -> tuple[int, int]:
        """The lowest and the highest score."""
        return 1, 10

    @property
    def plan_size(self) -> int:
        """Criteria of the plan; 0 where nothing is planned."""
        return 0

    def quorum(self, asked: int) -> int:
        """Return the fewest valid replies in an order that was asked so often."""
        return asked // 2 + 1

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return len(self.order_list) * self.replies

    def calls(self) -> int:
        """Return the calls for one pair, excluding repairs."""
        return bool(self.plan_size) + self.branches()

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        steps = dict.fromkeys(self.prompt_texts)
        setup = Setup.of(self, model, steps, shown=("judge",), templates=self.prompt_texts)
        return _graph(BaselineSteps(setup, self))


class AboutATask(Baseline):
    """A baseline that asks what SC² asks, in the same words."""

    task: AboutTask = "helpful"
    """`"helpful"`, `"harmless"`, `"summary"`, `"document"`, `"dialogue"`, or `{"question",
    "quality"}` of your own; what `create_sc2_judge` takes."""

    @property
    def about(self) -> str | Mapping[str, str] | None:
        """What the judgment is about."""
        return self.task


class ShownExamples(FewShot, Baseline):
    """A baseline that can show worked examples."""


class Relative(ShownExamples):
    """Create a judge that is asked, in each order, which text is better, or if neither is.

    Zero-shot relative evaluation (Saha et al. 2023, section 4; the pairwise prompt of
    MT-Bench, in our words): two calls, a tie is allowed, and a text is preferred only if
    both orders prefer it.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the mean
        probability of A over the orders where the model gives log-probabilities of the
        label, else 1, 0.5 or 0; a tie is 0.5.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "relative"
    summary = "Zero-shot relative: which is better, or a tie; both orders must agree."
    presets = {"one_order": {"orders": "none"}}
    budgets = (Budget(2),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.RELATIVE}
    reply = "label"

    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""


class Absolute(Baseline):
    """Create a judge that scores both texts in one call, in each order.

    Zero-shot absolute evaluation (Saha et al. 2023, section 4; the two-score prompt of
    MT-Bench, in our words): two calls, the higher score wins its order, equal scores are a
    tie, and a text is preferred only if both orders prefer it.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.scores` are the
        sums over the orders, `verdict.score` the mean of 1, 0.5 and 0 over the orders.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "absolute"
    summary = "Zero-shot absolute: two scores in one call; both orders must agree."
    presets = {"five_points": {"scale": (1, 5)}}
    budgets = (Budget(2),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.ABSOLUTE}
    reply = "scores"

    scale: Scale = (1, 10)
    """Lowest and highest score."""
    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""

    @property
    def grades(self) -> tuple[int, int]:
        """The lowest and the highest score."""
        return self.scale


def _distinct(aspects: Sequence[str] | None) -> tuple[str, ...] | None:
    if aspects is None:
        return None
    names = tuple(aspect.strip() for aspect in aspects)
    if isinstance(aspects, str) or not names or not all(names):
        raise ValueError("no names")
    if len({name.casefold() for name in names}) < len(names):
        raise OptionError(f"`aspects` must be a list of distinct names, got {aspects!r}")
    return names


class Direct(AboutATask):
    """Create a judge that is asked once for the better text (direct prompting).

    Yan et al. 2023 (SC², section 4), with or without aspects: one call, A stands first,
    and there is no tie. The question and what a good text is like are those of
    `create_sc2_judge` with the same `task`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the
        probability of the label A where the model gives log-probabilities, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "direct"
    summary = "Direct prompting: one call, A or B."
    presets = {
        "with_aspects": {"aspects": list(ASPECTS)},
        "both_orders": {"orders": "strict"},
    }
    budgets = (Budget(1),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.DIRECT}

    aspects: Annotated[
        Sequence[str] | None, AfterValidator(_distinct), Rule("a list of distinct names")
    ] = None
    """What to compare by, such as the offline aspects of SC²."""
    orders: OrderRule = "none"
    """`"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`."""

    @property
    def named_aspects(self) -> Sequence[str]:
        """What the texts are compared by."""
        return self.aspects or ()


class ChainOfThought(ShownExamples, AboutATask):
    """Create a judge that thinks step by step and then names the better text.

    Chain of thought with no, one or more worked examples (Yan et al. 2023, SC², section 4
    and table 5): one call, A stands first, and there is no tie. The question is that of
    `create_sc2_judge` with the same `task`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`, as `create_direct_judge`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot"
    summary = "Chain of thought: one call that reasons first, then A or B."
    presets = {"one_shot": {"shots": 1}, "few_shot": {"shots": 5}}
    budgets = (Budget(1),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.COT}

    orders: OrderRule = "none"
    """`"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`."""


class SelfConsistency(ShownExamples, AboutATask):
    """Create a judge that asks for several replies and takes what most of them say.

    `prompt="cot"` is the self-consistency of Yan et al. 2023 (SC²): eight chains of thought,
    one order, and a seeded coin where they are even. `prompt="relative"` is that of Saha et
    al. 2023 (BSM): the relative prompt, as many samples in each order as its branching
    factor, which is five, an order without a plurality is a tie, and a text is preferred
    only if both orders prefer it. Samples are asked in parallel at temperature 0.7, each
    with a seed of its own; with one sample the judge is the chain of thought, or the
    relative judge, itself.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "not_asked"}`.
        `verdict.scores` are the votes, `verdict.score` the share of A (where a coin decided,
        just beside 0.5: a score above 0.5 always means A), `verdict.confidence` that of the
        preference.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot_sc"
    summary = "Self-consistency of SC²'s paper: the majority of eight chains of thought."
    presets = {"one_shot": {"shots": 1}, "few_shot": {"shots": 5}}
    budgets = (Budget(0, 1, "samples"),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.COT}
    result = SelfConsistencyResult

    prompt: Literal["cot", "relative"] = "cot"
    """`"cot"`, chains of thought, or `"relative"`, relative verdicts."""
    samples: Annotated[int, Ge(1), ClientMost(32)] | None = None
    """Replies in each order; default 8 for `"cot"`, 5 for `"relative"`."""
    orders: OrderRule | None = None
    """In which orders; default `"none"` for `"cot"`, `"strict"` for `"relative"`."""
    min_valid: Annotated[int, Ge(1), ClientMost(32)] | None = None
    """Fewest valid samples in an order; default more than half of those asked."""
    adaptive: Adaptive = False
    """Ask samples one after the other, and stop when the others cannot change the verdict;
    a probability such as 0.95 stops when they would not, with at least that probability.
    `not_asked` names the others. Not with `orders="score_mean"`."""
    seed: Seed = 0
    """Of the samples and of the coin."""

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return f"{self.prompt}_sc"

    @property
    def replies(self) -> int:
        """How many replies each order is asked for."""
        return self.samples or (8 if self.coin else 5)

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        return {"judge": texts.COT if self.coin else texts.RELATIVE}

    @property
    def reads(self) -> Reads:
        """What a reply holds."""
        return "forced_label" if self.coin else "label"

    @property
    def coin(self) -> bool:
        """Whether a coin decides where the replies of one order are even."""
        return self.prompt == "cot"

    @property
    def chance(self) -> int:
        """The seed of samples and of the coin."""
        return self.seed

    @property
    def order_rule(self) -> OrderRule:
        """How the verdicts of the orders become one."""
        return self.orders or ("none" if self.coin else "strict")

    def quorum(self, asked: int) -> int:
        """Return the fewest valid replies in an order that was asked so often."""
        return self.min_valid or asked // 2 + 1

    @property
    def labels(self) -> tuple[Preference, ...]:
        """What a reply may say."""
        return ("A", "B") if self.coin else ("A", "B", "tie")

    @property
    def stops_early(self) -> bool:
        """Whether samples are asked only while they can change the verdict."""
        return bool(self.adaptive)

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.min_valid, self.replies)
        return self

    @model_validator(mode="after")
    def _votes_decide(self) -> Self:
        if self.adaptive and self.order_rule == "score_mean":
            raise OptionError("`adaptive` needs votes: not `orders='score_mean'`")
        return self

    @model_validator(mode="after")
    def _task_is_asked(self) -> Self:
        if not self.coin and self.task != "helpful":
            raise OptionError(f"`task` needs `prompt='cot'`, got {self.task!r}")
        return self


class RelativeSelfConsistency(SelfConsistency):
    """The self-consistency of Saha et al. 2023, under a name of its own."""

    method = "relative_sc"
    summary = "Self-consistency of BSM's paper: five relative verdicts in each order."
    budgets = (Budget(0, 2, "samples"),)
    templates = {"judge": texts.RELATIVE}

    prompt: Literal["cot", "relative"] = "relative"
    """`"cot"`, chains of thought, or `"relative"`, relative verdicts."""


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
    events = {"ballots": "vote", "criteria": "criterion", "subscores": "subscore"}
    evidence = (ANSWERS, SUBSCORES)
    sketches = (scores_by_criterion,)
    templates = {"plan": texts.PLAN, "judge": texts.SOLVE}
    reply = "scores"
    result = PlanSolveResult

    max_criteria: Annotated[int, Ge(1), ClientMost(20)] = 5
    """Most criteria in the plan."""
    scale: Scale = (1, 5)
    """Lowest and highest score."""
    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""
    min_valid: Annotated[int, Ge(1), ClientMost(32)] | None = None
    """Fewest criteria that must be scored; default more than half."""

    @property
    def plan_size(self) -> int:
        """Criteria of the plan."""
        return self.max_criteria

    @property
    def grades(self) -> tuple[int, int]:
        """The lowest and the highest score."""
        return self.scale

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.min_valid, self.max_criteria)
        return self


class LLMScore(Baseline):
    """Create the judge without roles that DRPE is compared with (Wu et al. 2023).

    `LLMScore`, in the NLPCC version `GPT-D3`: one call names the better passage, with a
    reason. A is the candidate; B is the reference and stands first, as for DRPE. Its score
    is `1(A preferred) · P`, where P is the length-normalised probability of reason and
    choice (equation 3); without log-probabilities P is one, and a note says so.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "llm_score"}`. `llm_score` is
        the number to correlate with people's, None where nothing was judged;
        `verdict.scores` holds it for A and for B, `verdict.score` the probability of A.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "llm_score"
    summary = "DRPE's judge without roles: one choice, weighed by its token confidence."
    presets = {"both_orders": {"orders": "strict"}}
    budgets = (Budget(1),)
    events = {"ballots": "vote"}
    templates = {"judge": texts.LLM_SCORE}
    result = LLMScoreResult
    noun = "passage"

    task: AutoTask = "auto"
    """What the passages are: as `create_drpe_judge` takes it."""
    orders: OrderRule = "none"
    """`"none"` (the paper: the reference first), `"strict"`, `"lenient"` or `"score_mean"`."""

    @property
    def about(self) -> str | Mapping[str, str] | None:
        """What the judgment is about."""
        return self.task

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked; a single one shows B first, as DRPE does."""
        return ("BA",) if self.orders == "none" else orders_of(self.orders)


@dataclass(frozen=True)
class BaselineSteps(PairSteps):
    """The steps of a baseline."""

    own: Baseline
    lists = ("ballots", "subscores")
    empty = {"criteria": [], "llm_score": None, "due": [], "asked": None, "not_asked": []}
    focus = FOCUS

    @property
    def noun(self) -> str:
        """What a prompt calls a judged text."""
        return self.own.noun

    @cached_property
    def question(self) -> Question:
        """What is asked in each order."""
        own = self.own
        one_label = own.reads != "scores" and own.replies == 1
        scores = own.reads == "scores"
        parse = spoken_scores if scores else spoken_choice
        return self.setup.question(
            "judge",
            scores_shape(own.grades) if scores else LABELS[own.reads],
            sampled=own.replies > 1,
            # The name of a sample is the whole name of its run.
            label="{unit}" if own.replies > 1 else "",
            logprobs=one_label,
            measure=measure if one_label else None,
            parse=None if own.plan_size else parse,
        )

    def plan(self, state: DirectState) -> Call:
        """Ask for criteria from the request alone."""
        question = self.setup.question("plan", plan_shape(self.own.plan_size))
        size = {"max_criteria": self.own.plan_size}
        return Call(question, {**self.request(pair_of(state)), **size})

    def planned(self, _: DirectState, reply: Reply) -> Update:
        """Keep the first criteria that a plan names."""
        plan = distinct_criteria(reply.data["criteria"]) if reply.data else []
        return {"criteria": plan[: self.own.plan_size]}

    def choose(self, state: DirectState) -> Update:
        """Say which samples are due: the next ones, while they can change the verdict."""
        own, asked = self.own, state["asked"] or dict.fromkeys(self.own.order_list, 0)
        assert isinstance(own, SelfConsistency)  # noqa: S101 - no other stops early
        more = next_samples(own, pair_of(state), state["ballots"], asked)
        upto = {order: count + more.get(order, 0) for order, count in asked.items()}
        return {
            "due": [[o, n] for o in own.order_list for n in range(asked[o], upto[o])],
            "asked": upto,
            "not_asked": [
                self._unit(order, sample)[0]
                for order in own.order_list
                for sample in range(upto[order], own.replies)
            ],
        }

    def ask_due(self, state: DirectState) -> Next:
        """Send the samples that are due."""
        return [
            Send("judge", self._work(state, order, sample)) for order, sample in state["due"]
        ] or "merge"

    def ask_each(self, state: DirectState) -> Next:
        """Send every order, as often as it is sampled."""
        if self.own.plan_size and not state["criteria"]:
            return "merge"
        return [
            Send("judge", self._work(state, order, sample))
            for order in self.own.order_list
            for sample in range(self.own.replies)
        ]

    def _work(self, state: DirectState, order: Order, sample: int) -> JudgeWork:
        return JudgeWork(
            pair=pair_of(state),
            criteria=state.get("criteria", []),
            order=order,
            sample=sample,
            examples=examples_in(state),
        )

    def judge(self, work: JudgeWork) -> Call:
        """Ask for one verdict, in one order."""
        own, order, question = self.own, work["order"], self.question
        if work["criteria"]:
            question = replace(
                question,
                shape=sheet_shape(own.grades, len(work["criteria"]), whole=True),
                partial=sheet_shape(own.grades, len(work["criteria"]), whole=False),
            )
        unit, seed = self._unit(order, work["sample"])
        return Call(question, self._shown(work), unit, order, seed)

    def judged(self, work: JudgeWork, reply: Reply) -> Update:
        """Keep what a reply decided, by identity of the texts."""
        if not reply.data:
            return {}
        order = work["order"]
        if self.own.plan_size:
            unit, _ = self._unit(order, work["sample"])
            lines, missing = read_sheet(reply.data, work, unit, self.own.grades)
            return {"subscores": lines, "failures": [*reply.failures, *missing]}
        ballot: Ballot = {
            "order": order,
            "sample": work["sample"],
            "preference": None,
            "scores": None,
            "explanation": reply.data["explanation"],
            "probability": reply.measured.get("label"),
            "confidence": reply.measured.get("joint"),
        }
        if self.own.reads == "scores":
            scores = by_identity(order, reply.data["score_1"], reply.data["score_2"])
            ballot["scores"] = {side: float(score) for side, score in scores.items()}
            ballot["preference"] = prefer(scores)
        else:
            ballot["preference"] = preferred_slot(order, reply.data["preference"])
        return {"ballots": [ballot]}

    def merge(self, state: DirectState) -> Update:
        """Take the majority of each order, then combine the orders."""
        own, pair = self.own, pair_of(state)
        failures, usage = list(state["failures"]), add_usage(state["usages"])
        ballots = sorted(state["ballots"], key=_place)
        subscores = sorted(state["subscores"], key=lambda line: line["order"])
        if own.plan_size:
            least = getattr(own, "min_valid", None)
            ballots, short = order_totals(own.order_list, state["criteria"], subscores, least)
            if short:
                verdict = not_judged(failures, usage, short)
                return {"ballots": Overwrite([]), "verdict": verdict}
        update: Update = {"ballots": Overwrite(ballots), "subscores": Overwrite(subscores)}
        if own.method != "llm_score":
            verdict = decide(own, pair, ballots, failures, usage, state["asked"])
            if isinstance(own, SelfConsistency) and verdict["preference"]:
                verdict["rationale"] += not_asked_sentence(state["not_asked"], own.adaptive)
            return {**update, "verdict": verdict}
        if ballots and any(ballot["confidence"] is None for ballot in ballots):
            failures.append(_NO_LOGPROBS)
            ballots = [{**b, "probability": None, "confidence": None} for b in ballots]
        verdict = decide(own, pair, ballots, failures, usage)
        if verdict["preference"] is not None:
            verdict["scores"] = scores = weights(ballots)
            update["llm_score"] = scores["A"]
        return {**update, "verdict": verdict}

    def _unit(self, order: Order, sample: int) -> tuple[str, int | None]:
        """Return what one call is named, and its seed where it is a sample."""
        own = self.own
        both = len(own.order_list) > 1
        if own.replies == 1:
            return ORDER_NAMES[order] if both else "", None
        name = f"sample {sample + 1}" + (f" ({ORDER_NAMES[order]})" if both else "")
        # Orders have seeds of their own too.
        place = own.order_list.index(order) * own.replies + sample
        return name, sample_seed(own.chance, place)

    def _shown(self, work: JudgeWork) -> dict[str, object]:
        own = self.own
        low, high = own.grades
        aspects = ", ".join(own.named_aspects)
        plan = [f"{i}. {_described(c)}" for i, c in enumerate(work["criteria"], 1)]
        return {
            **self.material(work["pair"], work["order"], work["examples"]),
            **self._task(work["pair"]),
            "examples": render_shots(own.worked, steps=own.reads == "forced_label"),
            "aspects": texts.ASPECTS.format(aspects=aspects) if aspects else "",
            "criteria": "\n".join(plan),
            "low": low,
            "middle": middle(own.grades),
            "high": high,
        }

    def _task(self, pair: Pair) -> dict[str, str]:
        """Return the words of the task; none where the prompt has its own question."""
        if self.own.about is None:
            return {}
        _, task = settle(self.own.about, pair)
        return {**task, "about": task["about"].replace("{noun}", self.noun)}  # type: ignore[dict-item]


def _graph(steps: BaselineSteps) -> JudgeGraph:
    own = steps.own
    graph: StateGraph[DirectState, None, Any, Any] = StateGraph(
        DirectState, input_schema=RememberedPair, output_schema=own.result
    )
    graph.add_node("judge", steps.setup.asks(steps.judge, steps.judged))
    graph.add_node("merge", steps.setup.plain(steps.merge))
    if own.plan_size:
        graph.add_node("plan", steps.setup.asks(steps.plan, steps.planned))
        graph.add_conditional_edges("plan", steps.ask_each, ["judge", "merge"])
        begin(graph, steps, lambda _: "plan", ["plan"])
    elif own.stops_early:
        graph.add_node("choose", steps.setup.plain(steps.choose))
        graph.add_conditional_edges("choose", steps.ask_due, ["judge", "merge"])
        begin(graph, steps, lambda _: "choose", ["choose"])
    else:
        begin(graph, steps, steps.ask_each, ["judge"])
    graph.add_edge("judge", "choose" if own.stops_early else "merge")
    graph.add_edge("merge", END)
    return steps.setup.finish(graph, worked=list(own.worked))


def _place(ballot: Ballot) -> tuple[str, int]:
    return ballot["order"], ballot["sample"]


def _described(criterion: Criterion) -> str:
    described = criterion["description"]
    return f"{criterion['name']}: {described}" if described else criterion["name"]


LABELS: dict[str, type[BaseModel]] = {"label": Choice, "forced_label": ForcedChoice}
"""The shape of a reply that is a label."""

_NO_LOGPROBS: Failure = {
    "step": "judge",
    "unit": "",
    "reason": "no_logprobs",
    "detail": "the choice weighs one: the model gave no token log-probabilities",
}

create_relative_judge = factory(Relative, Relative.build, "create_relative_judge")
create_absolute_judge = factory(Absolute, Absolute.build, "create_absolute_judge")
create_direct_judge = factory(Direct, Direct.build, "create_direct_judge")
create_cot_judge = factory(ChainOfThought, ChainOfThought.build, "create_cot_judge")
create_self_consistency_judge = factory(
    SelfConsistency, SelfConsistency.build, "create_self_consistency_judge"
)
create_plan_solve_judge = factory(PlanSolve, PlanSolve.build, "create_plan_solve_judge")
create_llm_score_judge = factory(LLMScore, LLMScore.build, "create_llm_score_judge")
