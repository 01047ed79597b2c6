"""Where a run's results go: a file here and, if it is named by a URL, its copy in a store."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_judges.errors import OptionError
from langchain_judges.runs.files.remote import Remote, url_of
from langchain_judges.runs.files.results import Results
from langchain_judges.runs.files.shards import Receipt, Shard

_TABLES = (".csv", ".tsv", ".parquet", ".xlsx")


class Place:
    """The results of a run or of one of its shards.

    Args:
        out: The file, with a shard the folder.
        shard: The share of the rows that is judged.

    Raises:
        OptionError: `out` is a table, or a URL that nothing here can reach.
        OutputError: `out` is a file where a shard needs a folder.
    """

    def __init__(self, out: str | os.PathLike[str], shard: Shard | None) -> None:
        """Check where it is; nothing is opened."""
        self._shard = shard
        url = url_of(out)
        if not shard and Path(out).suffix in _TABLES:
            raise OptionError(
                "`out` is written as JSONL, so that a run can resume; got "
                f"{Path(out).name!r}. Write {Path(out).with_suffix('.jsonl').name!r} and "
                "convert it by `langchain-judges merge`"
            )
        self._path = shard.part(out) if shard else Path(out)
        folder = url if shard else (url or "").rpartition("/")[0]
        self._remote = Remote(folder) if url and folder else None

    @property
    def path(self) -> Path:
        """The file on this machine."""
        return self._remote.folder / self._path.name if self._remote else self._path

    def open(self, mark: str, *, keep_failed: bool) -> Results:
        """Open the results of a judge; the receipt of a shard is withdrawn.

        Raises:
            OutputError: They cannot be read or written.
        """
        if self._remote:
            self._remote.fetch(self.path.name)
            self._remote.drop(Receipt.of(self.path).name)
            if not self.path.exists():
                # A store that takes nothing is found before a call is paid.
                self.path.touch()
                self._remote.push(self.path.name)
        results = Results(self.path, mark, keep_failed=keep_failed)
        if self._shard:
            Receipt.of(self.path).unlink(missing_ok=True)
        return results

    def appended(self) -> None:
        """Say that a row was written."""
        if self._remote:
            self._remote.push_when_due(self.path.name)

    def close(self, receipt: Receipt | None) -> None:
        """Copy the closed results to the store, and write the receipt of a complete shard."""
        if receipt:
            receipt.write(self.path)
        if self._remote:
            self._remote.push(self.path.name)
            if receipt:
                self._remote.push(Receipt.of(self.path).name)
            self._remote.close()
