"""The summaries of DRPE's studies, their references, and pairs of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.prompts import ChatPromptTemplate
from protocols import whole_lines
from pydantic import BaseModel

from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.question import Question
from langchain_judges.asking.steps import run
from langchain_judges.datasets import load
from langchain_judges.datasets.source import shuffled
from langchain_judges.datasets.summaries import SUMMARIZE

SETS = {
    "cnn2022": "goyal_news2022",
    "bbc2022": "goyal_news2022",
    "summeval": "summeval16",
}
"""The set of each study, as its folder is called."""
_REFERENCE = ChatPromptTemplate.from_messages(
    [("human", "Summarize this article in {length}.\n\n{article}")]
)
_LENGTHS = {"cnn2022": "three to four sentences", "bbc2022": "one sentence"}
"""Of references: as long as the summaries that they are compared with."""


class _Summary(BaseModel):
    summary: str


@dataclass
class Study:
    """Rows of one study, each with the value that people gave it."""

    name: str
    candidates: list[dict[str, Any]]
    """One row for each summary: A the summary, B the reference."""
    pairs: list[dict[str, Any]] = field(default_factory=list)
    """The best against the worst of each article, sides by a coin; `systems` are ids."""
    tokens_of_references: int = 0

    def human(self) -> dict[str, float]:
        """Return the human value of each summary."""
        return {row["id"]: float(row["label"]) for row in self.candidates}

    def groups(self) -> dict[str, str]:
        """Return the article of each summary."""
        return {row["id"]: row["group"] for row in self.candidates}


def read_study(  # noqa: PLR0913 - what a study is made of
    name: str, folder: Path, rule: str, limit: int | None, seed: int, writer: Any, out: Path
) -> Study:
    """Read a study's summaries, each against a reference.

    Args:
        name: One of `SETS`.
        folder: The set's.
        rule: Which articles of CNN and BBC are kept.
        limit: Articles; None for all.
        seed: Of the sides of pairs.
        writer: The model that writes references where the set has none.
        out: Where they are kept.
    """
    if name == "summeval":
        rows = load("summeval16", folder, form="candidates", select="extremes")
        candidates = list(_first(rows, limit))
        return Study(name, candidates, _best_and_worst(candidates, seed))
    options: dict[str, Any] = {"dataset": name, "rule": rule, "form": "candidates"}
    rows = load("goyal_news2022", folder, **options)
    candidates = list(_first(rows, limit))
    references = _references(
        candidates, _LENGTHS[name], writer, out / f"references-{name}.jsonl"
    )
    for row in candidates:
        row["output_b"] = references[row["group"]]["reference"]
    tokens = sum(each["tokens"] for each in references.values())
    return Study(name, candidates, _best_and_worst(candidates, seed), tokens)


def _first(rows: Any, limit: int | None) -> Iterator[dict[str, Any]]:
    """Return the rows of the first so many articles."""
    groups: set[str] = set()
    for row in rows:
        groups.add(row["group"])
        if limit is not None and len(groups) > limit:
            return
        yield dict(row)


def _best_and_worst(candidates: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Pair the best with the worst, the second best with the second worst, and so on."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in candidates:
        groups.setdefault(row["group"], []).append(row)
    pairs = []
    for group, rows in groups.items():
        ranked = sorted(rows, key=lambda row: -row["label"])
        for better, worse in zip(ranked, reversed(ranked), strict=True):
            if better["label"] <= worse["label"]:
                break
            ids = (better["id"], worse["id"])
            texts = (better["output_a"], worse["output_a"])
            pair = shuffled(seed, "|".join(ids), *texts, systems=ids)
            pairs.append({**pair, "input": better["input"], "group": group})
    return pairs


def _references(
    rows: Sequence[Mapping[str, Any]], length: str, writer: Any, path: Path
) -> dict[str, dict[str, Any]]:
    """Return a reference for each article; what an earlier run wrote is not paid again."""
    references = {row["group"]: row for row in map(json.loads, whole_lines(path))}
    question = Question(
        "protocol", "reference", ModelAdapter(writer), _REFERENCE, _Summary, "2"
    )
    with path.open("a") as file:
        for row in rows:
            if row["group"] in references:
                continue
            article = row["input"].removeprefix(f"{SUMMARIZE}\n\n")
            fields = {"article": article, "length": length}
            reply = run(ask(question, fields, unit=row["group"]))
            if reply.data is None:
                raise SystemExit(f"No reference for {row['group']}: {reply.failures}")
            usage = reply.usage
            references[row["group"]] = {
                "group": row["group"],
                "reference": reply.data["summary"],
                "tokens": usage["input_tokens"] + usage["output_tokens"],
                "calls": usage["calls"],
            }
            file.write(json.dumps(references[row["group"]]) + "\n")
            file.flush()
    return references
