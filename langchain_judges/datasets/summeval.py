"""SummEval: 100 articles, the summaries of up to 16 systems, and experts' ratings of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from langchain_judges.datasets.rows import RowStream
from langchain_judges.datasets.source import Hub, Source, SourceRecord
from langchain_judges.datasets.summaries import SUMMARIZE
from langchain_judges.errors import OptionError

DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
"""What SummEval's experts rated, from 1 to 5."""

SUMMEVAL = Hub("mteb/summeval", split="test")
PAIRED = "model_annotations.aligned.paired.jsonl"

CONSISTENT = (
    "Is the summary factually consistent with the article? It is if the article supports "
    "every statement in it."
)


@dataclass(frozen=True)
class Article:
    """An article of SummEval with its references, its systems' summaries and their ratings."""

    id: str
    text: str
    references: Sequence[str]
    summaries: Mapping[str, str]
    """By system, in the order of their numbers."""
    ratings: Mapping[str, Mapping[str, float]]
    """The experts' mean by system and dimension, `overall` being the mean of the four."""


def summeval(  # noqa: PLR0913 - the forms of one set
    source: Source,
    seed: int,
    *,
    form: Literal["pairs", "candidates", "items"] = "pairs",
    dimension: str = "overall",
    select: Literal["all", "extremes"] = "all",
    systems: Sequence[str] | None = None,
    threshold: float = 2.5,
) -> RowStream:
    """Read SummEval: 100 articles, 12 or 16 systems, means of three experts.

    Args:
        source: A folder with `docs` or `articles` and `summaries`, or Yale-LILY/SummEval's
            paired file of annotations; else the hub's set, where systems have no name and
            are called `S0` … `S15` by their place.
        seed: Not used: A is the system with the lower number, whatever its ratings.
        form: `"pairs"`: every two systems on an article, labelled by the higher rating
            (equal: a tie). `"candidates"`: each summary as A against the article's own
            reference as B, with its rating as the label (Wu et al. 2023). `"items"`: for a
            judge of one text, label 1 where `consistency` reaches `threshold`
            (Hasanbeig et al. 2023, section 4.2).
        dimension: A dimension, or `"overall"`, their mean; of pairs and candidates.
        select: `"extremes"` keeps the two best and two worst candidates of each article;
            equal ratings are put in the order of the systems' numbers.
        systems: Only these.
        threshold: Of items.
    """
    if dimension not in {*DIMENSIONS, "overall"}:
        raise OptionError(
            f"`dimension` must be one of {[*DIMENSIONS, 'overall']!r}, got {dimension!r}"
        )
    forms: dict[str, Callable[[Article], RowStream]] = {
        "pairs": lambda article: _rated_pairs(source.name, article, dimension),
        "candidates": lambda article: _candidates(source.name, article, dimension, select),
        "items": lambda article: _items(source.name, article, threshold),
    }
    if form not in forms:
        raise OptionError(f"`form` must be one of {list(forms)!r}, got {form!r}")
    for article in _articles(source):
        yield from forms[form](_only(article, systems))


def _rated_pairs(name: str, article: Article, dimension: str) -> RowStream:
    for first, second in combinations(article.summaries, 2):
        a, b = (article.ratings[system][dimension] for system in (first, second))
        yield {
            "id": f"{name}:{article.id}:{first}:{second}",
            "input": f"{SUMMARIZE}\n\n{article.text}",
            "output_a": article.summaries[first],
            "output_b": article.summaries[second],
            "label": "A" if a > b else "B" if b > a else "tie",
            "human": {"A": a, "B": b},
            "group": article.id,
            "systems": [first, second],
        }


