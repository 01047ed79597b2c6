"""Criteria of your own on one text, each with its own labels, score and reason."""

from langchain_judges.methods.rubric.criteria import Criterion

__all__ = ["Criterion"]
