"""May I trust this judge? Statistics on verdicts and people's labels.

Pure functions of lists and arrays: no model, no files. Verdicts, rows of `judge_many` or bare
values are taken alike; None is a failed judgment and is counted, never guessed. A result is a
number (a `float`) that carries its interval, `n`, and what was left out, by reason.
"""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
