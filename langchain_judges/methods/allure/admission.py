"""Which accepted examples enter the memory: those that dev shows to help.

They are tried on an overlay of the memory, which only the judge of the trial sees. Dev must
rise by more than chance explains, and all trials so far share the chance that is allowed. Then
each example is left out once, and what does harm goes. A refused batch is halved until the
trials of the round are spent, and the rest waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.types import Overwrite, Send

from langchain_judges.asking.effects import Effect, Update
from langchain_judges.memory.shown import Memory
from langchain_judges.methods.allure.held_out import (
    accuracy,
    balanced_accuracy,
    cases_of,
    chance_of_rise,
    fell,
    gain_of,
    measure,
)
from langchain_judges.methods.allure.label_checks import is_on_scale
from langchain_judges.methods.allure.review import AuditedExample
from langchain_judges.methods.allure.state import (
    AdmissionTrial,
    AuditOptions,
    AuditState,
    Batch,
    Gain,
    Measured,
    Round,
    Stopped,
    VerdictsById,
    Waiting,
    WhyWaiting,
)
from langchain_judges.methods.items import item_of
from langchain_judges.verdict import Item, Label, add_usage

# Most trials of a round: a batch, its halves, quarters and eighths.
TRIALS = 15
# Verdicts of the last trial are gone.
_NO_VERDICTS = {"trial_verdicts": Overwrite({}), "left_out": Overwrite({}), "leaving": False}
# Most items of dev on which one example is left out.
_LEFT_OUT_ON = 20


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
        """Queue what was accepted, and what waits and may be admitted by a changed memory."""
        version = self.memory.version
        due = [
            waiting
            for waiting in state["waiting"]
            if waiting["why"] in ("no_gain", "untried") and waiting["memory_version"] != version
        ]
        batches = [[*examples], [each["example"] for each in due]]
        return {
            "queue": [batch for batch in batches if batch],
            "waiting": [each for each in state["waiting"] if each not in due],
        }

    def next_batch(self, state: AuditState) -> str:
        """Try the next examples, or measure the round."""
        return "stage" if state["queue"] else "measure"

    def stage(self, state: AuditState) -> Update:
        """Take the next examples; they wait where no trial could admit them any more."""
        batch, *rest = state["queue"]
        update: Update = {"queue": rest, **_NO_VERDICTS}
        if state["dev"] and not self._may_rise(state):
            return {**update, "batch": [], "waiting": self._waiting(state, batch, "untried")}
        with self.memory.trial(batch) as ids:
            return {**update, "batch": batch, "batch_ids": ids}

    def _limit(self, state: AuditState) -> float:
        """Return the chance that the next trial may owe its rise to."""
        return self.options.risk / (len(state["trials"]) + 1)

    def _may_rise(self, state: AuditState) -> bool:
        """Return whether the round has trials left, and dev mistakes enough to show a gain."""
        spent = sum(trial["round"] == state["round"] for trial in state["trials"])
        cases = cases_of(state["dev"], state["dev_verdicts"], self.labels)
        wrong = {group for group, truth, label in cases if truth != label}
        return spent < TRIALS and 0.5 ** len(wrong) <= self._limit(state)

    def _waiting(
        self, state: AuditState, examples: Sequence[AuditedExample], why: WhyWaiting
    ) -> list[Waiting]:
        """Return what waits, with some more examples."""
        version = self.memory.version
        more: list[Waiting] = [
            {"example": example, "why": why, "memory_version": version} for example in examples
        ]
        return [*state["waiting"], *more]

    def on_trial(self, state: AuditState) -> list[Send] | str:
        """Send the items of dev that the examples may change, in parts for parallel tasks."""
        families = {example["family"] for example in state["batch"]}
        items = [item_of(item) for item in self.reach.touched(state["dev"], families)]
        lanes = self.options.max_concurrency
        parts = [items[lane::lanes] for lane in range(lanes)]
        batches: list[Batch] = [
            {"items": part, "examples": state["batch"], "without": None}
            for part in parts
            if part
        ]
        return [Send("try", each) for each in batches] or "admit"

    async def decide(self, state: AuditState) -> Update:
        """Remember the examples on trial, leave each out first, or halve them."""
        batch = state["batch"]
        if not batch or not state["dev"]:
            return await self._remembered(state, {})
        update: Update = {
            "spent": [
                *state["spent"],
                *(verdict["usage"] for verdict in state["trial_verdicts"].values()),
            ]
        }
        if unseen := self._unseen(state):
            return self._without(state, update, unseen, "unmeasured")
        trial = self._tried(state)
        update["trials"] = [*state["trials"], trial]
        if not trial["admitted"]:
            return self._refused(state, update)
        if len(batch) > 1 and batch != state["kept"]:
            return {**update, "leaving": True}
        return await self._remembered(state, update)

    def _unseen(self, state: AuditState) -> list[str]:
        """Return the ids on trial that too few items of dev were shown."""
        return [
            id
            for id in state["batch_ids"]
            if len(self._shown_on(state, id)) < self.options.shown_on
        ]

    def _shown_on(self, state: AuditState, id: str) -> list[str]:
        """Return the items of dev that were shown an example on trial."""
        verdicts = state["trial_verdicts"].items()
        return [item for item, verdict in verdicts if id in verdict["recalled"]]

    def _without(
        self, state: AuditState, update: Update, ids: Sequence[str], why: WhyWaiting
    ) -> Update:
        """Let some examples of the batch wait, and try the rest again."""
        pairs = list(zip(state["batch_ids"], state["batch"], strict=True))
        gone = [example for id, example in pairs if id in ids]
        rest = [example for id, example in pairs if id not in ids]
        return {
            **update,
            "waiting": self._waiting(state, gone, why),
            "queue": [*([rest] if rest else []), *state["queue"]],
        }

    def _tried(self, state: AuditState) -> AdmissionTrial:
        dev, old, new = state["dev"], state["dev_verdicts"], state["trial_verdicts"]
        before = cases_of(dev, old, self.labels)
        after = cases_of(dev, {**old, **new}, self.labels)
        chance, limit = chance_of_rise(before, after), self._limit(state)
        return {
            "round": state["round"],
            "examples": [],
            "sources": [example["source"] for example in state["batch"]],
            "before": balanced_accuracy(before),
            "after": balanced_accuracy(after),
            "accuracy_before": accuracy(before),
            "accuracy_after": accuracy(after),
            "chance": chance,
            "limit": limit,
            "admitted": not fell(before, after) and chance <= limit,
        }

    def _refused(self, state: AuditState, update: Update) -> Update:
        batch, middle = state["batch"], (len(state["batch"]) + 1) // 2
        if len(batch) == 1:
            return {**update, "waiting": self._waiting(state, batch, "no_gain")}
        return {**update, "queue": [*state["queue"], batch[:middle], batch[middle:]]}

    def leave_out(self, state: AuditState) -> list[Send] | str:
        """Send the items that were shown an example once more, without it, for each example."""
        if not state["leaving"]:
            return self.next_batch(state)
        items = {item["id"]: item_of(item) for item in state["dev"]}
        works: list[Batch] = [
            {
                "items": [items[each] for each in self._shown_on(state, id)[:_LEFT_OUT_ON]],
                "examples": [e for e in state["batch"] if e is not example],
                "without": id,
            }
            for id, example in zip(state["batch_ids"], state["batch"], strict=True)
        ]
        return [Send("leave_out", each) for each in works]

    async def prune(self, state: AuditState) -> Update:
        """Remember the examples on trial but those without which dev does better."""
        left_out = state["left_out"]
        usages = [v["usage"] for verdicts in left_out.values() for v in verdicts.values()]
        update: Update = {"spent": [*state["spent"], *usages]}
        harmful = [id for id, verdicts in left_out.items() if self._is_better(verdicts, state)]
        if not harmful:
            return await self._remembered(state, update)
        *others, last = state["trials"]
        update["trials"] = [*others, {**last, "admitted": False}]
        pairs = zip(state["batch_ids"], state["batch"], strict=True)
        update["kept"] = [example for id, example in pairs if id not in harmful]
        return self._without(state, update, harmful, "harms")

    def _is_better(self, without: VerdictsById, state: AuditState) -> bool:
        """Return whether the items that were shown an example do better without it."""
        items = [item for item in state["dev"] if item["id"] in without]
        shown = cases_of(items, state["trial_verdicts"], self.labels)
        return accuracy(cases_of(items, without, self.labels)) > accuracy(shown)

    async def _remembered(self, state: AuditState, update: Update) -> Update:
        """Remember the batch."""
        memory, batch = self.memory, state["batch"]
        ids: list[str] = await Effect(
            lambda: memory.remember(batch), lambda: memory.aremember(batch)
        )
        if state["dev"] and batch:
            *others, last = update.get("trials") or state["trials"]
            update["trials"] = [*others, {**last, "examples": list(ids)}]
            update["dev_verdicts"] = state["trial_verdicts"]
        update["learnt"] = [*state["learnt"], *batch]
        update["examples"] = list(dict.fromkeys([*state["examples"], *ids]))
        return update


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
        verdicts = state["verdicts"] | state["dev_verdicts"] | state["test_before"]
        fresh = [verdicts[id]["usage"] for id in stale]
        labelled = [i for i in state["pool"] if is_on_scale(i.get("label"), self.labels)]
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

    def gain(self, state: AuditState) -> Gain:
        """Return what the audit brought on test."""
        test, before = state["test"], state["test_before"]
        after = {**before, **state["test_verdicts"]}
        old, new = (cases_of(test, each, self.labels) for each in (before, after))
        return gain_of(old, new, self.options.seed)

    def stopped(self, history: Sequence[Round]) -> Stopped | None:
        """Return why the audit ends after its last round; None: another one follows."""
        if not history[-1]["remembered"]:
            return "nothing_new"
        return "max_rounds" if len(history) >= self.options.max_rounds else None
