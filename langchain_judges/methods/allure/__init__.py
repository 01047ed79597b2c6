"""ALLURE (Hasanbeig et al. 2023; arXiv:2309.13701)."""

from langchain_judges.methods.allure.guidelines import draw_guidelines

__all__ = ["draw_guidelines"]
