"""Which accepted examples enter the memory: those with which dev does not fall.

They are tried on an overlay of the memory, which only the judge of the trial sees. A batch
that is refused is halved until the examples that harm stand alone, and those wait; they are
tried again when the memory has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langgraph.types import Overwrite, Send

from langchain_judges.asking.effects import Effect, Update
from langchain_judges.memory.shown import Memory
from langchain_judges.methods.allure.held_out import (
    ROUNDING,
    accuracy,
    balanced_accuracy,
    cases_of,
    fall_risk,
    measure,
)
from langchain_judges.methods.allure.label_checks import is_on_scale
from langchain_judges.methods.allure.review import AuditedExample
from langchain_judges.methods.allure.state import (
    AdmissionTrial,
    AuditOptions,
    AuditState,
    Batch,
    Measured,
    Round,
    Stopped,
    VerdictsById,
    Waiting,
)
from langchain_judges.methods.items import item_of
from langchain_judges.verdict import Item, Label, add_usage


@dataclass(frozen=True)
class Reach:
    """Which items a remembered example may change the label of.

    Attributes:
        everywhere: Whether the judge may be shown examples of any family.
    """

    everywhere: bool

    def touched(self, items: Sequence[Item], families: set[str | None]) -> list[Item]:
        """Return the items that may be shown examples of some families.

        An item without a family is shown examples of any.
        """
        if not families:
            return []
        return [
            item
            for item in items
            if self.everywhere or not item.get("family") or item["family"] in families
        ]


@dataclass(frozen=True)
class Admission:
    """The steps from accepted examples to remembered ones.

    Attributes:
        reach: On dev.
    """

    memory: Memory
    reach: Reach
    labels: tuple[Label, ...]
    options: AuditOptions

    def queued(self, examples: Sequence[AuditedExample], state: AuditState) -> Update:
        """Queue what was accepted, and what waits and may now be admitted."""
        retries, waiting = self._due(state["waiting"])
        return {"queue": [b for b in ([*examples], retries) if b], "waiting": waiting}

    def _due(self, waiting: Sequence[Waiting]) -> tuple[list[AuditedExample], list[Waiting]]:
        """Return the examples to try again, and what still waits."""
        version = self.memory.version
        due = [w for w in waiting if w["why"] == "fell" and w["memory_version"] != version]
        return [each["example"] for each in due], [each for each in waiting if each not in due]

    def next_batch(self, state: AuditState) -> str:
        """Try the next examples, or measure the round."""
        return "stage" if state["queue"] else "measure"

    def stage(self, state: AuditState) -> Update:
        """Take the next examples; those that dev cannot measure wait."""
        batch, *rest = state["queue"]
        unseen = [each for each in batch if state["dev"] and not self._is_measured(each, state)]
        held_back = [self._held_back(each, "unmeasured") for each in unseen]
        return {
            "queue": rest,
            "batch": [each for each in batch if each not in unseen],
            "waiting": [*state["waiting"], *held_back],
            "trial_verdicts": Overwrite({}),
        }

    def _is_measured(self, example: AuditedExample, state: AuditState) -> bool:
        """Return whether an item of dev may be shown an example."""
        return bool(self.reach.touched(state["dev"], {example["family"]}))

    def _held_back(
        self, example: AuditedExample, why: Literal["fell", "unmeasured"]
    ) -> Waiting:
        return {"example": example, "why": why, "memory_version": self.memory.version}

    def on_trial(self, state: AuditState) -> list[Send] | str:
        """Send the items of dev that the examples may change, in parts for parallel tasks."""
        families = {example["family"] for example in state["batch"]}
        items = [item_of(item) for item in self.reach.touched(state["dev"], families)]
        lanes = self.options.max_concurrency
        parts = [items[lane::lanes] for lane in range(lanes)]
        batches: list[Batch] = [
            {"items": part, "examples": state["batch"]} for part in parts if part
        ]
        return [Send("try", each) for each in batches] or "admit"

    async def decide(self, state: AuditState) -> Update:
        """Remember the examples on trial; or halve them if dev fell with them."""
        batch = state["batch"]
        if not batch:
            return self._after(state, {}, state["waiting"])
        update: Update = {}
        if state["dev"]:
            trial, update = self._judge(state)
            if not trial["admitted"]:
                return self._refused(state, trial, update)
        memory = self.memory
        ids: list[str] = await Effect(
            lambda: memory.remember(batch), lambda: memory.aremember(batch)
        )
        if state["dev"]:
            update["trials"][-1]["examples"] = list(ids)
            update["dev_verdicts"] = state["trial_verdicts"]
        update["learnt"] = [*state["learnt"], *batch]
        update["examples"] = list(dict.fromkeys([*state["examples"], *ids]))
        return self._after(state, update, state["waiting"])

    def _judge(self, state: AuditState) -> tuple[AdmissionTrial, Update]:
        batch, verdicts = state["batch"], state["trial_verdicts"]
        before = cases_of(state["dev"], state["dev_verdicts"], self.labels)
        after = cases_of(state["dev"], {**state["dev_verdicts"], **verdicts}, self.labels)
        risk = fall_risk(before, after, self.options.seed)
        balanced = balanced_accuracy(before), balanced_accuracy(after)
        plain = accuracy(before), accuracy(after)
        fell = any(new < old - ROUNDING for old, new in (balanced, plain))
        trial: AdmissionTrial = {
            "round": state["round"],
            "examples": [],
            "sources": [example["source"] for example in batch],
            "before": balanced[0],
            "after": balanced[1],
            "accuracy_before": plain[0],
            "accuracy_after": plain[1],
            "risk": risk,
            "admitted": not fell and risk <= self.options.risk,
        }
        usages = [verdict["usage"] for verdict in verdicts.values()]
        return trial, {
            "trials": [*state["trials"], trial],
            "spent": [*state["spent"], *usages],
        }

    def _refused(self, state: AuditState, trial: AdmissionTrial, update: Update) -> Update:
        batch = state["batch"]
        if len(batch) == 1:
            waiting = [*state["waiting"], self._held_back(batch[0], "fell")]
            return self._after(state, update, waiting)
        middle = (len(batch) + 1) // 2
        return {**update, "queue": [batch[:middle], batch[middle:], *state["queue"]]}

    def _after(self, state: AuditState, update: Update, waiting: Sequence[Waiting]) -> Update:
        """Queue what waits, where the memory has changed and nothing else is queued."""
        if state["queue"]:
            return {**update, "waiting": [*waiting]}
        retries, waiting = self._due(waiting)
        return {**update, "queue": [retries] if retries else [], "waiting": waiting}


@dataclass(frozen=True)
class Rounds:
    """Measures the rounds of an audit."""

    memory: Memory
    labels: tuple[Label, ...]
    options: AuditOptions

    def measured(self, items: Sequence[Item], verdicts: VerdictsById) -> Measured | None:
        """Return what the judge is worth on items with their true label; None without one."""
        if not items:
            return None
        return measure(cases_of(items, verdicts, self.labels), self.options.seed)

    def summary(self, state: AuditState) -> Round:
        """Return the result of the round that ends."""
        number, stale = state["round"], set(state["stale"])
        answers = [d["answer"] for d in state["decisions"] if d["round"] == number]
        verdicts: VerdictsById = {**state["verdicts"], **state["dev_verdicts"]}
        fresh = [verdicts[id]["usage"] for id in stale]
        labelled = [i for i in state["pool"] if is_on_scale(i.get("label"), self.labels)]
        unmeasured = {
            waiting["example"]["family"] or ""
            for waiting in state["waiting"]
            if waiting["why"] == "unmeasured"
        }
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
            "unmeasured": sorted(unmeasured),
            "memory_version": self.memory.version,
            "memory_size": len(self.memory),
            "pool": self.measured(labelled, state["verdicts"]),
            "dev_before": state["dev_before"],
            "dev": self.measured(state["dev"], state["dev_verdicts"]),
            "usage": add_usage([*fresh, *state["spent"]]),
        }

    def stopped(self, history: Sequence[Round]) -> Stopped | None:
        """Return why the audit ends after its last round; None: another one follows."""
        if not history[-1]["remembered"]:
            return "nothing_new"
        if len(history) >= self.options.max_rounds:
            return "max_rounds"
        dev = [history[0]["dev_before"], *(each["dev"] for each in history)]
        accuracies = [each["balanced_accuracy"] for each in dev if each]
        patience = self.options.patience
        if len(accuracies) > patience:
            recent, earlier = accuracies[-patience:], accuracies[:-patience]
            if max(recent) <= max(earlier):
                return "no_gain"
        return None
