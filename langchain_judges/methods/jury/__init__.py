"""A jury: several judges or models on the same row, and what most of them say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# Loaded when asked for: reading a method's options loads no graph and no numpy.
if TYPE_CHECKING:
    from langchain_judges.methods.jury.judge import create_jury as create_jury

_HOMES = {
    "methods.jury.judge": "create_jury",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
