"""Runs of production judged as they come: sampled, within a budget, each of them once."""

from __future__ import annotations

import hashlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langsmith import APIConnectionError, InternalServerError, RateLimitError
from langsmith.utils import (
    LangSmithAPIError,
    LangSmithConnectionError,
    LangSmithError,
    LangSmithRateLimitError,
)

from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import (
    CaseReader,
    CaseScore,
    JudgmentResult,
    TextSources,
    error_verdict,
    feedback_key,
    feedback_keys,
    item_for,
    scores_of,
)
from langchain_judges.integrations.evaluators import SCORES
from langchain_judges.integrations.langsmith_runs import runs_of, runs_of_thread, threads_of
from langchain_judges.methods.describe import kind_of, marks_of
from langchain_judges.rows.fields import CONVERSATION, TextSource, check_words, thread_of
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import decision, reason_of

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.schemas import Feedback, Run

T = TypeVar("T")
_SPACE = uuid.UUID("0d4e5c1e-6d0c-4b4b-9a86-6f4a1b0f3f52")
_TOGETHER = 100
"""Runs whose feedback is looked up in one request."""
_TRIES = 6
_PASSING = (
    *(LangSmithRateLimitError, LangSmithAPIError, LangSmithConnectionError),
    *(RateLimitError, InternalServerError, APIConnectionError),
)
"""Errors after which a request is sent again: of the client's two ways of sending it."""
_LOGGER = logging.getLogger(__name__)


@dataclass
class Watch:
    """What one look at a project found and did."""

    listed: int = 0
    """Runs, or threads, that the filter let through."""
    sampled: int = 0
    known: int = 0
    """Sampled ones that had the feedback already."""
    judged: int = 0
    failed: int = 0
    """Sampled ones that could not be judged; their feedback says why and has no score."""
    queued: int = 0
    """Doubtful ones sent to the annotation queue."""
    calls: int = 0
    stopped: str = ""
    """Why not all were judged: a budget or a signal; empty if all were."""
    scores: dict[str, float] = field(default_factory=dict)
    """The score of each judged run, by its id."""


@dataclass(frozen=True)
class _Case:
    """What is judged, and the run that gets the feedback."""

    run: Run
    runs: tuple[Run, ...]
    """One, or all of its thread."""


def watch_project(  # noqa: PLR0913 - what is looked at, how, and what for
    client: Client,
    judge: Judge,
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
    budget_calls: int | None = None,
    budget_dollars: float | None = None,
    prices: Mapping[str, Any] | None = None,
    max_concurrency: int | None = None,
    stop: threading.Event | None = None,
) -> Watch:
    """Judge the latest runs of a LangSmith project, and give each its feedback once.

    The same run is always in the sample or always out of it. A run that has the feedback is not
    judged again, and feedback is posted under an id that follows from the run and the key: a
    second look, or one after a kill, posts nothing twice. Runs of judges themselves are left
    out: their traces may go to the same project.

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
            disagree. It is made if there is none.
        doubtful: The confidence below which a verdict is doubtful.
        budget_calls: Stop after this many model calls.
        budget_dollars: Stop after this many dollars; needs `prices`.
        prices: Prices of models, as `judge_many` takes them.
        max_concurrency: The most model calls in flight.
        stop: Set it to end early: runs in progress are finished and posted.

    Returns:
        The counts.

    Raises:
        OptionError: An option is not allowed, or the judge compares pairs.
        LangSmithError: LangSmith refuses a request, or cannot be reached after several tries;
            `langsmith.LangsmithError` where runs are listed.
    """
    _check(judge, sample, doubtful)
    check_words(key=key, queue=queue, filter=filter)
    watcher = _Watcher(
        client=client,
        judge=judge,
        key=key or feedback_key(judge),
        reader=CaseReader(judge, TextSources(input, output, None, context), None),
        queue=queue,
        doubtful=doubtful,
        stop=stop or threading.Event(),
    )
    start = since if isinstance(since, datetime) else datetime.now(UTC) - since
    which = {"filter": filter} if filter else {}
    own = watcher.patiently(lambda: client.read_project(project_name=project)).id
    watcher.register()
    limits = {
        "max_calls": budget_calls,
        "max_cost": budget_dollars,
        "prices": prices,
        "max_concurrency": max_concurrency,
    }
    if threads:
        names = watcher.patiently(lambda: threads_of(client, own, start, **which))
        inside = [name for name in names if in_sample(name, sample)]
        read = [partial(runs_of_thread, client, own, name) for name in inside]
        cases = [_case(found) for runs in read if (found := watcher.patiently(runs))]
    else:
        runs = watcher.patiently(lambda: runs_of(client, own, start, is_root=True, **which))
        # A run that is not over has nothing to judge yet.
        runs = [run for run in runs if run.end_time or run.outputs or run.error]
        runs = [run for run in runs if not _is_of_judge(run)]
        names = [str(run.id) for run in runs]
        cases = [_case([run]) for run in runs if in_sample(str(run.id), sample)]
    watcher.watch.listed = len(names)
    watcher.look(cases, {name: limit for name, limit in limits.items() if limit is not None})
    return watcher.watch


