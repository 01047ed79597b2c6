"""Calls in flight as jobs of a provider's batch API, at its price.

A batch model is an ordinary chat model whose HTTP client collects requests instead of sending
them: graphs, repairs, caches and failures stay as they are, and rounds form by themselves,
because all rows of a run wait at the same step. The protocols are OpenAI's (`/files`,
`/batches`), which other servers speak too, and Anthropic's Message Batches.

A journal on disk knows every request that was sent, so that a run that was killed finds its
jobs again and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import httpx

from langchain_judges.asking.batch_jobs import (
    ATTEMPTS,
    PASSING,
    AnthropicJobs,
    BatchAnswer,
    BatchJournal,
    HttpRequest,
    Job,
    JobResult,
    Jobs,
    OpenAIJobs,
)
from langchain_judges.asking.clients import changed_clients, is_openai_compatible
from langchain_judges.asking.models import resolve_model
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from langchain_core.language_models import BaseChatModel


@dataclass
class Pending:
    """A request that waits for its answer."""

    key: str
    """Of its content, and of how often the same was asked before."""
    request: HttpRequest
    answer: asyncio.Future[BatchAnswer]
    attempts: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes in a job."""
        return len(self.request.content) + 200

    def settle(self, outcome: BatchAnswer | Exception) -> None:
        """Give the answer, or what prevents one, to who waits for it, unless it has one."""
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
"""Of one job: OpenAI takes 50,000 requests and 200 MB, Anthropic 100,000 and 256 MB."""
_OK = 200


