"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from langchain_judges.cli.attack import attack
from langchain_judges.cli.audit import audit
from langchain_judges.cli.bench import bench
from langchain_judges.cli.calibrate import calibrate
from langchain_judges.cli.compare import compare
from langchain_judges.cli.guide import GuidedCommand
from langchain_judges.cli.judge import judge
from langchain_judges.cli.label import label
from langchain_judges.cli.merge import merge
from langchain_judges.cli.methods import methods
from langchain_judges.cli.models import models
from langchain_judges.cli.power import power
from langchain_judges.cli.prompts import prompts
from langchain_judges.cli.rank import rank
from langchain_judges.cli.trust import trust
from langchain_judges.cli.write import write

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its frames leave too little room, and flags seem to take a value
)
for command in (
    attack,
    audit,
    bench,
    calibrate,
    compare,
    judge,
    label,
    merge,
    methods,
    models,
    power,
    prompts,
    rank,
    trust,
    write,
):
    app.command(cls=GuidedCommand)(command)


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
    if not {"LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"} & set(
        os.environ
    ):
        return
    from langchain_judges.integrations.tracing import TRACES_WAIT, end_traces

    if not end_traces():
        typer.echo(
            f"LangSmith did not take all traces within {TRACES_WAIT:.0f} seconds; the rest is "
            "lost. The results are not.",
            err=True,
        )
        sys.stdout.flush()
        os._exit(code)
