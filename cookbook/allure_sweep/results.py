"""The rows of every arm of a sweep, with what is known of the items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from allure_sweep.averages import Figure, Rows, metrics_of
from allure_sweep.plan import Arm, Plan
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods.allure.holdout import group_of


@dataclass(frozen=True)
class Runs:
    """The runs of a sweep: rows of each arm over the held-out items, in their order."""

    plan: Plan
    arms: Sequence[Arm]
    rows: Mapping[str, Rows]
    memory: FailureMemory

    @cached_property
    def truth(self) -> list[int]:
        """The known labels of the held-out items."""
        return [int(item["label"]) for item in self.plan.held_out]

    @cached_property
    def groups(self) -> list[str]:
        """Their groups."""
        return [str(group_of(item, n)) for n, item in enumerate(self.plan.held_out)]

    @cached_property
    def metrics(self) -> dict[str, dict[str, Figure]]:
        """The metrics of each run."""
        return {
            name: metrics_of(rows, self.truth, self.groups) for name, rows in self.rows.items()
        }

    def of(self, kind: str) -> list[Arm]:
        """Return the arms of a kind."""
        return [arm for arm in self.arms if arm.kind == kind]

    def labels(self, name: str) -> list[Any]:
        """Return the labels of a run; None where an item was not judged."""
        return [row["verdict"]["label"] for row in self.rows[name]]

    def named(self, name: str) -> bool:
        """Say whether there is such a run."""
        return name in self.rows
