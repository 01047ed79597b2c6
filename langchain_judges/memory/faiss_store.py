"""A LangChain vector store: rows in one SQLite file, vectors searched by FAISS in memory."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import NDArray

from langchain_judges.asking.embeddings import SentenceEmbeddings, identity_of
from langchain_judges.busy import busy
from langchain_judges.errors import InputError, OutputError
from langchain_judges.memory.document_file import (
    PART,
    DocumentFile,
    Row,
    file_of,
    without_collection,
)

Filter = Mapping[str, object]
"""Metadata that a document must have, `{"family": "maps", "round": {"$in": [1, 2]}}`."""
Metadata = dict[str, Any]
Vectors = NDArray[np.float32]
Keys = NDArray[np.int64]
Mask = NDArray[np.bool_]


def unit(vectors: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Return vectors as rows of length 1, so that their inner product is the cosine.

    Raises:
        InputError: They are not numbers, not finite, or not all of one length.
    """
    try:
        rows = np.array(vectors, dtype=np.float32, ndmin=2)
    except (TypeError, ValueError) as exc:
        raise InputError(f"vectors must be lists of numbers of one length: {exc}") from exc
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows)) if rows.ndim == 2 else np.array([np.nan])
    if not np.isfinite(norms).all():
        raise InputError("vectors must be lists of finite numbers")
    rows /= np.where(norms == 0, 1, norms)[:, None]
    return rows


class Contents(NamedTuple):
    """The documents of a store, for those who follow its changes."""

    last: int
    """For the next question."""
    added: list[tuple[str, Metadata]]
    ids: Mapping[str, int]
    """Every id that there is now."""


