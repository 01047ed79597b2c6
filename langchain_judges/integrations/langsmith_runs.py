"""Runs read from LangSmith: those of a query, and the outputs of an earlier experiment."""

from __future__ import annotations

import uuid
import warnings
from typing import Any

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


def runs_of(client: Client, **which: Any) -> list[Run]:
    """Return the runs of a query, by the one call that every LangSmith server supports."""
    with warnings.catch_warnings():
        # Its replacement requires a newer server than many have.
        warnings.filterwarnings("ignore", r"list_runs\(\) is deprecated")
        return list(client.list_runs(**which))
