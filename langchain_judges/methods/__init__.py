"""Judging methods, one folder each, and the parts from which to build your own."""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
