"""The judge of one text by criteria of the caller's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END, START

from langchain_judges.asking.nodes import in_one
from langchain_judges.errors import OptionError
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.rubric.claims import CLAIM_SCHEMA, ClaimSteps, claims_graph
from langchain_judges.methods.rubric.options import LabelOptions, RubricOptions
from langchain_judges.methods.rubric.prompts import (
    ANSWER_PROMPTS,
    CLAIM_PROMPTS,
    DRAFT_PROMPTS,
    PROMPTS,
)
from langchain_judges.methods.rubric.replies import RubricResult, RubricState
from langchain_judges.methods.rubric.steps import DraftSteps, LabelSteps
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
        step = "evaluate" if steps.options.shows_task else "answer"
        place = "examples" if steps.options.explain == "none" else "instructions"
        if place not in context.prompts[step].input_variables:
            raise OptionError(
                f"the prompt {step!r} has no `{place}`, where examples of the memory stand"
            )
    graph = context.graph()
    evaluate = context.asks(steps.evaluate, steps.evaluated)
    if not context.recaller and not isinstance(steps, DraftSteps):
        # One round of calls is one node: LangGraph would take longer than all else of ours.
        one_round = in_one(steps.begin, steps.ask, evaluate, steps.total)
        graph.add_node("evaluate", context.node(one_round))
        graph.add_edge(START, "evaluate")
        graph.add_edge("evaluate", END)
        return context.finish(graph, **marks)
    graph.add_node("evaluate", evaluate)
    graph.add_node("total", context.plain(steps.total))
    steps.start(graph)
    graph.add_edge("evaluate", "total")
    graph.add_edge("total", END)
    return context.finish(graph, **marks)


def label_context(
    options: LabelOptions,
    model: str | BaseChatModel,
    schema: StateSchema,
    drafts: bool = False,
) -> JudgeContext:
    """Return what the steps of a judge that labels one text work with."""
    others = dict.fromkeys(["draft", "evaluate"] if drafts else ["evaluate"])
    alone = PROMPTS if options.shows_task else ANSWER_PROMPTS
    templates = DRAFT_PROMPTS if drafts else alone
    return JudgeContext.of(
        options, model, others, schema, examples_in=("evaluate",), templates=templates
    )


_SCHEMA = StateSchema(RubricState, RubricResult, Item)


def build(options: RubricOptions, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    if options.claims:
        others = dict.fromkeys(CLAIM_PROMPTS)
        context = JudgeContext.of(options, model, others, CLAIM_SCHEMA, templates=CLAIM_PROMPTS)
        return claims_graph(ClaimSteps(context, options), **options.marks())
    if options.draft:
        context = label_context(options, model, _SCHEMA, drafts=True)
        steps: LabelSteps = DraftSteps(
            context, options, options.each, options.min_valid, most=options.draft
        )
    else:
        steps = LabelSteps(
            label_context(options, model, _SCHEMA), options, options.each, options.min_valid
        )
    return label_graph(steps, **options.marks())


create_rubric_judge = factory(RubricOptions, build, "create_rubric_judge")