def _check(judge: Judge, sample: float, doubtful: float) -> None:
    if kind_of(judge) != "item":
        raise OptionError("`judge` must label one text; this one compares pairs")
    for name, share in (("sample", sample), ("doubtful", doubtful)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise OptionError(f"`{name}` must be a number from 0 to 1, got {share!r}")


def in_sample(name: str, share: float) -> bool:
    """Return whether a run is in a sample; in every larger one too."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:13], 16) < share * 16**13


_MARKS = {"method", "prompt_version", "calls"}
"""What every judge's run has among its metadata."""


def _is_of_judge(run: Run) -> bool:
    """Return whether a run is a judgment: traces of the judge may go to the same project."""
    return set((run.extra or {}).get("metadata") or {}) >= _MARKS


def _case(runs: Sequence[Run]) -> _Case:
    return _Case(runs[-1], tuple(runs))


@dataclass
class _Watcher:
    client: Client
    judge: Judge
    key: str
    reader: CaseReader
    queue: str | None
    doubtful: float
    stop: threading.Event
    watch: Watch = field(default_factory=Watch)
    queue_id: uuid.UUID | None = None
    in_queue: set[str] = field(default_factory=set)

    def patiently(self, request: Callable[[], T]) -> T:
        """Send a request; wait longer each time where LangSmith is busy or away."""
        for number in range(_TRIES):
            try:
                return request()
            except _PASSING:
                if number == _TRIES - 1 or self.stop.wait(min(2**number, 30)):
                    raise
        raise AssertionError

    def register(self) -> None:
        """Tell LangSmith how to draw the scores, unless the workspace has its own way."""
        for key in feedback_keys(self.judge, self.key):
            try:
                self.client.create_feedback_config(key, feedback_config=cast("Any", SCORES))
            except LangSmithError as exc:
                _LOGGER.info("The feedback %r is drawn as it was configured: %s", key, exc)

    def look(self, sampled: Sequence[_Case], limits: Mapping[str, Any]) -> None:
        """Judge what is sampled and has no feedback yet."""
        watch = self.watch
        watch.sampled = len(sampled)
        known = self._known([str(case.run.id) for case in sampled])
        watch.known = len(known)
        new = [case for case in sampled if str(case.run.id) not in known]
        if not new:
            return
        self._open_queue()
        readable: list[tuple[_Case, dict[str, object]]] = []
        for case in new:
            try:
                readable.append((case, self._row(case)))
            except InputError as exc:
                self._post(case, {"verdict": error_verdict(exc)})
        self._judge(readable, limits)

    def _judge(
        self, readable: Sequence[tuple[_Case, dict[str, object]]], limits: Mapping[str, Any]
    ) -> None:
        if not readable:
            return
        done = 0
        with judge_many(self.judge, [row for _, row in readable], **limits) as run:
            for result in run:
                if reason_of(result["verdict"]) == "over_budget":
                    continue
                self._post(readable[result["index"]][0], cast("JudgmentResult", result))
                done += 1
                if self.stop.is_set():
                    self.watch.stopped = "it was asked to stop"
                    break
            self.watch.calls = run.summary.calls
        if done < len(readable) and not self.watch.stopped:
            self.watch.stopped = "the budget is spent"

    def _known(self, ids: Sequence[str]) -> set[str]:
        """Return the runs that have the feedback already."""
        known: set[str] = set()
        rest = iter(ids)
        while some := list(islice(rest, _TOGETHER)):
            feedback = self.patiently(partial(self._feedback, some))
            known |= {str(each.run_id) for each in feedback}
        return known

    def _row(self, case: _Case) -> dict[str, object]:
        if len(case.runs) == 1:
            return self.reader.of_run(case.run)
        row = item_for(self.judge, CONVERSATION, thread_of(case.runs))
        return {**row, "id": str(case.run.id)}

    def _post(self, case: _Case, outcome: JudgmentResult) -> None:
        """Queue what is doubtful, then post the feedback, which says that all is done."""
        run, verdict = case.run, outcome["verdict"]
        if self._is_doubtful(outcome):
            self._enqueue(run)
        scores = scores_of(outcome, self.key)
        for each in (*scores[1:], scores[0]):
            self.patiently(partial(self._send, run, each))
        if decision(verdict) is None:
            self.watch.failed += 1
        else:
            self.watch.judged += 1
            if scores[0].score is not None:
                self.watch.scores[str(run.id)] = scores[0].score

    def _is_doubtful(self, outcome: Mapping[str, Any]) -> bool:
        """Return whether a person should see a run: failed, of low confidence, or disputed."""
        confidence = outcome["verdict"].get("confidence")
        members = outcome.get("members") or ()
        labels = {each["label"] for each in members if each.get("label") is not None}
        unsure = confidence is not None and confidence < self.doubtful
        return decision(outcome["verdict"]) is None or unsure or len(labels) > 1

    def _feedback(self, ids: list[str]) -> list[Feedback]:
        return list(self.client.list_feedback(run_ids=ids, feedback_key=[self.key]))

    def _send(self, run: Run, score: CaseScore) -> None:
        self.client.create_feedback(
            run.id,
            score.key,
            score=score.score,
            value=score.value,
            comment=score.comment,
            feedback_id=uuid.uuid5(_SPACE, f"{run.id} {self.key} {score.key}"),
            session_id=run.session_id,
            feedback_source_type="model",
            source_info=marks_of(self.judge),
            feedback_config=cast("Any", SCORES),
            extra=score.extra,
            stop_after_attempt=1,
        )

    def _open_queue(self) -> None:
        if self.queue is None:
            return
        queues = self.patiently(
            lambda: list(self.client.list_annotation_queues(name=self.queue))
        )
        if queues:
            self.queue_id = queues[0].id
            runs = self.patiently(
                lambda: list(
                    self.client.list_runs_from_annotation_queue(cast("Any", self.queue_id))
                )
            )
            self.in_queue = {str(run.id) for run in runs}
        else:
            created = self.patiently(
                lambda: self.client.create_annotation_queue(name=cast("str", self.queue))
            )
            self.queue_id = created.id

    def _enqueue(self, run: Run) -> None:
        queue_id, run_id = self.queue_id, str(run.id)
        if queue_id is None or run_id in self.in_queue:
            return
        entry: Any = {
            "run_id": run.id,
            "session_id": run.session_id,
            "start_time": run.start_time,
        }
        self.patiently(lambda: self.client.add_runs_to_annotation_queue(queue_id, runs=[entry]))
        self.in_queue.add(run_id)
        self.watch.queued += 1


def watch_every(
    look: Callable[[], Watch], every: timedelta, stop: threading.Event
) -> Iterator[Watch]:
    """Look at a project again and again, and yield what each look did.

    Args:
        look: Calls `watch_project`.
        every: From the beginning of one look to the next.
        stop: Set it to end, also while it waits.
    """
    while not stop.is_set():
        started = datetime.now(UTC)
        yield look()
        left = every - (datetime.now(UTC) - started)
        stop.wait(max(left.total_seconds(), 0))
