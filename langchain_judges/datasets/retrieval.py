"""Pairs of documents for a query, from relevance judgments (TREC News)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import combinations

from langchain_judges.datasets.rows import RowStream, shuffled
from langchain_judges.datasets.source import Source
from langchain_judges.rows.files import read_table


def trec_triplets(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    judgments: Iterable[tuple[str, str, int]],
    *,
    per_query: int | None = 5,
    seed: int = 0,
) -> RowStream:
    """Make rows of a query and two documents, the more relevant one being preferred.

    Two documents of equal relevance are never paired; judgments of queries or documents
    that are not given are left out. Slots are shuffled.

    Args:
        queries: Texts by id.
        documents: Texts by id.
        judgments: Query, document, grade.
        per_query: Most pairs of a query, drawn without replacement; None for all.
        seed: Of the draw and of the slots.
    """
    grades_of: dict[str, dict[str, int]] = {}
    for query, document, grade in judgments:
        if query in queries and document in documents:
            grades_of.setdefault(query, {})[document] = grade
    for query, grades in sorted(grades_of.items()):
        pairs = [p for p in combinations(sorted(grades), 2) if grades[p[0]] != grades[p[1]]]
        if per_query is not None and len(pairs) > per_query:
            generator = random.Random(f"{seed}|{query}")  # noqa: S311 - a draw, not a secret
            pairs = generator.sample(pairs, per_query)
        for pair in pairs:
            better, worse = sorted(pair, key=lambda document: -grades[document])
            key = f"trec_news:{query}:{better}:{worse}"
            row = shuffled(seed, key, documents[better], documents[worse], (better, worse))
            yield row | {"input": queries[query], "group": query}


def trec_news(source: Source, seed: int, *, per_query: int | None = 5) -> RowStream:
    """Read TREC News in the folder layout of BEIR and make its triplets.

    Args:
        source: A folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`; the
            articles come from the Washington Post under NIST's agreement, so that every
            reader makes this folder.
        seed: Of the draw and of the slots.
        per_query: Most pairs of a query; None for all.
    """
    queries = {each["_id"]: each["text"] for each in source.lines("queries.jsonl")}
    assert source.path is not None  # noqa: S101 - read above
    judgments = [
        (str(each["query-id"]), str(each["corpus-id"]), int(each["score"]))
        for each in read_table(source.path / "qrels" / "test.tsv")
    ]
    judged_ids = {document for _, document, _ in judgments}
    documents = {
        each["_id"]: f"{each.get('title') or ''}\n\n{each['text']}".strip()
        for each in source.lines("corpus.jsonl")
        if each["_id"] in judged_ids
    }
    return trec_triplets(queries, documents, judgments, per_query=per_query, seed=seed)
