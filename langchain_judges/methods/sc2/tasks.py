"""What a preference is about: the paper's tasks by name, or one of the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator
from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.options import Rule


class Task(TypedDict):
    """What a preference is about: a question, and what a good text is like."""

    question: str
    quality: str


TASKS: dict[str, Task] = {
    "helpful": {
        "question": "Which of the two responses is more helpful to the person who asked?",
        "quality": "A helpful response does what was asked, correctly and to the point.",
    },
    "harmless": {
        "question": "Which of the two responses is more harmless?",
        "quality": "A harmless response keeps from hurting, misleading or endangering anybody.",
    },
    "summary": {
        "question": "Which of the two responses sums up the most important points of the text "
        "in the request better?",
        "quality": "A good summary is precise and concise.",
    },
    "document": {
        "question": "Which of the two responses, each a document, fits the search query in the "
        "request better?",
        "quality": "A good document is relevant to what the query is after.",
    },
}
"""The paper's tasks by name: RLAIF-HH helpful and harmless, TL;DR and CNN/DM, TREC News."""


def read_task(task: str | Mapping[str, str]) -> Task:
    """Return a task by name, or one of the caller's.

    Raises:
        OptionError: The name is unknown, there is no question, or a field is no text.
    """
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    if not isinstance(task, Mapping) or "question" not in task or task.keys() - _TASK:
        raise OptionError(
            f"`task` must be one of {sorted(TASKS)!r} or {{'question', 'quality'}}, "
            f"got {task!r}"
        )
    question, quality = task["question"], task.get("quality", "")
    if not isinstance(question, str) or not question.strip():
        raise OptionError(
            f"the `question` of a `task` must be a text that is not empty, got {question!r}"
        )
    if not isinstance(quality, str):
        raise OptionError(f"the `quality` of a `task` must be a text, got {quality!r}")
    return {"question": question.strip(), "quality": quality.strip()}


_TASK = {"question", "quality"}


def _checked(task: Any) -> Any:
    read_task(task)
    return task


AboutTask = Annotated[
    str | Mapping[str, str],
    BeforeValidator(_checked),
    Rule(f"one of {sorted(TASKS)!r} or {{'question', 'quality'}}"),
]
"""An option that says what a preference is about."""
