"""How many calls and rows of a run are in flight at a time, where nobody says."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable

from langchain_judges.methods.marks import is_local

BUSY = 2
"""Unfinished rows per call in flight: some rows plan or merge and wait for no call."""

PLACES, LOCAL_PLACES = 16, 4
"""Default number of calls in flight; a local model generates two replies at a time, and more
calls would only wait there."""


def places_of(judge: Runnable[Any, Any]) -> int:
    """Return the default number of calls in flight for a judge."""
    return LOCAL_PLACES if is_local(judge) else PLACES
