"""Reports for people: runs on a terminal, and whether a judge may be trusted.

`trust` measures one judge against what people say, `compare` several on the same rows; both
give a report with `to_html`, `to_dataframe`, `to_csv` and `to_json`. `gates` checks a report
against limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.report.answers import TrustPolicy as TrustPolicy
    from langchain_judges.report.compared_runs import read_baseline as read_baseline
    from langchain_judges.report.external_judges import trust_columns as trust_columns
    from langchain_judges.report.external_judges import trust_evaluator as trust_evaluator
    from langchain_judges.report.joined_rows import read_verdicts as read_verdicts
    from langchain_judges.report.report import ComparisonReport as ComparisonReport
    from langchain_judges.report.report import TrustReport as TrustReport
    from langchain_judges.report.report import compare as compare
    from langchain_judges.report.report import gates as gates
    from langchain_judges.report.report import trust as trust

_HOMES = {
    "report.compared_runs": "read_baseline",
    "report.answers": "TrustPolicy",
    "report.joined_rows": "read_verdicts",
    "report.external_judges": "trust_columns trust_evaluator",
    "report.report": "ComparisonReport TrustReport compare gates trust",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
