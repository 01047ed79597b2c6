"""`langchain-judges compare`: several methods on the same rows and the same budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli.comparisons import (
    LineUpFlags,
    PairRows,
    announce,
    labelled_pairs,
    pair_methods,
    print_comparison,
)
from langchain_judges.cli.flag_groups import ModelFlags, RowFlags, RunFlags
from langchain_judges.cli.messages import ctrl_c_as_exit, error_console, refusals_as_exits
from langchain_judges.cli.unfolding import Without, unfolded


@unfolded
def compare(
    pairs: PairRows,
    model: ModelFlags,
    contest: LineUpFlags,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Directory for results and comparison.json; resumable."
        ),
    ] = None,
    rows: RowFlags,
    run: Annotated[RunFlags, Without("max_calls", "max_tokens")],
) -> None:
    """Compare methods on the same rows; the same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.runs.studies.comparison import compare as compare_methods
    from langchain_judges.runs.studies.comparison import save
    from langchain_judges.runs.studies.line_up import line_up

    errors, budget = error_console(), contest.budget_calls
    with refusals_as_exits(errors, model.address), ctrl_c_as_exit(errors, saved=bool(out)):
        names = contest.names(pair_methods())
        settings = contest.settings("compare", names)
        good = labelled_pairs(pairs, rows, errors)
        chat = model.chat(dry_run=run.dry_run)
        with contest.refusals():
            contestants, skipped = line_up(names, chat, budget=budget, **settings)
        announce(contestants, skipped, good.number, errors)
        if run.dry_run:
            return
        comparison = compare_methods(
            contestants, good, budget=budget, skipped=skipped, out=out, **run.options()
        )
        if out is not None:
            save(comparison, out / "comparison.json")
    print_comparison(comparison, errors, model.address, strict=run.strict)
