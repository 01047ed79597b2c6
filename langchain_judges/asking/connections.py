"""HTTP clients that belong to one event loop, and the certificates that they all trust."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext

    from langchain_core.language_models import BaseChatModel


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
