"""A judge as an evaluator, for LangSmith's rows and for direct calls.

`as_evaluator` returns an object that LangSmith accepts as a `RunEvaluator` and that can be
called like openevals' evaluators. A row that could not be judged gives feedback without a
score, whose comment says why; it is never 0 and never missing.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from threading import Lock

from langsmith import utils
from langsmith.evaluation import EvaluationResult, EvaluationResults, RunEvaluator
from langsmith.run_helpers import get_tracing_context
from langsmith.schemas import Example, Run
from typing_extensions import TypedDict

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import (
    BaselineSource,
    CaseReader,
    CaseVerdict,
    EvaluatedRow,
    JudgmentResult,
    TextSources,
    config_for,
    error_verdict,
    feedback_key,
    feedback_keys,
    outcome_of,
    scores_of,
)
from langchain_judges.methods.describe import marks_of
from langchain_judges.rows.lookup import TextSource, check_words
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import decision

# How many verdicts an evaluator keeps for the summary of an experiment.
_MAX_VERDICTS = 100_000


class Feedback(TypedDict):
    """Result of calling an evaluator: openevals' five keys."""

    key: str
    score: float | None
    comment: str | None
    metadata: dict[str, object] | None
    source_run_id: str | None


SCORES: dict[str, object] = {"type": "continuous", "min": 0, "max": 1}
"""How LangSmith is told to draw every score of this package."""
# The names of feedback of the row that LangSmith evaluates, and whose they are. It calls the
# evaluators of an experiment one after another for each row; none knows the others.
_KEYS: ContextVar[tuple[tuple[str, str], dict[str, JudgeEvaluator]] | None] = ContextVar(
    "keys", default=None
)


def as_evaluator(  # noqa: PLR0913 - where each text stands
    judge: Judge,
    *,
    key: str | None = None,
    input: TextSource = None,
    output: TextSource = None,
    reference: TextSource = None,
    context: TextSource = None,
    baseline: BaselineSource = None,
) -> JudgeEvaluator:
    """Make a judge an evaluator for LangSmith, which can also be called like openevals'.

    A judge of pairs takes the run's output as A and the reference output, or the baseline's
    output, as B; its score is how far A is preferred. A judge of one text takes the output
    alone, with the reference as the expected answer and the context as its source. Every score
    is the verdict's, from 0 to 1, and `value` is the label as people read it. If
    there is neither, and the judge has no rubric, the row is not judged. The task is never used
    as a source.

    Args:
        judge: A judge of this package, or a runnable from a `Pair` or an `Item` to
            `{"verdict": …}`.
        key: Name of the feedback; default the judge's name, that of its ready rubric or of its
            only criterion, or the method.
        input: Where the task is in the inputs: a key, a path (`"question.text"`,
            `"messages.0"`), a function of the inputs, or None to search the usual keys.
        output: Where the text is in the outputs, in the same way.
        reference: Where the reference is in the reference outputs. A judge with its own
            rubric sees a data set's reference only if this names it.
        context: Where the source is that the text is checked against: a key or a path
            in the inputs or the outputs, or a function of `{"inputs", "outputs"}`. None:
            the usual keys in the inputs (`context`, `documents`, `source`, `retrieved`), and
            in the outputs for a judge that needs a source. A judge of pairs reads it after
            the task.
        baseline: For a judge of pairs: other outputs to compare with, by the id of the
            example (`baseline_outputs` reads those of an experiment) or a function of the
            inputs. The judge then sees the reference as a reference.

    Returns:
        An evaluator for `Client.evaluate` and `aevaluate`; a judge with several criteria
        gives a list, with one feedback for the total and one for each criterion, under its
        name. Called with `inputs`, `outputs`, `reference_outputs` and `context` it returns
        `{"key", "score", "comment", "metadata", "source_run_id"}`; `acall` is the same for an
        event loop.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, a judge of one text has a
            baseline, or an option is not allowed.
    """
    check_words(key=key)
    places = TextSources(input, output, reference, context)
    return JudgeEvaluator(judge, key, CaseReader(judge, places, baseline))


