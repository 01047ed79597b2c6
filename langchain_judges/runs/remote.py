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
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError, OutputError, needs

PERIOD = 60.0
"""Seconds between two copies; a process that is killed loses what it judged since the last."""
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])")
"""A path keeps one of the two slashes; a drive of Windows has one letter."""


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
        try:
            store, root = url_to_fs(url)
        except ImportError:
            arrow, root = FileSystem.from_uri(url)
            store = ArrowFSWrapper(arrow)
    except (ImportError, OSError, ValueError) as exc:
        raise OptionError(f"{url} cannot be used: {exc}") from exc
    return store, str(root)


class Remote:
    """A folder in an object store, and a folder on this machine with copies of its files.

    The packages of stores raise errors of their own, such as botocore's `NoCredentialsError`,
    that have no base in common but `Exception`; all become `OutputError`.

    Args:
        url: Of the folder.
        clock: Tells when the next copy is due.

    Raises:
        OptionError: No package here speaks its protocol.
        MissingExtraError: fsspec is not installed.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Find the store; nothing is fetched."""
        store, root = _store_of(url)
        self.store = store
        self.url = url
        self._root = root.rstrip("/")
        self._clock = clock
        self._last = clock()
        self._copies = ThreadPoolExecutor(1, thread_name_prefix="copies")
        self._copy: Future[None] | None = None

    @cached_property
    def folder(self) -> Path:
        """The folder on this machine."""
        return Path(tempfile.mkdtemp(prefix="langchain-judges-"))

    def names(self) -> list[str]:
        """Return the names of the files in the store."""
        try:
            return sorted(
                path.rpartition("/")[2] for path in self.store.ls(self._root, detail=False)
            )
        except FileNotFoundError:
            return []
        except Exception as exc:  # each store raises errors of its own library
            raise OutputError(f"{self.url} cannot be read: {exc}") from exc

    def fetch(self, name: str) -> Path:
        """Copy a file from the store, if it is there; return where it is on this machine."""
        place = self.folder / name
        try:
            self.store.get_file(self._path(name), str(place))
        except FileNotFoundError:
            place.unlink(missing_ok=True)
        except Exception as exc:  # each store raises errors of its own library
            raise OutputError(f"{self.url}/{name} cannot be read: {exc}") from exc
        return place

    def push(self, name: str) -> None:
        """Copy a file to the store.

        Raises:
            OutputError: It cannot be written there; the message says where it is here.
        """
        try:
            self._put(name)
        except Exception as exc:  # each store raises errors of its own library
            raise OutputError(
                f"{self.url}/{name} cannot be written: {exc}. The file is {self.folder / name}"
            ) from exc

    def _put(self, name: str) -> None:
        here, there = str(self.folder / name), self._path(name)
        try:
            self.store.put_file(here, there)
        except FileNotFoundError:
            # Some stores want the folder first; a bucket that is missing may be a typo.
            bucket = self._root.partition("/")[0]
            if bucket and not self.store.exists(bucket):
                raise
            self.store.makedirs(self._root, exist_ok=True)
            self.store.put_file(here, there)

    def push_when_due(self, name: str) -> None:
        """Copy a file to the store, in another thread, if the last copy is old.

        A copy that fails is made again when the next one is due.
        """
        if self._clock() < self._last + PERIOD or (self._copy and not self._copy.done()):
            return
        self._last = self._clock()
        self._copy = self._copies.submit(self.push, name)

    def drop(self, name: str) -> None:
        """Delete a file from the store, if it is there.

        Raises:
            OutputError: The store does not allow it.
        """
        if name not in self.names():
            return
        try:
            self.store.rm_file(self._path(name))
        except Exception as exc:  # each store raises errors of its own library
            raise OutputError(f"{self.url}/{name} cannot be deleted: {exc}") from exc

    def close(self) -> None:
        """Wait for a copy that is being made, and delete the files on this machine."""
        self._copies.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
