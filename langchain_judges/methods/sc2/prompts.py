"""Prompts of SC²; their words are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.methods.pairs import prompts_in
from langchain_judges.rows.files import packaged

# Every prompt of the judge, by the name of its step.
PROMPTS = prompts_in("sc2/prompts.yaml", "sc2")

# The prompts of `learn_aspects`.
LEARN_PROMPTS = prompts_in("sc2/prompts.yaml", "learn_aspects")

# What the prompts are filled with.
WORDS: Mapping[str, Any] = packaged(__package__, "prompts.yaml")["words"]
