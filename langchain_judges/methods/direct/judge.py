"""The graph that every baseline is: [plan →] judge → merge.

Where each order is asked once and nothing is recalled, all of it is one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END, START

from langchain_judges.asking.nodes import Route, in_one
from langchain_judges.methods.context import JudgeContext, StateSchema, begin
from langchain_judges.methods.direct.options import (
    Absolute,
    Baseline,
    ChainOfThought,
    Direct,
    LLMScore,
    PlanSolve,
    Relative,
    SelfConsistency,
)
from langchain_judges.methods.direct.replies import DirectState
from langchain_judges.methods.direct.steps import BaselineSteps
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


def _graph(steps: BaselineSteps) -> JudgeGraph:
    options, graph = steps.options, steps.context.graph()
    judge = steps.context.asks(steps.judge, steps.judged)
    if options.form.replies == 1 and not options.form.criteria and not steps.context.recaller:
        steps_in_one = in_one(steps.begin, steps.ask_each, judge, steps.merge)
        graph.add_node("judge", steps.context.node(steps_in_one))
        graph.add_edge(START, "judge")
        graph.add_edge("judge", END)
        return steps.context.finish(graph, worked=list(options.worked))
    in_waves = steps.context.node(steps.judge_in_waves)
    graph.add_node("judge", in_waves if options.form.adaptive else judge)
    graph.add_node("merge", steps.context.plain(steps.merge))
    if options.form.criteria:
        graph.add_node("plan", steps.context.asks(steps.plan, steps.planned))
        graph.add_conditional_edges("plan", Route(steps.ask_each), ["judge", "merge"])
        begin(graph, steps, lambda _: "plan", ["plan"])
    else:
        first = (lambda _: "judge") if options.form.adaptive else steps.ask_each
        begin(graph, steps, first, ["judge"])
    graph.add_edge("judge", "merge")
    graph.add_edge("merge", END)
    return steps.context.finish(graph, worked=list(options.worked))


def build(options: Baseline, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    steps = dict.fromkeys(options.prompt_texts)
    context = JudgeContext.of(
        options,
        model,
        steps,
        StateSchema(DirectState, options.result),
        examples_in=("judge",),
        templates=options.prompt_texts,
    )
    return _graph(BaselineSteps(context, options))


create_relative_judge = factory(Relative, build, "create_relative_judge")
create_absolute_judge = factory(Absolute, build, "create_absolute_judge")
create_direct_judge = factory(Direct, build, "create_direct_judge")
create_cot_judge = factory(ChainOfThought, build, "create_cot_judge")
create_llm_score_judge = factory(LLMScore, build, "create_llm_score_judge")
create_plan_solve_judge = factory(PlanSolve, build, "create_plan_solve_judge")
create_self_consistency_judge = factory(SelfConsistency, build, "create_self_consistency_judge")
