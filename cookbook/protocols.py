"""What the protocol scripts share: their options, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from langchain_judges.cli.common import MISUSED, end_stopped, error_console
from langchain_judges.cli.options import BaseUrl, Concurrency, Model
from langchain_judges.errors import JudgeError

__all__ = ["BaseUrl", "Concurrency", "Data", "Limit", "Model", "Out", "Seed"]

Data = Annotated[
    Path | None, typer.Option(help="Folder in which each public set has one of its name.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results; resumable.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Take the first of each set; default the paper's.")
]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn.")]


def in_flight(model: str, concurrency: int | None) -> int:
    """Return how many model calls may be in flight."""
    # More calls would only push each other out of a local model's prompt cache.
    return concurrency or (4 if model.partition(":")[0] == "local" else 16)


def inside(data: Path | None, *names: str) -> Path:
    """Return what a folder of public sets has under a name, or say that it is missing."""
    if data is None:
        wanted = "/".join(names)
        raise typer.BadParameter(f"name the folder that has {wanted}", param_hint="--data")
    path = data.joinpath(*names)
    if not path.exists():
        raise typer.BadParameter(f"there is no {path}", param_hint="--data")
    return path


def named(listed: str, known: Collection[str], option: str) -> list[str]:
    """Return the names in a list with commas, or say which of them is unknown."""
    found = [name.strip() for name in listed.split(",") if name.strip()]
    if unknown := [name for name in found if name not in known]:
        allowed = ", ".join(known)
        raise typer.BadParameter(
            f"{', '.join(unknown)}: not among {allowed}", param_hint=option
        )
    return found


def program(main: Callable[..., Any]) -> typer.Typer:
    """Return a command line whose errors, and its end by Ctrl-C, are one sentence."""

    @wraps(main)
    def told(**options: Any) -> None:
        try:
            main(**options)
        except (JudgeError, FileNotFoundError) as exc:
            error_console().print(str(exc), style="red", markup=False)
            raise typer.Exit(MISUSED) from exc
        except KeyboardInterrupt:
            end_stopped(error_console())

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(told)
    return app
