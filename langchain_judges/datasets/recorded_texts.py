"""Grades and ratings of single texts that were recorded by other judges."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import TypedDict

from langchain_judges.datasets.source import Source


class Graded(TypedDict):
    """One recorded grade of one text."""

    id: str
    judge: str
    setting: str
    label: int
    expected: list[str]
    """Every accepted answer."""
    raw: str | None
    """The graded answer."""


class Rating(TypedDict):
    """One recorded rating of one text on a scale."""

    id: str
    """As the `candidates` and `items` of the set have it."""
    judge: str
    setting: str
    dimension: str
    group: str
    system: str
    score: float | None
    raw: str | None


def cogeval(source: Source) -> Iterator[Graded]:
    """Read the grades of CogEval's own judge."""
    for record in source.lines("verdicts_all.jsonl.gz"):
        yield {
            "id": f"cogeval:{record['path']}",
            "judge": "gpt_rubric",
            "setting": record["condition"],
            "label": int(record["judge_score"] >= 1),
            "expected": record["expected"],
            "raw": record["parsed"],
        }


def summeval12(source: Source) -> Iterator[Rating]:
    """Read three judges' ratings of SummEval's summaries, by three protocols."""
    for file in ("ratings_openai.jsonl.gz", "ratings_llama2_70b.jsonl.gz"):
        for record in source.lines(file):
            yield {
                "id": f"summeval12:{record['id']}:{record['model_id']}",
                "judge": record["judge"],
                "setting": record["protocol"],
                "dimension": record["dim"],
                "group": record["id"],
                "system": record["model_id"],
                "score": record["score"],
                "raw": record["raw"],
            }
