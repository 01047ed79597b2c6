"""The examples of a memory with their versions, as one snapshot that never changes."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby, pairwise, zip_longest
from operator import attrgetter
from typing import Any, cast

from langchain_core.documents import Document
from typing_extensions import TypedDict

from langchain_judges.errors import OutputError
from langchain_judges.memory.example import (
    FIELDS,
    Example,
    ExampleFields,
    NewExample,
    outputs_of,
    texts_of,
)
from langchain_judges.rows.texts import group_by_task

_CONTENT = ("family", "input", "output", "expected")
_PROVENANCE = ("source", "group", "round", "auditor")
_STANDING = 3


class HistoryEntry(TypedDict):
    """What was remembered at one time, by one auditor in one round."""

    at: str
    round: int | None
    auditor: str | None
    added: list[str]
    """Ids of new examples."""
    corrected: list[str]
    """Ids of newly corrected examples."""
    size: int
    """How many examples the memory had then."""
    version: str
    """The memory's version then."""


class Record:
    """One version of an example, as it is stored; the example is read when it is asked for."""

    __slots__ = (
        *("_digest", "_fields", "at", "content", "id", "json", "key", "kind", "seq", "task"),
    )

    def __init__(  # noqa: PLR0913 - what a document holds
        self,
        key: str,
        seq: int,
        at: str,
        id: str,
        content: str,
        kind: tuple[str, int],
        task: str,
        text: str,
    ) -> None:
        """Keep what is known of a version.

        Args:
            key: Of the record.
            seq: The place of the record among all.
            at: When it was remembered.
            id: Of the example.
            content: A hash of what identifies the example.
            kind: Its family, and how many texts it judges.
            task: A hash of its task.
            text: The example as JSON.
        """
        self.key, self.seq, self.at, self.id = key, seq, at, id
        self.content, self.kind, self.task, self.json = content, kind, task, text
        self._fields: ExampleFields | None = None
        self._digest: bytes | None = None

    @classmethod
    def new(cls, fields: ExampleFields, seq: int, at: str, again: int = 0) -> Record:
        """Create a record; `again` is the number of equal earlier versions of the example."""
        text = json.dumps(dict(fields), sort_keys=True)
        digest = hashlib.sha256(f"{text}{again}".encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))
        kind = (fields["family"], outputs_of(fields))
        task = group_by_task(fields["input"])
        return cls(key, seq, at, fields["id"], content_of(fields), kind, task, text)

    @classmethod
    def read(cls, id: str | None, fields: Mapping[str, Any]) -> Record:
        """Return the record in the metadata of a document of the store.

        Raises:
            OutputError: It holds no record.
        """
        try:
            return cls(
                *(fields["key"], int(fields["seq"]), fields["at"]),
                *(fields["id"], fields["content"]),
                (fields["family"], int(fields["outputs"])),
                *(fields["task"], fields["example"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise OutputError(
                f"document {id!r} of the store holds no example of a memory: {exc}"
            ) from exc

    def document(self, memory: str) -> Document:
        """Return the document of the store that holds the record."""
        # Only texts and numbers: some stores accept nothing else as metadata.
        metadata = {
            "memory": memory,
            "family": self.kind[0],
            "outputs": self.kind[1],
            "key": self.key,
            "seq": self.seq,
            "at": self.at,
            "id": self.id,
            "content": self.content,
            "task": self.task,
            "example": self.json,
        }
        return Document(id=self.key, page_content=self.text, metadata=metadata)

    @property
    def fields(self) -> ExampleFields:
        """The example, as it was remembered."""
        if self._fields is None:
            self._fields = cast("ExampleFields", json.loads(self.json))
        return self._fields

    @property
    def text(self) -> str:
        """What is embedded."""
        return texts_of(self.fields).joined() or " "

    @property
    def place(self) -> tuple[int, str]:
        """The sort key of records."""
        return self.seq, self.key

    def signature(self) -> tuple[str, int | None, str | None]:
        """Return when, in which round and by whom the version was remembered."""
        return self.at, self.fields["round"], self.fields["auditor"]

    @property
    def digest(self) -> bytes:
        """A hash of the example."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.json.encode()).digest()
        return self._digest


class ExampleVersions:
    """The versions of one example, oldest first."""

    __slots__ = ("_example", "records")

    def __init__(self, records: tuple[Record, ...]) -> None:
        """Keep the versions."""
        self.records = records
        self._example: Example | None = None

    @property
    def last(self) -> Record:
        """The current version."""
        return self.records[-1]

    @property
    def example(self) -> Example:
        """The example in its current version."""
        if self._example is None:
            lessons = [_lesson(record.fields) for record in self.records]
            version = 1 + sum(a != b for a, b in pairwise(lessons))
            self._example = {**self.last.fields, "version": version}
        return self._example


def by_label(examples: Iterable[Example], m: int) -> list[Example]:
    """Return the first `m` examples, those of each corrected label in turn."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(json.dumps(example["corrected"]), []).append(example)
    rounds = zip_longest(*(own for _, own in sorted(groups.items())))
    return [example for turn in rounds for example in turn if example is not None][:m]


class MemorySnapshot:
    """The examples of a memory at one time; a change makes a new snapshot."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Order the records, and gather the versions of each example."""
        ordered = sorted(records, key=attrgetter("seq", "key"))
        self.records = {record.key: record for record in ordered}
        """Every version of every example by its key, oldest first."""
        self.versions: dict[str, ExampleVersions] = {}
        """The versions of each example by its id, in the order they were first remembered."""
        self.ids: dict[str, str] = {}
        """The id of every content."""
        self.kinds: Counter[tuple[str, int]] = Counter()
        """How many examples there are of each family and number of judged texts."""
        self._pools: dict[tuple[str | None, int], list[Example]] = {}
        grouped: dict[str, list[Record]] = {}
        for record in ordered:
            grouped.setdefault(record.id, []).append(record)
        for id, own in grouped.items():
            self._set(id, tuple(own))

    def _set(self, id: str, records: tuple[Record, ...]) -> None:
        """Replace the versions of an example; without any it is gone."""
        if before := self.versions.get(id):
            self.kinds[before.last.kind] -= 1
            self.ids.pop(before.last.content, None)
        if records:
            own = self.versions[id] = ExampleVersions(records)
            self.kinds[own.last.kind] += 1
            self.ids[own.last.content] = id
        elif before:
            del self.versions[id]

    def is_standing(self, example: Example) -> bool:
        """Return whether an example's task is a standing question: that of all in its family.

        Three examples are needed to tell one from a task that was judged several times.
        """
        count, tasks = self._tasks.get(example["family"], (0, set()))
        return count >= _STANDING and len(tasks) == 1

    @cached_property
    def _tasks(self) -> dict[str, tuple[int, set[str]]]:
        """How many examples a family has, and their tasks."""
        tasks: dict[str, set[str]] = {}
        families: Counter[str] = Counter()
        for each in self.versions.values():
            family = each.last.kind[0]
            families[family] += 1
            tasks.setdefault(family, set()).add(each.last.task)
        return {family: (families[family], own) for family, own in tasks.items()}

    def with_changes(
        self, additions: Iterable[Record], removals: Iterable[str] = ()
    ) -> MemorySnapshot:
        """Return the snapshot with some records added and those of some keys removed."""
        more = (record for record in additions if record.key not in self.records)
        new = sorted(more, key=attrgetter("seq", "key"))
        gone = self.records.keys() & set(removals)
        if not new and not gone:
            return self
        changed = {self.records[key].id for key in gone}
        rest = {id: self._without(id, gone) for id in changed}
        last = next(reversed(self.records.values()), None)
        late = bool(new and last and new[0].place < last.place)
        # An example's place may change with its first version.
        if late or any(own and own[0] != self._records_of(id)[0] for id, own in rest.items()):
            records = (each for key, each in self.records.items() if key not in gone)
            return MemorySnapshot([*records, *new])
        after = MemorySnapshot()
        after.records, after.versions = self.records.copy(), self.versions.copy()
        after.ids, after.kinds = self.ids.copy(), self.kinds.copy()
        for key in gone:
            del after.records[key]
        for id, own in rest.items():
            after._set(id, own)
        for record in new:
            after.records[record.key] = record
            after._set(record.id, (*after._records_of(record.id), record))
        return after

    def _without(self, id: str, gone: Collection[str]) -> tuple[Record, ...]:
        return tuple(each for each in self._records_of(id) if each.key not in gone)

    def _records_of(self, id: str) -> tuple[Record, ...]:
        return self.versions[id].records if id in self.versions else ()

    @cached_property
    def version(self) -> str:
        """A short hash of the examples and their order."""
        return _hash_of(each.last.digest for each in self.versions.values())

    def current(self, key: str) -> Example | None:
        """Return the example whose last version has a key."""
        record = self.records.get(key)
        own = self.versions[record.id] if record else None
        return own.example if own and own.last.key == key else None

    def examples(self) -> list[Example]:
        """Return every example in its last version, in order."""
        return [each.example for each in self.versions.values()]

    def has(self, family: str | None, outputs: int) -> bool:
        """Return whether there is an example of a family with this number of judged texts."""
        return any(
            count and family in (None, own) and outputs in (0, texts)
            for (own, texts), count in self.kinds.items()
        )

    def pool(self, family: str | None, outputs: int) -> list[Example]:
        """Return the examples of a family with this number of judged texts, in order.

        Args:
            family: The family; None for every family.
            outputs: 1 or 2; 0 for both.
        """
        name = (family, outputs)
        if name not in self._pools:
            self._pools[name] = [
                each.example
                for each in self.versions.values()
                if family in (None, each.last.kind[0]) and outputs in (0, each.last.kind[1])
            ]
        return self._pools[name]

    def records_for(
        self, examples: Sequence[NewExample], now: str
    ) -> tuple[list[str], list[Record]]:
        """Return the id of every example, and records for the new ones."""
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
            own = versions.setdefault(id, list(self._records_of(id)))
            if _is_duplicate(example, at, own):
                continue
            seq += 1
            again = sum(record.fields == example for record in own)
            record = Record.new(example, seq, at or now, again)
            own.append(record)
            new_records.append(record)
        return ids, new_records

    def history(self) -> list[HistoryEntry]:
        """Return the entries that `FailureMemory.history` describes."""
        entries: list[HistoryEntry] = []
        heads: dict[str, bytes] = {}
        for (at, round, auditor), records in groupby(self.records.values(), Record.signature):
            added: list[str] = []
            corrected: list[str] = []
            for record in records:
                (corrected if record.id in heads else added).append(record.id)
                heads[record.id] = record.digest
            entries.append(
                {
                    "at": at,
                    "round": round,
                    "auditor": auditor,
                    "added": added,
                    "corrected": corrected,
                    "size": len(heads),
                    "version": _hash_of(heads.values()),
                }
            )
        return entries


def _is_duplicate(example: ExampleFields, at: str | None, versions: Sequence[Record]) -> bool:
    """Return whether an example adds nothing to its versions.

    An example from an export is a duplicate if any version equals it.
    """
    for record in reversed(versions):
        if record.fields == example and at in (None, record.at):
            return True
        if at is None and _lesson(record.fields) != _lesson(example):
            return False
    return False


def _lesson(example: Mapping[str, object]) -> list[object]:
    """Return the fields of an example other than its provenance."""
    return [example[name] for name in FIELDS if name not in _PROVENANCE]


def content_of(example: Mapping[str, object]) -> str:
    """Return a hash of what identifies an example."""
    content = json.dumps([example[name] for name in _CONTENT], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _hash_of(digests: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(digests)).hexdigest()[:12]
