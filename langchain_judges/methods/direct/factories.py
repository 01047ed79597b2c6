"""The factories of the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Recall
from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.judge import Judge, Setting, build
from langchain_judges.methods.direct.options import (
    Options,
    checked_aspects,
    checked_scale,
    checked_text,
)
from langchain_judges.methods.direct.state import DirectResult, LLMScoreResult, PlanSolveResult
from langchain_judges.methods.few_shot import worked_examples
from langchain_judges.orders import OrderRule

if TYPE_CHECKING:
    from langchain_judges.memory.failures import FailureMemory


def create_relative_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    orders: OrderRule = "strict",
    shots: int = 0,
    examples: Sequence[Mapping[str, Any]] | None = None,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "relative",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that is asked, in each order, which text is better, or if neither is.

    Zero-shot relative evaluation (Saha et al. 2023, section 4; the pairwise prompt of
    MT-Bench, in our words): two calls, a tie is allowed, and a text is preferred only if
    both orders prefer it.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.
        shots: Worked examples shown first; 0 to 5, where they are ours.
        examples: Worked examples of your own instead, in the form of `shots.WORKED`.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the mean
        probability of A over the orders where the model gives log-probabilities of the
        label, else 1, 0.5 or 0; a tie is 0.5.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    options = Options(
        method="relative",
        reads="label",
        orders=orders,
        shots=tuple(worked_examples(shots, examples)),
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    return build(setting, options, {"judge": texts.RELATIVE}, DirectResult)


def create_absolute_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    scale: tuple[int, int] = (1, 10),
    orders: OrderRule = "strict",
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "absolute",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that scores both texts in one call, in each order.

    Zero-shot absolute evaluation (Saha et al. 2023, section 4; the two-score prompt of
    MT-Bench, in our words): two calls, the higher score wins its order, equal scores are a
    tie, and a text is preferred only if both orders prefer it.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        scale: Lowest and highest score.
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.scores` are the
        sums over the orders, `verdict.score` the mean of 1, 0.5 and 0 over the orders.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    options = Options(
        method="absolute",
        reads="scores",
        orders=orders,
        scale=checked_scale(scale),
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    return build(setting, options, {"judge": texts.ABSOLUTE}, DirectResult)


def create_direct_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    aspects: Sequence[str] | None = None,
    orders: OrderRule = "none",
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "direct",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that is asked once for the better text (direct prompting).

    Yan et al. 2023 (SC², section 4), with or without aspects: one call, A stands first,
    and there is no tie.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        aspects: What to compare by, such as the offline aspects of SC².
        orders: `"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the
        probability of the label A where the model gives log-probabilities, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    options = Options(
        method="direct",
        reads="forced_label",
        orders=orders,
        aspects=checked_aspects(aspects),
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    return build(setting, options, {"judge": texts.DIRECT}, DirectResult)


def create_cot_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    shots: int = 0,
    examples: Sequence[Mapping[str, Any]] | None = None,
    orders: OrderRule = "none",
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "cot",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that thinks step by step and then names the better text.

    Chain of thought with no, one or more worked examples (Yan et al. 2023, SC², section 4
    and table 5): one call, A stands first, and there is no tie.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        shots: Worked examples shown first; 0 to 5, where they are ours.
        examples: Worked examples of your own instead, in the form of `shots.WORKED`.
        orders: `"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`, as `create_direct_judge`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    options = Options(
        method="cot",
        reads="forced_label",
        orders=orders,
        shots=tuple(worked_examples(shots, examples)),
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    return build(setting, options, {"judge": texts.COT}, DirectResult)


def create_self_consistency_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    prompt: Literal["cot", "relative"] = "cot",
    samples: int | None = None,
    shots: int = 0,
    examples: Sequence[Mapping[str, Any]] | None = None,
    orders: OrderRule | None = None,
    min_valid: int | None = None,
    seed: int = 0,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str | None = None,
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that asks for several replies and takes what most of them say.

    `prompt="cot"` is the self-consistency of Yan et al. 2023 (SC²): eight chains of thought,
    one order, and a seeded coin where they are even. `prompt="relative"` is that of Saha et
    al. 2023 (BSM): the relative prompt, as many samples in each order as its branching
    factor, which is five, an order without a plurality is a tie, and a text is preferred
    only if both orders prefer it. Samples are asked in parallel at temperature 0.7, each
    with a seed of its own; with one sample the judge is the chain of thought, or the
    relative judge, itself.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        prompt: `"cot"` or `"relative"`.
        samples: Replies in each order; default 8 for `"cot"`, 5 for `"relative"`.
        shots: Worked examples shown first; 0 to 5, where they are ours.
        examples: Worked examples of your own instead, in the form of `shots.WORKED`.
        orders: Default `"none"` for `"cot"`, `"strict"` for `"relative"`.
        min_valid: Fewest valid samples in an order; default more than half.
        seed: Of the samples and of the coin.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own and the 0.7 of samples.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces; default `"cot_sc"` or `"relative_sc"`.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.scores` are the
        votes, `verdict.score` the share of A (where a coin decided, a hair beside 0.5 on its
        side: a score above 0.5 always means A), `verdict.confidence` that of the preference.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    if prompt not in ("cot", "relative"):
        raise OptionError(f"`prompt` must be one of 'cot', 'relative', got {prompt!r}")
    cot = prompt == "cot"
    options = Options(
        method=f"{prompt}_sc",
        reads="forced_label" if cot else "label",
        orders=("none" if cot else "strict") if orders is None else orders,
        samples=(8 if cot else 5) if samples is None else samples,
        coin=cot,
        shots=tuple(worked_examples(shots, examples)),
        min_valid=min_valid,
        seed=seed,
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        options.method if name is None else name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    own = texts.COT if cot else texts.RELATIVE
    return build(setting, options, {"judge": own}, DirectResult)


def create_plan_solve_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    max_criteria: int = 5,
    scale: tuple[int, int] = (1, 5),
    orders: OrderRule = "strict",
    min_valid: int | None = None,
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "plan_solve",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create a judge that plans criteria, then scores all of them in one call.

    Plan & solve as Saha et al. 2023 (section 4) compare it with Branch-Solve-Merge: one
    call plans from the request alone, one call for each order scores both texts on every
    criterion, the sums are compared, and a text is preferred only if both orders prefer it.
    That is three calls. A criterion that one order lacks is left out of both.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        max_criteria: Most criteria in the plan.
        scale: Lowest and highest score.
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.
        min_valid: Fewest criteria that must be scored; default more than half.
        instructions: Your rubric, or the language to answer in; shown to both steps.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacements for the prompts `plan` and `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "criteria", "subscores"}`.
        `verdict.scores` are the totals over the orders, `verdict.score` the mean of 1, 0.5
        and 0 over them.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    if not isinstance(max_criteria, int) or isinstance(max_criteria, bool) or max_criteria < 1:
        raise OptionError(
            f"`max_criteria` must be a whole number of at least 1, got {max_criteria!r}"
        )
    options = Options(
        method="plan_solve",
        reads="scores",
        orders=orders,
        scale=checked_scale(scale),
        max_criteria=max_criteria,
        min_valid=min_valid,
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    own = {"plan": texts.PLAN, "judge": texts.SOLVE}
    return build(setting, options, own, PlanSolveResult)


def create_llm_score_judge(  # noqa: PLR0913 - the common keywords of every judge
    model: str | BaseChatModel,
    *,
    orders: OrderRule = "none",
    instructions: str | None = None,
    memory: FailureMemory | None = None,
    recall: Recall | str | None = None,
    allow_leak: bool = False,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "llm_score",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> Judge:
    """Create the judge without roles that DRPE is compared with (Wu et al. 2023).

    `LLMScore`, in the NLPCC version `GPT-D3`: one call names the better passage, with a
    reason. A is the candidate; B is the reference and stands first, as for DRPE. Its score
    is `1(A preferred) · P`, where P is the length-normalised probability of reason and
    choice (equation 3); without log-probabilities P is one, and a note says so.

    Args:
        model: A chat model, or a name as `resolve_model` takes it.
        orders: `"none"` (the paper: the reference first), `"strict"`, `"lenient"` or
            `"score_mean"`.
        instructions: Your rubric, or the language to answer in.
        memory: Audited mistakes; those that fit a pair are shown to `judge`.
        recall: Which of them, such as `"knn:8"`; default the memory's own choice.
        allow_leak: Allow examples of the pair itself and its group; results then say so.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply.
        prompts: Replacement for the prompt `judge`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "llm_score"}`. `llm_score` is
        the number to correlate with people's, None where nothing was judged;
        `verdict.scores` holds it for A and for B, `verdict.score` the probability of A.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    options = Options(
        method="llm_score",
        reads="forced_label",
        orders=orders,
        reference_first=True,
        instructions=checked_text(instructions),
        repairs=repairs,
    )
    setting = Setting(
        model,
        temperature,
        prompts,
        name,
        checkpointer,
        cache,
        store,
        memory,
        recall,
        allow_leak,
    )
    return build(setting, options, {"judge": texts.LLM_SCORE}, LLMScoreResult)
