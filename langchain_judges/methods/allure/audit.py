"""The loop: evaluate → check → propose → audit → try → measure, again; then test.

Hasanbeig et al. 2023, figure 1. The judge labels, a check finds likely mistakes, an auditor
decides, and what was accepted is shown to the judge in the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send

from langchain_judges.asking.effects import Effect, Update, emit
from langchain_judges.asking.reply_log import ReplyLog, key_of
from langchain_judges.errors import OptionError
from langchain_judges.memory.shown import Memory, is_memory
from langchain_judges.methods.allure.admission import Admission, Reach, Rounds
from langchain_judges.methods.allure.audit_nodes import AuditNode, Route
from langchain_judges.methods.allure.auditors import Audit, resolve_auditor, standard_of
from langchain_judges.methods.allure.failure_modes import (
    Mode,
    corpus_of,
    read_modes,
    suggest_mode,
)
from langchain_judges.methods.allure.held_out import held_out, identified
from langchain_judges.methods.allure.judge import create_allure_judge
from langchain_judges.methods.allure.label_checks import Check, require_labels, resolve_check
from langchain_judges.methods.allure.review import (
    AuditProposal,
    drawn_beside,
    example_of,
    learnt_from,
)
from langchain_judges.methods.allure.state import (
    AuditInput,
    AuditOptions,
    AuditResult,
    AuditState,
    Batch,
    EvaluationWork,
    PlainDoubt,
    VerdictsById,
)
from langchain_judges.methods.describe import memory_of, metadata_of, unwrapped
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.items import item_of
from langchain_judges.options import with_options
from langchain_judges.verdict import Item, Label, LabelVerdict, add_usage, no_usage


@with_options(AuditOptions)
def create_allure_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: AuditOptions
) -> JudgeGraph:
    """Create the loop that audits a judge and teaches it its audited mistakes.

    Each round judges the items, lets the check doubt labels, has the doubted ones audited,
    remembers what helps on dev. It ends after `max_rounds`, or a round in which nothing was
    learnt; `gain` says what it brought on the items of `test`, which decided nothing. With a
    checkpointer it resumes after a kill or a wait of days: each verdict, and each audit by a
    model, is written to it before the next step, and none is paid twice.

    Where the paper is silent or we differ: nothing enters the memory unaudited; the label
    proposed may be edited; an item is proposed once for each label it got; only families
    that learnt something are judged again; an auditor who says that the judge was right
    marks the check and not the judge (`decisions` with `check_wrong`).

    Args:
        judge: An ALLURE judge with this memory; a chat model or its name, of which one is
            made (with `instructions`, `temperature`, `cache` and `repairs` of the audit); or
            any runnable from `Item` to `{"verdict": LabelVerdict}`, such as recorded verdicts.
        memory: Where accepted examples go, such as a `FailureMemory`.
        options: The options.

    Returns:
        A compiled graph from `{"items": […]}` to `AuditResult`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    teaches, metadata = judge_to_audit(judge, memory, options)
    loop = _loop(teaches, memory, metadata, options)
    compiled = _graph(loop).compile(
        checkpointer=options.checkpointer,
        name=options.name or "audit",
    )
    marks = {
        "method": options.method,
        "options": {
            **options.as_json(),
            "check": loop.check.name,
            "modes": [mode.name for mode in loop.modes],
            "labels": list(loop.labels),
            "allow_leak": loop.leaky,
        },
        "model": metadata.get("model") or {},
        "prompt_version": str(metadata.get("prompt_version", "")),
        "calls": 0,
    }
    graph = JudgeGraph(**vars(compiled), options=options, model=teaches.get_name())
    return graph.with_config(metadata=marks, max_concurrency=options.max_concurrency)


