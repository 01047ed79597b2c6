"""openevals' judges and trajectory evaluators; its prompts stay in `openevals.prompts`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from langchain_judges.compat.calls import AsyncEvaluator, in_threads, recorded, result_of
from langchain_judges.compat.prompted import WORDS, OwnPromptJudge, PromptLike, prompt_options
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.trajectory_match import AGREE, ArgumentsMatch, unmatched
from langchain_judges.options import check_value
from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.record import told_apart
from langchain_judges.rows.texts import Message, ToolCall, plain, shown

Examples = Sequence[Mapping[str, Any]] | None
Extraction = Literal["none", "llm", "markdown_code_blocks"]

TRAJECTORY_ACCURACY_PROMPT = WORDS["trajectory"]
TRAJECTORY_ACCURACY_PROMPT_WITH_REFERENCE = WORDS["trajectory_with_reference"]


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
    """Create an evaluator from a prompt of the caller's own.

    Args:
        prompt: A string with `{inputs}`, `{outputs}`, `{reference_outputs}` or any keyword of
            the call, a LangChain prompt, or a function of the keywords to messages.
        feedback_key: Key of the result.
        judge: A chat model, or a client of OpenAI's protocol.
        model: The name of the model, where `judge` is None or a client.
        system: The system message for a prompt that is a string.
        continuous: A number from 0 to 1 instead of true or false.
        choices: The numbers that the score may be.
        use_reasoning: Ask for a reason before the score.
        few_shot_examples: `{"inputs", "outputs", "score", "reasoning"}`, shown at its end.
        output_schema: A pydantic model, `TypedDict` or JSON schema of the reply instead of a
            score; the reply itself is then returned.
        structured_output_kwargs: Accepted and ignored: the package finds out by itself how
            the model returns structured output.

    Returns:
        A coroutine function of `inputs`, `outputs`, `reference_outputs`, `attachments` and the
        prompt's other variables to `{"key", "score", "comment", "metadata"}`. It raises
        `NotJudgedError` where there is no score.
    """
    own = OwnPromptJudge(**prompt_options(locals()))
    name = "llm_as_judge" if feedback_key == "score" else f"llm_as_{feedback_key}_judge"

    async def evaluate(
        *, inputs: Any = None, outputs: Any = None, reference_outputs: Any = None, **kwargs: Any
    ) -> Any:
        row = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        return await judge_row(own, name, feedback_key, {**row, **kwargs})

    return evaluate


create_llm_as_judge = in_threads(create_async_llm_as_judge)


async def judge_row(
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
        return record(result_of(key, **data), key)


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
    own = OwnPromptJudge(**prompt_options(locals()))

    async def evaluate(*, outputs: Any, reference_outputs: Any = None, **kwargs: Any) -> Any:
        row = {"outputs": outputs, "reference_outputs": reference_outputs, **kwargs}
        texts = {"outputs": _written(outputs), "reference_outputs": _written(reference_outputs)}
        shown = {**kwargs, **texts}
        return await judge_row(own, f"llm_as_{feedback_key}_judge", feedback_key, row, shown)

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
    own = OwnPromptJudge(**prompt_options(locals()))
    reader = OwnPromptJudge(WORDS["extract_code"], judge=judge, model=model, output_schema=_Code)

    async def code_of(outputs: Any) -> Any:
        if code_extractor is not None:
            code = code_extractor(outputs)
            return await code if hasattr(code, "__await__") else code
        said = [] if isinstance(outputs, str) else _messages_of(outputs, "outputs")
        text = plain(said[-1]["content"]) if said else str(outputs)
        if code_extraction_strategy == "llm":
            return (await reader.ask("extract_code", {"outputs": text})).code
        return _blocks(text) if code_extraction_strategy == "markdown_code_blocks" else text

    async def evaluate(
        *, inputs: Any = None, outputs: Any, reference_outputs: Any = None, **kwargs: Any
    ) -> Any:
        row = {"inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        with recorded("code_llm_as_judge", {**row, **kwargs}) as record:
            code = await code_of(outputs)
            if code is None:
                failed = {"code_extraction_failed": True}
                return record(result_of(feedback_key, False, metadata=failed), feedback_key)
            data = await own.ask("code_llm_as_judge", {**row, **kwargs, "outputs": code})
            return record(result_of(feedback_key, **data), feedback_key)

    return evaluate


create_code_llm_as_judge = in_threads(create_async_code_llm_as_judge)


class _Code(BaseModel):
    """The code in a text."""

    code: str | None


_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_NO_CODE = {"bash", "sh", "shell", "zsh", "fish", "console", "terminal", "json"}


def _blocks(text: str) -> str | None:
    """The code in the blocks of a text, None without any."""
    found = [code for language, code in _BLOCK.findall(text) if language not in _NO_CODE]
    return "\n".join(found) or None


MatchMode = Literal["strict", "unordered", "subset", "superset"]
ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]
_Override = ArgumentsMode | list[str] | Callable[[Any, Any], bool]
Overrides = Mapping[str, _Override] | None
_AS_OURS: Mapping[Any, Any] = {"exact": "equal", "ignore": "ignored"}


def matching(
    matches: Mapping[MatchMode, Callable[..., bool]], absent: object
) -> Callable[..., AsyncEvaluator]:
    """Factory of evaluators that compare trajectories.

    Args:
        matches: The comparison of two trajectories that each mode stands for.
        absent: The value of a missing argument; None makes it equal to null.
    """

    def create_async_trajectory_match_evaluator(
        *,
        trajectory_match_mode: MatchMode = "strict",
        tool_args_match_mode: ArgumentsMode = "exact",
        tool_args_match_overrides: Overrides = None,
    ) -> AsyncEvaluator:
        """Create an evaluator that compares an agent's calls of tools with a reference.

        Args:
            trajectory_match_mode: The same roles and calls in order; the same calls in any
                order; only calls of the reference; or at least those.
            tool_args_match_mode: How arguments must agree.
            tool_args_match_overrides: The same by a tool's name: a mode, paths of the arguments
                that must be equal, or a function of both arguments.

        Returns:
            A coroutine function of `outputs` and `reference_outputs`, messages or
            `{"messages"}`, to `{"key", "score", "comment", "metadata"}`, the score true or
            false.

        Raises:
            OptionError: A mode is not allowed.
        """
        check_value("trajectory_match_mode", trajectory_match_mode, MatchMode)
        agree = _agreement(tool_args_match_mode, tool_args_match_overrides, absent)
        key = f"trajectory_{trajectory_match_mode}_match"

        async def evaluate(*, outputs: Any, reference_outputs: Any, **kwargs: Any) -> Any:
            row = {"outputs": outputs, "reference_outputs": reference_outputs, **kwargs}
            with recorded(key, row) as record:
                made = _messages_of(outputs, "outputs")
                wanted = _messages_of(reference_outputs, "reference_outputs")
                score = matches[trajectory_match_mode](made, wanted, agree)
                return record(result_of(key, score), key)

        return evaluate

    return create_async_trajectory_match_evaluator


def _messages_of(value: Any, field: str) -> list[Message]:
    """Messages in a list, alone, or under `messages`.

    Raises:
        InputError: There are none.
    """
    inner = value.get("messages") if isinstance(value, Mapping) and "role" not in value else value
    messages = told_apart(messages_in(inner)) if inner else []
    if inner is None or (inner and not messages):
        raise InputError(f"`{field}` must be messages, or have 'messages', got {value!r}")
    return messages


def _written(value: Any) -> str:
    """An agent's messages as a prompt shows them; empty if there are none."""
    return shown(_messages_of(value, "outputs")) if value else ""


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def has(more: Sequence[Message], less: Sequence[Message], agree: ArgumentsMatch) -> bool:
    """Whether all calls of some messages are among those of others."""
    return not unmatched(_calls(more), _calls(less), agree)[0]


