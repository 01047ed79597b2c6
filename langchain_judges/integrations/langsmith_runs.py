"""Runs read from LangSmith: of a query, of an earlier experiment, with the tools they used."""

from __future__ import annotations

import threading
import uuid
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.schemas import Run


def baseline_outputs(client: Client, experiment: str) -> dict[str, object]:
    """Return the outputs of an experiment's runs by the id of their example.

    Args:
        client: LangSmith's client.
        experiment: Its name or id.
    """
    try:
        project = uuid.UUID(str(experiment))
    except ValueError:
        project = client.read_project(project_name=experiment).id
    return {
        str(run.reference_example_id): run.outputs
        for run in runs_of(client, project_id=project, is_root=True)
        if run.reference_example_id and run.outputs
    }


def feedback_rows(client: Client, experiment: str) -> list[dict[str, object]]:
    """Return the runs of an experiment as rows, with a column for each key of feedback.

    Scores of a judge and of people, such as an annotation queue's, then stand side by side:
    `report.trust_columns(feedback_rows(client, "my-experiment"), judge="gpt", label="human")`.

    Args:
        client: LangSmith's client.
        experiment: Its name or id.

    Returns:
        `id`, `input`, `output` and by key the score of its latest feedback, or its value.
    """
    try:
        project = uuid.UUID(str(experiment))
    except ValueError:
        project = client.read_project(project_name=experiment).id
    runs = runs_of(client, project_id=project, is_root=True)
    rows: dict[str, dict[str, object]] = {
        str(run.id): {
            "id": str(run.id),
            "input": str(run.inputs or ""),
            "output": str(run.outputs or ""),
        }
        for run in runs
    }
    feedback = list(client.list_feedback(run_ids=list(rows))) if rows else []
    for each in sorted(feedback, key=lambda one: one.created_at):
        rows[str(each.run_id)][each.key] = each.value if each.score is None else each.score
    return list(rows.values())


def runs_of(client: Client, **which: Any) -> list[Run]:
    """Return the runs of a query, by the one call that every LangSmith server supports."""
    with warnings.catch_warnings():
        # Its replacement requires a newer server than many have.
        warnings.filterwarnings("ignore", r"list_runs\(\) is deprecated")
        return list(client.list_runs(**which))


TRACES_WAIT = 10.0
"""Default for how many seconds to wait."""


def end_traces(seconds: float = TRACES_WAIT) -> bool:
    """Wait until LangSmith has received every trace, for a limited time.

    Without this, a program whose LangSmith is down or hangs ends minutes late: the threads
    that send traces keep it alive. Set `LANGSMITH_USE_DAEMON=true` before LangChain is
    imported and call this last; traces that are not sent by then are dropped. The command
    line does both.

    Args:
        seconds: The longest time to wait.

    Returns:
        Whether everything was sent or dropped by the client; True without tracing.
    """
    # Loaded on use: most programs trace nothing.
    from langchain_core.tracers.langchain import get_client
    from langsmith.utils import tracing_is_enabled

    if not tracing_is_enabled():
        return True
    # The client's own timeout covers only a part of its waiting.
    sending = threading.Thread(target=get_client().flush, daemon=True, name="last traces")
    sending.start()
    sending.join(seconds)
    return not sending.is_alive()
