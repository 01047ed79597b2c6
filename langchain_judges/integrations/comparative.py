"""A judge as an evaluator of pairs of experiments: `evaluate_comparative` of LangSmith."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any
from uuid import UUID

from langsmith.schemas import Example, Run

from langchain_judges.asking.steps import Steps, run
from langchain_judges.errors import InputError
from langchain_judges.integrations.judging import (
    CaseVerdict,
    config_for,
    error_verdict,
    verdict_of,
)
from langchain_judges.integrations.reading import CaseReader, EvaluatedRow, TextSources
from langchain_judges.methods.describe import marks_of
from langchain_judges.rows.applications import TextSource, check_words
from langchain_judges.runs.workload import Judge
from langchain_judges.verdict import comment_of, score_of


def as_comparative_evaluator(
    judge: Judge,
    *,
    key: str | None = None,
    input: TextSource = None,
    output: TextSource = None,
    reference: TextSource = None,
    context: TextSource = None,
) -> Callable[[Sequence[Run], Example | None], dict[str, Any]]:
    """Make a judge an evaluator for `langsmith.evaluation.evaluate_comparative`.

    A judge of pairs compares all pairs of runs of one example; a run's score is the mean of
    how far it was preferred. The reference output, if there is one, is shown to the judge as
    the reference. A judge of one text labels each run. Each run has its own comment.

    Args:
        judge: As in `as_evaluator`.
        key: Name of the feedback; default `"preference"`, or the method of a judge of one
            text.
        input: Where the task is in the example's inputs.
        output: Where the text is in each run's outputs.
        reference: Where the reference is in the example's outputs, as in `as_evaluator`.
        context: Where the source is, as in `as_evaluator`; for a pair, in the inputs.

    Returns:
        A function of the runs and the example to `{"key", "scores", "comment"}`; scores are
        by run id, comments by its text, as LangSmith reads them. A run that could not be
        judged has the score None and the reason as its comment.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, or an option is not allowed.
    """
    check_words(key=key)
    reader = CaseReader(judge, TextSources(input, output, reference, context), None)
    name = key or ("preference" if reader.kind == "pair" else marks_of(judge)["method"])

    def compare(runs: Sequence[Run], example: Example | None) -> dict[str, Any]:
        inputs = example.inputs if example else runs[0].inputs
        reference_outputs = example.outputs if example else None
        scores: dict[UUID, list[float]] = {each.id: [] for each in runs}
        comments: dict[str, list[str]] = {str(each.id): [] for each in runs}
        for sides in combinations(runs, 2) if reader.kind == "pair" else zip(runs):
            verdict = run(_comparison(judge, reader, sides, inputs, reference_outputs))
            number = score_of(verdict)
            for side, who, share in _shares(sides, number):
                comments[str(side.id)].append(who + comment_of(verdict))
                if share is not None:
                    scores[side.id].append(share)
        return {
            "key": name,
            "scores": {k: sum(v) / len(v) if v else None for k, v in scores.items()},
            "comment": {k: "\n".join(v) for k, v in comments.items()},
        }

    compare.__name__ = str(name)
    return compare


def _shares(
    sides: Sequence[Run], number: float | None
) -> Iterator[tuple[Run, str, float | None]]:
    """Yield each side, the beginning of its comment, and its share of the score."""
    if len(sides) == 1:
        yield sides[0], "", number
        return
    yield sides[0], "This run is A. ", number
    yield sides[1], "This run is B. ", None if number is None else 1 - number


def _comparison(
    judge: Judge, reader: CaseReader, sides: Sequence[Run], inputs: object, reference: object
) -> Steps[CaseVerdict]:
    try:
        if reader.kind == "item":
            case = reader.case(EvaluatedRow(inputs, reader.outputs(sides[0]), reference))
        else:
            a, b = map(reader.outputs, sides)
            case = reader.sides(inputs, a, b, reference)
        metadata = {f"run_{'ab'[i]}": str(side.id) for i, side in enumerate(sides)}
        config = config_for(judge, metadata=metadata)
        return (yield from verdict_of(judge, case, config))
    except InputError as exc:
        return error_verdict(exc)
