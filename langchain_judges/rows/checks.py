"""The kind of a row, decided here once, and what it must have to be judged."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import InputError
from langchain_judges.rows.texts import is_blank, plain

RowKind = Literal["pair", "item", "task"]
"""Two texts to compare, one text to label, or concepts that a text must use."""
Kind = Literal["pair", "item"]
"""Whether a judge compares two texts or labels one."""


def kind_in(fields: Container[str]) -> RowKind | None:
    """Return the kind of row that has some fields; None where they hold nothing to judge.

    >>> kind_in(["input", "output_a", "output_b"]), kind_in(["input"])
    ('pair', None)
    """
    if "concepts" in fields:
        return "task"
    if "output_a" in fields:
        return "pair"
    return "item" if "output" in fields else None


def kind_of_row(row: Mapping[str, object]) -> RowKind:
    """Return the kind of a row, by its fields; without a text it is a pair that lacks them.

    >>> kind_of_row({"input": "Why?", "output": "Because."})
    'item'
    """
    return kind_in(row) or "pair"


def kind_of_example(example: Mapping[str, object]) -> Literal["pair", "item"]:
    """Return the kind of an example of a memory: that of a pair has both texts as `output`.

    >>> kind_of_example({"output": {"output_a": "Yes.", "output_b": "No."}})
    'pair'
    """
    return "pair" if isinstance(example.get("output"), Mapping) else "item"


def kind_of_result(result: Mapping[str, Any]) -> RowKind:
    """Return the kind of the row that a result is of.

    A row of `judge_many` names it; for what a judge or writer returns, the form decides.

    >>> kind_of_result({"verdict": {"label": 1}})
    'item'
    """
    kind: RowKind | None = result.get("kind")
    if kind is not None:
        return kind
    if "text" in result:
        return "task"
    return kind_of_verdict(result.get("verdict") or {})


def kind_of_verdict(verdict: Mapping[str, object]) -> Literal["pair", "item"]:
    """Return the kind of the row that a verdict, or its part by one criterion, is of.

    That of an item has a label.

    >>> kind_of_verdict({"preference": "A"})
    'pair'
    """
    return "item" if "label" in verdict else "pair"


def check_text(value: object, field: str) -> None:
    """Check that a field is a text or chat messages, and not empty.

    Raises:
        InputError: It is missing, of another type, or empty.
    """
    if value is None:
        raise InputError(f"the field `{field}` is missing or null")
    if isinstance(value, str):
        _check_words(value, field)
        return
    rule = (
        f"`{field}` must be a text or a list of messages, each a LangChain message or a "
        "dictionary with `role` and `content`"
    )
    if not isinstance(value, list) or not value:
        raise InputError(f"{rule}, got {type(value).__name__} {str(value)[:40]!r}")
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise InputError(f"{rule}, got the message {str(message)[:60]!r}")
        _check_message(message, field)


def _check_message(message: Mapping[str, Any], field: str) -> None:
    calls = message.get("tool_calls")
    if calls or message["role"] == "tool":
        _check_characters(f"{plain(message.get('content'))}{calls or ''}", field)
    else:
        _check_words(plain(message.get("content")), field)


def _check_texts(row: Mapping[str, object], fields: Sequence[str]) -> None:
    for field in fields:
        if row.get(field) is None:
            raise InputError(f"the field `{field}` is missing or null; {fields_of(row)}")
        check_text(row[field], field)


_OTHER_NAMES = {
    "input": ("inputs", "question", "query", "prompt", "task"),
    "output": (
        "outputs",
        "messages",
        "answer",
        "response",
        "completion",
        "prediction",
        "result",
    ),
    "output_a": ("answer_a", "response_a", "chosen"),
    "output_b": ("answer_b", "response_b", "rejected"),
}
"""What people call the fields of a row; tables may, and a row of `invoke` is told."""


def fields_of(row: Mapping[str, object]) -> str:
    """List the fields of a row, with what to call those that have another name."""
    # A judge's state also has its own fields, which are still empty.
    names = [name for name, value in row.items() if value not in (None, [])]
    sentence = f"the fields are {', '.join(map(repr, names)) or 'none'}"
    if any(";" in str(name) for name in row):
        return f"{sentence}; the columns seem to be separated by semicolons: use commas"
    renamed = [
        f"{name!r} `{field}`"
        for field, others in _OTHER_NAMES.items()
        for name in names
        if name in others and field not in names
    ]
    return f"{sentence}; call {', '.join(renamed)}" if renamed else sentence


def expected_answers(item: Mapping[str, object]) -> list[str]:
    """Return an item's expected answers as a list, empty if it has none."""
    expected = item.get("expected")
    if expected is None:
        return []
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, Iterable):
        return [str(answer) for answer in expected]
    raise InputError(f"`expected` must be a text or a list of texts, got {expected!r}")


