"""Clients of HTTP: answers of which only so much is unpacked, and certificates read once."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib import import_module
from typing import Any

# Bytes of an answer that are read: a reply of 16,000 tokens with twenty alternatives each has
# a third of them.
MOST = 64_000_000
# How an answer may be packed.
ACCEPTED = {"Accept-Encoding": "gzip"}


@cache
def certificates() -> ssl.SSLContext:
    """Certificates that clients trust by default: reading them takes as long as ten calls."""
    from openai import DefaultHttpxClient

    httpx: Any = import_module(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def bound(response: Any) -> None:
    """Bound the answer that a client of httpx, or of a package derived from it, has begun.

    Raises:
        httpx.DecodingError: It is packed in another way than was asked for.
    """
    httpx = import_module(type(response).__module__.partition(".")[0])
    packed = response.headers.pop("content-encoding", "identity").strip().lower()
    if packed not in {"identity", "gzip"}:
        raise httpx.DecodingError(f"it is packed by {packed[:40]!r}, not by gzip")
    response.stream = _stream_of(httpx)(response.stream, _Bound(is_packed=packed == "gzip"))


async def abound(response: Any) -> None:
    """Do as `bound` does, for an asynchronous client."""
    bound(response)


class _Bound:
    """Unpacks an answer part by part, as far as the bound."""

    def __init__(self, *, is_packed: bool) -> None:
        self._left, self._unpacking = MOST, zlib.decompressobj(31) if is_packed else None

    def unpacked(self, part: bytes) -> bytes:
        if self._unpacking:
            part = self._unpacking.decompress(part, self._left + 1)
        self._left -= len(part)
        if self._left < 0:
            raise ValueError(f"it has more than {MOST:,} bytes")
        return part


@cache
def _stream_of(httpx: Any) -> type:
    """A bounded stream of parts, as a package of clients wants it."""

    class Bounded(httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, parts: Any, bound: _Bound) -> None:
            self._parts, self._bound = parts, bound

        def _unpacked(self, part: bytes) -> bytes:
            try:
                return self._bound.unpacked(part)
            except (ValueError, zlib.error) as exc:
                raise httpx.DecodingError(str(exc)) from exc

        def __iter__(self) -> Iterator[bytes]:
            yield from map(self._unpacked, self._parts)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._parts:
                yield self._unpacked(part)

        def close(self) -> None:
            self._parts.close()

        async def aclose(self) -> None:
            await self._parts.aclose()

    return Bounded
