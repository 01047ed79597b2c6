"""What one model was configured with and nobody else may read, wherever it turns up.

Servers repeat keys, headers and addresses in their errors and now and then in a reply, and
both are kept in files. What to mask is known from the model itself, not guessed by its form.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

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
