"""A judge as an evaluator: of LangSmith's rows and experiments, and for direct calls.

`as_evaluator` returns an object that LangSmith accepts as a `RunEvaluator` and that can be
called like openevals' evaluators or LangSmith's, and awaited. In a test of LangSmith's pytest
plugin a call logs its feedback. A row that could not be judged gives feedback without a
score, whose comment says why; it is never 0 and never missing. `as_comparative_evaluator` is
for `evaluate_comparative`. Each summary evaluator gives a rate with its 95% interval (Wilson
1927); its comment says which rows it counts.
"""

from __future__ import annotations

import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from itertools import combinations
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any
from uuid import UUID

from langsmith import utils
from langsmith.evaluation import EvaluationResult, EvaluationResults, RunEvaluator
from langsmith.run_helpers import get_tracing_context
from langsmith.schemas import Example, Run
from langsmith.utils import LangSmithError

from langchain_judges.asking.effects import run
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.feedback import (
    Feedback,
    ScoreScale,
    Span,
    logged_in_test,
    spans_of,
)
from langchain_judges.integrations.framework_cases import (
    CaseReader,
    CaseVerdict,
    EvaluatedRow,
    JudgmentResult,
    TextSources,
    error_verdict,
    feedback_key,
    feedback_keys,
    outcome_of,
    scores_of,
)
from langchain_judges.methods.describe import fingerprint_of, kind_of, unwrapped
from langchain_judges.options import Rule, check_value
from langchain_judges.rows.fields import expected_in
from langchain_judges.rows.lookup import TextSource, check_sources, check_words
from langchain_judges.runs.run_state import ALIKE, Judge, all_lack
from langchain_judges.verdict import Item, Pair, comment_of, decision, reason_of, score_of

# How many verdicts an evaluator keeps for the summary of an experiment.
_MAX_VERDICTS = 100_000


# Makes a row of a run and its example.
Prepare = Annotated[
    Callable[[Any, Any], Mapping[str, object]] | None,
    Rule("a function of a run and its example that returns a row"),
]
# The names of feedback of the row that LangSmith evaluates, and whose they are. It calls the
# evaluators of an experiment one after another for each row; none knows the others.
_KEYS: ContextVar[tuple[tuple[str, str], dict[str, JudgeEvaluator]] | None] = ContextVar(
    "keys", default=None
)


def as_evaluator(  # noqa: PLR0913 - where each field stands
    judge: Judge,
    *,
    key: str | None = None,
    input: TextSource = None,
    output: TextSource = None,
    reference: TextSource = None,
    context: TextSource = None,
    rubric: TextSource = None,
    prepare: Prepare = None,
    scale: ScoreScale = "unit",
) -> JudgeEvaluator:
    """Make a judge an evaluator for LangSmith, which can also be called like openevals'.

    A judge of pairs takes the run's output as A and the reference output as B; its score is how
    far A is preferred. A judge of one text takes the output
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
        reference: Where the reference is in the reference outputs. None: the usual keys,
            without what people know of a row, such as `label`.
        context: Where the source is that the text is checked against: a key or a path
            in the inputs or the outputs, or a function of `{"inputs", "outputs"}`. None:
            the usual keys in the inputs (`context`, `documents`, `source`, `retrieved`), and
            in the outputs for a judge that needs a source. A judge of pairs reads it after
            the task.
        rubric: Where the criteria of a row are, in the inputs or the reference outputs: a text,
            a list, or LangSmith's assertions, each `{"key", "comment"}`. None: the judge's
            own; of a judge that compares, those under `assertions`, `criteria` or `rubric` in
            the reference outputs.
        prepare: Makes the row that is judged, of the run and the example, in place of all
            that: `lambda run, example: {"input": …, "output": …}`.
        scale: How a score is given where labels are numbers: 3 of 1 to 5 as 0.5 (`"unit"`),
            0.6 (`"share"`) or 3 (`"raw"`); the feedback's metadata say which, and which end is
            good.

    Returns:
        An evaluator for `Client.evaluate` and `aevaluate`; a judge with several criteria
        gives a list, with one feedback for the total and one for each criterion, under its
        name. Called with `inputs`, `outputs`, `reference_outputs`, `context`, `attachments` and
        whatever else a prompt or a row has, or with a run and its example, as objects or as
        data, it returns `{"key", "score", "comment", "metadata", "source_run_id"}`, of several
        criteria that of the total, with all of them under `results`. The result may be awaited;
        `acall` does not keep an event loop waiting.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, or an option is not allowed.
    """
    check_words(key=key)
    check_value("prepare", prepare, Prepare)
    places = TextSources(input, output, reference, context, rubric)
    return JudgeEvaluator(judge, key, CaseReader(judge, places), prepare, scale)


