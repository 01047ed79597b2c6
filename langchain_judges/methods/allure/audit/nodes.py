"""The steps of the audit: what each reads from the state, asks and writes.

Hasanbeig et al. 2023, figure 1; `graph.py` puts them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.graph import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.journal import ThreadJournal, key_of
from langchain_judges.asking.steps import Effect, Steps, Update
from langchain_judges.asking.stream import tell
from langchain_judges.errors import InputError
from langchain_judges.memory.protocol import Memory
from langchain_judges.methods.allure.audit.admission import Admission, Reach
from langchain_judges.methods.allure.audit.auditors import Audit
from langchain_judges.methods.allure.audit.checks import Check
from langchain_judges.methods.allure.audit.holdout import (
    Case,
    Measured,
    cases_of,
    group_of,
    grouped_by_task,
    measure,
    split_by_group,
)
from langchain_judges.methods.allure.audit.modes import Mode
from langchain_judges.methods.allure.audit.proposing import proposals_of
from langchain_judges.methods.allure.audit.review import AuditDecision, example_of
from langchain_judges.methods.allure.audit.right import drawn_beside, learnt_from
from langchain_judges.methods.allure.audit.state import (
    AuditState,
    Batch,
    EvaluationWork,
    Round,
    Stopped,
    VerdictsById,
)
from langchain_judges.methods.items import item_of
from langchain_judges.rows.checks import check_item
from langchain_judges.rows.messages import plain_row
from langchain_judges.verdict import Item, Label, add_usage, no_usage


@dataclass(frozen=True)
class Loop:
    """The steps of the loop and its settings."""

    judge: Runnable[Any, Any]
    mark: Mapping[str, Any]
    """What decides the judge's verdicts beside the memory."""
    memory: Memory
    journal: ThreadJournal
    admission: Admission
    reach: Reach
    """Of the items that are audited."""
    check: Check
    audit_by: Audit
    modes: tuple[Mode, ...]
    right_share: float
    draw_right: bool
    max_rounds: int
    patience: int
    dev: float | Sequence[Mapping[str, Any]] | None
    truth: str
    labels: tuple[Label, ...]
    allow_leak: bool
    leaky: bool
    seed: int

    def prepare(self, state: AuditState) -> Steps[Update]:
        """Name the items and hold out those of dev."""
        yield from ()
        items = _identified(state["items"], "item")
        self.check.require(items)
        dev_items = None if isinstance(self.dev, int | float) else self.dev
        own_dev = [] if dev_items is None else _identified(dev_items, "dev")
        grouped = grouped_by_task([*items, *own_dev])
        pool, dev = self._parts(grouped[: len(items)], grouped[len(items) :])
        for item in dev:
            if item.get(self.truth) is None:
                raise InputError(
                    f"{item['id']}: an item of dev needs its true label in `{self.truth}`"
                )
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
            "grouped_by_task": sum(
                item.get("group") != plain.get("group")
                for item, plain in zip(grouped, [*items, *own_dev], strict=True)
            ),
        }

    def _parts(
        self, items: list[dict[str, Any]], dev: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        if self.dev is None:
            return items, []
        if isinstance(self.dev, int | float):
            return split_by_group(items, float(self.dev), seed=self.seed)
        groups = {group_of(item, n) for n, item in enumerate(items)}
        ids = {item["id"] for item in items}
        for number, item in enumerate(dev, len(items)):
            shared = item["id"] in ids or group_of(item, number) in groups
            if shared and not self.allow_leak:
                raise InputError(
                    f"{item['id']} of dev shares its id or group with an audited item; split "
                    "by group, or say `allow_leak=True`"
                )
        return items, dev

    def stale_items(self, state: AuditState) -> list[Send] | str:
        """Send every item whose verdict is not known, or may have changed."""
        stale = set(state["stale"])
        work = [
            *self._work("verdicts", state["pool"], stale),
            *self._work("dev_verdicts", state["dev"], stale),
        ]
        return [Send("evaluate", part) for part in work] or "check"

    def _work(
        self, part: Any, items: Sequence[Mapping[str, Any]], ids: set[str]
    ) -> Iterator[EvaluationWork]:
        for item in items:
            if item["id"] in ids:
                yield {"id": item["id"], "part": part, "item": item_of(item)}

    def evaluate(self, work: EvaluationWork) -> Steps[Update]:
        """Judge one item with what the memory now holds."""
        judge, item = self.judge, work["item"]
        verdict = yield from self._judge_items(
            work["id"], item, str(self.memory.version), judge.invoke, judge.ainvoke
        )
        tell("verdict", "evaluate", verdict, work["id"])
        return {work["part"]: {work["id"]: verdict}}

    def try_out(self, batch: Batch) -> Steps[Update]:
        """Judge items of dev as if the memory held what is on trial."""
        judge, memory, examples = self.judge, self.memory, batch["examples"]

        def now(item: Item) -> Any:
            with memory.trial(examples):
                return judge.invoke(item)

        async def later(item: Item) -> Any:
            async with memory.trial(examples):
                return await judge.ainvoke(item)

        version = key_of(str(memory.version), examples)
        verdicts: dict[str, Any] = {}
        for each in batch["items"]:
            id = each["id"]
            verdicts[id] = yield from self._judge_items(id, each["item"], version, now, later)
            tell("verdict", "try", verdicts[id], id)
        return {"trial_verdicts": verdicts}

    def _judge_items(
        self,
        id: str,
        item: Item,
        version: str,
        now: Callable[[Item], Any],
        later: Callable[[Item], Awaitable[Any]],
    ) -> Steps[dict[str, Any]]:
        """Judge an item, or take what was paid for before a kill."""

        def ask() -> Steps[dict[str, Any]]:
            result: Mapping[str, Any] = yield Effect(lambda: now(item), lambda: later(item))
            return {**_BLANK, **result["verdict"]}

        key = key_of("verdict", self.mark, version, id, item)
        return (yield from self.journal.once(key, ask))

    def check_labels(self, state: AuditState) -> Steps[Update]:
        """Let the check doubt the labels."""
        yield from ()
        doubts = {}
        for item in state["pool"]:
            label = state["verdicts"][item["id"]]["label"]
            doubt = None if label is None else self.check.doubt(item, label, self.labels)
            if doubt:
                doubts[item["id"]] = {"label": doubt.label, "why": doubt.why}
        worth = self._measured(state["dev"], state["dev_verdicts"])
        return {"doubts": doubts, "dev_before": worth}

    def propose(self, state: AuditState) -> Steps[Update]:
        """Propose every doubt that nobody has decided yet, and some other labels."""
        yield from ()
        doubts, others = proposals_of(state, self.check.name, self.modes)
        candidates = others if self.draw_right else []
        right_proposals = drawn_beside(doubts, candidates, self.right_share, self.seed)
        return {"proposals": [*doubts, *right_proposals]}

    def audit(self, state: AuditState) -> Steps[Update]:
        """Have every proposal decided; queue what was accepted."""
        proposals = state["proposals"]
        decided, usages = yield from self.audit_by(
            proposals, self.labels, self.modes, self.journal
        )
        by_id: dict[str, AuditDecision] = {decision["id"]: decision for decision in decided}
        for decision in decided:
            tell("decision", "audit", decision)
        mistakes, right = learnt_from(by_id, self.right_share)
        meanings = {mode.name: mode.description for mode in self.modes}
        examples = [
            example_of(proposal, by_id[proposal["id"]], meanings)
            for proposal in proposals
            if proposal["id"] in {*mistakes, *right}
        ]
        return {
            "decisions": [*state["decisions"], *decided],
            "learnt": [],
            "spent": usages,
            **self.admission.queued(examples, state),
        }

    def measure_round(self, state: AuditState) -> Steps[Update]:
        """Write down what the round came to, and decide whether another one follows."""
        outcome = self._round(state)
        tell("round", "measure", outcome)
        history = [*state["history"], outcome]
        families = {example.get("family") for example in state["learnt"]}
        # Trials have already judged dev with what was learnt.
        stale = self.reach.touched(state["pool"], families)
        stopped = self._stopped(history)
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

    def _round(self, state: AuditState) -> Round:
        number, stale = state["round"], set(state["stale"])
        answers = [d["answer"] for d in state["decisions"] if d["round"] == number]
        both: VerdictsById = {**state["verdicts"], **state["dev_verdicts"]}
        fresh = [both[own]["usage"] for own in stale]
        labelled = [item for item in state["pool"] if item.get(self.truth) is not None]
        trials = [trial for trial in state["trials"] if trial["round"] == number]
        unmeasured = {
            str(waiting["example"].get("family") or "")
            for waiting in state["waiting"]
            if waiting["why"] == "unmeasured"
        }
        return {
            "round": number,
            "evaluated": len(stale),
            "not_judged": sum(verdict["label"] is None for verdict in both.values()),
            "doubted": len(state["doubts"]),
            "proposed": len(state["proposals"]),
            "accepted": sum(a in {"accept", "label", "mode"} for a in answers),
            "right": sum(each["wrong"] == each["corrected"] for each in state["learnt"]),
            "rejected": answers.count("reject"),
            "check_wrong": answers.count("check_wrong"),
            "remembered": len(state["learnt"]),
            "waiting": len(state["waiting"]),
            "unmeasured": sorted(unmeasured.union(*(t["unmeasured"] for t in trials))),
            "memory_version": str(self.memory.version),
            "memory_size": len(self.memory),
            "pool": self._measured(labelled, state["verdicts"]),
            "dev_before": state["dev_before"],
            "dev": self._measured(state["dev"], state["dev_verdicts"]),
            "usage": add_usage([*fresh, *state["spent"]]),
        }

    def _measured(
        self, items: Sequence[Mapping[str, Any]], verdicts: VerdictsById
    ) -> Measured | None:
        return measure(self._cases(items, verdicts), self.seed) if items else None

    def _cases(self, items: Sequence[Mapping[str, Any]], verdicts: VerdictsById) -> list[Case]:
        return cases_of(items, verdicts, self.labels, self.truth)

    def _stopped(self, history: Sequence[Round]) -> Stopped | None:
        if not history[-1]["remembered"]:
            return "nothing_new"
        if len(history) >= self.max_rounds:
            return "max_rounds"
        dev = [history[0]["dev_before"], *(each["dev"] for each in history)]
        worth = [each["balanced_accuracy"] for each in dev if each]
        if len(worth) > self.patience:
            recent, earlier = worth[-self.patience :], worth[: -self.patience]
            if max(recent) <= max(earlier):
                return "no_gain"
        return None


_BLANK: dict[str, Any] = {"label": None, "score": None, "rationale": "", "usage": no_usage()}
"""What a verdict of another runnable may leave out."""


def _identified(items: Sequence[Mapping[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """Return checked items, each with an id that no other has."""
    if not items or isinstance(items, Mapping | str):
        raise InputError("an audit needs a list of at least one item")
    ids: set[str] = set()
    items_with_ids = []
    for number, raw in enumerate(items):
        item: Any = plain_row(raw) if isinstance(raw, Mapping) else raw
        try:
            check_item(item)
        except InputError as exc:
            raise InputError(f"item {number}: {exc}") from exc
        own = str(item.get("id") or f"{prefix} {number}")
        if own in ids:
            raise InputError(f"item {number}: the id {own!r} stands twice")
        ids.add(own)
        items_with_ids.append({**item, "id": own})
    return items_with_ids
