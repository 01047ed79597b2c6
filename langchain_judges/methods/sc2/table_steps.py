"""Setting two texts side by side: sampled tables, and the check that needs no model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

from langgraph.types import Send

from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Steps, Update, Wait
from langchain_judges.methods.pairs import pair_of
from langchain_judges.methods.sc2.check import check_table, phrases_of
from langchain_judges.methods.sc2.replies import (
    Aspects,
    CheckedTable,
    ComparisonTable,
    SC2State,
    TableWork,
    table_shapes,
)
from langchain_judges.methods.sc2.steps import SC2Steps
from langchain_judges.methods.sc2.tables import fit, parse_table, read_rows, silent_rows
from langchain_judges.verdict import Failure, FailureReason


class TableSteps(SC2Steps):
    """The steps that make tables and check them."""

    @cached_property
    def question(self) -> Question:
        """What one table is asked by; its shape is replaced by that of the pair's aspects."""
        shares = self.options.samples > 1
        return self.context.question(
            "table", Aspects, label="{unit}", sampled=True, shares_material=shares
        )

    def ask_each(self, state: SC2State) -> Next:
        """Send every table that is to be sampled; without aspects there is none."""
        pair, aspects = pair_of(state), state["aspects"]
        if not aspects:
            return "round"
        numbers = list(range(1, self.options.samples + 1))
        if self.options.inference == "random":
            numbers = [self.coin(pair, "random").choice(numbers)]
        return [
            Send("table", TableWork(pair=pair, aspects=aspects, number=number))
            for number in numbers
        ]

    def table(self, work: TableWork) -> Call:
        """Ask for one table: a row for each aspect, of what is shared and what is not."""
        aspects, number = work["aspects"], work["number"]
        whole, part = table_shapes(len(aspects), self.context.adapters["table"].text_limit)
        parse = partial(parse_table, aspects=aspects)
        variables = {
            **self.material(work["pair"], "AB"),
            "aspects": "\n".join(f"{i + 1}. {name}" for i, name in enumerate(aspects)),
        }
        return Call(
            replace(self.question, shape=whole, partial=part, parse=parse),
            variables,
            f"table {number}",
            seed=self.sample_seed(number),
        )

    def tabled(self, work: TableWork, reply: Reply) -> Update:
        """Keep one table, and say what is missing in it."""
        table, failures = self._read(reply, work["aspects"], work["number"])
        return {"tables": [table], "failures": [*reply.failures, *failures]}

    def check(self, state: SC2State) -> Steps[Update]:
        """Check every table without a model."""
        check, tables = self.options.check, state["tables"]
        assert check  # noqa: S101 - the node exists only with a check
        a, b = self.sides(pair_of(state))
        vectors, failures = yield from self.embed(
            phrases_of(tables, [a, b]) if check.embed else [],
            step="table",
            unit="table check",
            instead="tables were checked by their words alone",
        )

        def look() -> list[CheckedTable]:
            return [check_table(check, table, a, b, vectors) for table in tables]

        # An entailment model may take seconds; an event loop must not stand still for it.
        checks = yield Wait(look, partial(asyncio.to_thread, look))
        return {"checks": checks, "failures": failures}

    def _read(
        self, reply: Reply, aspects: Sequence[str], number: int
    ) -> tuple[ComparisonTable, list[Failure]]:
        """Return the table of a reply, and what is missing or was cut."""
        unit = f"table {number}"
        if reply.data is None:
            return {"number": number, "rows": [], "valid": False}, []
        rows = read_rows(reply.data, aspects)
        empty = silent_rows(rows)
        valid = 2 * len(empty) < len(rows)
        failures: list[Failure] = []
        if reply.problem:
            # A part of the reply is used; what is missing are cells that say nothing.
            failures.append(_failure(unit, "missing", reply.problem.detail))
        elif not valid:
            detail = f"nothing is said of {', '.join(empty)}"
            failures.append(_failure(unit, "empty", detail))
        fitting = fit(rows, self.options.max_table)
        if fitting != rows:
            detail = f"cells were cut to fit {self.options.max_table:,} characters"
            failures.append(_failure(unit, "input_cut", detail))
        return {"number": number, "rows": fitting, "valid": valid}, failures


def _failure(unit: str, reason: FailureReason, detail: str) -> Failure:
    return {"step": "table", "unit": unit, "reason": reason, "detail": detail}