def check_basis(item: Mapping[str, object], rubric: str | None) -> None:
    """Check that an item can be judged by something.

    Args:
        item: The item.
        rubric: The judge's own rubric, if any.

    Raises:
        InputError: There is neither an expected answer, nor a source, nor a rubric.
    """
    if not (item.get("expected") or item.get("source") or item.get("rubric") or rubric):
        raise InputError("an item needs `expected` or `source`, or the judge needs a `rubric`")


def _check_words(text: str, field: str) -> None:
    if is_blank(text):
        raise InputError(f"the field `{field}` is empty, or has a message without text")
    _check_characters(text, field)


def _check_characters(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InputError(f"the field `{field}` has a broken character: {exc.reason}") from exc


def check_task(task: object) -> None:
    """Check that a writing task has concepts, and that its instruction, if any, is a text.

    Raises:
        InputError: `concepts` is not a list of words, or empty; `instruction` is not a text.
    """
    if not isinstance(task, dict):
        raise InputError(f"a writing task must be an object, got {type(task).__name__}")
    concepts = task.get("concepts")
    if not isinstance(concepts, list) or not concepts:
        raise InputError(
            "`concepts` must be a list of at least one word that the text has to use, "
            f"got {str(concepts)[:40]!r}"
        )
    for concept in concepts:
        if not isinstance(concept, str):
            kind = f"{type(concept).__name__} {str(concept)[:40]!r}"
            raise InputError(f"`concepts` must be a list of texts, got {kind} in it")
        _check_words(concept, "concepts")
    _check_optional(task, "instruction")


def _check_optional(row: Mapping[str, object], field: str) -> None:
    text = row.get(field)
    if text is None:
        return
    if not isinstance(text, str):
        raise InputError(f"`{field}` must be a text, got {type(text).__name__}")
    check_text(text, field)


def check_pair(pair: object) -> None:
    """Check that `pair` has the fields and types of `Pair`.

    Raises:
        InputError: A field is missing, empty or of the wrong type.
    """
    if not isinstance(pair, dict):
        raise InputError(f"a pair must be an object, got {type(pair).__name__}")
    _check_texts(pair, ("input", "output_a", "output_b"))
    _check_optional(pair, "reference")


def check_item(item: object) -> None:
    """Check that `item` has the fields and types of `Item`.

    Raises:
        InputError: A field is missing, empty or of the wrong type.
    """
    if not isinstance(item, dict):
        raise InputError(f"an item must be an object, got {type(item).__name__}")
    _check_texts(item, ("input", "output"))
    for field in ("source", "rubric", "family", "group"):
        value = item.get(field)
        if value is not None and not isinstance(value, str):
            raise InputError(f"`{field}` must be a text, got {type(value).__name__}")
    if item.get("source"):
        check_text(item["source"], "source")
    expected = item.get("expected")
    if expected is None:
        return
    answers = expected if isinstance(expected, list) else [expected]
    if not answers or not all(isinstance(answer, str) for answer in answers):
        raise InputError(f"`expected` must be a text or a list of texts, got {expected!r}")
    for answer in answers:
        check_text(answer, "expected")
