"""ALLURE (Hasanbeig et al. 2023; arXiv:2309.13701)."""

from langchain_judges.methods.allure.audit.graph import create_allure_audit
from langchain_judges.methods.allure.audit.holdout import split_by_group
from langchain_judges.methods.allure.judge import create_allure_judge

__all__ = ["create_allure_audit", "create_allure_judge", "split_by_group"]
