"""The first minute: judge sample pairs and texts, learn from a correction, write a report.

    python cookbook/demo.py                    # recorded replies; also `make demo`
    python cookbook/demo.py --method drpe      # one method on its own samples
    python cookbook/demo.py --model local      # the same, asked now
    python cookbook/demo.py --record openai:gpt-5-mini

The replies in `recorded/demo.jsonl` are found by the whole request, so everything below the
model is the real thing: prompts, graphs, reading of replies, run files, report. A request that
was not recorded is refused.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from rich.console import Console
from rich.table import Table

from langchain_judges import (
    FailureMemory,
    create_allure_judge,
    create_bsm_judge,
    create_drpe_judge,
    create_relative_judge,
    create_rubric_judge,
    create_sc2_judge,
    judge_many,
    resolve_model,
)
from langchain_judges.errors import JudgeError
from langchain_judges.methods.rubric import Criterion
from langchain_judges.report.terminal import text_panel, verdict_panel
from langchain_judges.testing import NotRecorded, ReplayChatModel

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "demo.jsonl"
OUT = HERE.parent / "build" / "demo"
HOUSE_RULE = "We never promise a day or an hour: we cannot keep it if the carrier is late."
MAY_BE_SENT = (
    "May this reply be sent to the customer? It may if it is polite and answers what was asked."
)
REPLY_RUBRIC = [
    Criterion(name="Remedy", description="Does the reply say what the shop will do?", weight=2),
    Criterion(
        name="Tone",
        labels={"rude": "it blames", "neutral": "neither", "kind": "it regrets"},
        best="kind",
    ),
]


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file of samples."""
    lines = (HERE / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table_of(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table for a terminal."""
    table = Table(*columns, title=title, title_justify="left", title_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    return table


def compare(model: BaseChatModel, console: Console) -> None:
    """Judge twelve labelled pairs in both orders, and say how far the judge can be trusted."""
    # Loaded here: statistics take a second, and the other parts need none.
    from langchain_judges.report import trust

    pairs = rows_of("pairs")
    judge = create_relative_judge(model)
    rows = list(judge_many(judge, pairs, records=OUT / "pairs.jsonl", progress=False))
    results = {row["id"]: row["verdict"] for row in rows}
    cells = [
        (
            pair["id"],
            pair["label"],
            results[pair["id"]]["preference"] or "not judged",
            "yes" if results[pair["id"]]["flipped"] else "no",
        )
        for pair in pairs
    ]
    title = "Twelve pairs by one prompt, in both orders (`relative`)"
    console.print(table_of(title, ("pair", "people", "judge", "flipped"), cells))
    report = trust(rows, pairs)
    page = OUT / "report.html"
    report.to_html(page)
    console.print(report.sentence)
    console.print(f"The report: {page}\n")


def branch(model: BaseChatModel, console: Console) -> None:
    """Show what Branch-Solve-Merge decides by."""
    judge = create_bsm_judge(model, max_criteria=3)
    for pair in rows_of("pairs")[:1]:
        console.print("[bold]One of them by planned criteria (`bsm`)[/bold]")
        console.print(f"[dim]{pair['input']}[/dim]")
        console.print(verdict_panel({**pair, **judge.invoke(pair)}))


def score(model: BaseChatModel, console: Console) -> None:
    """Label three replies to one complaint by two criteria."""
    judge = create_rubric_judge(model, rubric=REPLY_RUBRIC)
    cells = []
    for item in rows_of("replies"):
        result = judge.invoke(item)
        labels = [part["label"] for part in result["subscores"]]
        cells.append((item["id"], *labels, f"{result['verdict']['score'] or 0:.2f}"))
    columns = ("reply", *(each.name for each in REPLY_RUBRIC), "total")
    console.print(table_of("Three replies by two criteria (`rubric`)", columns, cells))


def learn(model: BaseChatModel, console: Console) -> None:
    """Judge two replies before and after two corrections are remembered."""
    items = rows_of("support")
    memory = FailureMemory()
    judge = create_allure_judge(model, rubric=MAY_BE_SENT, memory=memory, recall="all")
    before = [judge.invoke(item)["verdict"]["label"] for item in items[4:]]
    corrections = [item for item in items[:4] if item["label"] == 0]
    memory.remember(
        {**item, "wrong": 1, "corrected": 0, "note": HOUSE_RULE} for item in corrections
    )
    after = [judge.invoke(item)["verdict"]["label"] for item in items[4:]]
    cells = [
        (item["output"], item["label"], one, other)
        for item, one, other in zip(items[4:], before, after, strict=True)
    ]
    title = "May it be sent? Before and after two corrections (`allure`)"
    console.print(table_of(title, ("reply", "people", "before", "after"), cells))
    console.print(f"[dim]What people wrote: {HOUSE_RULE}[/dim]\n")


def roles(model: BaseChatModel, console: Console) -> None:
    """Let static and generated role-players vote on two summaries."""
    judge = create_drpe_judge(model)
    for pair in rows_of("summaries")[:1]:
        console.print(verdict_panel({**pair, **judge.invoke(pair)}))


def tables(model: BaseChatModel, console: Console) -> None:
    """Set two texts side by side in two tables, and prefer by the more consistent one."""
    judge = create_sc2_judge(model, samples=2, aspects=["Correctness", "Clarity"])
    for pair in rows_of("pairs")[:1]:
        console.print(verdict_panel({**pair, **judge.invoke(pair)}))


def draft(model: BaseChatModel, console: Console) -> None:
    """Write a text that uses every given concept."""
    from langchain_judges.writing.writers import load_writer

    writer = load_writer("single_prompt", model, preset="best_coverage", samples=3)
    for task in rows_of("demo_writing")[:1]:
        console.print(text_panel({**task, **writer.invoke(task)}))


PARTS: dict[str, Callable[[BaseChatModel, Console], None]] = {
    "relative": compare,
    "bsm": branch,
    "rubric": score,
    "allure": learn,
    "drpe": roles,
    "sc2": tables,
    "write": draft,
}
TOUR = ("relative", "bsm", "rubric", "allure")


def live(console: Console) -> None:
    """Judge one pair by the small model in this process, and say why it is poor."""
    pair = rows_of("pairs")[1]
    verdict = create_relative_judge(resolve_model("local")).invoke(pair)["verdict"]
    answer = verdict["preference"] or "not judged"
    flipped = ", and its two orders disagree" if verdict["flipped"] else ""
    console.print(
        "[bold]Live[/bold], by the local model of 135M parameters in this process: people "
        f"prefer {pair['label']}, it says {answer}{flipped}. So small a model judges no better "
        "than a coin; the same code takes any other: make demo MODEL=openai:gpt-5-mini."
    )


def replayed(console: Console) -> ReplayChatModel:
    """Take the recorded model, and say whose replies they are."""
    model = ReplayChatModel(path=RECORDED)
    dates = sorted({each["date"] for each in model.recorded})
    console.print(
        f"Replies of {model.recorded[0]['model']}, recorded from {dates[0]} to {dates[-1]} "
        "and replayed: no key, no "
        "network. Everything else happens now.\n"
    )
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description="Judge sample pairs and texts.")
    parser.add_argument("--method", choices=PARTS, help="one part; default the tour")
    parser.add_argument("--model", default="recorded", help="ask this model now")
    parser.add_argument("--record", metavar="MODEL", help="ask this model, and keep its replies")
    options = parser.parse_args(arguments)
    console = Console()
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        if options.record:
            model: BaseChatModel = ReplayChatModel(path=RECORDED, model=options.record)
        elif options.model == "recorded":
            model = replayed(console)
        else:
            model = resolve_model(options.model)
        for name in [options.method] if options.method else TOUR:
            PARTS[name](model, console)
        if options.model == "recorded" and not (options.record or options.method):
            live(console)
    except JudgeError as exc:
        how = "\nHere that is: python cookbook/demo.py --record MODEL"
        print(f"{exc}{how if isinstance(exc, NotRecorded) else ''}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
