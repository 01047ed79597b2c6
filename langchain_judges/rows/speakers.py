"""Who says a message: one rule by role and marker, for rows and for agents at work.

Libraries write messages in the user's place. Those of LangChain's and deepagents' middleware have
a marker; agents of a graph that answer so have a name, by which `record.py` tells them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
