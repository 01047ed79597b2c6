"""A LangChain vector store on FAISS, saved without pickle as a FAISS index and JSONL."""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from langchain_judges.asking.models.embeddings import SentenceEmbeddings
from langchain_judges.asking.steps import Steps, Wait, arun, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.faiss import files
from langchain_judges.memory.faiss.collection import Collection, News
from langchain_judges.memory.faiss.embedder import identity_of
from langchain_judges.memory.faiss.indexes import IndexKind
from langchain_judges.memory.faiss.lines import check_plain
from langchain_judges.memory.faiss.search import SearchedStore
from langchain_judges.memory.faiss.vector_rows import Entry, VectorRows, unit


class FaissStore(SearchedStore):
    """Documents searched by the cosine of their embeddings.

    Search is exact by default. A change is saved when the call returns: the first documents as
    a FAISS index and JSONL, then one line in a log for each, compacted into a new snapshot from
    time to time. Deleted entries are blanked in the files. Several processes may use one
    folder; each sees at its next call what another has written, and writers take turns. A
    process that is killed loses no change whose call had returned. Every line and every vector
    has a checksum, and the folder's manifest names the embedder: texts are not embedded by
    another.

    Args:
        embedding: Embeds texts; default all-MiniLM-L6-v2.
        path: The folder, created if it is missing; None keeps everything in memory.
        embedder: The embedder's name in the manifest; default its class and model. Set it if
            another class now reaches the same model.
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
        if embedder is not None and not (isinstance(embedder, str) and embedder):
            raise OptionError(f"`embedder` must be a name, got {embedder!r}")
        if not (path is None or isinstance(path, str | os.PathLike)):
            raise OptionError(f"`path` must be a folder, got {path!r}")
        self._embedding = embedding or SentenceEmbeddings()
        self._collection = Collection(
            VectorRows(index, approximate_above),
            None if path is None else Path(path),
            embedder or identity_of(self._embedding),
        )

    @property
    def path(self) -> Path | None:
        """The folder the store lives in."""
        return self._collection.files.folder if self._collection.files else None

    def __len__(self) -> int:
        """Return how many documents there are."""
        return len(self._collection)

    def changes(self) -> int:
        """Return a number that grows with every change, by this or another process."""
        with self._collection.fresh():
            return self._collection.rows.changes

    def news(self, since: int = -1) -> News:
        """Return what has changed, by this or another process, since a number of `changes`."""
        return self._collection.news(since)

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **_: object
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
        self, documents: list[Document], *, ids: list[str] | None = None, **_: object
    ) -> list[str]:
        """Add documents, as `add_documents` does."""
        return await arun(self._add(documents, ids))

    def delete(self, ids: list[str] | None = None, **_: object) -> bool:
        """Delete documents by id, all of them without `ids`; unknown ids are no error.

        In the files their texts are blanked, and so are their vectors in an exact index; those
        of an approximate one go at the next `erase`.
        """
        return run(self._delete(ids))

    async def adelete(self, ids: list[str] | None = None, **_: object) -> bool:
        """Delete documents, as `delete` does."""
        return await arun(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents by id, in the order of `ids`; unknown ids are left out."""
        return self._collection.by_ids(ids)

    def documents(self, filter: Mapping[str, object] | None = None) -> list[Document]:
        """Return all documents with some metadata, oldest first."""
        return self._collection.documents(filter)

    def erase(self) -> None:
        """Remove everything deleted from all files, including texts of killed deletions.

        Raises:
            OutputError: The folder cannot be written.
        """
        self._collection.erase()

    def compact(self) -> None:
        """Rewrite all files, so that none contains anything deleted.

        Raises:
            OutputError: The folder cannot be written.
        """
        self._collection.compact()

    def save_local(self, path: str | os.PathLike[str]) -> None:
        """Write a copy into a folder, in place of a store that is there.

        Raises:
            InputError: Metadata cannot be written as JSON.
            OutputError: The folder cannot be written.
        """
        self._collection.copy_into(Path(path))

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

    def _add(
        self, documents: Iterable[Document], ids: Sequence[str] | None
    ) -> Steps[list[str]]:
        entries = _entries(list(documents), ids)
        if not entries:
            return []
        # Of one id that is given twice, the last document counts.
        distinct = list({entry.id: entry for entry in entries}.values())
        if self._collection.files:
            check_plain(distinct)
        self._collection.check_embedder()
        texts = [entry.text for entry in distinct]
        embed = self._embedding
        embedded = yield Wait(
            lambda: embed.embed_documents(texts), lambda: embed.aembed_documents(texts)
        )
        vectors = unit(embedded)
        if len(vectors) != len(distinct):
            raise InputError(f"{len(vectors)} embeddings came for {len(distinct)} texts")
        yield self._change(lambda: self._collection.put(distinct, vectors))
        return [entry.id for entry in entries]

    def _delete(self, ids: Sequence[str] | None) -> Steps[bool]:
        yield self._change(lambda: self._collection.drop(ids))
        return True

    def _change(self, work: Callable[[], None]) -> Wait:
        """Do what writes files where there is a folder."""
        return self._aside(work, at_once=self._collection.files is None)


def _entries(documents: Sequence[Document], ids: Sequence[str | None] | None) -> list[Entry]:
    names = [document.id for document in documents] if ids is None else list(ids)
    if len(names) != len(documents):
        raise InputError(f"{len(names)} ids were given for {len(documents)} documents")
    return [
        Entry(id or str(uuid.uuid4()), document.page_content, copy.deepcopy(document.metadata))
        for id, document in zip(names, documents, strict=True)
    ]
