"""Runs, threads and feedback read from LangSmith: of projects, experiments and queues.

People label doubtful runs in annotation queues. That closes the loop of production:
`watch_project` queues them, and an audit with `auditor="labels"` teaches the judge.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, filterfalse
from typing import Any, NamedTuple, TypeVar

from langsmith import Client
from langsmith.schemas import Feedback, Run

from langchain_judges.errors import InputError
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.integrations import right_answers
from langchain_judges.integrations.given_feedback import Grade, Graded, answer_columns, graded
from langchain_judges.lazy import packaged
from langchain_judges.rows.checks import kind_in
from langchain_judges.rows.data import holds_nothing
from langchain_judges.rows.documents import context_of
from langchain_judges.rows.lookup import TextSource
from langchain_judges.rows.texts import CONVERSATION, transcript
from langchain_judges.rows.work import outputs_of, steps_within, why_failed
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import NOTES, Label

T = TypeVar("T")
# Where a run that was read as one of a thread names it, and a judge's feedback on all of it.
THREAD = "judged_thread"
# What LangSmith calls parts of runs, and places in a queue.
LANGSMITH_NAMES: Mapping[str, Any] = packaged(__package__, "names.yaml")
_PAGE = 100
# Traces whose steps are asked for in one request.
_TRACES = 50
# LangSmith looks back a day at most, unless it is told a time before the first run.
_A_DAY = timedelta(days=1)


def experiment_rows(client: Client, *experiments: str) -> list[list[dict[str, object]]]:
    """The runs of each experiment as rows: `id`, `input`, `output`, `reference` and `source`.

    The example is read as it was when the experiment ran. A run without one, as in a project
    without a data set, has its own id and inputs, which a traced function names after its
    parameters. Repetitions of an example are numbered in time; a note says why a run failed.
    A field of an example that any of them returns is part of its answer; see `right_answer`.

    Args:
        client: LangSmith's client.
        experiments: Their names or ids.
    """
    projects = [_project(client, each) for each in experiments]
    runs = [_of_project(client, each) for each in projects]
    load_steps(client, [*chain(*runs)])
    returned = defaultdict[Any, list[dict[str, object]]](list)
    for run in chain(*runs):
        returned[run.reference_example_id].append(right_answers.fields_returned(run.outputs))
    return [_rows(client, *each, returned) for each in zip(projects, runs, strict=True)]


def _rows(client: Client, project: Any, runs: Iterable[Run], returned: Any) -> list[Any]:
    examples = dict[Any, Any]()
    if data := project.reference_dataset_id:
        version = project.metadata.get("dataset_version")
        examples = {each.id: each for each in client.list_examples(dataset_id=data, as_of=version)}
    rows, met = list[dict[str, object]](), Counter[Any]()
    for run in sorted(runs, key=lambda each: str(each.start_time)):
        example, id = examples.get(run.reference_example_id), run.reference_example_id or run.id
        inputs, known = (example or run).inputs, (example and example.outputs) or {}
        answer, notes = right_answers.right_answer(known, returned[run.reference_example_id])
        if run.error and holds_nothing(run.outputs):
            notes.add("output", f"is of a run that failed: {why_failed(run)}", "missing")
        met[id] += 1
        row = {
            "id": f"{id}, repetition {met[id]}" if met[id] > 1 else str(id),
            "input": inputs,
            "output": None if holds_nothing(run.outputs) else outputs_of(run),
            "reference": answer,
            "source": context_of(inputs),
            NOTES: notes,
        }
        rows.append({n: own for n, own in row.items() if own or n in ("input", "output")})
    return rows


def feedback_rows(
    client: Client, experiment: str | None = None, *, queue: str | None = None
) -> list[dict[str, object]]:
    """Runs as rows, with a column for each key of feedback.

    Answers of a judge and of people then stand side by side, for `report.trust_columns`:
    `trust_columns(feedback_rows(client, "my-experiment"), judge="gpt", label="human")`,
    `trust_columns(feedback_rows(client, queue="doubtful"), "quality", "quality.people")`.

    Args:
        client: LangSmith's client.
        experiment: The name or id of an experiment.
        queue: The name of an annotation queue instead.

    Returns:
        `id`, `input`, `output` and by key the latest answer. It is the label, where a judge and
        people both give labels of a kind; else the score, from 0 to 1 where theirs are
        registered on different scales. People's feedback under a judge's key, or their
        correction of it, is in `KEY.people`. Where a judge was shown a thread, the texts are
        those of its runs.

    Raises:
        InputError: There is no such queue; or a key has labels beside scores of other runs.
    """
    project = None if queue else _project(client, str(experiment))
    runs = runs_in_queue(client, queue) if queue else _of_project(client, project)
    load_steps(client, runs)
    given = graded(client, runs)
    columns, rows = answer_columns(given.values()), list[dict[str, object]]()
    for run in runs:
        judged = _judged_with(client, run, given[run.id])
        sides = [text for each in judged for text in (str(each.inputs or ""), _work_of(each))]
        sides = sides if len(judged) == 1 else [CONVERSATION, "\n\n".join(filter(None, sides))]
        answers = {name: cells[run.id] for name, cells in columns.items() if run.id in cells}
        rows.append({"id": str(run.id), "input": sides[0], "output": sides[1], **answers})
    return rows


def _work_of(run: Run) -> str:
    said = [] if holds_nothing(run.outputs) else [str(run.outputs)]
    failed = [f"It failed: {why_failed(run)}"] if run.error else []
    return "\n\n".join([*filter(None, [transcript(steps_within(run))]), *said, *failed])


def _judged_with(
    client: Client, run: Run, given: Sequence[Graded], key: str | None = None
) -> list[Run]:
    """The runs that a judge of a run was shown: it alone, or its thread until it.

    Args:
        client: LangSmith's client.
        run: The run.
        given: All feedback on it.
        key: That of people's label, which may name the judge.

    Raises:
        InputError: It is not known which of both.
    """
    judged = [own for own, by_judge, _ in given if by_judge]
    asked = [each for each in judged if key in (each.key, f"{each.key}.people")] or judged
    threads = {(each.extra or {}).get(THREAD) for each in asked}
    if key and len(threads) > 1:
        raise InputError(cases.WORDS["thread"])
    thread = next((name for name in threads if name), None)
    if thread is None:
        return [run]
    runs = runs_of_thread(client, run.session_id, thread)
    before = [each for each in runs if str(each.start_time) < str(run.start_time)]
    load_steps(client, before)
    return [*before, run]


def _project(client: Client, experiment: str) -> Any:
    try:
        return client.read_project(project_id=uuid.UUID(experiment))
    except ValueError:
        return client.read_project(project_name=experiment)


def _of_project(client: Client, project: Any) -> list[Run]:
    return runs_of(client, project.id, project.start_time - _A_DAY, is_root=True)


def runs_of(client: Client, project: object, since: datetime, **which: Any) -> list[Run]:
    """The runs of a project since a time.

    Args:
        client: LangSmith's client, of a server from version 0.18.
        project: The project's id.
        since: The earliest start of a run.
        which: Further fields of the query: `ids`, `is_root`, `filter`, `selects`.

    Raises:
        langsmith.LangsmithError: LangSmith refuses the request, or cannot be reached.
    """
    query = {
        "project_ids": [str(project)],
        "min_start_time": since,
        "selects": [*LANGSMITH_NAMES["run"]],
    }
    runs = _listed(client.runs.query, **{**query, **which})
    return [_run(run, project, str(run.id), (run.run_type or "chain").lower()) for run in runs]


def load_steps(client: Client, runs: Sequence[Run]) -> None:
    """Load what tools and retrievers did within runs, and what failed or was interrupted there.

    Args:
        client: LangSmith's client, of a server from version 0.18.
        runs: Each then has those runs alone as its `child_runs`.

    Raises:
        langsmith.LangsmithError: LangSmith refuses the request, or cannot be reached.
    """
    for project, part in _parts(runs, "session_id", _TRACES):
        traces = json.dumps(sorted({str(run.trace_id) for run in part}))
        which = LANGSMITH_NAMES["steps"].format(traces=traces)
        selects = [*LANGSMITH_NAMES["step"]]
        found = runs_of(client, project, _day_before(part), filter=which, selects=selects)
        for run in part:
            _hold(run, sorted(found, key=lambda step: step.dotted_order))


def _parts(items: Sequence[Any], place: str, most: int) -> Iterable[tuple[str, list[Any]]]:
    """Yield items of each project, whose id is at a place in them, so many at once."""
    for project in sorted({str(getattr(each, place)) for each in items}):
        own = [each for each in items if str(getattr(each, place)) == project]
        yield from ((project, own[n : n + most]) for n in range(0, len(own), most))


def _hold(run: Any, steps: Iterable[Any]) -> None:
    """Make the runs within a run its child runs, each of the nearest that holds it.

    The dotted order of a run has the ids of all that hold it.
    """
    run.child_runs, path = [], [run]
    for step in (each for each in steps if f"{run.id}." in each.dotted_order):
        while f"{path[-1].id}." not in step.dotted_order:
            path.pop()
        step.child_runs = []
        path[-1].child_runs.append(step)
        path.append(step)


# What every judge's run has among its metadata.
_JUDGE_MARKS = {"method", "prompt_version", "calls"}


def is_judgment(run: Run) -> bool:
    """Whether a run is a judge's: its trace may go to the same project."""
    if set((run.extra or {}).get("metadata") or {}) >= _JUDGE_MARKS:
        return True
    # The traces of a thread come without metadata.
    verdict = (run.outputs or {}).get("verdict")
    return bool(kind_in(run.inputs)) and isinstance(verdict, Mapping) and "failures" in verdict


