"""SC² judging a pair: aspects → tables → knockout → preference (Yan et al. 2023, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

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
from langchain_judges.asking.steps import Node
from langchain_judges.memory.recall import Recall
from langchain_judges.memory.rendering import RememberedPair, reminder
from langchain_judges.methods.old_base import check_common, finish, prompt_set
from langchain_judges.methods.sc2 import prompts as texts
from langchain_judges.methods.sc2.aspects import Agreement
from langchain_judges.methods.sc2.check import TableCheck
from langchain_judges.methods.sc2.inference import Inference
from langchain_judges.methods.sc2.nodes import Reasoning
from langchain_judges.methods.sc2.options import AspectsLike, check_options
from langchain_judges.methods.sc2.parse import (
    label_probability,
    parse_aspects,
    parse_decision,
    parse_preference,
)
from langchain_judges.methods.sc2.state import (
    Aspects,
    Decision,
    Preferred,
    SC2Result,
    SC2State,
    aspects_shape,
)
from langchain_judges.orders import OrderRule
from langchain_judges.verdict import Pair

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory


def create_sc2_judge(  # noqa: PLR0913 - the options of the paper's settings
    model: str | BaseChatModel,
    *,
    aspect_model: str | BaseChatModel | None = None,
    comparison_model: str | BaseChatModel | None = None,
    comparator_model: str | BaseChatModel | None = None,
    aspects: AspectsLike | None = None,
    samples: int = 8,
    inference: Inference = "tournament",
    task: str | Mapping[str, str] = "helpful",
    orders: OrderRule = "none",
    shots: int = 0,
    examples: Sequence[Mapping[str, Any]] | None = None,
    n_aspects: int = 5,
    aspect_samples: int = 8,
    agreement: Agreement = "frequency",
    row_wise: bool = False,
    table_check: bool | TableCheck | Mapping[str, Any] = False,
    table_only: bool = False,
    max_table: int = 4000,
    preference_samples: int = 1,
    embeddings: Embeddings | None = None,
    seed: int = 0,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "sc2",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[SC2State, None, Pair, SC2Result]:
    """Create a judge that compares by tables before it prefers (Yan et al. 2023, SC²).

    `aspects` names what the texts can be compared in; `table` samples |C| tables of what
    they share and where they differ; `match` lets two tables at a time meet before a
    comparator that looks at consistency alone, until one is left; `preference` is decided
    from the texts and that table. With given aspects and a tournament that is 2|C| calls:
    |C| tables, |C| - 1 comparisons in log2 |C| rounds, one preference.

    Without `aspects` they are found online for every pair, which costs `aspect_samples`
    calls more; the paper's best results have five aspects learned offline from a corpus
    (`learn_aspects`). One order is asked and A or B is forced, as in the paper: only two
    identical texts are a tie unless `orders` says otherwise. A pair's `reference` is shown
    where the preference is asked; tables and comparisons do not see it.

    Where the paper is silent or we differ: which table stands first in a comparison is a
    seeded coin; a comparator that says neither is replaced by a coin and reported; tables
    without a usable row lose without a call; if no table is usable the texts are compared
    directly, and `failures` say so; eight online samples at temperature 0.7.

    Args:
        model: Chat model that prefers, and does everything else unless others are given.
        aspect_model: Finds aspects instead of `model`.
        comparison_model: Makes tables instead of `model`.
        comparator_model: Compares tables instead of `model`.
        aspects: Phrases of your own, what `learn_aspects` returned, or its name or path;
            None finds them online.
        samples: Tables, the paper's |C|.
        inference: `"tournament"` (|C| - 1 comparisons); `"exact"`, all ordered pairs
            (|C|(|C| - 1)); `"exact_unordered"`, half of them; `"double_round"`, a knockout
            in both orders (2(|C| - 1)), a coin where they disagree; `"swiss"`, as many
            rounds as a knockout in which nobody drops out; `"random"`, one table of the |C|
            and no comparison.
        task: `"helpful"`, `"harmless"`, `"summary"`, `"document"`, or
            `{"question", "quality"}` of your own.
        orders: In which orders the preference is asked; `"strict"`, `"lenient"` and
            `"score_mean"` ask both (one more call); see `orders.py`.
        shots: Worked examples in the preference prompt; the paper's Table 5 has 3 and 5.
        examples: Worked examples of your own; see `few_shot.py`.
        n_aspects: Most aspects that are kept of those found online.
        aspect_samples: Online samples of aspects.
        agreement: `"frequency"` keeps what most samples name; `"list_medoid"` the sample
            that is most like the others.
        row_wise: Find the best row of each aspect by a search of its own and put the winners
            together (our reading of the formula; the paper compares whole tables).
        table_check: Check tables without a model and let those that pass win against those
            that do not, which saves calls; see `TableCheck`.
        table_only: Hide the texts when the preference is asked.
        max_table: Characters of all cells of a table; longer cells are cut, never rows.
        preference_samples: Preference calls for each order, at temperature 0.7 if several.
        embeddings: Finds near-duplicate aspects and serves the table check; default
            all-MiniLM-L6-v2.
        seed: Of tables, aspects, shuffles and coins.
        instructions: Your rubric, or the language to answer in; shown to every step.
        memory: Audited mistakes; those that fit a pair are shown where the preference is asked.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacements for `sc2.prompts.PROMPTS`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer: `SqliteSaver` for `invoke`,
            `AsyncSqliteSaver` for `ainvoke`.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "aspects", "proposals", "tables",
        "checks", "bracket", "table", "comparisons", "choices"}`. `verdict.score` is the
        probability of the label where its log-probability came, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    check_common(
        aspect_model=aspect_model,
        comparison_model=comparison_model,
        comparator_model=comparator_model,
        embeddings=embeddings,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    options = check_options(
        aspects=aspects,
        task=task,
        table_check=table_check,
        shots=shots,
        examples=examples,
        instructions=instructions,
        samples=samples,
        inference=inference,
        orders=orders,
        n_aspects=n_aspects,
        aspect_samples=aspect_samples,
        agreement=agreement,
        row_wise=row_wise,
        table_only=table_only,
        max_table=max_table,
        preference_samples=preference_samples,
        seed=seed,
        repairs=repairs,
    )
    chosen, version = prompt_set(texts.PROMPTS, prompts)
    own = Channel(model, temperature)
    others = {"aspects": aspect_model, "table": comparison_model, "match": comparator_model}
    channels = {
        step: Channel(other, temperature) if other else own for step, other in others.items()
    }
    channels["preference"] = own
    ask_as = partial(Question, method="sc2", version=version, repairs=repairs, cache=cache)
    compares = not options.aspects or (options.table_check and options.table_check.embed)
    embed = embeddings or (default_embeddings() if compares else SentenceEmbeddings())
    reminding = reminder(memory, recall, allow_leak, [own.context])
    judge = Reasoning(
        options,
        aspects=ask_as(
            step="aspects",
            channel=channels["aspects"],
            prompt=chosen["aspects"],
            shape=aspects_shape(n_aspects),
            parse=parse_aspects,
            sampled=True,
        ),
        table=ask_as(
            step="table",
            channel=channels["table"],
            prompt=chosen["table"],
            shape=Aspects,  # replaced for each pair: its rows are the pair's aspects
            label="{unit}",
            sampled=True,
        ),
        match=ask_as(
            step="match",
            channel=channels["match"],
            prompt=chosen["match"],
            shape=Decision,
            parse=parse_decision,
            label="{unit}",
        ),
        preference=ask_as(
            step="preference",
            channel=own,
            prompt=chosen["table_only" if table_only else "preference"],
            shape=Preferred,
            parse=parse_preference,
            measure=label_probability,
            sampled=preference_samples > 1,
            logprobs=True,
        ),
        embeddings=embed,
        reminding=reminding,
    )
    compiled = _graph(judge).compile(checkpointer=checkpointer, store=store, name=name)
    return finish(
        compiled,
        method="sc2",
        options={
            **options.as_json(),
            "embeddings": type(embed).__name__,
            **({"memory": reminding.mark()} if reminding else {}),
        },
        models={step: channel.identity for step, channel in channels.items()},
        prompt_version=version,
        calls=options.calls(),
        branches=options.branches(),
        memory=memory,
    )


def _graph(judge: Reasoning) -> StateGraph[SC2State, None, Pair, SC2Result]:
    graph: StateGraph[SC2State, None, Pair, SC2Result] = StateGraph(
        SC2State, input_schema=RememberedPair, output_schema=SC2Result
    )
    after: Literal["check", "round"] = "check" if judge.options.table_check else "round"
    graph.add_node("begin", Node(judge.begin))
    graph.add_node("aspects", Node(judge.propose))
    graph.add_node("agree", Node(judge.agree))
    graph.add_node("table", Node(judge.compare))
    if after == "check":
        graph.add_node("check", Node(judge.check))
        graph.add_edge("check", "round")
    graph.add_node("round", Node(judge.round))
    graph.add_node("match", Node(judge.meet))
    graph.add_node("preference", Node(judge.prefer))
    graph.add_node("verdict", Node(judge.conclude))
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("begin", judge.ask_aspects, ["aspects", "agree", END])
    graph.add_edge("aspects", "agree")
    graph.add_conditional_edges("agree", judge.ask_tables, ["table", "round"])
    graph.add_edge("table", after)
    graph.add_conditional_edges("round", judge.go_on, ["match", "preference", "verdict"])
    graph.add_edge("match", "round")
    graph.add_edge("preference", "verdict")
    graph.add_edge("verdict", END)
    return graph