@dataclass
class Batcher:
    """Collects requests into jobs, in an event loop of its own, and hands out the answers."""

    journal: BatchJournal
    quiet: float
    """Seconds without a new request after which a job is sent."""
    poll: float
    """Seconds between looks at a job."""
    most_requests: int = MOST_REQUESTS
    report: Callable[[Job], object] = lambda _: None
    _times: Counter[str] = field(default_factory=Counter)
    """How often each request was asked."""
    _waiting: dict[str, Pending] = field(default_factory=dict)
    """Not in a job yet."""
    _open: dict[str, Pending] = field(default_factory=dict)
    """In a job that runs."""
    _watched: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _timer: asyncio.TimerHandle | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loop: asyncio.AbstractEventLoop | None = None

    def ask(self, request: HttpRequest) -> Future[BatchAnswer]:
        """Return the answer to come for a request, from any thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="batches", daemon=True
                ).start()
        return asyncio.run_coroutine_threadsafe(self._ask(request), self._loop)

    async def _ask(self, request: HttpRequest) -> BatchAnswer:
        digest = request.digest
        self._times[digest] += 1
        key = f"{digest}-{self._times[digest]}"
        if answer := self.journal.answer(key):
            return answer
        pending = Pending(key, request, asyncio.get_running_loop().create_future())
        self._enter(pending)
        try:
            return await pending.answer
        finally:
            self._waiting.pop(key, None)
            self._open.pop(key, None)

    def _enter(self, pending: Pending) -> None:
        """Find the job that a request is in, or put it among those for the next one."""
        if job := self.journal.job_of(pending.key):
            self._open[pending.key] = pending
            self._watch(job, pending.request)
            return
        self._waiting[pending.key] = pending
        if self._timer:
            self._timer.cancel()
        if len(self._waiting) >= self.most_requests:
            self._send()
        else:
            self._timer = asyncio.get_running_loop().call_later(self.quiet, self._send)

    def _send(self) -> None:
        """Put all that waits into jobs: one for each server, endpoint and size."""
        self._timer = None
        waiting = [each for each in self._waiting.values() if not each.answer.done()]
        self._waiting.clear()
        groups: dict[tuple[str, str], list[Pending]] = {}
        for pending in waiting:
            place = pending.request.address, pending.request.endpoint
            groups.setdefault(place, []).append(pending)
        for group in groups.values():
            for part in self._parts(group):
                self._open |= {pending.key: pending for pending in part}
                self._start(self._run(part), [pending.key for pending in part])

    def _parts(self, group: Iterable[Pending]) -> Iterator[list[Pending]]:
        part: list[Pending] = []
        size = 0
        for pending in group:
            if part and (len(part) == self.most_requests or size + pending.size > MOST_BYTES):
                yield part
                part, size = [], 0
            part.append(pending)
            size += pending.size
        yield part

    def _start(self, work: Coroutine[Any, Any, None], keys: Iterable[str]) -> None:
        """Run some work; what it raises is the answer to all requests that wait for it."""

        async def guarded() -> None:
            try:
                await work
            except httpx.HTTPStatusError as exc:
                # The server's own words, so that a refused key is one.
                self._settle(keys, _answer_of(exc.response))
            except Exception as exc:  # noqa: BLE001 - it answers all who wait
                # Nobody awaits this task: a lost connection, a reply of another form, a full
                # disk or a caller's `report` that raises must end the waits for its answers.
                self._settle(keys, exc)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _settle(self, keys: Iterable[str], outcome: BatchAnswer | Exception) -> None:
        for key in keys:
            if pending := self._open.pop(key, None):
                pending.settle(outcome)

    def _jobs(self, request: HttpRequest) -> Jobs:
        """Return the batch API of a request's server."""
        kind = AnthropicJobs if request.endpoint == "/v1/messages" else OpenAIJobs
        return kind(request.address, request.access, min(self.poll, 1.0))

    async def _run(self, part: list[Pending]) -> None:
        request = part[0].request
        jobs = self._jobs(request)
        requests = {pending.key: pending.request.body for pending in part}
        content = await jobs.upload(request.endpoint, requests)
        mark = uuid.uuid4().hex
        # Written first: a process that dies after the next line finds the job again.
        self.journal.intend(mark, requests)
        self._watched.add(mark)
        try:
            name = await jobs.make_once(content, mark, len(part))
        except httpx.HTTPStatusError:
            self.journal.forget(mark)
            raise
        self.journal.sent(mark, name)
        await self._follow(Job(mark, name, "unknown", len(part)), jobs)

    def _watch(self, job: Job, request: HttpRequest) -> None:
        """Follow a job of an earlier run, once."""
        if job.mark not in self._watched:
            self._watched.add(job.mark)
            keys = self.journal.unanswered(job.mark)
            self._start(self._resume(job, self._jobs(request)), keys)

    async def _resume(self, job: Job, jobs: Jobs) -> None:
        if not job.name:
            name = await jobs.find(job.mark, job.requests)
            if name is None:  # the process died before it was: nothing was paid
                for key in self.journal.forget(job.mark):
                    if pending := self._open.pop(key, None):
                        self._enter(pending)
                return
            self.journal.sent(job.mark, name)
            job = replace(job, name=name)
        await self._follow(job, jobs)

    async def _follow(self, job: Job, jobs: Jobs) -> None:
        """Wait for a job's end, and hand out what it brought."""
        while True:
            state = await jobs.look(job.name)
            now = replace(job, status=state.status, completed=state.completed)
            if now != job:
                job = now
                self.report(job)
            if state.ended:
                break
            await asyncio.sleep(self.poll)
        for address in state.results:
            async for result in jobs.results(address):
                if result.status in PASSING:
                    self._fail(result, json.dumps(result.body))
                else:
                    self._keep(result.key, BatchAnswer(status=result.status, body=result.body))
        for key in self.journal.unanswered(job.mark):
            status = 400 if state.problem else 503
            self._fail(JobResult(key, status, {}), state.problem or state.status)

    def _fail(self, result: JobResult, problem: str) -> None:
        """Ask a request again in another job, or hand its error on."""
        self.journal.keep(result.key, None)
        pending = self._open.pop(result.key, None)
        if pending is None or pending.answer.done():
            return
        pending.attempts += 1
        if result.status in PASSING and pending.attempts < ATTEMPTS:
            self._enter(pending)
            return
        error = {"error": {"message": f"the batch job says: {problem[:300]}"}}
        pending.settle(BatchAnswer(status=result.status, body=error))

    def _keep(self, key: str, answer: BatchAnswer) -> None:
        """Hand an answer out; a refusal costs nothing, and a later run may ask again."""
        self.journal.keep(key, answer if answer["status"] == _OK else None)
        self._settle([key], answer)


