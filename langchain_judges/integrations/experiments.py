"""Experiments of LangSmith: two compared run by run, and one summed up.

`as_comparative_evaluator` is for `evaluate_comparative`. Each summary evaluator gives a rate
with its 95% interval (Wilson 1927); its comment says which rows it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any
from uuid import UUID

from langsmith.run_helpers import get_tracing_context
from langsmith.schemas import Example, Run
from langsmith.utils import LangSmithError

from langchain_judges.asking.steps import Steps, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import (
    CaseReader,
    CaseVerdict,
    TextSources,
    config_for,
    error_verdict,
    verdict_of,
)
from langchain_judges.integrations.evaluators import JudgeEvaluator
from langchain_judges.methods.describe import kind_of
from langchain_judges.rows.fields import expected_in
from langchain_judges.rows.lookup import TextSource, check_sources, check_words
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, decision, reason_of, score_of


def as_comparative_evaluator(
    judge: Judge,
    *,
    key: str = "preference",
    input: TextSource = None,
    output: TextSource = None,
    reference: TextSource = None,
    context: TextSource = None,
) -> Callable[[Sequence[Run], Example | None], dict[str, Any]]:
    """Make a judge an evaluator for `langsmith.evaluation.evaluate_comparative`.

    A judge of pairs compares all pairs of runs of one example; a run's score is the mean of
    how far it was preferred. The reference output, if there is one, is shown to the judge as
    the reference. Each run has its own comment, which names the experiments.

    Args:
        judge: A judge of pairs.
        key: Name of the feedback.
        input: Where the task is in the example's inputs.
        output: Where the text is in each run's outputs.
        reference: Where the reference is in the example's outputs, as in `as_evaluator`.
        context: Where the source is in the inputs, as in `as_evaluator`.

    Returns:
        A function of the runs and the example to `{"key", "scores", "comment"}`; scores are
        by run id, comments by its text, as LangSmith reads them. A run that could not be
        judged has the score None and the reason as its comment.

    Raises:
        OptionError: `judge` takes no pairs, or an option is not allowed.
    """
    check_words(key=key)
    if kind_of(judge) == "item":
        raise OptionError(
            "`judge` must compare pairs; one that labels a text is `as_evaluator`'s"
        )
    reader = CaseReader(judge, TextSources(input, output, reference, context))
    names: dict[object, str] = {}

    def compare(runs: Sequence[Run], example: Example | None) -> dict[str, Any]:
        inputs = example.inputs if example else runs[0].inputs
        reference_outputs = example.outputs if example else None
        scores: dict[UUID, list[float]] = {each.id: [] for each in runs}
        comments: dict[str, list[str]] = {str(each.id): [] for each in runs}
        for sides in combinations(runs, 2):
            verdict = run(_comparison(judge, reader, sides, inputs, reference_outputs))
            named = {
                x: _experiment_of(each, names) for x, each in zip("AB", sides, strict=True)
            }
            for side, own, other in zip(sides, "AB", "BA", strict=True):
                who = f"This run is {own}{named[own]}, the other is {other}{named[other]}. "
                comments[str(side.id)].append(who + comment_of(verdict))
                if (score := score_of(verdict)) is not None:
                    scores[side.id].append(score if own == "A" else 1 - score)
        return {
            "key": key,
            "scores": {k: sum(v) / len(v) if v else None for k, v in scores.items()},
            "comment": {k: "\n".join(v) for k, v in comments.items()},
        }

    compare.__name__ = key
    return compare


def _experiment_of(run: Run, names: dict[object, str]) -> str:
    """Return the name of a run's experiment in brackets; "" where nobody can say it."""
    client = get_tracing_context().get("client")
    if run.session_id not in names:
        try:
            project = (
                client and run.session_id and client.read_project(project_id=run.session_id)
            )
        except LangSmithError:  # a name is no reason to lose a verdict
            project = None
        names[run.session_id] = f" ({project.name})" if project else ""
    return names[run.session_id]


def _comparison(
    judge: Judge, reader: CaseReader, sides: Sequence[Run], inputs: object, reference: object
) -> Steps[CaseVerdict]:
    try:
        a, b = map(reader.outputs, sides)
        case = reader.sides(inputs, a, b, reference)
        metadata = {f"run_{'ab'[i]}": str(side.id) for i, side in enumerate(sides)}
        config = config_for(judge, metadata=metadata)
        return (yield from verdict_of(judge, case, config))
    except InputError as exc:
        return error_verdict(judge, exc)


