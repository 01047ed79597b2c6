"""The versions of an example: how each is stored, and which of them is the current one."""

from __future__ import annotations

import hashlib
import json
import uuid
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice, pairwise
from typing import NamedTuple, cast

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


class ExampleVersions(NamedTuple):
    """The versions of an example, oldest first, and the current example."""

    records: tuple[Record, ...]
    example: Example

    @classmethod
    def of(cls, records: Iterable[Record]) -> ExampleVersions:
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


_CONTENT = ("family", "input", "output", "expected")
_WIDTH = 1 << 128


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


Allowed = Callable[[Example], bool]


@dataclass
class Pool:
    """Some examples of a memory, in the order in which they were remembered."""

    examples: list[Example]
    _orders: dict[int, list[Example]] = field(default_factory=dict)
    _by_label: dict[int, list[list[Example]]] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each example, by its id."""
        return {example["id"]: place for place, example in enumerate(self.examples)}

    def shuffle(self, seed: int) -> list[Example]:
        """Return the examples in random order."""
        if seed not in self._orders:
            self._orders[seed] = shuffled(self.examples, seed)
        return self._orders[seed]

    def uniform(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return `m` random allowed examples, in the order of the pool."""
        return self.in_order(islice(filter(allowed, self.shuffle(seed)), m))

    def balanced(self, m: int, seed: int, allowed: Allowed) -> list[Example]:
        """Return `m` random allowed examples, balanced by corrected label."""
        turns = [filter(allowed, group) for group in self.by_label(seed)]
        return self.in_order(islice(_by_turns(turns), m))

    def by_label(self, seed: int) -> list[list[Example]]:
        """Return the examples of each corrected label, in random order."""
        if seed not in self._by_label:
            groups: dict[str, list[Example]] = {}
            for example in self.shuffle(seed):
                groups.setdefault(json.dumps(example["corrected"]), []).append(example)
            self._by_label[seed] = [group for _, group in sorted(groups.items())]
        return self._by_label[seed]

    def without(self, ids: Iterable[str]) -> Sequence[Example]:
        """Return all examples except those with some ids."""
        places = sorted(self.places[id] for id in set(ids) if id in self.places)
        if not places:
            return self.examples
        parts = [
            self.examples[a + 1 : b]
            for a, b in zip([-1, *places], [*places, None], strict=True)
        ]
        return [example for part in parts for example in part]

    def in_order(self, examples: Iterable[Example]) -> list[Example]:
        """Return examples of the pool in its order."""
        return sorted(examples, key=lambda example: self.places[example["id"]])


def shuffled(examples: Iterable[Example], seed: int) -> list[Example]:
    """Return examples in a random order that does not depend on the other examples."""

    def rank(example: Example) -> str:
        return hashlib.sha256(f"{seed}:{example['id']}".encode()).hexdigest()

    return sorted(examples, key=rank)


def _by_turns(turns: Sequence[Iterator[Example]]) -> Iterator[Example]:
    """Yield one example of each iterator in turn, until all are exhausted."""
    while turns:
        nexts = [(turn, next(turn, None)) for turn in turns]
        yield from (example for _, example in nexts if example is not None)
        turns = [turn for turn, example in nexts if example is not None]


