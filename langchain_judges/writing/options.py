"""What the options of every writer share."""

from __future__ import annotations

from typing import Annotated, Self

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, model_validator

from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.options import GraphOptions
from langchain_judges.verdict import add_usage
from langchain_judges.writing.coverage import ENGLISH, Counting, check_word_forms
from langchain_judges.writing.state import WriteResult, WriteState, WritingTask

SCHEMA = StateSchema(WriteState, WriteResult, WritingTask, {"turns": 0, "usage": add_usage([])})
"""The types of a writer's graph."""
LONGEST_TEXT = 360
"""Characters of a text by a local model, whose strings are kept short elsewhere. Even if
each is a token of its own, as where it repeats itself, the reply is not cut."""


class WriterOptions(GraphOptions):
    """What every writer takes."""

    rewrites: Annotated[int, Ge(0)] = 1
    """The most turns in which the model rewrites the text to add missing concepts; none if
    nothing is missing."""
    strict: bool = False
    """Count a concept as used only in its exact form, not in any word form."""

    language: str = ENGLISH
    """The language whose word forms count as using a concept: `"english"`, or `"czech"`,
    `"german"`, `"spanish"` … by the language's Snowball stemmer."""

    @model_validator(mode="after")
    def _can_tell_word_forms(self) -> Self:
        if not self.strict:
            check_word_forms(self.language)
        return self

    @property
    def counting(self) -> Counting:
        """What counts as using a concept."""
        return {"strict": self.strict, "language": self.language}


def writer_context(
    options: WriterOptions,
    model: str | BaseChatModel,
    others: dict[str, str | BaseChatModel | None],
) -> JudgeContext:
    """Choose prompts and models, and let a local model write longer texts than it judges."""
    context = JudgeContext.of(options, model, others, SCHEMA)
    for adapter in context.adapters.values():
        if adapter.text_limit:
            adapter.text_limit = LONGEST_TEXT
    return context


Shapes = dict[str, type[BaseModel]]
"""What the reply of each step must look like."""
