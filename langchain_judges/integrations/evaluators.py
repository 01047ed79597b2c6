"""A judge as an evaluator: of LangSmith's rows, and of rows that anybody gives it.

`as_evaluator` gives an object that LangSmith takes as a `RunEvaluator` and that anybody can
call as openevals' evaluators are called. A row that could not be judged is feedback without
a score whose comment says why; it is never 0 and never missing.
"""

from __future__ import annotations

import uuid
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langsmith import Client, utils
from langsmith.evaluation import EvaluationResult, EvaluationResults, RunEvaluator
from langsmith.schemas import Example, Run
from typing_extensions import TypedDict

from langchain_judges.asking.steps import Effect, Steps, arun, run
from langchain_judges.errors import InputError, JudgeError
from langchain_judges.integrations.reading import Baseline, CaseReader, EvaluatedRow, Places
from langchain_judges.methods.marks import marks_of, unwrapped
from langchain_judges.options import unknown_option
from langchain_judges.rows.applications import (
    Source,
    check_words,
    comment_of,
    decision,
    reason_of,
    score_of,
)
from langchain_judges.runs.workload import Judge
from langchain_judges.verdict import no_usage, not_judged

_KEPT = 100_000
"""Verdicts that an evaluator remembers for the summary of an experiment."""


class Feedback(TypedDict):
    """What an evaluator returns when it is called: openevals' five keys."""

    key: str
    score: float | int | None
    comment: str | None
    metadata: dict[str, Any] | None
    source_run_id: str | None


def as_evaluator(  # noqa: PLR0913 - where each text stands
    judge: Judge,
    *,
    key: str | None = None,
    input: Source = None,
    output: Source = None,
    reference: Source = None,
    context: Source = None,
    baseline: Baseline | None = None,
) -> JudgeEvaluator:
    """Make a judge an evaluator of LangSmith's, which can be called as openevals' are.

    A judge of pairs takes the run's output as A and the reference output, or the baseline's
    output, as B; its score is how far A is preferred. A judge of one text takes the output
    alone, with the reference as what is expected and the context as its source; its score is
    the label. Where neither is there and the judge has no rubric of its own, the row is not
    judged. The task is never taken for a source.

    Args:
        judge: A judge of this package, or a runnable from a `Pair` or an `Item` to
            `{"verdict": …}`.
        key: Name of the feedback; default the method.
        input: Where the task stands in the inputs: a key, a path (`"question.text"`,
            `"messages.0"`), a function of the inputs, or None to find it by usual names.
        output: Where the text stands in the outputs, the same way.
        reference: Where the known text stands in the reference outputs. A judge with a
            rubric of its own is shown a data set's reference only where this names it.
        context: Where the source that the text is checked against stands: a key or a path
            of the inputs or of the outputs, or a function of `{"inputs", "outputs"}`. None:
            the usual names in the inputs (`context`, `documents`, `source`). A judge of pairs
            reads it behind the task.
        baseline: For a judge of pairs: other outputs to compare with, by the id of the
            example (`baseline_outputs` reads those of an experiment) or a function of the
            inputs. The reference is then shown to the judge as one.

    Returns:
        An evaluator for `Client.evaluate` and `aevaluate`; by several criteria it gives one
        feedback for the total and one for each criterion, under its name, in a list. Called
        with `inputs`, `outputs`, `reference_outputs` and `context` it returns `{"key",
        "score", "comment", "metadata", "source_run_id"}`; `acall` is the same
        for an event loop.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, a judge of one text was given
            a baseline, or an option is not allowed.
    """
    check_words(key=key)
    places = Places(input, output, reference, context)
    return JudgeEvaluator(judge, key, CaseReader(judge, places, baseline))


