"""The commands by name, each loaded when it is run or its help is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from langchain_judges.cli.guide import GUIDES


class GuidedCommand(TyperCommand):
    """A command whose help ends with its guide, and whose refusals name its flags."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from langchain_judges.cli.messages import OWN_FLAGS

        flags = {str(each.name): each.opts[0] for each in self.params}
        OWN_FLAGS.set({name: own for name, own in flags.items() if own.startswith("--")})
        return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what the command takes, the names for its options, and its examples."""
        guide = GUIDES[str(self.name)]
        with formatter.section("Takes"):
            formatter.write_text(guide.takes)
        for title, names in guide.lists:
            with formatter.section(title):
                formatter.write_dl(names())
        with formatter.section("Examples"):
            for example in _lines(guide.examples):
                formatter.write(f"{' ' * formatter.current_indent}{example}\n")


def _lines(examples: tuple[str, str]) -> Iterator[str]:
    return (f"langchain-judges {example}" for example in examples)


class _Loading(Mapping[str, Any]):
    """The commands by name, each loaded when it is run or its help is read."""

    def __getitem__(self, name: str) -> Any:
        """Return a command; those that have a guide are there."""
        GUIDES[name]
        function = getattr(import_module(f"langchain_judges.cli.commands.{name}"), name)
        info = CommandInfo(name=name, cls=GuidedCommand, callback=function)
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(GUIDES)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(GUIDES)


class Commands(TyperGroup):
    """All commands."""

    def __init__(self, **settings: Any) -> None:
        """Name the commands; none is loaded."""
        super().__init__(**settings)
        self.commands = cast("Any", _Loading())

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each command is for; none is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, guide.summary) for name, guide in GUIDES.items()])
