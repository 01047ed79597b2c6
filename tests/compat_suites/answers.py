"""A server of OpenAI's protocol that answers what is asked by what it is shown."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A question, by words in the first sentences of its prompt, and what must be shown for it to
# hold; `!`: must not.
RULES: list[tuple[str, str]] = [
    (r"prompt injection", r"Ignore all previous|now a different AI|you are DAN"),
    (r"code injection", r"DROP TABLE users|alert\(.XSS"),
    (r"toxicity", r"You stink|a stupid question"),
    (r"PII", r"SSN is"),
    (r"biased or unfair", r"too emotional"),
    (r"conciseness", r"!Thanks for asking"),
    (r"hallucinations", r"!answer\W+John Adams"),
    (r"code reviewer", r"!Here's a function|await subprocess"),
    (r"correctness", r"!answer\W+John Adams"),
    (r"declared plan", r"done my research"),
    (r"outputs are relevant|context for relevance", r"!laws of aviation|Eiffel Tower"),
    (r"retrieved context", r"Bagatur Askaryan\."),
    (r"how helpful", r"!was bagatur"),
    (r"retained", r"!steakhouse"),
    (r"satisfaction", r"!This is useless"),
    (r"tone", r"!Did you even read"),
    (r"track every request", r"!unable to make bookings"),
    (r"inaccuracy", r"good restaurants"),
    (r"trajectory|steps of an agent|internal steps", r"!good restaurants|Is perfectly efficient"),
]
LANGUAGES = {"Hola": "Spanish", "Bonjour": "French"}


def holds(prompt: str) -> float | bool:
    """Say whether, or how far, what a prompt asks holds for what it shows."""
    if "equal?" in prompt or "How equal" in prompt or "foo?" in prompt:
        first, second = (re.findall(rf"\b{name}\b(?:&quot;|\W)+(\d)", prompt)[:2] for name in "ab")
        same = [len(set(each)) == 1 for each in (first, second)]
        if "fraction" in prompt:
            return sum(same) / len(same)
        return all(same) != ("foo?" in prompt)
    if "FastAPI" in prompt:
        return '@app.get("/")' in prompt
    for question, shown in RULES:
        if re.search(question, prompt[:400]):
            return bool(re.search(shown.lstrip("!"), prompt)) != shown.startswith("!")
    raise LookupError(f"no rule for {prompt[:300]!r}")


def value_of(name: str, form: Mapping[str, Any], prompt: str) -> object:
    """The value of one field of a reply."""
    if name == "detected_language":
        return next(v for word, v in LANGUAGES.items() if word in prompt)
    if form.get("type") in {"boolean", "number"}:
        answer = holds(prompt)
        return answer if form["type"] == "boolean" else float(answer)
    if name == "code":
        found = re.search(r"(from fastapi|(async )?def \w+\()(.|\n)*", prompt)
        return re.split(r"\n</", found[0])[0] if found else None
    return "because of what is shown"


def completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """The message that answers a request: data, a call of a tool, or a text."""
    messages = body.get("messages") or body["input"]
    prompt = "\n".join(_text(each.get("content")) for each in messages)
    form = body.get("response_format", {}).get("json_schema", {}).get("schema")
    form = form or body.get("text", {}).get("format", {}).get("schema")
    if form:
        fields = {k: value_of(k, v, prompt) for k, v in form["properties"].items()}
        return {"content": json.dumps(fields)}
    tools = [each.get("function") or each for each in body.get("tools") or []]
    if tools and not any(each.get("role") == "tool" for each in messages):
        fields = tools[0]["parameters"]["properties"]
        arguments = {k: value_of(k, v, prompt) for k, v in fields.items()}
        return {"content": None, "call": (tools[0]["name"], json.dumps(arguments))}
    return {"content": "It is 70 degrees and rainy."}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(each.get("text", "")) for each in content)
    return str(content or "")


def as_chat(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Chat Completions have it."""
    inner: dict[str, Any] = {"role": "assistant", "content": message["content"]}
    if call := message.get("call"):
        function = {"name": call[0], "arguments": call[1]}
        inner["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": "stop", "message": inner}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    kind = {"id": "1", "object": "chat.completion", "created": 1, "model": "fake"}
    return {**kind, "choices": [choice], "usage": usage}


def as_response(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as the Responses API has it."""
    if call := message.get("call"):
        names = {"name": call[0], "arguments": call[1], "call_id": "1"}
        output = {"type": "function_call", "id": "1", "status": "completed", **names}
    else:
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        own = {"type": "message", "id": "1", "role": "assistant", "status": "completed"}
        output = {**own, "content": [text]}
    kind = {"id": "1", "object": "response", "created_at": 1, "model": "fake"}
    return {**kind, "status": "completed", "output": [output], "error": None}


WHEN = "2026-01-01T00:00:00Z"
# What LangSmith's hub says of a prompt beside its name.
REPOSITORY: dict[str, Any] = {
    **dict.fromkeys(("id", "tenant_id", "owner", "full_name"), "x"),
    **dict.fromkeys(("created_at", "updated_at"), WHEN),
    **dict.fromkeys(("is_public", "is_archived"), False),
    **dict.fromkeys(("num_likes", "num_downloads", "num_views", "num_commits"), 0),
    "tags": [],
}


class Handler(BaseHTTPRequestHandler):
    """Answers for models, and keeps prompts as LangSmith's hub does."""

    prompts: dict[str, Any] = {}
    # Each connection is closed: one that an event loop leaves behind fails in the next loop.
    protocol_version = "HTTP/1.0"

    def log_message(self, *_: object) -> None:
        pass

    def _send(self, payload: object, status: int = 200) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or "{}")
        if self.path.endswith("/chat/completions"):
            self._send(as_chat(completion(body)))
        elif self.path.endswith("/responses"):
            self._send(as_response(completion(body)))
        elif "/commits/" in self.path:
            self.prompts[self.path.rpartition("/")[2]] = body["manifest"]
            self._send({"commit": {"commit_hash": "1", "id": "1"}})
        else:
            self.prompts.setdefault(str(body.get("repo_handle")), {})
            self._send({"repo": {"repo_handle": body.get("repo_handle"), **REPOSITORY}})

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].split("/")
        known = next((each for each in parts if each in self.prompts), None)
        if "commits" in parts and known and parts[-1] != "latest":
            self._send({"commits": [], "total": 0})
        elif "repos" in parts and known:
            self._send({"repo": {"repo_handle": known, **REPOSITORY}})
        elif "commits" in parts and known:
            self._send({"commit_hash": "1", "manifest": self.prompts[known], "examples": []})
        elif "settings" in parts:
            self._send({"id": "1", "display_name": "x", "created_at": WHEN})
        else:
            self._send({"detail": "not found"}, 404)


class AnswerServer:
    """The server, on loopback, for the time of a `with` block; entered it is its address."""

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
