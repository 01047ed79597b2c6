"""Copies of a chat model whose HTTP clients behave as `ask()` needs them to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard

from langchain_core.language_models import BaseChatModel

if TYPE_CHECKING:
    from ssl import SSLContext

_CLIENTS = (("root_client", "client"), ("root_async_client", "async_client"))
"""Fields of a `ChatOpenAI`: its clients, and the part of each that brings replies."""


def is_openai_compatible(model: object) -> bool:
    """Say whether `model` is a `ChatOpenAI` or derived from it.

    Read from the class names, because importing `langchain_openai` only to ask costs more
    than the rest of the package.
    """
    return any(
        base.__name__ == "BaseChatOpenAI" and base.__module__.startswith("langchain_openai.")
        for base in type(model).__mro__
    )


def changed_clients(model: BaseChatModel, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the clients of a `ChatOpenAI` that a change replaces, by field.

    Args:
        model: The model.
        change: Returns a client in place of another, or the same.
    """
    fields: dict[str, Any] = {}
    for root, completions in _CLIENTS:
        client = getattr(model, root, None)
        if client is not None and (changed := change(client)) is not client:
            fields |= {root: changed, completions: changed.chat.completions}
    return fields


def without_own_retries(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a model that does not retry by itself.

    Two layers of retries multiply, and attempts that we cannot see cannot be counted. A class
    that made its client when it was built keeps what that client does.
    """
    if not is_openai_compatible(model):
        retries = getattr(model, "max_retries", None)
        if not retries or "max_retries" not in type(model).model_fields:
            return model
        copy = model.model_copy(update={"max_retries": 0})
        # Clients that were made on first use are made again, by the new number; what else a
        # model keeps, such as weights, may be costly and knows nothing of it.
        for name in [name for base in type(copy).__mro__ for name in _cached(base)]:
            if "client" in name.lower():
                copy.__dict__.pop(name, None)
        return copy

    def once(client: Any) -> Any:
        # A client that wraps another, to trace it, need not have the number.
        retries = getattr(client, "max_retries", None)
        return client.with_options(max_retries=0) if retries else client

    clients = changed_clients(model, once)
    return model.model_copy(update={"max_retries": 0, **clients}) if clients else model


def _cached(kind: type) -> list[str]:
    return [name for name, value in vars(kind).items() if isinstance(value, cached_property)]


def with_own_connections(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a `ChatOpenAI` with an HTTP client for the running event loop alone.

    langchain-openai shares one asynchronous client between all event loops of a process. A
    connection that a loop left behind takes the request, which is paid for, and then fails
    with "Event loop is closed". A client that the caller gave is kept.
    """
    root = getattr(model, "root_async_client", None)
    if root is None or getattr(model, "http_async_client", None) is not None:
        return model
    from openai import DefaultAsyncHttpxClient

    own = root.with_options(http_client=DefaultAsyncHttpxClient(verify=_certificates()))
    return model.model_copy(
        update={"root_async_client": own, "async_client": own.chat.completions}
    )


@cache
def _certificates() -> SSLContext:
    """Return what tells whom to trust; reading it takes as long as several calls of a model."""
    from openai import DefaultAsyncHttpxClient

    # Which package has the client differs by the version of `openai`.
    package = import_module(DefaultAsyncHttpxClient.__mro__[1].__module__)
    context: SSLContext = package.create_ssl_context()
    return context


_OPTIONS = {"extra_headers", "extra_query", "timeout"}
"""Keywords of a call that are not part of its body."""


def with_plain_json(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a `ChatOpenAI` or `AzureChatOpenAI` whose replies stay plain JSON.

    Classes of other packages read fields of the typed replies, and are returned as they are.
    """
    if not type(model).__module__.startswith("langchain_openai."):
        return model
    return model.model_copy(update=changed_clients(model, _plain_client))


def _plain_client(client: Any) -> Any:
    if type(client).__module__.partition(".")[0] != "openai":
        return client
    is_async = type(client).__name__.startswith("Async")
    kind = _AsyncCompletions if is_async else _Completions
    return _Client(client, kind(client.chat.completions))


class _Beside:
    """Something that a few attributes stand in front of."""

    def __init__(self, behind: Any) -> None:
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


class _Client(_Beside):
    def __init__(self, client: Any, completions: _Completions) -> None:
        super().__init__(client)
        self.chat = _Chat(client.chat, completions)


class _Chat(_Beside):
    def __init__(self, chat: Any, completions: _Completions) -> None:
        super().__init__(chat)
        self.completions = completions


class _Completions(_Beside):
    def __init__(self, completions: Any) -> None:
        super().__init__(completions)
        self._send = completions.with_raw_response.create
        self.with_raw_response = self

    def create(self, **payload: Any) -> Any:
        """Send a request and return the reply unread."""
        return _Reply(self._send(**_as_body(payload)))

    parse = create


class _AsyncCompletions(_Completions):
    async def create(self, **payload: Any) -> _Reply:
        """Send a request and return the reply unread."""
        return _Reply(await self._send(**_as_body(payload)))

    parse = create


class _Reply(_Beside):
    def parse(self) -> object:
        """Return a common reply as a dictionary, any other as the client reads it."""
        try:
            body = json.loads(self._behind.http_response.content)
        except ValueError:
            return self._behind.parse()
        if not _is_common(body):
            return self._behind.parse()
        for choice in body["choices"]:
            _slim((choice.get("logprobs") or {}).get("content"))
        return body


def _as_body(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call whose body is sent as it is."""
    options = {name: payload.pop(name) for name in _OPTIONS & payload.keys()}
    extra_body = payload.pop("extra_body", None) or {}
    body = {**payload, **extra_body}
    return {"model": payload["model"], "messages": (), "extra_body": body, **options}


def _is_common(body: object) -> TypeGuard[dict[str, Any]]:
    """Say whether LangChain reads all of a reply from a dictionary: not where it refuses."""
    if not isinstance(body, dict) or body.get("error"):
        return False
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return False
    messages = [one.get("message") if isinstance(one, dict) else None for one in choices]
    return all(
        isinstance(message, dict)
        and message.get("role") == "assistant"
        and not message.get("refusal")
        for message in messages
    )


def _slim(tokens: object) -> None:
    """Drop what says nothing more of tokens: traces copy every entry, twice.

    The bytes that a token's text spells, and empty lists of alternatives.
    """
    for token in tokens if isinstance(tokens, list) else ():
        if not isinstance(token, dict) or not isinstance(text := token.get("token"), str):
            continue
        if token.get("bytes") == list(text.encode(errors="replace")):
            del token["bytes"]
        if token.get("top_logprobs") == []:
            del token["top_logprobs"]
        _slim(token.get("top_logprobs"))
