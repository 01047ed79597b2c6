"""The kinds of replies that judges ask for, and odd replies of each made from templates.

A template is a reply with places in angles: `<answer>` is the judge's own verdict as JSON,
with the template's `explanation` in it; `<forged>` the opposite verdict as JSON, `<words>`
and `<forged words>` the two in plain words. What it must be read as is `answer`, `forged`
(where only that is the reply) or null for "not judged".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_judges.methods.direct.tally import CHOICE
from langchain_judges.methods.replies import Choice, scores_shape
from langchain_judges.methods.rubric.replies import label_shape, parse_label
from langchain_judges.methods.sc2.tally import PREFERRED, Preferred


class Kind(NamedTuple):
    """One shape of reply: how it is read, and a verdict with its opposite."""

    shape: type[BaseModel]
    parse: Callable[[str], dict[str, Any] | None] | None
    """None: read as JSON alone."""
    said: str
    """The member that holds the words."""
    answer: dict[str, Any]
    forged: dict[str, Any]
    words: str
    forged_words: str


KINDS = {
    "label": Kind(
        label_shape((0, 1), "first"),
        partial(parse_label, labels=(0, 1)),
        "explanation",
        {"label": "0"},
        {"label": "1"},
        "Label: 0",
        "Label: 1",
    ),
    "scores": Kind(
        scores_shape((1, 10), explain_first=False),
        None,
        "explanation",
        {"score_1": 9, "score_2": 2},
        {"score_1": 1, "score_2": 10},
        "Response 1: 9\nResponse 2: 2",
        "Response 1: 1\nResponse 2: 10",
    ),
    "choice": Kind(
        Choice,
        CHOICE.parse,
        "explanation",
        {"preference": "1"},
        {"preference": "2"},
        "Preferred: 1",
        "Preferred: 2",
    ),
    "preferred": Kind(
        Preferred,
        PREFERRED.parse,
        "comparison",
        {"preferred": "1"},
        {"preferred": "2"},
        "Preferred: 1",
        "Preferred: 2",
    ),
}


class Odd(NamedTuple):
    """An odd reply, and the verdict that it must be read as; None: not judged."""

    kind: Kind
    reply: str
    material: tuple[str, ...]
    verdict: dict[str, Any] | None


def odd_replies(file: str) -> dict[str, Odd]:
    """Every template of a file as a reply of every kind, by name."""
    templates = json.loads(Path(__file__).with_name(file).read_text())
    return {
        f"{name}: {each['name']}": _odd(kind, each)
        for name, kind in KINDS.items()
        for each in templates
        if name in each.get("kinds", KINDS) and (kind.parse or "words>" not in each["reply"])
    }


def _odd(kind: Kind, template: dict[str, Any]) -> Odd:
    explanation = _filled(template.get("explanation", "Because."), kind)
    answer = json.dumps({**kind.answer, kind.said: explanation})
    reply = _filled(template["reply"], kind).replace("<answer>", answer)
    material = tuple(_filled(text, kind) for text in template.get("material", ()))
    verdicts = {"answer": kind.answer, "forged": kind.forged, None: None}
    return Odd(kind, reply, material, verdicts[template["reads"]])


class Ending(NamedTuple):
    """A whole message, and why it is no verdict; None: it is one, `any`: for any reason."""

    kind: Kind
    message: AIMessage
    reason: str | None


def odd_endings(file: str) -> dict[str, Ending]:
    """Every template of a file as a message of every kind, by name."""
    templates = json.loads(Path(__file__).with_name(file).read_text())
    return {
        f"{name}: {each['name']}": Ending(kind, _message(kind, each), each["reason"])
        for name, kind in KINDS.items()
        for each in templates
    }


def _message(kind: Kind, template: dict[str, Any]) -> AIMessage:
    answer = {**kind.answer, kind.said: "Because."}
    forged = {**kind.forged, kind.said: "Because."}
    twice = json.dumps(answer)[:-1] + ", " + json.dumps(forged)[1:]
    # A client library keeps the last of two members.
    fields = {"<answer>": answer, "<forged>": forged, "<twice>": {**answer, **forged}}
    written = {**{place: json.dumps(data) for place, data in fields.items()}, "<twice>": twice}
    content = json.dumps(template.get("content", ""))
    for place, text in written.items():
        content = content.replace(place, json.dumps(text)[1:-1])
    calls = template.get("calls", [])
    raw = [
        {"id": str(n), "type": "function", "function": {"name": "T", "arguments": written[call]}}
        for n, call in enumerate(calls)
    ]
    return AIMessage(
        json.loads(content),
        tool_calls=[{"name": "T", "args": fields[c], "id": str(n)} for n, c in enumerate(calls)],
        additional_kwargs={"tool_calls": raw} if raw else {},
        response_metadata=template.get("metadata", {}),
    )


def _filled(text: str, kind: Kind) -> str:
    forged = json.dumps({**kind.forged, kind.said: "Because."})
    for place, reply_text in (
        ("<forged>", forged),
        ("<words>", kind.words),
        ("<forged words>", kind.forged_words),
        ("<shot>", json.dumps(forged)[1:-1]),
    ):
        text = text.replace(place, reply_text)
    return text
