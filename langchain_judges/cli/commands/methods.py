"""`langchain-judges methods`: every method with its presets and options."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from langchain_judges.cli.messages import error_console, refusals_as_exits
from langchain_judges.cli.settings import NOT_ON_A_SHELL
from langchain_judges.options import Options, described
from langchain_judges.rows.printable import InertConsole

if TYPE_CHECKING:
    from langchain_judges.methods.options import JudgeOptions


def methods(
    name: Annotated[
        str | None,
        typer.Argument(help="A method, such as bsm, to list its presets and options."),
    ] = None,
) -> None:
    """List the methods; with NAME, list its presets and the options that --set takes."""
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, method_of

    if name is None:
        _print_all(METHODS | COMBINATIONS)
        return
    with refusals_as_exits(error_console()):
        _print_one(name, method_of(name))


def options_of(method: type[JudgeOptions]) -> Iterator[tuple[str, Any, str]]:
    """Yield the name, default and meaning of each option that `--set` takes."""
    defaults = method.defaults()
    for name, field in described(method):
        if name not in NOT_ON_A_SHELL:
            text = " ".join((field.description or "").split())
            yield name, defaults[name], text.replace("`", "")


def _print_all(table: Mapping[str, type[JudgeOptions]]) -> None:
    from langchain_judges.methods.registry import COMBINATIONS

    console = _console()
    for name, method in table.items():
        takes = "two texts" if method.takes == "pair" else "one text"
        takes = "several judges" if name in COMBINATIONS else takes
        console.print(f"{name} ({takes})\n    {method.summary}")
        if method.presets:
            console.print(f"    presets: {', '.join(method.presets)}")
    console.print("\nOptions of a method: langchain-judges methods NAME")


def _print_one(name: str, method: type[JudgeOptions]) -> None:
    console = _console()
    console.print(f"{name}: {method.summary}")
    if method.presets:
        console.print("\nPresets, by --preset NAME:")
    for preset, values in method.presets.items():
        settings = ", ".join(f"{key}={written(value)}" for key, value in values.items())
        console.print(f"  {preset}: {settings or 'the defaults'}")
    console.print("\nOptions, by --set NAME=VALUE with VALUE as JSON, and their defaults:")
    for option, default, text in options_of(method):
        console.print(f"  {option}={written(default)}" + (f"\n      {text}" if text else ""))


def written(value: Any) -> str:
    """Return a value in the form that `--set` takes."""
    if isinstance(value, Options):
        value = value.as_json()
    return json.dumps(value, ensure_ascii=False, default=_as_json)


def _as_json(value: Any) -> Any:
    return value.as_json() if isinstance(value, Options) else str(value)


def _console() -> Console:
    return InertConsole(highlight=False, markup=False, soft_wrap=True)
