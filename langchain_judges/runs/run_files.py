"""The files of a run: results, replies to rows in progress, and the copy in a store."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_judges.asking.store import ReplyStore, ScopeReplies
from langchain_judges.errors import OptionError
from langchain_judges.runs.remote import Remote, url_of
from langchain_judges.runs.results import Results
from langchain_judges.runs.rows import ResultRow
from langchain_judges.runs.shards import Receipt, Shard
from langchain_judges.runs.tables import FORMS, TableOut


def table_of(out: str | os.PathLike[str] | None) -> TableOut | None:
    """Return the table that `out` names.

    Raises:
        OptionError: It has a form that is not written, or is not on this machine.
    """
    if out is None:
        return None
    if url_of(out):
        raise OptionError(
            f"`out` is a table on this machine, got {str(out)!r}; `records` takes a URL, and "
            "`langchain-judges merge` makes a table of it"
        )
    if Path(out).suffix not in FORMS:
        forms = ", ".join(sorted(FORMS))
        raise OptionError(f"`out` must end in {forms}, got {Path(out).name!r}")
    return TableOut(Path(out))


class RunFiles:
    """The files of a run or of one of its shards; a run without `out` has none.

    Args:
        records: The file of results, with a shard the folder; None stores nothing.
        shard: The share of the rows that is judged.

    Raises:
        OptionError: `records` is a URL that nothing here can reach; or a shard has no
            `records`.
        OutputError: `records` is a file where a shard needs a folder.
    """

    def __init__(self, records: str | os.PathLike[str] | None, shard: Shard | None) -> None:
        """Check where they are; nothing is opened."""
        self._shard = shard
        self._results: Results | None = None
        self._replies: ReplyStore | None = None
        self._records: Path | None = None
        self._path = Path()
        """The results on this machine, once they are open."""
        self._remote: Remote | None = None
        if records is None:
            if shard:
                raise OptionError("`shard` needs `records`, the folder of the parts")
            return
        url = url_of(records)
        self._records = shard.part(records) if shard else Path(records)
        folder = url if shard else (url or "").rpartition("/")[0]
        self._remote = Remote(folder) if url and folder else None

    def open(self, mark: str) -> int:
        """Open the results of a judge; return how many rows of other judges they hold.

        The receipt of a shard is withdrawn.

        Raises:
            OutputError: They cannot be read or written.
        """
        if self._records is None:
            return 0
        path = self._path = (
            self._remote.folder / self._records.name if self._remote else self._records
        )
        if self._remote:
            self._remote.fetch(path.name)
            self._remote.drop(Receipt.of(path).name)
            if not path.exists():
                # A store that takes nothing is found before a call is paid.
                path.touch()
                self._remote.push(path.name)
        self._results = Results(path, mark)
        try:
            self._open_beside(path, self._results)
        except BaseException:
            self._free()  # they would stay locked against the next run
            raise
        return self._results.others

    def _open_beside(self, path: Path, results: Results) -> None:
        """Open what stands beside the results."""
        if self._remote and results.aside.exists():
            self._remote.push(results.aside.name)
        if self._shard:
            Receipt.of(path).unlink(missing_ok=True)
        if path.is_file():  # no file can be written next to a device
            self._replies = ReplyStore(path.parent / f"{Results.prefix_of(path)}replies")
            for scope in self._replies.scopes():
                if scope in results:
                    self._replies.forget(scope)

    def __contains__(self, key: str) -> bool:
        """Return whether an earlier run finished this input."""
        return self._results is not None and key in self._results

    def read(self, key: str) -> ResultRow:
        """Return the result that an earlier run stored.

        Raises:
            KeyError: There is none.
            OutputError: The file was closed, or another program has changed it.
        """
        if self._results is None:
            raise KeyError(key)
        return self._results.read(key)

    def replies_to(self, key: str) -> ScopeReplies | None:
        """Return the replies to a row in progress; None if they are not stored."""
        return self._replies.of(key) if self._replies else None

    def append(self, result: ResultRow) -> None:
        """Store a result; when this returns, it survives the death of the process.

        Raises:
            OutputError: The file was closed, or cannot take the row.
        """
        if self._results is None:
            return
        self._results.append(result)
        if self._remote:
            self._remote.push_when_due(self._path.name)
        # Of a row that was not judged only what failed is asked again.
        if self._replies and result["judged"]:
            self._replies.forget(result["key"])

    def close(self, receipt: Receipt | None) -> None:
        """Close the files and copy them to the store; a complete shard gets its receipt."""
        if self._results is None:
            return
        self._free()
        if receipt:
            receipt.write(self._path)
        if self._remote:
            self._remote.push(self._path.name)
            if receipt:
                self._remote.push(Receipt.of(self._path).name)
            self._remote.close()

    def _free(self) -> None:
        """Close the files on this machine, even where one can no longer be read."""
        try:
            if self._replies:
                self._replies.close()
        finally:
            if self._results is not None:
                self._results.close()
