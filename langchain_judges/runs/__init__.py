"""Many rows: bounded, resumable, within a budget; and methods compared on them.

The path of a row: `many` asks `run_state` for the next one, which `rows` reads and keys. A row
that `run_files` holds already is returned from there. Another is started where the budget has
room, judged, and made a result; `run_files` stores it and `summary` counts it. Results return
in the order of the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.asking.limiter import MinuteLimiter as MinuteLimiter
    from langchain_judges.runs.cascade_thresholds import calibrate_cascade as calibrate_cascade
    from langchain_judges.runs.comparison import rank as rank
    from langchain_judges.runs.many import assert_judged as assert_judged
    from langchain_judges.runs.run_state import budget as budget

_HOMES = {
    "asking.limiter": "MinuteLimiter",
    "runs.cascade_thresholds": "calibrate_cascade",
    "runs.comparison": "rank",
    "runs.many": "assert_judged",
    "runs.run_state": "budget",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
