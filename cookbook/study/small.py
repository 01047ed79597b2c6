r"""Small studies with one capable reader: is a method worth more than one good prompt?

The question, the rows and the figures of each were fixed before anything was asked
(`cookbook/README.md`); every reply is kept in `cookbook/recorded/small`, so the
tables are made again without a model:

    python -m cookbook.study small --models reader --data ../shared/data \
        --out cookbook/recorded/small --base-url http://127.0.0.1:8901/v1 \
        --table bsm,drpe,sc2,allure

Beside each method stands its cheapest serious rival: one call that thinks first. Accuracy
counts a tie as half right and a pair that was not judged as wrong; intervals are of 95 %,
clustered by request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from cookbook.study import allure, sc2
from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table
from langchain_judges import FailureMemory
from langchain_judges.memory import Recall
from langchain_judges.metrics import mean, paired_difference, rate

PAIRS, ARTICLES = 60, 40
ANSWERS = {"hh_helpful_test": 40, "summeval12": 20}
"""Pairs of each set on which SC² is tried, as in its paper."""
TRAIN, HELD_OUT = 40, 60
"""Summaries that a memory learns from, and those that are measured."""
SIZES = (8, 15)
"""Remembered cases, where those that the judge got right stand beside its mistakes."""

RELATIVE = Arm("relative, both orders", "relative")
ONE_CALL = Arm("one call, reasons first", "relative", {"orders": "none"})
WITHOUT_ROLES = Arm("one judge without roles", "llm_score")
SC2_ARMS = [
    sc2.arm("step by step, one call", "cot", wording="own"),
    sc2.arm("direct, one call", "direct", wording="own"),
    sc2.arm("SC², two tables", "sc2", samples=2, aspect_samples=1, wording="own"),
]


def lot(row: Row) -> bytes:
    """The place of a row in a fixed order that has nothing to do with its content."""
    return sha256(f"small|{row['id']}".encode()).digest()


def drawn(name: str, size: int, bench: Bench, **options: Any) -> Rows:
    """So many rows of a public set, one of each request, always the same."""
    own: dict[Any, Row] = {}
    for row in sorted(bench.load(name, seed=bench.seed, **options), key=lot):
        if row["label"] in ("A", "B"):
            own.setdefault(row.get("group", row["id"]), row)
    return list(own.values())[: min(size, bench.limit or size)]


def answers(name: str, bench: Bench) -> Rows:
    """Pairs of a set, one of each request; a coin draws the side of the better one."""
    own: dict[Any, Row] = {}
    for pair in sorted(sc2.dealt(bench.load(name, seed=bench.seed), bench.seed), key=lot):
        own.setdefault(pair["group"], pair)
    return list(own.values())[: min(ANSWERS[name], bench.limit or ANSWERS[name])]


def points(rows: Rows, results: Rows) -> list[float]:
    """1 where a verdict is people's choice, 0.5 for a tie, 0 otherwise."""
    chosen = [row["verdict"]["preference"] for row in results]
    return [
        0.5 if choice == "tie" else float(choice == row["label"])
        for row, choice in zip(rows, chosen, strict=True)
    ]


