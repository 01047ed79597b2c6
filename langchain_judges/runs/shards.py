"""One run over many machines: each writes the results of its shard to its own part.

A row's shard follows from its content, so that every machine reads the same file and needs no
coordination with the others. `merge` joins the parts into one table.

An object store neither appends nor locks. A run therefore fetches its file, appends to it on
this machine's disk, and copies it to the store every minute and at its end.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from langchain_judges.errors import OptionError, OutputError, needs
from langchain_judges.rows.files import whole_file
from langchain_judges.runs.results import read_receipt, row_in, write_receipt
from langchain_judges.runs.run_row import ResultRow, digest_of, judged_row
from langchain_judges.runs.tables import FORMS, records_of, write_results

PERIOD = 60.0
"""Seconds between two copies; a process that is killed loses what it judged since the last."""
# A path keeps one of the two slashes; a drive of Windows has one letter.
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])")


_PART = re.compile(r"part-(\d{5})-of-(\d{5})\.jsonl")


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


@dataclass(frozen=True)
class Shard:
    """One of `of` equal shares of the rows; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as `"3/16"` names.

        Raises:
            OptionError: The text does not name a shard.
        """
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise OptionError(f"`shard` must be NUMBER/OF, such as '3/16', got {text!r}")
        return shard

    def __str__(self) -> str:
        """Return the name of the shard."""
        return f"{self.number}/{self.of}"

    def holds(self, row: Mapping[str, object]) -> bool:
        """Return whether a row belongs to this shard; equal rows belong to the same shard."""
        return int.from_bytes(digest_of(row)[:8]) % self.of == self.number - 1

    def part(self, folder: str | os.PathLike[str]) -> Path:
        """Return the file of this shard's results in the folder of a run.

        Raises:
            OutputError: `folder` is a file.
        """
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise OutputError(
                f"With shards, results are written to a folder, but {place} is a file."
            )
        return place / f"part-{self.number:05}-of-{self.of:05}.jsonl"


class Receipt(NamedTuple):
    """Written by a shard when all of its rows are in its part.

    Attributes:
        mark: Of the judge and its settings.
        rows: Rows of the whole run, including other shards.
        own: Rows of this shard.
    """

    mark: str
    rows: int
    own: int

    @staticmethod
    def of(part: Path) -> Path:
        """Return the path of a part's receipt."""
        return part.with_suffix(".done.json")

    def write(self, part: Path) -> None:
        """Write the receipt of a complete part."""
        write_receipt(self.of(part), "shard", self._asdict())

    @classmethod
    def read(cls, part: Path) -> Receipt | None:
        """Return the receipt of a part; None if it has none yet.

        Raises:
            OutputError: The file is not a receipt.
        """
        found = read_receipt(cls.of(part), "shard", "run the shard again")
        return None if found is None else cls(**found)


def parts_of(folder: Path) -> Iterator[tuple[Path, Shard]]:
    """Return the parts in a folder, by number."""
    for path in sorted(folder.iterdir()):
        if name := _PART.fullmatch(path.name):
            yield path, Shard(int(name[1]), int(name[2]))


class Merged(NamedTuple):
    """The result of `merge`."""

    rows: int
    judged: int
    parts: int


def merge(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    whole: bool = True,
) -> Merged:
    """Join the parts of a sharded run, in the order of its rows, or convert a results file.

    Args:
        source: The folder that the shards wrote to, the records of a run, or its table; a
            path or a URL such as `s3://bucket/folder`.
        out: The table to write: `.jsonl` (unchanged rows), `.csv`, `.tsv` or `.parquet`.
        whole: Refuse the parts of a run that has not finished.

    Returns:
        The numbers of rows, judged rows and parts.

    Raises:
        OutputError: A part is missing or not finished, the parts are of different runs or
            `source` is of several judges, a row occurs twice, or `out` cannot be written.
        OptionError: The suffix of `out` is none of these.
        MissingExtraError: Parquet needs the extra `hub`.
    """
    if Path(out).suffix not in FORMS:
        raise OptionError(f"`out` must end in {', '.join(FORMS)}, got {Path(out).name!r}")
    with _fetched(source) as place:
        if (url := url_of(out)) is None:
            return _merge(place, Path(out), whole)
        remote, name = Remote(url.rpartition("/")[0]), Path(out).name
        merged = _merge(place, remote.folder / name, whole)
        remote.push(name)
        remote.close()
        return merged


