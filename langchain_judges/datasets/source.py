"""Where a set's records come from: a folder or a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table
from langchain_judges.rows.texts import Text
from langchain_judges.verdict import Preference

SourceRecord = Mapping[str, Any]
"""One record as its source has it."""

NO_TEXT = "(no text)"
"""Stands for an empty response, which people judged and no judge here accepts."""


@dataclass(frozen=True)
class Source:
    """A set's name and where to read it."""

    name: str
    path: Path | None

    def has(self, file: str) -> bool:
        """Say whether `path` is a folder with this file."""
        return self.path is not None and (self.path / file).is_file()

    def matching(self, pattern: str) -> list[Path]:
        """Return the files of the folder `path` whose names fit a pattern, sorted."""
        if self.path is None or not self.path.is_dir():
            return []
        return sorted(file for file in self.path.glob(pattern) if file.is_file())

    def lines(self, *files: str) -> Iterator[dict[str, Any]]:
        """Read the first of these files that the folder has, or `path` itself if it is one.

        Raises:
            OptionError: There is no path, or no such file in it.
        """
        if self.path is None:
            raise OptionError(
                f"{self.name!r} is read from a folder: give `path`, with {' or '.join(files)}"
            )
        if self.path.is_file():
            return read_table(self.path)
        for file in files:
            if self.has(file):
                return read_table(self.path / file)
        raise OptionError(
            f"{self.name!r} is read from {' or '.join(files)}; {self.path} has none"
        )


def digest(text: str) -> str:
    """Return a short name for a text: the same text, the same group."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def coin(seed: int, key: str) -> bool:
    """Toss a coin that falls the same way for the same seed and key, in any order of rows."""
    return hashlib.sha256(f"{seed}|{key}".encode()).digest()[0] % 2 == 1


def by_number(value: object, *, swap: bool = False) -> Preference | None:
    """Map the number of the preferred text to A or B, 0 to a tie, anything else to None.

    Args:
        value: 1, 2 or 0.
        swap: Whether the source's second text is A.
    """
    names: dict[object, Preference] = {0: "tie", 2 if swap else 1: "A", 1 if swap else 2: "B"}
    return names.get(value)


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
