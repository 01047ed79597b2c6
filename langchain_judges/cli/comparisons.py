"""What `compare` and `bench` share: who takes part, on which rows, and what a run says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.estimates import warn_of_size
from langchain_judges.cli.flag_groups import RowFlags
from langchain_judges.cli.messages import FAILED, table_console, tell_undone
from langchain_judges.cli.row_files import (
    CheckedRows,
    check_labelled_pair,
    checked_rows,
    rows_of,
)
from langchain_judges.cli.settings import check_settable, set_options, settings_as_flags
from langchain_judges.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from langchain_judges.runs.studies.comparison import Comparison
    from langchain_judges.runs.studies.line_up import Contestant

PairRows = Annotated[
    Path,
    typer.Argument(
        help="JSONL, CSV, TSV or Parquet file with input, output_a, output_b; or a public "
        "data set, by its name or folder."
    ),
]


@dataclass(frozen=True)
class LineUpFlags:
    """The methods that take part, and with which settings."""

    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs."
        ),
    ] = None
    budget_calls: Annotated[
        int, typer.Option(min=1, help="Most calls that a method may make for a pair.")
    ] = 16
    shots: Annotated[
        int, typer.Option(min=0, help="Worked examples for every method that shows some.")
    ] = 0
    aspects: Annotated[
        str | None, typer.Option(help="Aspects to compare by, separated by commas.")
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="An option of one method: METHOD.NAME=VALUE, VALUE as JSON."
        ),
    ] = None

    def names(self, default: list[str]) -> list[str]:
        """Return the names of the methods."""
        return _names_in(self.methods) if self.methods else default

    def settings(self, command: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the settings of the methods, as `line_up` takes them.

        Raises:
            OptionError: A method labels single texts, or `--set` names none that takes part
                or no option of it.
        """
        return {
            "shots": self.shots,
            "aspects": _names_in(self.aspects) if self.aspects else None,
            "options": settings_by_method(command, names, self.option or []),
        }

    def refusals(self) -> AbstractContextManager[None]:
        """Let a refusal name the options as `--set` does."""
        return settings_as_flags(set_options(self.option or []))


def _names_in(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def labelled_pairs(path: Path, flags: RowFlags, errors: Console) -> CheckedRows:
    """Return the pairs of a table or set; stop where there are bad ones."""
    pairs = checked_rows(rows_of(path, check_labelled_pair, flags), flags.skip_bad, errors)
    warn_of_size(pairs.file.longest, errors)
    return pairs


def pair_methods() -> list[str]:
    """Return the names of all methods that judge pairs."""
    from langchain_judges.methods.registry import METHODS

    return [name for name, kind in METHODS.items() if kind.takes == "pair"]


def settings_by_method(
    command: str, names: Sequence[str], options: list[str]
) -> dict[str, dict[str, object]]:
    """Return what `--set METHOD.NAME=VALUE` gave, by method.

    Args:
        command: The command, for messages.
        names: The methods that take part.
        options: The values of `--set`.

    Raises:
        OptionError: A method labels single texts or takes no part, or there is no such
            option.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, kind_of_rows

    if single := [name for name in names if kind_of_rows(name, {}) == "item"]:
        raise OptionError(
            f"`{command}` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    by_method: dict[str, dict[str, object]] = {}
    for name, value in set_options(options).items():
        method, dot, option = name.partition(".")
        if not dot:
            raise OptionError(f"--set takes METHOD.NAME=VALUE here, got {name!r}")
        by_method.setdefault(method, {})[option] = value
    for method, own in by_method.items():
        if method not in names:
            nearest = did_you_mean(method, names)
            raise OptionError(
                f"--set {method}.… names no method that takes part; {nearest}there are "
                f"{', '.join(names)}"
            )
        check_settable(METHODS | COMBINATIONS, method, own)
    return by_method


def announce(
    contestants: Sequence[Contestant], skipped: Mapping[str, str], rows: int, errors: Console
) -> None:
    """Print what each method asks at most, and which take no part."""
    from langchain_judges.methods.describe import is_local

    for contestant in contestants:
        each = contestant["calls"]
        errors.print(
            f"{contestant['name']}: at most {rows * each:,} calls ({each} for each pair), "
            "excluding retries."
        )
    for method, why in skipped.items():
        errors.print(f"{method} takes no part: {why}.", style="yellow", markup=False)
    if any(is_local(contestant["judge"]) for contestant in contestants):
        errors.print(
            "A small local model shows how the methods work; its verdicts are poor.",
            style="yellow",
        )


def print_comparison(
    comparison: Comparison, errors: Console, address: str, *, strict: bool
) -> None:
    """Print the results of every method, and exit with 1 if nothing was judged."""
    from langchain_judges.report.methods import comparison_table

    table_console().print(comparison_table(comparison))
    standings = comparison["methods"]
    for method, each in standings.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes, errors, address)
    if all(each["not_judged"] == each["rows"] for each in standings.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in standings.values()):
        raise typer.Exit(FAILED)
