"""Audited mistakes of judges: remembered, recalled, and shown to the next judgment."""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