def figures(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Share of people's choices that were met, the gain over one call, and the flips."""
    own, rival = points(rows, results[arm]), next(iter(results))
    groups = [str(row.get("group", row["id"])) for row in rows]
    cells = {"accuracy": within(Cell.of(mean(own, groups=groups)))}
    if arm != rival:
        gain = paired_difference(own, points(rows, results[rival]), groups=groups)
        cells["gain"] = Cell.of(gain)
    flips = [row["verdict"]["flipped"] for row in results[arm]]
    known = [flip for flip in flips if flip is not None]
    return cells | ({"flipped": Cell.of(rate(known))} if known else {})


def within(cell: Cell) -> Cell:
    """A share whose interval, made for means of any size, keeps to 0 and 1."""
    if cell.low is None or cell.high is None:
        return cell
    return replace(cell, low=max(cell.low, 0.0), high=min(cell.high, 1.0))


def summaries(bench: Bench) -> tuple[Rows, Rows]:
    """Summaries to learn from and to measure, of different articles, half of each label.

    Label 0 is what experts rated below 2.5 of 5 for consistency.
    """
    items = sorted(bench.load("summeval16", form="items", threshold=2.5), key=lot)
    by_label = {label: [row for row in items if row["label"] == label] for label in (0, 1)}
    parts: tuple[list[Row], list[Row]] = ([], [])
    taken: set[Any] = set()
    for part, size in zip(parts, (TRAIN, HELD_OUT), strict=True):
        for own in by_label.values():
            fresh = {row["group"]: row for row in reversed(own) if row["group"] not in taken}
            chosen = sorted(fresh.values(), key=lot)[: size // 2]
            taken |= {row["group"] for row in chosen}
            part += chosen
    train, measured = (sorted(part, key=lot) for part in parts)
    return train[: bench.limit], measured[: bench.limit]


def label_judge(bench: Bench, part: str, **options: Any) -> Any:
    """The judge of the summaries' consistency."""
    del part
    return allure.judge_of("e2", bench, explain="first", steps=None, **options)


def memory_arms(bench: Bench, part: str) -> list[Arm]:
    """The judge without a memory, and with what an audit of other articles gave it.

    That is its mistakes, the same beside cases that it got right, or a few rules that the
    model draws from the mistakes.
    """
    plain = Arm("without a memory", make=label_judge)
    names = ["its mistakes", "rules drawn from them", *(f"{size} cases" for size in SIZES)]
    if bench.dry:
        return [plain, *(Arm(f"with {name}", make=label_judge) for name in names)]
    train, _ = summaries(bench)
    results = bench.judged(plain, f"{part}-train", train)
    mistakes = allure.audited(results, train)
    memories = {f"with its {len(mistakes)} mistakes": mistakes}
    for size in SIZES:
        share = 1 - len(mistakes) / size
        memories[f"with {size} cases"] = allure.audited(results, train, right_share=share)
    shown = [
        Arm(name, make=partial(label_judge, memory=memory, recall=Recall("all")))
        for name, memory in memories.items()
    ]
    rules = partial(label_judge, instructions=guidelines(bench, mistakes))
    return [plain, *shown, Arm("with rules drawn from its mistakes", make=rules)]


def guidelines(bench: Bench, mistakes: FailureMemory) -> str:
    """At most five rules that the model draws from its audited mistakes."""
    cases = "\n\n".join(
        f"{each['input']}\n\nSummary: {each['output']}\n"
        f"Right label: {each['corrected']}; your label: {each['wrong']}"
        for each in mistakes.examples()
    )
    reply = bench.model.invoke(
        "You labelled whether a summary is consistent with its source (1) or not (0). These "
        f"labels of yours were wrong:\n\n{cases}\n\nWrite at most five short rules that "
        "would have prevented these mistakes and hold for any other source."
    )
    return str(reply.content)


def _of(title: str, part: str, read: Any, *arms: Arm) -> Table:
    return Table(title, {part: read}, lambda bench, part: list(arms), figures)


TABLES = {
    "bsm": _of(
        "Branch-Solve-Merge and one prompt (MT-Bench)",
        "mtbench",
        partial(drawn, "mtbench_human200", PAIRS),
        *(ONE_CALL, RELATIVE, Arm("BSM", "bsm")),
    ),
    "drpe": _of(
        "DRPE (news summaries people named best and worst)",
        "news",
        partial(drawn, "goyal_news2022", ARTICLES, form="pairs"),
        *(WITHOUT_ROLES, Arm("DRPE", "drpe", {"task": "summary"})),
    ),
    "sc2": Table(
        "SC² (answers to people, and summaries)",
        {name: partial(answers, name) for name in ANSWERS},
        lambda bench, part: SC2_ARMS,
        figures,
    ),
    "allure": Table(
        "ALLURE (factual consistency of summaries)",
        {"summaries": lambda bench: summaries(bench)[1]},
        memory_arms,
        allure.figures,
    ),
}
