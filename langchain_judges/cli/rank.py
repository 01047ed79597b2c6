"""`langchain-judges rank`: many systems' outputs on the same tasks, ranked by a judge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.flags import (
    Concurrency,
    DryRunFlags,
    KeepFailed,
    Method,
    Records,
    RowFlags,
    Without,
    unfolded,
)
from langchain_judges.cli.judges import JudgeFlags, named_judge
from langchain_judges.cli.messages import (
    FAILED,
    ctrl_c_as_exit,
    error_console,
    refusals_as_exits,
    table_console,
)
from langchain_judges.cli.plan import Amount, longest_of, tell_dry_run, warn_of_size
from langchain_judges.cli.rows import check_file, named_columns
from langchain_judges.errors import InputError, OptionError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from langchain_judges.methods.describe import Outline
    from langchain_judges.runs.ranking import Ranking


@dataclass(frozen=True)
class PairJudgeFlags(JudgeFlags):
    """The judge of two outputs."""

    method: Method = "relative"


@dataclass(frozen=True)
class RankingFlags:
    """How the order is found, and where the verdicts are stored."""

    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Most comparisons; by default until the order is settled."),
    ] = None
    records: Records = None
    max_concurrency: Concurrency = None
    keep_failed: KeepFailed = False

    def options(self) -> dict[str, Any]:
        """Return the options of a ranking in Python."""
        return {
            "budget": self.budget,
            "records": self.records,
            "max_concurrency": self.max_concurrency,
            "keep_failed": self.keep_failed,
        }


@unfolded
def rank(
    data: Annotated[
        Path,
        typer.Argument(
            help="JSONL, CSV, TSV or Parquet: input and outputs (an object by system) of each "
            "task, or input, system and output of each text."
        ),
    ],
    judge: Annotated[PairJudgeFlags, Without("memory")],
    tasks: RowFlags,
    ranking: RankingFlags,
    plan: DryRunFlags,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the ranking as JSON too.")
    ] = None,
) -> None:
    """Rank systems by their outputs; the same command with --records resumes where it stopped.

    Pairs of systems are compared where their order is in doubt, until it is settled.

    Exit codes: 0 done, 1 nothing was judged, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address):
        check_file("--out", out)
        named = named_judge(judge)
        rows = outputs_of(data, tasks.column, tasks.limit)
        if plan.dry_run:
            _tell_comparisons(named.outline(errors), rows, ranking.budget, plan.prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.runs.ranking import pairs_of, tasks_of
        from langchain_judges.runs.ranking import rank as rank_systems

        warn_of_size(longest_of(pairs_of(tasks_of(rows))), errors)
        with ctrl_c_as_exit(errors, saved=ranking.records is not None):
            result = rank_systems(rows, named.build(), progress=False, **ranking.options())
    _print_ranking(result, errors)
    if out is not None:
        out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if result["not_judged"] == result["comparisons"]:
        raise typer.Exit(FAILED)


def _print_ranking(ranking: Ranking, errors: Console) -> None:
    from langchain_judges.report.terminal import ranking_table

    table_console().print(ranking_table(ranking))
    comparisons, possible = ranking["comparisons"], ranking["possible"]
    errors.print(
        f"{comparisons:,} of {possible:,} possible comparisons ({comparisons / possible:.0%}), "
        f"{ranking['not_judged']:,} not judged, {ranking['calls']:,} calls, "
        f"{ranking['tokens']:,} tokens; the order is "
        f"{'settled' if ranking['settled'] else 'not settled'}.",
        markup=False,
    )


def outputs_of(
    path: Path, columns: list[str] | None, limit: int | None
) -> list[dict[str, object]]:
    """Return the rows of a table of outputs, its columns named as `rank` takes them.

    Args:
        path: The table.
        columns: FIELD=COLUMN, as `--column` takes them.
        limit: Most tasks to take; None for all.

    Raises:
        InputError: The table cannot be read, is empty, or has no such column.
        OptionError: A field is none of a row of outputs.
    """
    from langchain_judges.rows.files import read_table

    named = named_columns(columns, FIELDS) or {}
    rows: list[dict[str, object]] = []
    tasks: set[str] = set()
    for row in read_table(path):
        for field, own in named.items():
            if own not in row:
                hint = did_you_mean(own, row)
                raise InputError(f"no column {own!r}; {hint}there are {list(row)!r}")
            row[field] = row[own]
        if limit is not None and len(tasks | {repr(row.get("input"))}) > limit:
            continue
        tasks.add(repr(row.get("input")))
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has no row")
    return rows


def _tell_comparisons(
    judge: Outline,
    rows: list[dict[str, object]],
    budget: int | None,
    prices: Path | None,
    errors: Console,
) -> None:
    """Say how many comparisons are possible, and what they may cost."""
    from langchain_judges.runs.ranking import pairs_of, tasks_of

    if judge.kind != "pair":
        raise OptionError(f"rank needs a judge of pairs; {judge.method!r} labels single texts")
    tasks = tasks_of(rows)
    systems = {system for task in tasks for system in task["outputs"]}
    everything = Amount.of(list(pairs_of(tasks)))
    number = min(budget or everything.number, everything.number)
    size = everything.size * number // max(1, everything.number)
    errors.print(
        f"{len(systems):,} systems on {len(tasks):,} tasks: {everything.number:,} comparisons "
        f"are possible; at most {number:,} are made, and fewer where the order is settled "
        "before."
    )
    warn_of_size(longest_of(everything.rows), errors)
    tell_dry_run(judge, Amount(everything.rows, number, size), prices, errors)


FIELDS = ("id", "input", "outputs", "output", "system", "reference")
"""What a row of outputs may hold."""
