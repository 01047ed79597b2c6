"""The loop: evaluate → check → propose → audit → try → measure, again; then test.

Hasanbeig et al. 2023, figure 1. The judge labels, a check finds likely mistakes, an auditor
decides, and what was accepted is shown to the judge in the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable
from langgraph.constants import END, START
from langgraph.graph.state import CompiledStateGraph

from langchain_judges.asking import effects, models, reply_log
from langchain_judges.errors import OptionError
from langchain_judges.memory.shown import Memory, is_memory
from langchain_judges.methods import context, declaration, describe
from langchain_judges.methods.allure import admission, auditors, held_out, label_checks
from langchain_judges.methods.allure import state as states
from langchain_judges.methods.allure.judge import create_allure_judge
from langchain_judges.methods.graph import JudgeGraph, MethodGraph, StepNode
from langchain_judges.options import with_options
from langchain_judges.verdict import Item, add_usage


@with_options(states.AuditOptions)
def create_allure_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: states.AuditOptions
) -> JudgeGraph:
    """Create the loop that audits a judge and teaches it its audited mistakes.

    Each round judges the items, lets the check doubt labels, has the doubted ones audited,
    and remembers what helps on dev. It ends after `max_rounds`, or after a round in which
    nothing was learnt; `gain` is the improvement on the items of `test`, which decided nothing.
    With a checkpointer it resumes after a kill or a wait of days: each verdict, and each audit
    by a model, is written to it before the next step, and none is paid twice.

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
        A compiled graph from `{"items"}`, a list, to `AuditResult`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    teaches, metadata = judge_to_audit(judge, memory, options)
    if isinstance(teaches, CompiledStateGraph) and teaches.checkpointer is None:
        # It shall not write checkpoints of its own into those of the loop.
        teaches = teaches.copy(update={"checkpointer": False})
    judge_options = metadata.get("options") or {}
    modes = auditors.read_modes(options.modes)
    labels = tuple(options.labels or judge_options.get("labels") or (0, 1))
    recall = (judge_options.get("memory") or {}).get("recall")
    # What a judge that is not ours may be shown, nobody knows.
    everywhere = metadata.get("method") != "allure"
    everywhere |= isinstance(recall, Mapping) and bool(recall.get("any_family"))
    log = reply_log.ReplyLog(options.checkpointer)
    names = ("method", "options", "model", "prompt_version")
    audited = admission.Audited(teaches, {name: metadata.get(name) for name in names}, log)
    checks = label_checks.resolve_check(options.check or "answer_or_label")
    audit_by = auditors.resolve_auditor(options, labels, modes, log, auditors.standard_of(teaches))
    loop = Loop(memory, audited, everywhere, labels, options, checks, audit_by, modes)
    own = {"check": checks.name, "modes": list(modes), "labels": list(labels)}
    marks = {
        "method": options.method,
        "options": {**options.as_json(), **own},
        "model": metadata.get("model") or {},
        "prompt_version": str(metadata.get("prompt_version", "")),
        "calls": 0,
    }
    threads = options.max_concurrency + context.SPARE_THREADS
    return JudgeGraph.of(loop.graph(), options, marks, threads, model=teaches.get_name(), log=log)


# Told to the auditor of a label that was drawn.
UNDOUBTED = "no rule doubts this label; it was drawn to see whether the judge is right"


def proposals_of(
    state: states.AuditState, check: str
) -> tuple[list[states.AuditProposal], list[states.AuditProposal]]:
    """The proposals of the labels that the check doubts, and those of all others."""
    decided = {(each["id"], each["wrong"]) for each in state["decisions"]}
    doubts: list[states.AuditProposal] = []
    others: list[states.AuditProposal] = []
    for item in state["pool"]:
        verdict, doubt = state["verdicts"][item["id"]], state["doubts"].get(item["id"])
        label = verdict["label"]
        if label is None or (item["id"], label) in decided:
            continue
        proposal: states.AuditProposal = {
            "id": item["id"],
            "round": state["round"],
            "item": item,
            "label": label,
            "score": verdict["score"],
            "rationale": verdict["rationale"],
            "proposed": doubt["label"] if doubt else label,
            "why": doubt["why"] if doubt else UNDOUBTED,
            "check": check,
        }
        (doubts if doubt else others).append(proposal)
    return doubts, others


