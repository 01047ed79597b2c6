"""A jury: several judges or models on the same row, and what most of them say."""

from langchain_judges.methods.jury.judge import create_jury

__all__ = ["create_jury"]
