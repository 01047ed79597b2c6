"""`langchain-judges prompts`: what a method asks, with the variables of each prompt."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from langchain_judges.cli.messages import MISUSED, error_console, tell_refusal
from langchain_judges.errors import OptionError


def prompts(
    name: Annotated[str, typer.Argument(help="A method, such as bsm, or a ready rubric.")],
) -> None:
    """Print the prompts of a method with their variables, or the text of a ready rubric."""
    from langchain_judges.methods.registry import method_of
    from langchain_judges.methods.rubric.ready import ready_text

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if text := ready_text(name):
        console.print(text.rstrip())
        return
    try:
        templates = getattr(method_of(name), "templates", {})
    except OptionError as exc:
        tell_refusal(exc, error_console())
        raise typer.Exit(MISUSED) from exc
    if not templates:
        console.print(f"{name} asks nothing itself: it asks by the methods of its members.")
    for step, prompt in templates.items():
        console.print(f"=== {step}: {', '.join(sorted(prompt.input_variables))}")
        for message in prompt.messages:
            console.print(message.pretty_repr())
        console.print()
