"""`langchain-judges prompts`: what a method asks, with the variables of each prompt."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from langchain_judges.cli.messages import error_console, refusals_as_exits


def prompts(
    name: Annotated[str, typer.Argument(help="A method, such as bsm, or a ready rubric.")],
) -> None:
    """Print the prompts of a method with their variables, or the text of a ready rubric."""
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, named
    from langchain_judges.methods.rubric.ready import ready_rubrics, ready_text

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if text := ready_text(name):
        console.print(text.rstrip())
        return
    with refusals_as_exits(error_console()):
        everything = {**(METHODS | COMBINATIONS), **ready_rubrics()}
        templates = getattr(named(everything, name, "method or rubric"), "templates", {})
    if not templates:
        console.print(f"{name} asks nothing itself: it asks by the methods of its members.")
    for step, prompt in templates.items():
        console.print(f"=== {step}: {', '.join(sorted(prompt.input_variables))}")
        for message in prompt.messages:
            console.print(message.pretty_repr())
        console.print()
