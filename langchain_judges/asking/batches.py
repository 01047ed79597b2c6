"""Calls in flight as jobs of a provider's batch API, at its price.

A batch model is an ordinary chat model whose HTTP client collects requests instead of sending
them: graphs, repairs, caches and failures stay as they are, and rounds form by themselves,
because all rows of a run wait at the same step. The protocols are OpenAI's (`/files`,
`/batches`), which other servers speak too, and Anthropic's Message Batches, each spoken by the
client that the chat model has.

A store on disk knows every job that runs and every answer that came, so that a run that was
killed finds its jobs again and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_judges.asking.models import changed_clients, is_openai_compatible, resolve_model
from langchain_judges.asking.provider_errors import can_pass, status_of, wait_after
from langchain_judges.asking.reply_log import ReplyStore, key_of
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from langchain_core.language_models import BaseChatModel

# Statuses of errors that may pass at another attempt.
PASSING = {408, 409, 429, 500, 502, 503, 504, 529}
# Jobs that a request may be in before its error is handed on.
ATTEMPTS = 3
# Of one job: OpenAI takes 50,000 requests and 200 MB, Anthropic 100,000 and 256 MB.
MOST_REQUESTS, MOST_BYTES = 50_000, 190_000_000
# Attempts of the providers' clients, which wait eight seconds at most: some minutes.
_TRIES, _LONGEST_WAIT = 32, 60.0
_ANSWERS, _RECORD = "answers", "job"
# An object of JSON that a server sent or is sent.
Json = dict[str, Any]
# What a job brought: the key of a request, an HTTP status and the body.
Answers = AsyncIterator[tuple[str, int, Json]]


class Job(NamedTuple):
    """A job of a batch API.

    Attributes:
        name: The server's name for it.
        status: As the server calls it: `validating`, `in_progress`, `completed`, `expired` …
        completed: Requests that have an answer.
        ended: Whether there is nothing more to come.
        files: Where its results are; empty where there are none, or none any more.
        problem: Why it brought nothing, if the job itself was refused.
        requests: How many it is of.
    """

    name: str
    status: str
    completed: int
    ended: bool
    files: tuple[str, ...] = ()
    problem: str = ""
    requests: int = 0


class OpenAIJobs:
    """OpenAI's protocol: a file of requests, a job with a mark in its metadata.

    Args:
        client: An asynchronous client of the provider's package.
    """

    def __init__(self, client: Any) -> None:
        """Speak through a client."""
        self.client = client
        self.batches = client.batches
        self.once = client.with_options(max_retries=0).batches

    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Content of a job: requests by key, for an endpoint."""
        lines = [
            {"custom_id": key, "method": "POST", "url": endpoint, "body": body}
            for key, body in requests.items()
        ]
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        content = "batch.jsonl", text.encode()
        file = await self.client.files.create(file=content, purpose="batch")
        window = {"endpoint": endpoint, "completion_window": "24h"}
        return {"input_file_id": file.id, **window}

    async def make(self, content: Json, mark: str) -> str:
        """Make a job and return its name, by one request: a lost one may have arrived."""
        job = await self.once.create(**content, metadata={"langchain_judges": mark})
        return str(job.id)

    async def find(self, mark: str, requests: int) -> str | None:
        """Return the name of a job that was made without an answer, if the server has it."""
        page = await self.batches.list(limit=100)
        while True:
            for job in page.data:
                if (job.metadata or {}).get("langchain_judges") == mark:
                    return str(job.id)
            if not page.has_more:
                return None
            page = await page.get_next_page()

    async def look(self, name: str) -> Job:
        """Return where a job stands."""
        job = (await self.batches.retrieve(name)).to_dict()
        status, counts = job["status"], job.get("request_counts") or {}
        ended = status in {"completed", "failed", "expired", "cancelled"}
        found = (job.get(each) for each in ("output_file_id", "error_file_id"))
        files = tuple(filter(None, found))
        problem = json.dumps(job.get("errors")) if status == "failed" else ""
        return Job(name, status, counts.get("completed", 0), ended, files, problem)

    async def results(self, job: Job) -> Answers:
        """Yield what a job brought."""
        for file in job.files:
            rest = b""
            async with self.client.files.with_streaming_response.content(file) as reply:
                async for part in reply.iter_bytes():
                    # Not by `iter_lines`, which splits at marks that texts may have too.
                    *lines, rest = (rest + part).split(b"\n")
                    for line in filter(bytes.strip, lines):
                        yield self.read(json.loads(line))
            if rest.strip():
                yield self.read(json.loads(rest))

    def read(self, line: Json) -> tuple[str, int, Json]:
        """Key, status and body of a line of results."""
        response = line.get("response") or {}
        body = response.get("body") or {"error": line.get("error")}
        # Whatever the server calls it, so that the reply is priced as one of a batch.
        body = {**body, "service_tier": "batch"} if "usage" in body else body
        return line["custom_id"], response.get("status_code") or 503, body


