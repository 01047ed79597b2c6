"""Results in an object store: appended to a file here, which is copied there.

An object store neither appends nor locks. A run therefore fetches its file, appends to it on
this machine's disk, and copies it to the store every minute and at its end.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError, OutputError, needs

PERIOD = 60.0
"""Seconds between two copies; a process that is killed loses what it judged since the last."""
# A path keeps one of the two slashes; a drive of Windows has one letter.
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])")


def url_of(path: str | os.PathLike[str]) -> str | None:
    """Return a path as a URL if it is one, such as `s3://bucket/folder`.

    >>> url_of(Path("s3://bucket/folder")), url_of("out/verdicts.jsonl")
    ('s3://bucket/folder', None)
    """
    text = os.fspath(path)
    scheme = _URL.match(text)
    return f"{scheme[1]}://{text[scheme.end() :]}" if scheme else None


def _store_of(url: str) -> tuple[Any, str]:
    """Return the store of a URL, and the path in it.

    The store's own package is taken where it is installed, such as s3fs or gcsfs; else pyarrow,
    which speaks to S3 and Google's store by itself.
    """
    with needs("hub", "A path in an object store"):
        from fsspec.core import url_to_fs
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow.fs import FileSystem
    try:
        with suppress(ImportError):
            return url_to_fs(url)  # type: ignore[no-any-return]
        arrow, root = FileSystem.from_uri(url)
    except (ImportError, OSError, ValueError) as exc:
        raise OptionError(f"{url} cannot be used: {exc}") from exc
    return ArrowFSWrapper(arrow), root


class Remote:
    """A folder in an object store, and a folder on this machine with copies of its files.

    Every method raises `OutputError` where the store does not allow what it does.

    Args:
        url: Of the folder.
        clock: Tells when the next copy is due.

    Raises:
        OptionError: No package here speaks its protocol.
        MissingExtraError: fsspec is not installed.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Find the store; nothing is fetched."""
        self.url = url
        self._store, root = _store_of(url)
        self._root = root.rstrip("/")
        self._clock, self._last = clock, clock()
        self._copies = ThreadPoolExecutor(1, thread_name_prefix="copies")
        self._copy: Future[None] | None = None

    @cached_property
    def folder(self) -> Path:
        """The folder on this machine."""
        return Path(tempfile.mkdtemp(prefix="langchain-judges-"))

    def names(self) -> list[str]:
        """Return the names of the files in the store."""
        with self._named(self.url, "read"), suppress(FileNotFoundError):
            paths = self._store.ls(self._root, detail=False)
            return sorted(path.rpartition("/")[2] for path in paths)
        return []

    def fetch(self, name: str) -> Path:
        """Copy a file from the store, if it is there; return where it is on this machine."""
        place = self.folder / name
        with self._named(f"{self.url}/{name}", "read"):
            try:
                self._store.get_file(f"{self._root}/{name}", str(place))
            except FileNotFoundError:
                place.unlink(missing_ok=True)
        return place

    def push(self, name: str) -> None:
        """Copy a file to the store; an error says where it is here."""
        here, there = str(self.folder / name), f"{self._root}/{name}"
        with self._named(f"{self.url}/{name}", "written", f". The file is {here}"):
            try:
                self._store.put_file(here, there)
            except FileNotFoundError:
                # Some stores want the folder first; a bucket that is missing may be a typo.
                bucket = self._root.partition("/")[0]
                if bucket and not self._store.exists(bucket):
                    raise
                self._store.makedirs(self._root, exist_ok=True)
                self._store.put_file(here, there)

    def push_when_due(self, name: str) -> None:
        """Copy a file to the store, in another thread, if the last copy is old.

        A copy that fails is made again when the next one is due.
        """
        if self._clock() < self._last + PERIOD or (self._copy and not self._copy.done()):
            return
        self._last = self._clock()
        self._copy = self._copies.submit(self.push, name)

    def drop(self, name: str) -> None:
        """Delete a file from the store, if it is there."""
        if name in self.names():
            with self._named(f"{self.url}/{name}", "deleted"):
                self._store.rm_file(f"{self._root}/{name}")

    def close(self) -> None:
        """Wait for a copy that is being made, and delete the files on this machine."""
        self._copies.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _named(self, what: str, done: str, hint: str = "") -> Iterator[None]:
        """Say what of the store cannot be done.

        The packages of stores raise errors of their own, such as botocore's
        `NoCredentialsError`, that have no base in common but `Exception`.
        """
        try:
            yield
        except Exception as exc:  # see above
            raise OutputError(f"{what} cannot be {done}: {exc}{hint}") from exc
