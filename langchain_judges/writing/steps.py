"""What every writer does: begin a task, show material, rewrite a text, report the outcome."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, model_validator

from langchain_judges.asking.ask import ask
from langchain_judges.asking.send import Question, Reply
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.declaration import GraphOptions
from langchain_judges.rows.checks import check_task
from langchain_judges.rows.fences import fence
from langchain_judges.verdict import add_usage
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.coverage import (
    ENGLISH,
    Counting,
    check_word_forms,
    distinct,
    losses,
)
from langchain_judges.writing.state import (
    GivenPart,
    Piece,
    WriteResult,
    WriteState,
    WritingTask,
)

SCHEMA = StateSchema(WriteState, WriteResult, WritingTask, {"turns": 0, "usage": add_usage([])})
"""The types of a writer's graph."""
LONGEST_TEXT = 360
"""Characters of a text by a local model, whose strings are kept short elsewhere. Even if
each is a token of its own, as where it repeats itself, the reply is not cut."""


class WriterOptions(GraphOptions):
    """What every writer takes."""

    strict: bool = False
    """Count a concept only in its exact form."""

    language: str = ENGLISH
    """The language whose word forms count: `"english"`, or one with a Snowball stemmer, such as
    `"german"`."""

    @model_validator(mode="after")
    def _can_tell_word_forms(self) -> Self:
        if not self.strict:
            check_word_forms(self.language)
        return self

    @property
    def counting(self) -> Counting:
        """What counts as using a concept."""
        return {"strict": self.strict, "language": self.language}


Shapes = dict[str, type[BaseModel]]
"""What the reply of each step must look like."""


def writer_context(
    options: WriterOptions,
    model: str | BaseChatModel,
    shapes: Shapes,
) -> JudgeContext:
    """Choose prompts and models, and let a local model write longer texts than it judges."""
    context = JudgeContext.of(options, model, dict.fromkeys(shapes), SCHEMA)
    for adapter in context.adapters.values():
        if adapter.text_limit:
            adapter.text_limit = LONGEST_TEXT
    return context


_LENGTH = re.compile(
    r"(\b(one|two|three|four|five|six|seven|eight|ten|single|half)|\d)\W{0,3}(a |or so )?"
    r"(words?|sentences?|paragraphs?|lines?|pages?|characters?|verses?|stanzas?|minutes?)\b",
    re.IGNORECASE,
)
"""Where an instruction says how long a text is to be."""

Own = TypeVar("Own", bound=WriterOptions)


@dataclass(frozen=True)
class Writer(Generic[Own]):
    """The steps that the writers share, with their options and questions."""

    options: Own
    context: JudgeContext
    questions: Mapping[str, Question]

    def start(self, state: WriteState) -> Update:
        """Check the task and empty what an earlier run of the thread left."""
        check_task(dict(state))
        return {**self.context.schema.blank, "concepts": distinct(state["concepts"])}

    def ask(
        self,
        step: str,
        material: Mapping[str, object],
        unit: str = "",
        *,
        shape: type[BaseModel] | None = None,
        seed: int | None = None,
    ) -> Steps[Reply]:
        """Ask a step's question.

        Args:
            step: The step.
            material: What `material` returned.
            unit: What the step works on.
            shape: What the reply must look like, where it depends on the material.
            seed: Set for one sample of many.
        """
        question = self.questions[step]
        if unit:
            label = "{unit}" if step == "draft" else f"{step}: {{unit}}"
            question = replace(question, label=label)
        if shape:
            question = replace(question, shape=shape)
        return ask(question, material, unit=unit, seed=seed)

    def material(
        self,
        about: Mapping[str, Any],
        parts: Sequence[GivenPart] = (),
        **more: str,
    ) -> dict[str, object]:
        """Return what a prompt shows: the concepts, texts to work on, the caller's wishes.

        Args:
            about: Holds `concepts`, and `instruction` and `topic` where there are any.
            parts: Texts, each with the concepts that it has to use.
            **more: Texts that stand in fences of their own.
        """
        texts_in = {"concepts": "\n".join(about["concepts"]), **more}
        token = fence(*texts_in.values(), *(part["text"] for part in parts))
        added, topic = self.options.instructions, about.get("topic")
        instruction = about.get("instruction") or texts.INSTRUCTION
        # A length that the task states is not undercut.
        lengthless = instruction == texts.INSTRUCTION or not _LENGTH.search(instruction)
        drafts = [
            (texts.DRAFT if part["concepts"] else texts.ATTEMPT).format(
                number=n,
                fence=token,
                concepts="\n".join(part["concepts"]),
                text=part["text"],
            )
            for n, part in enumerate(parts, 1)
        ]
        return {
            "fence": token,
            "forms": texts.EXACT_FORM if self.options.strict else texts.ANY_FORM,
            "instruction": instruction,
            "what": about.get("place") or texts.WHOLE,
            "brief": texts.BRIEF if lengthless else "",
            "instructions": texts.INSTRUCTIONS.format(instructions=added) if added else "",
            "topic": texts.TOPIC.format(topic=topic) if topic else "",
            "parts": len(parts),
            "drafts": "\n".join(drafts),
            **texts_in,
        }

    def outcome(
        self,
        state: WriteState,
        text: str | None,
        groups: list[list[str]],
        drafts: Sequence[str | None],
    ) -> Update:
        """Return the text, what it lacks, and what it cost."""
        return {
            "text": text,
            "groups": groups,
            "drafts": list(drafts),
            "missing": losses(state["concepts"], groups, drafts, text, **self.options.counting),
            "usage": add_usage(state["usages"]),
        }


def piece_of(unit: str, reply: Reply) -> Update:
    """Return the update with what one call wrote."""
    text = reply.data["text"].strip() if reply.data else None
    piece: Piece = {"unit": unit, "text": text}
    return {"pieces": [piece], "failures": reply.failures, "usages": [reply.usage]}
