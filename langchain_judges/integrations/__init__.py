"""Judges inside LangChain, LangGraph and LangSmith: agents, servers, projects.

Evaluators, the middleware and the best of n are exported by `langchain_judges` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.asking.traces import end_traces as end_traces
    from langchain_judges.integrations.langsmith_runs import feedback_rows as feedback_rows
    from langchain_judges.integrations.langsmith_runs import labelled_runs as labelled_runs
    from langchain_judges.integrations.server import serve as serve
    from langchain_judges.integrations.tool import judge_tool as judge_tool
    from langchain_judges.integrations.trajectory_match import (
        trajectory_evaluator as trajectory_evaluator,
    )
    from langchain_judges.integrations.watch import (
        create_online_evaluator as create_online_evaluator,
    )
    from langchain_judges.integrations.watch import watch_project as watch_project

_HOMES = {
    "asking.traces": "end_traces",
    "integrations.langsmith_runs": "feedback_rows labelled_runs",
    "integrations.server": "serve",
    "integrations.tool": "judge_tool",
    "integrations.trajectory_match": "trajectory_evaluator",
    "integrations.watch": "create_online_evaluator watch_project",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
