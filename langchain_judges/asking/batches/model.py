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
from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

import httpx

from langchain_judges.asking.batches.batcher import MOST_REQUESTS, Batcher
from langchain_judges.asking.batches.jobs import BatchAnswer, BatchJournal, HttpRequest, Job
from langchain_judges.asking.models import is_openai_compatible, resolve_model
from langchain_judges.asking.models.clients import changed_clients
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def batch_model(  # noqa: PLR0913 - each an option of its own
    model: str | BaseChatModel,
    journal: str | PathLike[str],
    *,
    quiet: float = 5.0,
    poll: float = 30.0,
    most_requests: int = MOST_REQUESTS,
    live_after: float | None = None,
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
        live_after: Hours after which a job is cancelled; its unanswered requests, and those of
            an expired or partly failed job, are sent as ordinary calls at full price. None
            sends them in another job.
        report: Called with a job whenever its state changes, from another thread.

    Raises:
        OptionError: The model speaks another protocol, or `live_after` is not positive.
        ModelSetupError: The model cannot be made.
    """
    if live_after is not None and not live_after > 0:
        raise OptionError(
            f"`live_after` must be a positive number of hours, got {live_after!r}"
        )
    chat: Any = resolve_model(model)
    kinds = {base.__name__ for base in type(chat).__mro__}
    if not is_openai_compatible(chat) and "ChatAnthropic" not in kinds:
        raise OptionError(
            "batches need a model that speaks OpenAI's or Anthropic's protocol, got a "
            f"{type(chat).__name__}"
        )
    batcher = Batcher(
        BatchJournal(journal),
        quiet,
        poll,
        most_requests,
        live_after,
        report or (lambda _: None),
    )
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
