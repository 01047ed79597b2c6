"""Summary evaluators of an experiment: agreement with people, flips, failures.

Each is a rate with its 95% interval (Wilson 1927); its comment says which rows it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langsmith.schemas import Example, Run

from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.evaluators import JudgeEvaluator
from langchain_judges.rows.applications import TextSource, check_sources, check_words
from langchain_judges.verdict import decision, reason_of

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
            label = _at(fields or {}, "label" if source is None else source)
        except InputError:
            continue
        if label is not None:
            return label
    return None


def _at(fields: Mapping[str, object], source: TextSource) -> object:
    if callable(source):
        return source(fields)
    at: object = fields
    for step in str(source).split("."):
        at = at.get(step) if isinstance(at, Mapping) else None
    return at


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