class _Field:
    """The values of a field of metadata, as numbers in the order of the rows."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[Hashable, int] = {}
        self.codes = np.zeros(0, np.int32)

    def append(self, rows: Iterable[Metadata]) -> None:
        """Add the values of rows; -1 where one has none."""
        numbers = self._numbers
        new = [
            numbers.setdefault(_token(row[self._name]), len(numbers))
            if self._name in row
            else -1
            for row in rows
        ]
        self.codes = np.append(self.codes, np.array(new, np.int32))

    def mask(self, values: Iterable[object]) -> Mask:
        """Return which rows have one of some values."""
        codes = [self._numbers[t] for t in map(_token, values) if t in self._numbers]
        return np.isin(self.codes, codes)


class _Index:
    """What a store keeps in memory of its rows, ascending by key."""

    def __init__(self) -> None:
        self.changes = -1
        self.embedder, self.width = "", 0
        self._clear()

    def _clear(self) -> None:
        self.faiss: Any = None
        self.last = self._last_removal = 0
        self.keys: Keys = np.zeros(0, np.int64)
        self.ids: dict[str, int] = {}
        self._rows: dict[int, tuple[str, bytes]] = {}
        self._fields: dict[str, _Field] = {}

    def follow(self, file: DocumentFile) -> None:
        """Take over what any process has changed.

        Raises:
            OutputError: Rows are missing, or are not of one width.
        """
        facts = file.facts()
        if facts.changes == self.changes:
            return
        self.width, self.embedder = facts.width, facts.embedder
        removals = file.removed(self._last_removal)
        self._drop([key for _, key in removals if key in self._rows])
        with without_collection():
            for rows in file.added(self.last):
                if any(len(vector) != 4 * self.width for *_, vector in rows):
                    raise OutputError(f"{file.path} is damaged: a vector has another width")
                self._append(rows)
        if len(self.keys) != facts.rows:
            found = len(self.keys)
            self._clear()
            raise OutputError(
                f"{file.path} is damaged: {found} of {facts.rows} rows can be read"
            )
        self.changes = facts.changes
        self._last_removal = removals[-1][0] if removals else self._last_removal

    def _append(self, added: Sequence[tuple[int, str, bytes, bytes]]) -> None:
        if self.faiss is None or self.faiss.d != self.width:
            import faiss

            self.faiss = faiss.IndexFlatIP(self.width)
        keys, ids, metadata, vectors = zip(*added, strict=True)
        self.faiss.add(np.frombuffer(b"".join(vectors), "<f4").reshape(-1, self.width))
        self.keys = np.append(self.keys, np.array(keys, np.int64))
        self.last = keys[-1]
        self.ids.update(zip(ids, keys, strict=True))
        self._rows.update(zip(keys, zip(ids, metadata, strict=True), strict=True))
        for field in self._fields.values():
            field.append(map(json.loads, metadata))

    def _drop(self, keys: Sequence[int]) -> None:
        if not keys:
            return
        places = np.searchsorted(self.keys, keys)
        self.faiss.remove_ids(places)
        self.keys = np.delete(self.keys, places)
        for field in self._fields.values():
            field.codes = np.delete(field.codes, places)
        for key in keys:
            id, _ = self._rows.pop(key)
            if self.ids.get(id) == key:
                del self.ids[id]

    def id(self, key: int) -> str:
        """Return the id of a row."""
        return self._rows[key][0]

    def metadata(self, keys: Sequence[int]) -> list[Metadata]:
        """Return the metadata of rows, to be kept or changed."""
        rows: list[Metadata] = []
        for start in range(0, len(keys), PART):
            texts = [self._rows[key][1] for key in keys[start : start + PART]]
            rows += json.loads(b"[%b]" % b",".join(texts))
        return rows

    def check(self, width: int) -> None:
        """Check that vectors of a width fit those that are here.

        Raises:
            InputError: They do not.
        """
        if width != self.width:
            raise InputError(
                f"vectors here have {self.width} numbers, got {width}: "
                "the store was filled by another embedding model"
            )

    def search(self, query: Vectors, k: int, where: Filter) -> list[tuple[int, float]]:
        """Return the keys of the `k` nearest rows and their cosines, best first.

        Args:
            query: One row of unit length.
            k: How many; fewer come if there are fewer.
            where: What their metadata must say.
        """
        mask = self._mask(where)
        k = min(k, int(mask.sum()))
        if k <= 0:
            return []
        self.check(query.shape[1])
        import faiss

        parameters = None
        if not mask.all():
            selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
            parameters = faiss.SearchParameters(sel=selector)
        scores, places = self.faiss.search(query, k, params=parameters)
        found = self.keys[places[0]]
        best = np.lexsort((found, -scores[0].round(6)))  # of equals the oldest first
        return list(zip(found[best].tolist(), scores[0][best].tolist(), strict=True))

    def note(self, fields: Sequence[str], rows: Sequence[Metadata]) -> None:
        """Note the values of fields, of the metadata of all rows."""
        for name in fields:
            field = self._fields[name] = _Field(name)
            field.append(rows)

    def _mask(self, where: Filter) -> Mask:
        """Return which rows have some metadata.

        Raises:
            InputError: A condition is of another form.
        """
        values = {name: _options(name, condition) for name, condition in where.items()}
        if new := [name for name in where if name not in self._fields]:
            self.note(new, self.metadata(self.keys.tolist()))
        mask = np.ones(len(self.keys), bool)
        for name, own in values.items():
            mask &= self._fields[name].mask(own)
        return mask


def _options(field: str, condition: object) -> Sequence[object]:
    """Return the values that a filter allows for a field."""
    if not isinstance(condition, Mapping) or not any(f"{key}"[:1] == "$" for key in condition):
        return [condition]
    if set(condition) == {"$in"} and isinstance(condition["$in"], list | tuple | set):
        return list(condition["$in"])
    raise InputError(
        f"a filter takes a value or {{'$in': [values]}} for {field!r}, got {condition!r}"
    )


def _token(value: object) -> Hashable:
    """Return what a metadata value is looked up by."""
    if value is None or isinstance(value, str | int | float):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=str))


class FaissStore(VectorStore):
    """Documents searched by the cosine of their embeddings, exactly.

    The rows live in one SQLite file; FAISS holds the vectors in memory and is brought up to
    date from the rows that changed. A change is on the disk when the call returns. Several
    processes may use one file: each sees at its next call what another has written, and
    writers take turns. Deleted texts leave the file and its log. Nothing is pickled, every row
    has a checksum, and the file names the embedder: texts are not embedded by another.

    Args:
        embedding: Embeds texts; default all-MiniLM-L6-v2.
        path: The file, made if it is missing; None or `":memory:"` keeps all in memory. While
            it is open, SQLite keeps its log beside it (`-wal`, `-shm`).

    Raises:
        OptionError: `path` is not the name of a file.
        OutputError: The file is not a store, is damaged, or cannot be opened.

    Example:
        >>> store = FaissStore(path="memory.db")  # doctest: +SKIP
        >>> store.add_texts(["The moon pulls the sea."], [{"topic": "tides"}])  # doctest: +SKIP
        >>> store.similarity_search("ebb", k=1, filter={"topic": "tides"})  # doctest: +SKIP
    """

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the store, or make it."""
        self._file, self._index = DocumentFile(file_of(path)), _Index()
        self._embedding = embedding or SentenceEmbeddings()
        self._embedder = identity_of(self._embedding)
        with self._reading():
            pass

    @property
    def path(self) -> Path | None:
        """The store's file."""
        return self._file.path

    @property
    def embeddings(self) -> Embeddings:
        """What embeds the texts."""
        return self._embedding

    def __len__(self) -> int:
        """Return how many documents there are."""
        with self._reading() as index:
            return len(index.keys)

    def __bool__(self) -> bool:
        """Return True: an empty store is a store too."""
        return True

    def changes(self) -> int:
        """Return a number that changes with every change, by this or another process."""
        with self._reading() as index:
            return index.changes

    def contents(self, last: int, fields: Sequence[str]) -> Contents:
        """Return what was added since the last question, and every id that is there now.

        Args:
            last: Of the last answer; 0 at first.
            fields: Metadata by which searches will be filtered.
        """
        with self._reading() as index:
            keys = index.keys[np.searchsorted(index.keys, last, "right") :].tolist()
            rows = index.metadata(keys)
            if not last:
                index.note(fields, rows)
            added = list(zip(map(index.id, keys), rows, strict=True))
            return Contents(index.last, added, index.ids.copy())

    def check_embedder(self) -> None:
        """Check that the vectors in the file come from the same embedder.

        Raises:
            InputError: They do not.
        """
        with self._reading() as index:
            self._check_embedder(index)

    def nearest(self, embedding: Sequence[float], k: int, where: Filter) -> list[str]:
        """Return the ids of the `k` documents nearest to an embedding, best first."""
        vector = unit([embedding])
        with self._reading() as index:
            return [index.id(key) for key, _ in index.search(vector, k, where)]

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **_: object
    ) -> list[str]:
        """Add documents and return their ids; one whose id is known replaces the old one.

        Args:
            documents: The documents; their metadata must be JSON.
            ids: Their ids; default the documents' own, or new ones.

        Raises:
            InputError: Ids and documents differ in number, metadata is no JSON, or the
                embedder is not the one whose vectors are here.
            OutputError: The file cannot be written.
        """
        names = _names(documents, ids)
        # Of one id that is given twice, the last document counts.
        distinct = dict(zip(names, documents, strict=True))
        if distinct:
            texts = [_checked(document).page_content for document in distinct.values()]
            vectors = unit(self._embedding.embed_documents(texts))
            if len(vectors) != len(distinct):
                raise InputError(f"{len(vectors)} embeddings came for {len(distinct)} texts")
            self._put(
                [
                    Row(id, each.metadata, vector.astype("<f4").tobytes(), each.page_content)
                    for (id, each), vector in zip(distinct.items(), vectors, strict=True)
                ],
                vectors.shape[1],
            )
        return names

    def delete(self, ids: list[str] | None = None, **_: object) -> bool:
        """Delete documents by id, all of them without `ids`; unknown ids are no error.

        Raises:
            OutputError: The file cannot be written.
        """
        with self._changing() as index:
            known = dict.fromkeys(index.ids if ids is None else ids)
            keys = sorted(index.ids[id] for id in known if id in index.ids)
            if keys:
                self._file.remove(keys)
        if keys:
            self._file.erase()
        return True

    def erase(self) -> None:
        """Take what killed processes deleted out of the log too; `delete` does it by itself.

        Raises:
            OutputError: Another process keeps reading the log.
        """
        self._file.erase()

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents by id, in the order of `ids`; unknown ids are left out."""
        with self._reading() as index:
            return self._documents([index.ids[id] for id in ids if id in index.ids])

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the `k` documents nearest to a text, best first.

        Args:
            query: The text.
            k: How many.
            **options: `filter`, the metadata that they must have: a value, or
                `{"$in": [values]}`.
        """
        return [hit for hit, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents with their cosines, from -1 to 1, best first."""
        return self._nearest(self._embedded(query), k, **options) if len(self) else []

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **options: Any
    ) -> list[Document]:
        """Return the `k` documents nearest to an embedding, best first."""
        return [hit for hit, _ in self._nearest(embedding, k, **options)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(1.0, max(0.0, cosine))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **options: Any,
    ) -> FaissStore:
        """Make a store of texts; `options` are the constructor's."""
        store = cls(embedding, **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @contextmanager
    def _reading(self) -> Iterator[_Index]:
        with self._file.transaction(write=False):
            # The first time all of it is read.
            with nullcontext() if len(self._index.keys) else busy("Reading the memory"):
                self._index.follow(self._file)
            yield self._index

    @contextmanager
    def _changing(self) -> Iterator[_Index]:
        with self._file.transaction(write=True):
            self._index.follow(self._file)
            yield self._index

    def _put(self, rows: Sequence[Row], width: int) -> None:
        with self._changing() as index:
            self._check_embedder(index)
            replaced = [index.ids[row.id] for row in rows if row.id in index.ids]
            if len(index.keys) > len(replaced):
                index.check(width)
            if replaced:
                self._file.remove(replaced)
            self._file.add(rows, self._embedder, width)
        if replaced:
            self._file.erase()

    def _check_embedder(self, index: _Index) -> None:
        if len(index.keys) and index.embedder != self._embedder:
            raise InputError(
                f"the vectors in {self.path} come from {index.embedder}, and this is "
                f"{self._embedder}: open it with that embedder, or fill a new file"
            )

    def _embedded(self, query: str) -> list[float]:
        self.check_embedder()
        return self._embedding.embed_query(query)

    def _nearest(
        self, embedding: Sequence[float], k: int, *, filter: Filter | None = None, **_: object
    ) -> list[tuple[Document, float]]:
        vector = unit([embedding])
        with self._reading() as index:
            hits = index.search(vector, k, filter or {})
            documents = self._documents([key for key, _ in hits])
            return [(each, score) for each, (_, score) in zip(documents, hits, strict=True)]

    def _documents(self, keys: Sequence[int]) -> list[Document]:
        """Return documents of their own; within a transaction."""
        parts = zip(keys, self._index.metadata(keys), self._file.texts(keys), strict=True)
        return [
            Document(id=self._index.id(key), page_content=text, metadata=metadata)
            for key, metadata, text in parts
        ]


def _checked(document: Document) -> Document:
    try:
        json.dumps(document.metadata)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InputError(f"the metadata of a document must be JSON: {exc}") from exc
    return document


def _names(documents: Sequence[Document], ids: Sequence[str | None] | None) -> list[str]:
    names = [document.id for document in documents] if ids is None else list(ids)
    if len(names) != len(documents):
        raise InputError(f"{len(names)} ids were given for {len(documents)} documents")
    return [id or str(uuid.uuid4()) for id in names]
