"""An agent's messages: its task, its work, and the drafts that the judge rejected."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from langchain_core.messages import AnyMessage, RemoveMessage

from langchain_judges.errors import InputError
from langchain_judges.rows.applications import task_in, work_in
from langchain_judges.rows.texts import PlainText

REVISER = "judge"
"""Name of the messages that request a revision of the agent's model."""


def task_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return the agent's task, without its drafts and the judge's reasons."""
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != REVISER]
    until = messages[: places[-1] + 1] if places else messages[:-1]
    rejected = {removed.id for removed in drafts_in(until)}
    request = [m for m in until if m.type != "system" and str(m.id) not in rejected]
    try:
        task = task_in(request)
    except InputError:
        return "(no task)"
    if len(task) == 1 and not isinstance(task, str) and isinstance(task[0]["content"], str):
        return task[0]["content"]
    return task


def work_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return an agent's work since the user's last message, without rejected drafts."""
    rejected = {removed.id for removed in drafts_in(messages)}
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != REVISER]
    since = messages[places[-1] + 1 :] if places else messages
    return work_in([message for message in since if str(message.id) not in rejected])


def drafts_in(messages: Sequence[AnyMessage]) -> list[RemoveMessage]:
    """Return the removals of each request to revise and of the draft before it."""
    removed: list[AnyMessage] = []
    for before, message in pairwise(messages):
        if message.type == "human" and message.name == REVISER:
            removed += [before, message] if before.type == "ai" else [message]
    return [RemoveMessage(id=str(message.id)) for message in removed]
