"""Runs read from LangSmith: of a query, of an earlier experiment, with the tools they used."""

from __future__ import annotations

import json
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import InputError
from langchain_judges.rows.applications import answer_in
from langchain_judges.rows.messages import state_messages
from langchain_judges.rows.trajectories import is_trajectory

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


def runs_of(client: Client, **which: Any) -> list[Run]:
    """Return the runs of a query, by the one call that every LangSmith server supports."""
    with warnings.catch_warnings():
        # Its replacement requires a newer server than many have.
        warnings.filterwarnings("ignore", r"list_runs\(\) is deprecated")
        return list(client.list_runs(**which))


def outputs_with_work(run: Run) -> object:
    """Return a run's outputs, with the tools that its child runs used as messages.

    Outputs are unchanged if they already hold an agent's messages, or if no child run used a
    tool or the child runs were not loaded.
    """
    tools = sorted(_tools(run), key=lambda child: child.dotted_order or str(child.start_time))
    if not run.outputs or not tools or is_trajectory(state_messages(run.outputs)):
        return run.outputs
    try:
        answer = answer_in(run.outputs)
    except InputError:  # reported by whoever reads the outputs
        return run.outputs
    messages = [message for tool in tools for message in _messages(tool)]
    return {"messages": [*messages, {"role": "assistant", "content": answer}]}


def _tools(run: Run) -> Iterator[Run]:
    """Yield the tool runs below a run, without those that a tool itself started."""
    for child in run.child_runs or []:
        if child.run_type == "tool":
            yield child
        else:
            yield from _tools(child)


def _messages(tool: Run) -> list[dict[str, object]]:
    call = {"id": str(tool.id), "name": tool.name, "args": _only(tool.inputs, "input")}
    result = tool.outputs if tool.error is None else f"error: {tool.error}"
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": _text(result), "tool_call_id": str(tool.id)},
    ]


def _only(value: object, name: str) -> object:
    """Return the value under a name, if it is the only one; otherwise all of it."""
    return value[name] if isinstance(value, Mapping) and list(value) == [name] else value


def _text(result: object) -> str:
    result = _only(result, "output")
    if isinstance(result, str):
        return result
    try:
        return answer_in(result)
    except InputError:
        return json.dumps(result, ensure_ascii=False, default=str)


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
