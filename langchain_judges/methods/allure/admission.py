"""Admission to the memory: the accepted examples that dev shows to help.

They are tried on an overlay of the memory, which only the judge of the trial sees. Dev must
rise by more than chance explains, and all trials so far share the chance that is allowed. Then
each example is left out once, and what does harm goes. A refused batch is halved until the
trials of the round are spent, and the rest waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import Runnable

from langchain_judges.asking.effects import Effect, Update, emit, gather
from langchain_judges.asking.reply_log import ReplyLog, key_of
from langchain_judges.memory.shown import Memory
from langchain_judges.methods.allure import held_out
from langchain_judges.methods.allure import state as states
from langchain_judges.methods.allure.state import AuditedExample, AuditState, VerdictsById, Waiting
from langchain_judges.methods.describe import judgment_of
from langchain_judges.methods.items import item_of
from langchain_judges.rows import checks, texts
from langchain_judges.verdict import Item, Label, LabelVerdict

# Most trials of a round: a batch, its halves, quarters and eighths.
TRIALS = 15
# Most items of dev on which one example is left out.
_LEFT_OUT_ON = 20


def touched(items: Sequence[Item], families: set[str | None], everywhere: bool) -> list[Item]:
    """The items whose label an example of some families may change.

    Args:
        items: One without a family is shown examples of any.
        families: Those of the examples.
        everywhere: Whether the judge may be shown examples of any family.
    """
    if not families:
        return []
    fitting = {None, "", *families}
    return [item for item in items if everywhere or item.get("family") in fitting]


@dataclass(frozen=True)
class Audited:
    """The judge that is audited.

    Attributes:
        mark: What decides its verdicts besides the memory.
        paid: Its verdicts, against a kill.
    """

    judge: Runnable[Any, Any]
    mark: Mapping[str, object]
    paid: ReplyLog

    async def verdict(self, item: Item, version: str, step: str) -> LabelVerdict:
        """The verdict on an item, or what was paid for before a kill; told as a step's.

        Args:
            item: The item.
            version: Of the memory, with what is on trial.
            step: The node that wants it.
        """
        judge = self.judge

        async def ask() -> LabelVerdict:
            return cast("LabelVerdict", (await judgment_of(judge, "item", item))["verdict"])

        verdict = await self.paid.once(key_of("verdict", self.mark, version, item["id"], item), ask)
        emit("verdict", step, verdict, item["id"])
        return verdict


@dataclass(frozen=True)
class Trial:
    """A batch of examples, and the verdicts on dev if the memory held them.

    Attributes:
        ids: Of the examples, in the memory.
    """

    batch: list[AuditedExample]
    ids: list[str]
    verdicts: VerdictsById

    def shown_on(self, id: str) -> list[str]:
        """The items of dev that were shown an example."""
        return [item for item, each in self.verdicts.items() if id in each["recalled"]]

    def parted(self, ids: Collection[str]) -> tuple[list[AuditedExample], list[AuditedExample]]:
        """The examples with some ids, and the others."""
        pairs = list(zip(self.ids, self.batch, strict=True))
        return [e for id, e in pairs if id in ids], [e for id, e in pairs if id not in ids]


@dataclass(frozen=True)
class Admission:
    """From accepted examples to remembered ones.

    Attributes:
        everywhere: Whether the judge may be shown examples of any family.
    """

    memory: Memory
    audited: Audited
    everywhere: bool
    labels: tuple[Label, ...]
    options: states.AuditOptions

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
            "tried_with": version,
        }

    async def admit(self, state: AuditState) -> Update:
        """Try the next batch on dev; remember it, halve it, or let some of it wait."""
        if not state["queue"]:
            return {}
        batch, *queue = state["queue"]
        update: Update = {"queue": queue}
        if not state["dev"]:
            return {**update, **await self._remembered(batch, state)}
        if not self._may_rise(state):
            return {**update, **self._waiting(state, batch, "untried")}
        trial = await self._tried(batch, state)
        update["spent"] = [*state["spent"], *(v["usage"] for v in trial.verdicts.values())]
        unseen = [id for id in trial.ids if len(trial.shown_on(id)) < self.options.shown_on]
        if unseen:
            return {**update, **self._without(trial, unseen, "unmeasured", state)}
        result = self._result(trial, state)
        if not result["admitted"]:
            update["trials"] = [*state["trials"], result]
            return {**update, **self._refused(state)}
        if len(batch) > 1 and batch != state["kept"]:
            left_out = await self._left_out(trial, state)
            update["spent"] += [v["usage"] for each in left_out.values() for v in each.values()]
            if harmful := [id for id in left_out if self._harms(left_out[id], trial, state)]:
                update["trials"] = [*state["trials"], {**result, "admitted": False}]
                update["kept"] = trial.parted(harmful)[1]
                return {**update, **self._without(trial, harmful, "harms", state)}
        remembered = await self._remembered(batch, state)
        result["examples"] = remembered.pop("ids")
        verdicts = {**state["dev_verdicts"], **trial.verdicts}
        more = {"trials": [*state["trials"], result], "dev_verdicts": verdicts}
        return {**update, **remembered, **more}

    def _limit(self, state: AuditState) -> float:
        """The largest chance allowed for the rise of the next trial."""
        return self.options.risk / (len(state["trials"]) + 1)

    def _may_rise(self, state: AuditState) -> bool:
        """Whether the round has trials left, and dev mistakes enough to show a gain."""
        spent = sum(trial["round"] == state["round"] for trial in state["trials"])
        cases = held_out.labelled_cases(state["dev"], state["dev_verdicts"], self.labels)
        wrong = {group for group, truth, label in cases if truth != label}
        return spent < TRIALS and 0.5 ** len(wrong) <= self._limit(state)

    async def _tried(self, batch: list[AuditedExample], state: AuditState) -> Trial:
        """The verdicts on the items of dev that the examples may change."""
        items = touched(state["dev"], {each["family"] for each in batch}, self.everywhere)
        version = key_of(state["tried_with"], batch)
        with self.memory.trial(batch) as ids:
            return Trial(batch, ids, await self.judged(items, version, "try"))

    async def judged(self, items: Sequence[Item], version: str, step: str) -> VerdictsById:
        """The verdicts on several items by id, asked at the same time."""
        asked = [self.audited.verdict(item_of(item), version, step) for item in items]
        verdicts = await gather(asked, self.options.max_concurrency)
        return {item["id"]: verdict for item, verdict in zip(items, verdicts, strict=True)}

    async def _left_out(self, trial: Trial, state: AuditState) -> dict[str, VerdictsById]:
        """The verdicts, without each example, on the items that were shown it."""
        items = {item["id"]: item_of(item) for item in state["dev"]}

        async def without(id: str) -> VerdictsById:
            shown = [items[each] for each in trial.shown_on(id)[:_LEFT_OUT_ON]]
            _, others = trial.parted([id])
            version = key_of(state["tried_with"], others)
            with self.memory.trial(others):
                ask = self.audited.verdict
                return {item["id"]: await ask(item, version, "leave_out") for item in shown}

        verdicts = await gather(list(map(without, trial.ids)), self.options.max_concurrency)
        return dict(zip(trial.ids, verdicts, strict=True))

    def _harms(self, without: VerdictsById, trial: Trial, state: AuditState) -> bool:
        """Whether the items that were shown an example do better without it.

        None may do worse, or the rise must be more than chance explains: in a judge that
        wavers, every other example would do harm else.
        """
        items = [item for item in state["dev"] if item["id"] in without]
        shown = held_out.labelled_cases(items, trial.verdicts, self.labels)
        left_out = held_out.labelled_cases(items, without, self.labels)
        better, worse = held_out.changes(shown, left_out)
        chance = held_out.chance_of_rise(shown, left_out)
        return better > 0 and (not worse or chance <= self.options.risk)

    def _result(self, trial: Trial, state: AuditState) -> states.AdmissionTrial:
        dev, old = state["dev"], state["dev_verdicts"]
        before = held_out.labelled_cases(dev, old, self.labels)
        after = held_out.labelled_cases(dev, {**old, **trial.verdicts}, self.labels)
        chance, limit = held_out.chance_of_rise(before, after), self._limit(state)
        return {
            "round": state["round"],
            "examples": [],
            "sources": [example["source"] for example in trial.batch],
            "before": held_out.balanced_share(before),
            "after": held_out.balanced_share(after),
            "accuracy_before": held_out.share_right(before),
            "accuracy_after": held_out.share_right(after),
            "chance": chance,
            "limit": limit,
            "admitted": not held_out.fell(before, after) and chance <= limit,
        }

    def _waiting(
        self, state: AuditState, examples: Sequence[AuditedExample], why: states.WhyWaiting
    ) -> Update:
        """Let examples wait."""
        version = self.memory.version
        more: list[Waiting] = [
            {"example": example, "why": why, "memory_version": version} for example in examples
        ]
        return {"waiting": [*state["waiting"], *more]}

    def _without(
        self, trial: Trial, ids: Sequence[str], why: states.WhyWaiting, state: AuditState
    ) -> Update:
        """Let some examples of the batch wait, and try the rest again."""
        gone, rest = trial.parted(ids)
        again = [rest] if rest else []
        return {**self._waiting(state, gone, why), "queue": [*again, *state["queue"][1:]]}

    def _refused(self, state: AuditState) -> Update:
        """Try both halves of a batch; a single example waits."""
        batch, *queue = state["queue"]
        if len(batch) == 1:
            return self._waiting(state, batch, "no_gain")
        middle = (len(batch) + 1) // 2
        return {"queue": [*queue, batch[:middle], batch[middle:]]}

    async def _remembered(self, batch: list[AuditedExample], state: AuditState) -> Update:
        """Remember a batch."""
        memory = self.memory
        ids: list[str] = await Effect.of(memory, "remember", batch)
        return {
            "ids": list(ids),
            "learnt": [*state["learnt"], *batch],
            "examples": list(dict.fromkeys([*state["examples"], *ids])),
            "tried_with": memory.version,
        }


def example_of(
    proposal: states.AuditProposal,
    decision: Mapping[str, Any],
    meanings: Mapping[str, str],
    scale: Sequence[Label],
) -> AuditedExample:
    """The example that a decision makes of a proposal, as a memory keeps it.

    Args:
        proposal: What was audited.
        decision: What the auditor decided.
        meanings: What the failure modes of the audit mean, by name.
        scale: The judge's labels, worst first.
    """
    item = proposal["item"]
    answers = checks.expected_answers(item)
    return {
        "family": item.get("family"),
        "input": texts.with_source(item["input"], item.get("source")),
        "output": texts.readable(item["output"]),
        "expected": answers[0] if len(answers) == 1 else answers or None,
        "corrected": decision["label"],
        **{name: decision[name] for name in ("wrong", "mode", "round", "auditor", "note")},
        "mode_meaning": meanings.get(decision["mode"] or "") or None,
        "source": proposal["id"],
        "group": item.get("group"),
        "scale": [*scale],
    }


def right_beside(mistakes: int, share: float) -> int:
    """The largest number of right cases for some mistakes that keeps their share."""
    # Three mistakes at a share of a tenth are .33 right cases; nine are one, not .9999.
    return int(mistakes * share / (1 - share) + 1e-9)


def drawn_beside(
    mistakes: Sequence[states.AuditProposal],
    candidates: Sequence[states.AuditProposal],
    share: float,
    seed: int,
) -> list[states.AuditProposal]:
    """Undoubted labels to audit in addition to doubted ones.

    Those of a family and label that the judge is doubted on come first: beside "a judge said 1,
    right is 0" they show where 1 is right. The rest is drawn at random.
    """
    kinds = {(each["item"].get("family"), each["label"]) for each in mistakes}
    families = {family for family, _ in kinds}

    def rank(candidate: states.AuditProposal) -> tuple[bool, bool, bytes]:
        family = candidate["item"].get("family")
        lot = hashlib.sha256(f"{seed}|{candidate['id']}".encode()).digest()
        return (family, candidate["label"]) not in kinds, family not in families, lot

    return sorted(candidates, key=rank)[: right_beside(len(mistakes), share)]


def learnt_from(
    decisions: Mapping[str, states.AuditDecision], share: float
) -> tuple[list[str], list[str]]:
    """The ids of audited mistakes, and of right cases that are learnt with them.

    Labels that the auditor upheld against the check come first: no others are as near to a
    mistake, and they cost no further decision.
    """
    lessons = {id: each for id, each in decisions.items() if each["answer"] != "reject"}
    mistakes = [id for id, each in lessons.items() if each["label"] != each["wrong"]]
    false_alarms = [id for id, each in lessons.items() if each["answer"] == "check_wrong"]
    sample = [id for id in lessons if id not in {*mistakes, *false_alarms}]
    return mistakes, [*false_alarms, *sample][: right_beside(len(mistakes), share)]
