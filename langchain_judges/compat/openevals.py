"""openevals' judges and trajectory evaluators; its prompts stay in `openevals.prompts`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.compat.calls import (
    AsyncEvaluator,
    in_threads,
    recorded,
    result_of,
)
from langchain_judges.compat.prompted import OwnPromptJudge, PromptLike, options_of
from langchain_judges.compat.trajectories import (
    create_async_trajectory_match_evaluator as create_async_trajectory_match_evaluator,
)
from langchain_judges.compat.trajectories import (
    create_trajectory_match_evaluator as create_trajectory_match_evaluator,
)
from langchain_judges.compat.trajectories import written
from langchain_judges.errors import OptionError

Examples = Sequence[Mapping[str, Any]] | None
Extraction = Literal["none", "llm", "markdown_code_blocks"]

TRAJECTORY_ACCURACY_PROMPT = """Is this the trajectory of an agent that did its work well?

It is accurate if each step follows from those before it, the steps come nearer to what was \
asked, and few of them are needless. What was asked stands in the input or the first message.

{outputs}
"""
"""Asks whether a trajectory is accurate."""
TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE = """Does this trajectory of an agent do the \
same work as the reference?

It is accurate if each step follows from those before it, the steps come nearer to what was \
asked, few of them are needless, and what it does and finds means the same as the reference.

{reference_outputs}

The trajectory:

