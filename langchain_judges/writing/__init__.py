"""Texts that use every given concept: how they are written, and how they are measured."""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
