"""Published ways to judge text with a language model, as LangGraph state machines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from langchain_judges.lazy import exports

_named, __dir__, __all__ = exports(__name__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("langchain-judges")
    return _named(name)
