"""Branch-Solve-Merge judging (Saha et al., NAACL 2024; arXiv:2310.15123)."""

from langchain_judges.methods.bsm.judge import create_bsm_judge

__all__ = ["create_bsm_judge"]
