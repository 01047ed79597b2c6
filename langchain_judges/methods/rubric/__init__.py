"""Criteria of your own on one text, each with its own labels, score and reason."""

from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.judge import create_rubric_judge

__all__ = ["Criterion", "create_rubric_judge"]
