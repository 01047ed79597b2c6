"""How the judged texts are shown to a model: as fenced data, as a transcript of turns."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from langchain_judges.rows.media import kind_of_block, mark_of

Text = str | Sequence[Mapping[str, object]]
"""A text, or chat messages `{"role", "content"}`."""


class Message(TypedDict):
    """A chat message as plain data."""

    role: str
    content: str | list[str | dict[str, Any]]
    """Its text, or its content blocks."""
    cut: NotRequired[int]
    """How many results of tools in it were cut."""


PlainText = str | list[Message]
"""A text as this package reads it from other forms."""


_HALVES = re.compile("[\ud800-\udfff]")


def without_lone_surrogates(value: Any) -> Any:
    r"""Return JSON data without lone surrogates, which no request can carry.

    A model may write one as an escape, and later prompts quote its reply.

    >>> without_lone_surrogates({"name": ["a\ud800"]})
    {'name': ['a�']}
    """
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_lone_surrogates(part) for part in value]
    if isinstance(value, dict):
        return {
            without_lone_surrogates(key): without_lone_surrogates(part)
            for key, part in value.items()
        }
    return value


_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Invisible characters of other categories: Hangul fillers and the empty Braille cell."""


def is_blank(text: str) -> bool:
    r"""Return whether a text is invisible: only white space, control and format characters.

    >>> is_blank("\u200b\ufeff\x00"), is_blank("0")
    (True, False)
    """
    return all(
        char.isspace() or char in _BLANKS or unicodedata.category(char) in {"Cc", "Cf"}
        for char in text
    )


def plain(content: object) -> str:
    """Return the text of a message's content, a string or a list of content blocks.

    Images, audio and files are named by their marks; see `media.py`.
    """
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block if isinstance(block, str) else _block(block) for block in blocks]
    return "\n".join(text for text in texts if text)


def _block(block: object) -> str:
    if not isinstance(block, dict):
        return ""
    if kind_of_block(block):
        return mark_of(block)
    text = block.get("text", "")
    return text if isinstance(text, str) else ""


def turns(text: Text) -> list[str]:
    """Return the texts of a side's messages, one per turn."""
    if isinstance(text, str):
        return [text]
    return [plain(message.get("content")) for message in text]


def judged(text: Text) -> str:
    """Return the text that is judged: the string itself, or the last message."""
    return turns(text)[-1]


def transcript(text: Text, answers: Text = "") -> str:
    """Render the task; several messages are numbered and named by their role.

    Args:
        text: The task, or the chat messages that both sides share.
        answers: A side's own messages; all but the last are placed after the user's
            messages in turn, so that a follow-up can be read in its context.
    """
    if isinstance(text, str):
        return text
    earlier = [] if isinstance(answers, str) else turns(answers)[:-1]
    if len(text) == 1 and not earlier:
        return turns(text)[0]
    lines: list[str] = []
    turn = 0
    for message in text:
        if message.get("role", "user") == "user":
            turn += 1
            lines.append(f"[Turn {turn}, user]\n{plain(message.get('content'))}")
            if turn <= len(earlier):
                lines.append(f"[Turn {turn}, response]\n{earlier[turn - 1]}")
        else:
            lines.append(f"[{message['role']}]\n{plain(message.get('content'))}")
    return "\n\n".join(lines)


def with_source(task: Text, source: str | None) -> str:
    """Return the task, followed by its source if that is a different text."""
    text = transcript(task)
    return f"{text}\n\n{source}" if source and source != text else text


def group_by_task(task: Text, source: str | None = None) -> str:
    """Return the group of a row that names none: a hash of its task and source."""
    text = with_source(task, source).strip()
    return f"task {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def user_turns(text: Text) -> int:
    """Return the number of user turns in the task."""
    if isinstance(text, str):
        return 1
    return sum(message.get("role", "user") == "user" for message in text)


_READ = ("input", "output_a", "output_b", "reference", "output", "expected", "source", "rubric")


def texts_read(row: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts that a judge reads of a row, those of messages and blocks too."""
    for name in _READ:
        yield from _texts_in(row.get(name))


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in(value.get("content") or value.get("text"))
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts_in(each)