class JudgeEvaluator(RunEvaluator):
    """A judge as an evaluator of LangSmith or openevals; create it with `as_evaluator`."""

    def __init__(self, judge: Judge, key: str | None, reader: CaseReader) -> None:
        """Create the evaluator, without a call to a model."""
        self.judge = judge
        self.marks = marks_of(judge)
        self.key = key or feedback_key(judge)
        self._reader = reader
        self._verdicts: OrderedDict[str, dict[str, object]] = OrderedDict()
        self._lock = Lock()

    @property
    def feedback_keys(self) -> list[str]:
        """The feedback keys of a row, also if this evaluator fails on it."""
        return feedback_keys(self.judge, self.key)

    def evaluate_run(
        self,
        run: Run,
        example: Example | None = None,
        evaluator_run_id: uuid.UUID | None = None,
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output, synchronously."""
        return _run(self._evaluate(run, example, evaluator_run_id))

    async def aevaluate_run(
        self,
        run: Run,
        example: Example | None = None,
        evaluator_run_id: uuid.UUID | None = None,
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output, asynchronously."""
        return await arun(self._evaluate(run, example, evaluator_run_id))

    def __call__(
        self,
        *,
        inputs: object = None,
        outputs: object,
        reference_outputs: object = None,
        context: object = None,
    ) -> Feedback | list[Feedback]:
        """Judge outputs, called like openevals' evaluators."""
        row = EvaluatedRow(inputs, outputs, reference_outputs, None, context, True)
        return _run(self._call(row))

    async def acall(
        self,
        *,
        inputs: object = None,
        outputs: object,
        reference_outputs: object = None,
        context: object = None,
    ) -> Feedback | list[Feedback]:
        """Judge outputs asynchronously."""
        row = EvaluatedRow(inputs, outputs, reference_outputs, None, context, True)
        return await arun(self._call(row))

    def verdict_on(self, run_id: object) -> Mapping[str, object] | None:
        """Return what a summary needs of the verdict on a run; None if there is none."""
        return self._verdicts.get(str(run_id))

    def _call(self, row: EvaluatedRow) -> Steps[Feedback | list[Feedback]]:
        run_id = uuid.uuid4()
        outcome, ran = yield from self._judge(row, run_id, {})
        source = str(run_id) if ran and utils.tracing_is_enabled() is True else None
        feedback: list[Feedback] = [
            {
                "key": each.key,
                "score": each.score,
                "comment": each.comment,
                "metadata": {**self.marks, **(each.extra or {"label": each.answer})},
                "source_run_id": source,
            }
            for each in scores_of(outcome, self.key)
        ]
        return feedback if len(feedback) > 1 else feedback[0]

    def _evaluate(
        self, run: Run, example: Example | None, run_id: uuid.UUID | None
    ) -> Steps[EvaluationResult | EvaluationResults]:
        self._check_keys(run)
        inputs = example.inputs if example else run.inputs
        reference = example.outputs if example else None
        metadata = {"target_run_id": str(run.id)}
        outputs = self._reader.outputs(run)
        row = EvaluatedRow(inputs, outputs, reference, str(example.id) if example else None)
        if not run.outputs and run.error:
            error = InputError(f"the run failed and has no output: {run.error[:300]}")
            outcome: JudgmentResult = {"verdict": error_verdict(self.judge, error)}
            ran = False
        else:
            outcome, ran = yield from self._judge(row, run_id or uuid.uuid4(), metadata)
        self._remember(run.id, outcome["verdict"])
        results = [
            EvaluationResult(
                key=each.key,
                score=each.score,
                value=each.value,
                comment=each.comment,
                evaluator_info=self.marks,
                feedback_config=SCORES,
                extra=each.extra,
                source_run_id=run_id if ran else None,
            )
            for each in scores_of(outcome, self.key)
        ]
        return {"results": results} if len(results) > 1 else results[0]

    def _check_keys(self, run: Run) -> None:
        """Check that no other evaluator of the experiment gives feedback by the same names.

        Raises:
            OptionError: One does, and LangSmith would keep the scores of one of them.
        """
        experiment = (get_tracing_context().get("metadata") or {}).get("experiment")
        of_run = (str(experiment), str(run.id))
        row = _KEYS.get()
        if row is None or row[0] != of_run:
            row = of_run, {}
            _KEYS.set(row)
        for key in self.feedback_keys if experiment else ():
            other = row[1].setdefault(key, self)
            if other is not self:
                names = " and ".join(repr(each.marks["method"]) for each in (other, self))
                raise OptionError(
                    f"two evaluators of this experiment, {names}, give the feedback {key!r}: "
                    "name one of them by `as_evaluator(judge, key=…)`, or its criteria"
                )

    def _judge(
        self, row: EvaluatedRow, run_id: uuid.UUID, metadata: dict[str, str]
    ) -> Steps[tuple[JudgmentResult, bool]]:
        """Return the judge's outcome, and whether it ran at all."""
        try:
            case = self._reader.case(row)
            config = config_for(self.judge, run_id=run_id, run_name=self.key, metadata=metadata)
            return (yield from outcome_of(self.judge, case, config)), True
        except InputError as exc:
            return {"verdict": error_verdict(self.judge, exc)}, False

    def _remember(self, run_id: object, verdict: CaseVerdict) -> None:
        note: dict[str, object] = {
            "preference": decision(verdict),
            "flipped": verdict.get("flipped"),
            "failures": [{"reason": f["reason"]} for f in verdict.get("failures") or []],
        }
        with self._lock:
            self._verdicts[str(run_id)] = note
            if len(self._verdicts) > _MAX_VERDICTS:
                self._verdicts.popitem(last=False)


_run = run  # `run` is also LangSmith's name for an evaluator's argument
