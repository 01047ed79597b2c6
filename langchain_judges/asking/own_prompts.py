r"""Prompts of a caller's own, word for word, and how replies in their form are read.

A file of prompts names steps of a method. What it says is sent as it stands: nothing is added,
no format is asked for, and no reply is repaired.

    solve:
      prompt: |-
        {request}
        A: {response_1}
        B: {response_2}
        Rate both for {criterion_name}.
      reply: 'Rating of A: (?P<score_1>\d).*Rating of B: (?P<score_2>\d)'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import yaml
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel

from langchain_judges.asking.reading import ReplyData, json_schema
from langchain_judges.errors import OptionError

PIECE = re.compile(
    r"(turn|response_[12]_turn|role|aspect)_\d+|role_\d+_(type|description)"
    r"|criterion_(name|description)|(reference|instructions|table)_text"
)
"""Variables that only prompts of a caller's own use: pieces without a word around them."""
_KEYS = {"system", "prompt", "reply", "values"}


class OwnPrompt(ChatPromptTemplate):
    """A prompt that is sent word for word, and the form of its replies."""

    reply: str | None = None
    """A regular expression whose groups are fields of the reply; None: asked for as JSON."""
    values: dict[str, str] = {}
    """What a group's text stands for, in any case, such as `{"A": "1"}`; other texts stay."""

    def parse(self, text: str, shape: type[BaseModel]) -> ReplyData | None:
        """Return the fields that a reply states; None if it states none, or two of one field.

        Each match fills one item of a list, or one of the numbered parts of a reply (roles,
        rows of a table), where the reply has such: one for each part, or whose they are is not
        known. All of what has no group is the reply.
        """
        matches = [self._said(match) for match in re.finditer(str(self.reply), text)]
        fields = json_schema(shape)["properties"]
        if not matches:
            return None
        if plural := next((n for n, f in fields.items() if f.get("type") == "array"), None):
            items = [each.get(plural, each) for each in matches]
            return {**_whole(fields, text), plural: items}
        parts = [name for name, field in fields.items() if field.get("type") == "object"]
        if parts:
            if len(matches) != len(parts):
                return None
            named = [_whole(fields[part]["properties"], "") for part in parts]
            filled = zip(parts, named, matches, strict=True)
            return {part: {**blank, **match} for part, blank, match in filled}
        if any(each != matches[0] for each in matches):
            return None
        return {**_whole(fields, text), **matches[0]}

    def _said(self, match: re.Match[str]) -> dict[str, str]:
        groups = {name: (text or "").strip() for name, text in match.groupdict().items()}
        folded = {each.casefold(): value for each, value in self.values.items()}
        return {name: folded.get(text.casefold(), text) for name, text in groups.items()}


def _whole(fields: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the fields of free text, each with the same text."""
    return {
        name: text.strip()
        for name, field in fields.items()
        if field.get("type") == "string" and "enum" not in field
    }


def read_prompts(value: Any) -> Any:
    """Return prompts by step, those of a file as plain data.

    Args:
        value: A path, or the prompts.

    Raises:
        OptionError: The file cannot be read.
    """
    if isinstance(value, str | PathLike):
        try:
            # All as text: a `yes` among the values is no truth value. It builds no objects.
            text = Path(value).read_text(encoding="utf-8")
            value = yaml.load(text, yaml.BaseLoader)  # noqa: S506
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
            raise OptionError(f"`prompts`: {value!s} cannot be read: {exc}") from exc
    if isinstance(value, Mapping):
        for step, prompt in value.items():
            own_prompt(str(step), prompt)
    return value


def own_prompt(step: str, prompt: object) -> ChatPromptTemplate:
    """Return the prompt of a step: a template, or one made of what a file says.

    Raises:
        OptionError: It is neither.
    """
    if isinstance(prompt, ChatPromptTemplate):
        return prompt
    if not isinstance(prompt, Mapping) or "prompt" not in prompt or set(prompt) - _KEYS:
        raise OptionError(
            f"`prompts` must be prompts by step, each a `ChatPromptTemplate` or a mapping with "
            f"`prompt` and, as one likes, `system`, `reply` and `values`, got {prompt!r} for "
            f"{step!r}"
        )
    messages = [("human", str(prompt["prompt"]))]
    if system := prompt.get("system"):
        messages.insert(0, ("system", str(system)))
    reply = prompt.get("reply")
    try:
        template = OwnPrompt.from_messages(messages)
        re.compile(reply or "")
    except (ValueError, re.error) as exc:
        raise OptionError(f"`prompts`: {step!r} is no template or pattern: {exc}") from exc
    values = {str(text): str(value) for text, value in (prompt.get("values") or {}).items()}
    return template.model_copy(update={"reply": reply, "values": values})
