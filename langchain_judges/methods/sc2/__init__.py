"""SC²: structured comparative reasoning (Yan et al. 2023; arXiv:2311.08390)."""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