def threads_of(client: Client, project: object, since: datetime, **which: Any) -> list[str]:
    """The ids of a project's threads that were active since a time."""
    query = {"project_id": str(project), "min_start_time": since}
    return [str(each.thread_id) for each in _listed(client.threads.query, **query, **which)]


def runs_of_thread(client: Client, project: object, thread: str) -> list[Run]:
    """The root runs of a thread in time, those before any look too; none of a judge."""
    query = {"project_id": str(project), "selects": [*LANGSMITH_NAMES["trace"]]}
    traces = _listed(client.threads.list_traces, thread, **query)
    runs = [_run(trace, project, str(trace.trace_id), "chain") for trace in traces]
    for run in runs:
        run.metadata[THREAD] = thread
    return sorted(filterfalse(is_judgment, runs), key=lambda run: str(run.start_time))


def runs_in_queue(client: Client, queue: str) -> list[Run]:
    """The runs of an annotation queue as evaluators take them, child runs not loaded.

    Raises:
        InputError: There is no such queue.
    """
    found = next(client.list_annotation_queues(name=queue, limit=1), None)
    if found is None:
        raise InputError(f"LangSmith has no annotation queue {queue!r}")
    runs: list[Run] = []
    for project, items in _parts(queue_items(client, found.id), "project_id", _PAGE):
        ids = [str(item.run_id) for item in items]
        runs += runs_of(client, project, _day_before(items), ids=ids)
    return sorted(runs, key=lambda run: str(run.id))


