"""The versions of an example: how each is stored, and which of them is the current one."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from langchain_core.documents import Document

from langchain_judges.errors import OutputError
from langchain_judges.memory.example import Example, ExampleFields, texts_of
from langchain_judges.memory.example_input import FIELDS

_PROVENANCE = ("source", "group", "round", "auditor")


@dataclass(frozen=True)
class Record:
    """One version of an example, as it is stored."""

    key: str
    seq: int
    at: str
    text: str
    example: ExampleFields

    @classmethod
    def new(cls, example: ExampleFields, seq: int, at: str, again: int = 0) -> Record:
        """Create a record; `again` is the number of equal earlier versions of the example."""
        digest = hashlib.sha256(f"{_canonical(example)}{again}".encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))
        return cls(key, seq, at, texts_of(example).joined() or " ", example)

    @classmethod
    def read(cls, document: Document) -> Record:
        """Return the record of a document of the store.

        Raises:
            OutputError: The document holds no record.
        """
        fields = document.metadata
        try:
            example: ExampleFields = json.loads(fields["example"])
            if not isinstance(example, dict) or set(FIELDS) - set(example):
                raise ValueError("it is not an example")
            return cls(
                *(str(fields["key"]), int(fields["seq"]), str(fields["at"])),
                *(document.page_content, example),
            )
        except (KeyError, TypeError, ValueError, RecursionError) as exc:
            raise OutputError(
                f"document {document.id!r} of the store holds no example of a memory: {exc}"
            ) from exc

    def document(self, memory: str) -> Document:
        """Return the document of the store that holds the record."""
        # Only texts and numbers: some stores accept nothing else as metadata.
        metadata = {
            "memory": memory,
            "family": self.example["family"],
            "key": self.key,
            "seq": self.seq,
            "at": self.at,
            "example": json.dumps(self.example),
        }
        return Document(id=self.key, page_content=self.text, metadata=metadata)

    @property
    def place(self) -> tuple[int, str]:
        """The sort key of records."""
        return self.seq, self.key

    def signature(self) -> tuple[str, int | None, str | None]:
        """Return when, in which round and by whom the version was remembered."""
        return self.at, self.example["round"], self.example["auditor"]

    @cached_property
    def digest(self) -> bytes:
        """A hash of the example."""
        return hashlib.sha256(_canonical(self.example).encode()).digest()


class Chain(NamedTuple):
    """The versions of an example, oldest first, and the current example."""

    records: tuple[Record, ...]
    example: Example

    @classmethod
    def of(cls, records: Iterable[Record]) -> Chain:
        """Return the chain of an example's records."""
        ordered = tuple(sorted(records, key=lambda record: record.place))
        example: Example = {**ordered[-1].example, "version": _corrections(ordered)}
        return cls(ordered, example)

    @property
    def place(self) -> tuple[int, str]:
        """The sort key of examples: when they were first remembered."""
        return self.records[0].place

    @property
    def last(self) -> Record:
        """The current version."""
        return self.records[-1]


def is_duplicate(example: ExampleFields, at: str | None, chain: Sequence[Record]) -> bool:
    """Return whether an example adds nothing to its versions.

    An example from an export is a duplicate if any version equals it.
    """
    for record in reversed(chain):
        if record.example == example and at in (None, record.at):
            return True
        if at is None and _lesson(record.example) != _lesson(example):
            return False
    return False


def _lesson(example: Mapping[str, object]) -> list[object]:
    """Return the fields of an example other than its provenance."""
    return [example[name] for name in FIELDS if name not in _PROVENANCE]


def _corrections(chain: Sequence[Record]) -> int:
    """Return 1 plus the number of times an example was corrected again."""
    lessons = [_lesson(record.example) for record in chain]
    return 1 + sum(a != b for a, b in pairwise(lessons))


def _canonical(example: Mapping[str, object]) -> str:
    return json.dumps({name: example[name] for name in FIELDS}, sort_keys=True)
