"""Who says a message: one rule by role, marker and name, for rows and for agents at work.

Libraries write messages in the user's place. Those of LangChain's and deepagents' middleware have
a marker; agents of a graph that answer so have a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.rows.texts import Message

# Roles of what a middleware writes in the user's place; of any other it is a participant.
_WRITTEN = {"summarization": "summary", "pinned_skill": "system"}


def speaker_of(role: str, marks: Any) -> str:
    """The role of a message, or the name of the middleware that wrote it in the user's place.

    >>> speaker_of("user", {"lc_source": "judge"})
    'judge'

    Args:
        role: Its own.
        marks: Its `additional_kwargs`.
    """
    if role != "user" or not isinstance(marks, Mapping):
        return role
    if marks.get("read_file_media_result") is True:  # of deepagents, beside the result's text
        return "tool"
    source = marks.get("lc_source")
    return _WRITTEN.get(source, source) if source and isinstance(source, str) else role


def told_apart(messages: Sequence[Message]) -> list[Message]:
    """Messages in which what agents say under the user's role is theirs.

    Of the names under that role, the first is the user's, and so is none. Others are agents'
    where a user has no name, or where nobody answers as assistant.
    """
    names = [each.get("name") for each in messages if each["role"] == "user"]
    is_answered = any(each["role"] == "assistant" for each in messages)
    agents = {*names} - {*names[:1], None}
    if not agents or (is_answered and None not in names):
        return [*messages]
    return [
        {**m, "role": "participant"} if m["role"] == "user" and m.get("name") in agents else m
        for m in messages
    ]
