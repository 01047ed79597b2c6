"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

COMMANDS = {
    "audit": (
        "Find a judge's mistakes, have them checked, remember them.",
        "audit items.jsonl --model openai:gpt-5-mini --memory memory",
        "audit items.jsonl --model local --memory memory --check exact",
    ),
    "compare": (
        "Say which system is better, or which method pays.",
        "compare v1.jsonl v2.jsonl --model openai:gpt-5-mini -o pr.md",
        "compare pairs.csv --model local --method relative,bsm",
    ),
    "judge": (
        "Judge every row of a file.",
        "judge pairs.csv --model openai:gpt-5-mini -o verdicts.csv",
        "judge a.csv --method rubric --set rubric=safety --model local",
    ),
    "label": (
        "Label the rows that tell most, at a terminal.",
        "label rows.jsonl -o labels.jsonl --budget 50",
        "label rows.csv --verdicts verdicts.csv -o labels.jsonl",
    ),
    "merge": (
        "Join the parts of a sharded run, or convert results.",
        "merge out/ -o verdicts.parquet",
        "merge run.jsonl -o verdicts.csv",
    ),
    "rank": (
        "Rank many systems by their outputs.",
        "rank texts.csv --systems v1,v2,v3 --model local -o ranks.md",
        "rank v1.jsonl v2.jsonl v3.jsonl --model local --budget 200",
    ),
    "show": (
        "Show methods with options and prompts, rubrics, models.",
        "show bsm",
        "show bsm --prompts",
    ),
    "trust": (
        "Report whether a judge may be trusted.",
        "trust rows.csv --model openai:gpt-5-mini --column label=best",
        "trust rows.csv --verdicts verdicts.csv -o report.html",
    ),
    "watch": (
        "Judge the latest runs of a LangSmith project.",
        "watch --project app --preset helpfulness --model local",
        "watch --project app --sample 0.05 --every 10m --spec j.json",
    ),
    "write": (
        "Write texts that use every concept of a list.",
        "write tasks.jsonl --model openai:gpt-5-mini -o texts.csv",
        "write tasks.jsonl --model local --preset paper --limit 1",
    ),
}
"""What each command is for, in a few words, and two examples."""


class Command(TyperCommand):
    """A command whose help ends with examples, and whose refusals name its flags."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from langchain_judges.cli.messages import CONTEXT

        CONTEXT.set(ctx)
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for example in COMMANDS[str(self.name)][1:]:
                formatter.write(f"  langchain-judges {example}\n")


class Commands(TyperGroup):
    """All commands, each loaded when it is run or its help is read."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return a command, None if there is no such."""
        if name not in COMMANDS:
            return None
        function = getattr(import_module(f"langchain_judges.cli.{name}"), name)
        info = CommandInfo(name=name, cls=Command, callback=function)
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command is for; none is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (summary, *_) in COMMANDS.items()])


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


def _plug_in(modules: list[str]) -> None:
    """Import modules that register methods; a file's own folder and this one are searched."""
    for name in modules:
        path = Path(name)
        is_file = path.suffix == ".py"
        sys.path.insert(0, str(path.resolve().parent if is_file else Path.cwd()))
        try:
            import_module(path.stem if is_file else name)
        except ImportError as exc:
            raise typer.BadParameter(f"{name!r} cannot be imported: {exc}") from exc


@app.callback()
def main(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module, or a file of Python, that registers methods of your own.",
            metavar="MODULE",
            callback=lambda modules: _plug_in(modules or []),
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
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