class AnthropicJobs(OpenAIJobs):
    """Anthropic's Message Batches: requests in the job itself, which carries no mark."""

    def __init__(self, client: Any) -> None:
        """Speak through a client."""
        self.batches = client.messages.batches
        self.once = client.with_options(max_retries=0).messages.batches

    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Return the requests; they go with the job."""
        return {"requests": [{"custom_id": k, "params": v} for k, v in requests.items()]}

    async def make(self, content: Json, mark: str) -> str:
        """Make a job."""
        return str((await self.once.create(**content)).id)

    async def find(self, mark: str, requests: int) -> str | None:
        """Return the newest job of as many requests.

        If it is another one, its results have other keys, and the requests are asked again.
        """
        jobs = (await self.batches.list(limit=100)).data
        sizes = ((job.id, sum(job.request_counts.to_dict().values())) for job in jobs)
        return next((name for name, size in sizes if size == requests), None)

    async def look(self, name: str) -> Job:
        """Return where a job stands."""
        job = await self.batches.retrieve(name)
        ended = job.processing_status == "ended"
        files = tuple(filter(None, [job.results_url]))
        counted = job.request_counts.succeeded or 0
        return Job(name, job.processing_status, counted, ended, files)

    async def results(self, job: Job) -> Answers:
        """Yield what a job brought; after a month the provider has it no more."""
        for _ in job.files:
            async for line in await self.batches.results(job.name):
                yield self.read(line.to_dict())

    def read(self, line: Json) -> tuple[str, int, Json]:
        """Key, status and body of a line of results."""
        result = line["result"]
        if result["type"] == "succeeded":
            message = result["message"]
            usage = {**message["usage"], "service_tier": "batch"}
            return line["custom_id"], 200, {**message, "usage": usage}
        error = result.get("error") or {"error": {"message": result["type"]}}
        inner = error.get("error") or error
        wrong = inner.get("type") == "invalid_request_error"
        return line["custom_id"], 400 if wrong else 503, error


class BatchAnswer(NamedTuple):
    """Answer to a request: an HTTP status and JSON."""

    status: int
    body: Any


@dataclass
class Pending:
    """A request that waits for its answer.

    Attributes:
        key: Of its content, and of how often the same was asked before.
        endpoint: The path at the server, from its version on.
        body: What is asked.
        answer: What comes of it.
        jobs: In how many it was.
    """

    key: str
    endpoint: str
    body: Any
    answer: asyncio.Future[BatchAnswer]
    jobs: int = 0


class Batcher:
    """Collects requests into jobs, in an event loop of its own, and hands out the answers.

    Args:
        jobs: The batch API.
        store: Holds a record of each job that runs in a scope of its own, and the answers.
        quiet: Seconds without a new request after which a job is sent.
        poll: Seconds between looks at a job.
        most_requests: Of one job.
        report: Is told of each job whenever its state changes.
    """

    def __init__(
        self,
        jobs: OpenAIJobs,
        store: ReplyStore,
        quiet: float,
        poll: float,
        most_requests: int,
        report: Callable[[Job], object] | None,
    ) -> None:
        """Find the jobs of earlier runs; nothing is asked yet."""
        self._api, self._store, self._quiet, self._poll = jobs, store, quiet, poll
        self._most_requests, self._report = most_requests, report or (lambda _: None)
        self._times: Counter[str] = Counter()
        self._unanswered: dict[str, list[str]] = {}  # asked, and their jobs may answer still
        self._waiting: dict[str, Pending] = {}  # not in a job yet
        self._open: dict[str, Pending] = {}  # in a job that runs
        marks = (mark for mark in store.scopes() if mark != _ANSWERS)
        found = ((mark, dict(store.entries(mark, _RECORD))) for mark in marks)
        self._jobs: dict[str, Any] = {mark: job[_RECORD] for mark, job in found if job}
        self._job_of = {key: mark for mark, job in self._jobs.items() for key in job["keys"]}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="batches", daemon=True).start()

    def ask(self, request: Any) -> Future[BatchAnswer]:
        """Return the answer to come for an HTTP request that was read, from any thread."""
        endpoint = f"/v1/{request.url.path.rpartition('/v1/')[2]}"
        work = self._ask(endpoint, json.loads(request.content))
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _ask(self, endpoint: str, body: Any) -> BatchAnswer:
        digest = key_of(endpoint, body)
        if unanswered := self._unanswered.get(digest):
            key = unanswered.pop()
        else:
            self._times[digest] += 1
            key = f"{digest}-{self._times[digest]}"
        if stored := dict(self._store.entries(_ANSWERS, key)):
            return BatchAnswer(200, stored[key])
        pending = Pending(key, endpoint, body, asyncio.get_running_loop().create_future())
        self._enter(pending)
        is_final = False
        try:
            answer = await pending.answer
            is_final = key not in self._job_of
            return answer
        finally:
            self._waiting.pop(key, None)
            self._open.pop(key, None)
            if not is_final:
                self._unanswered.setdefault(digest, []).append(key)

    def _enter(self, pending: Pending) -> None:
        """Find the job that a request is in, or put it among those for the next one."""
        if mark := self._job_of.get(pending.key):
            self._open[pending.key] = pending
            if mark not in self._tasks:  # of an earlier run
                self._start(self._resume(mark), mark)
            return
        self._waiting[pending.key] = pending
        if self._timer:
            self._timer.cancel()
        if len(self._waiting) >= self._most_requests:
            self._send()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._quiet, self._send)

    def _send(self) -> None:
        """Put all that waits into jobs: one for each endpoint and size."""
        self._timer = None
        waiting = [each for each in self._waiting.values() if not each.answer.done()]
        self._waiting.clear()
        for part in _parts(waiting, self._most_requests):
            mark = uuid.uuid4().hex
            self._jobs[mark] = {"keys": [pending.key for pending in part], "name": ""}
            self._open |= {pending.key: pending for pending in part}
            self._start(self._make(mark, part), mark)

    def _start(self, work: Coroutine[Any, Any, None], mark: str) -> None:
        """Run some work on a job; what it raises is the answer to all who wait for it."""
        keys = self._jobs[mark]["keys"]

        async def guarded() -> None:
            try:
                await work
            except Exception as exc:  # noqa: BLE001 - it answers all who wait
                # Nobody awaits this task: a lost connection, a reply of another form, a full
                # disk or a caller's `report` that raises must end the waits for its answers.
                for key in keys:
                    self._settle(key, _refusal(exc) or exc)
                del self._tasks[mark]  # who asks again has the job looked at again

        self._tasks[mark] = asyncio.ensure_future(guarded())

    def _settle(self, key: str, outcome: BatchAnswer | Exception) -> None:
        """Give the answer, or what prevents one, to who waits for it, unless it has one."""
        pending = self._open.pop(key, None)
        if pending is None or pending.answer.done():
            return
        if isinstance(outcome, Exception):
            pending.answer.set_exception(outcome)
        else:
            pending.answer.set_result(outcome)

    async def _make(self, mark: str, part: list[Pending]) -> None:
        requests = {pending.key: pending.body for pending in part}
        content = await self._api.upload(part[0].endpoint, requests)
        # Written first: a process that dies after the next line finds the job again.
        self._name(mark, "")
        try:
            self._name(mark, await self._made_once(content, mark, len(part)))
        except Exception as exc:
            if status_of(exc) is not None:  # there is no such job
                self._forget(mark)
            raise
        await self._follow(mark)

    async def _made_once(self, content: Json, mark: str, requests: int) -> str:
        """Make a job; where no answer comes, look first whether it was made all the same."""
        wait = min(self._poll, 1.0)
        while True:
            try:
                return await self._api.make(content, mark)
            except Exception as exc:
                lost = status_of(exc) is None
                if lost and (name := await self._api.find(mark, requests)):
                    return name
                if wait > _LONGEST_WAIT or not can_pass(exc):
                    raise
                await asyncio.sleep(wait_after(exc, wait))
                wait = 2 * wait + 0.01

    def _name(self, mark: str, name: str) -> None:
        """Write down a job, with the server's name for it once it is known."""
        self._jobs[mark]["name"] = name
        self._store.keep(mark, _RECORD, self._jobs[mark])
        self._job_of |= dict.fromkeys(self._jobs[mark]["keys"], mark)

    def _forget(self, mark: str) -> None:
        for key in self._jobs.pop(mark)["keys"]:
            self._job_of.pop(key, None)
        self._store.forget(mark)

    async def _resume(self, mark: str) -> None:
        """Follow a job of an earlier run."""
        job = self._jobs[mark]
        if not job["name"]:
            self._name(mark, await self._api.find(mark, len(job["keys"])) or "")
        if job["name"]:
            await self._follow(mark)
            return
        self._forget(mark)  # the process died before it was made: nothing was paid
        for key in job["keys"]:
            if pending := self._open.pop(key, None):
                self._enter(pending)

    async def _follow(self, mark: str) -> None:
        """Effect for a job's end, and hand out what it brought."""
        name, keys = self._jobs[mark]["name"], self._jobs[mark]["keys"]
        before = None
        while True:
            job = (await self._api.look(name))._replace(requests=len(keys))
            if job != before:
                self._report(job)
            before = job
            if job.ended:
                break
            await asyncio.sleep(self._poll)
        nothing = BatchAnswer(400 if job.problem else 503, job.problem or job.status)
        left = dict.fromkeys(keys, nothing)
        async for key, status, body in self._api.results(job):
            left[key] = result = BatchAnswer(status, body)
            if status in PASSING:
                continue
            del left[key]
            self._job_of.pop(key, None)
            # A refusal costs nothing, and a later run may ask again.
            if status == 200:
                self._store.keep(_ANSWERS, key, body)
            self._settle(key, result)
        self._forget(mark)
        for key, result in left.items():
            self._ask_again(key, result)

    def _ask_again(self, key: str, result: BatchAnswer) -> None:
        """Put a request into another job, or hand its error on."""
        pending = self._open.get(key)
        if pending is None:
            return
        pending.jobs += 1
        if result.status in PASSING and pending.jobs < ATTEMPTS:
            del self._open[key]
            self._enter(pending)
            return
        problem = f"the batch job says: {json.dumps(result.body)[:300]}"
        self._settle(key, BatchAnswer(result.status, {"error": {"message": problem}}))


