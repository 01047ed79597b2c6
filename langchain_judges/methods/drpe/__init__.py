"""Diverse role-players for evaluation (Wu et al., NLPCC 2023; arXiv:2303.15078)."""