def _day_before(items: Iterable[Any]) -> datetime:
    """A time before all runs: theirs may lack a zone, and a day before is earlier in each."""
    times = (datetime.fromisoformat(str(each.start_time)) for each in items)
    return min(at.replace(tzinfo=UTC) for at in times) - _A_DAY


def queue_items(client: Client, queue_id: object) -> list[Any]:
    """The items of an annotation queue that are runs, reviewed or not.

    Args:
        client: LangSmith's client, of a server from version 0.18.
        queue_id: The queue's id.
    """
    read = partial(_listed, client.annotation_queues.items.list, str(queue_id), item_type="RUN")
    return [item for place in LANGSMITH_NAMES["places"] for item in read(status=place)]


def _run(item: Any, project: object, id: str, kind: str) -> Run:
    """Run as evaluators take it, of an item of a list."""
    fields: dict[str, Any] = {name: getattr(item, name, None) for name in LANGSMITH_NAMES["same"]}
    fields |= {"trace_id": item.trace_id or id, "run_type": kind, "session_id": project}
    fields["extra"] = {"metadata": getattr(item, "metadata", None) or {}}
    return Run(id=id, **{name: value for name, value in fields.items() if value})


def _listed(query: Callable[..., AsyncIterable[T]], *names: str, **which: Any) -> list[T]:
    async def collected(**options: Any) -> list[T]:
        return [item async for item in query(*names, **which, page_size=_PAGE, **options)]

    return waited_for(collected)