def _strict(made: Sequence[Message], wanted: Sequence[Message], agree: ArgumentsMatch) -> bool:
    return len(made) == len(wanted) and all(
        one["role"] == other["role"] and not any(unmatched(_calls([one]), _calls([other]), agree))
        for one, other in zip(made, wanted, strict=True)
    )


def _within(made: Sequence[Message], wanted: Sequence[Message], agree: ArgumentsMatch) -> bool:
    return has(wanted, made, lambda name, one, other: agree(name, other, one))


MATCHES: Mapping[MatchMode, Callable[..., bool]] = {
    "strict": _strict,
    "unordered": lambda *given: has(*given) and _within(*given),
    "subset": _within,
    "superset": has,
}


def _agreement(mode: ArgumentsMode, overrides: Overrides, absent: object) -> ArgumentsMatch:
    """Function that compares the arguments of two calls.

    Args:
        mode: How all must agree.
        overrides: How those of some tools must, by name.
        absent: The value of a missing argument; None makes it equal to null.

    Raises:
        OptionError: A mode is not allowed.
    """
    check_value("tool_args_match_mode", mode, ArgumentsMode)
    own = {name: each for name, each in (overrides or {}).items() if each}
    for name, each in own.items():
        check_value(f"tool_args_match_overrides[{name!r}]", each, _Override)

    def agree(name: str, made: Any, wanted: Any) -> bool:
        how = own.get(name, mode)
        if callable(how):
            return bool(how(made, wanted))
        if isinstance(how, str):
            return AGREE[_AS_OURS.get(how, how)](name, made, wanted)
        pairs = [(_at(made, path, absent), _at(wanted, path, absent)) for path in how]
        return all(one == other and (one is not absent or one is None) for one, other in pairs)

    return agree


def _at(arguments: Any, path: str, absent: object) -> Any:
    for step in path.split("."):
        if not isinstance(arguments, Mapping) or step not in arguments:
            return absent
        arguments = arguments[step]
    return arguments


create_async_trajectory_match_evaluator = matching(MATCHES, object())
create_trajectory_match_evaluator = in_threads(create_async_trajectory_match_evaluator)
