"""Declaration of flags, and those that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from annotated_types import Ge
from typer.models import ParameterInfo

from langchain_judges.errors import OptionError
from langchain_judges.options import attributes, described, meanings
from langchain_judges.runs.options import RunOptions


def unfolded(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's groups be a flag of its own.

    A group is a parameter whose type is a dataclass. A flag is called as its field, unless
    `Annotated[…, typer.Option(…)]` says otherwise. It means what the `Attributes:` of the class
    say; an option of runs is declared there, with its lowest value. The flags stand in the help
    in the order of the parameters and fields; `field(init=False)` is none. Another parameter
    means what the `Args:` of the command say; without a default it is no flag.
    """
    hints, own_meanings = get_type_hints(command, include_extras=True), meanings(command)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind) and isinstance(kind, type):
            flags = list(_flags(kind))
            groups[parameter.name] = kind, [flag.name for flag in flags]
            parameters += flags
        else:
            usual = typer.Argument() if parameter.default is parameter.empty else typer.Option()
            form, mark = _marked(kind, usual, own_meanings.get(parameter.name, ""))
            keyword = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=Annotated[form, mark], kind=keyword))

    @functools.wraps(command, assigned=("__module__", "__name__", "__doc__"))
    def call(**values: object) -> None:
        folded = {
            name: kind(**{each: values.pop(each) for each in own})
            for name, (kind, own) in groups.items()
        }
        command(**values, **folded)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return call


def _marked(hint: Any, usual: ParameterInfo, meaning: str) -> tuple[Any, Any]:
    """A type, and a copy of its own mark or of the usual one that says what it means."""
    mark = copy(next((each for each in _marks(hint) if isinstance(each, ParameterInfo)), usual))
    mark.help = meaning.replace("`", "")
    return hint.__origin__ if hasattr(hint, "__metadata__") else hint, mark


def _flags(group: type[Any]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    own, of_runs = attributes(group), described(RunOptions)
    for field in fields(group):
        if not field.init:
            continue
        name, hint = field.name, hints[field.name]
        kind, option = _marked(hint, typer.Option(), own.get(name, of_runs.get(name, "")))
        if hint is bool and not option.param_decls:
            option.param_decls = (f"--{name.replace('_', '-')}",)  # no flag says the opposite
        if name in of_runs:
            declared = RunOptions.model_fields[name].annotation
            option.min = next((m.ge for m in _marks(declared) if isinstance(m, Ge)), None)
        yield inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[kind, option],
        )


def _marks(annotation: object) -> list[object]:
    """Annotations of a type or any part of it."""
    own = list(getattr(annotation, "__metadata__", ()))
    return own + [mark for part in get_args(annotation) for mark in _marks(part)]


Settings = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")]
ColumnFlag = Annotated[list[str] | None, typer.Option("--column", metavar="FIELD=COLUMN")]
Concurrency = Annotated[int | None, typer.Option("--concurrency")]
AtLeastOne = Annotated[int | None, typer.Option(min=1)]
Paths = Annotated[list[Path] | None, typer.Option(metavar="<path>")]
LabelFlag = Annotated[list[str] | None, typer.Option(metavar="[CRITERION=]LABELS")]
Outs = Annotated[list[Path] | None, typer.Option("--out", "-o", metavar="<path>")]


@dataclass(frozen=True)
class RowFlags:
    """The rows of a table that a command takes.

    Attributes:
        column: Read a field from another column, such as label=winner; repeatable.
        max_rows: Use at most this many rows, from the top.
    """

    column: ColumnFlag = None
    max_rows: AtLeastOne = None


class _OfRun:
    """Flags of which some are options of a run in Python, under the same names."""

    def options(self) -> dict[str, Any]:
        """Those that were set."""
        given = {name: getattr(self, name, None) for name in RunOptions.model_fields}
        return {name: value for name, value in given.items() if value not in (None, False)}


@dataclass(frozen=True)
class OutputFlags(_OfRun):
    """Output of results."""

    out: Annotated[Path | None, typer.Option("--out", "-o")] = None
    records: Path | None = None
    raw: bool = False

    @property
    def file(self) -> Path | None:
        """File of the results; None prints them."""
        return self.records or self.out


@dataclass(frozen=True)
class BudgetFlags(_OfRun):
    """Speed and limits of a command."""

    max_concurrency: Concurrency = None
    prices: Path | None = None
    max_calls: int | None = None
    max_dollars: float | None = None


@dataclass(frozen=True)
class PlanFlags(BudgetFlags):
    """Speed and cost of a command.

    Attributes:
        dry_run: Check the rows, count calls and tokens, and stop.
    """

    dry_run: bool = False


@dataclass(frozen=True)
class RunFlags(PlanFlags):
    """Flags of a run over many rows.

    Attributes:
        strict: Exit with 1 if anything failed.
    """

    strict: bool = False
    keep_requests: bool = False


@dataclass(frozen=True)
class QuestionFlags:
    """Questions, and the person who answers.

    Attributes:
        labels: Labels of single texts: digits such as 01, or words, as in rude,polite. Default:
            those that judges and people gave. With a criterion, as in tone=rude,polite or
            tone=, rows are labelled by criterion; repeatable.
        name: Your name: the answers of several people are kept apart.
    """

    labels: LabelFlag = None
    name: str = ""

    @property
    def questions(self) -> tuple[str | None, list[str]]:
        """The labels of a whole text, None where none are named, and of each criterion.

        Raises:
            OptionError: The whole has two.
        """
        labels = self.labels or []
        whole = [each for each in labels if "=" not in each]
        if len(whole) > 1:
            raise OptionError(f"--labels of a whole text is named once, got {', '.join(whole)}")
        return next(iter(whole), None), [each for each in labels if "=" in each]