def judge_to_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: states.AuditOptions
) -> tuple[Runnable[Any, Any], Mapping[str, Any]]:
    """The judge that an audit teaches, made from a model if need be, and its metadata.

    Args:
        judge: A judge, or a model as `create_allure_judge` takes it.
        memory: What the judge must show examples of.
        options: Of the audit; some are those of a judge that is made here.

    Raises:
        OptionError: It is not a judge, or would learn nothing from `memory`; or it is one
            and the options cannot be its own any more.
        ModelSetupError: The model cannot be made.
    """
    if not is_memory(memory):
        raise OptionError(f"`memory` must be a FailureMemory, got {type(memory).__name__}")
    given = {name: getattr(options, name) for name in ("instructions", "temperature", "cache")}
    judge = models.plain_model(judge)
    if isinstance(judge, str | BaseChatModel):
        labels = (0, 1) if options.labels is None else options.labels
        given["repairs"] = options.repairs
        judge = create_allure_judge(judge, memory=memory, labels=labels, **given)
    elif late := [option for option, value in given.items() if value is not None]:
        raise OptionError(f"`{late[0]}` goes with a model; the judge that is given has its own")
    inner = describe.unwrapped(judge)
    if not isinstance(inner, Runnable) or isinstance(inner, BaseLanguageModel):
        raise OptionError(declaration.WORDS["not_audited"].format(type(judge).__name__))
    marks = describe.metadata_of(judge)
    method = marks.get("method", "")
    if method not in ("", "allure"):
        raise OptionError(declaration.WORDS["no_audit"].format(method))
    if method and describe.memory_of(judge) is not memory:
        has = "no memory" if describe.memory_of(judge) is None else "another memory"
        raise OptionError(f"`judge` has {has}, so it would learn nothing of the audit")
    return judge, marks


_SCHEMA = context.StateSchema(states.AuditState, states.AuditOptions.results, states.AuditInput)


