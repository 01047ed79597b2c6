"""The steps of the audit: what each reads from the state, asks and writes.

Hasanbeig et al. 2023, figure 1; `graph.py` puts them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.steps import Steps, Update, Wait, emit
from langchain_judges.asking.store import ThreadJournal, key_of
from langchain_judges.memory.recall import Memory
from langchain_judges.methods.allure.audit.admission import Admission, Reach
from langchain_judges.methods.allure.audit.auditors import Audit
from langchain_judges.methods.allure.audit.check import Check
from langchain_judges.methods.allure.audit.modes import Mode
from langchain_judges.methods.allure.audit.options import AuditOptions
from langchain_judges.methods.allure.audit.preparing import held_out, identified
from langchain_judges.methods.allure.audit.proposing import proposals_of
from langchain_judges.methods.allure.audit.review import example_of
from langchain_judges.methods.allure.audit.right import drawn_beside, learnt_from
from langchain_judges.methods.allure.audit.rounds import Rounds
from langchain_judges.methods.allure.audit.state import (
    AuditState,
    Batch,
    EvaluationWork,
    PlainDoubt,
    VerdictsById,
)
from langchain_judges.methods.items import item_of
from langchain_judges.verdict import Item, Label, LabelVerdict, no_usage

JudgeOutput = Mapping[str, Any]
"""What any judge of one text returns: `{"verdict": …}`."""
_BLANK = {"label": None, "score": None, "rationale": "", "usage": no_usage()}
"""What a verdict of another runnable may leave out."""


@dataclass(frozen=True)
class Loop:
    """The steps of the loop and its settings."""

    judge: Runnable[Any, Any]
    mark: Mapping[str, object]
    """What decides the judge's verdicts beside the memory."""
    memory: Memory
    journal: ThreadJournal
    admission: Admission
    reach: Reach
    """Of the items that are audited."""
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
        """Name the items and hold out those of dev."""
        items = identified(state["items"], "item")
        self.check.require(items)
        pool, dev, grouped_by_task = held_out(items, self.options)
        # A checkpointed thread still holds what its previous run left.
        fresh: Update = {
            key: Overwrite({}) for key in ("verdicts", "dev_verdicts", "trial_verdicts")
        }
        lists = ("proposals", "decisions", "queue", "batch", "learnt", "trials")
        fresh |= {key: [] for key in (*lists, "examples", "waiting", "spent", "history")}
        return {
            **fresh,
            **{"pool": pool, "dev": dev, "round": 1, "doubts": {}, "stopped": None},
            "stale": [item["id"] for item in (*pool, *dev)],
            "leak_allowed": self.leaky,
            "grouped_by_task": grouped_by_task,
        }

    def stale_items(self, state: AuditState) -> list[Send] | str:
        """Send every item whose verdict is not known, or may have changed."""
        stale = set(state["stale"])
        work = [
            *self._work("verdicts", state["pool"], stale),
            *self._work("dev_verdicts", state["dev"], stale),
        ]
        return [Send("evaluate", part) for part in work] or "check"

    def _work(
        self, part: Literal["verdicts", "dev_verdicts"], items: Sequence[Item], ids: set[str]
    ) -> Iterator[EvaluationWork]:
        for item in items:
            if item["id"] in ids:
                yield {"part": part, "item": item_of(item)}

    def evaluate(self, work: EvaluationWork) -> Steps[Update]:
        """Judge one item with what the memory now holds."""
        judge, item = self.judge, work["item"]
        verdict = yield from self._judged(
            item, self.memory.version, judge.invoke, judge.ainvoke
        )
        emit("verdict", "evaluate", verdict, item["id"])
        return {work["part"]: {item["id"]: verdict}}

    def try_out(self, batch: Batch) -> Steps[Update]:
        """Judge items of dev as if the memory held what is on trial."""
        judge, memory, examples = self.judge, self.memory, batch["examples"]

        def now(item: Item) -> JudgeOutput:
            with memory.trial(examples):
                output: JudgeOutput = judge.invoke(item)
                return output

        async def later(item: Item) -> JudgeOutput:
            async with memory.trial(examples):
                output: JudgeOutput = await judge.ainvoke(item)
                return output

        version = key_of(memory.version, examples)
        verdicts: VerdictsById = {}
        for item in batch["items"]:
            id = item["id"]
            verdicts[id] = yield from self._judged(item, version, now, later)
            emit("verdict", "try", verdicts[id], id)
        return {"trial_verdicts": verdicts}

    def _judged(
        self,
        item: Item,
        version: str,
        now: Callable[[Item], JudgeOutput],
        later: Callable[[Item], Awaitable[JudgeOutput]],
    ) -> Steps[LabelVerdict]:
        """Judge an item, or take what was paid for before a kill."""

        def ask() -> Steps[LabelVerdict]:
            output: JudgeOutput = yield Wait(lambda: now(item), lambda: later(item))
            return cast("LabelVerdict", {**_BLANK, **output["verdict"]})

        key = key_of("verdict", self.mark, version, item["id"], item)
        return (yield from self.journal.once(key, ask))

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
        candidates = others if self.options.draw_right else []
        right_proposals = drawn_beside(
            doubts, candidates, self.options.right_share, self.options.seed
        )
        return {"proposals": [*doubts, *right_proposals]}

    def audit(self, state: AuditState) -> Steps[Update]:
        """Have every proposal decided; queue what was accepted."""
        proposals = state["proposals"]
        decisions, usages = yield from self.audit_by(proposals)
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

    def measure_round(self, state: AuditState) -> Steps[Update]:
        """Record the result of the round, and decide whether another one follows."""
        result = self.rounds.summary(state)
        emit("round", "measure", result)
        history = [*state["history"], result]
        families = {example["family"] for example in state["learnt"]}
        # Trials have already judged dev with what was learnt.
        stale = self.reach.touched(state["pool"], families)
        stopped = self.rounds.stopped(history)
        if stopped:
            yield from self.journal.close()
        return {
            "history": history,
            "stopped": stopped,
            "stale": sorted(item["id"] for item in stale),
            "round": state["round"] + 1,
        }

    def again_or_stop(self, state: AuditState) -> list[Send] | str:
        """Begin the next round, or end."""
        return END if state["stopped"] else self.stale_items(state)
