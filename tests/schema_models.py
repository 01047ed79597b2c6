"""Chat models that answer any JSON schema by a hash, and a recorder of what they were asked.

A reply is drawn by the schema, the run's name, the seed and the texts that the prompt fences,
in their order. It does not depend on the wording around them: a changed word in a prompt
changes the digest of that prompt, and no reply, later prompt or verdict.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

_FENCED = re.compile(r"<([\w-]+)-(\w{10})>\n(.*?)\n</\1-\2>", re.DOTALL)
_SETTINGS = ("temperature", "seed", "logprobs", "top_logprobs")
_USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


@dataclass(frozen=True)
class Call:
    """One request to a model."""

    name: str
    shape: str
    """Name and fields of the reply that was asked for."""
    settings: dict[str, Any]
    prompt: str


class Recorder(BaseCallbackHandler):
    """Every call of the models that share it; runs in threads arrive in any order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._names: dict[Any, str] = {}
        self._lock = threading.Lock()

    def on_chat_model_start(self, serialized, messages, *, run_id, **rest):
        self._names[run_id] = rest.get("name") or ""

    def add(self, run_id, name, schema, settings, messages) -> str:
        """Keep a call and return the name of its run."""
        prompt = "\n".join(f"[{message.type}]\n{message.text}" for message in messages)
        run = self._names.pop(run_id)
        with self._lock:
            self.calls.append(Call(run, f"{name} {signature(schema)}", settings, prompt))
        return run


def signature(schema: dict[str, Any]) -> str:
    """A schema in one line: `{score_1: 1..5, explanation: text}`."""
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " or ".join(map(signature, schema["anyOf"]))
    kind = schema.get("type")
    if kind == "object":
        fields = (f"{name}: {signature(part)}" for name, part in schema["properties"].items())
        return f"{{{', '.join(fields)}}}"
    if kind == "array":
        ends = f"{schema.get('minItems', 0)}..{schema.get('maxItems', '')}"
        return f"[{signature(schema['items'])}] * {ends}"
    if kind == "integer":
        return f"{schema.get('minimum', '')}..{schema.get('maximum', '')}"
    return f"text <= {schema['maxLength']}" if "maxLength" in schema else str(kind)