class JudgeEvaluator(RunEvaluator):
    """A judge as LangSmith and openevals call evaluators; `as_evaluator` makes it."""

    def __init__(self, judge: Judge, key: str | None, reader: CaseReader) -> None:
        """Prepare the evaluator; nothing is asked."""
        self.judge = judge
        self.marks = marks_of(judge)
        self.key = key or str(self.marks["method"])
        self._reader = reader
        self._verdicts: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = Lock()

    @property
    def feedback_keys(self) -> list[str]:
        """The keys that a row gets, even if this evaluator fails on it."""
        options = getattr(unwrapped(self.judge), "options", None)
        return list(dict.fromkeys([self.key, *getattr(options, "parts", ())]))

    def evaluate_run(
        self,
        run: Run,
        example: Example | None = None,
        evaluator_run_id: uuid.UUID | None = None,
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output, waiting in this thread."""
        return _run(self._evaluate(run, example, evaluator_run_id))

    async def aevaluate_run(
        self,
        run: Run,
        example: Example | None = None,
        evaluator_run_id: uuid.UUID | None = None,
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output in the running event loop."""
        return await arun(self._evaluate(run, example, evaluator_run_id))

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any,
        reference_outputs: Any = None,
        context: Any = None,
        **unknown: Any,
    ) -> Feedback | list[Feedback]:
        """Judge some outputs, as openevals' evaluators do.

        Raises:
            OptionError: A keyword is unknown.
        """
        _refuse(unknown)
        return _run(
            self._call(EvaluatedRow(inputs, outputs, reference_outputs, None, context, True))
        )

    async def acall(
        self,
        *,
        inputs: Any = None,
        outputs: Any,
        reference_outputs: Any = None,
        context: Any = None,
        **unknown: Any,
    ) -> Feedback | list[Feedback]:
        """Judge some outputs in the running event loop.

        Raises:
            OptionError: A keyword is unknown.
        """
        _refuse(unknown)
        row = EvaluatedRow(inputs, outputs, reference_outputs, None, context, True)
        return await arun(self._call(row))

    def verdict_on(self, run_id: object) -> dict[str, Any] | None:
        """Return what is remembered of the verdict on a run; None if there is none."""
        return self._verdicts.get(str(run_id))

    def _call(self, row: EvaluatedRow) -> Steps[Feedback | list[Feedback]]:
        run_id = uuid.uuid4()
        outcome, ran = yield from self._judge(row, run_id, {})
        verdict = outcome["verdict"]
        source = str(run_id) if ran and utils.tracing_is_enabled() is True else None
        whole: Feedback = {
            "key": self.key,
            "score": score_of(verdict),
            "comment": comment_of(verdict),
            "metadata": {**self.marks, **_extra(verdict)},
            "source_run_id": source,
        }
        parts: list[Feedback] = [
            {
                "key": each["criterion"],
                "score": each["score"],
                "comment": reason_for(each),
                "metadata": {**self.marks, "label": each["label"]},
                "source_run_id": source,
            }
            for each in criteria_of(outcome, self.key)
        ]
        return [whole, *parts] if parts else whole

    def _evaluate(
        self, run: Run, example: Example | None, run_id: uuid.UUID | None
    ) -> Steps[EvaluationResult | EvaluationResults]:
        inputs = example.inputs if example else run.inputs
        reference = example.outputs if example else None
        told = {"target_run_id": str(run.id)}
        outputs = self._reader.outputs(run)
        row = EvaluatedRow(inputs, outputs, reference, str(example.id) if example else None)
        if not run.outputs and run.error:
            lost = InputError(f"the run failed and has no output: {run.error[:300]}")
            outcome, ran = {"verdict": not_done(lost)}, False
        else:
            outcome, ran = yield from self._judge(row, run_id or uuid.uuid4(), told)
        self._remember(run.id, outcome["verdict"])
        source = run_id if ran else None
        whole = self._feedback(outcome["verdict"], source)
        parts = [
            EvaluationResult(
                key=each["criterion"],
                score=each["score"],
                value=each["label"] if isinstance(each["label"], str) else None,
                comment=reason_for(each),
                evaluator_info=self.marks,
                source_run_id=source,
            )
            for each in criteria_of(outcome, self.key)
        ]
        return {"results": [whole, *parts]} if parts else whole

    def _feedback(self, verdict: dict[str, Any], source: uuid.UUID | None) -> EvaluationResult:
        decided = decision(verdict)
        number = score_of(verdict)
        config = {"type": "continuous", "min": 0, "max": 1}
        return EvaluationResult(
            key=self.key,
            score=number,
            value=decided if isinstance(decided, str) else None,
            comment=comment_of(verdict),
            evaluator_info=self.marks,
            feedback_config=config if self._reader.kind == "pair" else None,
            extra=_extra(verdict),
            source_run_id=source,
        )

    def _judge(
        self, row: EvaluatedRow, run_id: uuid.UUID, told: dict[str, str]
    ) -> Steps[tuple[dict[str, Any], bool]]:
        """Return what the judge found, and whether it ran at all."""
        try:
            given = self._reader.case(row)
            config = config_for(self.judge, run_id=run_id, run_name=self.key, metadata=told)
            return (yield from outcome_of(self.judge, given, config)), True
        except InputError as exc:
            return {"verdict": not_done(exc)}, False

    def _remember(self, run_id: object, verdict: Mapping[str, Any]) -> None:
        slim = {
            "preference": decision(verdict),
            "flipped": verdict.get("flipped"),
            "failures": [{"reason": f["reason"]} for f in verdict.get("failures") or []],
        }
        with self._lock:
            self._verdicts[str(run_id)] = slim
            if len(self._verdicts) > _KEPT:
                self._verdicts.popitem(last=False)


