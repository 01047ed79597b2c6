"""Diverse role-players for evaluation (Wu et al., NLPCC 2023; arXiv:2303.15078)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# Loaded when asked for: reading a method's options loads no graph and no numpy.
if TYPE_CHECKING:
    from langchain_judges.methods.drpe.judge import create_drpe_judge as create_drpe_judge
    from langchain_judges.methods.drpe.options import Panel as Panel
    from langchain_judges.methods.drpe.options import Voting as Voting
    from langchain_judges.verdict import Role as Role
    from langchain_judges.verdict import Vote as Vote

_HOMES = {
    "methods.drpe.judge": "create_drpe_judge",
    "methods.drpe.options": "Panel Voting",
    "verdict": "Role Vote",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
