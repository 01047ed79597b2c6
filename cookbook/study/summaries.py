"""Sets of summaries: the CNN/BBC study of 2022, and SummEval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Literal

from langchain_judges.datasets.pairs import PublicSet
from langchain_judges.errors import OptionError
from langchain_judges.runs.sources import SourceRecord
from langchain_judges.runs.table_form import RowStream, by_coin

SUMMARIZE = "Summarize the article."

NEWS_RULES = ("unique", "any", "decisive")
"""Which articles of the CNN/BBC study are kept, see `news_choice`."""


def news_choice(record: SourceRecord, rule: str = "unique") -> tuple[str, str] | None:
    """The systems people named best and worst on an article; None: left out.

    Three people named best and worst texts, several if they liked. The DRPE paper keeps
    "at least 2 of 3 votes" and counts 81 CNN articles; no reading of it gives 81.

    Args:
        record: With `best_votes` and `worst_votes`.
        rule: `"unique"`: one text has the most votes, and at least two, on each side
            (71 CNN, 80 BBC). `"any"`: the most votes are at least two on each side, texts
            may share them, the first of the source's order is taken, another one for the
            worst than for the best (84, 91). `"decisive"`: exactly one text has two votes
            or more on each side (67, 76).
    """
    best, worst = record["best_votes"], record["worst_votes"]
    if rule == "decisive":
        tops = [[s for s in votes if votes[s] >= 2] for votes in (best, worst)]
    elif rule in NEWS_RULES:
        tops = [
            [s for s in votes if votes[s] == max(votes.values()) >= 2] for votes in (best, worst)
        ]
    else:
        raise OptionError(f"`rule` must be one of {list(NEWS_RULES)!r}, got {rule!r}")
    if rule != "any" and not all(len(top) == 1 for top in tops):
        return None
    choices = [(b, w) for b in tops[0] for w in tops[1] if b != w]
    return choices[0] if choices else None


def news(
    source: PublicSet,
    seed: int,
    *,
    dataset: str | None = None,
    rule: str = "unique",
    form: Literal["pairs", "candidates"] = "pairs",
    references: Mapping[str, str] | None = None,
) -> RowStream:
    """Read the CNN/BBC study of 2022 (Goyal, Li and Durrett), DRPE's evaluation set.

    Args:
        source: A folder with `generic.jsonl.gz`.
        seed: Says which text of a pair is A.
        dataset: `"cnn2022"`, `"bbc2022"`, or None for both.
        rule: Which articles are kept, see `news_choice`.
        form: `"pairs"`: the best against the worst summary, slots shuffled.
            `"candidates"`: two rows for each article, label 1 for the best and 0 for the
            worst, the summary as A; B is the article's entry in `references`, and missing
            without one, for the source has no reference.
        references: Reference summaries by `group`.
    """
    if form not in {"pairs", "candidates"}:
        raise OptionError(f"`form` must be 'pairs' or 'candidates', got {form!r}")
    for record in source.lines("generic.jsonl.gz"):
        choice = news_choice(record, rule)
        if choice is None or dataset not in {None, record["dataset"]}:
            continue
        group = f"{record['dataset']}:{record['id']}"
        common = {
            "input": f"{SUMMARIZE}\n\n{record['article']}",
            "group": group,
            "category": record["dataset"],
        }
        best, worst = (record["summaries"][system] for system in choice)
        if form == "pairs":
            yield by_coin(seed, group, best, worst, choice) | common
            continue
        for label, system, text in ((1, choice[0], best), (0, choice[1], worst)):
            row = common | {
                "id": f"{group}:{system}",
                "output_a": text,
                "label": label,
                "systems": [system, "reference"],
            }
            if references and group in references:
                row["output_b"] = references[group]
            yield row


DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
"""Qualities that SummEval's experts rated, from 1 to 5."""

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
    source: PublicSet,
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
            paired file of annotations.
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


def _articles(source: PublicSet) -> Iterator[Article]:
    if source.has("summaries.jsonl.gz"):
        yield from _folder_articles(source)
        return
    records = source.lines("summaries.jsonl.gz", PAIRED)
    yield from map(_paired_article, _by_article(records).values())


def _folder_articles(source: PublicSet) -> Iterator[Article]:
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
        each["model_id"]: {d: fmean(e[d] for e in each["expert_annotations"]) for d in DIMENSIONS}
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
    """The records of each article, in the order of their systems' numbers."""
    articles: dict[str, list[SourceRecord]] = {}
    for record in records:
        articles.setdefault(record["id"], []).append(record)
    return {
        key: sorted(own, key=lambda each: int(each["model_id"][1:]))
        for key, own in articles.items()
    }


def _means(ratings: Mapping[str, float]) -> dict[str, float]:
    own = {dimension: float(ratings[dimension]) for dimension in DIMENSIONS}
    # Means of three are thirds, and the source rounds them: equal sums must stay equal.
    return own | {"overall": round(12 * fmean(own.values())) / 12}
