"""Audited mistakes of judges: remembered, recalled, and shown to the next judgment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.memory.recall import Recall as Recall
    from langchain_judges.memory.recall import Recalled as Recalled
    from langchain_judges.memory.recall import all_ as all_
    from langchain_judges.memory.recall import knn as knn
    from langchain_judges.memory.recall import near as near
    from langchain_judges.memory.recall import none as none
    from langchain_judges.memory.recall import uniform as uniform

_HOMES = {
    "memory.recall": "Recall Recalled all_ knn near none uniform",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
