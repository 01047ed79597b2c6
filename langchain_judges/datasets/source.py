"""Where a set's records come from: a folder or a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table
from langchain_judges.runs.sources import SourceRecord
from langchain_judges.verdict import Preference


@dataclass(frozen=True)
class Source:
    """A set's name and where to read it."""

    name: str
    path: Path | None

    def has(self, file: str) -> bool:
        """Say whether `path` is a folder with this file."""
        return self.path is not None and (self.path / file).is_file()

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


def by_number(value: object, *, swap: bool = False) -> Preference | None:
    """Map the number of the preferred text to A or B, 0 to a tie, anything else to None.

    Args:
        value: 1, 2 or 0.
        swap: Whether the source's second text is A.
    """
    names: dict[object, Preference] = {0: "tie", 2 if swap else 1: "A", 1 if swap else 2: "B"}
    return names.get(value)


def numbered(record: SourceRecord, key: str) -> dict[str, Any]:
    """Return the pair of a record with `output_1`, `output_2` and the better one's number."""
    return {
        "id": key,
        "input": record["input"],
        "output_a": record["output_1"],
        "output_b": record["output_2"],
        "label": by_number(record["label"]),
    }


def plurality(votes: Sequence[Preference]) -> Preference:
    """Return the most frequent vote; votes that tie are a tie."""
    counts = Counter(votes).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return "tie"
    return counts[0][0]
