"""A warning about rows so long that many models refuse them, before anything is sent."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from langchain_judges.asking.tokens import BYTES, bytes_of
from langchain_judges.errors import LongRowWarning
from langchain_judges.rows.texts import texts_read

LONG = 100_000
"""Tokens of a row that deserve a warning: many models refuse them, and all charge them."""


def long_row(size: int, row: str = "The longest row") -> str:
    """Return the warning for a row of so many bytes; empty for a usual one."""
    tokens = size // BYTES
    if tokens < LONG:
        return ""
    return f"{row} has about {tokens:,} tokens, and every call sends it."


def warn_if_long(index: int, row: Mapping[str, object]) -> None:
    """Warn of a row that many models refuse, by its index among the rows of the run."""
    if text := long_row(bytes_of(texts_read(row)), f"The row of index {index}"):
        warnings.warn(text, LongRowWarning, stacklevel=2)
