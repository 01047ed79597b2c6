"""Prompts for writing under constraints; their words are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_judges.asking.question import chat_prompt
from langchain_judges.lazy import packaged

_WRITTEN = packaged(__package__, "prompts.yaml")
_ALL = {step: chat_prompt(_WRITTEN["system"], text) for step, text in _WRITTEN["steps"].items()}

# Every prompt of the Branch-Solve-Merge writer, and of the baselines, by the name of its step.
PROMPTS = {step: _ALL[step] for step in ("split", "solve", "merge", "repair")}
DIRECT_PROMPTS = {"plan": _ALL["plan"], "draft": _ALL["solve"], "choose": _ALL["choose"]}

# What the prompts are filled with.
WORDS: Mapping[str, str] = _WRITTEN["words"]
