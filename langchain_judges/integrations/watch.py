"""Runs of production judged as they come: sampled, within a budget, each of them once.

By `watch_project` from here, or by an online evaluator on LangSmith's servers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any, ParamSpec, TypeVar, cast

from langsmith import APIConnectionError, Client, InternalServerError, RateLimitError
from langsmith.schemas import Run
from langsmith.utils import LangSmithAPIError, LangSmithConnectionError, LangSmithRateLimitError

from langchain_judges.errors import InputError, OptionError, RepeatedFailureError
from langchain_judges.integrations import eval_cases as evaluated
from langchain_judges.integrations import given_feedback
from langchain_judges.integrations import langsmith_runs as lists
from langchain_judges.integrations.feedback import feedback_of, judge_mark, posted
from langchain_judges.methods.describe import kind_of, unwrapped
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.options import Share, check_value
from langchain_judges.rows.lookup import TextSource, check_words
from langchain_judges.runs import many, run_state
from langchain_judges.runs.options import RunOptions
from langchain_judges.verdict import decision, reason_of

P = ParamSpec("P")
T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_SPACE = uuid.UUID("0d4e5c1e-6d0c-4b4b-9a86-6f4a1b0f3f52")
_TRIES = 6
# Errors after which a request is sent again: of the client's two ways of sending it.
_PASSING_ERRORS = (
    *(LangSmithRateLimitError, LangSmithAPIError, LangSmithConnectionError),
    *(RateLimitError, InternalServerError, APIConnectionError),
)


@dataclass
class Watch:
    """Result of one look at a project.

    Attributes:
        listed: Runs, or threads, that the filter let through.
        known: Sampled ones that had the feedback already; what a provider failed is tried again.
        failed: Sampled ones that could not be judged; their feedback says why and has no
            score.
        queued: Doubtful ones sent to the annotation queue.
        stopped: Why not all were judged: a budget or a signal; empty if all were.
    """

    listed: int = 0
    sampled: int = 0
    known: int = 0
    judged: int = 0
    failed: int = 0
    queued: int = 0
    calls: int = 0
    stopped: str = ""


def watch_project(  # noqa: PLR0913 - what is looked at, how, and what for
    client: Client,
    judge: run_state.Judge,
    project: str,
    *,
    sample: float = 1.0,
    since: timedelta | datetime = timedelta(hours=1),
    filter: str | None = None,
    threads: bool = False,
    key: str | None = None,
    input: TextSource = None,
    output: TextSource = None,
    context: TextSource = None,
    queue: str | None = None,
    doubtful: float = 0.6,
    stop: threading.Event | None = None,
    **limits: Any,
) -> Watch:
    """Judge the latest runs of a LangSmith project, and give each its feedback once.

    The same run is always in the sample or always out of it. A run that has the feedback is not
    judged again, unless the model could not be asked; feedback is posted under an id that
    follows from the run and the key, so a second look, or one after a kill, posts nothing twice.
    A run is judged with what tools and retrievers did in its child runs. Runs of judges are left
    out, as their traces may go to the same project.

    Args:
        client: LangSmith's client.
        judge: A judge of one text.
        project: Name of the project.
        sample: Share of the runs that are judged, by a hash of their id.
        since: How far to look back, or from when.
        filter: A filter in LangSmith's query language.
        threads: Judge each thread as one conversation; its last run gets the feedback.
        key: Name of the feedback; default as in `as_evaluator`.
        input: Where the task is, as in `as_evaluator`.
        output: Where the text is, as in `as_evaluator`.
        context: Where the source is, as in `as_evaluator`.
        queue: Name of an annotation queue for what a person should see: runs that could not be
            judged, verdicts of low confidence, and those on which the members of a jury
            disagree. It is made if there is none, and asks people for one of the judge's labels
            as the feedback `KEY.people`, with a category for each.
        doubtful: The confidence below which a verdict is doubtful.
        stop: Set it to end early: runs in progress are finished and posted.
        limits: `max_rows`, `max_calls`, `max_dollars`, `prices` and other options of
            `judge_many`.

    Returns:
        The counts.

    Raises:
        OptionError: An option is not allowed, or the judge compares pairs.
        LangSmithError: LangSmith refuses a request, or cannot be reached after several tries;
            `langsmith.LangsmithError` where runs are listed.
    """
    if kind_of(judge) != "item":
        raise OptionError("`judge` must label one text; this one compares pairs")
    check_value("sample", sample, Share)
    check_value("doubtful", doubtful, Share)
    check_words(key=key, queue=queue, filter=filter)
    RunOptions(**limits)
    reader = evaluated.CaseReader(judge, evaluated.TextSources(input, output, context=context))
    name, stop = evaluated.feedback_key(judge, key), stop or threading.Event()
    look = _Look(client, judge, name, reader, queue, doubtful, stop)
    start = since if isinstance(since, datetime) else datetime.now(UTC) - since
    which = {"filter": filter} if filter else {}
    own = look.patiently(client.read_project, project_name=project).id
    if threads:
        names = look.patiently(lists.threads_of, client, own, start, **which)
        sampled = (name for name in names if in_sample(name, sample))
        read = (look.patiently(lists.runs_of_thread, client, own, name) for name in sampled)
        cases = [runs for runs in read if runs and _is_over(runs[-1])]
    else:
        runs = look.patiently(lists.runs_of, client, own, start, is_root=True, **which)
        runs = [run for run in runs if _is_over(run) and not lists.is_judgment(run)]
        names = [str(run.id) for run in runs]
        cases = [[run] for run in runs if in_sample(str(run.id), sample)]
    look.watch.listed = len(names)
    look.at(cases, limits)
    return look.watch


def in_sample(name: str, share: float) -> bool:
    """Whether a run is in a sample; in every larger one too."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:13], 16) < share * 16**13


