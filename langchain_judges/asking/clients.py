"""Copies of a chat model that behave as `ask()` needs them to, and hide what nobody may read.

Servers repeat keys, headers and addresses in their errors and now and then in a reply, and
both are kept in files. What to mask is known from the model itself, not guessed by its form.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import (
    agenerate_from_stream,
    generate_from_stream,
)
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr, SecretStr

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


MASK = "***"
_NAMED = re.compile(r"key|token(?!s|_id|iz)|secret|password|credential|authorization", re.I)
_CARRIED = re.compile(r"headers?$|query$|cookies?$", re.I)
_SHORTEST = 6
"""Characters of a secret: a placeholder such as `none` is an ordinary word of replies."""
_SHORTEST_PASSWORD = 4
_WITHIN = ("model_kwargs", "extra_body")


class Secrets:
    """Masks what a model was configured with: keys, headers, query values, URL passwords."""

    def __init__(self, model: BaseChatModel) -> None:
        """Collect the secrets of `model`."""
        values = {form for value in _values(model) for form in (value, quote(value, safe=""))}
        # The longest first: one may be part of another.
        self._values = sorted(values, key=len, reverse=True)

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self._values)

    def mask(self, text: str) -> str:
        """Return a text with stars for every secret in it."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def mask_data(self, data: object) -> object:
        """Return JSON data with stars for every secret in its texts."""
        if isinstance(data, str):
            return self.mask(data)
        if isinstance(data, list):
            return [self.mask_data(part) for part in data]
        if isinstance(data, dict):
            return {self.mask_data(name): self.mask_data(part) for name, part in data.items()}
        return data


def _values(model: BaseChatModel) -> Iterator[str]:
    for name in type(model).model_fields:
        value = getattr(model, name, None)
        if name in _WITHIN and isinstance(value, Mapping):
            for inner, part in value.items():
                yield from _of_field(str(inner), part)
        else:
            yield from _of_field(name, value)


def _of_field(name: str, value: object) -> Iterator[str]:
    """Yield the secrets that one setting of a model holds."""
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
        name = "key"
    if isinstance(value, Mapping) and _CARRIED.search(name):
        texts = [str(part) for part in value.values() if isinstance(part, str)]
        for text in texts:
            # Of `Bearer abc` the second word is the secret.
            yield from (part for part in {text, text.split()[-1]} if len(part) >= _SHORTEST)
    elif isinstance(value, str) and "://" in value:
        yield from _of_address(value)
    elif isinstance(value, str) and _NAMED.search(name) and len(value) >= _SHORTEST:
        yield value


def _of_address(address: str) -> Iterator[str]:
    """Yield the password and the query values of a URL."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    if parts.password and len(parts.password) >= _SHORTEST_PASSWORD:
        yield parts.password
        yield unquote(parts.password)
        yield _basic(address)
    yield from (value for _, value in parse_qsl(parts.query) if len(value) >= _SHORTEST)


def _basic(address: str) -> str:
    """Return what HTTP's basic authentication makes of a URL's user and password."""
    parts = urlsplit(address)
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return b64encode(pair.encode()).decode()


def without_password(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a `ChatOpenAI` whose address holds no user and password.

    They are sent as a header, as they were; but traces and the logs of the HTTP client show
    the address, and no header.
    """
    address = getattr(model, "openai_api_base", None)
    if not isinstance(address, str) or not urlsplit(address).password:
        return model
    parts = urlsplit(address)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    headers = {"Authorization": f"Basic {_basic(address)}"}
    clients = changed_clients(
        model, lambda client: client.with_options(base_url=bare, default_headers=headers)
    )
    return model.model_copy(update={"openai_api_base": bare, **clients})


M = TypeVar("M", bound=BaseMessage)


