"""The manifest of a store: which files are its current ones, and what must be true of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
from typing_extensions import TypedDict

from langchain_judges.errors import OutputError
from langchain_judges.memory.faiss import plain_files
from langchain_judges.memory.faiss.indexes import FaissIndex, Vectors

FORMAT = 2
_MOST = 1 << 16
"""Bytes that a manifest may have."""


class IndexFile(TypedDict):
    """What must be true of the index's file."""

    bytes: int
    vectors: int
    """Where the vectors begin, in the order of the documents; 0: not in one row."""
    sha256: str
    """Of the bytes before the vectors; each vector is covered by its document's checksum."""


class DocumentsFile(TypedDict):
    """What must be true of the documents' file."""

    bytes: int


class Manifest(TypedDict):
    """What stands in `manifest.json`."""

    format: int
    generation: int
    dimension: int | None
    """Numbers in a vector; None before the first one."""
    embedder: str
    """What the vectors come from, such as `OpenAIEmbeddings(model='…')`."""
    count: int
    index: IndexFile
    documents: DocumentsFile


def new(
    generation: int, embedder: str, blob: bytes, vectors: Vectors, documents: int
) -> Manifest:
    """Return the manifest of a snapshot."""
    tail = vectors.astype("<f4").tobytes()
    start = len(blob) - len(tail) if tail and blob.endswith(tail) else 0
    # The graph of an HNSW index needs its deleted vectors.
    if not blob.startswith(b"IxFI"):
        start = 0
    return {
        "format": FORMAT,
        "generation": generation,
        "dimension": vectors.shape[1] if len(vectors) else None,
        "embedder": embedder,
        "count": len(vectors),
        "index": {
            "bytes": len(blob),
            "vectors": start,
            "sha256": hashlib.sha256(blob[: start or None]).hexdigest(),
        },
        "documents": {"bytes": documents},
    }


def line(manifest: Manifest) -> bytes:
    """Return a manifest as it is written."""
    return json.dumps(manifest).encode() + b"\n"


def read(path: Path) -> Manifest:
    """Return the manifest of a folder.

    Raises:
        FileNotFoundError: There is none.
        OutputError: It is not one, or of another format.
    """
    try:
        manifest = json.loads(plain_files.read(path, most=_MOST))
        version = manifest["format"]
        is_valid = version != FORMAT or _is_valid(manifest)
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise OutputError(f"{path} is not the manifest of a store") from exc
    if not is_valid:
        raise OutputError(f"{path} is not the manifest of a store")
    if version != FORMAT:
        raise OutputError(
            f"{path} is of format {str(version)[:20]}; this version reads format {FORMAT}"
        )
    return cast("Manifest", manifest)


def _is_valid(manifest: Any) -> bool:
    numbers = (
        *(manifest[name] for name in ("generation", "count")),
        *(manifest["index"][name] for name in ("bytes", "vectors")),
        manifest["documents"]["bytes"],
        0 if manifest["dimension"] is None else manifest["dimension"],
    )
    texts = (manifest["embedder"], manifest["index"]["sha256"])
    return all(type(number) is int and 0 <= number < 1 << 50 for number in numbers) and all(
        isinstance(text, str) for text in texts
    )


def open_index(manifest: Manifest, blob: bytes) -> FaissIndex:
    """Return the FAISS index of a snapshot.

    Raises:
        ValueError: It is damaged; FAISS may also raise a RuntimeError.
    """
    import faiss

    start = manifest["index"]["vectors"]
    if hashlib.sha256(blob[: start or None]).hexdigest() != manifest["index"]["sha256"]:
        raise ValueError("the checksum of the index does not fit")
    index: FaissIndex = faiss.deserialize_index(np.frombuffer(blob, np.uint8))
    if manifest["count"] != index.ntotal or (index.ntotal and index.d != manifest["dimension"]):
        raise ValueError("the index and the manifest do not match")
    return index