@contextmanager
def _fetched(source: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the parts or the file to read; what is in an object store is fetched."""
    path = Path(source)
    if (url := url_of(source)) is None:
        yield path
        return
    is_file = path.suffix == ".jsonl"
    remote = Remote(url.rpartition("/")[0] if is_file else url)
    try:
        for name in [path.name] if is_file else remote.names():
            if name.endswith((".jsonl", ".done.json")):
                remote.fetch(name)
        yield remote.folder / path.name if is_file else remote.folder
    finally:
        remote.close()


def _merge(place: Path, target: Path, whole: bool) -> Merged:
    if not place.exists():
        raise OutputError(f"There is no {place}.")
    parts, mark = _parts(place, whole) if place.is_dir() else ([records_of(place)], None)
    if any(part.resolve() == target.resolve() for part in parts):
        raise OptionError(f"`out` is {target}, which is also read; name another file")
    places, judged = _places(parts, mark)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as draft:
            write_results(draft, _in_order(parts, places))
    except OSError as exc:
        raise OutputError(f"{target} cannot be written: {exc}") from exc
    return Merged(len(places), judged, len(parts))


def _parts(folder: Path, whole: bool) -> tuple[list[Path], str | None]:
    """Return the parts of one run and the mark of its judge, if a part is complete.

    Args:
        folder: Where they are.
        whole: Whether each must be complete.
    """
    parts = dict(parts_of(folder))
    sizes = {shard.of for shard in parts.values()}
    if len(sizes) != 1:
        raise OutputError(f"{folder} holds the parts of {len(sizes)} runs, and must of one.")
    (of,) = sizes
    shards = [Shard(number, of) for number in range(1, of + 1)]
    if lacking := [str(shard) for shard in shards if shard not in parts.values()]:
        raise OutputError(f"{folder} lacks the parts {', '.join(lacking)}.")
    receipts = {shard: Receipt.read(part) for part, shard in parts.items()}
    unfinished = [str(shard) for shard, receipt in receipts.items() if not receipt]
    if whole and unfinished:
        raise OutputError(
            f"Shards that have not finished: {', '.join(unfinished)}; run them again."
        )
    found = [receipt for receipt in receipts.values() if receipt]
    runs = {(receipt.mark, receipt.rows) for receipt in found}
    if whole and (len(runs) > 1 or sum(each.own for each in found) != found[0].rows):
        raise OutputError(
            f"The shards in {folder} are of different rows, judges or settings of a judge."
        )
    return list(parts), found[0].mark if found else None


def _places(
    parts: list[Path], wanted: str | None
) -> tuple[list[tuple[int, int, int, int]], int]:
    """Return index, part, offset and length of each row, by index; and how many are judged.

    Args:
        parts: Files of results.
        wanted: The mark of the judge whose rows they are of; None: of the only one.
    """
    places: list[tuple[int, int, int, int]] = []
    keys: set[str] = set()
    marks: set[str] = set()
    judged = 0
    for number, part in enumerate(parts):
        offset = 0
        with part.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                row = _parse(line, part, line_number)
                if wanted in (None, row["judge"]["mark"]):
                    if row["key"] in keys:
                        raise OutputError(f"{part}: row {row['index']} occurs twice.")
                    keys.add(row["key"])
                    marks.add(row["judge"]["mark"])
                    places.append((int(row["index"]), number, offset, len(line)))
                    judged += judged_row(row)
                offset += len(line)
    if len(marks) > 1 or not (places or wanted):
        raise OutputError(
            f"{parts[0]} holds results of {len(marks)} judges, and a table is of one"
        )
    return sorted(places), judged


def _parse(line: bytes, part: Path, number: int) -> ResultRow:
    if (row := row_in(line)) is None:
        raise OutputError(
            f"{part}, line {number}: not a result of a judge, or damaged; the run that wrote "
            "it sets such lines aside when it is resumed, and judges them again."
        )
    return row


def _in_order(
    parts: list[Path], places: list[tuple[int, int, int, int]]
) -> Iterator[ResultRow]:
    with ExitStack() as stack:
        files = [stack.enter_context(part.open("rb")) for part in parts]
        for _, number, offset, length in places:
            files[number].seek(offset)
            yield _parse(files[number].read(length), parts[number], 0)
