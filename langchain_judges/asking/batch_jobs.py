"""How a provider's batch API is spoken to: a job is made, found again, and its results read."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import urlsplit

import httpx
from typing_extensions import TypedDict

from langchain_judges.errors import OutputError

_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    name TEXT PRIMARY KEY, address TEXT NOT NULL, requests INTEGER NOT NULL,
    made REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS requests (
    key TEXT PRIMARY KEY, job TEXT, answer TEXT
);
CREATE INDEX IF NOT EXISTS by_job ON requests (job);
"""
INTENDED = ""
"""The address of a job that was begun and of which no answer is known."""


class BatchAnswer(TypedDict):
    """What a request got: an HTTP status and JSON."""

    status: int
    body: Any


@dataclass(frozen=True)
class Job:
    """A job of a batch API."""

    name: str
    """The server's name for it; of a job only intended, the mark that it carries there."""
    address: str
    status: str
    """As the server calls it: `validating`, `in_progress`, `completed`, `expired` …"""
    requests: int
    completed: int = 0
    made: float = 0.0
    """When the server took it, in seconds since 1970."""

    @property
    def intended(self) -> bool:
        """Whether it is not known that the server took it."""
        return self.address == INTENDED


class BatchJournal:
    """A SQLite file; every change is on disk when its method returns.

    Raises:
        OutputError: The file cannot be opened, or is something else.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open or make the file."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._file.executescript(_TABLES)
        except (OSError, sqlite3.Error) as exc:
            raise OutputError(f"{path} cannot be used as a journal: {exc}") from exc

    def answer(self, key: str) -> BatchAnswer | None:
        """Return the answer that a request got, if it has one."""
        row = self._one("SELECT answer FROM requests WHERE key = ?", key)
        return cast("BatchAnswer", json.loads(row[0])) if row and row[0] else None

    def job_of(self, key: str) -> Job | None:
        """Return the job that a request is in, if it is in one."""
        row = self._one(
            "SELECT jobs.* FROM requests JOIN jobs ON job = name WHERE key = ?", key
        )
        if row is None:
            return None
        name, address, requests, made = row
        return Job(name, address, "unknown", requests, made=made)

    def intend(self, mark: str, keys: Iterable[str]) -> None:
        """Remember that a job is about to be made of some requests."""
        rows = [(key, mark) for key in keys]
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, 0)", (mark, INTENDED, len(rows))
            )
            self._file.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, NULL)", rows)

    def sent(self, mark: str, job: Job) -> None:
        """Remember that the server took a job, and how it calls it."""
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute(
                "UPDATE jobs SET name = ?, address = ?, made = ? WHERE name = ?",
                (job.name, job.address, job.made, mark),
            )
            self._file.execute("UPDATE requests SET job = ? WHERE job = ?", (job.name, mark))

    def forget(self, mark: str) -> list[str]:
        """Forget a job that was never made; return its requests."""
        keys = self.unanswered(mark)
        with self._file:
            self._file.execute("BEGIN")
            self._file.execute("DELETE FROM requests WHERE job = ?", (mark,))
            self._file.execute("DELETE FROM jobs WHERE name = ?", (mark,))
        return keys

    def unanswered(self, job: str) -> list[str]:
        """Return the requests of a job without an answer."""
        keys = self._file.execute(
            "SELECT key FROM requests WHERE job = ? AND answer IS NULL", (job,)
        )
        return [key for (key,) in keys]

    def keep(self, key: str, answer: BatchAnswer) -> None:
        """Remember the answer to a request."""
        text = json.dumps(answer, ensure_ascii=False)
        self._file.execute("UPDATE requests SET answer = ? WHERE key = ?", (text, key))

    def drop(self, key: str) -> None:
        """Forget a request, so that it can be asked again."""
        self._file.execute("DELETE FROM requests WHERE key = ?", (key,))

    def _one(self, query: str, key: str) -> Any:
        return self._file.execute(query, (key,)).fetchone()


_CONTENT = ("content-", "host", "accept", "connection", "x-stainless")
"""Beginnings of headers that are about one request, and not about who asks."""


class HttpRequest(NamedTuple):
    """An HTTP request, whichever library it comes from."""

    url: str
    headers: Mapping[str, str]
    content: bytes

    @classmethod
    def of(cls, request: httpx.Request) -> HttpRequest:
        """Return a request of httpx, or of httpx2, whose content was read."""
        return cls(str(request.url), dict(request.headers), request.content)

    @property
    def address(self) -> str:
        """The server, up to and including its version."""
        return f"{self.url.rpartition('/v1/')[0]}/v1"

    @property
    def endpoint(self) -> str:
        """The path at the server, from its version on."""
        return f"/v1/{self.url.rpartition('/v1/')[2]}"

    @property
    def body(self) -> Any:
        """What is asked."""
        return json.loads(self.content)

    @property
    def access(self) -> dict[str, str]:
        """The headers that say who asks."""
        return {k: v for k, v in self.headers.items() if not k.lower().startswith(_CONTENT)}

    @property
    def digest(self) -> str:
        """A hash of what is asked: equal requests have the same."""
        body = json.dumps(self.body, sort_keys=True)
        data = f"{urlsplit(self.url).path}\n{body}".encode()
        return hashlib.sha256(data).hexdigest()[:32]


PASSING = {408, 409, 429, 500, 502, 503, 504, 529}
"""Statuses of errors that may pass at another attempt."""
ATTEMPTS = 3
"""Jobs that a request may be in before its error is handed on; also looks for a lost job."""
_TRIES, _LONGEST_WAIT = 9, 60.0
_UNKNOWN_PATH = {404, 405, 501}


Json = dict[str, Any]
"""An object of JSON that a server sent or is sent."""


class JobResult(NamedTuple):
    """What a job brought for one request."""

    key: str
    status: int
    body: Json


class State(NamedTuple):
    """Where a job stands."""

    status: str
    completed: int
    ended: bool
    results: Sequence[str] = ()
    """Addresses of what it brought."""
    problem: str = ""
    """Why it brought nothing, if the job itself was refused."""


@dataclass
class Jobs(ABC):
    """The batch API of a server, as one caller is allowed to use it."""

    path: ClassVar[str]
    """Of jobs, below the address."""
    status: ClassVar[str]
    """The field of a job that says where it stands."""

    address: str
    """Of the server, up to and including its version."""
    headers: Mapping[str, str]
    """What says who asks."""
    wait: float = 1.0
    """Seconds before a second attempt; doubled for each further one."""
    http: httpx.AsyncClient = field(default_factory=lambda: httpx.AsyncClient(timeout=600))

    @abstractmethod
    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Return what a job is made of: requests by key, for an endpoint."""

    @abstractmethod
    async def make(self, content: Json, mark: str) -> Job:
        """Make a job; `TransportError` leaves open whether it was made."""

    @abstractmethod
    async def find(self, mark: str, requests: int) -> Job | None:
        """Return a job that was made without an answer, if the server has it."""

    @abstractmethod
    async def look(self, name: str) -> State:
        """Return where a job stands."""

    async def cancel(self, name: str) -> bool:
        """Ask the server to end a job early; return whether it is a server that can."""
        address = f"{self.address}{self.path}/{name}/cancel"
        try:
            reply = await self.http.post(address, headers=self.headers)
        except httpx.TransportError:
            return True  # asked again at the next look
        return reply.status_code not in _UNKNOWN_PATH

    @abstractmethod
    def read(self, line: Json) -> JobResult:
        """Return what a line of results says."""

    def _job(self, reply: Json) -> Job:
        return Job(reply["id"], self.address, reply[self.status], 0)

    async def make_once(self, content: Json, mark: str, requests: int) -> Job:
        """Make a job; where no answer comes, look first whether it was made all the same."""
        for tries in range(ATTEMPTS, -1, -1):
            try:
                return await self.make(content, mark)
            except httpx.TransportError:
                if job := await self.find(mark, requests):
                    return job
                if not tries:
                    raise
        raise AssertionError  # the last attempt returned or raised

    async def results(self, address: str) -> AsyncIterator[JobResult]:
        """Yield what a job brought."""
        async with self.http.stream("GET", address, headers=self.headers) as reply:
            reply.raise_for_status()
            async for line in reply.aiter_lines():
                if line.strip():
                    yield self.read(json.loads(line))

    async def call(self, method: str, path: str, *, once: bool = False, **content: Any) -> Json:
        """Ask the server's batch API; what passes is tried again for some minutes.

        Args:
            method: The HTTP method.
            path: Below the address.
            once: Whether a lost connection is raised: the request may have arrived.
            content: As httpx takes it.
        """
        reply = await self._send(method, f"{self.address}{path}", once=once, **content)
        reply.raise_for_status()
        return dict(reply.json())

    async def ask(self, request: HttpRequest) -> httpx.Response:
        """Send a request as an ordinary call; what passes is tried again for some minutes."""
        kind = {"content-type": "application/json"}
        return await self._send("POST", request.url, content=request.content, headers=kind)

    async def _send(
        self,
        method: str,
        url: str,
        *,
        once: bool = False,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx.Response:
        wait = self.wait
        headers = {**self.headers, **(headers or {})}
        for tries in range(_TRIES, -1, -1):
            try:
                reply = await self.http.request(method, url, headers=headers, **content)
                if reply.status_code not in PASSING or not tries:
                    return reply
            except httpx.TransportError:
                if once or not tries:
                    raise
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError  # the last attempt returned or raised


class OpenAIJobs(Jobs):
    """OpenAI's protocol: a file of requests, a job with a mark in its metadata."""

    path = "/batches"
    status = "status"

    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Upload the requests as a file."""
        lines = [
            {"custom_id": key, "method": "POST", "url": endpoint, "body": body}
            for key, body in requests.items()
        ]
        text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        file = await self.call(
            "POST",
            "/files",
            data={"purpose": "batch"},
            files={"file": ("batch.jsonl", text.encode())},
        )
        window = {"endpoint": endpoint, "completion_window": "24h"}
        return {"input_file_id": file["id"], **window}

    async def make(self, content: Json, mark: str) -> Job:
        """Make a job of an uploaded file."""
        marked = {**content, "metadata": {"langchain_judges": mark}}
        return self._job(await self.call("POST", self.path, once=True, json=marked))

    async def find(self, mark: str, requests: int) -> Job | None:
        """Return the job that carries a mark."""
        after: dict[str, str] = {}
        while True:
            page = await self.call("GET", self.path, params={"limit": 100, **after})
            for job in page["data"]:
                if (job.get("metadata") or {}).get("langchain_judges") == mark:
                    return self._job(job)
            if not page.get("has_more") or not page["data"]:
                return None
            after = {"after": page["data"][-1]["id"]}

    async def look(self, name: str) -> State:
        """Return where a job stands."""
        job = await self.call("GET", f"{self.path}/{name}")
        files = [job.get("output_file_id"), job.get("error_file_id")]
        problem = (job.get("errors") or {}).get("data") or ""
        return State(
            job["status"],
            (job.get("request_counts") or {}).get("completed", 0),
            job["status"] in {"completed", "failed", "expired", "cancelled"},
            [f"{self.address}/files/{file}/content" for file in files if file],
            json.dumps(problem) if job["status"] == "failed" else "",
        )

    def read(self, line: Json) -> JobResult:
        """Return what a line of results says."""
        response = line.get("response") or {}
        body = response.get("body") or {"error": line.get("error")}
        # Whatever the server calls it, so that the reply is priced as one of a batch.
        body = {**body, "service_tier": "batch"} if "usage" in body else body
        return JobResult(line["custom_id"], response.get("status_code") or 503, body)


class AnthropicJobs(Jobs):
    """Anthropic's Message Batches: requests in the job itself, which carries no mark."""

    path = "/messages/batches"
    status = "processing_status"

    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Return the requests; they go with the job."""
        return {"requests": [{"custom_id": k, "params": v} for k, v in requests.items()]}

    async def make(self, content: Json, mark: str) -> Job:
        """Make a job."""
        return self._job(await self.call("POST", self.path, once=True, json=content))

    async def find(self, mark: str, requests: int) -> Job | None:
        """Return the newest job of as many requests.

        If it is another one, its results have other keys, and the requests are asked again.
        """
        page = await self.call("GET", self.path, params={"limit": 100})
        sizes = ((job, sum(job["request_counts"].values())) for job in page["data"])
        return next((self._job(job) for job, size in sizes if size == requests), None)

    async def look(self, name: str) -> State:
        """Return where a job stands."""
        job = await self.call("GET", f"{self.path}/{name}")
        ended = job["processing_status"] == "ended"
        results = [job["results_url"]] if ended and job.get("results_url") else []
        completed = job["request_counts"].get("succeeded", 0)
        return State(job["processing_status"], completed, ended, results)

    def read(self, line: Json) -> JobResult:
        """Return what a line of results says."""
        result = line["result"]
        if result["type"] == "succeeded":
            message = result["message"]
            usage = {**message["usage"], "service_tier": "batch"}
            return JobResult(line["custom_id"], 200, {**message, "usage": usage})
        error = result.get("error") or {"error": {"message": result["type"]}}
        inner = error.get("error") or error
        wrong = inner.get("type") == "invalid_request_error"
        return JobResult(line["custom_id"], 400 if wrong else 503, error)
