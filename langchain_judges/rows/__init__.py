"""What a judge takes, in every shape people have it: texts, records, labels, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

if TYPE_CHECKING:
    from langchain_judges.rows.fields import show as show

_HOMES = {
    "rows.fields": "show",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
