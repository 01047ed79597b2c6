"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

from typing import Annotated

import typer

from langchain_judges.cli.attack import attack
from langchain_judges.cli.audit import audit
from langchain_judges.cli.compare import compare
from langchain_judges.cli.judge import judge
from langchain_judges.cli.label import label
from langchain_judges.cli.merge import merge
from langchain_judges.cli.methods import methods
from langchain_judges.cli.models import models
from langchain_judges.cli.rank import rank
from langchain_judges.cli.trust import trust
from langchain_judges.cli.write import write

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(attack)
app.command()(audit)
app.command()(judge)
app.command()(compare)
app.command()(label)
app.command()(merge)
app.command()(methods)
app.command()(models)
app.command()(rank)
app.command()(write)
app.command()(trust)


def _version(wanted: bool) -> None:
    if wanted:
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