@dataclass
class MemorySnapshot:
    """The content of a memory, in order; a change creates a new catalogue."""

    records: list[Record] = field(default_factory=list)
    by_key: dict[str, Record] = field(default_factory=dict)
    chains: dict[str, ExampleVersions] = field(default_factory=dict)
    """The versions of every example, by its id."""
    ordered: list[ExampleVersions] = field(default_factory=list)
    """The same versions, in the order in which the examples were first remembered."""
    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    """The number of examples by family and by the number of judged texts."""
    ids: dict[str, str] | None = None
    """The id of every content; created on first use."""
    links: int = 0
    """The sum of a hash of each two neighbours: any change alters it, and a change of one
    example updates it without a pass over the others."""
    _pools: dict[tuple[str | None, int, tuple[str, ...]], Pool] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> MemorySnapshot:
        """Return the catalogue of some records."""
        ordered = sorted(records, key=lambda record: record.place)
        catalogue = cls(ordered, {record.key: record for record in ordered})
        versions: dict[str, list[Record]] = {}
        for record in ordered:
            versions.setdefault(record.example["id"], []).append(record)
        catalogue.chains = {id: ExampleVersions.of(chain) for id, chain in versions.items()}
        catalogue.ordered = list(catalogue.chains.values())
        for chain in catalogue.ordered:
            catalogue._count(chain.example, 1)
        heads = [None, *(chain.last for chain in catalogue.ordered)]
        catalogue.links = sum(_link(a, b) for a, b in pairwise(heads)) % _WIDTH
        return catalogue

    @property
    def version(self) -> str:
        """A hash of the examples and their order."""
        return _short(self.links)

    def current(self, key: str) -> Example | None:
        """Return the example whose last version has a key."""
        record = self.by_key.get(key)
        chain = self.chains.get(record.example["id"]) if record else None
        return chain.example if chain and chain.last.key == key else None

    def examples(self) -> list[Example]:
        """Return every example in its last version, in order."""
        return [chain.example for chain in self.ordered]

    def has(self, family: str | None, outputs: int) -> bool:
        """Return whether there is an example of a family with this number of judged texts."""
        return any(
            count and family in (None, kind) and outputs in (0, texts)
            for (kind, texts), count in self.counts.items()
        )

    def pool(self, family: str | None, outputs: int, modes: tuple[str, ...]) -> Pool:
        """Return the examples of a family with this number of judged texts, without some modes.

        Args:
            family: The family; None for every family.
            outputs: 1 or 2; 0 for both.
            modes: The failure modes to omit.
        """
        name = (family, outputs, modes)
        if name not in self._pools:
            self._pools[name] = Pool(
                [
                    chain.example
                    for chain in self.ordered
                    if is_in(chain.example, family, outputs, modes)
                ]
            )
        return self._pools[name]

    def with_changes(
        self, additions: Iterable[Record], removals: Iterable[str] = ()
    ) -> MemorySnapshot:
        """Return the catalogue with some records added and those of some keys removed."""
        new = {record.key: record for record in additions if record.key not in self.by_key}
        old = {key: self.by_key[key] for key in removals if key in self.by_key}
        if not new and not old:
            return self
        if len(new) + len(old) > 64 + len(self.chains) // 8:
            return MemorySnapshot.of(
                [*(r for r in self.records if r.key not in old), *new.values()]
            )
        copy = MemorySnapshot(
            *(self.records.copy(), self.by_key.copy(), self.chains.copy()),
            *(self.ordered.copy(), self.counts.copy()),
            *(None if self.ids is None else self.ids.copy(), self.links),
        )
        ids = dict.fromkeys(r.example["id"] for r in (*old.values(), *new.values()))
        for record in old.values():
            del copy.by_key[record.key]
            del copy.records[_find(copy.records, record.place)]
        for record in new.values():
            copy.by_key[record.key] = record
            insort(copy.records, record, key=lambda each: each.place)
        for id in ids:
            earlier = self.chains[id].records if id in self.chains else ()
            later = [r for r in earlier if r.key not in old]
            copy._put(id, [*later, *(r for r in new.values() if r.example["id"] == id)])
        return copy

    def _put(self, id: str, records: Sequence[Record]) -> None:
        """Replace the versions of an example."""
        if (old := self.chains.pop(id, None)) is not None:
            place = _find(self.ordered, old.place)
            before, after = self._around(place, place + 1)
            self.links += (
                _link(before, after) - _link(before, old.last) - _link(old.last, after)
            )
            del self.ordered[place]
            self._count(old.example, -1)
            if self.ids is not None:
                self.ids.pop(_content(old.example), None)
        if records:
            new = self.chains[id] = ExampleVersions.of(records)
            place = _find(self.ordered, new.place)
            before, after = self._around(place, place)
            self.links += (
                _link(before, new.last) + _link(new.last, after) - _link(before, after)
            )
            self.ordered.insert(place, new)
            self._count(new.example, 1)
            if self.ids is not None:
                self.ids[_content(new.example)] = id
        self.links %= _WIDTH

    def _around(self, left: int, right: int) -> tuple[Record | None, Record | None]:
        before = self.ordered[left - 1].last if left else None
        return before, self.ordered[right].last if right < len(self.ordered) else None

    def _count(self, example: Example, more: int) -> None:
        kind = (example["family"], outputs_of(example))
        self.counts[kind] = self.counts.get(kind, 0) + more

    def records_for(
        self, examples: Sequence[NewExample], now: str
    ) -> tuple[list[str], list[Record]]:
        """Return the id of every example, and records for the new ones."""
        if self.ids is None:
            self.ids = {_content(c.example): id for id, c in self.chains.items()}
        new_ids: dict[str, str] = {}
        chains: dict[str, list[Record]] = {}
        seq = self.records[-1].seq if self.records else 0
        ids: list[str] = []
        new_records: list[Record] = []
        for raw in examples:
            fields = raw.copy()
            at = fields.pop("at", None)
            content = _content(fields)
            id = new_ids.get(content) or self.ids.get(content)
            id = new_ids[content] = id or fields["id"] or content[:16]
            ids.append(id)
            example = cast("ExampleFields", {**fields, "id": id})
            if id not in chains:
                chains[id] = list(self.chains[id].records) if id in self.chains else []
            if is_duplicate(example, at, chains[id]):
                continue
            seq += 1
            again = sum(record.example == example for record in chains[id])
            record = Record.new(example, seq, at or now, again)
            chains[id].append(record)
            new_records.append(record)
        return ids, new_records

    def history(self) -> list[HistoryEntry]:
        """Return the entries that `FailureMemory.history` describes."""
        entries: list[HistoryEntry] = []
        then = MemorySnapshot()
        for (at, round, auditor), records in groupby(self.records, Record.signature):
            added: list[str] = []
            corrected: list[str] = []
            for record in records:
                id = record.example["id"]
                earlier = then.chains[id].records if id in then.chains else ()
                (corrected if earlier else added).append(id)
                then._put(id, [*earlier, record])
            entries.append(
                {
                    "at": at,
                    "round": round,
                    "auditor": auditor,
                    "added": added,
                    "corrected": corrected,
                    "size": len(then.chains),
                    "version": then.version,
                }
            )
        return entries


def is_in(example: Example, family: str | None, outputs: int, modes: tuple[str, ...]) -> bool:
    """Return whether an example belongs to a pool; see `MemorySnapshot.pool`."""
    return (
        family in (None, example["family"])
        # A judge of pairs learns nothing from single texts, and vice versa.
        and outputs in (0, outputs_of(example))
        and str(example["mode"]) not in modes
    )


def _find(ordered: Sequence[Record | ExampleVersions], place: tuple[int, str]) -> int:
    return bisect_left(ordered, place, key=lambda each: each.place)


def _link(a: Record | None, b: Record | None) -> int:
    """Return a number for two neighbours; 0 without a second one."""
    if b is None:
        return 0
    first = a.digest if a else b""
    return int.from_bytes(hashlib.sha256(first + b.digest).digest()[:16])


def _short(links: int) -> str:
    return hashlib.sha256(links.to_bytes(16)).hexdigest()[:12]


def _content(example: Mapping[str, object]) -> str:
    content = json.dumps([example[name] for name in _CONTENT], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