def _answer_of(response: httpx.Response) -> BatchAnswer:
    try:
        body = response.json()
    except ValueError:
        body = {"error": {"message": response.text[:300]}}
    return BatchAnswer(status=response.status_code, body=body)


def batch_model(
    model: str | BaseChatModel,
    journal: str | PathLike[str],
    *,
    quiet: float = 5.0,
    poll: float = 30.0,
    most_requests: int = MOST_REQUESTS,
    report: Callable[[Job], object] | None = None,
) -> BaseChatModel:
    """Return a chat model whose calls in flight become jobs of a batch API.

    Jobs need many rows in flight: `ajudge_many` with a `max_concurrency` of thousands and
    `open_rows` as memory allows.

    Args:
        model: A `ChatOpenAI` or `ChatAnthropic`, or a name of one as `resolve_model` takes it.
        journal: A file that records jobs, so that a later run sends no request twice.
        quiet: Seconds without a new request after which a job is sent.
        poll: Seconds between status checks of jobs.
        most_requests: The most requests in one job.
        report: Called with a job whenever its state changes, from another thread.

    Raises:
        OptionError: The model speaks another protocol.
        ModelSetupError: The model cannot be made.
    """
    chat: Any = resolve_model(model)
    kinds = {base.__name__ for base in type(chat).__mro__}
    if not is_openai_compatible(chat) and "ChatAnthropic" not in kinds:
        raise OptionError(
            "batches need a model that speaks OpenAI's or Anthropic's protocol, got a "
            f"{type(chat).__name__}"
        )
    tell = report or (lambda _: None)
    batcher = Batcher(BatchJournal(journal), quiet, poll, most_requests, tell)
    marks = {"metadata": {**(chat.metadata or {}), "batch": True}}
    copied = _openai_copy if is_openai_compatible(chat) else _anthropic_copy
    return cast("BaseChatModel", copied(chat, batcher, marks))


def _openai_copy(chat: Any, batcher: Batcher, marks: Mapping[str, object]) -> Any:
    now, later = _clients(httpx, batcher)

    def batched(client: Any) -> Any:
        http_client = later if client is chat.root_async_client else now
        return client.with_options(http_client=http_client, max_retries=0)

    clients = {**changed_clients(chat, batched), "http_client": now, "http_async_client": later}
    # A job takes hours: no reply is late.
    return chat.model_copy(update={**clients, **marks, "request_timeout": None})


def _anthropic_copy(chat: Any, batcher: Batcher, marks: Mapping[str, object]) -> Any:
    now, later = _clients(importlib.import_module("httpx2"), batcher)
    copy = chat.model_copy(update={**marks, "max_retries": 0})
    # Where the class keeps its clients once they are made; it takes none of a caller's.
    for name, client in (("_client", now), ("_async_client", later)):
        own = getattr(chat, name).with_options(http_client=client, max_retries=0)
        vars(copy)[name] = own
    vars(copy)["default_request_timeout"] = None
    return copy


def _clients(library: Any, batcher: Batcher) -> tuple[Any, Any]:
    """Return HTTP clients that hand their requests to a batcher.

    Args:
        library: `httpx`, or `httpx2` for the packages that have moved on to it.
        batcher: Who answers.
    """

    class Transport(library.BaseTransport):  # type: ignore[misc] # of either library
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            request.read()
            return response(request, batcher.ask(HttpRequest.of(request)).result())

    class AsyncTransport(library.AsyncBaseTransport):  # type: ignore[misc] # likewise
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await request.aread()
            answer = await asyncio.wrap_future(batcher.ask(HttpRequest.of(request)))
            return response(request, answer)

    def response(request: httpx.Request, answer: BatchAnswer) -> httpx.Response:
        parts = {"json": answer["body"], "request": request}
        http_response: httpx.Response = library.Response(answer["status"], **parts)
        return http_response

    return library.Client(transport=Transport()), library.AsyncClient(
        transport=AsyncTransport()
    )
