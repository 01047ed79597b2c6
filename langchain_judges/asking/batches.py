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
import hashlib
import importlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

import httpx

from langchain_judges.asking.batch_jobs import (
    ATTEMPTS,
    PASSING,
    AnthropicJobs,
    Jobs,
    OpenAIJobs,
    Result,
)
from langchain_judges.asking.batch_journal import Answer, Job, Journal
from langchain_judges.asking.models import is_openai_kin, resolve_model
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from langchain_core.language_models import BaseChatModel

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
"""Of one job: OpenAI takes 50,000 requests and 200 MB, Anthropic 100,000 and 256 MB."""


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

    Many rows must be in flight for jobs to be worth it: `ajudge_many` with a
    `max_concurrency` of thousands and `open_rows` as memory allows.

    Args:
        model: A `ChatOpenAI` or `ChatAnthropic`, or a name of one as `resolve_model` takes it.
        journal: A file that remembers jobs; a later run with it sends nothing again that an
            earlier one sent.
        quiet: Seconds without a new request after which a job is sent.
        poll: Seconds between looks at jobs that run.
        most_requests: Of one job.
        report: Called with a job whenever its state changes, from another thread.

    Raises:
        OptionError: The model speaks another protocol.
        ModelSetupError: The model cannot be made.
    """
    chat: Any = resolve_model(model)
    kinds = {base.__name__ for base in type(chat).__mro__}
    if not is_openai_kin(chat) and "ChatAnthropic" not in kinds:
        raise OptionError(
            "batches need a model that speaks OpenAI's or Anthropic's protocol, got a "
            f"{type(chat).__name__}"
        )
    batcher = Batcher(Journal(journal), quiet, poll, most_requests, report or (lambda _: None))
    marks = {"metadata": {**(chat.metadata or {}), "batch": True}}
    copy: Any
    if not is_openai_kin(chat):
        now, later = _clients(importlib.import_module("httpx2"), batcher)
        copy = chat.model_copy(update={**marks, "max_retries": 0})
        # Where the class keeps its clients once they are made; it takes none of a caller's.
        for name, client in (("_client", now), ("_async_client", later)):
            own = getattr(chat, name).with_options(http_client=client, max_retries=0)
            vars(copy)[name] = own
        vars(copy)["default_request_timeout"] = None
        return cast("BaseChatModel", copy)
    now, later = _clients(httpx, batcher)
    root = chat.root_client.with_options(http_client=now, max_retries=0)
    root_async = chat.root_async_client.with_options(http_client=later, max_retries=0)
    clients = {
        "root_client": root,
        "client": root.chat.completions,
        "root_async_client": root_async,
        "async_client": root_async.chat.completions,
        "http_client": now,
        "http_async_client": later,
    }
    # A job takes hours: no reply is late.
    copy = chat.model_copy(update={**clients, **marks, "request_timeout": None})
    return cast("BaseChatModel", copy)


def _clients(library: Any, batcher: Batcher) -> tuple[Any, Any]:
    """Return HTTP clients that hand their requests to a batcher.

    Args:
        library: `httpx`, or `httpx2` for the packages that have moved on to it.
        batcher: Who answers.
    """

    class Transport(library.BaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            request.read()
            return response(request, batcher.ask(_Request.of(request)).result())

    class AsyncTransport(library.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            await request.aread()
            answer = await asyncio.wrap_future(batcher.ask(_Request.of(request)))
            return response(request, answer)

    def response(request: Any, answer: Answer) -> Any:
        return library.Response(answer["status"], json=answer["body"], request=request)

    return library.Client(transport=Transport()), library.AsyncClient(
        transport=AsyncTransport()
    )


class _Request(NamedTuple):
    """A request, whichever library it comes from."""

    url: str
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    def of(cls, request: Any) -> _Request:
        return cls(str(request.url), dict(request.headers), request.content)


@dataclass
class _Wanted:
    """A request that waits for its answer."""

    key: str
    """Of its content, and of how often the same was asked before."""
    request: _Request
    answer: asyncio.Future[Answer]
    attempts: int = 0

    @property
    def door(self) -> tuple[str, str]:
        """Where it goes: the server's address, and the endpoint at it."""
        base, _, name = self.request.url.rpartition("/v1/")
        return f"{base}/v1", f"/v1/{name}"

    @property
    def size(self) -> int:
        return len(self.request.content) + 200

    def jobs(self, wait: float) -> Jobs:
        """Return the batch API of its server."""
        kind = AnthropicJobs if self.door[1] == "/v1/messages" else OpenAIJobs
        return kind(self.door[0], _access(self.request), wait)