def _is_over(run: Run) -> bool:
    """Whether a run has ended; one that has not has nothing to judge yet."""
    return bool(run.end_time or run.outputs or run.error)


@dataclass
class _Look:
    """One look at a project: what is judged, by what, and where the feedback goes."""

    client: Client
    judge: run_state.Judge
    key: str
    reader: evaluated.CaseReader
    queue: str | None
    doubtful: float
    stop: threading.Event
    watch: Watch = field(default_factory=Watch)
    queue_id: uuid.UUID | None = None
    in_queue: set[str] = field(default_factory=set)

    def patiently(self, request: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Send a request; wait longer each time where LangSmith is busy or away."""
        for number in range(_TRIES - 1):
            try:
                return request(*args, **kwargs)
            except _PASSING_ERRORS:
                if self.stop.wait(2**number):
                    raise
        return request(*args, **kwargs)

    def at(self, sampled: Sequence[Sequence[Run]], limits: Mapping[str, Any]) -> None:
        """Judge what is sampled and has no feedback yet.

        Args:
            sampled: Each a run, or all of a thread; the last gets the feedback.
            limits: Options of `judge_many`.
        """
        self.watch.sampled = len(sampled)
        ids = [str(case[-1].id) for case in sampled]
        found = self.patiently(given_feedback.feedback_on, self.client, ids, self.key)
        given = {str(each.run_id): each for each in found if given_feedback.is_of_judge(each)}
        mark = judge_mark(self.judge)
        if others := sum(given_feedback.is_of_another(each, mark) for each in given.values()):
            _LOG.warning(evaluated.WORDS["of_another"], others, self.key)
        # What the provider failed may be judged now; it comes last, as it may fail again.
        again = {id for id in given if given_feedback.is_of_provider(given[id])}
        self.watch.known = len(given) - len(again)
        new = [case for case in sampled if str(case[-1].id) not in given.keys() - again]
        new.sort(key=lambda case: str(case[-1].id) in again)
        new = new[: limits.get("max_rows")]
        if new and self.queue is not None:
            self._open_queue(self.queue)
        self.patiently(lists.load_steps, self.client, [run for case in new for run in case])
        rows: list[dict[str, object]] = []
        for case in new:
            try:
                rows.append(self.reader.of_runs(case))
            except InputError as exc:
                self._post(case[-1], {"verdict": evaluated.error_verdict(self.judge, exc)})
        if rows:
            self._judge(rows, {str(case[-1].id): case[-1] for case in new}, limits)

    def _judge(
        self, rows: list[dict[str, object]], runs: Mapping[str, Run], limits: Mapping[str, Any]
    ) -> None:
        with many.judge_many(self.judge, rows, **limits) as results:
            for result in results:
                if reason_of(result["verdict"]) == "over_budget":
                    self.watch.stopped = "the budget is spent"
                    continue
                self._post(runs[str(result["id"])], cast("evaluated.JudgmentResult", result))
                if self.stop.is_set():
                    self.watch.stopped = "it was asked to stop"
                    break
            self.watch.calls = results.summary.calls

    def _post(self, run: Run, outcome: evaluated.JudgmentResult) -> None:
        """Queue what is doubtful, then post the feedback, which says that all is done."""
        if self._is_doubtful(outcome):
            self._enqueue(run)
        total, *parts = evaluated.scores_of(outcome, self.key)
        for each in (*parts, total):
            self.patiently(self._send, run, each)
        if total.answer is None:
            self.watch.failed += 1
        else:
            self.watch.judged += 1

    def _is_doubtful(self, outcome: Mapping[str, Any]) -> bool:
        """Whether a person should see a run: failed, of low confidence, or disputed."""
        confidence = outcome["verdict"].get("confidence")
        members = outcome.get("members") or ()
        labels = {each["label"] for each in members if each.get("label") is not None}
        unsure = confidence is not None and confidence < self.doubtful
        return decision(outcome["verdict"]) is None or unsure or len(labels) > 1

    def _send(self, run: Run, score: evaluated.CaseScore) -> None:
        # People's labels of this run are then read as labels of the conversation.
        if thread := run.metadata.get(lists.THREAD):
            score = score._replace(extra={**(score.extra or {}), lists.THREAD: thread})
        self.client.create_feedback(
            run.id,
            **posted(feedback_of(self.judge, score)),
            feedback_id=uuid.uuid5(_SPACE, f"{run.id} {self.key} {score.key}"),
            session_id=run.session_id,
            stop_after_attempt=1,
        )

    def _open_queue(self, name: str) -> None:
        """Find the queue and what is in it, or make it."""
        asked = [{"feedback_key": key} for key in self._register_labels()]
        queues = self.patiently(lambda: list(self.client.list_annotation_queues(name=name)))
        if queues:
            self.queue_id = queues[0].id
            items = self.patiently(lists.queue_items, self.client, self.queue_id)
            self.in_queue = {str(item.run_id) for item in items}
        else:
            new: Any = {"rubric_items": asked} if asked else {}
            self.queue_id = self.patiently(self.client.create_annotation_queue, name=name, **new).id

    def _register_labels(self) -> list[str]:
        """Register the judge's labels as categories for people; return their key."""
        options = evaluated.label_options(self.judge)
        labels = options.human_labels if options else ()
        if not labels:
            return []
        key = f"{self.key}.people"
        known = [*self.client.list_feedback_configs(feedback_key=[key])]
        # There may be one, of an earlier judge.
        old = [own for each in known for own in each.feedback_config.get("categories") or []]
        lacking = {str(label): None for label in labels} | {each["label"]: each for each in old}
        start = int(max((each["value"] for each in old), default=-1)) + 1
        names = (name for name, own in lacking.items() if own is None)
        new: Any = [{"value": float(n), "label": name} for n, name in enumerate(names, start)]
        config: Any = {"type": "categorical", "categories": new}
        if not known:
            self.client.create_feedback_config(key, feedback_config=config)
        elif new:
            self.client.add_feedback_categories(key, new)
        return [key]

    def _enqueue(self, run: Run) -> None:
        if self.queue_id is None or str(run.id) in self.in_queue:
            return
        place = {"project_id": str(run.session_id), "start_time": run.start_time}
        entry: Any = {"item_type": "RUN", "run_id": str(run.id), **place}
        add: Any = self.client.annotation_queues.items.create
        self.patiently(lists.waited_for, add, str(self.queue_id), items=[entry])
        self.watch.queued += 1


def watch_every(
    look: Callable[[], Watch], every: timedelta, stop: threading.Event
) -> Iterator[Watch]:
    """Look at a project again and again, and yield what each look did.

    Args:
        look: Calls `watch_project`.
        every: From the beginning of one look to the next. A look that LangSmith or, after a
            first one, the model fails is told in a warning, and the next comes at its time.
        stop: Set it to end, also while it waits.
    """
    is_first = True
    while not stop.is_set():
        started = datetime.now(UTC)
        try:
            found = look()
        except (*_PASSING_ERRORS, RepeatedFailureError) as exc:
            if not every or (is_first and not isinstance(exc, _PASSING_ERRORS)):
                raise
            _LOG.warning(evaluated.WORDS["missed"], exc)
        else:
            yield found
        is_first = False
        stop.wait(max((every - (datetime.now(UTC) - started)).total_seconds(), 0))


_ROOTS = "eq(is_root, true)"


def create_online_evaluator(  # noqa: PLR0913 - what it is, and where each text stands
    client: Client,
    judge: run_state.Judge,
    name: str,
    *,
    project: str,
    dependencies: Sequence[str],
    secrets: Sequence[str] = (),
    sample: float = 1.0,
    filter: str | None = None,
    key: str | None = None,
    input: str | None = None,
    output: str | None = None,
    context: str | None = None,
) -> str:
    """Create a code evaluator that runs a judge in LangSmith, attach it, and return its id.

    Scores are posted under the judge's keys, without comments; a run that could not be judged
    gets no feedback. `watch_project` posts both.

    Args:
        client: LangSmith's client, of a server from version 0.18.
        judge: A judge of one text, made of a model's name.
        name: The name of the evaluator, and of the rule that attaches it.
        project: Name of the project whose root runs it judges.
        dependencies: What is installed for it, as pip takes it: this package, from where
            LangSmith can install it, and the package of its model.
        secrets: Names of the workspace's secrets that it may use, such as the key of the model.
            LangSmith puts them into requests to the hosts that each is allowed for; the code
            never sees them.
        sample: Share of the runs that it judges.
        filter: A filter in LangSmith's query language; default the root runs.
        key: Name of the feedback, as in `as_evaluator`.
        input: Where the task is, as in `as_evaluator`: a key or a path.
        output: Where the text is.
        context: Where the source is.

    Raises:
        OptionError: The judge cannot be written as code, or an option is not allowed.
        LangSmithError: There is no such project, or LangSmith refuses to attach the evaluator.
        LangsmithError: LangSmith refuses the evaluator.
    """
    places = {"key": key, "input": input, "output": output, "context": context}
    check_words(name=name, project=project, filter=filter, **places)
    check_value("sample", sample, Share)
    if kind_of(judge) != "item":
        raise OptionError("`judge` must label one text; this one compares pairs")
    graph = unwrapped(judge)
    if not isinstance(graph, JudgeGraph):
        raise OptionError("`judge` must be a judge of this package: its code names what it is")
    given = {name: place for name, place in places.items() if place is not None}
    given["key"] = evaluated.feedback_key(judge, key)
    session = client.read_project(project_name=project).id
    code = (files(__package__) / "online_evaluator.txt").read_text("utf-8")
    evaluator: Any = {
        **lists.LANGSMITH_NAMES["evaluator"],
        "code": code.format(spec=json.dumps(graph.spec), places=json.dumps(given)),
        "dependencies": "\n".join(dependencies),
        "workspace_secrets_keys": list(secrets),
    }
    create: Any = client.evaluators.create
    answer: Any = lists.waited_for(create, name=name, type="code", code_evaluator=evaluator)
    # The client has no call that attaches one.
    own = {"evaluator_id": str(answer.evaluator.id), "display_name": name}
    which = {"session_id": str(session), "sampling_rate": sample, "filter": filter or _ROOTS}
    client.request_with_retries("POST", "/runs/rules", json={**own, **which})
    return own["evaluator_id"]
