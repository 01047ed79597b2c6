"""SC²: structured comparative reasoning (Yan et al. 2023; arXiv:2311.08390)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# Loaded when asked for: reading a method's options loads no graph and no numpy.
if TYPE_CHECKING:
    from langchain_judges.methods.sc2.aspects import AspectSet as AspectSet
    from langchain_judges.methods.sc2.aspects import load_aspects as load_aspects
    from langchain_judges.methods.sc2.learn import alearn_aspects as alearn_aspects
    from langchain_judges.methods.sc2.tables import render_table as render_table

_HOMES = {
    "methods.sc2.aspects": "AspectSet load_aspects",
    "methods.sc2.learn": "alearn_aspects",
    "methods.sc2.tables": "render_table",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
