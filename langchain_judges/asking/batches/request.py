"""A request that a batch job may answer: where it goes, who asks, and what names it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from langchain_judges.asking.batches.journal import BatchAnswer

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
