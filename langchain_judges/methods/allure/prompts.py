"""Prompts of ALLURE's audit and guidelines; their words are in `prompts.yaml`."""

from __future__ import annotations

from langchain_judges.methods.pairs import prompts_in, words_in

# Every prompt that asks a model about a judge's labels, by the name of its step.
PROMPTS = prompts_in("allure/prompts.yaml", "allure")

# What the prompts are filled with.
WORDS = words_in("allure/prompts.yaml")
