"""Texts that use every given concept: how they are written, and how they are measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.writing.evaluation import create_story_judge as create_story_judge
    from langchain_judges.writing.evaluation import evaluate_writing as evaluate_writing
    from langchain_judges.writing.writers import WRITERS as WRITERS
    from langchain_judges.writing.writers import (
        create_single_prompt_writer as create_single_prompt_writer,
    )
    from langchain_judges.writing.writers import load_writer as load_writer

_HOMES = {
    "writing.evaluation": "create_story_judge evaluate_writing",
    "writing.writers": "WRITERS create_single_prompt_writer load_writer",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
