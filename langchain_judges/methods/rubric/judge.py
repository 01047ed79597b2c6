"""The judge of one text by criteria of the caller's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.rubric.claims import (
    CLAIM_SCHEMA,
    ClaimSteps,
    claims_graph,
)
from langchain_judges.methods.rubric.draft import DraftSteps
from langchain_judges.methods.rubric.graph import label_context, label_graph
from langchain_judges.methods.rubric.options import RubricOptions
from langchain_judges.methods.rubric.prompts import CLAIM_PROMPTS
from langchain_judges.methods.rubric.replies import RubricResult, RubricState
from langchain_judges.methods.rubric.steps import LabelSteps
from langchain_judges.options import factory
from langchain_judges.verdict import Item

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


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
