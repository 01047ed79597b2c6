"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from langchain_judges.errors import did_you_mean
from langchain_judges.lazy import packaged

# What each command is for, in a few words; none is loaded to say so.
COMMANDS: Mapping[str, str] = packaged(__package__, "words.yaml")["commands"]


class Command(TyperCommand):
    """A command whose help ends with examples, and whose refusals name its flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; a flag of another name, or one whose value is there, is refused.

        The first is told the name that it has here.
        """
        params = [each for each in self.get_params(ctx) if each.param_type_name == "option"]
        flags: dict[str, Any] = {each: param for param in params for each in param.opts}
        words, given = takewhile(lambda word: word != "--", args), list[Any]()
        for word in words:
            flag, has_value, _ = word.partition("=")
            if flag.startswith("--") and flag not in flags:
                ctx.fail(f"There is no flag {flag}; {_flag_for(flag, flags)}".rstrip("; "))
            if flag in flags and not flags[flag].is_flag:
                if flags[flag] in given and not flags[flag].multiple:
                    ctx.fail(f"{flag} is there twice, and takes one value.")
                given.append(flags[flag])
                if not has_value:
                    next(words, None)  # its value, whatever it begins with
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from langchain_judges.cli.messages import refusals_as_exits

        with refusals_as_exits(ctx):
            return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for example in str(self.epilog).split("\n"):
                formatter.write(f"  {example.strip()}\n")


def _flag_for(flag: str, flags: Collection[str]) -> str:
    """The name of a flag here; an option of a judge is set by `--set`."""
    from langchain_judges.methods.registry import METHODS

    bare = flag.removeprefix("--")
    name = bare.replace("-", "_")
    if "--set" in flags and any(name in kind.defaults() for kind in METHODS.values()):
        return f"{name} is an option of the judge: --set {name}=VALUE."
    return did_you_mean(bare, (), {each.removeprefix("--"): each for each in flags}).strip()


class Commands(TyperGroup):
    """All commands, each loaded when it is run or its help is read."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """A command; another name is refused."""
        if name not in COMMANDS:
            hint = did_you_mean(name, COMMANDS, {"rank": "compare", "evaluate": "judge"})
            ctx.fail(f"There is no command {name!r}; {hint}there are {', '.join(COMMANDS)}.")
        from langchain_judges.options import about

        command = getattr(import_module(f"langchain_judges.cli.{name}"), name)
        text, _, examples = about(command).partition("\n\nExamples:\n")
        info = CommandInfo(name=name, cls=Command, callback=command, help=text, epilog=examples)
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command is for."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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
    """Judge and write text with language models, using published methods."""


def run() -> None:
    """Run a command."""
    from langchain_judges.asking.traces import bound_exit

    bound_exit()
    app()
