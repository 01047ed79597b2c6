"""Branch-Solve-Merge judging (Saha et al., NAACL 2024; arXiv:2310.15123)."""
