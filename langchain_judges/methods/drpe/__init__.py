"""Diverse role-players for evaluation (Wu et al., NLPCC 2023; arXiv:2303.15078)."""

from langchain_judges.methods.drpe.judge import create_drpe_judge
from langchain_judges.methods.drpe.options import Panel, Voting

__all__ = ["Panel", "Voting", "create_drpe_judge"]
