"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END

from langchain_judges.asking.models.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.asking.nodes import Route
from langchain_judges.asking.steps import SingleFlight
from langchain_judges.methods.context import JudgeContext, StateSchema, begin
from langchain_judges.methods.drpe.options import DRPE
from langchain_judges.methods.drpe.replies import DRPEResult, DRPEState
from langchain_judges.methods.drpe.role_steps import RoleSteps
from langchain_judges.methods.drpe.roles import sets_mark
from langchain_judges.methods.drpe.vote_steps import VoteSteps
from langchain_judges.methods.second_order import add_second_order
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


def _graph(roles: RoleSteps, votes: VoteSteps) -> JudgeGraph:
    context, options = votes.context, votes.options
    graph = context.graph()
    graph.add_node("roles", context.node(roles.roles))
    vote = context.node(votes.vote)
    graph.add_node("vote", vote)
    graph.add_node("score", context.plain(votes.score))
    begin(graph, roles, lambda _: "roles", ["roles"])
    before = "roles"
    if options.poll.adaptive:
        before = "choose"
        graph.add_node("choose", context.plain(votes.choose))
        graph.add_edge("roles", "choose")
    graph.add_conditional_edges(before, Route(votes.ask_panel), ["vote", "score"])
    if options.waits:
        again = ("vote", vote)
        add_second_order(graph, context, again, votes.first_order, votes.ask_panel, "score")
    else:
        graph.add_edge("vote", "choose" if options.poll.adaptive else "score")
    graph.add_edge("score", END)
    # What sits by task is decided by the wording of the sets.
    sets = {"sets": sets_mark()} if options.seating.by_task else {}
    return context.finish(graph, embeddings=type(roles.embeddings).__name__, **sets)


_SCHEMA = StateSchema(DRPEState, DRPEResult, initial={"roles_key": "", "task": "", "asked": 0})


def build(options: DRPE, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    clusters = options.seating.clustering and options.generates
    embeddings = options.embeddings or (
        default_embeddings() if clusters else SentenceEmbeddings()
    )
    others = {"roles": options.role_model, "vote": None}
    context = JudgeContext.of(options, model, others, _SCHEMA, examples_in=("vote",))
    return _graph(
        RoleSteps(context, options, embeddings, SingleFlight()), VoteSteps(context, options)
    )


create_drpe_judge = factory(DRPE, build, "create_drpe_judge")
