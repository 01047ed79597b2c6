"""A chat model whose replies and errors hold none of its own secrets.

What a model returns or raises goes to tracers before anybody else sees it, so it is masked
where it comes from. A secret may be cut in two by the pieces of a stream, so replies come
whole, also where somebody listens to the tokens of a graph. A model that was made with
`streaming=True` still asks its server for a stream, as that may take nothing else; the pieces
are put together before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import (
    agenerate_from_stream,
    generate_from_stream,
)
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr

from langchain_judges.asking.models.secrets import Secrets

M = TypeVar("M", bound=BaseMessage)


def masked(model: BaseChatModel, secrets: Secrets) -> BaseChatModel:
    """Return a copy of a model that masks secrets in what it returns and raises.

    Args:
        model: The model; without secrets it is returned as it is.
        secrets: What it was configured with.
    """
    if not secrets:
        return model
    copy: Any = model.model_copy()
    # Not by `update`: it is no setting of the caller's.
    vars(copy)["disable_streaming"] = True
    copy.__class__ = _class_of(type(model))
    if copy.__pydantic_private__ is None:
        copy.__pydantic_private__ = {}
    copy.__pydantic_private__["_secrets"] = secrets
    return copy  # type: ignore[no-any-return]


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

    class Masked(kind):  # type: ignore[misc, valid-type]
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
