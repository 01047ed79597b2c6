"""Read a judge's fields from the inputs and outputs of any application.

Datasets, runs and agents hold texts in many shapes: a string, a dictionary with one key or
many, chat messages as objects or as dictionaries, nested. A value that cannot be read raises
an `InputError` that names the expected key and the keys that were there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.media import content_in, with_media
from langchain_judges.rows.messages import message_in
from langchain_judges.rows.texts import Message, PlainText, plain
from langchain_judges.rows.trajectories import history, is_trajectory, trajectory, work

TextSource = str | Callable[[Any], object] | None
"""Where a text is found: a key, a path such as `"answer.text"` or `"choices.0"`, a function
of the whole value, or None to search the usual keys."""

Field = Literal["input", "output", "reference", "context"]

_USUAL: dict[Field, tuple[str, ...]] = {
    "input": (
        *("input", "question", "query", "prompt", "task", "instruction", "messages"),
        *("article", "document", "text", "content"),
    ),
    "output": (
        *("output", "answer", "response", "completion", "prediction", "result", "summary"),
        *("generation", "messages", "text", "content"),
    ),
    "reference": (
        *("reference", "expected", "output", "answer", "response", "target", "ground_truth"),
        *("completion", "summary", "messages", "text", "content"),
    ),
    "context": (
        *("context", "contexts", "documents", "source", "sources", "source_documents"),
        *("retrieved_documents", "passages"),
    ),
}


def check_words(**options: object) -> None:
    """Check options that must be a text or None.

    Raises:
        OptionError: An option is neither.
    """
    for name, value in options.items():
        if value is not None and not (isinstance(value, str) and value):
            raise OptionError(f"`{name}` must be a text, got {value!r}")


def check_sources(**sources: object) -> None:
    """Check options that say where a text is found.

    Raises:
        OptionError: An option is not a `TextSource`.
    """
    for name, source in sources.items():
        if not (source is None or isinstance(source, str) or callable(source)):
            raise OptionError(f"`{name}` must be a key, a path or a function, got {source!r}")


def task_in(value: object, source: TextSource = None) -> PlainText:
    """Return the task in an application's inputs: a text, or chat messages.

    Raises:
        InputError: The inputs hold no task.
    """
    part = _find(value, "input", source)
    if is_trajectory(part):
        return history(part)
    if content := content_in(part):
        return [{"role": "user", "content": content}]
    messages = messages_in(part)
    return messages if messages else _text(part, "input")


def answer_in(value: object, source: TextSource = None, field: Field = "output") -> str:
    """Return the text in an application's outputs; of chat messages, the assistant's last.

    Images and files are named by their marks.

    Raises:
        InputError: The outputs hold no text.
    """
    part = _find(value, field, source)
    if content := content_in(part):
        return plain(content)
    if messages := messages_in(part):
        replies = [m["content"] for m in messages if m["role"] == "assistant"]
        # A reference may be given as a single message of any role.
        return plain(replies[-1] if replies else messages[-1]["content"])
    return _text(part, field)


def work_in(value: object, source: TextSource = None, field: Field = "output") -> PlainText:
    """Return the `output` of a row from an application's outputs.

    It is a text, or a message if it contains images or files; for an agent that used tools it
    is the complete trajectory.

    Raises:
        InputError: The outputs hold no text.
    """
    part = _find(value, field, source)
    return work(part) if is_trajectory(part) else with_blocks(answer_in(part), part)


def with_blocks(text: str, origin: object) -> PlainText:
    """Return a text as a message with the images and files that it marks, if it marks any.

    Args:
        text: The text.
        origin: The value that the text was read from.
    """
    content = with_media(text, [origin, messages_in(origin)], marks=False)
    return text if isinstance(content, str) else [{"role": "assistant", "content": content}]


def reference_in(value: object, source: TextSource = None) -> str:
    """Return the text of a reference; for an agent that used tools, the complete trajectory.

    Raises:
        InputError: There is no text, or it contains an image or a file.
    """
    part = _find(value, "reference", source)
    text = trajectory(part) if is_trajectory(part) else work_in(part, None, "reference")
    if not isinstance(text, str):
        raise InputError("`reference`: must be a text, got an image or a file in it")
    return text


def expected_in(value: object, source: TextSource = None) -> str | list[str]:
    """Return the expected answer in a reference, or a list of accepted answers.

    Raises:
        InputError: The reference holds no answer.
    """
    answers = _find(value, "reference", source)
    if isinstance(answers, list) and answers and all(isinstance(part, str) for part in answers):
        return answers
    return reference_in(answers)


def context_in(value: object) -> str | None:
    r"""Return the text of a context, its parts joined; None if it is empty.

    >>> context_in({"documents": ["It rained.", {"page_content": "It snowed."}]})
    'It rained.\n\nIt snowed.'
    """
    if value is None or isinstance(value, str):
        return value or None
    if messages := messages_in(value):
        return "\n\n".join(plain(message["content"]) for message in messages)
    if isinstance(value, list | tuple):
        return "\n\n".join(filter(None, map(context_in, value))) or None
    if isinstance(text := getattr(value, "page_content", None), str):
        return text or None
    if isinstance(value, Mapping):
        names = [name for name in ("page_content", "text", "content") if value.get(name)]
        if names or len(value) == 1:
            return context_in(value[names[0]] if names else next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False, default=str)


def source_in(inputs: object, outputs: object, source: TextSource = None) -> str | None:
    """Return the source that an application used, from its inputs or its outputs.

    Args:
        inputs: The application's inputs.
        outputs: Its outputs; a retriever may return its documents there.
        source: A key or a path in either, a function of `{"inputs": …, "outputs": …}`, or
            None for the usual keys of the inputs.

    Raises:
        InputError: `source` is in neither of them.
    """
    if callable(source):
        part = _find({"inputs": inputs, "outputs": outputs}, "context", source)
    elif source is None:
        fields = inputs if isinstance(inputs, Mapping) else {}
        part = next((fields[name] for name in _USUAL["context"] if fields.get(name)), None)
    else:
        try:
            part = _follow(inputs, "context", source)
        except InputError:
            part = _follow(outputs, "context", source)
    text = context_in(part)
    if source is not None and text is None:
        raise InputError("`context`: there is nothing to check against, got nothing")
    return text


def messages_in(value: object) -> list[Message]:
    """Return the non-empty chat messages as `{"role", "content"}`; [] if there are none."""
    parts = value if isinstance(value, list | tuple) and value else [value]
    messages = [message_in(part) for part in parts]
    if any(message is None for message in messages):
        return []
    return [message for message in messages if message and plain(message["content"]).strip()]


def _find(value: object, field: Field, source: TextSource) -> object:
    """Return the part of `value` that a source names, or that stands under a usual key."""
    value = _thread_values(value)
    if callable(source):
        try:
            return source(value)
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            detail = f"{type(exc).__name__}: {exc}"
            message = f"`{field}`: the function failed ({detail}) on {_kind(value)}"
            raise InputError(message) from exc
    if source is not None:
        return _follow(value, field, source)
    while isinstance(value, Mapping) and not messages_in(value) and not content_in(value):
        names = [name for name in _USUAL[field] if value.get(name) is not None]
        if not names and len(value) != 1:
            keys = ", ".join(map(repr, _USUAL[field]))
            raise InputError(
                f"`{field}`: expected one of the keys {keys}, got {_kind(value)}; name the key "
                f"with `{field}=`"
            )
        value = value[names[0]] if names else next(iter(value.values()))
    return value


def _thread_values(value: object) -> object:
    """Return the state in LangGraph's snapshot of a thread; other values unchanged."""
    if isinstance(value, tuple) and isinstance(
        state := getattr(value, "values", None), Mapping
    ):
        return state
    if isinstance(value, Mapping) and {"values", "next"} <= value.keys():
        return value["values"]
    return value


def _follow(value: object, field: Field, path: str) -> object:
    if isinstance(value, Mapping) and path in value:
        return value[path]
    at = value
    for step in path.split("."):
        if isinstance(at, Mapping) and step in at:
            at = at[step]
        elif isinstance(at, Sequence) and not isinstance(at, str) and _place(step, len(at)):
            at = at[int(step)]
        else:
            in_path = "" if step == path else f" of {path!r}"
            raise InputError(f"`{field}`: expected the key {step!r}{in_path}, got {_kind(at)}")
    return at


def _place(step: str, length: int) -> bool:
    number = step.removeprefix("-")
    return number.isdecimal() and -length <= int(step) < length


def _kind(value: object) -> str:
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(repr, value))}" if value else "no keys"
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"


def _text(value: object, field: Field) -> str:
    """Render a value as text; structures become JSON."""
    if value is None:
        raise InputError(f"`{field}`: there is nothing to judge, got nothing")
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and plain(value).strip():
        text = plain(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.strip():
        raise InputError(f"`{field}`: the text is empty")
    return text