def waited_for(method: Callable[..., Coroutine[Any, Any, T]], *args: object, **fields: Any) -> T:
    """Result of a method that LangSmith's client has for event loops only.

    The loop runs in a thread of its own: the caller may be in a loop.
    """
    # A connection that is kept would belong to an event loop that has ended.
    work = method(*args, **fields, extra_headers={"Connection": "close"})
    with ThreadPoolExecutor(1, "langsmith") as thread:
        return thread.submit(asyncio.run, work).result()


class QueuedRuns(NamedTuple):
    """The runs of an annotation queue.

    Attributes:
        items: Those that people labelled, as an audit takes them: `label`, `note`, `auditor`.
        left_out: The ids of the others, and why each was left out.
    """

    items: list[dict[str, object]]
    left_out: list[tuple[str, str]]


def labelled_runs(  # noqa: PLR0913 - which label of which runs, and where each text stands
    client: Client,
    queue: str,
    judge: Judge,
    *,
    key: str | None = None,
    input: TextSource = None,
    output: TextSource = None,
    context: TextSource = None,
) -> QueuedRuns:
    """The runs of an annotation queue that people labelled.

    A label is people's feedback on the run: the value, else the score; or their correction of
    a judge's feedback. A score from 0 to 1 stands for the label at that place between the worst
    and the best, as `watch_project` posts it. Where the judge was shown a whole thread, the
    label is that of the conversation until this run.

    Args:
        client: LangSmith's client.
        queue: The name of the queue.
        judge: A judge of one text, which decides what is read of a run and what a label is.
        key: The name of the feedback; default the only one that people gave.
        input: Where the task is, as in `as_evaluator`.
        output: Where the text is, as in `as_evaluator`.
        context: Where the source is, as in `as_evaluator`.

    Raises:
        InputError: There is no such queue, or people gave feedback under several names.
    """
    runs = runs_in_queue(client, queue)
    given = graded(client, runs)
    answers = _by_people(given.values(), key)
    load_steps(client, [run for run in runs if run.id in answers])
    reader = cases.CaseReader(judge, cases.TextSources(input, output, context=context))
    options = cases.label_options(judge)
    labels = options.human_labels if options else ()
    result = QueuedRuns([], [])
    for run in runs:
        try:
            if run.id not in answers:
                raise InputError("nobody has labelled it yet")
            feedback, answer = answers[run.id]
            judged = _judged_with(client, run, given[run.id], feedback.key)
            label = _label(feedback, answer, labels)
            result.items.append({**reader.of_runs(judged), "label": label, **_about(feedback)})
        except InputError as exc:
            result.left_out.append((str(run.id), str(exc)))
    return result


def _by_people(
    given: Iterable[Sequence[Graded]], key: str | None
) -> dict[Any, tuple[Feedback, Grade]]:
    """The latest label of people by run."""
    said = [(own, label) for own, _, label in chain(*given) if label and key in (None, own.key)]
    if len(keys := sorted({each.key for each, _ in said})) > 1:
        raise InputError(cases.WORDS["several_keys"].format(keys=", ".join(keys)))
    said.sort(key=lambda own: own[0].modified_at)
    return {each.run_id: (each, label) for each, label in said}


def _about(feedback: Feedback) -> dict[str, str]:
    """Who gave a label, and what they say about it."""
    source = feedback.feedback_source
    person = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    said = {"note": feedback.comment} if feedback.comment else {}
    return {"auditor": str(person or "langsmith"), **said}


def _label(feedback: Feedback, answer: Grade, labels: Sequence[Label]) -> Label:
    value, score, ends = answer
    # A category of feedback is text.
    value = next((label for label in labels if str(label) == str(value)), value)
    if isinstance(value, str | int | float):
        return value
    if score is None:
        raise InputError(f"its feedback is not a label: {feedback.value!r}")
    if not 0 <= score <= 1 or not labels or ends not in (None, (0, 1)):
        return int(score) if score.is_integer() else float(score)
    at_place: Label = labels[round(score * (len(labels) - 1))]
    if score in labels and at_place != score:
        raise InputError(cases.WORDS["label_or_place"].format(score=score))
    return at_place
