"""What a judge takes, and how the inputs and outputs of any application become it.

Datasets, runs and agents hold texts in many shapes: a string, a dictionary with one key or
many, chat messages as objects or as dictionaries, nested. Everything here reads them; what
cannot be read is an `InputError` that says which key was wanted and which were seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.media import is_content, with_media
from langchain_judges.rows.messages import message_in
from langchain_judges.rows.texts import Text, plain
from langchain_judges.rows.trajectories import history, is_trajectory, trajectory, work

Source = str | Callable[[Any], Any] | None
"""Where a text is found: a key, a path such as `"answer.text"` or `"choices.0"`, a function
of the whole value, or None: found by itself."""

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


def check_words(**options: Any) -> None:
    """Check options that are a text or None.

    Raises:
        OptionError: One is something else.
    """
    for name, value in options.items():
        if value is not None and not (isinstance(value, str) and value):
            raise OptionError(f"`{name}` must be a text, got {value!r}")


def check_sources(**sources: Any) -> None:
    """Check options that say where a text is found.

    Raises:
        OptionError: One is no `Source`.
    """
    for name, source in sources.items():
        if not (source is None or isinstance(source, str) or callable(source)):
            raise OptionError(f"`{name}` must be a key, a path or a function, got {source!r}")


def score_of(verdict: Mapping[str, Any]) -> float | int | None:
    """Return a verdict as a number: how far A is preferred, or the label; None: not judged."""
    if decision(verdict) is None:
        return None
    label = verdict.get("label")
    score = label if isinstance(label, int | float) else verdict.get("score")
    return None if score is None or math.isnan(score) else score


def decision(verdict: Mapping[str, Any]) -> Any:
    """Return the preference or the label of a verdict; None: not judged."""
    return verdict.get("preference", verdict.get("label"))


def reason_of(verdict: Mapping[str, Any]) -> str:
    """Return the reason of a verdict's first failure."""
    return next((str(f["reason"]) for f in verdict.get("failures") or []), "unknown")


def comment_of(verdict: Mapping[str, Any]) -> str:
    """Return a verdict's rationale; where nothing was judged, with the first failure."""
    said = str(verdict.get("rationale") or "")
    if decision(verdict) is not None:
        return said
    said = said or "Not judged."
    for failure in list(verdict.get("failures") or [])[:1]:
        place = ", ".join(filter(None, [failure.get("step"), failure.get("unit")]))
        said += f" {failure['reason']} ({place}): {failure.get('detail', '')}".rstrip(": ")
    return said


def task_in(value: Any, source: Source = None) -> Text:
    """Return the task that some inputs hold: a text, or chat messages.

    Raises:
        InputError: There is none.
    """
    found = _find(value, "input", source)
    if is_trajectory(found):
        return history(found)
    if is_content(found):
        return [{"role": "user", "content": found if isinstance(found, list) else [found]}]
    messages = messages_in(found)
    return messages if messages else _text(found, "input")


def answer_in(value: Any, source: Source = None, field: Field = "output") -> str:
    """Return the text that some outputs hold; of chat messages the last that answers.

    Images and files are named by their marks.

    Raises:
        InputError: There is none.
    """
    found = _find(value, field, source)
    if is_content(found):
        return plain(found if isinstance(found, list) else [found])
    if messages := messages_in(found):
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        # A reference may be given as a single message of any role.
        return plain(said[-1] if said else messages[-1]["content"])
    return _text(found, field)


def work_in(value: Any, source: Source = None, field: Field = "output") -> Text:
    """Return what some outputs hold to be judged, as the `output` of a row.

    It is a text, or a message where images or files stand in it; an agent's whole work where
    it used tools.

    Raises:
        InputError: There is none.
    """
    found = _find(value, field, source)
    return work(found) if is_trajectory(found) else with_blocks(answer_in(found), found)


def with_blocks(text: str, found: Any) -> Text:
    """Return a text as a message with the images and files that it marks, if it marks any.

    Args:
        text: The text.
        found: What it was read from.
    """
    content = with_media(text, [found, messages_in(found)], marks=False)
    return text if isinstance(content, str) else [{"role": "assistant", "content": content}]


def reference_in(value: Any, source: Source = None) -> str:
    """Return the text of a reference, or an agent's whole work where it used tools.

    Raises:
        InputError: There is none, or an image or file stands in it.
    """
    found = _find(value, "reference", source)
    text = trajectory(found) if is_trajectory(found) else work_in(found, None, "reference")
    if not isinstance(text, str):
        raise InputError("`reference`: must be a text, saw an image or a file in it")
    return text


