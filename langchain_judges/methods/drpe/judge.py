"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.caches import BaseCache
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from langchain_judges.asking.ask import Question
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.asking.gate import Once
from langchain_judges.asking.steps import Node
from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Recall
from langchain_judges.memory.rendering import RememberedPair, reminder
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.nodes import PanelSteps
from langchain_judges.methods.drpe.options import Panel, Voting, as_json, calls, group
from langchain_judges.methods.drpe.roles import RoleLike, read_roles
from langchain_judges.methods.drpe.state import DRPEResult, DRPEState, RoleVote
from langchain_judges.methods.old_base import check_common, finish, prompt_set
from langchain_judges.verdict import Pair

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory


def create_drpe_judge(  # noqa: PLR0913 - the options of the paper's settings
    model: str | BaseChatModel,
    *,
    role_model: str | BaseChatModel | None = None,
    panel: Panel | Mapping[str, Any] | None = None,
    voting: Voting | Mapping[str, Any] | None = None,
    roles: Sequence[RoleLike] | None = None,
    embeddings: Embeddings | None = None,
    seed: int = 0,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "drpe",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[DRPEState, None, Pair, DRPEResult]:
    """Create a judge that is a panel of role-players (Wu et al. 2023, DRPE).

    `roles` generates readers of the text by two prompts, clusters them for diversity and
    seats them beside the static judges; `vote` asks the panel which text is better, all in
    one call; `score` sums the votes for each text, each weighed by the length-normalised
    probability of its own tokens (equation 4). With the defaults that is three calls; roles
    of one text are generated once and serve every pair that shares it.

    A is the candidate and B the reference, as in the NLPCC version; the first version
    compares any two summaries. A pair's own `reference`, beside the two, is shown to the
    voters. Where the papers are silent or we differ: generated roles
    alone are clustered, so that the static judges always sit; two role prompts and a
    comparison are three calls, not two (`Panel(merged_prompt=True)` makes them two); where
    a model gives no log-probabilities every vote weighs one, and a note says so; an article
    longer than the model's context is cut, alike for every prompt, and flagged `input_cut`;
    where the embedder fails the first generated roles sit, and a failure says so.

    Args:
        model: Chat model that votes, and generates roles unless another is given.
        role_model: Generates roles instead of `model`.
        panel: Who sits; a `Panel`, or its fields by name.
        voting: How they vote; a `Voting`, or its fields by name.
        roles: A panel to use as it is, such as another result's `roles`; nothing is
            generated then.
        embeddings: Embeds `"type: description"` for clustering; default all-MiniLM-L6-v2.
        seed: Of the clustering, of sampled votes and of the coin for `order="random"`.
        instructions: Your rubric, or the language to answer in; shown to the voters.
        memory: Audited mistakes; those that fit a pair are shown to the voters.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacements for `drpe.prompts.PROMPTS`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer: `SqliteSaver` for `invoke`,
            `AsyncSqliteSaver` for `ainvoke`.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "roles", "proposed", "votes",
        "score_norm", "roles_key"}`. `verdict.scores` are the sums of equation 4,
        `verdict.score` is A's share of them, `score_norm` A's sum over the valid votes.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    check_common(
        role_model=role_model,
        embeddings=embeddings,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    panel, voting = group(Panel, panel, "panel"), group(Voting, voting, "voting")
    given = read_roles(roles, "manual") if roles is not None else None
    if given is not None and not given:
        raise OptionError("`roles` must be at least one role")
    if voting.min_valid and voting.min_valid > (len(given) if given else panel.most()):
        raise OptionError(f"`min_valid` is larger than the panel, got {voting.min_valid!r}")
    clusters = panel.clustering and panel.dynamic and not given
    embed = embeddings or (default_embeddings() if clusters else SentenceEmbeddings())
    chosen, version = prompt_set(texts.PROMPTS, prompts)
    voter = Channel(model, temperature)
    namer = Channel(role_model, temperature) if role_model else voter
    base = Question("drpe", "", voter, chosen["vote"], RoleVote, version, cache=cache)
    base = replace(base, repairs=repairs)
    reminding = reminder(memory, recall, allow_leak, [voter.context])
    judge = PanelSteps(
        panel=panel,
        voting=voting,
        given=given,
        embeddings=embed,
        seed=seed,
        instructions=(instructions or "").strip(),
        namer=replace(base, step="roles", channel=namer),
        voter=replace(
            base,
            step="vote",
            sampled=voting.replies > 1,
            logprobs=voting.confidence in {"auto", "logprobs"},
        ),
        prompts=chosen,
        drawn=Once(),
        reminding=reminding,
    )
    graph: StateGraph[DRPEState, None, Pair, DRPEResult] = StateGraph(
        DRPEState, input_schema=RememberedPair, output_schema=DRPEResult
    )
    graph.add_node("roles", Node(judge.roles))
    graph.add_node("vote", Node(judge.vote))
    graph.add_node("score", Node(judge.score))
    graph.add_edge(START, "roles")
    graph.add_conditional_edges("roles", judge.ask_panel, ["vote", "score", END])
    graph.add_edge("vote", "score")
    graph.add_edge("score", END)
    compiled = graph.compile(checkpointer=checkpointer, store=store, name=name)
    options = {**as_json(panel, voting), "seed": seed, "instructions": judge.instructions}
    options["roles"] = [dict(role) for role in given] if given else None
    if reminding:
        options["memory"] = reminding.mark()
    options["embeddings"] = type(judge.embeddings).__name__
    return finish(
        compiled,
        method="drpe",
        options={**options, "repairs": repairs},
        models={"roles": namer.identity, "vote": voter.identity},
        prompt_version=version,
        calls=calls(panel, voting, given is not None),
        branches=2 * voting.replies * (1 if voting.batch else panel.most()),
        memory=memory,
    )
