"""Public sets that the studies read: those of the package, summaries, and the three below.

CogEval is for judges of one text, CommonGen-hard lists concepts to write with, and FastChat has
the questions of MT-Bench with reference answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from cookbook.study import summaries
from langchain_judges import datasets
from langchain_judges.datasets.pairs import PublicSet
from langchain_judges.runs.sources import SourceRecord
from langchain_judges.runs.table_form import NO_TEXT, RowStream


def answer_matches(
    answer: str | None, expected: Sequence[str], how: Literal["normalised", "exact"] = "normalised"
) -> bool:
    """Say whether an answer is one of the accepted ones.

    Args:
        answer: As it was read from a response; None: none was found.
        expected: Every accepted answer.
        how: `"normalised"` drops white space, full stops, case and a leading `Answer:`;
            `"exact"` compares as they are.
    """
    form = normalised if how == "normalised" else str
    return form(answer or "") in {form(each) for each in expected}


def normalised(answer: str) -> str:
    """An answer without white space, full stops, case and a leading `Answer:`."""
    return re.sub(r"[\s.]+", "", answer).casefold().removeprefix("answer:")


def cogeval(source: PublicSet, seed: int) -> RowStream:
    """Read CogEval: answers to cognitive-map tasks, with every accepted answer.

    `label` is 1 where the answer read from the response is one of `expected`, spaces, full
    stops and case apart. Items on which that and the recorded grade disagree were drawn
    more often into the sample: never read a rate off it.

    `family` is the cognitive map, by which ALLURE's memory is keyed, and `category` the
    planning skill. A `group` holds all tasks that share an accepted answer, so that no example
    of another group shows the answer that a response is compared with.
    """
    records = list(source.lines("sample.jsonl.gz"))
    groups = _by_answer(records)
    for record in records:
        yield {
            "id": f"cogeval:{record['path']}",
            "input": record["conversation"],
            "output": record["response"].strip() or NO_TEXT,
            "expected": record["expected"],
            "label": int(answer_matches(record["parsed"], record["expected"])),
            "family": record["graph"],
            "group": groups[_task_of(record)],
            "category": record["condition"],
            "systems": [record["model"]],
        }


def _task_of(record: SourceRecord) -> str:
    return f"{record['graph']}/{record['domain']}/{record['condition']}"


def _by_answer(records: Iterable[SourceRecord]) -> dict[str, str]:
    """The first of the tasks that each one shares an accepted answer with."""
    first: dict[str, str] = {}
    by_answer: dict[str, str] = {}

    def root(task: str) -> str:
        while first.setdefault(task, task) != task:
            task = first[task]
        return task

    for record in records:
        own = root(_task_of(record))
        for answer in map(normalised, record["expected"]):
            other = root(by_answer.setdefault(answer, own))
            first[own] = other
            own = other
    return {task: root(task) for task in list(first)}


def commongen_hard(
    source: PublicSet, seed: int, *, concepts: int | None = 10, first: int | None = 100
) -> RowStream:
    """Read CommonGen-hard: lists of concepts for constrained writing.

    The source has 200 lists of 20 to 30 concepts; the Branch-Solve-Merge paper writes with
    10 concepts, 100 times, so 10 are drawn from each of the first 100.

    Args:
        source: A folder with `concepts.jsonl`.
        seed: Of the draw.
        concepts: How many to draw from a list, kept in its order; None for all.
        first: How many lists; None for all.
    """
    for number, record in enumerate(source.lines("concepts.jsonl")):
        if first is not None and number >= first:
            return
        whole = record["concepts"]
        if concepts is not None and concepts < len(whole):
            generator = random.Random(f"{seed}|{record['idx']}")  # noqa: S311 - no secret
            places = sorted(generator.sample(range(len(whole)), concepts))
            whole = [whole[i] for i in places]
        yield {"id": f"commongen_hard:{record['idx']}", "concepts": whole}


def mt_bench_questions(source: PublicSet, seed: int) -> RowStream:
    """Read the 80 questions with their reference answers; there are no answers to judge.

    FastChat has them in `fastchat/llm_judge/data/mt_bench`.
    """
    references: dict[int, list[str]] = {}
    answers = ("reference_answers_gpt4.jsonl", "reference_answer/gpt-4.jsonl")
    if any(map(source.has, answers)):
        for record in source.lines(*answers):
            references[record["question_id"]] = record["choices"][0]["turns"]
    for record in source.lines("questions.jsonl", "question.jsonl"):
        number = record["question_id"]
        yield {
            "id": f"mtbench:{number}",
            "input": [{"role": "user", "content": turn} for turn in record["turns"]],
            "category": record["category"],
            "group": str(number),
            "references": references.get(number, []),
        }


SETS: Mapping[str, Callable[..., RowStream]] = {
    "bbc2022": partial(summaries.news, dataset="bbc2022"),
    "cnn2022": partial(summaries.news, dataset="cnn2022"),
    "cogeval": cogeval,
    "commongen_hard": commongen_hard,
    "fastchat_mtbench": mt_bench_questions,
    "goyal_news2022": summaries.news,
    "summeval12": summaries.summeval,
    "summeval16": summaries.summeval,
}
"""Readers of the sets that the package does not read, by their folder's name."""


def load(
    name: str, path: str | PathLike[str] | None, *, seed: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """Rows of a public set.

    Args:
        name: Of the set.
        path: A folder with it, a clone of its source, or one of its files.
        seed: Of the slots and of every draw.
        **options: Keywords of its reader, such as `form="candidates"` for summaries.
    """
    if name not in SETS:
        return datasets.load(name, path, seed=seed, **options)
    source = PublicSet(name, None if path is None else Path(path))
    is_summary = name not in ("cogeval", "commongen_hard", "fastchat_mtbench")
    task = {"task_kind": "summary"} if is_summary else {}
    return [datasets.with_texts(row) | task for row in SETS[name](source, seed, **options)]
