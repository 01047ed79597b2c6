"""One run over many machines: each judges the rows of its shard into a part of its own.

A row's shard follows from its content, so that every machine reads the same file and none has
to know of the others. `parts.py` joins the parts again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
            OptionError: It names none.
        """
        named = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text.strip())
        shard = cls(int(named[1]), int(named[2])) if named else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise OptionError(f"`shard` must be NUMBER/OF, such as '3/16', got {text!r}")
        return shard

    def __str__(self) -> str:
        """Return it as it is named."""
        return f"{self.number}/{self.of}"

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Say whether a row belongs to this shard; equal rows belong to the same one."""
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
            raise OutputError(f"With shards the results go to a folder, and {place} is a file.")
        return place / f"part-{self.number:05}-of-{self.of:05}.jsonl"


@dataclass(frozen=True)
class Receipt:
    """What a shard says of itself when all of its rows are in its part."""

    mark: str
    """Of the judge and its settings."""
    rows: int
    """Rows of the whole run, those of other shards too."""
    own: int
    """Rows of this shard."""

    @staticmethod
    def of(part: Path) -> Path:
        """Return where the receipt of a part stands."""
        return part.with_suffix(".done.json")

    def write(self, part: Path) -> None:
        """Say that a part is complete."""
        place = self.of(part)
        draft = place.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.replace(place)

    @classmethod
    def read(cls, part: Path) -> Receipt | None:
        """Return the receipt of a part; None if it has none yet.

        Raises:
            OutputError: What stands there is no receipt.
        """
        try:
            return cls(**json.loads(cls.of(part).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError) as exc:
            raise OutputError(f"{cls.of(part)} is not what a shard writes.") from exc


def parts_of(folder: Path) -> Iterator[tuple[Path, Shard]]:
    """Return the parts in a folder, by number."""
    for path in sorted(folder.iterdir()):
        if name := _PART.fullmatch(path.name):
            yield path, Shard(int(name[1]), int(name[2]))
