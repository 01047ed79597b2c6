"""A judge in a test: fail if too few rows pass, and retry only the rows that failed."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Annotated

from annotated_types import Ge, Gt, Le

from langchain_judges.errors import OptionError
from langchain_judges.options import check_value
from langchain_judges.rows.checks import kind_of_verdict, read_label
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.rows import ResultRow, answer_of, judged_row, outcome_of
from langchain_judges.runs.run_state import Judge, Rows
from langchain_judges.runs.sources import source_of

Passes = Callable[[ResultRow], bool]
"""Whether the result of a row passes."""


def assert_judged(
    judge: Judge,
    rows: Rows,
    *,
    min_pass: float = 1.0,
    tries: int = 2,
    passes: Passes | None = None,
    max_concurrency: int = 8,
) -> list[ResultRow]:
    """Judge rows in a test, and fail it if too few of them pass.

    Only rows that fail are judged again, up to `tries` times, so that one unlucky sample does
    not break a build. Every further try makes it easier to pass: keep `tries` small, and do
    not use the result as a pass rate. A judge with a cache, or a model that always gives the
    same reply, repeats its verdict.

    Args:
        judge: What `judge_many` takes.
        rows: Pairs or single texts.
        min_pass: The share of rows that must pass, in (0, 1].
        tries: The most times that a row is judged.
        passes: Whether a result of `judge_many` passes. Default: its verdict is the row's
            `label`; without a label, its `score` is in the upper half of the judge's scale, or
            in the middle. For a pair that means that A, your text, is as good as B. A row that
            could not be judged never passes.
        max_concurrency: The most model calls in flight.

    Returns:
        The last result of each row, in the order of the rows.

    Raises:
        AssertionError: Too few rows pass; it names each row that failed, with the reason.
        OptionError: An option is not allowed, or there are no rows.
    """
    __tracebackhide__ = True  # pytest shows the message, not this function
    check_value("min_pass", min_pass, Annotated[float, Gt(0), Le(1)])
    check_value("tries", tries, Annotated[int, Ge(1)])
    data = list(source_of(rows).records)
    if not data:
        raise OptionError("`rows` must hold at least one row; a test of none would always pass")
    passes_row = passes or _passes
    results: dict[int, ResultRow] = {}
    failures = list(range(len(data)))
    for _ in range(tries):
        run = judge_many(judge, [data[i] for i in failures], max_concurrency=max_concurrency)
        results |= dict(zip(failures, run, strict=True))
        failures = [
            i for i in failures if not (judged_row(results[i]) and passes_row(results[i]))
        ]
        if not failures:
            break
    ordered = [results[i] for i in range(len(data))]
    if len(data) - len(failures) < ceil(min_pass * len(data) - 1e-9):
        raise AssertionError(_complaint(ordered, failures, min_pass))
    return ordered


def _passes(row: ResultRow) -> bool:
    verdict, label = row["verdict"], row.get("label")
    if label is None:
        return bool(verdict["score"] >= 0.5)
    if kind_of_verdict(verdict) == "pair":
        return bool(verdict["preference"] == read_label(label))
    return str(verdict["label"]) == str(label)


def _complaint(results: list[ResultRow], failures: list[int], min_pass: float) -> str:
    passes = len(results) - len(failures)
    lines = [f"{passes} of {len(results)} rows pass, {min_pass:.0%} must:"]
    return "\n".join([*lines, *(_reason(i, results[i]) for i in failures)])


def _reason(place: int, row: ResultRow) -> str:
    verdict = outcome_of(row)
    name = row.get("id") or f"row {place + 1}"
    if not judged_row(row):
        first = next(iter(verdict.get("failures") or []), {"reason": "no reason"})
        return f"- {name}: not judged ({first['reason']}) {first.get('detail') or ''}".rstrip()
    answer = answer_of(verdict)
    truth = "" if row.get("label") is None else f", the label is {row['label']}"
    return f"- {name}: {answer} (score {verdict['score']:.2f}){truth}. {verdict['rationale']}"
