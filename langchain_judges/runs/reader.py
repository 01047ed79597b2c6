"""The rows of a run: read one at a time, checked, keyed by what their verdict follows from."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping

from langchain_judges.errors import InputError
from langchain_judges.methods.describe import memories_of, unwrapped
from langchain_judges.rows.checks import ANNOTATIONS, RowKind, check_pair, check_task, kind_in
from langchain_judges.rows.lookup import OF_OUTPUT
from langchain_judges.runs.rows import JUDGED, RunRow
from langchain_judges.runs.shards import Shard
from langchain_judges.runs.sources import BadRecord, Records, UnreadableTable

_SHOWN = (*JUDGED, OF_OUTPUT, "concepts", "instruction", "task_kind")
"""What a prompt may follow from."""


def fields_of(judge: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a row that a judge receives, and those its verdict may follow from.

    A memory chooses its examples by id, family and group; a judge that is no graph of this
    package may read whatever it is given.
    """
    remembers = bool(memories_of(judge))
    given = (*_SHOWN, "id", "family", *(["group"] if remembers else []))
    return given, _SHOWN if not remembers and _shows_texts_alone(judge) else given


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
        judge: What it receives, and what its verdicts follow from.
        numbers_repeats: Whether a repeated row gets a key of its own.
    """

    def __init__(
        self,
        records: Records,
        marks: Mapping[str, object],
        shard: Shard | None,
        *,
        judge: object,
        numbers_repeats: bool,
    ) -> None:
        """Set what is read; nothing is read yet."""
        self.read_rows = self.own_rows = 0
        self.ended = False
        self._records = records
        self._rows = enumerate(records.source.records)
        self._marks = marks
        self._shard = shard
        self._given, self._keyed = fields_of(judge)
        self._numbers_repeats = numbers_repeats
        self._digests: set[int] = set()
        self._repeats: Counter[str] = Counter()
        self._kind: RowKind = "item" if records.takes == "item" else "pair"
        """Kind of the last good row; before the first, what the judge says it takes."""

    def next(self) -> RunRow | None:
        """Return the next row of this shard, good or not; None at the end."""
        for index, raw in self._rows:
            self.read_rows = index + 1
            problem = ""
            try:
                row, content = self._checked(raw, index)
                is_own = self._shard is None or self._shard.holds(content)
            except UnreadableTable:
                raise
            except InputError as exc:
                problem = str(exc)
            except (TypeError, ValueError, RecursionError) as exc:
                problem = f"a field cannot be written: {exc}"
            if problem:
                row_id = raw.get("id") if isinstance(raw, Mapping) else None
                row = {"id": row_id if isinstance(row_id, str) else None}
                content = {"input": problem}
                is_own = self._shard is None or self._shard.holds({"index": index})
            if is_own:
                self.own_rows += 1
                own = raw.own if isinstance(raw, BadRecord) else raw
                return RunRow(
                    *(index, row, self._key(content), self._kind),
                    problem=problem,
                    own=own if isinstance(own, Mapping) else {},
                )
        self.ended = True
        return None

    def judged_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a row that the judge receives."""
        return {field: row[field] for field in self._given if field in row}

    def _checked(self, raw: object, index: int) -> tuple[dict[str, object], dict[str, object]]:
        """Return a good row as plain JSON, and what its verdict may follow from."""
        row = self._records.row(raw, index)
        # A judge of what was retrieved needs no output.
        kind = kind_in(row) or ("item" if self._records.takes == "item" else "pair")
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            check_task(row)
        elif kind == "pair":
            check_pair(row)
        json.dumps([row.get(name) for name in (*ANNOTATIONS, "id")])
        self._kind = kind
        return row, {field: row[field] for field in self._keyed if field in row}

    def _key(self, content: Mapping[str, object]) -> str:
        """Return a row's key under this judge; in a file, a repeated key gets a number."""
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
