"""How a flag is declared, and the flags that several commands or groups take."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from annotated_types import Ge

from langchain_judges.options import described
from langchain_judges.runs.options import RunOptions


def unfolded(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's groups be a flag of its own.

    A group is a parameter whose type is a dataclass; its fields are declared as parameters of
    a command are, `base_url: Annotated[str | None, typer.Option(help=…)] = None`. The flags
    stand in the help in the order of the parameters and fields; `field(init=False)` is none.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind) and isinstance(kind, type):
            flags = list(_flags(kind))
            groups[parameter.name] = kind, [flag.name for flag in flags]
            parameters += flags
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=kind, kind=keyword))

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: object) -> None:
        folded = {
            name: kind(**{each: values.pop(each) for each in own})
            for name, (kind, own) in groups.items()
        }
        command(**values, **folded)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return call


def _flags(group: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if field.init:
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )


def flag(name: str, *flags: str, metavar: str | None = None) -> Any:
    """Return the flag of an option of runs: its meaning and its lowest value.

    Args:
        name: The option.
        *flags: How it is called on a shell, if not by its own name.
        metavar: What its value is called in the help.
    """
    field = RunOptions.model_fields[name]
    low = next((mark.ge for mark in _marks(field.annotation) if isinstance(mark, Ge)), None)
    text = described(RunOptions)[name].replace("`", "")
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
    str, typer.Option(help="The judging method; langchain-judges show lists them.")
]
Preset = Annotated[
    str | None,
    typer.Option(help="A preset of the method; langchain-judges show METHOD lists them."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of the method: NAME=VALUE, with VALUE as JSON, such as "
        'criteria=\'["Accuracy", "Tone"]\'. langchain-judges show METHOD lists them.',
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
Records = Annotated[Path | None, flag("records")]
Concurrency = Annotated[int | None, flag("max_concurrency", "--concurrency")]
MaxCalls = Annotated[int | None, flag("max_calls", "--max-calls")]
Prices = Annotated[Path | None, flag("prices", "--prices")]

SECONDS = 120.0
"""How long a command waits for one reply by default."""


@dataclass(frozen=True)
class RowFlags:
    """The rows of a table that a command takes."""

    column: Columns = None
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first rows only.")] = None


class _OfRun:
    """Flags of which some are options of a run in Python, under the same names."""

    def options(self) -> dict[str, Any]:
        """Return those that were set."""
        given = {name: getattr(self, name, None) for name in RunOptions.model_fields}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class OutputFlags(_OfRun):
    """Where results are written."""

    out: Annotated[Path | None, flag("out", "--out", "-o")] = None
    records: Records = None

    @property
    def file(self) -> Path | None:
        """Where results are stored; None prints them."""
        return self.records or self.out


@dataclass(frozen=True)
class PlanFlags(_OfRun):
    """How fast a command asks, and what that costs."""

    max_concurrency: Concurrency = None
    prices: Prices = None
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the rows, count calls and tokens, and stop."),
    ] = False


@dataclass(frozen=True)
class RunFlags(PlanFlags):
    """How a run over many rows goes, and what its end is."""

    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if anything failed.")
    ] = False


@dataclass(frozen=True)
class BoundedRunFlags(RunFlags):
    """The same, and how far it goes."""

    max_calls: MaxCalls = None
