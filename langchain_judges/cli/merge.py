"""`langchain-judges merge`: join the parts of a sharded run, or convert results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli import flags, messages
from langchain_judges.runs.shards import merge_shards


@flags.unfolded
def merge(source: Path, out: Annotated[Path, typer.Option("--out", "-o")]) -> None:
    """Join the parts of a sharded run into one table, or convert results.

    Nothing is written unless all parts are there, are finished and come from one judge.

    Args:
        source: Folder of the parts of a run with --shard, or a results file.
        out: What to write: .jsonl, .csv, .tsv or .parquet.

    Examples:
        langchain-judges merge out/ -o verdicts.parquet
        langchain-judges merge run.jsonl -o verdicts.csv
    """
    # Loaded here: other commands need nothing of it.
    merged = merge_shards(source, out)
    parts = f"{merged.parts} part{'s' * (merged.parts != 1)}"
    messages.say(f"{merged.rows:,} rows of {parts}, {merged.judged:,} of them judged: {out}")
