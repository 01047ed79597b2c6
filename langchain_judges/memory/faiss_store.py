"""A LangChain vector store: rows in one SQLite file, vectors searched by FAISS in memory."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from numpy.typing import NDArray

from langchain_judges.asking.effects import without_collection
from langchain_judges.asking.embeddings import SentenceEmbeddings, Vectors, identity_of
from langchain_judges.errors import InputError, OutputError
from langchain_judges.memory import document_file, example
from langchain_judges.progress import busy

# Metadata that a document must have, such as `{"family": "maps"}`.
Filter = Mapping[str, object]
Metadata = dict[str, Any]
Mask = NDArray[np.bool_]
# Conditions of filters that are kept.
_MASKS = 64
# Texts of one call of an embedder, whose lists of numbers take eight times the room of arrays.
_AT_ONCE = 1_000


def unit(vectors: Sequence[Sequence[float]] | Vectors) -> Vectors:
    """Vectors as rows of length 1, so that their inner product is the cosine.

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


class _Index:
    """Rows of a store in memory, ascending by key."""

    def __init__(self) -> None:
        self.changes = -1
        self.embedder, self.width = "", 0
        self._clear()

    def _clear(self) -> None:
        self.faiss: Any = None
        self.last = self._last_removal = 0
        self.keys: NDArray[np.int64] = np.zeros(0, np.int64)
        self.ids: dict[str, int] = {}
        self.removed: list[str] = []
        # Id, metadata and text of each document by its key.
        self.rows: dict[int, tuple[str, Metadata, str]] = {}
        self._masks: dict[str, Mask] = {}

    def follow(self, file: document_file.DocumentFile) -> None:
        """Apply the changes of all processes.

        Raises:
            OutputError: Rows are missing, or are not of one width.
        """
        facts = file.facts()
        if facts.changes == self.changes:
            return
        self.width, self.embedder = facts.width, facts.embedder
        self._masks.clear()
        removals = file.removed(self._last_removal)
        self._drop([key for _, key in removals if key in self.rows])
        with without_collection():  # it takes half of the time, and all that is read stays
            for rows in file.added(self.last):
                if sum(len(vector) for *_, vector in rows) != 4 * self.width * len(rows):
                    raise OutputError(f"{file.path} is damaged: a vector has another width")
                self._append(rows)
        if len(self.keys) != facts.rows:
            found = f"{len(self.keys)} of {facts.rows} rows"
            self._clear()
            raise OutputError(f"{file.path} is damaged: {found} can be read")
        self.changes = facts.changes
        self._last_removal = removals[-1][0] if removals else self._last_removal

    def _append(self, added: Sequence[tuple[int, bytes, bytes]]) -> None:
        if self.faiss is None or self.faiss.d != self.width:
            import faiss

            self.faiss = faiss.IndexFlatIP(self.width)
        keys, documents, vectors = zip(*added, strict=True)
        self.faiss.add(np.frombuffer(b"".join(vectors), "<f4").reshape(-1, self.width))
        self.keys = np.append(self.keys, np.array(keys, np.int64))
        self.last = keys[-1]
        rows = json.loads(b"[%b]" % b",".join(documents))
        self.rows.update(zip(keys, rows, strict=True))
        self.ids.update((id, key) for key, (id, *_) in zip(keys, rows, strict=True))

    def _drop(self, keys: Sequence[int]) -> None:
        if not keys:
            return
        places = np.searchsorted(self.keys, keys)
        self.faiss.remove_ids(places)
        self.keys = np.delete(self.keys, places)
        for key in keys:
            id = self.rows.pop(key)[0]
            self.removed.append(id)
            if self.ids.get(id) == key:
                del self.ids[id]

    def check(self, width: int) -> None:
        """Check that vectors of this width fit the stored ones.

        Raises:
            InputError: They do not.
        """
        if width != self.width:
            raise InputError(example.ERRORS["width"].format(own=self.width, got=width))

    def search(self, query: Vectors, k: int, where: Filter) -> list[tuple[int, float]]:
        """The keys of the `k` nearest rows and their cosines, best first.

        Args:
            query: One row of unit length.
            k: How many to return at most.
            where: The metadata that they must have.
        """
        mask = np.ones(len(self.keys), bool)
        for name, value in where.items():
            mask &= self._mask(name, value)
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

    def _mask(self, name: str, value: object) -> Mask:
        """A mask of the rows with a value of a field; kept until the rows change.

        Raises:
            InputError: The value is a condition in another store's language.
        """
        if isinstance(value, Mapping):
            raise InputError(f"a filter takes a value for {name!r}, got {value!r}")
        condition = f"{name}={value!r}"
        if condition not in self._masks:
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            has = (name in row and row[name] == value for _, row, _ in self.rows.values())
            self._masks[condition] = np.fromiter(has, bool, len(self.rows))
        return self._masks[condition]


