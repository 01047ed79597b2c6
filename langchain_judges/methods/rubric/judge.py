"""The judge of one text by criteria of the caller's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END, START

from langchain_judges.asking.nodes import in_one
from langchain_judges.errors import OptionError
from langchain_judges.methods.context import JudgeContext, StateSchema, begin
from langchain_judges.methods.rubric.claims import CLAIM_SCHEMA, ClaimSteps, claims_graph
from langchain_judges.methods.rubric.options import LabelOptions, RubricOptions
from langchain_judges.methods.rubric.prompts import ANSWER_PROMPTS, CLAIM_PROMPTS, PROMPTS
from langchain_judges.methods.rubric.replies import RubricResult, RubricState
from langchain_judges.methods.rubric.steps import LabelSteps
from langchain_judges.options import factory
from langchain_judges.verdict import Item

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


def label_graph(steps: LabelSteps, **marks: object) -> JudgeGraph:
    """Return the graph of a judge that labels one text.

    Args:
        steps: Its steps.
        **marks: What decides verdicts beside the options.

    Raises:
        OptionError: A replaced prompt has no place for the examples of the memory.
    """
    context = steps.context
    if steps.options.memory is not None:
        step = "evaluate" if "task" in steps.options.shown else "answer"
        place = "examples" if steps.options.explain == "none" else "instructions"
        if place not in context.prompts[step].input_variables:
            raise OptionError(
                f"the prompt {step!r} has no `{place}`, where examples of the memory stand"
            )
    graph = context.graph()
    evaluate = context.asks(steps.evaluate, steps.evaluated)
    if not context.recaller:
        # One round of calls is one node: LangGraph would take longer than all else of ours.
        one_round = in_one(steps.begin, steps.ask, evaluate, steps.total)
        graph.add_node("evaluate", context.node(one_round))
        graph.add_edge(START, "evaluate")
        graph.add_edge("evaluate", END)
        return context.finish(graph, **marks)
    graph.add_node("evaluate", evaluate)
    graph.add_node("total", context.plain(steps.total))
    begin(graph, steps, steps.ask, ["evaluate"])
    graph.add_edge("evaluate", "total")
    graph.add_edge("total", END)
    return context.finish(graph, **marks)


def label_context(
    options: LabelOptions, model: str | BaseChatModel, schema: StateSchema
) -> JudgeContext:
    """Return what the steps of a judge that labels one text work with."""
    return JudgeContext.of(
        options,
        model,
        {"evaluate": None},
        schema,
        examples_in=("evaluate",),
        templates=PROMPTS if "task" in options.shown else ANSWER_PROMPTS,
    )


def build(options: RubricOptions, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    if options.claims:
        others = dict.fromkeys(CLAIM_PROMPTS)
        context = JudgeContext.of(options, model, others, CLAIM_SCHEMA, templates=CLAIM_PROMPTS)
        return claims_graph(ClaimSteps(context, options), **options.marks())
    schema = StateSchema(RubricState, RubricResult, Item)
    context = label_context(options, model, schema)
    steps = LabelSteps(context, options, options.each, options.min_valid)
    return label_graph(steps, **options.marks())


create_rubric_judge = factory(RubricOptions, build, "create_rubric_judge")
