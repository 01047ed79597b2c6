"""What the help of each command says beside its flags: what it takes, names, examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_judges.methods.options import GraphOptions

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


def _judges(*, pairs: bool = True, items: bool = True, combined: bool = True) -> Names:
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    kinds = {"pair": pairs, "item": items}
    chosen = {name: kind for name, kind in METHODS.items() if kinds[kind.takes]}
    chosen |= COMBINATIONS if combined else {}
    return [_named(name, kind) for name, kind in chosen.items()]


def _named(name: str, kind: type[GraphOptions]) -> tuple[str, str]:
    presets = f" Presets: {', '.join(kind.presets)}." if kind.presets else ""
    return name, f"{kind.summary}{presets}"


def _pairs() -> Names:
    return _judges(items=False, combined=False)


def _writers() -> Names:
    from langchain_judges.writing.registry import WRITERS

    return [_named(name, kind) for name, kind in WRITERS.items()]


def _checks() -> Names:
    from langchain_judges.methods.allure.checks import CHECKS

    meanings = {name: (make.__doc__ or "").partition("\n")[0] for name, make in CHECKS.items()}
    return [(n, text.removeprefix("Return the check that ")) for n, text in meanings.items()]


def _ready_rubrics() -> Names:
    from langchain_judges.methods.rubric.ready import ready_rubrics

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
    "bench": Guide(
        "Draw every method's agreement against its cost.",
        f"pairs with {_PAIRS}, and a label: {_TABLE}, or a public set.",
        (
            "bench pairs.jsonl --model openai:gpt-5-mini -o bench",
            "bench pairs.csv --model local --methods relative --limit 20",
        ),
        (("Methods, for --methods", lambda: _judges(items=False)),),
    ),
    "compare": Guide(
        "Compare methods on the same rows, at the same budget.",
        f"pairs with {_PAIRS}, and a label: {_TABLE}, or a public set.",
        (
            "compare rows.csv --model openai:gpt-5-mini --budget-calls 12",
            "compare pairs.csv --model local --methods relative,bsm",
        ),
        (("Methods, for --methods", lambda: _judges(items=False)),),
    ),
    "judge": Guide(
        "Judge every row of a file.",
        f"pairs with {_PAIRS}, or single texts with {_ITEMS}: {_TABLE}, or a public set.",
        (
            "judge pairs.jsonl --model openai:gpt-5-mini -o verdicts.jsonl",
            "judge a.csv --method rubric --set rubric=safety --model local",
        ),
        (("Methods, for --method", _judges),),
    ),
    "label": Guide(
        "Label the rows that tell most, at a terminal.",
        f"pairs with {_PAIRS}, or single texts with input and output: {_TABLE}.",
        (
            "label rows.jsonl -o labels.jsonl --budget 50",
            "label rows.jsonl --verdicts verdicts.jsonl -o labels.jsonl",
        ),
    ),
    "merge": Guide(
        "Join the parts of a sharded run, or convert results.",
        "the folder of a run with --shard, or a results file.",
        ("merge out/ -o verdicts.parquet", "merge verdicts.jsonl -o verdicts.csv"),
    ),
    "methods": Guide(
        "List the methods, or the options of one.",
        "the name of a method, or nothing.",
        ("methods", "methods bsm"),
        (("Methods", _judges),),
    ),
    "models": Guide(
        "List the ways to name a model.",
        "nothing.",
        ("models", "judge pairs.jsonl --model local --method relative"),
    ),
    "power": Guide(
        "Say how many labels tell two judges apart.",
        "nothing, or two judges' results, and the rows with labels.",
        (
            "power --lead 0.05 --disagreement 0.2",
            "power rows.jsonl --verdicts a.jsonl --verdicts b.jsonl",
        ),
    ),
    "prompts": Guide(
        "Print the prompts of a method, or a ready rubric.",
        "the name of a method or of a ready rubric.",
        ("prompts bsm", "prompts groundedness"),
        (("Methods", _judges), ("Ready rubrics", _ready_rubrics)),
    ),
    "rank": Guide(
        "Rank many systems by their outputs.",
        f"input and outputs of each task, or input, system and output: {_TABLE}.",
        (
            "rank texts.jsonl --model openai:gpt-5-mini --json ranks.json",
            "rank texts.csv --model local --budget 200 -o verdicts.jsonl",
        ),
        (("Methods, for --method", _pairs),),
    ),
    "trust": Guide(
        "Report whether a judge may be trusted.",
        f"rows as `judge` takes them, with a label, labels or human_votes: {_TABLE}.",
        (
            "trust rows.csv --model openai:gpt-5-mini --column label=best",
            "trust rows.jsonl --verdicts verdicts.jsonl -o report.html",
        ),
        (("Methods, for --method", _judges),),
    ),
    "write": Guide(
        "Write texts that use every concept of a list.",
        "JSONL with concepts (a list) and instruction.",
        (
            "write tasks.jsonl --model openai:gpt-5-mini -o texts.jsonl",
            "write tasks.jsonl --model local --preset paper --limit 1",
        ),
        (("Methods, for --method", _writers),),
    ),
}
