"""A `ChatOpenAI` that sends and reads plain JSON, without its client's own types.

The client copies every message and schema to translate names that LangChain never uses, makes
typed objects of every reply, and LangChain turns those into dictionaries again. Together that
costs more processor time than the rest of a call.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.models.clients import changed_clients

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
