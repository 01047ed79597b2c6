"""Branch-Solve-Merge judging a pair: branch → solve → merge (Saha et al. 2023, Algorithm 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END

from langchain_judges.asking.nodes import Route
from langchain_judges.methods.bsm.options import BSM
from langchain_judges.methods.bsm.replies import BSMResult, BSMState
from langchain_judges.methods.bsm.steps import BSMSteps
from langchain_judges.methods.context import JudgeContext, StateSchema, begin
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


def _graph(steps: BSMSteps) -> JudgeGraph:
    context = steps.context
    graph = context.graph()
    graph.add_node("branch", context.node(steps.branch))
    graph.add_node("solve", context.asks(steps.solve, steps.solved))
    graph.add_node("merge", context.node(steps.merge))
    first = "branch"
    if steps.options.reference_model is not None:
        first = "reference"
        graph.add_node("reference", context.node(steps.reference))
        graph.add_edge("reference", "branch")
    begin(graph, steps, lambda _: first, [first])
    graph.add_conditional_edges("branch", Route(steps.solve_each), ["solve", "merge"])
    graph.add_edge("solve", "merge")
    graph.add_edge("merge", END)
    return context.finish(graph)


def build(options: BSM, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    models = dict.fromkeys(("branch", "solve", "merge", "reference"))
    models["reference"] = options.reference_model
    shows = "merge" if options.merge == "model" else "branch"
    schema = StateSchema(BSMState, BSMResult)
    context = JudgeContext.of(options, model, models, schema, examples_in=(shows,))
    return _graph(BSMSteps(context, options))


create_bsm_judge = factory(BSM, build, "create_bsm_judge")
