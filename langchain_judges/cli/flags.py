"""How a flag is declared, and the flags that several commands or groups take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from annotated_types import Ge

from langchain_judges.options import Options
from langchain_judges.runs.options import RunOptions


def flag(
    name: str, *flags: str, of: type[Options] = RunOptions, metavar: str | None = None
) -> Any:
    """Return the flag of an option declared elsewhere: its meaning and its lowest value.

    Args:
        name: The option.
        *flags: How it is called on a shell, if not by its own name.
        of: The class that declares it.
        metavar: What its value is called in the help.
    """
    field = of.model_fields[name]
    low = next((mark.ge for mark in _marks(field.annotation) if isinstance(mark, Ge)), None)
    text = " ".join((field.description or "").split()).replace("`", "")
    return typer.Option(*flags, min=low, help=text, metavar=metavar)  # type: ignore[arg-type]


def _marks(annotation: object) -> list[object]:
    """Return what is noted beside a type or any part of it."""
    own = list(getattr(annotation, "__metadata__", ()))
    return own + [mark for part in get_args(annotation) for mark in _marks(part)]


_MODEL = typer.Option(
    help="local, local:/path.gguf or a name such as openai:gpt-5-mini; for a jury several, "
    "separated by commas."
)

Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server.")]
Timeout = Annotated[
    float, typer.Option(min=0.1, help="Seconds to wait for one reply; not for local.")
]
Method = Annotated[
    str, typer.Option(help="The judging method; langchain-judges methods lists them.")
]
Preset = Annotated[
    str | None,
    typer.Option(help="A preset of the method; langchain-judges methods METHOD lists them."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of the method: NAME=VALUE, with VALUE as JSON, such as "
        'criteria=\'["Accuracy", "Tone"]\'. langchain-judges methods METHOD lists them.',
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=COLUMN",
        help="A column of the table: FIELD=COLUMN, such as label=winner; repeat it "
        "for several. Other columns keep their names.",
    ),
]
Results = Annotated[Path | None, flag("out", "--out", "-o")]
Concurrency = Annotated[int | None, flag("max_concurrency", "--concurrency")]
MaxCalls = Annotated[int | None, flag("max_calls")]
KeepFailed = Annotated[bool, flag("keep_failed", "--keep-failed")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the rows, count calls and tokens, and stop.")
]

Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything failed.")]

SECONDS = 120.0
"""How long a command waits for one reply by default."""
