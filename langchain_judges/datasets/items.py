"""Sets for judges of one text, and lists of concepts to write with."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from langchain_judges.datasets.source import Source
from langchain_judges.runs.sources import NO_TEXT, RowStream, SourceRecord


def answer_matches(
    answer: str | None,
    expected: Sequence[str],
    how: Literal["normalised", "exact"] = "normalised",
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
    """Return an answer without white space, full stops, case and a leading `Answer:`."""
    return re.sub(r"[\s.]+", "", answer).casefold().removeprefix("answer:")


def cogeval(source: Source, seed: int) -> RowStream:
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
    """Return the first of the tasks that each one shares an accepted answer with."""
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
    source: Source, seed: int, *, concepts: int | None = 10, first: int | None = 100
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
