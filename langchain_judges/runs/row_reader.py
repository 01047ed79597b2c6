"""The rows of a run, one after the other: checked, of this shard, each with its key."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import RowKind, check_pair, check_task, kind_of_row
from langchain_judges.rows.labels import ANNOTATIONS
from langchain_judges.rows.messages import plain_row
from langchain_judges.runs.files.shards import Shard
from langchain_judges.runs.result_row import JUDGED
from langchain_judges.runs.run_row import RunRow

_JUDGED_FIELDS = (*JUDGED, "concepts", "instruction", "id")


class RowReader:
    """Reads the rows of a run.

    Args:
        rows: Pairs, items or tasks.
        marks: What decides the judge's verdicts; part of each key.
        shard: The shard whose rows are read; None reads them all.
        remembers: Whether the judge has a memory.
        numbers_repeats: Whether a repeated row gets a key of its own.
    """

    def __init__(
        self,
        rows: Iterable[object],
        marks: Mapping[str, object],
        shard: Shard | None,
        *,
        remembers: bool,
        numbers_repeats: bool,
    ) -> None:
        """Set what is read; nothing is read yet."""
        self.read_rows = self.own_rows = 0
        self.ended = False
        self._rows = enumerate(rows)
        self._marks = marks
        self._shard = shard
        # A memory must not recall examples of the item's group, so the judge needs it.
        self._fields = (*_JUDGED_FIELDS, "group") if remembers else _JUDGED_FIELDS
        self._numbers_repeats = numbers_repeats
        self._digests: set[int] = set()
        self._repeats: Counter[str] = Counter()
        self._kind: RowKind | None = None
        """Kind of the last valid row; None if there was none yet."""

    def next(self) -> RunRow | None:
        """Return the next row; an invalid one fails alone, unless no valid row has come yet.

        Raises:
            InputError: No valid row has come yet, so all rows may be invalid.
        """
        for index, raw in self._rows:
            self.read_rows = index + 1
            try:
                kind, row, is_own = self._checked(raw)
            except InputError as exc:
                problem, error = f"pair {index}: {exc}", exc
            except (TypeError, ValueError, RecursionError) as exc:
                problem = f"pair {index}: a field cannot be written: {exc}"
                error = InputError(problem)
            else:
                self._kind = kind
                if is_own:
                    return RunRow(index, row, self._key(row), kind)
                continue
            if self._kind is None:
                raise InputError(problem) from error
            if self._is_own({"index": index}):
                return self._bad_row(index, raw, self._kind, problem)
        self.ended = True
        return None

    def judged_part(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the fields of a row that the judge receives."""
        return {field: row[field] for field in self._fields if field in row}

    def _checked(self, raw: object) -> tuple[RowKind, dict[str, object], bool]:
        """Return a good row's kind, its plain JSON, and whether this shard has it."""
        if not isinstance(raw, Mapping):
            raise InputError(f"a pair must be an object, got {type(raw).__name__}")
        row = plain_row(raw)
        kind = kind_of_row(raw)
        # Only as far as every judge of its kind does; items are checked by theirs.
        if kind == "task":
            check_task(row)
        elif kind == "pair":
            check_pair(row)
        json.dumps([row.get(name) for name in (*ANNOTATIONS, "id")])
        return kind, row, self._is_own(self.judged_part(row))

    def _bad_row(self, index: int, raw: object, kind: RowKind, problem: str) -> RunRow:
        row_id = raw.get("id") if isinstance(raw, Mapping) else None
        row = {"id": row_id if isinstance(row_id, str) else None}
        return RunRow(index, row, self._key({"id": problem}), kind, problem=problem)

    def _is_own(self, content: Mapping[str, object]) -> bool:
        """Return whether a row belongs to this run's shard, and count it."""
        own = self._shard is None or self._shard.holds(content)
        self.own_rows += own
        return own

    def _key(self, row: Mapping[str, object]) -> str:
        """Return a row's key under this judge; in a file, a repeated key gets a number."""
        content = self.judged_part(row)
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
