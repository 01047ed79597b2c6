"""The result of a round of an audit, and whether another one follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_judges.memory.recall import Memory
from langchain_judges.methods.allure.audit.holdout import Measured, cases_of, measure
from langchain_judges.methods.allure.audit.options import AuditOptions
from langchain_judges.methods.allure.audit.state import (
    AuditState,
    Round,
    Stopped,
    VerdictsById,
)
from langchain_judges.verdict import Item, Label, add_usage


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
        return measure(
            cases_of(items, verdicts, self.labels, self.options.truth), self.options.seed
        )

    def summary(self, state: AuditState) -> Round:
        """Return the result of the round that ends."""
        number, stale = state["round"], set(state["stale"])
        answers = [d["answer"] for d in state["decisions"] if d["round"] == number]
        verdicts: VerdictsById = {**state["verdicts"], **state["dev_verdicts"]}
        fresh = [verdicts[id]["usage"] for id in stale]
        labelled = [item for item in state["pool"] if item.get(self.options.truth) is not None]
        trials = [trial for trial in state["trials"] if trial["round"] == number]
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
            "unmeasured": sorted(unmeasured.union(*(t["unmeasured"] for t in trials))),
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
