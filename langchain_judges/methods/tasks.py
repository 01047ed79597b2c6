"""Tasks of judgments, the papers' by name or the caller's own, and worked examples of them.

SC² and the baselines that it is compared with ask the same question in the same words (Yan et
al. 2023, section 4), and a panel of DRPE is told what it judges (Wu et al. 2023, section 3.1).
Worked examples are for few-shot prompts of any method (SC², Table 5); those of
`worked_examples.yaml` were written for this package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import BeforeValidator, model_validator
from typing_extensions import TypedDict

from langchain_judges import lazy, options, orders
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.declaration import WORDS, JudgeOptions
from langchain_judges.rows import texts

# Whose words a prompt asks with: ours, or what the paper asks and nothing more.
Wording = Literal["own", "paper"]


class Task(TypedDict):
    """The subject of a judgment.

    Attributes:
        question: Which is better; names no slot and no kind of text.
        quality: What a good text is like.
        about: What the two texts are, and of or to what; `{noun}` stands for their name.
        sought: What readers are given to read, such as "a summary of this text".
        everyone: What counts for every judge of a panel, whatever else they look for.
        panel: The static roles of a panel.
    """

    question: str
    quality: str
    about: str
    sought: str
    everyone: str
    panel: str


# Those of `tasks.yaml`, by name.
TASKS: dict[str, Task] = lazy.packaged(__package__, "tasks.yaml")
for _task in TASKS.values():
    _task["quality"] = _task["quality"].replace("[CORRECT_FIRST]", WORDS["correct_first"])
# Worked examples; `shots=3` shows the first three of those that fit the task.
WORKED: tuple[WorkedExample, ...] = tuple(lazy.packaged(__package__, "worked_examples.yaml"))
# The most that are shown.
MOST_SHOTS = 5


def worded(name: str, task: Task, wording: Wording) -> Task:
    """The words of a task; in the paper's wording, the question and what it adds to it.

    Args:
        name: Of the task; `"own"` for the caller's.
        task: The task.
        wording: Whose words they are.
    """
    if wording == "own":
        return task
    added = task["quality"]
    if name != "own":
        added = lazy.packaged(__package__, "papers.yaml")["tasks"].get(name, "")
    return {**task, "question": f"{task['question']} {added}".strip()}


_TASK_FIELDS = ["about", "everyone", "panel", "sought"]


def read_task(task: str | Mapping[str, str]) -> Task:
    """A task by name, or one of the caller's.

    Raises:
        OptionError: The name is unknown, there is no question, or a field is not a text.
    """
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    fields = task if isinstance(task, Mapping) else {}
    if (
        not str(fields.get("question", "")).strip()
        or fields.keys() - Task.__annotations__
        or not all(isinstance(text, str) for text in fields.values())
        or fields.get("panel", "summary") not in PANELS
    ):
        known = {"tasks": sorted(TASKS), "fields": _TASK_FIELDS, "panels": list(PANELS)}
        raise OptionError(WORDS["no_task"].format(got=task, **known))
    # What the caller calls good counts for everybody.
    own = {"quality": "", "everyone": fields.get("quality", ""), **fields}
    own_task: Any = {**TASKS["helpful"], **{key: text.strip() for key, text in own.items()}}
    return own_task  # type: ignore[no-any-return]


# Sets of static roles that a task may name.
PANELS = ("summary", "question_answering", "dialogue", "document", "harmlessness", "manual")


def _checked_task(task: str | Mapping[str, str]) -> str | Mapping[str, str]:
    read_task(task)
    return task


_RULE = f"one of {', '.join(map(repr, sorted(TASKS)))} or {{'question', 'quality'}}"

# An option that says what a judgment is about.
AboutTask = Annotated[str | Mapping[str, str], BeforeValidator(_checked_task), options.Rule(_RULE)]
# The same, which may be chosen from the pair.
AutoTask = Annotated[
    str | Mapping[str, str],
    BeforeValidator(lambda task: task if task == "auto" else _checked_task(task)),
    options.Rule(f"'auto', {_RULE}"),
]


def is_unsaid(task: str | Mapping[str, str], pair: Mapping[str, Any]) -> bool:
    """Whether only the words of the request say what a pair is about."""
    return task == "auto" and not pair.get("task_kind") and texts.user_turns(pair["input"]) < 2


def choose_task(task: str | Mapping[str, str], pair: Mapping[str, Any]) -> tuple[str, Task]:
    """The task of a pair and its name; `"own"` for the caller's.

    With `"auto"` it is what the row says (`task_kind`), as loaders of public sets write it, or
    a model that was asked; else `dialogue` where the user speaks several times, or `response`,
    whose words fit any request and any text.

    Raises:
        InputError: The row names an unknown task.
    """
    if task != "auto":
        return task if isinstance(task, str) else "own", read_task(task)
    several = texts.user_turns(pair["input"]) > 1
    name = pair.get("task_kind") or ("dialogue" if several else "response")
    if name not in TASKS:
        raise InputError(f"the `task_kind` of a row must be one of {sorted(TASKS)!r}, got {name!r}")
    return name, TASKS[name]


class TableRow(TypedDict):
    """One line of a table: what the texts share in an aspect and what only one has."""

    aspect: str
    common: str
    only_a: str
    only_b: str


class WorkedExample(TypedDict):
    """A pair with its table, where A is response 1, what decides, and the slot preferred.

    Attributes:
        comparison: What decides, in one or two sentences.
        reasoning: The steps by which a chain of thought comes to it; default the comparison.
        tasks: The tasks that it is an example of; default `helpful`.
    """

    input: str
    response_1: str
    response_2: str
    rows: list[TableRow]
    comparison: str
    preferred: orders.Slot
    reasoning: NotRequired[str]
    tasks: NotRequired[list[str]]


def shown_examples(shots: Sequence[tuple[WorkedExample, str, Mapping[str, str]]]) -> str:
    """Render worked examples for a prompt; empty for none.

    Args:
        shots: Each with its table, empty or a text that ends in a line break, and the reply.
    """
    if not shots:
        return ""
    rendered = [
        WORDS["example"].format(
            number=number,
            input=shot["input"],
            response_1=shot["response_1"],
            response_2=shot["response_2"],
            table=table,
            reply=json.dumps(reply, ensure_ascii=False),
        )
        for number, (shot, table, reply) in enumerate(shots, 1)
    ]
    return str(WORDS["examples"]).format(examples="\n\n".join(rendered))


class FewShot(JudgeOptions):
    """A judge that can show worked examples.

    Attributes:
        shots: Worked examples shown first, 0 to 5, or as many of `examples`.
        examples: Your own worked examples instead, in the form of `tasks.WORKED`.
    """

    shots: int = 0
    examples: Annotated[Sequence[WorkedExample] | None, options.Rule(WORDS["worked"])] = None

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return self._pool[: self.shots]

    def fingerprint(self) -> dict[str, Any]:
        """The worked examples: a name or a number says nothing of their words."""
        return {"worked": list(self.worked)}

    @property
    def _pool(self) -> Sequence[WorkedExample]:
        if self.examples is not None:
            return self.examples
        # Those of the task first: a summary is no sum.
        task = getattr(self, "task", "helpful")
        fitting = sorted(WORKED, key=lambda each: task not in each.get("tasks", ["helpful"]))
        return fitting[:MOST_SHOTS]

    @model_validator(mode="after")
    def _enough_examples(self) -> Self:
        if self.examples and not self.shots:
            raise OptionError("`examples` are shown as far as `shots` says, and it is 0")
        if not 0 <= self.shots <= len(self._pool):
            most = len(self._pool)
            raise OptionError(f"`shots` must be between 0 and {most}, got {self.shots!r}")
        return self
