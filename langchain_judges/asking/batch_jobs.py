"""How a provider's batch API is spoken to: a job is made, found again, and its results read."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import urlsplit

import httpx
from typing_extensions import TypedDict

from langchain_judges.asking.store import ReplyStore


class BatchAnswer(TypedDict):
    """What a request got: an HTTP status and JSON."""

    status: int
    body: Any


@dataclass(frozen=True)
class Job:
    """A job of a batch API."""

    mark: str
    """Our own name for it."""
    name: str
    """The server's name for it; empty: whether the server took it is not known."""
    status: str
    """As the server calls it: `validating`, `in_progress`, `completed`, `expired` …"""
    requests: int
    completed: int = 0


_RECORD = ""
"""The key of a job's record among the answers to its requests."""


class BatchJournal:
    """Which request is in which job, and what was answered; on disk when a method returns.

    Raises:
        OutputError: The file cannot be opened.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open or make the file."""
        self._store = ReplyStore(Path(path), shared=True)
        self._jobs: dict[str, Any] = {}
        self._settled: dict[str, dict[str, bool]] = {}
        """Of each job, the requests that are done, and whether they have an answer."""
        self._last: dict[str, str] = {}
        """The last job of each request."""
        found: list[tuple[str, dict[str, Any]]] = [
            (mark, dict(self._store.entries(mark))) for mark in self._store.scopes()
        ]
        whole = [(each.pop(_RECORD), mark, each) for mark, each in found if _RECORD in each]
        for job, mark, answers in sorted(whole, key=lambda each: each[0]["number"]):
            self._add(mark, job)
            self._settled[mark] = {key: bool(answer) for key, answer in answers.items()}

    def _add(self, mark: str, job: Any) -> None:
        self._jobs[mark], self._settled[mark] = job, {}
        self._last |= dict.fromkeys(job["keys"], mark)

    def answer(self, key: str) -> BatchAnswer | None:
        """Return the answer that a request got, if it has one."""
        mark = self._last.get(key, "")
        if not self._settled.get(mark, {}).get(key):
            return None
        return cast("BatchAnswer", dict(self._store.entries(mark, key)).get(key))

    def job_of(self, key: str) -> Job | None:
        """Return the job that will answer a request, if it is in one."""
        mark = self._last.get(key)
        if mark is None or key in self._settled[mark]:
            return None
        return Job(mark, self._jobs[mark]["name"], "unknown", len(self._jobs[mark]["keys"]))

    def intend(self, mark: str, keys: Iterable[str]) -> None:
        """Remember that a job is about to be made of some requests."""
        job = {"keys": list(keys), "name": "", "number": len(self._jobs)}
        self._store.keep(mark, _RECORD, job)
        self._add(mark, job)

    def sent(self, mark: str, name: str) -> None:
        """Remember that the server took a job, and how it calls it."""
        self._jobs[mark]["name"] = name
        self._store.keep(mark, _RECORD, self._jobs[mark])

    def forget(self, mark: str) -> list[str]:
        """Forget a job that was never made; return its requests."""
        keys = self.unanswered(mark)
        self._store.forget(mark)
        self._settled[mark] |= dict.fromkeys(keys, False)
        return keys

    def unanswered(self, mark: str) -> list[str]:
        """Return the requests of a job that need something of it."""
        settled = self._settled[mark]
        return [key for key in self._jobs[mark]["keys"] if key not in settled]

    def keep(self, key: str, answer: BatchAnswer | None) -> None:
        """Remember the answer to a request; None: it can be asked again."""
        if mark := self._last.get(key):
            self._store.keep(mark, key, answer)
            self._settled[mark][key] = bool(answer)


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
    async def make(self, content: Json, mark: str) -> str:
        """Make a job and return its name; `TransportError` leaves open whether it was made."""

    @abstractmethod
    async def find(self, mark: str, requests: int) -> str | None:
        """Return the name of a job that was made without an answer, if the server has it."""

    @abstractmethod
    async def look(self, name: str) -> State:
        """Return where a job stands."""

    @abstractmethod
    def read(self, line: Json) -> JobResult:
        """Return what a line of results says."""

    async def make_once(self, content: Json, mark: str, requests: int) -> str:
        """Make a job; where no answer comes, look first whether it was made all the same."""
        for tries in range(ATTEMPTS, -1, -1):
            try:
                return await self.make(content, mark)
            except httpx.TransportError:
                if name := await self.find(mark, requests):
                    return name
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
        wait = self.wait
        for tries in range(_TRIES, -1, -1):
            try:
                url = f"{self.address}{path}"
                reply = await self.http.request(method, url, headers=self.headers, **content)
                if reply.status_code not in PASSING or not tries:
                    reply.raise_for_status()
                    return dict(reply.json())
            except httpx.TransportError:
                if once or not tries:
                    raise
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError  # the last attempt returned or raised


class OpenAIJobs(Jobs):
    """OpenAI's protocol: a file of requests, a job with a mark in its metadata."""

    path = "/batches"

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

    async def make(self, content: Json, mark: str) -> str:
        """Make a job of an uploaded file."""
        marked = {**content, "metadata": {"langchain_judges": mark}}
        job = await self.call("POST", self.path, once=True, json=marked)
        return str(job["id"])

    async def find(self, mark: str, requests: int) -> str | None:
        """Return the job that carries a mark."""
        after: dict[str, str] = {}
        while True:
            page = await self.call("GET", self.path, params={"limit": 100, **after})
            for job in page["data"]:
                if (job.get("metadata") or {}).get("langchain_judges") == mark:
                    return str(job["id"])
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

    async def upload(self, endpoint: str, requests: Mapping[str, object]) -> Json:
        """Return the requests; they go with the job."""
        return {"requests": [{"custom_id": k, "params": v} for k, v in requests.items()]}

    async def make(self, content: Json, mark: str) -> str:
        """Make a job."""
        return str((await self.call("POST", self.path, once=True, json=content))["id"])

    async def find(self, mark: str, requests: int) -> str | None:
        """Return the newest job of as many requests.

        If it is another one, its results have other keys, and the requests are asked again.
        """
        page = await self.call("GET", self.path, params={"limit": 100})
        sizes = ((job, sum(job["request_counts"].values())) for job in page["data"])
        return next((job["id"] for job, size in sizes if size == requests), None)

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
