"""Many rows: bounded, resumable, within a budget; and systems ranked on them.

The path of a row: `many` asks `run_state` for the next one, which `sources` reads and keys. A
row that `run_files` holds already is returned from there. Another is started where the budget
has room, judged, and made a result; `run_files` stores it and `summary` counts it. Results
return in the order of the rows.
"""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