@dataclass
class Batcher:
    """Collects requests into jobs, in an event loop of its own, and hands out the answers."""

    journal: Journal
    quiet: float
    poll: float
    most_requests: int
    report: Callable[[Job], object]
    _asked: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, _Wanted] = field(default_factory=dict)
    """Not in a job yet."""
    _open: dict[str, _Wanted] = field(default_factory=dict)
    """In a job that runs."""
    _watched: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _timer: asyncio.TimerHandle | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loop: asyncio.AbstractEventLoop | None = None

    def ask(self, request: _Request) -> Future[Answer]:
        """Return the answer to come for a request, from any thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="batches", daemon=True
                ).start()
        return asyncio.run_coroutine_threadsafe(self._ask(request), self._loop)

    async def _ask(self, request: _Request) -> Answer:
        wanted = _Wanted(
            self._key(request), request, asyncio.get_running_loop().create_future()
        )
        if answer := self.journal.answer(wanted.key):
            return answer
        self._enter(wanted)
        try:
            return await wanted.answer
        finally:
            self._waiting.pop(wanted.key, None)
            self._open.pop(wanted.key, None)

    def _key(self, request: _Request) -> str:
        """Return what names a request: its content, and how often it was asked before."""
        body = json.dumps(json.loads(request.content), sort_keys=True)
        digest = hashlib.sha256(f"{urlsplit(request.url).path}\n{body}".encode()).hexdigest()[
            :32
        ]
        self._asked[digest] += 1
        return f"{digest}-{self._asked[digest]}"

    def _enter(self, wanted: _Wanted) -> None:
        if job := self.journal.job_of(wanted.key):
            self._open[wanted.key] = wanted
            self._watch(job, wanted)
            return
        self._waiting[wanted.key] = wanted
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
        doors: dict[tuple[str, str], list[_Wanted]] = {}
        for wanted in waiting:
            doors.setdefault(wanted.door, []).append(wanted)
        for group in doors.values():
            for part in self._parts(group):
                self._open |= {wanted.key: wanted for wanted in part}
                self._start(self._run(part), [wanted.key for wanted in part])

    def _parts(self, group: Iterable[_Wanted]) -> Iterator[list[_Wanted]]:
        part: list[_Wanted] = []
        size = 0
        for wanted in group:
            if part and (len(part) == self.most_requests or size + wanted.size > MOST_BYTES):
                yield part
                part, size = [], 0
            part.append(wanted)
            size += wanted.size
        yield part

    def _start(self, work: Coroutine[Any, Any, None], keys: Iterable[str]) -> None:
        """Run some work; what it raises is the answer to all requests that wait for it."""

        async def guarded() -> None:
            try:
                await work
            except httpx.HTTPStatusError as exc:
                # The server's own words, so that a refused key is one.
                self._fail(
                    keys, Answer(status=exc.response.status_code, body=_body(exc.response))
                )
            except Exception as exc:  # noqa: BLE001 - raised where the answer is wanted
                self._fail(keys, exc)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(
        self,
        keys: Iterable[str],
        problem: Exception | Answer,
    ) -> None:
        for key in keys:
            wanted = self._open.pop(key, None)
            if wanted is None or wanted.answer.done():
                continue
            if isinstance(problem, Exception):
                wanted.answer.set_exception(problem)
            else:
                wanted.answer.set_result(problem)

    async def _run(self, part: list[_Wanted]) -> None:
        jobs = part[0].jobs(min(self.poll, 1.0))
        requests = {wanted.key: json.loads(wanted.request.content) for wanted in part}
        content = await jobs.upload(part[0].door[1], requests)
        mark = uuid.uuid4().hex
        # Written first: a process that dies after the next line finds the job again.
        self.journal.intend(mark, list(requests))
        try:
            job = await jobs.make_once(content, mark, len(part))
        except httpx.HTTPStatusError:
            self.journal.forget(mark)
            raise
        await self._follow(self._sent(mark, job, len(part)), jobs)

    def _sent(self, mark: str, job: Job, requests: int) -> Job:
        """Remember that the server has a job, and return it with its size."""
        job = replace(job, requests=requests)
        self.journal.sent(mark, job)
        self._watched.add(job.name)
        return job

    def _watch(self, job: Job, wanted: _Wanted) -> None:
        """Follow a job of an earlier run, once."""
        if job.name not in self._watched:
            self._watched.add(job.name)
            keys = self.journal.unanswered(job.name)
            self._start(self._resume(job, wanted.jobs(min(self.poll, 1.0))), keys)

    async def _resume(self, job: Job, jobs: Jobs) -> None:
        if job.intended:
            made = await jobs.find(job.name, job.requests)
            if made is None:  # the process died before it was: nothing was paid
                for key in self.journal.forget(job.name):
                    if wanted := self._open.pop(key, None):
                        self._enter(wanted)
                return
            job = self._sent(job.name, made, job.requests)
        await self._follow(job, jobs)

    async def _follow(self, job: Job, jobs: Jobs) -> None:
        """Wait for a job's end and hand out what it brought."""
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
                self._hand_out(result)
        for key in self.journal.unanswered(job.name):
            self._lost(key, 400 if state.problem else 503, state.problem or job.status)

    def _hand_out(self, result: Result) -> None:
        if result.status in PASSING:
            self._lost(result.key, result.status, json.dumps(result.body))
            return
        answer = Answer(status=result.status, body=result.body)
        self.journal.keep(result.key, answer)
        wanted = self._open.get(result.key)
        if wanted and not wanted.answer.done():
            wanted.answer.set_result(answer)

    def _lost(self, key: str, status: int, problem: str) -> None:
        """Ask a request again in another job, or hand its error on."""
        self.journal.drop(key)
        wanted = self._open.pop(key, None)
        if wanted is None or wanted.answer.done():
            return
        wanted.attempts += 1
        if status in PASSING and wanted.attempts < ATTEMPTS:
            self._enter(wanted)
            return
        error = {"error": {"message": f"the batch job says: {problem[:300]}"}}
        wanted.answer.set_result(Answer(status=status, body=error))


def _access(request: _Request) -> dict[str, str]:
    """Return the headers of a request that say who asks."""
    content = ("content-", "host", "accept", "connection", "x-stainless")
    return {k: v for k, v in request.headers.items() if not k.lower().startswith(content)}


def _body(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return {"error": {"message": response.text[:300]}}