def _candidates(name: str, article: Article, dimension: str, select: str) -> RowStream:
    ranked = sorted(article.summaries, key=lambda system: -article.ratings[system][dimension])
    categories = dict.fromkeys(article.summaries, "all")
    if select == "extremes":
        categories = dict.fromkeys(ranked[:2], "best") | dict.fromkeys(ranked[-2:], "worst")
    for system, category in categories.items():
        yield {
            "id": f"{name}:{article.id}:{system}",
            "input": f"{SUMMARIZE}\n\n{article.text}",
            "output_a": article.summaries[system],
            "output_b": article.references[0],
            "label": article.ratings[system][dimension],
            "human": dict(article.ratings[system]),
            "group": article.id,
            "category": category,
            "systems": [system, "reference"],
        }


def _items(name: str, article: Article, threshold: float) -> RowStream:
    for system, summary in article.summaries.items():
        rating = article.ratings[system]["consistency"]
        yield {
            "id": f"{name}:{article.id}:{system}",
            "input": CONSISTENT,
            "output": summary,
            "source": article.text,
            "label": int(rating >= threshold),
            "human": dict(article.ratings[system]),
            "family": "consistency",
            "group": article.id,
            "systems": [system],
        }


def _only(article: Article, systems: Sequence[str] | None) -> Article:
    if systems is None:
        return article
    if unknown := set(systems) - set(article.summaries):
        raise OptionError(
            f"`systems` must be among {list(article.summaries)!r}, got {sorted(unknown)!r}"
        )
    summaries = {name: text for name, text in article.summaries.items() if name in systems}
    return replace(article, summaries=summaries)


def _articles(source: Source) -> Iterator[Article]:
    if source.has("summaries.jsonl.gz"):
        yield from _folder_articles(source)
        return
    # The hub's copy does not name its systems, which the other two sets are told apart by.
    is_paired = source.has(PAIRED) or (source.path is None and source.name != "summeval")
    files = ("summaries.jsonl.gz", PAIRED)
    records = list(source.lines(*files) if is_paired else source.hub(SUMMEVAL))
    if records and "decoded" in records[0]:
        yield from map(_paired_article, _by_article(records).values())
    else:
        yield from map(_hub_article, records)


def _folder_articles(source: Source) -> Iterator[Article]:
    by_article = _by_article(source.lines("summaries.jsonl.gz"))
    whole = source.has("articles.jsonl.gz")
    for record in source.lines("articles.jsonl.gz" if whole else "docs.jsonl.gz"):
        own = by_article[record["id"]]
        own_reference = record.get("reference")
        yield Article(
            record["id"],
            record["text"],
            [own_reference] if own_reference else record["references"],
            {each["model_id"]: each["summary"] for each in own},
            {each["model_id"]: _means(each["expert_mean"]) for each in own},
        )


def _paired_article(records: Sequence[SourceRecord]) -> Article:
    ratings = {
        each["model_id"]: {
            d: fmean(e[d] for e in each["expert_annotations"]) for d in DIMENSIONS
        }
        for each in records
    }
    return Article(
        records[0]["id"],
        records[0]["text"],
        records[0]["references"],
        {each["model_id"]: each["decoded"] for each in records},
        {system: _means(own) for system, own in ratings.items()},
    )


def _by_article(records: Iterable[SourceRecord]) -> dict[str, list[SourceRecord]]:
    """Return the records of each article, in the order of their systems' numbers."""
    articles: dict[str, list[SourceRecord]] = {}
    for record in records:
        articles.setdefault(record["id"], []).append(record)
    return {
        key: sorted(own, key=lambda each: int(each["model_id"][1:]))
        for key, own in articles.items()
    }


def _hub_article(record: SourceRecord) -> Article:
    texts = {f"S{i}": text for i, text in enumerate(record["machine_summaries"])}
    return Article(
        record["id"],
        record["text"],
        record["human_summaries"],
        texts,
        {s: _means({d: record[d][i] for d in DIMENSIONS}) for i, s in enumerate(texts)},
    )


def _means(ratings: Mapping[str, float]) -> dict[str, float]:
    own = {dimension: float(ratings[dimension]) for dimension in DIMENSIONS}
    # Means of three are thirds, and the source rounds them: equal sums must stay equal.
    return own | {"overall": round(12 * fmean(own.values())) / 12}
