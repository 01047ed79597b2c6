"""Copies of a chat model whose HTTP clients behave as `ask()` needs them to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssl import SSLContext

    from langchain_core.language_models import BaseChatModel

_CLIENTS = (("root_client", "client"), ("root_async_client", "async_client"))
"""Fields of a `ChatOpenAI`: its clients, and the part of each that brings replies."""


def is_openai_kin(model: object) -> bool:
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
    if not is_openai_kin(model):
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
    return package.create_ssl_context()  # type: ignore[no-any-return]