def _loop(
    judge: Runnable[Any, Any],
    memory: Memory,
    metadata: Mapping[str, Any],
    options: AuditOptions,
) -> Loop:
    judge_options = metadata.get("options") or {}
    modes = read_modes(options.modes)
    labels = tuple(options.labels or judge_options.get("labels") or (0, 1))
    # What a judge that is not ours may be shown, nobody knows.
    recall = (judge_options.get("memory") or {}).get("recall")
    everywhere = isinstance(recall, Mapping) and bool(recall.get("any_family"))
    judge_reach = Reach(everywhere or metadata.get("method") != "allure")
    paid = ReplyLog(options.checkpointer)
    return Loop(
        judge=alone(judge),
        mark={
            key: metadata.get(key) for key in ("method", "options", "model", "prompt_version")
        },
        memory=memory,
        paid=paid,
        admission=Admission(memory, judge_reach, labels, options),
        reach=Reach(everywhere),
        check=resolve_check(options.check or "answer_or_label"),
        audit_by=resolve_auditor(
            options.auditor,
            options,
            labels=labels,
            modes=modes,
            paid=paid,
            standard=standard_of(judge),
        ),
        modes=modes,
        labels=labels,
        leaky=options.allow_leak or bool(judge_options.get("allow_leak")),
        options=options,
    )


def _graph(loop: Loop) -> StateGraph[AuditState, None, AuditInput, AuditResult]:
    graph = StateGraph(AuditState, input_schema=AuditInput, output_schema=AuditResult)
    admission, events = loop.admission, AuditOptions.events
    steps: dict[str, Any] = {
        "prepare": loop.prepare,
        "evaluate": loop.evaluate,
        "check": loop.check_labels,
        "propose": loop.propose,
        "audit": loop.audit,
        "stage": admission.stage,
        "try": loop.try_out,
        "admit": admission.decide,
        "leave_out": loop.try_out,
        "prune": admission.prune,
        "measure": loop.measure_round,
        "test": loop.evaluate,
        "conclude": loop.conclude,
    }
    for name, step in steps.items():
        graph.add_node(name, AuditNode(step, name, events))
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", Route(loop.stale_items), ["evaluate", "check"])
    graph.add_edge("evaluate", "check")
    graph.add_edge("check", "propose")
    graph.add_edge("propose", "audit")
    graph.add_conditional_edges("audit", Route(admission.next_batch), ["stage", "measure"])
    graph.add_conditional_edges("stage", Route(admission.on_trial), ["try", "admit"])
    graph.add_edge("try", "admit")
    onward = ["stage", "measure"]
    graph.add_conditional_edges("admit", Route(admission.leave_out), ["leave_out", *onward])
    graph.add_edge("leave_out", "prune")
    graph.add_conditional_edges("prune", Route(admission.next_batch), onward)
    ways = ["evaluate", "check", "test", "conclude"]
    graph.add_conditional_edges("measure", Route(loop.again_or_stop), ways)
    graph.add_edge("test", "conclude")
    graph.add_edge("conclude", END)
    return graph


# Told to the auditor of a label that was drawn.
UNDOUBTED = "no rule doubts this label; it was drawn to see whether the judge is right"


def proposals_of(
    state: AuditState, check: str, modes: Sequence[Mode]
) -> tuple[list[AuditProposal], list[AuditProposal]]:
    """Return the proposals of the labels that the check doubts, and those of all others."""
    decided = {(each["id"], each["wrong"]) for each in state["decisions"]}
    corpus = corpus_of(state["pool"])
    doubts: list[AuditProposal] = []
    others: list[AuditProposal] = []
    for item in state["pool"]:
        verdict, doubt = state["verdicts"][item["id"]], state["doubts"].get(item["id"])
        label = verdict["label"]
        if label is None or (item["id"], label) in decided:
            continue
        proposal: AuditProposal = {
            "id": item["id"],
            "round": state["round"],
            "item": item,
            "label": label,
            "score": verdict["score"],
            "rationale": verdict["rationale"],
            "proposed": doubt["label"] if doubt else label,
            "why": doubt["why"] if doubt else UNDOUBTED,
            "check": check,
            "mode": suggest_mode(item, corpus, modes) if doubt else None,
        }
        (doubts if doubt else others).append(proposal)
    return doubts, others


