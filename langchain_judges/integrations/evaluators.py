"""A judge as an evaluator: of LangSmith's rows and experiments, and for direct calls.

`as_evaluator` returns an object that LangSmith accepts as a `RunEvaluator` and that can be
called like openevals' evaluators or LangSmith's, and awaited. In a test of LangSmith's pytest
plugin a call logs its feedback. A row that could not be judged gives feedback without a
score, whose comment says why; it is never 0 and never missing. `as_comparative_evaluator` is
for `evaluate_comparative`.
"""

from __future__ import annotations

import math
from asyncio import to_thread
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from threading import Lock
from typing import Annotated, Any
from uuid import UUID, uuid4

from langchain_core.runnables import RunnableConfig
from langsmith import utils
from langsmith.evaluation import EvaluationResult, EvaluationResults, RunEvaluator
from langsmith.run_helpers import get_tracing_context
from langsmith.schemas import Example, Run

from langchain_judges.asking.effects import Effect, run
from langchain_judges.errors import InputError, OptionError, RepeatedFailureError, did_you_mean
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.integrations import feedback as sent
from langchain_judges.integrations.feedback import Feedback, ScoreScale, Span, spans_of
from langchain_judges.integrations.langsmith_runs import load_steps
from langchain_judges.methods.describe import fields_named, fingerprint_of, kind_of, option_of
from langchain_judges.options import Rule, check_value
from langchain_judges.rows import lookup, record
from langchain_judges.runs.run_state import ALIKE, Judge
from langchain_judges.verdict import Item, Pair, comment_of, decision, reason_of, score_of

# Makes a row of a run and its example.
Prepare = Annotated[
    Callable[[Any, Any], Mapping[str, object]] | None,
    Rule("a function of a run and its example that returns a row"),
]
# Further fields of a row, which a call may name; its texts have names of their own.
_TEXTS = ("inputs", "outputs", "reference_outputs")
_FURTHER = {*Item.__annotations__, *Pair.__annotations__} - {
    *("input", "output", "output_a", "output_b")
}
# The names of feedback of the row that LangSmith evaluates, and whose they are. It calls the
# evaluators of an experiment one after another for each row; none knows the others.
_KEYS: ContextVar[tuple[tuple[str, str], dict[str, JudgeEvaluator]] | None] = ContextVar(
    "keys", default=None
)


def as_evaluator(  # noqa: PLR0913 - where each field stands
    judge: Judge,
    *,
    key: str | None = None,
    input: lookup.TextSource = None,
    output: lookup.TextSource = None,
    reference: lookup.TextSource = None,
    context: lookup.TextSource = None,
    rubric: lookup.TextSource = None,
    prepare: Prepare = None,
    scale: ScoreScale = "unit",
) -> JudgeEvaluator:
    """Make a judge an evaluator for LangSmith, which can also be called like openevals'.

    A judge of pairs takes the run's output as A and the reference output as B; its score is how
    far A is preferred. A judge of one text takes the output alone, with the reference as the
    expected answer and the context as its source; if there is neither, and the judge has no
    rubric, the row is not judged. The task is never used as a source. Every score is the
    verdict's, from 0 to 1, and `value` is the label as people read it.

    Args:
        judge: A judge of this package, or a runnable from a `Pair` or an `Item` to
            `{"verdict": …}`.
        key: Name of the feedback; default the judge's name, that of its ready rubric or of its
            only criterion, or the method.
        input: Where the task is in the inputs: a key, a path (`"question.text"`,
            `"messages.0"`), a function of the inputs, or None to search the usual keys; words
            and numbers beside it are then named once, in a warning.
        output: Where the text is in the outputs, in the same way. What tools and retrievers did
            in child runs and a run's error are judged with it; a run that you read from
            LangSmith yourself must have its child runs.
        reference: Where the reference is in the reference outputs; a list there is of right
            answers, one of which is enough (facts that are all wanted are criteria: `rubric`).
            None: the usual keys. What people may know of a row (`label`, `labels`,
            `human_votes`, `category`, `group`, `systems`, `turn`) is part of the answer where
            the outputs have it too; the comment says what is left out.
        context: Where the source is that the text is checked against: a key or a path
            in the inputs or the outputs, or a function of `{"inputs", "outputs"}`. None:
            the usual keys in the inputs (`context`, `documents`, `source`, `retrieved`), and
            in the outputs for a judge that needs a source. A judge of pairs reads it after
            the task.
        rubric: Where the criteria of a row are, in the inputs or the reference outputs: a text,
            a list, or LangSmith's assertions, each `{"key", "comment"}`, in place of the
            judge's own. None: the judge's own; of a judge without one, those under
            `assertions`, `criteria` or `rubric` in the reference outputs.
        prepare: Makes the judged row from the run and the example, in place of the above:
            `lambda run, example: {"input": …, "output": …}`.
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
        `acall` does not block an event loop.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, an option is not allowed, or `key`
            is the name of a criterion.
    """
    lookup.check_words(key=key)
    check_value("prepare", prepare, Prepare)
    reader = cases.CaseReader(judge, cases.TextSources(input, output, reference, context, rubric))
    name = cases.feedback_key(judge, key)
    return JudgeEvaluator(judge, name, reader, prepare, spans_of(judge, name, scale))


