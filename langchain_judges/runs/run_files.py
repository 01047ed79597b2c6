"""The files of a run: table, results, and replies to rows in progress."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from langchain_judges.asking.reply_log import REQUESTS, SHARING, ReplyStore, ScopeReplies
from langchain_judges.errors import OptionError
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.results import Results, write_receipt
from langchain_judges.runs.run_row import ResultRow
from langchain_judges.runs.shards import Receipt, Shard
from langchain_judges.runs.tables import TableOut, records_of, table_path

# Rows whose replies are dropped together: each time is a write.
_AT_ONCE = 64
# A path keeps one of the two slashes; a drive of Windows has one letter.
_URL = re.compile(r"[a-z][a-z0-9+.-]+:/{1,2}(?=[^/])")


def replies_beside(results: Path) -> Path:
    """The file of the replies to rows in progress, and of the requests that a run keeps."""
    return results.parent / f"{Results.prefix_of(results)}replies"


def requests_of(results: Path, key: str) -> list[Any]:
    """Each request of a row with its reply, `{"unit", "messages"}`, where the run kept them.

    Args:
        results: The results of the run, or their table.
        key: Of the row.

    Raises:
        OutputError: The run is not over, or the file cannot be read.
    """
    path = replies_beside(records_of(results).resolve())
    if not path.is_file():
        return []
    with closing(ReplyStore(path, shared=True, wait=0.2)) as store:
        found = dict(store.entries(f"{REQUESTS}{key}"))
    return [found[key] for key in sorted(found)]


class RunFiles:
    """The files of a run or of one of its shards; a run without `out` or `records` has none.

    Args:
        options: Of the run. Without `records` the results are kept as the table keeps them.
        shard: The share of the rows that is judged.

    Attributes:
        records: The results, where any are stored.

    Raises:
        OptionError: `out` is not a table that is written, or names the same file as `records`;
            one is a URL; or a shard has no `records`.
        OutputError: `records` is a file where a shard needs a folder.
    """

    def __init__(self, options: RunOptions, shard: Shard | None) -> None:
        """Check where they are; nothing is opened."""
        out, records = options.out, options.records
        for place in (str(each) for each in (out, records) if each is not None):
            if _URL.match(place):
                raise OptionError(f"`out` and `records` are files, on any disk, got {place!r}")
        self._keeps_requests = options.keep_requests
        self._table = TableOut(table_path(out), raw=options.raw) if out is not None else None
        self._results: Results | None = None
        self._replies: ReplyStore | None = None
        # Keys of rows that are stored, and whose replies are still kept.
        self._finished: list[str] = []
        self._shard = shard
        if shard and (out is not None or records is None):
            raise OptionError("`shard` needs `records`, the folder of the parts, and no `out`")
        if out is not None and records and Path(out).resolve() == Path(records).resolve():
            raise OptionError("`out` and `records` name the same file")
        self.records = self._table.records if self._table else None
        if records is not None:
            self.records = shard.part(records) if shard else Path(records)

    def open(self, mark: str, size: int | None) -> int:
        """Open the results of a judge; return how many rows of other judges they hold.

        The receipt of a shard is withdrawn.

        Args:
            mark: The judge's.
            size: How many rows the run has, if that is known.

        Raises:
            OutputError: They cannot be read or written.
        """
        with ExitStack() as undo:  # what is open would stay locked against the next run
            if self._table:
                self._table.open(mark, size)
                undo.callback(self._table.close, whole=False)
            undo.callback(self._free)
            others = self._open(self.records, mark) if self.records else 0
            undo.pop_all()
        return others

    def _open(self, path: Path, mark: str) -> int:
        results = self._results = Results(path, mark)
        if self._shard:
            Receipt.of(path).unlink(missing_ok=True)
        if path.is_file():  # no file can be written next to a device
            self._replies = ReplyStore(replies_beside(path))
            self._replies.keeps_requests = self._keeps_requests
            self._replies.forget(*filter(results.__contains__, self._replies.scopes()))
        return results.others

    def __contains__(self, key: str) -> bool:
        """Whether an earlier run finished this input."""
        return self._results is not None and key in self._results

    def read(self, key: str) -> ResultRow:
        """The result that an earlier run stored.

        Raises:
            KeyError: There is none.
            OutputError: The file was closed, or another program has changed it.
        """
        if self._results is None:
            raise KeyError(key)
        return self._results.read(key)

    def replies_to(self, key: str) -> ScopeReplies | None:
        """The replies to a row in progress; None if they are not stored."""
        return ScopeReplies(self._replies, key) if self._replies else None

    def append(self, result: ResultRow) -> None:
        """Store a result; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file was closed, or cannot take the row.
        """
        if self._results is None:
            return
        self._results.append(result)
        # Of a row that was not judged only what failed is asked again.
        if self._replies and result["judged"]:
            self._finished.append(result["key"])
            if len(self._finished) >= _AT_ONCE:
                self._forget(self._replies)

    def _forget(self, replies: ReplyStore) -> None:
        """Drop the replies to rows that are stored; after a kill the next run does."""
        finished, self._finished = self._finished, []
        replies.forget(*finished)

    def tabulate(
        self, own: Mapping[str, object], result: ResultRow, systems: Sequence[str] | None
    ) -> None:
        """Write a row of the table: the user's own columns, and those of the judge."""
        if self._table:
            self._table.add(own, result, systems)

    def close(self, receipt: Receipt | None, *, whole: bool) -> None:
        """Close the files; a complete shard gets its receipt.

        Args:
            receipt: Of a complete shard.
            whole: Whether the table has every row, and is put in its place.
        """
        with ExitStack() as last:
            if self._table:
                # It may fail; the receipt of what was paid must not.
                last.callback(self._table.close, whole=whole)
            if self._replies and whole:
                self._forget(self._replies)
                scopes = (each for each in self._replies.scopes() if each != SHARING)
                if all(each.startswith(REQUESTS) for each in scopes):
                    self._replies.forget(SHARING)
            if receipt and self._results:
                receipt = receipt._replace(stale=self._results.unread())
            self._free()
            if receipt and self._results:
                write_receipt(Receipt.of(self._results.path), "shard", receipt._asdict())

    def _free(self) -> None:
        """Close the results, even where what is beside them can no longer be read."""
        with ExitStack() as files:
            if self._results:
                files.callback(self._results.close)
            if self._replies:
                files.callback(self._replies.close)
                files.callback(self._forget, self._replies)
