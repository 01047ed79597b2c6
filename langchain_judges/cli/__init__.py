"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from langchain_judges.cli.guide import Commands

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its frames leave too little room, and flags seem to take a value
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        typer.echo(version("langchain-judges"))
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Judge and write text with language models by published methods."""


_TRACING = {"LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"}


def run() -> None:
    """Run a command; LangSmith gets ten seconds to take its traces."""
    # Read by LangSmith's client: its threads would keep the process alive for minutes.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    try:
        app()
    except SystemExit as end:
        _end_traces(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def _end_traces(code: int) -> None:
    if not _TRACING & set(os.environ):
        return
    from langchain_judges.integrations.langsmith_runs import TRACES_WAIT, end_traces

    if not end_traces():
        typer.echo(
            f"LangSmith did not take all traces within {TRACES_WAIT:.0f} seconds; the rest is "
            "lost. The results are not.",
            err=True,
        )
        sys.stdout.flush()
        os._exit(code)
