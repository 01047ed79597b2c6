"""Replies of a real model, recorded once in a file and replayed without it."""

from __future__ import annotations

import datetime
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import PrivateAttr

from langchain_judges.asking.models import model_name, resolve_model
from langchain_judges.testing.model import PlainModel

# What of a reply's metadata says how to read it; the rest, such as ids, is not recorded.
_METADATA = ("finish_reason", "stop_reason", "logprobs")


class NotRecorded(LookupError):
    """A request has no recorded reply; the message says how to record one.

    Attributes:
        status_code: Read by judges as a refusal of every call: a run ends instead of failing
            row by row.
    """

    status_code = 401


Recorded = dict[str, Any]
"""A line of a recorded file: `key`, `model`, `date`, `messages` (type and content of each),
`settings` (the keywords of the call, such as a seed) and `reply` (`text`, `usage`, `metadata`).
"""


class ReplayChatModel(PlainModel):
    """A chat model that gives recorded replies, found by the whole request.

    A request is its messages and the keywords of its call, such as a temperature or a seed. One
    word that differs makes it another request, which is refused: a replayed verdict is always
    one that the recorded model gave to exactly this question. It is asked in plain text, as a
    model that knows neither tools nor structured output.

    Attributes:
        path: A file of JSON lines, as `RecordingChatModel` writes it.

    Raises:
        NotRecorded: When it is asked what the file does not hold.
        FileNotFoundError: When it is asked and there is no such file.
    """

    path: Path
    _entries: dict[str, Recorded] | None = PrivateAttr(default=None)

    @property
    def recorded(self) -> list[Recorded]:
        """The lines of the file: `key`, `model`, `date`, `messages`, `settings` and `reply`."""
        return list(self._read().values())

    @property
    def _llm_type(self) -> str:
        return "replay"

    def _read(self) -> dict[str, Recorded]:
        if self._entries is None:
            self._entries = entries_of(self.path)
        return self._entries

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        request = request_of(messages, stop, settings)
        entry = self._read().get(key_of(request))
        if entry is None:
            begin = f"{request['messages'][-1][1]!s:.60}"
            raise NotRecorded(
                f"{self.path} holds no reply to this request ({begin!r}, "
                f"{request['settings']}). To record it, run the same code once with "
                f"RecordingChatModel(model=..., path={str(self.path)!r}), where `model` is the "
                "chat model to ask."
            )
        return _message(entry["reply"])


class RecordingChatModel(ReplayChatModel):
    """A chat model that asks another one and writes requests and replies to a file.

    What the file already holds is not asked again, so a run that was stopped resumes where it
    stopped. It is asked in plain text, as `ReplayChatModel` is, so that both get the same
    requests.

    Attributes:
        model: The model to ask: a chat model, or a name as the judges take it.
    """

    model: str | BaseChatModel
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "recording"

    @cached_property
    def _chat(self) -> BaseChatModel:
        return resolve_model(self.model)

    def _read(self) -> dict[str, Recorded]:
        with self._lock:
            if self._entries is None and not self.path.exists():
                self._entries = {}
            return super()._read()

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        request = request_of(messages, stop, settings)
        entry = self._read().get(key_of(request))
        if entry is None:
            entry = self._record(request, self._chat.invoke(messages, stop=stop, **settings))
        return _message(entry["reply"])

    def _record(self, request: Recorded, reply: AIMessage) -> Recorded:
        metadata = {
            name: reply.response_metadata[name]
            for name in _METADATA
            if reply.response_metadata.get(name) is not None
        }
        entry: Recorded = {
            "key": key_of(request),
            "model": model_name(self._chat),
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            **request,
            "reply": {"text": reply.text, "usage": reply.usage_metadata, "metadata": metadata},
        }
        entries = self._read()
        with self._lock:
            entries[entry["key"]] = entry
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        return entry


def request_of(
    messages: Sequence[BaseMessage], stop: Sequence[str] | None, settings: Mapping[str, object]
) -> Recorded:
    """Return a request as plain data: what the model is shown, and the keywords of the call."""
    options = {**settings, **({"stop": list(stop)} if stop else {})}
    return {
        "messages": [[message.type, message.content] for message in messages],
        "settings": json.loads(json.dumps(options, sort_keys=True, default=repr)),
    }


def key_of(request: Recorded) -> str:
    """Return the hash by which a request is found."""
    text = json.dumps([request["messages"], request["settings"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def entries_of(path: Path) -> dict[str, Recorded]:
    """Return the lines of a recorded file by the hash of their request.

    The hash is computed from the request, so a file edited by hand cannot answer another one.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return {key_of(entry): entry for entry in entries}


def _message(reply: Recorded) -> AIMessage:
    return AIMessage(
        reply["text"],
        usage_metadata=reply.get("usage"),
        response_metadata=reply.get("metadata") or {},
    )
