"""A LangChain vector store on FAISS, saved without pickle as a FAISS index and JSONL."""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from langchain_judges.asking.embeddings import SentenceEmbeddings
from langchain_judges.asking.steps import Effect, Steps, arun, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.faiss import files
from langchain_judges.memory.faiss.embedder import identity_of
from langchain_judges.memory.faiss.index import Entry, IndexKind, Rows, Vectors, unit
from langchain_judges.memory.faiss.lines import check_plain

T = TypeVar("T")
Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata that a document must have, `{"family": "maps", "round": {"$in": [1, 2]}}`; or a
function, which is asked about documents in the order of their scores."""
Hit = tuple[Document, float, int]

_ATOMS = (str, int, float, type(None))
_LARGE = 2_000_000
"""Numbers in an index above which an async search gives the event loop free."""


class News(NamedTuple):
    """What has changed in a store."""

    number: int
    """For the next question."""
    documents: list[Document]
    """What was added or changed, in its present form; or all there is."""
    gone: list[str]
    """Ids of what was deleted."""
    whole: bool
    """Whether `documents` are all there is."""


class FaissStore(VectorStore):
    """Documents searched by the cosine of their embeddings.

    Search is exact by default. A change is saved when the call returns: the first documents as
    a FAISS index and JSONL, then one line in a log for each, from time to time squeezed into a
    new snapshot. What is deleted is blanked in the files. Several processes may use one folder;
    each sees at its next call what another has written, and writers take turns. A process
    that is killed loses nothing that a call had returned from. Every line and every vector has
    a checksum, and the folder's manifest names the embedder: texts are not embedded by another.

    Args:
        embedding: Embeds texts; default all-MiniLM-L6-v2.
        path: A folder to live in, made if it is missing; None keeps all in memory.
        embedder: What the manifest calls the embedder; default its class and model. Say it
            where the same model has come to be reached through another class.
        index: `"flat"`, exact; `"hnsw"` or `"ivf"`, approximate above `approximate_above`.
        approximate_above: The number of documents above which an approximate index is used.

    Raises:
        OptionError: `path`, `index` or `approximate_above` is not allowed.
        OutputError: `path` is a file, cannot be read, holds something else, or is damaged.

    Example:
        >>> store = FaissStore(path="memory")  # doctest: +SKIP
        >>> store.add_texts(["The moon pulls the sea."], [{"topic": "tides"}])  # doctest: +SKIP
        >>> store.similarity_search("ebb", k=1, filter={"topic": "tides"})  # doctest: +SKIP
    """

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        embedder: str | None = None,
        index: IndexKind = "flat",
        approximate_above: int = 50_000,
    ) -> None:
        """Open the store, or make it."""
        if index not in ("flat", "hnsw", "ivf"):
            raise OptionError(f"`index` must be 'flat', 'hnsw' or 'ivf', got {index!r}")
        whole = isinstance(approximate_above, int) and not isinstance(approximate_above, bool)
        if not whole or approximate_above < 0:
            raise OptionError(
                "`approximate_above` must be a whole number of at least 0, "
                f"got {approximate_above!r}"
            )
        self._embedding = embedding or SentenceEmbeddings()
        self._rows = Rows(index, approximate_above)
        self._lock = threading.RLock()
        if embedder is not None and not (isinstance(embedder, str) and embedder):
            raise OptionError(f"`embedder` must be a name, got {embedder!r}")
        self._embedder = embedder or identity_of(self._embedding)
        if not (path is None or isinstance(path, str | os.PathLike)):
            raise OptionError(f"`path` must be a folder, got {path!r}")
        self._files = files.Files(Path(path), self._embedder) if path is not None else None
        self._refresh()

    @property
    def embeddings(self) -> Embeddings:
        """What embeds the texts."""
        return self._embedding

    @property
    def path(self) -> Path | None:
        """The folder the store lives in."""
        return self._files.folder if self._files else None

    def __len__(self) -> int:
        """Return how many documents there are."""
        with self._fresh():
            return len(self._rows)

    def changes(self) -> int:
        """Return a number that grows with every change, by this or another process."""
        with self._fresh():
            return self._rows.changes

    def news(self, since: int = -1) -> News:
        """Return what has changed, by this or another process, since a number of `changes`."""
        with self._fresh():
            rows = self._rows
            ids = rows.changed_since(since)
            if ids is None:
                return News(rows.changes, [_document(e) for e in rows.living()], [], True)
            entries = [(id, rows.get(id)) for id in ids]
            documents = [_document(entry) for _, entry in entries if entry]
            return News(rows.changes, documents, [id for id, e in entries if e is None], False)

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **_: Any
    ) -> list[str]:
        """Add documents and return their ids; one whose id is known replaces the old one.

        Args:
            documents: The documents; metadata must be JSON if the store has a folder.
            ids: Their ids; default the documents' own, or new ones.

        Raises:
            InputError: Ids and documents differ in number, metadata is no JSON, or the
                embedder is not the one whose vectors are here.
            OutputError: The folder cannot be written.
        """
        return run(self._add(documents, ids))

    async def aadd_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **_: Any
    ) -> list[str]:
        """Add documents, as `add_documents` does."""
        return await arun(self._add(documents, ids))

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents by id, all of them without `ids`; unknown ids are no error.

        In the files their texts are blanked, and so are their vectors in an exact index; those
        of an approximate one go at the next `erase`.
        """
        return run(self._delete(ids))

    async def adelete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Delete documents, as `delete` does."""
        return await arun(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents by id, in the order of `ids`; unknown ids are left out."""
        with self._fresh():
            entries = [self._rows.get(id) for id in ids]
            return [_document(entry) for entry in entries if entry]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents by id, as `get_by_ids` does."""
        return self.get_by_ids(ids)

    def documents(self, filter: Mapping[str, Any] | None = None) -> list[Document]:
        """Return all documents with some metadata, oldest first."""
        with self._fresh():
            if not filter:
                return [_document(entry) for entry in self._rows.living()]
            chosen = self._rows.slots_where(filter).tolist()
            return [self._at(slot) for slot in chosen]

    def embedded(self, query: str) -> Steps[list[float]]:
        """Return the vector of a text, scaled to length 1, as steps.

        Raises:
            InputError: The embedder is not the one whose vectors are here.
        """
        vector: list[float] = (yield from self._embedded(query))[0].tolist()
        return vector

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of known documents, scaled to length 1, one row for each.

        Raises:
            KeyError: An id is unknown.
        """
        with self._fresh():
            slots = np.array([self._rows.slots[id] for id in ids], np.int64)
            return self._rows.vectors(slots)

    def similarity_search(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[Document]:
        """Return the `k` documents nearest to a text, best first."""
        return [hit[0] for hit in run(self._near(query, k, filter))]

    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[Document]:
        """Return the nearest documents, as `similarity_search` does."""
        return [hit[0] for hit in await arun(self._near(query, k, filter))]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents with their cosines, from -1 to 1, best first."""
        return [hit[:2] for hit in run(self._near(query, k, filter))]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents, as `similarity_search_with_score` does."""
        return [hit[:2] for hit in await arun(self._near(query, k, filter))]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[Document]:
        """Return the `k` documents nearest to an embedding, best first."""
        return [hit[0] for hit in run(self._near(embedding, k, filter))]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None, **_: Any
    ) -> list[Document]:
        """Return the nearest documents, as `similarity_search_by_vector` does."""
        return [hit[0] for hit in await arun(self._near(embedding, k, filter))]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: Any,
    ) -> list[Document]:
        """Return `k` of the `fetch_k` nearest documents, near to a text and unlike each other.

        Args:
            query: The text.
            k: How many.
            fetch_k: From how many they are chosen.
            lambda_mult: 1 looks at nearness only, 0 at variety only.
            filter: Metadata they must have.
        """
        return run(self._varied(query, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: Any,
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return await arun(self._varied(query, k, fetch_k, lambda_mult, filter))

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: Any,
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return run(self._varied(embedding, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: Any,
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return await arun(self._varied(embedding, k, fetch_k, lambda_mult, filter))

    def erase(self) -> None:
        """Leave nothing of what was deleted in any file, a killed deletion's texts included.

        Raises:
            OutputError: The folder cannot be written.
        """
        with self._fresh():
            if self._files and self._files.remnants:
                with self._files.writing(self._rows):
                    self._files.erase(self._rows, vectors=True)

    def compact(self) -> None:
        """Write everything anew: nothing that was deleted stays in any file.

        Raises:
            OutputError: The folder cannot be written.
        """
        with self._lock:
            if self._files and self._files.exists():
                with self._files.writing(self._rows):
                    self._files.snapshot(self._rows)
            else:
                self._rows.squeeze()

    def save_local(self, path: str | os.PathLike[str]) -> None:
        """Write a copy into a folder, in place of a store that is there.

        Raises:
            InputError: Metadata cannot be written as JSON.
            OutputError: The folder cannot be written.
        """
        with self._fresh():
            check_plain(self._rows.living())
            target = files.Files(Path(path), self._embedder)
            with target.writing(Rows()):
                target.snapshot(self._rows)

    @classmethod
    def load_local(
        cls,
        path: str | os.PathLike[str],
        embedding: Embeddings | None = None,
        **options: Any,
    ) -> FaissStore:
        """Open the store of a folder; unlike the constructor, it must be there.

        Raises:
            InputError: There is none.
            OutputError: It is damaged.
        """
        if not files.Files(Path(path)).exists():
            raise InputError(f"there is no store in {os.fspath(path)!r}")
        return cls(embedding, path=path, **options)

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

    @classmethod
    async def afrom_texts(
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
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(1.0, max(0.0, cosine))

    def _add(
        self, documents: Iterable[Document], ids: Sequence[str] | None
    ) -> Steps[list[str]]:
        entries = _entries(list(documents), ids)
        if not entries:
            return []
        # Of one id that is given twice, the last document counts.
        distinct = list({entry.id: entry for entry in entries}.values())
        if self._files:
            check_plain(distinct)
        self._check_embedder()
        texts = [entry.text for entry in distinct]
        embed = self._embedding
        embedded = yield Effect(
            lambda: embed.embed_documents(texts), lambda: embed.aembed_documents(texts)
        )
        vectors = unit(embedded)
        if len(vectors) != len(distinct):
            raise InputError(f"{len(vectors)} embeddings came for {len(distinct)} texts")
        yield self._aside(lambda: self._put(distinct, vectors), at_once=self._files is None)
        return [entry.id for entry in entries]

    def _put(self, entries: list[Entry], vectors: Vectors) -> None:
        with self._lock:
            if self._files is None:
                self._rows.put(entries, vectors)
            else:
                with self._files.writing(self._rows):
                    self._check_embedder()
                    self._rows.check(vectors)
                    self._save(entries, vectors, self._files)

    def _save(self, entries: list[Entry], vectors: Vectors, saved: files.Files) -> None:
        stored = len(self._rows)
        whole = not stored or len(entries) > max(files.SOON, stored)
        try:
            if not whole:
                saved.add(entries, vectors)
            self._rows.put(entries, vectors)
            if whole or saved.crowded(self._rows):
                saved.snapshot(self._rows)
            else:
                saved.erase(self._rows)
        except BaseException:
            saved.read_again()
            raise

    def _delete(self, ids: Sequence[str] | None) -> Steps[bool]:
        yield self._aside(lambda: self._drop(ids), at_once=self._files is None)
        return True

    def _drop(self, ids: Sequence[str] | None) -> None:
        with self._fresh():
            wanted = list(self._rows.slots) if ids is None else list(ids)
            if not any(id in self._rows.slots for id in wanted):
                return
            if self._files is None:
                self._rows.drop(wanted)
            else:
                with self._files.writing(self._rows):
                    ids = [id for id in dict.fromkeys(wanted) if id in self._rows.slots]
                    self._remove(ids, self._files)

    def _remove(self, ids: Sequence[str], saved: files.Files) -> None:
        whole = len(ids) > files.SOON
        try:
            if not whole:
                saved.delete(ids)
            self._rows.drop(ids)
            if whole or saved.crowded(self._rows):
                saved.snapshot(self._rows)
            else:
                saved.erase(self._rows)
        except BaseException:
            saved.read_again()
            raise

    def _near(
        self, query: str | Sequence[float], k: int, filter: Filter | None
    ) -> Steps[list[Hit]]:
        if not self._rows.slots and not self._files:
            return []
        vector = yield from self._embedded(query)
        hits: list[Hit] = yield self._aside(lambda: self._search(vector, k, filter))
        return hits

    def _varied(
        self,
        query: str | Sequence[float],
        k: int,
        fetch_k: int,
        lambda_mult: float,
        filter: Filter | None,
    ) -> Steps[list[Document]]:
        vector = yield from self._embedded(query)
        documents: list[Document] = yield self._aside(
            lambda: self._vary(vector, k, fetch_k, lambda_mult, filter)
        )
        return documents

    def _embedded(self, query: str | Sequence[float]) -> Steps[Vectors]:
        if not isinstance(query, str):
            return unit(query)  # type: ignore[arg-type]
        self._check_embedder()
        embed = self._embedding
        embedded = yield Effect(
            lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
        )
        return unit(embedded)

    def _search(self, vector: Vectors, k: int, filter: Filter | None) -> list[Hit]:
        with self._fresh():
            if filter is None or isinstance(filter, Mapping):
                hits = self._rows.search(vector, k, filter)
                return [(self._at(slot), score, slot) for slot, score in hits]
            return self._sifted(vector, k, filter)

    def _sifted(self, vector: Vectors, k: int, wanted: Callable[[Document], bool]) -> list[Hit]:
        """Ask a function about the nearest documents, then about more, until enough pass."""
        hits: list[Hit] = []
        start, wide = 0, max(4 * k, 32)
        while True:
            nearest = self._rows.search(vector, wide)
            for slot, score in nearest[start:]:
                document = self._at(slot)
                if wanted(document):
                    hits.append((document, score, slot))
                if len(hits) >= k:
                    return hits[: max(k, 0)]
            if len(nearest) < wide:
                return hits
            start, wide = len(nearest), 4 * wide

    def _vary(
        self, vector: Vectors, k: int, fetch_k: int, lambda_mult: float, filter: Filter | None
    ) -> list[Document]:
        with self._lock:
            hits = self._search(vector, max(k, fetch_k), filter)
            slots = np.array([slot for *_, slot in hits], np.int64)
            chosen = maximal_marginal_relevance(
                vector[0], list(self._rows.vectors(slots)), lambda_mult, k
            )
            return [hits[i][0] for i in chosen]

    def _check_embedder(self) -> None:
        manifest = self._files.manifest if self._files else None
        if self._rows.slots and manifest and manifest["embedder"] != self._embedder:
            raise InputError(
                f"the vectors in {self.path} come from {manifest['embedder']}, and this is "
                f"{self._embedder}: open it with that embedder, or fill a folder anew; if both "
                f"are one model, say `embedder={manifest['embedder']!r}`"
            )

    def _aside(self, work: Callable[[], Any], *, at_once: bool = True) -> Effect:
        """Do something that async callers do in a thread if it may take long."""
        numbers = len(self._rows) * (self._rows.dimension or 0)
        if at_once and numbers < _LARGE:
            return Effect(work, lambda: _now(work))
        return Effect(work, lambda: asyncio.to_thread(work))

    def _at(self, slot: int) -> Document:
        entry = self._rows.entries[slot]
        if entry is None:
            raise KeyError(slot)
        return _document(entry)

    def _fresh(self) -> AbstractContextManager[Any]:
        """Return the lock, after a look at what other processes have written."""
        if self._files:
            self._refresh()
        return self._lock

    def _refresh(self) -> None:
        if self._files:
            with self._lock:
                self._files.refresh(self._rows)


async def _now(work: Callable[[], T]) -> T:
    return work()


def _document(entry: Entry) -> Document:
    metadata = dict(entry.metadata)
    for name, value in metadata.items():
        if not isinstance(value, _ATOMS):
            metadata[name] = copy.deepcopy(value)
    return Document(id=entry.id, page_content=entry.text, metadata=metadata)


def _entries(documents: Sequence[Document], ids: Sequence[str | None] | None) -> list[Entry]:
    names = [document.id for document in documents] if ids is None else list(ids)
    if len(names) != len(documents):
        raise InputError(f"{len(names)} ids were given for {len(documents)} documents")
    return [
        Entry(id or str(uuid.uuid4()), document.page_content, copy.deepcopy(document.metadata))
        for id, document in zip(names, documents, strict=True)
    ]
