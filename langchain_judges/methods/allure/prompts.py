"""Prompts of ALLURE's audit and guidelines; their words are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.methods.pairs import prompts_in
from langchain_judges.rows.files import packaged

# Every prompt that asks a model about a judge's labels, by the name of its step.
PROMPTS = prompts_in("allure/prompts.yaml", "allure")

# What the prompts are filled with.
WORDS: Mapping[str, Any] = packaged(__package__, "prompts.yaml")["words"]
