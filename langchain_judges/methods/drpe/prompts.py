"""Prompts of DRPE; their words are in `prompts.yaml`."""

from __future__ import annotations

from langchain_judges.methods.pairs import prompts_in, words_in

# Every prompt of the judge, by its name.
PROMPTS = prompts_in("drpe/prompts.yaml", "drpe")

# What the prompts are filled with.
WORDS = words_in("drpe/prompts.yaml")
