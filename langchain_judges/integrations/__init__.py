"""Judges inside LangChain, LangGraph and LangSmith: agents, servers, projects.

Evaluators, the middleware and the best of n are exported by `langchain_judges` itself.
"""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