# What a run has beside its own fields, where it is JSON.
_RUN_FIELDS = ("error", "child_runs", "outputs", "inputs", "run_type")


def _objects(run: Any, example: Any) -> tuple[Any, Any]:
    """Return a run and its example, also where LangSmith gives them as JSON."""
    blank = dict.fromkeys((*_RUN_FIELDS, "id", "session_id"))
    run, example = (
        SimpleNamespace(**{**blank, **each}) if isinstance(each, Mapping) else each
        for each in (run, example)
    )
    return run, example


class JudgeEvaluator(RunEvaluator):
    """A judge as an evaluator of LangSmith or openevals; create it with `as_evaluator`."""

    def __init__(
        self,
        judge: Judge,
        key: str | None,
        reader: CaseReader,
        prepare: Prepare = None,
        scale: ScoreScale = "unit",
    ) -> None:
        """Create the evaluator, without a call to a model."""
        self._prepare = prepare
        self.judge = judge
        self.marks = fingerprint_of(judge)
        self.key = key or feedback_key(judge)
        self._spans = spans_of(judge, self.key, scale)
        self._reader = reader
        self._verdicts: OrderedDict[str, dict[str, object]] = OrderedDict()
        self._lock = Lock()
        # How many rows, the first of all, had nothing to be judged by.
        self._lacking = 0

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
        return await self._evaluate(run, example, evaluator_run_id)

    def __call__(self, run: Any = None, example: Any = None, **fields: Any) -> Feedback:
        """Judge as `acall` does, before it returns; the result may be awaited."""
        return _run(self.acall(run, example, **fields))

    async def acall(  # noqa: PLR0913 - both forms of a call
        self,
        run: Any = None,
        example: Any = None,
        *,
        inputs: object = None,
        outputs: object = None,
        reference_outputs: object = None,
        context: object = None,
        attachments: Any = None,
        **variables: object,
    ) -> Feedback:
        """Judge outputs, or a run and its example.

        Args:
            run: A run, also as LangSmith gives it as data, in place of what follows.
            example: Its example.
            inputs: What was asked; None if the outputs begin with it.
            outputs: What is judged.
            reference_outputs: What it is compared with.
            context: What it is checked against.
            attachments: An image's address, `{"mime_type", "data"}`, a content block, a list of
                these, or files by name.
            **variables: Further fields of the row, such as those that an own prompt names.

        Raises:
            OptionError: A variable is no field of a row, and no prompt of the judge names it.
        """
        self._check_variables(variables)
        row = EvaluatedRow(inputs, outputs, reference_outputs, context, True, attachments)

        def case() -> dict[str, object]:
            if run is None:
                return {**self._reader.case(row), **variables}
            return self._case(*_objects(run, example))

        with logged_in_test(self.key) as log:
            run_id = uuid.uuid4()
            outcome, ran = await self._judge(case, run_id, {})
            traced = ran and utils.tracing_is_enabled() is True
            feedback = self._feedback(outcome, str(run_id) if traced else None)
            log(feedback)
        return feedback

    def _check_variables(self, variables: Mapping[str, object]) -> None:
        prompts = getattr(unwrapped(self.judge), "prompts", {})
        known = {name for prompt in prompts.values() for name in prompt.input_variables}
        known |= {*Item.__annotations__, *Pair.__annotations__}
        if unknown := [name for name in variables if name not in known]:
            name = unknown[0]
            raise OptionError(f"`{name}` is shown to nobody: no prompt of the judge has it")

    def _feedback(self, outcome: JudgmentResult, source: str | None) -> Feedback:
        several = []
        for each in scores_of(outcome, self.key):
            span = self._spans.get(each.key, Span())
            also = each.extra or {"label": each.answer}
            feedback = Feedback(key=each.key, score=span.score(each.score))
            feedback |= {"comment": each.comment, "source_run_id": source}
            feedback["metadata"] = {**self.marks, **span.said, **also}
            several.append(feedback)
        return Feedback(several[0], results=several) if len(several) > 1 else several[0]

    def verdict_on(self, run_id: object) -> Mapping[str, object] | None:
        """Return what a summary needs of the verdict on a run; None if there is none."""
        return self._verdicts.get(str(run_id))

    async def _evaluate(
        self, run: Run, example: Example | None, run_id: uuid.UUID | None
    ) -> EvaluationResult | EvaluationResults:
        run, example = _objects(run, example)
        self._check_keys(run)
        metadata = {"target_run_id": str(run.id)}
        read = partial(self._case, run, example)
        outcome, ran = await self._judge(read, run_id or uuid.uuid4(), metadata)
        self._remember(run.id, outcome["verdict"])
        self._check_lacking(outcome["verdict"])
        results = [
            EvaluationResult(
                key=each.key,
                score=span.score(each.score),
                value=each.value,
                comment=each.comment,
                evaluator_info={**self.marks, **span.said},
                feedback_config=span.config,
                extra=each.extra,
                source_run_id=run_id if ran else None,
            )
            for each in scores_of(outcome, self.key)
            for span in [self._spans.get(each.key, Span())]
        ]
        return {"results": results} if len(results) > 1 else results[0]

    def _case(self, run: Any, example: Any) -> dict[str, object]:
        """Return what is judged of a run and its example.

        Raises:
            InputError: A text cannot be found.
        """
        if self._prepare:
            return self._prepared(run, example)
        inputs = example.inputs if example else run.inputs
        reference = example.outputs if example else None
        row = EvaluatedRow(inputs, self._reader.outputs(run), reference)
        attached = getattr(example, "attachments", None)
        return self._reader.case(row._replace(attachments=attached))

    def _prepared(self, run: object, example: object) -> dict[str, object]:
        """Return the row that the caller makes of a run and its example.

        Raises:
            InputError: It is none.
        """
        row = self._prepare(run, example) if self._prepare else None
        if not isinstance(row, Mapping):
            raise InputError(f"`prepare` must return a row, got {type(row).__name__}")
        return dict(row)

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

    async def _judge(
        self,
        read: Callable[[], dict[str, object]],
        run_id: uuid.UUID,
        metadata: dict[str, str],
    ) -> tuple[JudgmentResult, bool]:
        """Return the judge's outcome on the case that is read, and whether it ran at all."""
        try:
            outcome = await outcome_of(
                self.judge, read(), run_id=run_id, run_name=self.key, metadata=metadata
            )
            return outcome, True
        except InputError as exc:
            return {"verdict": error_verdict(self.judge, exc)}, False

    def _check_lacking(self, verdict: CaseVerdict) -> None:
        """Check that not all first rows lack what the judge needs.

        Raises:
            RepeatedFailureError: They do; the message says how fields are named.
        """
        with self._lock:
            if decision(verdict) is None and reason_of(verdict) == "lacking":
                self._lacking += 1
            elif self._lacking < ALIKE:
                self._lacking = -_MAX_VERDICTS
            if self._lacking >= ALIKE:
                detail = verdict["failures"][0]["detail"]
                raise all_lack(detail, "as_evaluator(judge, output=…, reference=…, context=…)`")

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


