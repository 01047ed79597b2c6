"""Sets of summaries: the CNN/BBC study of 2022, and OpenAI's comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

from langchain_judges.datasets.rows import RowStream, shuffled
from langchain_judges.datasets.source import NO_TEXT, Hub, Source, SourceRecord
from langchain_judges.errors import OptionError

# The repository's own script is no longer run; its data lie converted on another branch.
_FEEDBACK = "openai/summarize_from_feedback"
_CONVERTED = "refs/convert/parquet"

SUMMARIZE = "Summarize the article."

NEWS_RULES = ("unique", "any", "decisive")
"""Which articles of the CNN/BBC study are kept, see `news_choice`."""


def news_choice(record: SourceRecord, rule: str = "unique") -> tuple[str, str] | None:
    """Return the systems people named best and worst on an article; None: left out.

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
            [s for s in votes if votes[s] == max(votes.values()) >= 2]
            for votes in (best, worst)
        ]
    else:
        raise OptionError(f"`rule` must be one of {list(NEWS_RULES)!r}, got {rule!r}")
    if rule != "any" and not all(len(top) == 1 for top in tops):
        return None
    choices = [(b, w) for b in tops[0] for w in tops[1] if b != w]
    return choices[0] if choices else None


def news(
    source: Source,
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
            yield shuffled(seed, group, best, worst, choice) | common
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


def tldr_reddit(source: Source, seed: int, *, split: str | None = None) -> RowStream:
    """Read OpenAI's comparisons of two summaries of a Reddit post, one row for each.

    Args:
        source: The hub's set, or a copy.
        seed: Not used: the source mixes the slots.
        split: `"validation"` or `"train"`; None: `"validation"`.

    Raises:
        OptionError: A split is named of a file, which is read whole.
    """
    source.only_of_the_hub(split=split)
    split = split or "validation"
    where = Hub(
        _FEEDBACK,
        split,
        data_files=f"comparisons/{split}/*.parquet",
        revision=_CONVERTED,
    )
    for number, record in enumerate(source.hub(where)):
        info, (first, second) = record["info"], record["summaries"]
        if info.get("post") is None or record["choice"] not in {0, 1}:
            continue
        title = f"{info['title']}\n\n" if info.get("title") else ""
        yield {
            "id": f"tldr_reddit:{split}:{number}",
            "input": f"Summarize the post.\n\n{title}{info['post']}",
            "output_a": first["text"].strip() or NO_TEXT,
            "output_b": second["text"].strip() or NO_TEXT,
            "label": "AB"[record["choice"]],
            "group": str(info["id"]),
            "category": info.get("subreddit") or "",
            "systems": [first["policy"], second["policy"]],
        }


def tldr_cnndm(source: Source, seed: int, *, split: str | None = None) -> RowStream:
    """Pair OpenAI's graded summaries of CNN/DM articles by their overall grade.

    The mean over a summary's graders decides; pairs with equal means are dropped.

    Args:
        source: The hub's set, or a copy.
        seed: Says which summary is A.
        split: `"validation"` or `"test"`; None: `"validation"`.

    Raises:
        OptionError: A split is named of a file, which is read whole.
    """
    source.only_of_the_hub(split=split)
    split = split or "validation"
    where = Hub(_FEEDBACK, split, data_files=f"axis/{split}/*.parquet", revision=_CONVERTED)
    articles: dict[str, dict[str, Any]] = {}
    for record in source.hub(where):
        info, summary = record["info"], record["summary"]
        grade = (summary.get("axes") or {}).get("overall")
        if info.get("article") is None or grade is None:
            continue
        own = articles.setdefault(str(info["id"]), {"text": info["article"], "grades": {}})
        own["grades"].setdefault((summary["text"], summary["policy"]), []).append(grade)
    for group, own in articles.items():
        means = {each: fmean(grades) for each, grades in own["grades"].items()}
        for number, (first, second) in enumerate(combinations(means, 2)):
            if means[first] == means[second]:
                continue
            better, worse = sorted((first, second), key=lambda each: -means[each])
            key = f"tldr_cnndm:{group}:{number}"
            row = shuffled(seed, key, better[0], worse[0], (better[1], worse[1]))
            yield row | {"input": f"{SUMMARIZE}\n\n{own['text']}", "group": group}