@dataclass(frozen=True)
class Loop(admission.Admission):
    """The steps of the loop, of which admission is one, and its settings."""

    checks: label_checks.Check
    audit_by: auditors.Audit
    modes: Mapping[str, str]

    def graph(self) -> MethodGraph:
        """The graph of the loop."""
        graph = _SCHEMA.graph()
        steps = [self.prepare, self.evaluate, self.check, self.propose, self.audit]
        steps += [self.admit, self.measure, self.test, self.conclude]
        for step in steps:
            graph.add_node(step.__name__, StepNode(step))
        for here, there in pairwise([START, *(step.__name__ for step in steps), END]):
            if here not in ("admit", "measure"):
                graph.add_edge(here, there)
        graph.add_conditional_edges(
            "admit", lambda s: "admit" if s["queue"] else "measure", ["admit", "measure"]
        )
        graph.add_conditional_edges(
            "measure", lambda s: "test" if s["stopped"] else "evaluate", ["test", "evaluate"]
        )
        return graph

    async def prepare(self, state: states.AuditState) -> effects.Update:
        """Name the items and hold out those of dev and test."""
        items = held_out.identified(state["items"], "item")
        self.checks.require(items, self.labels)
        if self.options.auditor == "labels":
            label_checks.require_labels(items, self.labels)
        pool, dev, test = held_out.held_out(items, self.labels, self.options)
        return {
            **_SCHEMA.blank,
            **{"pool": pool, "dev": dev, "test": test, "round": 1},
            "stale": [item["id"] for item in (*pool, *dev, *test)],
        }

    async def evaluate(self, state: states.AuditState) -> effects.Update:
        """Judge every item whose verdict is not known, or may have changed."""
        stale = set(state["stale"])
        parts = {
            "verdicts": state["pool"],
            "dev_verdicts": state["dev"],
            "test_before": state["test"],
        }
        items = [i for part in parts.values() for i in part if i["id"] in stale]
        new = await self.judged(items, self.memory.version, "evaluate")
        old = cast("Mapping[str, Any]", state)
        return {
            key: {i["id"]: new.get(i["id"]) or old[key][i["id"]] for i in part}
            for key, part in parts.items()
        }

    async def check(self, state: states.AuditState) -> effects.Update:
        """Let the check doubt the labels."""
        doubts: dict[str, dict[str, Any]] = {}
        for item in state["pool"]:
            label = state["verdicts"][item["id"]]["label"]
            doubt = None if label is None else self.checks.doubt(item, label, self.labels)
            if doubt:
                doubts[item["id"]] = doubt._asdict()
        return {"doubts": doubts, "dev_before": self.measured(state["dev"], state["dev_verdicts"])}

    async def propose(self, state: states.AuditState) -> effects.Update:
        """Propose every doubt that nobody has decided yet, and some other labels."""
        doubts, others = proposals_of(state, self.checks.name)
        drawn = admission.drawn_beside(doubts, others, self.options.right_share, self.options.seed)
        effects.emit_each("proposal", "propose", [*doubts, *drawn])
        return {"proposals": [*doubts, *drawn]}

    async def audit(self, state: states.AuditState) -> effects.Update:
        """Have every proposal decided; queue what was accepted."""
        proposals = state["proposals"]
        decisions, usages = await self.audit_by(proposals)
        decided = {decision["id"]: decision for decision in decisions}
        effects.emit_each("decision", "audit", decisions)
        mistakes, right = admission.learnt_from(decided, self.options.right_share)
        examples = [
            admission.example_of(proposal, decided[proposal["id"]], self.modes, self.labels)
            for proposal in proposals
            if proposal["id"] in {*mistakes, *right}
        ]
        return {
            "decisions": [*state["decisions"], *decisions],
            "learnt": [],
            "spent": usages,
            **self.queued(examples, state),
        }

    async def measure(self, state: states.AuditState) -> effects.Update:
        """Record the result of the round, and decide whether another one follows."""
        result = self.summary(state)
        effects.emit("round", "measure", result)
        history = [*state["history"], result]
        families = {example["family"] for example in state["learnt"]}
        # Trials have already judged dev with what was learnt.
        stale = admission.touched(state["pool"], families, self.everywhere)
        return {
            "history": history,
            "stopped": self.stopped(history),
            "stale": sorted(item["id"] for item in stale),
            "round": state["round"] + 1,
        }

    async def test(self, state: states.AuditState) -> effects.Update:
        """Judge the items of test with what was remembered, where it may change their label."""
        new = set(state["examples"])
        families: set[str | None] = {e["family"] for e in self.memory.examples() if e["id"] in new}
        reached = admission.touched(state["test"], families, self.everywhere)
        return {"test_verdicts": await self.judged(reached, self.memory.version, "evaluate")}

    async def conclude(self, state: states.AuditState) -> effects.Update:
        """Sentence about the audit's gain."""
        last = state["history"][-1]
        usages = [verdict["usage"] for verdict in state["test_verdicts"].values()]
        last = {**last, "usage": add_usage([last["usage"], *usages])}
        verdicts = {**state["test_before"], **state["test_verdicts"]}
        before, after = (
            held_out.labelled_cases(state["test"], each, self.labels)
            for each in (state["test_before"], verdicts)
        )
        return {
            "gain": held_out.gain_of(before, after),
            "history": [*state["history"][:-1], last],
            "test_verdicts": verdicts,
        }

    def measured(
        self, items: Sequence[Item], verdicts: states.VerdictsById
    ) -> states.JudgeWorth | None:
        """The worth of the judge on items with their true label; None without one."""
        cases = held_out.labelled_cases(items, verdicts, self.labels)
        return held_out.worth_of(cases) if cases else None

    def summary(self, state: states.AuditState) -> states.Round:
        """The result of the round that ends."""
        number, stale = state["round"], set(state["stale"])
        answers = [d["answer"] for d in state["decisions"] if d["round"] == number]
        verdicts = state["verdicts"] | state["dev_verdicts"] | state["test_before"]
        fresh = [verdicts[id]["usage"] for id in stale]
        labelled = [
            i for i in state["pool"] if label_checks.is_on_scale(i.get("label"), self.labels)
        ]
        return {
            "round": number,
            "evaluated": len(stale),
            "not_judged": sum(verdict["label"] is None for verdict in verdicts.values()),
            "doubted": len(state["doubts"]),
            "proposed": len(state["proposals"]),
            "accepted": sum(a in {"accept", "label", "mode"} for a in answers),
            "right": sum(each["wrong"] == each["corrected"] for each in state["learnt"]),
            "rejected": answers.count("reject"),
            "check_wrong": answers.count("check_wrong"),
            "remembered": len(state["learnt"]),
            "waiting": len(state["waiting"]),
            "memory_version": self.memory.version,
            "memory_size": len(self.memory),
            "pool": self.measured(labelled, state["verdicts"]),
            "dev_before": state["dev_before"],
            "dev": self.measured(state["dev"], state["dev_verdicts"]),
            "usage": add_usage([*fresh, *state["spent"]]),
        }

    def stopped(self, history: Sequence[states.Round]) -> states.Stopped | None:
        """Why the audit ends after its last round; None: another one follows."""
        if not history[-1]["remembered"]:
            return "nothing_new"
        return "max_rounds" if len(history) >= self.options.max_rounds else None
