"""Calls in flight as jobs of a provider's batch API, at its price.

A batch model is an ordinary chat model whose HTTP client collects requests instead of sending
them: graphs, repairs, caches and failures stay as they are, and rounds form by themselves,
because all rows of a run wait at the same step. The protocol is OpenAI's (`/files`,
`/batches`), which other servers speak too.

A journal on disk knows every request that was sent, so that a run that was killed finds its
jobs again and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import httpx

from langchain_judges.asking.batch_journal import Job, Journal
from langchain_judges.asking.models import is_openai_kin, resolve_model
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from langchain_core.language_models import BaseChatModel

MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
"""Of one job: OpenAI takes 50,000 requests and 200 MB."""
ATTEMPTS = 3
"""Jobs that a request may be in before its error is handed on."""

_ENDED = {"completed", "failed", "expired", "cancelled"}
_PASSING = {408, 409, 429, 500, 502, 503, 504}
"""Statuses of a request that another job may not bring."""


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
        model: A `ChatOpenAI`, or a name of one as `resolve_model` takes it.
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
    if not is_openai_kin(chat):
        raise OptionError(
            f"batches need a model that speaks OpenAI's protocol, got a {type(chat).__name__}"
        )
    batcher = Batcher(Journal(journal), quiet, poll, most_requests, report or (lambda _: None))
    now = httpx.Client(transport=_Transport(batcher))
    later = httpx.AsyncClient(transport=_AsyncTransport(batcher))
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
    marks = {"metadata": {**(chat.metadata or {}), "batch": True}, "request_timeout": None}
    batch: BaseChatModel = chat.model_copy(update={**clients, **marks})
    return batch


class _Transport(httpx.BaseTransport):
    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._batcher.ask(request).result()


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return await asyncio.wrap_future(self._batcher.ask(request))


@dataclass
class _Wanted:
    """A request that waits for its answer."""

    key: str
    """Of its content, and of how often the same was asked before."""
    request: httpx.Request
    answer: asyncio.Future[httpx.Response]
    attempts: int = 0

    @property
    def door(self) -> tuple[str, str]:
        """Where it goes: the server's address, and the endpoint at it."""
        base, _, name = str(self.request.url).rpartition("/v1/")
        return f"{base}/v1", f"/v1/{name}"

    @property
    def size(self) -> int:
        return len(self.request.content) + 200

    def line(self) -> bytes:
        """Return its line in the file of a job."""
        body = json.loads(self.request.content)
        line = {"custom_id": self.key, "method": "POST", "url": self.door[1], "body": body}
        return json.dumps(line, ensure_ascii=False).encode()


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
    _http: httpx.AsyncClient | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loop: asyncio.AbstractEventLoop | None = None

    def ask(self, request: httpx.Request) -> Future[httpx.Response]:
        """Return the answer to come for a request, from any thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="batches", daemon=True
                ).start()
        return asyncio.run_coroutine_threadsafe(self._ask(request), self._loop)

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        if self._http is None:
            self._http = httpx.AsyncClient(timeout=600)
        wanted = _Wanted(
            self._key(request), request, asyncio.get_running_loop().create_future()
        )
        if answer := self.journal.answer(wanted.key):
            return _response(request, answer)
        self._enter(wanted)
        try:
            return await wanted.answer
        finally:
            self._waiting.pop(wanted.key, None)
            self._open.pop(wanted.key, None)

    def _key(self, request: httpx.Request) -> str:
        """Return what names a request: its content, and how often it was asked before."""
        body = json.dumps(json.loads(request.content), sort_keys=True)
        digest = hashlib.sha256(f"{request.url.path}\n{body}".encode()).hexdigest()[:32]
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
                refusal = exc.response
                self._fail(
                    keys,
                    lambda request: httpx.Response(
                        refusal.status_code, content=refusal.content, request=request
                    ),
                )
            except Exception as exc:  # noqa: BLE001 - raised where the answer is wanted
                self._fail(keys, exc)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(
        self,
        keys: Iterable[str],
        problem: Exception | Callable[[httpx.Request], httpx.Response],
    ) -> None:
        for key in keys:
            wanted = self._open.pop(key, None)
            if wanted is None or wanted.answer.done():
                continue
            if isinstance(problem, Exception):
                wanted.answer.set_exception(problem)
            else:
                wanted.answer.set_result(problem(wanted.request))

    async def _run(self, part: list[_Wanted]) -> None:
        address, endpoint = part[0].door
        headers = _access(part[0].request)
        lines = b"\n".join(wanted.line() for wanted in part)
        file = await self._call(
            "POST",
            f"{address}/files",
            headers,
            data={"purpose": "batch"},
            files={"file": ("batch.jsonl", lines)},
        )
        mark = uuid.uuid4().hex
        content = {
            "input_file_id": file["id"],
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": {"langchain_judges": mark},
        }
        # Written first: a process that dies after the next line finds the job by its mark.
        self.journal.intend(mark, [wanted.key for wanted in part])
        try:
            made = await self._made(address, headers, content)
        except httpx.HTTPStatusError:
            self.journal.forget(mark)
            raise
        job = Job(made["id"], address, made["status"], len(part))
        self.journal.sent(mark, job)
        self._watched.add(job.name)
        await self._follow(job, headers)

    async def _made(
        self, address: str, headers: Mapping[str, str], content: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make a job; where no answer comes, look first whether it was made all the same."""
        for left in range(ATTEMPTS, -1, -1):
            try:
                return await self._call("POST", f"{address}/batches", headers, json=content)
            except httpx.TransportError:
                mark = content["metadata"]["langchain_judges"]
                if job := await self._named(address, headers, mark):
                    return job
                if not left:
                    raise
        raise AssertionError  # the last attempt returned or raised

    def _watch(self, job: Job, wanted: _Wanted) -> None:
        """Follow a job of an earlier run, once."""
        if job.name not in self._watched:
            self._watched.add(job.name)
            keys = self.journal.unanswered(job.name)
            self._start(self._resume(job, wanted.door[0], _access(wanted.request)), keys)

    async def _resume(self, job: Job, address: str, headers: Mapping[str, str]) -> None:
        if job.intended:
            made = await self._named(address, headers, job.name)
            if made is None:  # the process died before it was: nothing was paid
                for key in self.journal.forget(job.name):
                    if wanted := self._open.pop(key, None):
                        self._enter(wanted)
                return
            mark, job = job.name, Job(made["id"], address, made["status"], job.requests)
            self.journal.sent(mark, job)
            self._watched.add(job.name)
        await self._follow(job, headers)

    async def _named(
        self, address: str, headers: Mapping[str, str], mark: str
    ) -> dict[str, Any] | None:
        """Return the job that carries a mark, if the server has it."""
        after: dict[str, Any] = {}
        while True:
            page = await self._call(
                "GET", f"{address}/batches", headers, params={"limit": 100, **after}
            )
            for job in page["data"]:
                if (job.get("metadata") or {}).get("langchain_judges") == mark:
                    return dict(job)
            if not page.get("has_more") or not page["data"]:
                return None
            after = {"after": page["data"][-1]["id"]}

    async def _follow(self, job: Job, headers: Mapping[str, str]) -> None:
        """Wait for a job's end and hand out what it brought."""
        while True:
            state = await self._call("GET", f"{job.address}/batches/{job.name}", headers)
            counts = state.get("request_counts") or {}
            now = Job(
                job.name, job.address, state["status"], job.requests, counts.get("completed", 0)
            )
            if now != job:
                job = now
                self.report(job)
            if job.status in _ENDED:
                break
            await asyncio.sleep(self.poll)
        for name in (state.get("output_file_id"), state.get("error_file_id")):
            if name:
                await self._take(job, f"{job.address}/files/{name}/content", headers)
        problem = json.dumps((state.get("errors") or {}).get("data") or job.status)
        for key in self.journal.unanswered(job.name):
            self._lost(key, 400 if job.status == "failed" else 503, problem)

    async def _take(self, job: Job, address: str, headers: Mapping[str, str]) -> None:
        assert self._http is not None  # noqa: S101 - for the type checker
        async with self._http.stream("GET", address, headers=headers) as reply:
            reply.raise_for_status()
            async for line in reply.aiter_lines():
                if line.strip():
                    self._hand_out(json.loads(line))

    def _hand_out(self, line: dict[str, Any]) -> None:
        key, response = line["custom_id"], line.get("response") or {}
        status = response.get("status_code")
        if status is None or status in _PASSING:
            self._lost(
                key, status or 503, json.dumps(line.get("error") or response.get("body"))
            )
            return
        answer = {"status": status, "body": response["body"]}
        self.journal.keep(key, answer)
        wanted = self._open.get(key)
        if wanted and not wanted.answer.done():
            wanted.answer.set_result(_response(wanted.request, answer))

    def _lost(self, key: str, status: int, problem: str) -> None:
        """Ask a request again in another job, or hand its error on."""
        self.journal.drop(key)
        wanted = self._open.pop(key, None)
        if wanted is None or wanted.answer.done():
            return
        wanted.attempts += 1
        if status in _PASSING and wanted.attempts < ATTEMPTS:
            self._enter(wanted)
            return
        error = {"error": {"message": f"the batch job says: {problem[:300]}"}}
        wanted.answer.set_result(_response(wanted.request, {"status": status, "body": error}))

    async def _call(
        self, method: str, address: str, headers: Mapping[str, str], **content: Any
    ) -> dict[str, Any]:
        """Ask the server about jobs; what passes is tried again for some minutes."""
        assert self._http is not None  # noqa: S101 - for the type checker
        wait = min(self.poll, 1.0)
        for left in (*range(8), None):
            try:
                reply = await self._http.request(method, address, headers=headers, **content)
                if reply.status_code not in _PASSING or left is None:
                    reply.raise_for_status()
                    return dict(reply.json())
            except httpx.TransportError:
                # A job that was made without an answer would be made and paid again.
                if left is None or address.endswith("/batches"):
                    raise
            await asyncio.sleep(wait)
            wait = min(2 * wait, 60.0)
        raise AssertionError  # the last attempt returned or raised


def _access(request: httpx.Request) -> dict[str, str]:
    """Return the headers of a request that say who asks."""
    content = ("content-", "host", "accept", "connection", "x-stainless")
    return {k: v for k, v in request.headers.items() if not k.lower().startswith(content)}


def _response(request: httpx.Request, answer: Mapping[str, Any]) -> httpx.Response:
    return httpx.Response(answer["status"], json=answer["body"], request=request)