SummaryEvaluator = Callable[[Sequence[Run], Sequence[Example]], dict[str, Any]]


def summary_evaluators(
    evaluator: JudgeEvaluator | None = None,
    *,
    key: str | None = None,
    label: TextSource = "label",
) -> list[SummaryEvaluator]:
    """Return LangSmith summary evaluators for an experiment with a judge.

    Args:
        evaluator: The evaluator of the same `evaluate` call, whose verdicts are counted.
            None if the judge itself was the target: verdicts are then read from the runs'
            outputs.
        key: Prefix of the feedback's names; default the evaluator's key, or `"judge"`.
        label: Where people's label (`"A"`, `"B"` or `"tie"` of a pair, or the label of one
            text) is in the reference outputs or the example's metadata: a key, a path or a
            function.

    Returns:
        Three functions: `{key}_agreement` with the labels, over judged rows that have one;
        `{key}_flip_rate`, over rows judged in both orders; `{key}_failure_rate`, over all
        rows, with one more rate for each reason.

    Raises:
        OptionError: `evaluator` does not come from `as_evaluator`, or an option is not allowed.
    """
    if not (evaluator is None or isinstance(evaluator, JudgeEvaluator)):
        raise OptionError(
            "`evaluator` must come from `as_evaluator`, or be None if the judge itself "
            f"was the target, got {type(evaluator).__name__}"
        )
    check_words(key=key)
    check_sources(label=label)
    name = key or (evaluator.key if evaluator else "judge")

    def verdicts(runs: Sequence[Run]) -> list[Mapping[str, Any]]:
        return [_verdict(run, evaluator) for run in runs]

    def agreement(runs: Sequence[Run], examples: Sequence[Example]) -> dict[str, object]:
        pairs = [
            (decision(verdict), truth)
            for verdict, example in zip(verdicts(runs), examples, strict=True)
            if decision(verdict) is not None and (truth := _label(example, label)) is not None
        ]
        same = sum(str(answer) == str(truth) for answer, truth in pairs)
        return _rate(f"{name}_agreement", same, len(pairs), "judged rows with a label")

    def flip_rate(runs: Sequence[Run], examples: Sequence[Example]) -> dict[str, object]:
        flips = [v["flipped"] for v in verdicts(runs) if v.get("flipped") is not None]
        return _rate(f"{name}_flip_rate", sum(flips), len(flips), "rows judged in both orders")

    def failure_rate(runs: Sequence[Run], examples: Sequence[Example]) -> dict[str, object]:
        row_verdicts = verdicts(runs)
        reasons = Counter(reason_of(v) for v in row_verdicts if decision(v) is None)
        rates = [("", sum(reasons.values())), *((f":{r}", n) for r, n in reasons.items())]
        results = [
            _rate(f"{name}_failure_rate{reason}", count, len(row_verdicts), "rows")
            for reason, count in rates
        ]
        return {"results": results}

    return [agreement, flip_rate, failure_rate]


def _verdict(run: Run, evaluator: JudgeEvaluator | None) -> Mapping[str, Any]:
    """Return a row's verdict; without one an empty verdict, which counts as a failure."""
    if evaluator:
        return evaluator.verdict_on(run.id) or {}
    verdict = (run.outputs or {}).get("verdict")
    return verdict if isinstance(verdict, Mapping) else {}


def _label(example: Example, source: TextSource) -> object:
    for fields in (example.outputs, example.metadata):
        try:
            return expected_in(fields or {}, "label" if source is None else source)
        except InputError:
            continue
    return None


def _rate(key: str, count: int, total: int, what: str) -> dict[str, object]:
    """Return a rate as feedback; without a score if no row counts."""
    if not total:
        return {"key": key, "score": None, "comment": f"There are no {what}."}
    # Loaded on use, because the metrics load scipy.
    from langchain_judges.metrics.intervals import wilson_interval

    low, high = wilson_interval(count, total)
    return {
        "key": key,
        "score": count / total,
        "comment": f"{count} of {total} {what}; 95% interval {low:.3f} to {high:.3f}.",
        "extra": {"count": count, "total": total, "low": low, "high": high},
    }
