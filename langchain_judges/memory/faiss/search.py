"""The searches of a store of vectors: by text, by vector, and for variety."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_judges.asking.steps import Steps, Wait, arun, run
from langchain_judges.memory.faiss.collection import Collection, Filter, Hit
from langchain_judges.memory.faiss.indexes import Vectors
from langchain_judges.memory.faiss.vector_rows import unit

T = TypeVar("T")
_LARGE = 2_000_000
"""Numbers in an index above which an async search runs in a thread."""


class SearchedStore(VectorStore):
    """The searches of a `FaissStore`, for threads and for an event loop."""

    _embedding: Embeddings
    _collection: Collection

    @property
    def embeddings(self) -> Embeddings:
        """What embeds the texts."""
        return self._embedding

    def embedded(self, query: str) -> Steps[list[float]]:
        """Return the vector of a text, scaled to length 1, as steps.

        Raises:
            InputError: The embedder is not the one whose vectors are here.
        """
        vector: list[float] = (yield from self._embedded(query))[0].tolist()
        return vector

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return the vectors of stored documents, scaled to length 1, one row for each.

        Raises:
            KeyError: An id is unknown.
        """
        return self._collection.vectors(ids)

    def similarity_search(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: object
    ) -> list[Document]:
        """Return the `k` documents nearest to a text, best first."""
        return [hit[0] for hit in run(self._near(query, k, filter))]

    async def asimilarity_search(
        self, query: str, k: int = 4, **options: Any
    ) -> list[Document]:
        """Return the nearest documents, as `similarity_search` does."""
        return [hit[0] for hit in await arun(self._near(query, k, **options))]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **_: object
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents with their cosines, from -1 to 1, best first."""
        return [hit[:2] for hit in run(self._near(query, k, filter))]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents, as `similarity_search_with_score` does."""
        return [hit[:2] for hit in await arun(self._near(query, k, **options))]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None, **_: object
    ) -> list[Document]:
        """Return the `k` documents nearest to an embedding, best first."""
        return [hit[0] for hit in run(self._near(embedding, k, filter))]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **options: Any
    ) -> list[Document]:
        """Return the nearest documents, as `similarity_search_by_vector` does."""
        return [hit[0] for hit in await arun(self._near(embedding, k, **options))]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: object,
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
        self, query: str, *args: Any, **options: Any
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return await arun(self._varied(query, *args, **options))

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **_: object,
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return run(self._varied(embedding, k, fetch_k, lambda_mult, filter))

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], *args: Any, **options: Any
    ) -> list[Document]:
        """Return varied documents, as `max_marginal_relevance_search` does."""
        return await arun(self._varied(embedding, *args, **options))

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(1.0, max(0.0, cosine))

    def _near(
        self, query: str | Sequence[float], k: int, filter: Filter | None = None, **_: object
    ) -> Steps[list[Hit]]:
        if self._collection.empty:
            return []
        vector = yield from self._embedded(query)
        hits: list[Hit] = yield self._aside(lambda: self._collection.search(vector, k, filter))
        return hits

    def _varied(
        self,
        query: str | Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **_: object,
    ) -> Steps[list[Document]]:
        vector = yield from self._embedded(query)
        documents: list[Document] = yield self._aside(
            lambda: self._collection.vary(vector, k, fetch_k, lambda_mult, filter)
        )
        return documents

    def _embedded(self, query: str | Sequence[float]) -> Steps[Vectors]:
        if not isinstance(query, str):
            return unit([query])
        self._collection.check_embedder()
        embed = self._embedding
        embedded = yield Wait(
            lambda: embed.embed_query(query), lambda: embed.aembed_query(query)
        )
        return unit(embedded)

    def _aside(self, work: Callable[[], object], *, at_once: bool = True) -> Wait:
        """Run work that async callers run in a thread where it may take long."""
        if at_once and self._collection.numbers < _LARGE:
            return Wait(work, lambda: _now(work))
        return Wait(work, lambda: asyncio.to_thread(work))


async def _now(work: Callable[[], T]) -> T:
    return work()