{outputs}
"""
"""Asks whether a trajectory is accurate and means the same as a reference."""


def create_async_llm_as_judge(
    *,
    prompt: PromptLike,
    feedback_key: str = "score",
    judge: Any = None,
    model: str | None = None,
    system: str | None = None,
    continuous: bool = False,
    choices: list[float] | None = None,
    use_reasoning: bool = True,
    few_shot_examples: Examples = None,
    output_schema: Any = None,
    structured_output_kwargs: Mapping[str, Any] | None = None,
) -> AsyncEvaluator:
    """Create an evaluator that asks a prompt of the caller's own.

    Args:
        prompt: A string with `{inputs}`, `{outputs}`, `{reference_outputs}` or any keyword of
            the call, a LangChain prompt, or a function of the keywords to messages.
        feedback_key: Key of the result.
        judge: A chat model, or a client of OpenAI's protocol.
        model: The name of the model, where `judge` is None or a client.
        system: Put before a prompt that is a string.
        continuous: A number from 0 to 1 instead of true or false.
        choices: The numbers that the score may be.
        use_reasoning: Ask for a reason before the score.
        few_shot_examples: `{"inputs", "outputs", "score", "reasoning"}`, shown at its end.
        output_schema: A pydantic model, `TypedDict` or JSON schema of the reply instead of a
            score; the reply itself is then returned.
        structured_output_kwargs: Taken and not used: how the model is asked for its form is
            found out with it.

    Returns:
        A coroutine function of `inputs`, `outputs`, `reference_outputs`, `attachments` and the
        prompt's other variables to `{"key", "score", "comment", "metadata"}`. It raises
        `NotJudgedError` where there is no score.
    """
    own = OwnPromptJudge(**options_of(locals()))
    name = "llm_as_judge" if feedback_key == "score" else f"llm_as_{feedback_key}_judge"

    async def evaluate(
        *, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **kwargs: Any
    ) -> Any:
        row = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        return await judged(own, name, feedback_key, {**row, **kwargs})

    return evaluate


create_llm_as_judge = in_threads(create_async_llm_as_judge)


async def judged(
    own: OwnPromptJudge, name: str, key: str, row: Mapping[str, Any], shown: Any = None
) -> Any:
    """Judge a row, and return the result as openevals does.

    Args:
        own: The judge.
        name: What the evaluation is called in traces.
        key: Key of the result.
        row: What was given.
        shown: What the prompt shows, if not the row as it is.
    """
    with recorded(name, row) as record:
        data = await own.ask(name, row if shown is None else shown)
        if own.output_schema is not None:
            return record(data)
        return record(result_of(key, (data["score"], data.get("reasoning"))), key)


def create_async_trajectory_llm_as_judge(
    *,
    prompt: PromptLike = TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE,
    model: str | None = None,
    feedback_key: str = "trajectory_accuracy",
    judge: Any = None,
    continuous: bool = False,
    choices: list[float] | None = None,
    use_reasoning: bool = True,
    few_shot_examples: Examples = None,
    system: str | None = None,
) -> AsyncEvaluator:
    """Create an evaluator of an agent's messages; options as for `create_llm_as_judge`.

    Returns:
        A coroutine function of `outputs`, messages or `{"messages"}`, and `reference_outputs`.
    """
    own = OwnPromptJudge(**options_of(locals()))

    async def evaluate(*, outputs: Any, reference_outputs: Any = None, **kwargs: Any) -> Any:
        row = {"outputs": outputs, "reference_outputs": reference_outputs, **kwargs}
        texts = {"outputs": written(outputs), "reference_outputs": written(reference_outputs)}
        shown = {**kwargs, **texts}
        return await judged(own, f"llm_as_{feedback_key}_judge", feedback_key, row, shown)

    return evaluate


create_trajectory_llm_as_judge = in_threads(create_async_trajectory_llm_as_judge)


def create_async_code_llm_as_judge(
    *,
    prompt: PromptLike,
    feedback_key: str = "code_correctness",
    code_extraction_strategy: Extraction = "none",
    code_extractor: Callable[[Any], Any] | None = None,
    judge: Any = None,
    model: str | None = None,
    system: str | None = None,
    continuous: bool = False,
    choices: list[float] | None = None,
    use_reasoning: bool = True,
    few_shot_examples: Examples = None,
) -> AsyncEvaluator:
    """Create an evaluator of the code in a reply; other options as for `create_llm_as_judge`.

    The code is the whole text, what the model names as the code (`"llm"`), or the blocks of
    Markdown that hold any; or `code_extractor` finds it.

    Returns:
        As that of `create_llm_as_judge`; a text without code scores False, with
        `{"code_extraction_failed": True}` as its metadata.

    Raises:
        OptionError: Both ways to find the code are given.
    """
    if code_extractor is not None and code_extraction_strategy != "none":
        raise OptionError("give `code_extractor` or `code_extraction_strategy`, not both")
    own = OwnPromptJudge(**options_of(locals()))
    extractor = OwnPromptJudge(_EXTRACT, judge=judge, model=model, output_schema=_CODE)

    async def code_of(outputs: Any) -> Any:
        if code_extractor is not None:
            code = code_extractor(outputs)
            return await code if hasattr(code, "__await__") else code
        text = _last_text(outputs)
        if code_extraction_strategy == "llm":
            return (await extractor.ask("extract_code", {"outputs": text}))["code"]
        return _blocks(text) if code_extraction_strategy == "markdown_code_blocks" else text

    async def evaluate(
        *, inputs: Any = None, outputs: Any, reference_outputs: Any = None, **kwargs: Any
    ) -> Any:
        row = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        with recorded("code_llm_as_judge", {**row, **kwargs}) as record:
            code = await code_of(outputs)
            if code is None:
                failed = {"code_extraction_failed": True}
                return record(result_of(feedback_key, (False, None), failed), feedback_key)
            data = await own.ask("code_llm_as_judge", {**row, **kwargs, "outputs": code})
            scored = data["score"], data.get("reasoning")
            return record(result_of(feedback_key, scored), feedback_key)

    return evaluate


create_code_llm_as_judge = in_threads(create_async_code_llm_as_judge)

_EXTRACT = """Copy the code in this text, word for word and faults included, as one script; \
leave out shell commands and what installs packages. Where there is none, the code is null.

{outputs}
"""
_CODE = {
    "title": "Code",
    "type": "object",
    "properties": {"code": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
}
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NO_CODE = {"bash", "sh", "shell", "zsh", "fish", "console", "terminal", "json"}


def _blocks(text: str) -> str | None:
    """Return the code in the blocks of a text, None without any."""
    found = [code for language, code in _BLOCK.findall(text) if language not in _NO_CODE]
    return "\n".join(found) or None


def _last_text(outputs: Any) -> str:
    """Return the text of an application's outputs.

    Raises:
        OptionError: It has none.
    """
    if isinstance(outputs, str):
        return outputs
    messages = outputs.get("messages") if isinstance(outputs, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else outputs
    if isinstance(last, Mapping) and "content" in last:
        last = last["content"]
    text = getattr(last, "text", last)
    if not isinstance(text, str):
        raise OptionError(
            "`outputs` must be a text, a message or `{'messages'}`, or be read by a "
            f"`code_extractor`; got {outputs!r}"
        )
    return text
