"""Reports for people: runs on a terminal, and whether a judge may be trusted.

`trust` measures one judge against what people say, `compare` several on the same rows; both
give a report with `to_html`, `to_dataframe`, `to_csv` and `to_json`. `gates` checks a report
against limits.
"""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
