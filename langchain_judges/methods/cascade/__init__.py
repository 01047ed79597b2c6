"""A cascade: a cheap judge first, the next only where it is unsure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# Loaded when asked for: reading a method's options loads no graph and no numpy.
if TYPE_CHECKING:
    from langchain_judges.methods.cascade.judge import create_cascade as create_cascade

_HOMES = {
    "methods.cascade.judge": "create_cascade",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
