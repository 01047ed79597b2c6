"""The forms a set gives: rows of two texts, better against worse with shuffled slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_judges.datasets.source import NO_TEXT, SourceRecord, by_number, coin
from langchain_judges.rows.texts import Text
from langchain_judges.verdict import Preference

RowStream = Iterator[dict[str, Any]]
"""Rows of pairs (`Row`), or items (`Item`), as plain dictionaries."""


def numbered(record: SourceRecord, key: str) -> dict[str, Any]:
    """Return the pair of a record with `output_1`, `output_2` and the better one's number."""
    return {
        "id": key,
        "input": record["input"],
        "output_a": record["output_1"],
        "output_b": record["output_2"],
        "label": by_number(record["label"]),
    }


def shuffled(
    seed: int, key: str, better: Text, worse: Text, systems: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the fields of a pair whose source puts the better text first.

    Args:
        seed: Of the coin that says which text is A.
        key: The row's id; the coin depends on it and not on the order of rows.
        better: The preferred text, or the messages of which the last is judged.
        worse: The other text.
        systems: Who wrote `better` and `worse`, in this order.
    """
    swap = coin(seed, key)
    first, second = (worse, better) if swap else (better, worse)
    row: dict[str, Any] = {
        "id": key,
        "output_a": shown(first),
        "output_b": shown(second),
        "label": "B" if swap else "A",
    }
    if systems is not None:
        row["systems"] = list(reversed(systems)) if swap else list(systems)
    return row


def shown(text: Text) -> Text:
    """Return a text as a judge is shown it: an empty one as `NO_TEXT`."""
    return NO_TEXT if isinstance(text, str) and not text.strip() else text


def plurality(votes: Sequence[Preference]) -> Preference:
    """Return the most frequent vote; votes that tie are a tie."""
    counts = Counter(votes).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return "tie"
    return counts[0][0]
