"""Clients of HTTP: answers of which only so much is unpacked, and certificates read once."""

from __future__ import annotations

import threading
import time
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

# Bytes of an answer that are read: a reply of 16,000 tokens with twenty alternatives each has
# a third of them.
MOST_BYTES = 64_000_000
# How an answer may be packed, and what else a client of httpx would unpack.
ACCEPTED = {"Accept-Encoding": "gzip"}
_OTHERS = {"br", "zstd"}
# Seconds that a client may be free before it is closed: as long as httpx keeps a connection.
_KEPT = 5.0


@cache
def client_of_threads() -> Any:
    """The client of all judges in threads: connections are kept for the next one.

    Without the keep-alive options of langchain-openai: it has no public name for them, and a
    transport that sets them ignores proxies of the environment. A dead connection ends by the
    time-out of a reply.
    """
    from openai import DefaultHttpxClient

    options = _options(bound)
    taken = _one_of(partial(DefaultHttpxClient, **options))

    class Clients(DefaultHttpxClient):
        def send(self, request: Any, **settings: Any) -> Any:
            if settings.get("stream"):  # it is read after this
                return super().send(request, **settings)
            with taken() as (client, old):
                for each in old:
                    each.close()
                return client.send(request, **settings)

    return Clients(**options)


def client_of_loop() -> Any:
    """The client of one event loop."""
    from openai import DefaultAsyncHttpxClient

    options = _options(abound)
    taken = _one_of(partial(DefaultAsyncHttpxClient, **options))

    class Clients(DefaultAsyncHttpxClient):
        async def send(self, request: Any, **settings: Any) -> Any:
            if settings.get("stream"):
                return await super().send(request, **settings)
            with taken() as (client, old):
                for each in old:
                    await each.aclose()
                return await client.send(request, **settings)

    return Clients(**options)


def _one_of(make: Callable[[], Any]) -> Callable[[], AbstractContextManager[Any]]:
    """Lends a client of HTTP that is free, or a new one, and those that were free for long.

    The pool of a client looks at all of its connections for each request. It closes an old one
    at its next request alone, so whoever takes a client closes those that have no next one.
    """
    free, lock = deque[tuple[float, Any]](), threading.Lock()

    @contextmanager
    def taken() -> Iterator[tuple[Any, list[Any]]]:
        old = []
        with lock:
            client = free.pop()[1] if free else None
            while free and free[0][0] < time.monotonic() - _KEPT:
                old.append(free.popleft()[1])
        if client is None:
            client = make()
        try:
            yield client, old
        finally:
            with lock:
                free.append((time.monotonic(), client))

    return taken


def _options(hook: Any) -> dict[str, Any]:
    """The keywords of clients whose answers go through a hook, and which share cookies."""
    known = {"headers": ACCEPTED, "verify": certificates(), "cookies": CookieJar()}
    return {"event_hooks": {"response": [hook]}, **known}


@cache
def certificates() -> Any:
    """Certificates that clients trust by default: reading them takes as long as ten calls."""
    from openai import DefaultHttpxClient

    httpx: Any = import_module(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    return httpx.create_ssl_context()


def bound(response: Any) -> None:
    """Bound the answer that a client of httpx, or of a package derived from it, has begun.

    Raises:
        httpx.DecodingError: It is packed in another way than was asked for.
    """
    if response.has_redirect_location:
        return
    httpx = import_module(type(response).__module__.partition(".")[0])
    header = response.headers.pop("content-encoding", "")
    names = [name.strip().lower() for name in header.split(",")]
    packings = [name for name in names if name in {"gzip", "deflate", *_OTHERS}]
    is_other = len(packings) > 1 or any(name in _OTHERS for name in packings)
    if is_other and not response.is_error:
        raise httpx.DecodingError(f"it is packed by {header[:40]!r}, not by gzip")
    packed = {"is_packed": bool(packings), "error": httpx.DecodingError}
    response.stream = _stream_of(httpx)(response, **packed)


async def abound(response: Any) -> None:
    """Do as `bound` does, for an asynchronous client."""
    bound(response)


class _Bounded:
    """A stream that unpacks an answer part by part, as far as the bound."""

    def __init__(self, response: Any, *, is_packed: bool, error: type[Exception]) -> None:
        self._parts, self._is_error, self._error = response.stream, response.is_error, error
        self._left, self._unpacking = MOST_BYTES, zlib.decompressobj(47) if is_packed else None

    def _unpacked(self, part: bytes) -> bytes:
        try:
            if self._unpacking:
                part = self._unpacking.decompress(part, self._left + 1)
            self._left -= len(part)
            if self._left < 0:
                raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        except (ValueError, zlib.error) as exc:
            if self._is_error:  # its status says more than what stands in it
                return b""
            raise self._error(str(exc)) from exc
        return part

    def __iter__(self) -> Iterator[bytes]:
        yield from map(self._unpacked, self._parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield self._unpacked(part)

    def close(self) -> None:
        self._parts.close()

    async def aclose(self) -> None:
        await self._parts.aclose()


@cache
def _stream_of(httpx: Any) -> type:
    """The class of such streams, as a package of clients wants it."""
    return type("Bounded", (_Bounded, httpx.SyncByteStream, httpx.AsyncByteStream), {})
