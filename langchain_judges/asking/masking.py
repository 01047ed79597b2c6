"""Copies of chat models that hide what nobody may read.

Servers repeat keys, headers and addresses in their errors and now and then in a reply, and both
are kept in files. What to mask is known from the model itself, not guessed by its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from pydantic import SecretStr

from langchain_judges.asking.failures import chain_of

MASK = "***"
_NAMED = re.compile(r"key|token(?!s|_id|iz)|secret|password|credential|authorization", re.I)
_CARRIED = re.compile(r"headers?$|query$|cookies?$", re.I)
# Headers of an answer that say what it is and when to ask again.
_TOLD = re.compile("^content-type$|^retry-after|rate-?limit")
# Characters of a secret: a placeholder such as `none` is an ordinary word of replies.
_SHORTEST_SECRET = 6
Secrets = tuple[str, ...]


def _masked(data: Any, secrets: Secrets) -> Any:
    """JSON data with stars for every secret in its texts; log-probabilities stay."""
    if isinstance(data, str):
        for secret in secrets:
            data = data.replace(secret, MASK)
    if isinstance(data, list):
        return [_masked(part, secrets) for part in data]
    if isinstance(data, dict):
        return {
            _masked(name, secrets): part if name == "logprobs" else _masked(part, secrets)
            for name, part in data.items()
        }
    return data


def _secrets(name: str, value: object) -> Iterator[str]:
    """Yield the secrets that one setting of a model holds."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, Mapping):
        for inner, part in value.items():
            yield from _secrets("key" if _CARRIED.search(name) else str(inner), part)
    elif isinstance(value, str) and "://" in value:
        yield from (part for _, part in parse_qsl(value.partition("?")[2]))
    elif isinstance(value, str) and _NAMED.search(name):
        # Of `Bearer abc` the second word is the secret.
        yield from (value, value.rpartition(" ")[2])


def masked(model: BaseChatModel) -> BaseChatModel:
    """A copy of a model that masks its secrets in replies, errors and traces.

    They are what it was configured with: keys, headers, query values.
    """
    fields = {name: getattr(model, name, None) for name in type(model).model_fields}
    found = {value for value in _secrets("", fields) if len(value) >= _SHORTEST_SECRET}
    forms = found | {quote(value, safe="") for value in found}
    if not forms:
        return model
    copy: BaseChatModel = model.model_copy()
    # Not by `update`: they are no settings of the caller's. What is streamed is not masked.
    vars(copy)["disable_streaming"] = True
    if hasattr(copy, "streaming"):
        vars(copy)["streaming"] = False
    # The class alone is changed, for a client's private parts stay as its own class made them:
    # pydantic makes no object of another class of them, and a wrapper would be asked in
    # another way, as what is bound to a model and read of it depends on its class. A test
    # watches that each client library still allows it.
    # The longest secret first: one may be part of another.
    copy.__class__ = _class_of(type(model), tuple(sorted(forms, key=len, reverse=True)))
    return copy


@lru_cache(64)
def _class_of(kind: type[BaseChatModel], secrets: Secrets) -> type[BaseChatModel]:
    """A subclass that masks, under the name and module by which its parent is known."""
    told: tuple[Any, Any, Any] = None, None, {}

    class Masked(kind):  # type: ignore[misc, valid-type] # a class known at run time alone
        def _generate(self, *args: Any, **settings: Any) -> ChatResult:
            with _masked_errors(secrets):
                return _masked_result(super()._generate(*args, **settings), secrets)

        async def _agenerate(self, *args: Any, **settings: Any) -> ChatResult:
            with _masked_errors(secrets):
                return _masked_result(await super()._agenerate(*args, **settings), secrets)

        def to_json(self) -> Any:
            return _masked(super().to_json(), secrets)

        def _get_invocation_params(self, stop: list[str] | None = None, **settings: Any) -> Any:
            nonlocal told
            # LangChain asks twice for each call, and calls differ in their messages alone. The
            # model's settings are kept as copies: its owner may change one in place.
            own = {**vars(self), **(self.__pydantic_private__ or {})}
            found, asked = told, (stop, settings)
            if found[0] != own:
                found = {name: _masked(value, ()) for name, value in own.items()}, None, {}
            if found[1] != asked:
                params = super()._get_invocation_params(stop, **settings)
                found = told = found[0], asked, _masked(params, secrets)
            return {**found[2]}

    Masked.__name__, Masked.__qualname__ = kind.__name__, kind.__qualname__
    Masked.__module__, Masked.__doc__ = kind.__module__, kind.__doc__
    return Masked


def _masked_result(result: ChatResult, secrets: Secrets) -> ChatResult:
    result.llm_output = _masked(result.llm_output, secrets)
    for generation in result.generations:
        message, info = vars(generation.message), generation.generation_info or {}
        if "logprobs" in info:  # LangChain copies them into the message: a trace has them twice
            generation.message.response_metadata["logprobs"] = info.pop("logprobs")
        edits = {n: new for n, old in message.items() if (new := _masked(old, secrets)) != old}
        generation.generation_info = _masked(generation.generation_info, secrets)
        if edits:  # tokens of the log-probabilities spell what is masked
            metadata = edits.get("response_metadata", message["response_metadata"])
            edits["response_metadata"] = {**metadata, "logprobs": None}
            generation.message = generation.message.model_copy(update=edits)
            generation.text = _masked(generation.text, secrets)
            generation.generation_info = None
    return result


@contextmanager
def _masked_errors(secrets: Secrets) -> Iterator[None]:
    """Mask what an exception and those it came from say: a traceback shows them all."""
    try:
        yield
    except Exception as error:
        for one in chain_of(error):
            one.args = tuple(_masked(part, secrets) for part in one.args)
            for name in ("message", "body"):
                if name in vars(one):
                    setattr(one, name, _masked(getattr(one, name), secrets))
            if type(response := getattr(one, "response", None)).__module__.startswith("httpx"):
                vars(one)["response"] = _masked_response(response, secrets)
        raise


def _masked_response(response: Any, secrets: Secrets) -> Any:
    """A server's answer without secrets: LangChain puts a refusal into traces."""
    if not response.is_closed:  # nobody has read it
        return response
    headers = {name: each for name, each in response.headers.items() if _TOLD.search(name)}
    parts = {"headers": headers, "content": _masked(response.text, secrets).encode()}
    return type(response)(response.status_code, request=response.request, **parts)
