"""Audited mistakes of judges: remembered, recalled, and shown to the next judgment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# The one list of public names; each is loaded when it is asked for.
if TYPE_CHECKING:
    from langchain_judges.memory.failure_memory import FailureMemory as FailureMemory
    from langchain_judges.memory.faiss.store import FaissStore as FaissStore
    from langchain_judges.memory.recall import Recall as Recall

__getattr__, __dir__, __all__ = exports(__name__)
