"""`langchain-judges merge`: join the parts of a sharded run, or convert results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli.messages import error_console, refusals_as_exits


def merge(
    source: Annotated[
        Path,
        typer.Argument(help="Folder of the parts of a run with --shard, or a results file."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="What to write: .jsonl, .csv or .parquet.")
    ],
) -> None:
    """Join the parts of a sharded run into one table, or convert results.

    Nothing is written unless all parts are there, finished, and of one judge.
    """
    # Loaded here: other commands need nothing of it.
    from langchain_judges.runs.shards import merge as join

    errors = error_console()
    with refusals_as_exits(errors):
        merged = join(source, out)
    errors.print(
        f"{merged.rows:,} rows of {merged.parts} part{'s' * (merged.parts != 1)}, "
        f"{merged.judged:,} of them judged: {out}",
        markup=False,
    )
