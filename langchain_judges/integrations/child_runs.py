"""A traced agent's use of tools, read from its child runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from langsmith.schemas import Run

from langchain_judges.errors import InputError
from langchain_judges.rows.applications import answer_in
from langchain_judges.rows.messages import state_messages
from langchain_judges.rows.trajectories import is_trajectory


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
