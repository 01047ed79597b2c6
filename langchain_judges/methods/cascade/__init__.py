"""A cascade: a cheap judge first, the next only where it is unsure."""

from langchain_judges.methods.cascade.judge import create_cascade

__all__ = ["create_cascade"]
