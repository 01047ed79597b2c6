"""agentevals' trajectory evaluators; `extract_langgraph_trajectory_*` stay in agentevals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_judges.compat import calls, openevals, prompted
from langchain_judges.errors import InputError
from langchain_judges.rows.checks import KNOWN_NAMES
from langchain_judges.rows.record import record_in
from langchain_judges.rows.texts import shown

TRAJECTORY_ACCURACY_PROMPT = openevals.TRAJECTORY_ACCURACY_PROMPT
TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE = openevals.TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE
DEFAULT_REF_COMPARE_PROMPT: str = prompted.WORDS["graph"]

# As in agentevals 0.0.9: `subset` compares the reference's arguments with those made,
# `unordered` compares both ways, and paths that neither has are equal.
create_async_trajectory_match_evaluator = openevals.matching(
    {
        **openevals.MATCHES,
        "unordered": lambda a, b, agree: openevals.has(a, b, agree) and openevals.has(b, a, agree),
        "subset": lambda made, wanted, agree: openevals.has(wanted, made, agree),
    },
    absent=None,
)
create_trajectory_match_evaluator = calls.in_threads(create_async_trajectory_match_evaluator)
create_async_trajectory_llm_as_judge = openevals.create_async_trajectory_llm_as_judge
create_trajectory_llm_as_judge = openevals.create_trajectory_llm_as_judge


def create_async_graph_trajectory_llm_as_judge(
    *,
    prompt: prompted.PromptLike = DEFAULT_REF_COMPARE_PROMPT,
    model: str | None = None,
    feedback_key: str = "graph_trajectory_accuracy",
    judge: Any = None,
    continuous: bool = False,
    choices: list[float] | None = None,
    use_reasoning: bool = True,
    few_shot_examples: openevals.Examples = None,
) -> calls.AsyncEvaluator:
    """Create an evaluator of the nodes that a graph went through.

    Args:
        prompt: May name `{thread}`: each turn's input, nodes and result.
        model: As for `create_llm_as_judge`, like the rest.
        feedback_key: Key of the result.
        judge: A chat model.
        continuous: A number from 0 to 1 instead of true or false.
        choices: The numbers that the score may be.
        use_reasoning: Ask for a reason before the score.
        few_shot_examples: Appended to the prompt.

    Returns:
        A coroutine function of `inputs`, `outputs` and `reference_outputs`, as
        `extract_langgraph_trajectory_from_thread` returns them.
    """
    own = prompted.OwnPromptJudge(**prompted.prompt_options(locals()))

    async def evaluate(
        *, inputs: Any = None, outputs: Any, reference_outputs: Any = None, **kwargs: Any
    ) -> Any:
        row = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        known = _thread(reference_outputs, reference_outputs) if reference_outputs else ""
        shown = {**row, **kwargs, "thread": _thread(inputs, outputs)}
        shown["reference_outputs"] = known
        name = f"llm_as_{feedback_key}_judge"
        return await openevals.judge_row(own, name, feedback_key, row, shown)

    return evaluate


create_graph_trajectory_llm_as_judge = calls.in_threads(create_async_graph_trajectory_llm_as_judge)


def _thread(inputs: Any, trajectory: Mapping[str, Any]) -> str:
    """The turns of a thread as a prompt shows them.

    Raises:
        InputError: The turns do not have equally many inputs, steps and results.
    """
    inputs = inputs.get("inputs") if isinstance(inputs, Mapping) else inputs
    thread = shown(record_in({**trajectory, "inputs": inputs}))
    if not inputs or not thread:
        raise InputError(KNOWN_NAMES["uneven"])
    return thread


async def graph_trajectory_strict_match_async(
    *, outputs: Any, reference_outputs: Any, **kwargs: Any
) -> Any:
    """Whether a graph went through the same nodes as a reference, turn by turn.

    Args:
        outputs: `{"steps"}`.
        reference_outputs: `{"steps"}` of the reference.
        **kwargs: Ignored; LangSmith passes more.

    Returns:
        `{"key", "score", "comment", "metadata"}`, the score true or false.

    Raises:
        InputError: One of them is missing.
    """
    key = "graph_trajectory_strict_match"
    row = {"outputs": outputs, "reference_outputs": reference_outputs}
    with calls.recorded(key, row) as record:
        if outputs is None or reference_outputs is None:
            raise InputError("both `outputs` and `reference_outputs` are compared")
        return record(calls.result_of(key, outputs["steps"] == reference_outputs["steps"]), key)


graph_trajectory_strict_match = calls.now(graph_trajectory_strict_match_async)
