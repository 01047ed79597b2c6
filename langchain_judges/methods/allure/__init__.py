"""ALLURE (Hasanbeig et al. 2023; arXiv:2309.13701)."""

from langchain_judges.methods.allure.guidelines import draw_guidelines
from langchain_judges.methods.allure.judge import create_allure_judge

__all__ = ["create_allure_judge", "draw_guidelines"]
