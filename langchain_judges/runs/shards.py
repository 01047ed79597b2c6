"""One run over many machines: each writes the results of its shard to its own part.

A row's shard follows from its content, so that every machine reads the same file and needs no
coordination with the others. `merge.py` joins the parts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from langchain_judges.errors import OptionError, OutputError

_PART = re.compile(r"part-(\d{5})-of-(\d{5})\.jsonl")


@dataclass(frozen=True)
class Shard:
    """One of `of` equal shares of the rows; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as `"3/16"` names.

        Raises:
            OptionError: The text does not name a shard.
        """
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise OptionError(f"`shard` must be NUMBER/OF, such as '3/16', got {text!r}")
        return shard

    def __str__(self) -> str:
        """Return the name of the shard."""
        return f"{self.number}/{self.of}"

    def holds(self, row: Mapping[str, object]) -> bool:
        """Return whether a row belongs to this shard; equal rows belong to the same shard."""
        data = json.dumps(row, sort_keys=True, ensure_ascii=True, default=str)
        digest = hashlib.sha256(data.encode()).digest()
        return int.from_bytes(digest[:8]) % self.of == self.number - 1

    def part(self, folder: str | os.PathLike[str]) -> Path:
        """Return the file of this shard's results in the folder of a run.

        Raises:
            OutputError: `folder` is a file.
        """
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise OutputError(
                f"With shards, results are written to a folder, but {place} is a file."
            )
        return place / f"part-{self.number:05}-of-{self.of:05}.jsonl"


@dataclass(frozen=True)
class Receipt:
    """Written by a shard when all of its rows are in its part."""

    mark: str
    """Mark of the judge and its settings."""
    rows: int
    """Rows of the whole run, including other shards."""
    own: int
    """Rows of this shard."""

    @staticmethod
    def of(part: Path) -> Path:
        """Return the path of a part's receipt."""
        return part.with_suffix(".done.json")

    def write(self, part: Path) -> None:
        """Write the receipt of a complete part."""
        place = self.of(part)
        draft = place.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(place)

    @classmethod
    def read(cls, part: Path) -> Receipt | None:
        """Return the receipt of a part; None if it has none yet.

        Raises:
            OutputError: The file is not a receipt.
        """
        try:
            return cls(**json.loads(cls.of(part).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError) as exc:
            raise OutputError(f"{cls.of(part)} is not a receipt of a shard.") from exc


def parts_of(folder: Path) -> Iterator[tuple[Path, Shard]]:
    """Return the parts in a folder, by number."""
    for path in sorted(folder.iterdir()):
        if name := _PART.fullmatch(path.name):
            yield path, Shard(int(name[1]), int(name[2]))
