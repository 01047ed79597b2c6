"""What a row has cost so far, in the metadata of its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import ensure_config

if TYPE_CHECKING:
    from uuid import UUID


def note_cost(run_id: UUID | None, dollars: float | None) -> None:
    """Write dollars into the metadata of a run that is being traced, as `cost`.

    Called below the run, after each reply: metadata go to LangSmith when the run has ended.

    Args:
        run_id: Of the run; None: it is not traced under a name of ours.
        dollars: None: the price of a reply is not known.
    """
    if run_id is None:
        return
    for tracer in getattr(ensure_config().get("callbacks"), "handlers", ()):
        runs: Any = getattr(tracer, "run_map", None) or {}
        if add := getattr(runs.get(str(run_id)), "add_metadata", None):
            add({"cost": dollars})
