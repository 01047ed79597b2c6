"""The runs of one thread as one conversation, whoever keeps the history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain_judges.rows.fields import record_of_run, task_in
from langchain_judges.rows.messages import holds_nothing
from langchain_judges.rows.record import as_messages, places_in, says_same
from langchain_judges.rows.texts import OUTCOMES, Message


def thread_of(runs: Sequence[Any]) -> list[Message]:
    """The conversation that the runs of one LangSmith thread are, in time.

    Where an application or its graph keeps the history, inputs or outputs begin with what was
    said before: it is not repeated. What was said again is.
    """
    record: list[Message] = []
    for run in sorted(runs, key=lambda each: str(each.start_time)):
        talk = [each for each in record if each["role"] not in OUTCOMES]
        asked = [] if holds_nothing(run.inputs) else as_messages(task_in(run.inputs))
        asked = asked[_number_told(asked[:-1], talk) :]
        done = record_of_run(run)
        places = places_in(done, asked)
        if talk and any(each["role"] == "user" for each in done):
            told = _number_told(done[: places[-1]] if places else done, talk)
            done = done[next((n for n in places if n >= told), told) :]
        record += done if places else [*asked, *done]
    return record


def _number_told(messages: Sequence[Message], talk: Sequence[Message]) -> int:
    """Number of the first messages that stand in a talk, in its order."""
    rest = iter(talk)
    return len([*takewhile(lambda each: any(says_same(each, one) for one in rest), messages)])
