"""`langchain-judges show`: methods with their options and prompts, and rubrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from langchain_judges import errors, escaping, options
from langchain_judges.cli import flags, judge_flags

if TYPE_CHECKING:
    from langchain_core.prompts import ChatPromptTemplate

    from langchain_judges.methods.declaration import JudgeOptions


@flags.unfolded
def show(
    name: Annotated[str | None, typer.Argument()] = None,
    part: Annotated[Literal["prompts"] | None, typer.Argument()] = None,
) -> None:
    """Show the methods, the presets and options of one, its prompts, or a rubric.

    Args:
        name: A method or a ready rubric; without it all methods.
        part: Print the prompts of the method.

    Examples:
        langchain-judges show bsm
        langchain-judges show bsm prompts
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, named
    from langchain_judges.methods.rubric.criteria import ready_names, ready_text

    console = escaping.InertConsole(soft_wrap=True)
    everything: dict[str, Any] = {**METHODS, **COMBINATIONS, **dict.fromkeys(ready_names())}
    if name is None:
        _print_methods(console)
    elif name in ready_names():
        # A rubric is a file to copy: it is printed as it is.
        console.print(ready_text(name).rstrip())
    else:
        method = named(everything, name, "method or rubric")
        if part and name in COMBINATIONS:
            raise errors.OptionError(f"{name} has no prompts of its own: its judges have them")
        if part:
            _print_prompts(console, method.templates)
        else:
            _print_method(console, name, method)


def _print_methods(console: escaping.InertConsole) -> None:
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    for name, method in (METHODS | COMBINATIONS).items():
        takes = "two texts" if method.takes == "pair" else "one text"
        takes = "several judges" if name in COMBINATIONS else takes
        console.print(f"{name} ({takes})\n    {method.summary}")
        if method.presets:
            console.print(f"    presets: {', '.join(method.presets)}")
    console.print(
        "\nOptions of a method: langchain-judges show NAME; its prompts: show NAME prompts"
    )


def _print_method(console: escaping.InertConsole, name: str, method: type[JudgeOptions]) -> None:
    console.print(f"{name}: {method.summary}")
    if method.presets:
        console.print("\nPresets, by --preset NAME:")
    for preset, values in method.presets.items():
        settings = ", ".join(f"{key}={option_text(value)}" for key, value in values.items())
        console.print(f"  {preset}: {settings or 'the defaults'}")
    console.print("\nOptions, by --set NAME=VALUE with VALUE as JSON, and their defaults:")
    for option, meaning in options.described(method).items():
        if option not in judge_flags.NOT_ON_A_SHELL:
            text = f"\n      {meaning}".replace("`", "") if meaning else ""
            console.print(f"  {option}={option_text(method.defaults()[option])}{text}")


def _print_prompts(
    console: escaping.InertConsole, templates: Mapping[str, ChatPromptTemplate]
) -> None:
    for step, prompt in templates.items():
        console.print(f"=== {step}: {', '.join(sorted(prompt.input_variables))}")
        for message in prompt.messages:
            console.print(message.pretty_repr())
        console.print()


def option_text(value: Any) -> str:
    """A value in the form that `--set` takes."""
    return json.dumps(value, ensure_ascii=False, default=_as_json)


def _as_json(value: Any) -> Any:
    return value.as_json() if isinstance(value, options.Options) else str(value)
