"""Prompts of Branch-Solve-Merge; their words are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_judges.methods.pairs import prompts_in
from langchain_judges.rows.files import packaged

# Every prompt of the judge, by the name of its step.
PROMPTS = prompts_in("bsm/prompts.yaml", "bsm")

# What the prompts are filled with.
WORDS: Mapping[str, str] = packaged(__package__, "prompts.yaml")["words"]
