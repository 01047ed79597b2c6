"""Prompts of SC²; their words are in `prompts.yaml`."""

from __future__ import annotations

from langchain_judges.methods.pairs import prompts_in, words_in

# Every prompt of the judge, by the name of its step.
PROMPTS = prompts_in("sc2/prompts.yaml", "sc2")

# The prompts of `learn_aspects`.
LEARN_PROMPTS = prompts_in("sc2/prompts.yaml", "learn_aspects")

# What the prompts are filled with.
WORDS = words_in("sc2/prompts.yaml")
