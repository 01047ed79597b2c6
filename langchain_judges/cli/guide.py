"""What the help of each command says beside its flags: what it takes, names, examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

if TYPE_CHECKING:
    from langchain_judges.methods.declaration import GraphOptions

Names = list[tuple[str, str]]
"""Names that an option takes, and what each means."""


@dataclass(frozen=True)
class Guide:
    """What stands below the options of a command."""

    summary: str
    """For the list of all commands, in a few words."""
    takes: str
    examples: tuple[str, str]
    """Without the name of the program."""
    lists: tuple[tuple[str, Callable[[], Names]], ...] = ()
    """Titles, and what gives the names, which may load the methods."""


def _judges(*, items: bool = True) -> Names:
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    chosen = {name: kind for name, kind in METHODS.items() if items or kind.takes == "pair"}
    return [_named(name, kind) for name, kind in {**chosen, **COMBINATIONS}.items()]


def _named(name: str, kind: type[GraphOptions]) -> tuple[str, str]:
    presets = f" Presets: {', '.join(kind.presets)}." if kind.presets else ""
    return name, f"{kind.summary}{presets}"


def _pairs() -> Names:
    return _judges(items=False)


def _writers() -> Names:
    from langchain_judges.writing.registry import WRITERS

    return [_named(name, kind) for name, kind in WRITERS.items()]


def _checks() -> Names:
    from langchain_judges.methods.allure.checks import CHECKS

    meanings = {name: (make.__doc__ or "").partition("\n")[0] for name, make in CHECKS.items()}
    return [(n, text.removeprefix("Return the check that ")) for n, text in meanings.items()]


def _ready_rubrics() -> Names:
    from langchain_judges.methods.rubric.criteria import ready_rubrics

    described = {
        name: rubric.criteria[0].description for name, rubric in ready_rubrics().items()
    }
    return [(name, re.split(r"(?<=[.?]) ", text)[0]) for name, text in described.items()]


_TABLE = "JSONL, CSV, TSV or Parquet"
_PAIRS = "input, output_a and output_b"
_ITEMS = "input and output (with source or expected where the rubric needs it)"

GUIDES: dict[str, Guide] = {
    "audit": Guide(
        "Find a judge's mistakes, have them checked, remember them.",
        "JSONL with input, output and expected, or a label by people.",
        (
            "audit items.jsonl --model openai:gpt-5-mini --memory memory",
            "audit items.jsonl --model local --memory memory --check exact",
        ),
        (("Checks, for --check", _checks),),
    ),
    "compare": Guide(
        "Say which system is better, or which method pays.",
        f"input and outputs of systems: {_TABLE}; or pairs with {_PAIRS} and a label.",
        (
            "compare v1.jsonl v2.jsonl --model openai:gpt-5-mini -o pr.md",
            "compare pairs.csv --model local --method relative,bsm",
        ),
        (("Methods, for --method", _pairs),),
    ),
    "judge": Guide(
        "Judge every row of a file.",
        f"pairs with {_PAIRS}, or single texts with {_ITEMS}: {_TABLE}, or a public set.",
        (
            "judge pairs.csv --model openai:gpt-5-mini -o verdicts.csv",
            "judge a.csv --method rubric --set rubric=safety --model local",
        ),
        (("Methods, for --method", _judges),),
    ),
    "label": Guide(
        "Label the rows that tell most, at a terminal.",
        f"pairs with {_PAIRS}, or single texts with input and output: {_TABLE}.",
        (
            "label rows.jsonl -o labels.jsonl --budget 50",
            "label rows.csv --verdicts verdicts.csv -o labels.jsonl",
        ),
    ),
    "merge": Guide(
        "Join the parts of a sharded run, or convert results.",
        "the folder of a run with --shard, or the records of a run.",
        ("merge out/ -o verdicts.parquet", "merge run.jsonl -o verdicts.csv"),
    ),
    "rank": Guide(
        "Rank many systems by their outputs.",
        f"input and outputs of each task, or input, system and output: {_TABLE}.",
        (
            "rank texts.jsonl --model openai:gpt-5-mini -o ranks.md",
            "rank texts.csv --model local --budget 200 --records v.jsonl",
        ),
        (("Methods, for --method", _pairs),),
    ),
    "show": Guide(
        "Show methods with options and prompts, rubrics, models.",
        "the name of a method or of a ready rubric, models, or nothing.",
        ("show bsm", "show bsm --prompts"),
        (("Methods", _judges), ("Ready rubrics", _ready_rubrics)),
    ),
    "trust": Guide(
        "Report whether a judge may be trusted.",
        f"rows as judge takes them, with a label, labels or human_votes: {_TABLE}.",
        (
            "trust rows.csv --model openai:gpt-5-mini --column label=best",
            "trust rows.csv --verdicts verdicts.csv -o report.html",
        ),
        (("Methods, for --method", _judges),),
    ),
    "watch": Guide(
        "Judge the latest runs of a LangSmith project.",
        "a LangSmith project; the key is in LANGSMITH_API_KEY.",
        (
            "watch --project app --preset helpfulness --model local",
            "watch --project app --sample 0.05 --every 10m --spec j.json",
        ),
        (("Ready rubrics, for --set rubric=", _ready_rubrics),),
    ),
    "write": Guide(
        "Write texts that use every concept of a list.",
        "JSONL with concepts (a list) and instruction.",
        (
            "write tasks.jsonl --model openai:gpt-5-mini -o texts.csv",
            "write tasks.jsonl --model local --preset paper --limit 1",
        ),
        (("Methods, for --method", _writers),),
    ),
}


class GuidedCommand(TyperCommand):
    """A command whose help ends with its guide, and whose refusals name its flags."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        from langchain_judges.busy import listen
        from langchain_judges.cli.messages import OWN_FLAGS, error_console

        flags = {str(each.name): each.opts[0] for each in self.params}
        OWN_FLAGS.set({name: own for name, own in flags.items() if own.startswith("--")})
        listen(lambda text: error_console().print(text, style="dim", markup=False))
        try:
            return super().invoke(ctx)
        finally:
            listen(None)

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
        function = getattr(import_module(f"langchain_judges.cli.{name}"), name)
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
