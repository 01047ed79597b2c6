"""Judging methods, one folder each; and what a method of your own is made of."""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
