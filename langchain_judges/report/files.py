"""A report as CSV, JSON and HTML, which no reader's program runs or calculates."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_judges.rows.printable import clean, inert_cell, inert_json

if TYPE_CHECKING:
    from pandas import DataFrame


class WrittenReport(ABC):
    """What every report can be written as."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data."""

    @abstractmethod
    def to_dataframe(self) -> DataFrame:
        """Return the numbers, one a row: judge, key, value, interval, n and how many failed."""

    @abstractmethod
    def _page(self) -> str:
        """Return the HTML page."""

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """Return the numbers as CSV, and write them to a file if there is a path."""
        table = self.to_dataframe().map(inert_cell)
        return written(str(table.to_csv(index=False)), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the whole report as JSON, and write it to a file if there is a path."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, default=str)
        return written(inert_json(text) + "\n", path)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to a file if there is a path.

        The page holds everything it needs and loads nothing. Its only script, which its policy
        names by hash, lists the rows.
        """
        return written(self._page(), path)


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Make a text inert, write it to a file if there is one, and return it."""
    text = clean(text)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", errors="replace")
    return text