def as_comparative_evaluator(
    judge: Judge,
    *,
    key: str = "preference",
    input: TextSource = None,
    output: TextSource = None,
    reference: TextSource = None,
    context: TextSource = None,
) -> Callable[..., Feedback]:
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
        A function of the runs and the example, as objects or as data, to
        `{"key", "scores", "comment"}`; scores are by run id, comments by its text, as LangSmith
        reads them. Called with `inputs`, `outputs` (a list) and `reference_outputs`, scores and
        comments are lists. What could not be judged has the score None and the reason as its
        comment.

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

    def compare(
        runs: Sequence[Any] | None = None,
        example: Any = None,
        *,
        inputs: object = None,
        outputs: Sequence[object] = (),
        reference_outputs: object = None,
    ) -> Feedback:
        if runs is not None:
            return compared(runs, example)
        texts = [{"id": str(n), "outputs": each} for n, each in enumerate(outputs)]
        with logged_in_test(key) as log:
            found = compared(texts, {"inputs": inputs, "outputs": reference_outputs})
            lists = {name: [*found[name].values()] for name in ("scores", "comment")}
            log({"key": key, "score": lists["scores"][0], "comment": lists["comment"][0]})
        return Feedback(found, **lists)

    def compared(runs: Sequence[Any], example: Any) -> Feedback:
        runs = [_objects(each, None)[0] for each in runs]
        _, example = _objects(None, example)
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
        return Feedback(
            key=key,
            scores={k: sum(v) / len(v) if v else None for k, v in scores.items()},
            comment={k: "\n".join(v) for k, v in comments.items()},
        )

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


async def _comparison(
    judge: Judge, reader: CaseReader, sides: Sequence[Run], inputs: object, reference: object
) -> CaseVerdict:
    try:
        a, b = map(reader.outputs, sides)
        case = reader.sides(inputs, a, b, reference)
        metadata = {f"run_{'ab'[i]}": str(side.id) for i, side in enumerate(sides)}
        return (await outcome_of(judge, case, metadata=metadata))["verdict"]
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