def _parts(waiting: Iterable[Pending], most_requests: int) -> Iterator[list[Pending]]:
    """Yield requests of one endpoint, as many as a job takes."""
    part: list[Pending] = []
    total = 0
    for pending in sorted(waiting, key=lambda each: each.endpoint):
        size = len(json.dumps(pending.body)) + 200
        is_full = len(part) == most_requests or total + size > MOST_BYTES
        if part and (is_full or part[0].endpoint != pending.endpoint):
            yield part
            part, total = [], 0
        part.append(pending)
        total += size
    if part:
        yield part


def _refusal(error: Exception) -> BatchAnswer | None:
    """Refusal in the server's own words, so that a refused key is one."""
    if (status := status_of(error)) is None:
        return None
    body = getattr(error, "body", None)
    return BatchAnswer(status, {"error": body if isinstance(body, dict) else str(error)[:300]})


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
        OutputError: The file cannot be opened.
    """
    chat: Any = resolve_model(model)
    is_openai = is_openai_compatible(chat)
    if not is_openai and "ChatAnthropic" not in {base.__name__ for base in type(chat).__mro__}:
        raise OptionError(
            "batches need a model that speaks OpenAI's or Anthropic's protocol, got a "
            f"{type(chat).__name__}"
        )
    live = chat.root_async_client if is_openai else chat._async_client
    package = importlib.import_module(type(live).__module__.partition(".")[0])
    own = package.DefaultAsyncHttpxClient()
    client = live.with_options(http_client=own, max_retries=_TRIES, timeout=600)
    jobs = OpenAIJobs(client) if is_openai else AnthropicJobs(client)
    store = ReplyStore(Path(journal), shared=True)
    batcher = Batcher(jobs, store, quiet, poll, most_requests, report)
    now, later = _clients(package, batcher)
    # A job takes hours: no reply is late.
    changes: Json = {"metadata": {**(chat.metadata or {}), "batch": True}, "max_retries": 0}
    if not is_openai:
        copy = chat.model_copy(update=changes)
        # Where the class keeps its clients once they are made; it takes none of a caller's.
        for name, http_client in (("_client", now), ("_async_client", later)):
            own_client = getattr(chat, name)
            vars(copy)[name] = own_client.with_options(http_client=http_client, max_retries=0)
        vars(copy)["default_request_timeout"] = None
        return cast("BaseChatModel", copy)

    def batched(own: Any) -> Any:
        return own.with_options(http_client=later if own is live else now, max_retries=0)

    changes |= changed_clients(chat, batched)
    changes |= {"http_client": now, "http_async_client": later, "request_timeout": None}
    return cast("BaseChatModel", chat.model_copy(update=changes))


def _clients(package: Any, batcher: Batcher) -> tuple[Any, Any]:
    """Return HTTP clients that hand their requests to a batcher.

    Args:
        package: The provider's, whose HTTP library they are of: `httpx` or `httpx2`.
        batcher: Who answers.
    """
    library: Any = importlib.import_module(package.DefaultHttpxClient.__base__.__module__)

    class Transport(library.BaseTransport):  # type: ignore[misc] # of either library
        def handle_request(self, request: Any) -> Any:
            request.read()
            return response(request, batcher.ask(request).result())

    class AsyncTransport(library.AsyncBaseTransport):  # type: ignore[misc] # likewise
        async def handle_async_request(self, request: Any) -> Any:
            await request.aread()
            return response(request, await asyncio.wrap_future(batcher.ask(request)))

    def response(request: Any, answer: BatchAnswer) -> Any:
        return library.Response(answer.status, json=answer.body, request=request)

    return library.Client(transport=Transport()), library.AsyncClient(
        transport=AsyncTransport()
    )