def judge_to_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: AuditOptions
) -> tuple[Runnable[Any, Any], Mapping[str, Any]]:
    """Return the judge that an audit teaches, made first of a model, and its metadata.

    Args:
        judge: A judge, or a model as `create_allure_judge` takes it.
        memory: What the judge must show examples of.
        options: Of the audit; some are those of a judge that is made here.

    Raises:
        OptionError: It is no judge, or one that would learn nothing of `memory`; or it is one
            and the options cannot be its own any more.
        ModelSetupError: The model cannot be made.
    """
    if not is_memory(memory):
        raise OptionError(f"`memory` must be a FailureMemory, got {type(memory).__name__}")
    judge_options = {
        name: getattr(options, name) for name in ("instructions", "temperature", "cache")
    }
    if isinstance(judge, str | BaseChatModel):
        labels = (0, 1) if options.labels is None else options.labels
        judge_options["repairs"] = options.repairs
        judge = create_allure_judge(judge, memory=memory, labels=labels, **judge_options)
    elif late := [option for option, value in judge_options.items() if value is not None]:
        raise OptionError(f"`{late[0]}` goes with a model; the judge that is given has its own")
    inner = unwrapped(judge)
    if not isinstance(inner, Runnable) or isinstance(inner, BaseLanguageModel):
        raise OptionError(
            "`judge` must be a judge of one text, such as `create_allure_judge` makes, or a "
            f"chat model (without `bind` or `with_retry`), got {type(judge).__name__}"
        )
    marks = metadata_of(judge)
    method = marks.get("method", "")
    if method not in ("", "allure"):
        raise OptionError(f"`judge` must be a judge of one text, got the method {method!r}")
    if method and memory_of(judge) is not memory:
        has = "no memory" if memory_of(judge) is None else "another memory"
        raise OptionError(f"`judge` has {has}, so it would learn nothing of the audit")
    return judge, marks


