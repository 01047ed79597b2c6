"""Options that several commands take, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_MODEL = typer.Option(help="local, local:/path.gguf or a name such as openai:gpt-5-mini.")

Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
Preset = Annotated[str | None, typer.Option(help="A preset of the method.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="An option of the method: NAME=VALUE, VALUE as JSON."),
]
Memory = Annotated[Path | None, typer.Option(help="Folder of a memory of audited mistakes.")]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server.")]
Concurrency = Annotated[
    int | None, typer.Option(min=1, help="Most model calls in flight; default 16, local 4.")
]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Seconds to wait for one reply; not for local.")
]
MaxCalls = Annotated[int | None, typer.Option(help="Stop after so many replies, for now.")]
MaxTokens = Annotated[int | None, typer.Option(help="Stop after so many tokens, for now.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take the first rows only.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="A column of the table: FIELD=COLUMN, such as label=winner; again "
        "for several. Other columns keep their names.",
    ),
]
Results = Annotated[
    Path | None, typer.Option("--out", "-o", help="Results, as JSONL; resumable.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the rows, count the calls and stop.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")
]
KeepFailed = Annotated[
    bool, typer.Option("--keep-failed", help="Do not try rows again that failed before.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything failed.")]

SECONDS = 120.0
"""How long a command waits for one reply, unless told."""
