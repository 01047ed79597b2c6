"""SC² judging a pair: aspects → tables → knockout → preference (Yan et al. 2023, figure 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.constants import END

from langchain_judges.asking.models.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.asking.nodes import Next, Node, Route
from langchain_judges.memory.shown import RememberedPair
from langchain_judges.methods.context import JudgeContext, begin
from langchain_judges.methods.sc2.aspect_steps import AspectSteps
from langchain_judges.methods.sc2.match_steps import MatchSteps
from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.preference_steps import PreferenceSteps
from langchain_judges.methods.sc2.replies import SC2Result, SC2State
from langchain_judges.methods.sc2.table_steps import TableSteps
from langchain_judges.methods.second_order import add_second_order
from langchain_judges.options import factory

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langchain_judges.methods.graph import JudgeGraph


def _add_ending(
    graph: StateGraph[SC2State, None, RememberedPair, SC2Result],
    context: JudgeContext,
    options: SC2,
    preferences: PreferenceSteps,
    preference: Node,
) -> None:
    """Add the way from the first preference to the verdict: at once, or asked again."""
    if options.stops:
        graph.add_node("choose", context.plain(preferences.choose))
        route = Route(preferences.ask_each)
        graph.add_conditional_edges("choose", route, ["preference", "verdict"])
        graph.add_edge("preference", "choose")
    elif options.waits:
        again = ("preference", preference)
        weigh, ask = preferences.first_order, preferences.ask_each
        add_second_order(graph, context, again, weigh, ask, "verdict")
    else:
        graph.add_edge("preference", "verdict")
    graph.add_edge("verdict", END)


def _graph(context: JudgeContext, options: SC2, embeddings: Embeddings) -> JudgeGraph:
    # Loaded on use: to check options and count calls takes no graph.
    from langgraph.graph import StateGraph

    aspects, tables, matches, preferences = (
        AspectSteps(context, options, embeddings),
        TableSteps(context, options, embeddings),
        MatchSteps(context, options, embeddings),
        PreferenceSteps(context, options, embeddings),
    )

    def after_round(state: SC2State) -> Next:
        if pending := matches.ask_each(state):
            return pending
        return "choose" if options.stops else preferences.ask_each(state)

    graph: StateGraph[SC2State, None, RememberedPair, SC2Result] = StateGraph(
        SC2State, input_schema=RememberedPair, output_schema=SC2Result
    )
    graph.add_node("aspects", context.asks(aspects.aspects, aspects.named))
    graph.add_node("agree", context.node(aspects.agree))
    graph.add_node("table", context.asks(tables.table, tables.tabled))
    graph.add_node("round", context.node(matches.round))
    graph.add_node("match", context.asks(matches.match, matches.met))
    preference = context.asks(preferences.preference, preferences.preferred)
    graph.add_node("preference", preference)
    graph.add_node("verdict", context.plain(preferences.verdict))
    begin(graph, aspects, aspects.ask_each, ["aspects", "agree"])
    graph.add_edge("aspects", "agree")
    graph.add_conditional_edges("agree", Route(tables.ask_each), ["table", "round"])
    if options.check:
        graph.add_node("check", context.node(tables.check))
        graph.add_edge("check", "round")
    graph.add_edge("table", "check" if options.check else "round")
    ends = ["choose"] if options.stops else ["preference", "verdict"]
    graph.add_conditional_edges("round", Route(after_round), ["match", *ends])
    graph.add_edge("match", "round")
    _add_ending(graph, context, options, preferences, preference)
    nli = {"nli": options.check.nli_name} if options.check and options.check.nli else {}
    return context.finish(
        graph, embeddings=type(embeddings).__name__, worked=list(options.worked), **nli
    )


def build(options: SC2, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    models = {
        "aspects": options.aspect_model,
        "table": options.comparison_model,
        "match": options.comparator_model,
        "preference": None,
    }
    context = JudgeContext.of(options, model, models, examples_in=("preference",))
    compares = not options.aspects or (options.check and options.check.embed)
    unused = SentenceEmbeddings()
    return _graph(
        context, options, options.embeddings or (default_embeddings() if compares else unused)
    )


create_sc2_judge = factory(SC2, build, "create_sc2_judge")
