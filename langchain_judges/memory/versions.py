"""The examples of a memory with their versions, as one immutable snapshot."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any, cast

from langchain_core.documents import Document

from langchain_judges.errors import OutputError
from langchain_judges.memory import example as example_files
from langchain_judges.memory.example import ERRORS, Example, ExampleFields, NewExample
from langchain_judges.rows import checks, texts

_CONTENT = ("family", "input", "output", "expected")
_PROVENANCE = ("source", "group", "round", "auditor")
_STANDING = 3


@dataclass(eq=False)
class Record:
    """One version of an example, as it is stored; the example is read when it is asked for.

    Attributes:
        key: A hash of the memory, of the example as JSON, and of the number of equal earlier
            versions; the document's id too, so that memories can share a store.
        seq: The place of the record among all.
        at: When it was remembered.
        id: Of the example.
        content: A hash of what identifies the example.
        outputs: How many texts it judges.
        task: A hash of its task.
        example: The example as JSON.
        vector: Its embedding, once it is known; only of one that is on trial or recalled
            beside one.
    """

    key: str
    seq: int
    at: str
    id: str
    content: str
    family: str
    outputs: int
    task: str
    example: str
    vector: Sequence[float] | None = field(default=None, init=False)

    @classmethod
    def new(cls, memory: str, example: ExampleFields, seq: int, at: str, again: int) -> Record:
        """Create a record; `again` is the number of equal earlier versions of the example."""
        text = json.dumps(dict(example), sort_keys=True)
        digest = hashlib.sha256(f"{memory}\n{text}{again}".encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))
        kind = (example["family"], 2 if checks.kind_of_example(example) == "pair" else 1)
        task = texts.group_by_task(example["input"])
        return cls(key, seq, at, example["id"], content_of(example), *kind, task, text)

    @classmethod
    def read(cls, name: str | None, metadata: Mapping[str, Any]) -> Record:
        """The record in the metadata of a document of the store.

        Raises:
            OutputError: It holds no record.
        """
        try:
            key, seq, at, id, content, family, outputs, task, example = _values(metadata)
            # Some stores make fractions of whole numbers.
            return cls(key, int(seq), at, id, content, family, int(outputs), task, example)
        except (KeyError, TypeError, ValueError) as exc:
            raise OutputError(ERRORS["document"].format(name=name, why=exc)) from exc

    def document(self, memory: str) -> Document:
        """The document of the store that holds the record."""
        # Only texts and numbers: some stores accept nothing else as metadata.
        metadata = {"memory": memory, **{name: getattr(self, name) for name in _STORED}}
        return Document(id=self.key, page_content=self.text, metadata=metadata)

    @cached_property
    def fields(self) -> ExampleFields:
        """The example, as it was remembered; its scale may be older than such a field."""
        return cast("ExampleFields", {"scale": [], **json.loads(self.example)})

    @property
    def text(self) -> str:
        """Text that is embedded."""
        return example_files.texts_of(self.fields).joined() or " "


_STORED = tuple(each.name for each in dataclass_fields(Record) if each.init)
_values = itemgetter(*_STORED)


@dataclass(eq=False)
class ExampleVersions:
    """The versions of one example, oldest first."""

    records: tuple[Record, ...]

    @property
    def last(self) -> Record:
        """The current version."""
        return self.records[-1]

    @cached_property
    def example(self) -> Example:
        """The example in its current version."""
        lessons = [_lesson(record.fields) for record in self.records]
        return {**self.last.fields, "version": 1 + sum(a != b for a, b in pairwise(lessons))}


class MemorySnapshot:
    """The examples of a memory at one time; a change makes a new snapshot.

    Args:
        records: Every version of every example, oldest first.

    Attributes:
        versions: The versions of each example by its id, in the order they were first
            remembered.
        ids: The id of every content.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Gather the versions of each example."""
        self.records = {record.key: record for record in records}
        grouped: dict[str, list[Record]] = {}
        for record in self.records.values():
            grouped.setdefault(record.id, []).append(record)
        self.versions = {id: ExampleVersions(tuple(own)) for id, own in grouped.items()}
        self.ids = {own[-1].content: id for id, own in grouped.items()}

    def is_standing(self, example: Example) -> bool:
        """Whether an example's task is a standing question: that of all in its family.

        Three examples are needed to tell one from a task that was judged several times.
        """
        tasks = self._tasks.get(example["family"], Counter())
        return len(tasks) == 1 and tasks.total() >= _STANDING

    @cached_property
    def _tasks(self) -> dict[str, Counter[str]]:
        """Number of a family's examples for each task."""
        tasks: dict[str, Counter[str]] = {}
        for each in self.versions.values():
            tasks.setdefault(each.last.family, Counter())[each.last.task] += 1
        return tasks

    def with_changes(self, new: Iterable[Record], gone: Iterable[str] = ()) -> MemorySnapshot:
        """The snapshot without the records of some keys, and with some new ones."""
        lost = self.records.keys() & {*gone}
        kept = {key: record for key, record in self.records.items() if key not in lost}
        after = {**{record.key: record for record in new}, **kept}
        if not lost and len(after) == len(kept):
            return self
        return MemorySnapshot([*kept.values(), *(after[key] for key in after if key not in kept)])

    def records_of(self, id: str) -> tuple[Record, ...]:
        """The versions of an example; none if there is no such example."""
        return self.versions[id].records if id in self.versions else ()

    @cached_property
    def version(self) -> str:
        """A short hash of the examples and their order."""
        examples = "".join(each.last.example for each in self.versions.values())
        return hashlib.sha256(examples.encode()).hexdigest()[:12]

    def current(self, key: str) -> ExampleVersions | None:
        """The example whose last version has a key."""
        record = self.records.get(key)
        own = self.versions[record.id] if record else None
        return own if own and own.last.key == key else None

    def records_for(
        self, examples: Sequence[NewExample], memory: str, now: str
    ) -> tuple[list[str], list[Record]]:
        """The id of every example, and records for the new ones in a memory."""
        new_ids: dict[str, str] = {}
        versions: dict[str, list[Record]] = {}
        seq = next(reversed(self.records.values())).seq if self.records else 0
        ids: list[str] = []
        new_records: list[Record] = []
        for raw in examples:
            fields = raw.copy()
            at = fields.pop("at", None)
            content = content_of(fields)
            id = new_ids.get(content) or self.ids.get(content) or fields["id"]
            id = new_ids[content] = id or content[:16]
            ids.append(id)
            example = cast("ExampleFields", {**fields, "id": id})
            own = versions.setdefault(id, list(self.records_of(id)))
            if _is_duplicate(example, at, own):
                continue
            seq += 1
            again = sum(record.fields == example for record in own)
            record = Record.new(memory, example, seq, at or now, again)
            own.append(record)
            new_records.append(record)
        return ids, new_records


def _is_duplicate(example: ExampleFields, at: str | None, versions: Sequence[Record]) -> bool:
    """Whether an example adds nothing to its versions.

    An example from an export is a duplicate if any version equals it.
    """
    for record in reversed(versions):
        if record.fields == example and at in (None, record.at):
            return True
        if at is None and _lesson(record.fields) != _lesson(example):
            return False
    return False


def _lesson(example: Mapping[str, object]) -> list[object]:
    """The fields of an example other than its provenance."""
    return [example[name] for name in example_files.EXAMPLE_FIELDS if name not in _PROVENANCE]


def content_of(example: Mapping[str, object]) -> str:
    """A hash of what identifies an example."""
    content = json.dumps([example[name] for name in _CONTENT], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
