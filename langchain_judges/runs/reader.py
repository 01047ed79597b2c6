"""The rows of a run: read one at a time, checked, keyed by what their verdict follows from."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from langchain_judges.errors import InputError
from langchain_judges.methods.describe import memories_of, unwrapped
from langchain_judges.rows.checks import RowKind, check_pair, check_task, kind_in
from langchain_judges.rows.documents import OF_OUTPUT
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.runs.rows import JUDGED, RunRow
from langchain_judges.runs.shards import Shard
from langchain_judges.runs.sources import BadRecord, Records, UnreadableTable

_SHOWN = (*JUDGED, OF_OUTPUT, "concepts", "instruction", "task_kind")
"""What a prompt may follow from."""
FIRST = 10
"""Rows of which one must be valid, where they are no table."""


class RowFields(NamedTuple):
    """Fields of a row: what its judge receives, and what its verdict may follow from."""

    given: tuple[str, ...]
    keyed: tuple[str, ...]

    @classmethod
    def of(cls, judge: object) -> RowFields:
        """Return the fields for a judge.

        A memory chooses its examples by id, family and group; a judge that is no graph of this
        package may read whatever it is given.
        """
        remembers = bool(memories_of(judge))
        given = (*_SHOWN, "id", "family", *(["group"] if remembers else []))
        return cls(given, _SHOWN if not remembers and _shows_texts_alone(judge) else given)


def _shows_texts_alone(judge: object) -> bool:
    # Loaded on use: reports read results without a graph.
    from langchain_judges.methods.graph import JudgeGraph

    own = unwrapped(judge)
    members = getattr(own, "members", ())
    return isinstance(own, JudgeGraph) and all(_shows_texts_alone(m.judge) for m in members)


class RowReader:
    """Reads the rows of a run.

    Args:
        records: Pairs, items or tasks, or the records of a table.
        marks: What decides the judge's verdicts; part of each key.
        shard: The shard whose rows are read; None reads them all.
        fields: What the judge receives, and what the key follows from.
        numbers_repeats: Whether a repeated row gets a key of its own.
    """

    def __init__(
        self,
        records: Records,
        marks: Mapping[str, object],
        shard: Shard | None,
        *,
        fields: RowFields,
        numbers_repeats: bool,
    ) -> None:
        """Set what is read; nothing is read yet."""
        self.read_rows = self.own_rows = 0
        self.ended = False
        self._records = records
        self._rows = enumerate(records.source.records)
        self._marks = marks
        self._shard = shard
        self._fields = fields
        self._numbers_repeats = numbers_repeats
        self._digests: set[int] = set()
        self._repeats: Counter[str] = Counter()
        self._kept: deque[RunRow] = deque()
        """Rows that were read before it was known that any is valid."""
        self._kind: RowKind | None = None
        """Kind of the last valid row; None if there was none yet."""

    def next(self) -> RunRow | None:
        """Return the next row; an invalid one fails alone.

        Raises:
            InputError: The first ten rows, or all of fewer, are invalid, and are no table:
                they may be of another kind than the judge takes.
        """
        if self._kept:
            return self._kept.popleft()
        row = self._read()
        source = self._records.source
        if row is None or self._kind or source.is_table or source.check:
            return row
        kept = [row]
        while self._kind is None and len(kept) < FIRST and (row := self._read()):
            kept.append(row)
        if self._kind is None:
            raise InputError(f"row {kept[0].index}: {kept[0].problem}")
        # Of which kind the bad ones are is known by the good one.
        kind = self._kind
        self._kept = deque(replace(each, kind=kind) if each.problem else each for each in kept)
        return self._kept.popleft()

    def _read(self) -> RunRow | None:
        """Return the next row of this shard, good or not."""
        for index, raw in self._rows:
            self.read_rows = index + 1
            try:
                kind, row, is_own = self._checked(raw, index)
            except UnreadableTable:
                raise
            except InputError as exc:
                problem = str(exc)
            except (TypeError, ValueError, RecursionError) as exc:
                problem = f"a field cannot be written: {exc}"
            else:
                self._kind = kind
                if is_own:
                    return RunRow(index, row, self._key(row), kind, own=_own(raw))
                continue
            if self._is_own({"index": index}):
                kind = self._kind or ("item" if self._records.takes == "item" else "pair")
                return self._bad_row(index, raw, kind, problem)
        self.ended = True
        return None

    def judged_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a row that the judge receives."""
        return {field: row[field] for field in self._fields.given if field in row}

    def _keyed_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a row that its verdict may follow from."""
        return {field: row[field] for field in self._fields.keyed if field in row}

    def _checked(self, raw: object, index: int) -> tuple[RowKind, dict[str, object], bool]:
        """Return a good row's kind, its plain JSON, and whether this shard has it."""
        row = self._records.row(raw, index)
        # A judge of what was retrieved needs no output.
        kind = kind_in(row) or ("item" if self._records.takes == "item" else "pair")
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            check_task(row)
        elif kind == "pair":
            check_pair(row)
        json.dumps([row.get(name) for name in (*ANNOTATIONS, "id")])
        return kind, row, self._is_own(self._keyed_part(row))

    def _bad_row(self, index: int, raw: object, kind: RowKind, problem: str) -> RunRow:
        row_id = raw.get("id") if isinstance(raw, Mapping) else None
        row = {"id": row_id if isinstance(row_id, str) else None}
        key = self._key({"input": problem})
        return RunRow(index, row, key, kind, problem=problem, own=_own(raw))

    def _is_own(self, content: Mapping[str, object]) -> bool:
        """Return whether a row belongs to this run's shard, and count it."""
        own = self._shard is None or self._shard.holds(content)
        self.own_rows += own
        return own

    def _key(self, row: Mapping[str, object]) -> str:
        """Return a row's key under this judge; in a file, a repeated key gets a number."""
        content = self._keyed_part(row)
        data = json.dumps(
            [self._marks, content], sort_keys=True, ensure_ascii=True, default=str
        )
        digest = hashlib.sha256(data.encode()).digest()
        key = digest.hex()[:32]
        if not self._numbers_repeats:
            return key
        # A run keeps only eight bytes of each row it has judged.
        short = int.from_bytes(digest[:8])
        if short not in self._digests:
            self._digests.add(short)
            return key
        self._repeats[key] += 1
        return f"{key}-{self._repeats[key] + 1}"


def _own(raw: object) -> Mapping[str, object]:
    """Return a record's own columns, as far as it can be read."""
    if isinstance(raw, BadRecord):
        return raw.own
    return raw if isinstance(raw, Mapping) else {}