def masked(model: BaseChatModel, secrets: Secrets) -> BaseChatModel:
    """Return a copy of a model that masks secrets in what it returns and raises.

    Args:
        model: The model; without secrets it is returned as it is.
        secrets: What it was configured with.
    """
    if not secrets:
        return model
    hidden = model.model_copy()
    copy: Any = hidden
    # Not by `update`: it is no setting of the caller's.
    vars(copy)["disable_streaming"] = True
    copy.__class__ = _class_of(type(model))
    if copy.__pydantic_private__ is None:
        copy.__pydantic_private__ = {}
    copy.__pydantic_private__["_secrets"] = secrets
    return hidden


def without_secrets(message: M, secrets: Secrets) -> M:
    """Return a reply without secrets; most are as they were."""
    names = ("content", "tool_calls", "additional_kwargs")
    changes: dict[str, Any] = {}
    for name in names:
        part = getattr(message, name, None)
        if (clean := secrets.mask_data(part)) != part:
            changes[name] = clean
    return message.model_copy(update=changes) if changes else message


@cache
def _class_of(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    """Return a subclass that masks, under the name and module by which its parent is known."""

    class Masked(kind):  # type: ignore[misc, valid-type] # a class known at run time alone
        _secrets: Secrets = PrivateAttr()

        def _generate(self, *args: Any, **settings: Any) -> ChatResult:
            with _masked_errors(self._secrets):
                if _made_to_stream(self, "_stream"):
                    result = generate_from_stream(super()._stream(*args, **settings))
                else:
                    result = super()._generate(*args, **settings)
            return _masked_result(result, self._secrets)

        async def _agenerate(self, *args: Any, **settings: Any) -> ChatResult:
            with _masked_errors(self._secrets):
                if _made_to_stream(self, "_stream", "_astream"):
                    pieces = super()._astream(*args, **settings)
                    result = await agenerate_from_stream(pieces)
                else:
                    result = await super()._agenerate(*args, **settings)
            return _masked_result(result, self._secrets)

    Masked.__name__, Masked.__qualname__ = kind.__name__, kind.__qualname__
    Masked.__module__, Masked.__doc__ = kind.__module__, kind.__doc__
    return Masked


def _made_to_stream(model: BaseChatModel, *methods: str) -> bool:
    """Say whether a model was made with `streaming=True` and has a method for it."""
    is_set = "streaming" in model.model_fields_set and getattr(model, "streaming", None) is True
    has_method = (
        getattr(type(model), name) is not getattr(BaseChatModel, name) for name in methods
    )
    return is_set and any(has_method)


def _masked_result(result: ChatResult, secrets: Secrets) -> ChatResult:
    for generation in result.generations:
        message = without_secrets(generation.message, secrets)
        if message is not generation.message:
            generation.message = message
            generation.text = secrets.mask(generation.text)
    return result


@contextmanager
def _masked_errors(secrets: Secrets) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _mask_error(error, secrets)
        raise


def _mask_error(error: BaseException, secrets: Secrets) -> None:
    """Mask what an exception and those it came from say: a traceback shows them all."""
    one: BaseException | None = error
    while one is not None:
        one.args = tuple(secrets.mask_data(part) for part in one.args)
        for name in ("message", "body"):
            if name in vars(one):
                setattr(one, name, secrets.mask_data(getattr(one, name)))
        if type(response := getattr(one, "response", None)).__module__.startswith("httpx"):
            vars(one)["response"] = _masked_response(response, secrets)
        one = one.__cause__ or one.__context__


def _masked_response(response: Any, secrets: Secrets) -> Any:
    """Return a server's answer without secrets: LangChain puts a refusal into traces."""
    if not response.is_closed:  # nobody has read it
        return response
    headers = {
        name: secrets.mask(value)
        for name, value in response.headers.items()
        if name not in {"content-encoding", "content-length", "transfer-encoding"}
    }
    content = secrets.mask(response.text).encode()
    return type(response)(
        response.status_code, headers=headers, content=content, request=response.request
    )
