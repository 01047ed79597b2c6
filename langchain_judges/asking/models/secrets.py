"""What one model was configured with and nobody else may read, wherever it turns up.

Servers repeat keys, headers and addresses in their errors and now and then in a reply, and
both are kept in files. What to mask is known from the model itself, not guessed by its form.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import (
    agenerate_from_stream,
    generate_from_stream,
)
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr, SecretStr

from langchain_judges.asking.models.clients import changed_clients

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
