"""Branch-Solve-Merge (Saha et al., NAACL 2024; arXiv:2310.15123)."""

from langchain_judges.bsm.evaluate import create_bsm_judge

__all__ = ["create_bsm_judge"]