def alone(judge: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a judge that does not write checkpoints of its own into those of the loop."""
    if isinstance(judge, CompiledStateGraph) and judge.checkpointer is None:
        return judge.copy(update={"checkpointer": False})
    return judge


# What a verdict of another runnable may leave out.
_BLANK: dict[str, Any] = {
    "label": None,
    "score": None,
    "rationale": "",
    "recalled": [],
    "usage": no_usage(),
}


@dataclass(frozen=True)
class Loop:
    """The steps of the loop and its settings.

    Attributes:
        mark: What decides the judge's verdicts beside the memory.
        reach: Of the items that are audited.
    """

    judge: Runnable[Any, Any]
    mark: Mapping[str, object]
    memory: Memory
    paid: ReplyLog
    admission: Admission
    reach: Reach
    check: Check
    audit_by: Audit
    modes: tuple[Mode, ...]
    labels: tuple[Label, ...]
    leaky: bool
    options: AuditOptions

    @property
    def rounds(self) -> Rounds:
        """What measures the rounds."""
        return Rounds(self.memory, self.labels, self.options)

    def prepare(self, state: AuditState) -> Update:
        """Name the items and hold out those of dev and test."""
        items = identified(state["items"], "item")
        self.check.require(items, self.labels)
        if self.options.auditor == "labels":
            require_labels(items, self.labels)
        pool, dev, test = held_out(items, self.labels, self.options)
        # A checkpointed thread still holds what its previous run left.
        fresh: Update = {
            f"{key}": Overwrite({})
            for key in ("verdicts", "dev_verdicts", "test_before", "test_verdicts")
        }
        lists = ("proposals", "decisions", "queue", "kept", "learnt", "trials")
        fresh |= {key: [] for key in (*lists, "examples", "waiting", "spent", "history")}
        return {
            **fresh,
            **{"pool": pool, "dev": dev, "test": test, "round": 1, "doubts": {}},
            **{"stopped": None, "gain": None},
            "stale": [item["id"] for item in (*pool, *dev, *test)],
            "leak_allowed": self.leaky,
        }

    def stale_items(self, state: AuditState) -> list[Send] | str:
        """Send every item whose verdict is not known, or may have changed."""
        stale = set(state["stale"])
        parts = {"verdicts": state["pool"], "dev_verdicts": state["dev"]}
        parts["test_before"] = state["test"]
        return [
            Send("evaluate", {"part": part, "item": item_of(item)})
            for part, items in parts.items()
            for item in items
            if item["id"] in stale
        ] or "check"

    async def evaluate(self, work: EvaluationWork) -> Update:
        """Judge one item with what the memory now holds."""
        item = work["item"]
        verdict = await self._judged(item, self.memory.version)
        emit("verdict", "evaluate", verdict, item["id"])
        return {work["part"]: {item["id"]: verdict}}

    async def try_out(self, batch: Batch) -> Update:
        """Judge items of dev as if the memory held what is on trial."""
        examples, without = batch["examples"], batch["without"]
        version = key_of(self.memory.version, examples)
        verdicts: VerdictsById = {}
        with self.memory.trial(examples):
            for item in batch["items"]:
                verdicts[item["id"]] = await self._judged(item, version)
                emit("verdict", "try", verdicts[item["id"]], item["id"])
        return {"left_out": {without: verdicts}} if without else {"trial_verdicts": verdicts}

    async def _judged(self, item: Item, version: str) -> LabelVerdict:
        """Judge an item, or take what was paid for before a kill."""
        judge = self.judge

        async def ask() -> LabelVerdict:
            output: Mapping[str, Any] = await Effect(
                lambda: judge.invoke(item), lambda: judge.ainvoke(item)
            )
            return cast("LabelVerdict", {**_BLANK, **output["verdict"]})

        key = key_of("verdict", self.mark, version, item["id"], item)
        return await self.paid.once(key, ask)

    def check_labels(self, state: AuditState) -> Update:
        """Let the check doubt the labels."""
        doubts: dict[str, PlainDoubt] = {}
        for item in state["pool"]:
            label = state["verdicts"][item["id"]]["label"]
            doubt = None if label is None else self.check.doubt(item, label, self.labels)
            if doubt:
                doubts[item["id"]] = {"label": doubt.label, "why": doubt.why}
        dev_before = self.rounds.measured(state["dev"], state["dev_verdicts"])
        return {"doubts": doubts, "dev_before": dev_before}

    def propose(self, state: AuditState) -> Update:
        """Propose every doubt that nobody has decided yet, and some other labels."""
        doubts, others = proposals_of(state, self.check.name, self.modes)
        drawn = drawn_beside(doubts, others, self.options.right_share, self.options.seed)
        return {"proposals": [*doubts, *drawn]}

    async def audit(self, state: AuditState) -> Update:
        """Have every proposal decided; queue what was accepted."""
        proposals = state["proposals"]
        decisions, usages = await self.audit_by(proposals)
        by_id = {decision["id"]: decision for decision in decisions}
        for decision in decisions:
            emit("decision", "audit", decision)
        mistakes, right = learnt_from(by_id, self.options.right_share)
        meanings = {mode.name: mode.description for mode in self.modes}
        examples = [
            example_of(proposal, by_id[proposal["id"]], meanings)
            for proposal in proposals
            if proposal["id"] in {*mistakes, *right}
        ]
        return {
            "decisions": [*state["decisions"], *decisions],
            "learnt": [],
            "spent": usages,
            **self.admission.queued(examples, state),
        }

    def measure_round(self, state: AuditState) -> Update:
        """Record the result of the round, and decide whether another one follows."""
        result = self.rounds.summary(state)
        emit("round", "measure", result)
        history = [*state["history"], result]
        families = {example["family"] for example in state["learnt"]}
        # Trials have already judged dev with what was learnt.
        stale = self.reach.touched(state["pool"], families)
        return {
            "history": history,
            "stopped": self.rounds.stopped(history),
            "stale": sorted(item["id"] for item in stale),
            "round": state["round"] + 1,
        }

    def again_or_stop(self, state: AuditState) -> list[Send] | str:
        """Begin the next round; or judge test with what was remembered, and end."""
        if not state["stopped"]:
            return self.stale_items(state)
        new = set(state["examples"])
        examples = self.memory.examples()
        families: set[str | None] = {e["family"] for e in examples if e["id"] in new}
        items = self.reach.touched(state["test"], families)
        works = [{"part": "test_verdicts", "item": item_of(item)} for item in items]
        return [Send("test", each) for each in works] or "conclude"

    async def conclude(self, state: AuditState) -> Update:
        """Say what the audit brought, and forget what was kept against a kill."""
        await self.paid.close()
        last = state["history"][-1]
        usages = [verdict["usage"] for verdict in state["test_verdicts"].values()]
        last = {**last, "usage": add_usage([last["usage"], *usages])}
        return {
            "gain": self.rounds.gain(state),
            "history": [*state["history"][:-1], last],
            "test_verdicts": {**state["test_before"], **state["test_verdicts"]},
        }
