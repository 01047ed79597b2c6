"""Where a set's records come from: a folder, a file, or the hub through `datasets`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError, needs
from langchain_judges.rows.files import read_table
from langchain_judges.verdict import Preference

SourceRecord = Mapping[str, Any]
"""One record as its source has it."""

NO_TEXT = "(no text)"
"""Stands for an empty response, which people judged and no judge here accepts."""


@dataclass(frozen=True)
class Hub:
    """Where a set lies on the hub, as `datasets.load_dataset` takes it."""

    repo: str
    split: str
    config: str | None = None
    data_dir: str | None = None
    data_files: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class Source:
    """A set's name and where to read it: `path`, else the hub."""

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
                f"{self.name!r} is not on the hub in a form that can be loaded; give `path`, "
                f"a folder with {' or '.join(files)}"
            )
        if self.path.is_file():
            return read_table(self.path)
        for file in files:
            if self.has(file):
                return read_table(self.path / file)
        raise OptionError(
            f"{self.name!r} is read from {' or '.join(files)}; {self.path} has none"
        )

    def only_of_the_hub(self, **options: str | None) -> None:
        """Refuse options that choose a part of the hub's set where one file is read whole.

        Raises:
            OptionError: `path` is a file, and one of the options is set.
        """
        options_set = [name for name, value in options.items() if value is not None]
        if options_set and self.path is not None and not self.path.is_dir():
            names = " and ".join(f"`{name}`" for name in options_set)
            raise OptionError(
                f"{names} would choose a part of the set on the hub; {self.path} is read whole"
            )

    def hub(self, where: Hub) -> Iterator[dict[str, Any]]:
        """Read the set from the hub, or from `path`: a copy of its repository, or one file.

        Raises:
            OptionError: `path` does not exist, or the package `datasets` is missing.
        """
        if self.path is not None and self.path.is_file():
            return read_table(self.path)
        if self.path is not None and not self.path.is_dir():
            raise OptionError(f"there is no folder or file {self.path}")
        return _from_hub(where, self.path)


def _from_hub(where: Hub, copy: Path | None) -> Iterator[dict[str, Any]]:
    with needs("hub", "Reading from the Hugging Face hub"):
        from datasets import load_dataset
    options = {
        "split": where.split,
        "data_dir": where.data_dir,
        "data_files": {where.split: where.data_files} if where.data_files else None,
        # A copy on disk is at one revision.
        "revision": None if copy else where.revision,
    }
    settings = {name: value for name, value in options.items() if value is not None}
    try:
        records = load_dataset(str(copy) if copy else where.repo, where.config, **settings)
    except (OSError, ValueError) as exc:
        raise OptionError(
            f"{where.repo} cannot be read from {copy or 'the hub'} ({exc}); give `path`, a "
            "copy of its repository or one of its files"
        ) from exc
    for record in records:
        yield dict(record)


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
