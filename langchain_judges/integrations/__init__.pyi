# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.asking.traces import end_traces as end_traces
from langchain_judges.integrations.langsmith_runs import feedback_rows as feedback_rows
from langchain_judges.integrations.langsmith_runs import labelled_runs as labelled_runs
from langchain_judges.integrations.server import serve as serve
from langchain_judges.integrations.tool import judge_tool as judge_tool
from langchain_judges.integrations.trajectory_match import (
    trajectory_evaluator as trajectory_evaluator,
)
from langchain_judges.integrations.watch import create_online_evaluator as create_online_evaluator
from langchain_judges.integrations.watch import watch_project as watch_project
