"""ALLURE (Hasanbeig et al. 2023; arXiv:2309.13701)."""

from langchain_judges.methods.allure.guidelines import adraw_guidelines, draw_guidelines
from langchain_judges.methods.allure.judge import create_allure_judge

__all__ = ["adraw_guidelines", "create_allure_judge", "draw_guidelines"]
