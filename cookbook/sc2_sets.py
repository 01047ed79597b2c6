"""The sets of SC²'s studies, and which of their pairs are judged."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from langchain_judges.datasets import load
from langchain_judges.datasets.source import NO_TEXT

SETS = {
    "hh_helpful_test": "helpful",
    "summeval12": "summary",
}
"""The task of each set, by its name for `load`. SummEval is not in the paper: it replaces the
graded summaries of CNN/DM where those cannot be had."""
USUAL = ("hh_helpful_test", "summeval12")
ROWS = 500
"""Pairs of each set that are judged."""
CORPUS = 50
"""Pairs from which the offline aspects are learned."""
EACH = 5
"""Most pairs of one group, such as an article, among them."""

Pair = dict[str, Any]


def read(name: str, folder: Path | None, seed: int) -> list[Pair]:
    """Return the pairs of a set that can be judged, in a drawn order.

    Args:
        name: One of `SETS`.
        folder: Where the set is.
        seed: Of the order and the sides.
    """
    return dealt(load(name, folder, seed=seed), seed)


def dealt(rows: Iterable[Mapping[str, Any]], seed: int) -> list[Pair]:
    """Draw an order in which every group comes once before any comes twice.

    Pairs that people found equal are left out, as in the paper, and so are a few with an
    empty text. A coin says which text is A.
    """
    coin = random.Random(seed)  # noqa: S311 - no secret
    groups: dict[str, list[Pair]] = {}
    for row in rows:
        sides = row["output_a"], row["output_b"]
        if row["label"] not in ("A", "B") or NO_TEXT in sides:
            continue
        pair = {name: row[name] for name in ("id", "group", "input", "label")}
        if coin.random() < 0.5:
            sides = sides[1], sides[0]
            pair["label"] = "BA"["AB".index(row["label"])]
        groups.setdefault(row["group"], []).append(
            {**pair, "output_a": sides[0], "output_b": sides[1]}
        )
    turns: list[tuple[int, Pair]] = []
    for own in groups.values():
        coin.shuffle(own)
        turns += enumerate(own)
    coin.shuffle(turns)
    return [pair for _, pair in sorted(turns, key=lambda each: each[0])]


def parted(pairs: list[Pair], rows: int, most: int = CORPUS) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to judge and, of other groups, those that aspects are learned from.

    Groups are taken from the other end, so the two never meet, however many rows a later run
    asks for.
    """
    groups: dict[str, list[Pair]] = {}
    for row in pairs:
        groups.setdefault(row["group"], []).append(row)
    corpus: list[Pair] = []
    size = min(most, len(pairs) // 2)
    while len(groups) > 1 and len(corpus) < size:
        _, last = groups.popitem()
        corpus += last[:EACH]
    judged_rows = [row for row in pairs if row["group"] in groups]
    return judged_rows[:rows], corpus[:size]
