"""What a person looks at: runs on a terminal, and whether a judge may be trusted.

`trust` measures one judge against what people say, `compare` several on the same rows; both
give a report with `to_html`, `to_dataframe`, `to_csv` and `to_json`. `gates` holds a report
against bars.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_judges.report.report import TrustReport, trust
    from langchain_judges.report.rows import read_verdicts
    from langchain_judges.report.versus import ComparisonReport, compare
    from langchain_judges.report.watch import gates, read_baseline

# Resolved on first use: the runs need the terminal alone, and statistics take a second to load.
_HOMES = {
    "ComparisonReport": "versus",
    "TrustReport": "report",
    "compare": "versus",
    "gates": "watch",
    "read_baseline": "watch",
    "read_verdicts": "rows",
    "trust": "report",
}

__all__ = [
    "ComparisonReport",
    "TrustReport",
    "compare",
    "gates",
    "read_baseline",
    "read_verdicts",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