def drawn(key: str, below: int) -> int:
    """A number from 0 to before `below`, always the same for a key."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) % below


class _Answers:
    """Makes a reply that fits a schema, of words that the prompt fences."""

    def __init__(self, texts: list[str], key: str) -> None:
        lines = [line.strip() for text in texts for line in text.split("\n")]
        self._short = sorted({line for line in lines if line and len(line.split()) <= 2})
        words = sorted(set(re.findall(r"[^\W\d_]{3,}", " ".join(texts).casefold())))
        self._words = words or ["amber", "birch", "cedar", "delta", "ember"]
        self._key = key

    def value(self, schema: dict[str, Any], path: str = "") -> Any:
        at = f"{self._key}|{path}"
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][drawn(at, len(schema["enum"]))]
        if "anyOf" in schema:
            return self.value(schema["anyOf"][0], path)
        kind = schema.get("type")
        if kind == "object":
            parts = schema["properties"].items()
            return {name: self.value(part, f"{path}.{name}") for name, part in parts}
        if kind == "array":
            return self._array(schema, path)
        if kind == "integer":
            low, high = schema.get("minimum", 0), schema.get("maximum", 10)
            return low + drawn(at, high - low + 1)
        return self._text(at, 3 + drawn(at, 3))[: schema.get("maxLength")].strip()

    def _array(self, schema: dict[str, Any], path: str) -> list[Any]:
        most, least = schema.get("maxItems", 3), schema.get("minItems", 0)
        places = [f"{path}.{n}" for n in range(max(least, min(most, 3)))]
        if schema["items"].get("type") == "string" and self._short:
            picks = (drawn(f"{self._key}|{place}", len(self._short)) for place in places)
            return list(dict.fromkeys(self._short[pick] for pick in picks))
        return [self.value(schema["items"], place) for place in places]

    def _text(self, at: str, words: int) -> str:
        picks = (drawn(f"{at}|{n}", len(self._words)) for n in range(words))
        return " ".join(self._words[pick] for pick in picks)


def reply_to(schema: dict[str, Any], prompt: str, key: str) -> dict[str, Any]:
    """A reply that fits the schema."""
    texts = [text for _, _, text in _FENCED.findall(prompt)]
    answers = _Answers(texts, json.dumps([schema, key, texts]))
    return answers.value(schema)


def token_logprobs(text: str, key: str, choices: list[str]) -> list[dict[str, Any]]:
    """Cut a text into words and signs, each with a log-probability from -1 to 0."""

    def entry(token: str, at: str) -> dict[str, Any]:
        return {"token": token, "bytes": None, "logprob": -drawn(at, 1000) / 1000}

    tokens = []
    for place, part in enumerate(re.findall(r"\w+|\W", text)):
        others = choices if part in choices else [part]
        alternatives = [entry(each, f"{key}|{place}|{each}") for each in others]
        own = next(each for each in alternatives if each["token"] == part)
        tokens.append({**own, "top_logprobs": alternatives})
    return tokens


def _choices(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [each for part in schema for each in _choices(part)]
    if not isinstance(schema, dict):
        return []
    inner = _choices(list(schema.values()))
    return sorted({*map(str, schema.get("enum", ())), *inner})


class _Recorded(BaseChatModel):
    """Shared parts of the models below."""

    recorder: Recorder
    spoil: Any = None
    """A function of the messages: the reply, or None for one that fits."""

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        self.callbacks = [self.recorder]

    def _reply(self, messages, run_manager, name, schema, settings) -> AIMessage:
        settings = {each: settings[each] for each in _SETTINGS if settings.get(each) is not None}
        if (model := getattr(self, "model_name", "schema")) != "schema":
            settings = {"model": model, **settings}
        run = self.recorder.add(run_manager.run_id, name, schema, settings, messages)
        key = f"{run}|{settings.get('seed')}"
        prompt = "\n".join(message.text for message in messages)
        content = (self.spoil and self.spoil(messages)) or json.dumps(
            reply_to(schema, prompt, key), ensure_ascii=False
        )
        meta: dict[str, Any] = {"finish_reason": "stop"}
        if settings.get("logprobs"):
            meta["logprobs"] = {"content": token_logprobs(content, key, _choices(schema))}
        return AIMessage(content, usage_metadata=_USAGE, response_metadata=meta)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return self._generate(messages, stop, run_manager.get_sync(), **kwargs)


class SchemaModel(_Recorded, ChatOpenAI):
    """Takes the format of the reply as OpenAI's models do, and gives log-probabilities."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        form = kwargs["response_format"]["json_schema"]
        reply = self._reply(messages, run_manager, form["name"], form["schema"], kwargs)
        return ChatResult(generations=[ChatGeneration(message=reply)])


class TextModel(_Recorded):
    """Knows neither tools nor formats: the schema stands at the end of the prompt."""

    temperature: float | None = None

    @property
    def _llm_type(self) -> str:
        return "text"

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **kwargs):
        schema = json.loads(messages[-1].text.rpartition("\n")[2])
        settings = {"temperature": self.temperature, **kwargs}
        reply = self._reply(messages, run_manager, "text", schema, settings)
        return ChatResult(generations=[ChatGeneration(message=reply)])


class ToolModel(_Recorded):
    """Replies by calling a tool."""

    temperature: float | None = None

    @property
    def _llm_type(self) -> str:
        return "tools"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=tools, tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **kwargs):
        tool = kwargs["tools"][0]
        function = tool.get("function") or {"name": tool["title"], "parameters": tool}
        name, schema = function["name"], function["parameters"]
        settings = {"temperature": self.temperature, **kwargs}
        reply = self._reply(messages, run_manager, f"tool {name}", schema, settings)
        call = {"name": name, "args": json.loads(reply.text), "id": "1"}
        reply = reply.model_copy(update={"content": "", "tool_calls": [call]})
        return ChatResult(generations=[ChatGeneration(message=reply)])