@dataclass(eq=False)
class JudgeEvaluator(RunEvaluator):
    """A judge as an evaluator of LangSmith or openevals; create it with `as_evaluator`."""

    judge: Judge
    key: str
    reader: cases.CaseReader
    prepare: Prepare
    spans: Mapping[str, Span]
    # How many rows, the first of all, had nothing to be judged by.
    _lacking: float = field(default=0.0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def feedback_keys(self) -> list[str]:
        """The feedback keys of a row, also if this evaluator fails on it."""
        return [self.key, *(option_of(self.judge, "parts") or ())]

    def evaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output, synchronously."""
        return _run(self.aevaluate_run(run, example, evaluator_run_id))

    async def aevaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult | EvaluationResults:
        """Judge a run's output, asynchronously."""
        run, example = record.as_object(run), record.as_object(example)
        await _load_steps(run)
        self._check_keys(run)
        outcome = await cases.outcome_or_refusal(
            self.judge,
            partial(self._case, run, example),
            run_id=evaluator_run_id or uuid4(),
            run_name=self.key,
            metadata={"target_run_id": str(run.id)},
        )
        self._check_lacking(outcome["verdict"])
        results = self._results(outcome, evaluator_run_id)
        return {"results": results} if len(results) > 1 else results[0]

    def __call__(
        self, run: Any = None, example: Any = None, attachments: Any = None, **fields: Any
    ) -> Feedback:
        """Judge as `acall` does, before it returns; the result may be awaited.

        By the name of `attachments` LangSmith knows that it has to load them.
        """
        return _run(self.acall(run, example, attachments=attachments, **fields))

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
            OptionError: A variable is no field of a row, and no prompt of the judge names it;
                `run` is no run, or there is none and no text.
        """
        _check_variables(self.judge, variables)
        row = cases.EvaluatedRow(inputs, outputs, reference_outputs, context, True, attachments)
        if self.prepare is None:  # else they are what it takes
            run, example = _as_record(run), _as_record(example, "inputs")
            is_empty = all(each is None for each in (*row[:4], *variables.values()))
            if run is None and (example is not None or is_empty):
                raise OptionError(cases.WORDS["call"].format(got="no run"))
        run, example = record.as_object(run), record.as_object(example)

        def case() -> dict[str, object]:
            read = self.reader.case(row) if run is None else self._case(run, example)
            return {**read, **variables}

        with sent.logged_in_test(self.key) as log:
            own: RunnableConfig = {"run_id": uuid4(), "run_name": self.key}
            outcome = await cases.outcome_or_refusal(self.judge, case, **own)
            run_id = own["run_id"] if utils.tracing_is_enabled() is True else None
            results = self._results(outcome, run_id)
            log(results)
        return sent.in_openevals_form(results)

    def _results(
        self, outcome: cases.JudgmentResult, source: UUID | None
    ) -> list[EvaluationResult]:
        """Feedback on the total, then on each criterion; `source` is the judge's own run."""
        source = None if outcome.get("refused") else source
        return [
            sent.feedback_of(self.judge, each, self.spans.get(each.key, sent.UNIT), source)
            for each in cases.scores_of(outcome, self.key)
        ]

    def _case(self, run: Any, example: Any) -> dict[str, object]:
        """Row made of a run and its example.

        Raises:
            InputError: A text cannot be found, or `prepare` makes no row.
        """
        if self.prepare:
            made = self.prepare(run, example)
            if not isinstance(made, Mapping):
                raise InputError(f"`prepare` must return a row, got {type(made).__name__}")
            return dict(made)
        inputs = example.inputs if example else run.inputs
        reference = example.outputs if example else None
        row = cases.EvaluatedRow(inputs, run.outputs, reference, work=self.reader.work_of(run))
        return self.reader.case(row._replace(attachments=getattr(example, "attachments", None)))

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
                methods = [fingerprint_of(each.judge)["method"] for each in (other, self)]
                names = " and ".join(map(repr, methods))
                raise OptionError(cases.WORDS["one_key"].format(names=names, key=key))

    def _check_lacking(self, verdict: cases.CaseVerdict) -> None:
        """Check that not all first rows lack what the judge needs.

        Raises:
            RepeatedFailureError: They do; the message says how fields are named.
        """
        with self._lock:
            if decision(verdict) is None and reason_of(verdict) == "lacking":
                self._lacking += 1
            elif self._lacking < ALIKE:
                self._lacking = -math.inf
            if self._lacking >= ALIKE:
                lack = verdict["failures"][0]["detail"]
                raise RepeatedFailureError(f"The first {ALIKE} rows cannot be judged: {lack}")


async def _load_steps(*runs: Any) -> None:
    """Load the steps of runs where LangSmith evaluates stored ones: it gives them without any."""
    client = get_tracing_context()["client"]
    bare = [run for run in runs if client and getattr(run, "child_runs", ()) is None]
    load = partial(load_steps, client, bare)
    await Effect(load, partial(to_thread, load))


def _check_variables(judge: Judge, variables: Mapping[str, object]) -> None:
    known = fields_named(judge) | _FURTHER
    if unknown := [name for name in variables if name not in known]:
        hint = did_you_mean(unknown[0], _TEXTS)
        raise OptionError(f"`{unknown[0]}` is shown to nobody: {hint}no prompt of the judge has it")


def _as_record(value: Any, trait: str = "error") -> Any:
    """A run, or an example, as an object.

    Args:
        value: None stays None.
        trait: An attribute that it has.

    Raises:
        OptionError: It is something else; the message says what takes that.
    """
    is_data = isinstance(value, Mapping) and {"inputs", "outputs"} & value.keys()
    if value is None or is_data or hasattr(value, trait):
        return record.as_object(value)
    raise OptionError(cases.WORDS["call"].format(got=type(value).__name__))


def _several(given: Any) -> Sequence[Any]:
    """The sides of a comparison, as a list.

    Raises:
        OptionError: There are not two or more.
    """
    sides = given if isinstance(given, list | tuple) else [given]
    if len(sides) > 1:
        return sides
    raise OptionError(cases.WORDS["comparison"].format(got=len(sides)))


def _pairs_of(runs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The pairs of runs of different experiments; all pairs where all are of one, or of none."""
    of = [getattr(each, "session_id", None) for each in runs]
    pairs = [*combinations(zip(runs, of, strict=True), 2)]
    return [(a, b) for (a, its), (b, other) in pairs if its != other or len({*of}) == 1]


_run = run  # `run` is also LangSmith's name for an evaluator's argument


def as_comparative_evaluator(
    judge: Judge,
    *,
    key: str = "preference",
    input: lookup.TextSource = None,
    output: lookup.TextSource = None,
    reference: lookup.TextSource = None,
    context: lookup.TextSource = None,
) -> Callable[..., Feedback]:
    """Make a judge an evaluator for `langsmith.evaluation.evaluate_comparative`.

    A judge of pairs compares all pairs of runs of one example, but for those of one experiment
    with repetitions; a run's score is the mean of how far it was preferred. The reference
    output, if there is one, is shown to the judge as the reference; files of the example are
    not, as LangSmith does not load them here. Each run has its own comment, which says which of
    the two it is. The first run is A: for a judge that asks one order alone, let LangSmith draw
    the places by `randomize_order=True`.

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
        reads them. Called with `inputs`, `outputs` (a list) and what `as_evaluator` takes
        beside them, scores and comments are lists. What could not be judged has the score None
        and the reason as its comment.

    Raises:
        OptionError: `judge` takes no pairs, or an option is not allowed.
    """
    lookup.check_words(key=key)
    if kind_of(judge) == "item":
        raise OptionError("`judge` must compare pairs; for single texts use `as_evaluator`")
    reader = cases.CaseReader(judge, cases.TextSources(input, output, reference, context))

    def compare(  # noqa: PLR0913 - both forms of a call
        runs: Sequence[Any] | None = None,
        example: Any = None,
        *,
        inputs: object = None,
        outputs: Sequence[object] = (),
        reference_outputs: object = None,
        context: object = None,
        attachments: Any = None,
        **variables: object,
    ) -> Feedback:
        _check_variables(judge, variables)
        if runs is not None:
            return compared(runs, example, context, variables)[0]
        texts = [{"id": str(n), "outputs": each} for n, each in enumerate(_several(outputs))]
        known = {"inputs": inputs, "outputs": reference_outputs, "attachments": attachments}
        with sent.logged_in_test(key) as log:
            found, outcomes = compared(texts, known, context, variables)
            lists = {name: [*found[name].values()] for name in ("scores", "comment")}
            # Of more than two texts the first has a mean, and no label.
            first = cases.CaseScore(key, lists["scores"][0], "", None)
            first = cases.scores_of(outcomes[0], key)[0] if len(outcomes) == 1 else first
            log([sent.feedback_of(judge, first._replace(comment=lists["comment"][0]))])
        return Feedback(found, **lists)

    def compared(
        runs: Sequence[Any], example: Any, context: object, variables: Mapping[str, object]
    ) -> tuple[Feedback, list[cases.JudgmentResult]]:
        runs, example = [*map(_as_record, _several(runs))], _as_record(example, "inputs")
        run(_load_steps(*runs))
        inputs = example.inputs if example else runs[0].inputs
        row = cases.EvaluatedRow(inputs, None, example.outputs if example else None, context)
        row = row._replace(attachments=getattr(example, "attachments", None))
        scores: dict[UUID, list[float]] = {each.id: [] for each in runs}
        comments: dict[str, list[str]] = {str(each.id): [] for each in runs}
        outcomes = list[cases.JudgmentResult]()
        for sides in _pairs_of(runs):
            names = {"run_a": str(sides[0].id), "run_b": str(sides[1].id)}
            read = partial(reader.sides, row, variables, sides)
            outcomes.append(run(cases.outcome_or_refusal(judge, read, metadata=names)))
            verdict = outcomes[-1]["verdict"]
            for side, own, other in zip(sides, "AB", sides[::-1], strict=True):
                who = f"This run is {own}, compared with {other.id}. "
                comments[str(side.id)].append(who + comment_of(verdict))
                if (score := score_of(verdict)) is not None:
                    scores[side.id].append(score if own == "A" else 1 - score)
        means = {k: sum(v) / len(v) if v else None for k, v in scores.items()}
        told = {k: "\n".join(v) for k, v in comments.items()}
        return Feedback(key=key, scores=means, comment=told), outcomes

    compare.__name__ = key
    return compare