class FaissStore(VectorStore):
    """Documents searched by the cosine of their embeddings, exactly.

    The rows live in one SQLite file; FAISS holds the vectors in memory and is brought up to
    date from the rows that changed. A change is on the disk when the call returns. Several
    processes may use one file: each sees at its next call what another has written, and
    writers take turns. Deleted texts are erased from the file and its log. Nothing is pickled,
    every row has a checksum, and the file names its embedder, so that no other can add to it.

    Args:
        embedding: Embeds texts; default all-MiniLM-L6-v2.
        path: The file, created if it is missing; None keeps all in memory. While
            it is open, SQLite keeps its log next to it (`-wal`, `-shm`).

    Attributes:
        path: The store's file.

    Raises:
        OptionError: `path` is not the name of a file.
        OutputError: The file is not a store, is damaged, or cannot be opened.

    Example:
        >>> store = FaissStore(path="memory.db")  # doctest: +SKIP
        >>> store.add_texts(["The moon pulls the sea."], [{"topic": "tides"}])  # doctest: +SKIP
        >>> store.similarity_search("ebb", k=1, filter={"topic": "tides"})  # doctest: +SKIP
    """

    def __init__(
        self, embedding: Embeddings | None = None, *, path: str | os.PathLike[str] | None = None
    ) -> None:
        """Open the store, or create it."""
        self._file, self._index = document_file.DocumentFile(document_file.file_of(path)), _Index()
        self.path = self._file.path
        self._embedding = embedding or SentenceEmbeddings()
        self._embedder = identity_of(self._embedding)
        with self._following():
            pass

    @property
    def embeddings(self) -> Embeddings:
        """Embedder of the texts."""
        return self._embedding

    def __len__(self) -> int:
        """Number of documents."""
        with self._following() as index:
            return len(index.rows)

    def __bool__(self) -> bool:
        """True: an empty store is a store too."""
        return True

    def changes_since(
        self, place: tuple[int, int]
    ) -> tuple[tuple[int, int], list[tuple[str, Metadata]], list[str]]:
        """The additions and removals since an earlier call.

        Args:
            place: How far earlier calls have read, as the last one returned it; (0, 0) at
                first.

        Returns:
            The place for the next call, ids and metadata of what was added, and ids of what was
            removed. An id in both was removed first.
        """
        last, removals = place
        with self._following() as index:
            keys = index.keys[np.searchsorted(index.keys, last, "right") :].tolist()
            added = [index.rows[key][:2] for key in keys]
            return (index.last, len(index.removed)), added, index.removed[removals:]

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **_: object
    ) -> list[str]:
        """Add documents and return their ids; one whose id is known replaces the old one.

        Args:
            documents: The documents; their metadata must be JSON.
            ids: Their ids; default the documents' own, or new ones.

        Raises:
            InputError: Ids and documents differ in number, metadata is not JSON, or the
                embedder is not the one that made the stored vectors.
            OutputError: The file cannot be written.
        """
        given = [document.id for document in documents] if ids is None else ids
        if len(given) != len(documents):
            raise InputError(f"{len(given)} ids were given for {len(documents)} documents")
        names = [id or str(uuid.uuid4()) for id in given]
        # Of one id that is given twice, the last document counts.
        if distinct := dict(zip(names, documents, strict=True)):
            self._add(distinct)
        return names

    def _add(self, documents: Mapping[str, Document]) -> None:
        texts = [each.page_content for each in documents.values()]
        rows = ((id, each.metadata, each.page_content) for id, each in documents.items())
        try:
            data = [json.dumps(row).encode() for row in rows]
        except (TypeError, ValueError, RecursionError) as exc:
            raise InputError(f"the metadata of a document must be JSON: {exc}") from exc
        parts = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
        found = (unit(self._embedding.embed_documents(part)) for part in parts)
        vectors = unit([vector for some in found for vector in some]).astype("<f4")
        if len(vectors) != len(texts):
            raise InputError(f"{len(vectors)} embeddings came for {len(texts)} texts")
        width = vectors.shape[1]
        with self._following(write=True) as index:
            self._check_embedder(index)
            replaced = [index.ids[id] for id in documents if id in index.ids]
            if len(index.keys) > len(replaced):
                index.check(width)
            self._file.remove(replaced)
            self._file.add(zip(data, map(bytes, vectors), strict=True), self._embedder, width)
        if replaced:
            self._file.erase()

    def delete(self, ids: list[str] | None = None, **_: object) -> bool:
        """Delete documents by id, or all of them without `ids`; unknown ids are ignored.

        Raises:
            OutputError: The file cannot be written, or another process keeps reading its log.
        """
        with self._following(write=True) as index:
            known = index.ids if ids is None else ids
            self._file.remove(sorted({index.ids[id] for id in known if id in index.ids}))
        self._file.erase()  # what a killed process deleted too
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents by id, in the order of `ids`; unknown ids are left out."""
        with self._following() as index:
            return self._documents([index.ids[id] for id in ids if id in index.ids])

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """The `k` documents nearest to a text, best first.

        Args:
            query: The text.
            k: How many.
            **options: `filter`, the metadata that they must have.

        Raises:
            InputError: The embedder is not the one of the stored vectors, or a filter holds a
                condition instead of a value.
        """
        return [hit for hit, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        """The nearest documents with their cosines, from -1 to 1, best first."""
        return self._nearest(self._embedding.embed_query(query), k, **options)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **options: Any
    ) -> list[Document]:
        """The `k` documents nearest to an embedding, best first."""
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
    def _following(self, *, write: bool = False) -> Iterator[_Index]:
        with self._file.transaction(write=write):
            # The first time all of it is read.
            with nullcontext() if len(self._index.keys) else busy("Reading the memory"):
                self._index.follow(self._file)
            yield self._index

    def _check_embedder(self, index: _Index) -> None:
        if len(index.keys) and index.embedder != self._embedder:
            names = {"own": index.embedder, "got": self._embedder}
            raise InputError(example.ERRORS["embedder"].format(path=self.path, **names))

    def _nearest(
        self, embedding: Sequence[float], k: int, *, filter: Filter | None = None, **_: object
    ) -> list[tuple[Document, float]]:
        vector = unit([embedding])
        with self._following() as index:
            self._check_embedder(index)
            hits = index.search(vector, k, filter or {})
            documents = self._documents([key for key, _ in hits])
            return [(each, score) for each, (_, score) in zip(documents, hits, strict=True)]

    def _documents(self, keys: Sequence[int]) -> list[Document]:
        """Copies of documents, which the caller may change."""
        rows = json.loads(json.dumps([self._index.rows[key] for key in keys]))
        return [Document(id=id, page_content=text, metadata=own) for id, own, text in rows]