def _refuse(unknown: Mapping[str, Any]) -> None:
    for name in unknown:
        taken = ("inputs", "outputs", "reference_outputs", "context")
        raise unknown_option("as_evaluator", name, taken)


_run = run  # `run` is also LangSmith's name for what an evaluator is given


def config_for(judge: Judge, **config: Any) -> RunnableConfig:
    """Return the configuration of one judgment, on a thread of its own if it is kept."""
    if getattr(unwrapped(judge), "checkpointer", None):
        config["configurable"] = {"thread_id": str(uuid.uuid4())}
    return cast("RunnableConfig", config)


def verdict_of(
    judge: Judge, case: Mapping[str, Any], config: RunnableConfig
) -> Steps[dict[str, Any]]:
    """Judge one case and return its verdict.

    Raises:
        InputError: The case cannot be judged as it was given.
        ModelAccessError: The provider refuses every call.
    """
    outcome = yield from outcome_of(judge, case, config)
    verdict: dict[str, Any] = outcome["verdict"]
    return verdict


def outcome_of(
    judge: Judge, case: Mapping[str, Any], config: RunnableConfig
) -> Steps[dict[str, Any]]:
    """Judge one case and return all that the judge found; raises as `verdict_of` does."""
    outcome: dict[str, Any] = yield Effect(
        lambda: judge.invoke(dict(case), config), lambda: judge.ainvoke(dict(case), config)
    )
    return outcome


def criteria_of(outcome: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return what was found by each of several criteria of one text, but for the total."""
    parts = outcome.get("subscores") or []
    if len(parts) < 2 or "label" not in parts[0]:
        return []
    # What was drafted from a task is asked of that task alone: no column for a data set.
    named = [part for part in parts if not part.get("drafted")]
    return [part for part in named if part["criterion"] != key]


def reason_for(subscore: Mapping[str, Any]) -> str:
    """Return why a criterion got its label, or that it was not judged."""
    return "Not judged." if subscore["label"] is None else str(subscore["reason"])


def not_done(exc: JudgeError) -> dict[str, Any]:
    """Return the verdict where an error came before any: texts missing, a key refused."""
    unread = isinstance(exc, InputError)
    failure: Any = {
        "step": "input" if unread else "judge",
        "unit": "",
        "reason": "missing" if unread else "provider_error",
        "detail": str(exc),
    }
    return dict(not_judged([failure], no_usage()))


def _extra(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return what people want of a verdict beside its score."""
    names = ("preference", "label", "confidence", "confidence_source", "flipped")
    usage = verdict.get("usage") or no_usage()
    failures = [dict(failure) for failure in verdict.get("failures") or []]
    extra: dict[str, Any] = {name: verdict[name] for name in names if name in verdict}
    extra["failures"] = failures
    extra["usage"] = {name: usage[name] for name in ("calls", "input_tokens", "output_tokens")}
    if decision(verdict) is None:
        extra["reason"] = reason_of(verdict)
    return extra


def baseline_outputs(client: Client, experiment: str) -> dict[str, Any]:
    """Return the outputs of an experiment's runs by the id of their example.

    Args:
        client: LangSmith's client.
        experiment: Its name or id.
    """
    try:
        project = uuid.UUID(str(experiment))
    except ValueError:
        project = client.read_project(project_name=experiment).id
    return {
        str(run.reference_example_id): run.outputs
        for run in runs_of(client, project_id=project, is_root=True)
        if run.reference_example_id and run.outputs
    }


def runs_of(client: Client, **which: Any) -> list[Run]:
    """Return some runs, by the one way that every LangSmith server has."""
    with warnings.catch_warnings():
        # What is to replace it asks for a newer server than many have.
        warnings.filterwarnings("ignore", r"list_runs\(\) is deprecated")
        return list(client.list_runs(**which))
