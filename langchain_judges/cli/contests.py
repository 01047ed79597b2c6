"""What `compare` and `bench` share: who takes part, on which rows, and what a run says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console

from langchain_judges.cli.judges import kind_of
from langchain_judges.cli.messages import FAILED, table_console, tell_undone
from langchain_judges.cli.settings import check_settable, set_options
from langchain_judges.errors import OptionError, did_you_mean


def names_in(text: str) -> list[str]:
    """Return the names that an option gives, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def pair_methods() -> list[str]:
    """Return the names of all methods that judge pairs."""
    from langchain_judges.methods.registry import METHODS

    return [name for name, kind in METHODS.items() if kind.takes == "pair"]


def settings_by_method(
    command: str, names: Sequence[str], options: list[str]
) -> dict[str, dict[str, Any]]:
    """Return what `--set METHOD.NAME=VALUE` gave, by method.

    Args:
        command: The command, for messages.
        names: The methods that take part.
        options: The values of `--set`.

    Raises:
        OptionError: A method labels single texts or takes no part, or there is no such
            option.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    if single := [name for name in names if kind_of(name) == "item"]:
        raise OptionError(
            f"`{command}` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    by_method: dict[str, dict[str, Any]] = {}
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
    contestants: Sequence[Any], skipped: Mapping[str, str], rows: int, errors: Console
) -> None:
    """Print what each method asks at most, and which take no part."""
    from langchain_judges.methods.marks import is_local

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
    comparison: Mapping[str, Any], errors: Console, address: str, *, strict: bool
) -> None:
    """Print the results of every method, and exit with 1 if nothing was judged."""
    from langchain_judges.report.side_by_side import comparison_table

    table_console().print(comparison_table(comparison))
    standings = comparison["methods"]
    for method, each in standings.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes, errors, address)
    if all(each["not_judged"] == each["rows"] for each in standings.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in standings.values()):
        raise typer.Exit(FAILED)
