"""The content of a memory: the versions of every example, in the order of remembering."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import cast

from typing_extensions import TypedDict

from langchain_judges.memory.example import (
    Example,
    ExampleFields,
    NewExample,
    outputs_of,
)
from langchain_judges.memory.pool import Pool
from langchain_judges.memory.record import Chain, Record, is_duplicate

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


@dataclass
class Catalogue:
    """The content of a memory, in order; a change creates a new catalogue."""

    records: list[Record] = field(default_factory=list)
    by_key: dict[str, Record] = field(default_factory=dict)
    chains: dict[str, Chain] = field(default_factory=dict)
    """The versions of every example, by its id."""
    ordered: list[Chain] = field(default_factory=list)
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
    def of(cls, records: Iterable[Record]) -> Catalogue:
        """Return the catalogue of some records."""
        ordered = sorted(records, key=lambda record: record.place)
        catalogue = cls(ordered, {record.key: record for record in ordered})
        versions: dict[str, list[Record]] = {}
        for record in ordered:
            versions.setdefault(record.example["id"], []).append(record)
        catalogue.chains = {id: Chain.of(chain) for id, chain in versions.items()}
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
    ) -> Catalogue:
        """Return the catalogue with some records added and those of some keys removed."""
        new = {record.key: record for record in additions if record.key not in self.by_key}
        old = {key: self.by_key[key] for key in removals if key in self.by_key}
        if not new and not old:
            return self
        if len(new) + len(old) > 64 + len(self.chains) // 8:
            return Catalogue.of([*(r for r in self.records if r.key not in old), *new.values()])
        copy = Catalogue(
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
            new = self.chains[id] = Chain.of(records)
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
        then = Catalogue()
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
    """Return whether an example belongs to a pool; see `Catalogue.pool`."""
    return (
        family in (None, example["family"])
        # A judge of pairs learns nothing from single texts, and vice versa.
        and outputs in (0, outputs_of(example))
        and str(example["mode"]) not in modes
    )


def _find(ordered: Sequence[Record | Chain], place: tuple[int, str]) -> int:
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
