"""Prompts of Branch-Solve-Merge; their words are in `prompts.yaml`."""

from __future__ import annotations

from langchain_judges.methods.pairs import prompts_in, words_in

# Every prompt of the judge, by the name of its step.
PROMPTS = prompts_in("bsm/prompts.yaml", "bsm")

# What the prompts are filled with.
WORDS = words_in("bsm/prompts.yaml")