def expected_in(value: Any, source: Source = None) -> str | list[str]:
    """Return the expected answer that some reference holds, or a list of accepted ones.

    Raises:
        InputError: There is none.
    """
    found = _find(value, "reference", source)
    if isinstance(found, list) and found and all(isinstance(part, str) for part in found):
        return found
    return reference_in(found)


def context_in(value: Any) -> str | None:
    r"""Return what some context says, its parts one after the other; None: it is empty.

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
        known = [name for name in ("page_content", "text", "content") if value.get(name)]
        if known or len(value) == 1:
            return context_in(value[known[0]] if known else next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False, default=str)


def source_in(inputs: Any, outputs: Any, source: Source = None) -> str | None:
    """Return the source that an application used: it stands in its inputs or its outputs.

    Args:
        inputs: What the application was given.
        outputs: What it returned; one that retrieves may return its documents.
        source: A key or a path of either, a function of `{"inputs": …, "outputs": …}`, or
            None: the usual names in the inputs.

    Raises:
        InputError: `source` names what neither has.
    """
    if callable(source):
        found = _find({"inputs": inputs, "outputs": outputs}, "context", source)
    elif source is None:
        known = inputs if isinstance(inputs, Mapping) else {}
        found = next((known[name] for name in _USUAL["context"] if known.get(name)), None)
    else:
        try:
            found = _follow(inputs, "context", source)
        except InputError:
            found = _follow(outputs, "context", source)
    text = context_in(found)
    if source is not None and text is None:
        raise InputError("`context`: there is nothing to check against, saw nothing")
    return text


def messages_in(value: Any) -> list[dict[str, Any]]:
    """Return chat messages as `{"role", "content"}`, without empty ones; [] if it has none."""
    parts = value if isinstance(value, list | tuple) and value else [value]
    read = [message_in(part) for part in parts]
    if any(message is None for message in read):
        return []
    return [message for message in read if message and plain(message["content"]).strip()]


def _find(value: Any, field: Field, source: Source) -> Any:
    """Return the part of `value` that is meant by a source, or by the usual names."""
    value = _thread_values(value)
    if callable(source):
        try:
            return source(value)
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            detail = f"{type(exc).__name__}: {exc}"
            said = f"`{field}`: the function failed ({detail}) on {_saw(value)}"
            raise InputError(said) from exc
    if source is not None:
        return _follow(value, field, source)
    while isinstance(value, Mapping) and not messages_in(value) and not is_content(value):
        known = [name for name in _USUAL[field] if value.get(name) is not None]
        if not known and len(value) != 1:
            wanted = ", ".join(map(repr, _USUAL[field]))
            raise InputError(
                f"`{field}`: wanted one of the keys {wanted}, saw {_saw(value)}; name it by "
                f"`{field}=`"
            )
        value = value[known[0]] if known else next(iter(value.values()))
    return value


def _thread_values(value: Any) -> Any:
    """Return the state in what LangGraph says of a thread; other values as they are."""
    if isinstance(value, tuple) and isinstance(
        found := getattr(value, "values", None), Mapping
    ):
        return found
    whole = isinstance(value, Mapping) and {"values", "next"} <= value.keys()
    return value["values"] if whole else value


def _follow(value: Any, field: Field, path: str) -> Any:
    if isinstance(value, Mapping) and path in value:
        return value[path]
    at = value
    for step in path.split("."):
        if isinstance(at, Mapping) and step in at:
            at = at[step]
        elif isinstance(at, Sequence) and not isinstance(at, str) and _place(step, len(at)):
            at = at[int(step)]
        else:
            whole = "" if step == path else f" of {path!r}"
            raise InputError(f"`{field}`: wanted the key {step!r}{whole}, saw {_saw(at)}")
    return at


def _place(step: str, length: int) -> bool:
    number = step.removeprefix("-")
    return number.isdecimal() and -length <= int(step) < length


def _saw(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"the keys {', '.join(map(repr, value))}" if value else "no keys"
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


def _text(value: Any, field: Field) -> str:
    """Render what was found; structures as JSON, as people and models read them."""
    if value is None:
        raise InputError(f"`{field}`: there is nothing to judge, saw nothing")
    if isinstance(value, str):
        text = value
    elif isinstance(value, list) and plain(value).strip():
        text = plain(value)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    if not text.strip():
        raise InputError(f"`{field}`: the text is empty")
    return text
