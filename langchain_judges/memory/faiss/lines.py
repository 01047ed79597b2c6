"""The lines of a store's files: JSON with a checksum, or blanks where one was erased."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.memory.faiss.indexes import Vectors
from langchain_judges.memory.faiss.vector_rows import Entry, VectorRows

_SUM = b', "sum": '


class Change(NamedTuple):
    """A line of the log: a document that was added, or the id of one that was deleted."""

    id: str
    entry: Entry | None
    vector: Vectors | None


def document_line(entry: Entry, vector: Vectors) -> bytes:
    """Return the snapshot's line of a document; its checksum covers the vector too."""
    return _sealed(_plain(entry), vector.astype("<f4").tobytes())


def read_document(line: bytes, vector: Vectors) -> Entry:
    """Return the document of a snapshot's line.

    Raises:
        ValueError: The line or the vector is damaged.
    """
    return _entry(_unsealed(line, vector.astype("<f4").tobytes()))


def put_lines(entries: Sequence[Entry], vectors: Vectors) -> list[bytes]:
    """Return the log's lines for added documents."""
    return [
        _sealed({"put": _plain(entry), "vector": base64.b64encode(vector).decode()})
        for entry, vector in zip(entries, vectors.astype("<f4"), strict=True)
    ]


def drop_lines(ids: Iterable[str]) -> list[bytes]:
    """Return the log's lines for deleted documents."""
    return [_sealed({"drop": id}) for id in ids]


def read_change(line: bytes) -> Change:
    """Return what a line of the log says.

    Raises:
        ValueError: The line is damaged.
    """
    row = _unsealed(line)
    if "drop" in row:
        return Change(str(row["drop"]), None, None)
    try:
        entry = _entry(row["put"])
        vector = np.frombuffer(base64.b64decode(row["vector"]), "<f4").astype(np.float32)
    except (KeyError, TypeError) as exc:
        raise ValueError(f"it lacks {exc}") from exc
    return Change(entry.id, entry, vector)


def replay(rows: VectorRows, changes: Sequence[Change]) -> None:
    """Apply the log's changes, neighbouring additions in one go."""
    additions: dict[str, tuple[Entry, Vectors]] = {}
    for change in changes:
        additions.pop(change.id, None)
        if change.entry is not None and change.vector is not None:
            additions[change.id] = (change.entry, change.vector)
        else:
            rows.drop([change.id])
    if additions:
        entries, vectors = zip(*additions.values(), strict=True)
        rows.put(entries, np.stack(vectors).astype(np.float32))


def check_plain(entries: Iterable[Entry]) -> None:
    """Check that documents come back from JSON as they are.

    Raises:
        InputError: The metadata of one do not.
    """
    for entry in entries:
        try:
            json.dumps(_plain(entry))
        except (TypeError, ValueError, RecursionError) as exc:
            raise InputError(f"document {entry.id!r} cannot be written: {exc}") from exc


def _sealed(row: Mapping[str, object], beside: bytes = b"") -> bytes:
    body = json.dumps(row, ensure_ascii=True).encode()[:-1]
    return b"%b%b%d}\n" % (body, _SUM, zlib.crc32(beside, zlib.crc32(body)))


def _unsealed(line: bytes, beside: bytes = b"") -> dict[str, Any]:
    body, _, tail = line.rpartition(_SUM)
    if tail != b"%d}\n" % zlib.crc32(beside, zlib.crc32(body)):
        raise ValueError("a checksum does not fit")
    try:
        row: dict[str, Any] = json.loads(body + b"}")
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc
    return row


def _plain(entry: Entry) -> dict[str, object]:
    return {"id": entry.id, "page_content": entry.text, "metadata": entry.metadata}


def _entry(row: Mapping[str, Any]) -> Entry:
    try:
        return Entry(row["id"], row["page_content"], row["metadata"])
    except (KeyError, TypeError) as exc:
        raise ValueError(f"it is not a document: {exc}") from exc
