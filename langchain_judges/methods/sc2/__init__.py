"""SC²: structured comparative reasoning (Yan et al. 2023; arXiv:2311.08390)."""

from langchain_judges.methods.sc2.aspects import AspectSet, load_aspects
from langchain_judges.methods.sc2.judge import create_sc2_judge
from langchain_judges.methods.sc2.learn import alearn_aspects, learn_aspects
from langchain_judges.methods.sc2.tables import render_table

__all__ = [
    "AspectSet",
    "alearn_aspects",
    "create_sc2_judge",
    "learn_aspects",
    "load_aspects",
    "render_table",
]
