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

from langchain_judges.options import Options
from langchain_judges.runs.options import RunOptions


@dataclass(frozen=True)
class Without:
    """Notes beside a group which of its fields are no flags of this command.

    They keep their defaults.
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        """Take the names of the fields."""
        object.__setattr__(self, "names", names)


def unfolded(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's groups be a flag of its own.

    A group is a parameter whose type is a dataclass; its fields are declared as parameters of
    a command are, `base_url: Annotated[str | None, typer.Option(help=…)] = None`. The flags
    stand in the help in the order of the parameters and fields.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        kind, *marks = get_args(hint) or (hint,)
        if is_dataclass(kind) and isinstance(kind, type):
            flags = list(_flags(kind, {name for mark in marks for name in mark.names}))
            groups[parameter.name] = kind, [flag.name for flag in flags]
            parameters += flags
        else:
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hint, kind=keyword))

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: object) -> None:
        folded = {
            name: kind(**{each: values.pop(each) for each in own})
            for name, (kind, own) in groups.items()
        }
        command(**values, **folded)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return call


def _flags(group: type[Any], without: set[str]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        if field.name in without:
            without.remove(field.name)
        else:
            yield inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
    if without:
        raise TypeError(f"{group.__name__} has no {sorted(without)}")


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
MaxCalls = Annotated[int | None, flag("max_calls")]
KeepFailed = Annotated[bool, flag("keep_failed", "--keep-failed")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the rows, count calls and tokens, and stop.")
]

Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything failed.")]

SECONDS = 120.0
"""How long a command waits for one reply by default."""


@dataclass(frozen=True)
class RowFlags:
    """The rows of a table that a command takes."""

    column: Columns = None
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first rows only.")] = None


@dataclass(frozen=True)
class OutputFlags:
    """What is written and printed of each row."""

    out: Annotated[Path | None, flag("out", "--out", "-o")] = None
    records: Records = None
    shard: Annotated[str | None, flag("shard", "--shard", metavar="NUMBER/OF")] = None
    show: Annotated[
        bool, typer.Option("--show", help="Print every result; the default without a file.")
    ] = False

    @property
    def file(self) -> Path | None:
        """Where results are stored; None prints them."""
        return self.records or self.out

    @property
    def label_file(self) -> Path | None:
        """What the rows to label first stand beside; a shard sees too few to choose them."""
        from langchain_judges.runs.remote import url_of

        file = self.out or self.records
        return None if file is None or self.shard or url_of(file) else file


@dataclass(frozen=True)
class RunFlags:
    """How far a run over many rows goes, and what its end is."""

    max_concurrency: Concurrency = None
    max_calls: MaxCalls = None
    prices: Annotated[Path | None, flag("prices", "--prices")] = None
    dry_run: DryRun = False
    keep_failed: KeepFailed = False
    strict: Strict = False

    def options(self) -> dict[str, Any]:
        """Return what was set, as options of a run in Python."""
        options = {
            "max_concurrency": self.max_concurrency,
            "max_calls": self.max_calls,
            "prices": self.prices and str(self.prices),
            "keep_failed": self.keep_failed,
        }
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class DryRunFlags:
    """A dry run, of a command that reports no cost otherwise."""

    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices", help="Prices of tokens for --dry-run: a JSON file, or genai-prices."
        ),
    ] = None
    dry_run: DryRun = False
