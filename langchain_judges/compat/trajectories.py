"""Trajectories compared call by call, in the words of openevals and agentevals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

from langchain_judges.compat.calls import AsyncEvaluator, in_threads, recorded, result_of
from langchain_judges.errors import InputError
from langchain_judges.integrations.trajectory_match import AGREE, ArgumentsMatch, unmatched
from langchain_judges.options import check_value
from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.texts import Message, ToolCall, shown

MatchMode = Literal["strict", "unordered", "subset", "superset"]
ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]
_Override = ArgumentsMode | list[str] | Callable[[Any, Any], bool]
Overrides = Mapping[str, _Override] | None
_AS_OURS: Mapping[Any, Any] = {"exact": "equal", "ignore": "ignored"}


def create_async_trajectory_match_evaluator(
    *,
    trajectory_match_mode: MatchMode = "strict",
    tool_args_match_mode: ArgumentsMode = "exact",
    tool_args_match_overrides: Overrides = None,
) -> AsyncEvaluator:
    """Create an evaluator that compares an agent's calls of tools with a reference.

    Args:
        trajectory_match_mode: The same roles and calls in order; the same calls in any order;
            only calls of the reference; or at least those.
        tool_args_match_mode: How arguments must agree.
        tool_args_match_overrides: The same by a tool's name: a mode, paths of the arguments
            that must be equal, or a function of both arguments.

    Returns:
        A coroutine function of `outputs` and `reference_outputs`, messages or `{"messages"}`,
        to `{"key", "score", "comment", "metadata"}`, the score true or false.

    Raises:
        OptionError: A mode is not allowed.
    """
    return match_evaluator(
        trajectory_match_mode,
        agreement(tool_args_match_mode, tool_args_match_overrides),
        MATCHES,
    )


create_trajectory_match_evaluator = in_threads(create_async_trajectory_match_evaluator)


def match_evaluator(
    mode: MatchMode, agree: ArgumentsMatch, matches: Mapping[MatchMode, Callable[..., bool]]
) -> AsyncEvaluator:
    """Return an evaluator of trajectories.

    Args:
        mode: How calls must agree.
        agree: How their arguments must.
        matches: What each mode says of both trajectories.
    """
    check_value("trajectory_match_mode", mode, MatchMode)
    key = f"trajectory_{mode}_match"

    async def evaluate(*, outputs: Any, reference_outputs: Any, **kwargs: Any) -> Any:
        row = {"outputs": outputs, "reference_outputs": reference_outputs, **kwargs}
        with recorded(key, row) as record:
            made = messages_of(outputs, "outputs")
            wanted = messages_of(reference_outputs, "reference_outputs")
            return record(result_of(key, (matches[mode](made, wanted, agree), None)), key)

    return evaluate


def messages_of(value: Any, field: str) -> list[Message]:
    """Return messages in a list, alone, or under `messages`.

    Raises:
        InputError: There are none.
    """
    inner = value
    if isinstance(value, Mapping) and "role" not in value:
        inner = value.get("messages")
    messages = messages_in(_with_contents(inner)) if inner else []
    if inner is None or (inner and not messages):
        raise InputError(
            f"`{field}` must be messages, or hold them as 'messages', got {value!r}"
        )
    return messages


def _with_contents(value: Any) -> Any:
    """Return messages of which none lacks its content: an assistant's may, for openevals."""
    if isinstance(value, Mapping) and "role" in value:
        return {"content": "", **value}
    return [_with_contents(each) for each in value] if isinstance(value, list) else value


def written(value: Any) -> str:
    """Return an agent's messages as a prompt shows them; of none an empty text."""
    return shown(messages_of(value, "outputs")) if value else ""


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def has(more: Sequence[Message], less: Sequence[Message], agree: ArgumentsMatch) -> bool:
    """Say whether all calls of some messages are among those of others."""
    return not unmatched(_calls(more), _calls(less), agree)[0]


def _strict(made: Sequence[Message], wanted: Sequence[Message], agree: ArgumentsMatch) -> bool:
    turns = list(zip_longest(made, wanted))
    return all(
        one is not None
        and other is not None
        and one["role"] == other["role"]
        and not any(unmatched(_calls([one]), _calls([other]), agree))
        for one, other in turns
    )


def _reversed(agree: ArgumentsMatch) -> ArgumentsMatch:
    return lambda name, made, wanted: agree(name, wanted, made)


MATCHES: Mapping[MatchMode, Callable[..., bool]] = {
    "strict": _strict,
    "unordered": lambda made, wanted, agree: (
        has(made, wanted, agree) and has(wanted, made, _reversed(agree))
    ),
    "subset": lambda made, wanted, agree: has(wanted, made, _reversed(agree)),
    "superset": has,
}


def agreement(
    mode: ArgumentsMode, overrides: Overrides, absent: object = object()
) -> ArgumentsMatch:
    """Return what says whether the arguments of two calls agree.

    Args:
        mode: How all must agree.
        overrides: How those of some tools must, by name.
        absent: What an argument that is not there counts as; None: as null, and equal.

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
