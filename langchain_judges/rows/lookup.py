"""Finding texts in the data of applications: under usual names, a key or a path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from langchain_judges.errors import InputError
from langchain_judges.options import Rule, check_value
from langchain_judges.rows import checks
from langchain_judges.rows import record as records
from langchain_judges.rows.data import as_json, is_nothing, listed
from langchain_judges.rows.documents import CONTEXTS, context_of
from langchain_judges.rows.media import content_in
from langchain_judges.rows.messages import messages_in
from langchain_judges.rows.responses import first_reply

# Where a text is found: a key, a path such as `"answer.text"` or `"choices.0"`, a function of
# the whole value, or None to search the usual keys.
TextSource = Annotated[str | Callable[[Any], object] | None, Rule("a key, a path or a function")]

Field = Literal["input", "output", "reference", "context", "rubric"]
# Usual keys of data, the first of which is read: those of columns, then others.
USUAL: dict[Field, tuple[str, ...]] = {
    "input": ("input", *checks.NAMES["input"], "document", "text", "content", "contents"),
    **{"output": records.ANSWER_KEYS, "context": CONTEXTS, "rubric": ()},
    "reference": tuple(checks.KNOWN_NAMES["references"]),
}

# A word, of which a name, an id or a number alone has no more than one.
WORD = re.compile(checks.KNOWN_NAMES["word"])


def check_words(**options: object) -> None:
    """Check options that must be a text or None.

    Raises:
        OptionError: An option is neither.
    """
    for name, value in options.items():
        check_value(name, value, Annotated[str, MinLen(1)] | None)


def check_sources(**sources: object) -> None:
    """Check options that say where a text is found.

    Raises:
        OptionError: An option is not a `TextSource`.
    """
    for name, source in sources.items():
        check_value(name, source, TextSource)


def find(value: object, field: Field, source: TextSource, *, named: bool = False) -> object:
    """The part of `value` that a source names, or that stands under a usual key.

    Data below a usual key are the part, whatever their own keys are; `named` says that `value`
    stood below one.
    """
    if callable(source):
        try:
            return source(records.state_values(value))
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            problem, keys = f"{type(exc).__name__}: {exc}", keys_in(records.state_values(value))
            raise InputError(f"`{field}`: the function failed ({problem}) on {keys}") from exc
    if source is not None:
        return follow(records.state_values(value), field, source)
    while isinstance(value := records.opened(value), Mapping) and not is_record(value, field):
        names = usual_in(value, field)
        is_null = not names and _is_null(value, field, named=named)
        is_whole = not is_null and (named or _is_one(value, field))
        if not names and is_whole and is_shown_whole(value, field):
            return value
        if not names and len(value) != 1:
            got = keys_in(value) + (", the usual ones of which hold nothing" if is_null else "")
            told = {"field": field, "usual": ", ".join(map(repr, USUAL[field])), "got": got}
            raise InputError(checks.KNOWN_NAMES["no_key"].format(**told))
        named = named or bool(names)
        value = value[names[0]] if names else next(iter(value.values()))
    return value


def usual_in(value: Mapping[str, object], field: Field) -> list[str]:
    """The usual names under which a value holds something, the first of which is read.

    In place of an answer that is empty a reply may stand under a name that a graph's state has.
    """
    names = [name for name in USUAL[field] if not is_nothing(value.get(name))]
    if not names and field == "output" and {*USUAL[field]} & value.keys():
        names = [name for name in checks.KNOWN_NAMES["beside"] if not is_nothing(value.get(name))]
    return sorted(names, key=lesser_names(value, names).__contains__)


def lesser_names(value: Mapping[str, object], names: Sequence[str]) -> list[str]:
    """Names that may be of something else, as of who asks, where one holds a text for certain.

    Such a name holds no more than a word, a person's name, an id or an object; another holds a
    sentence or messages, or has no such name and holds a word.
    """
    doubted = [n for n in names if checks.plain_name(n) in checks.KNOWN_NAMES["doubted"]]
    lesser = [name for name in doubted if _said_in(value[name]) < 2]
    others = (name for name in names if name not in lesser)
    return lesser if any(_said_in(value[name]) for name in others) else []


def _said_in(value: object) -> int:
    """The weight of a value: 2 of a sentence or messages, 1 of a word, 0 of anything else."""
    if isinstance(value, str):
        words = len(WORD.findall(value))
        return min(words, 1 if words < 4 and value.istitle() else 2)
    own = [*map(value.get, USUAL["input"])] if isinstance(value, Mapping) else listed(value)
    return 2 if records.record_in(value) else max(map(_said_in, own), default=0)


def _is_null(value: Mapping[str, object], field: Field, *, named: bool) -> bool:
    """Whether a task or an answer is there and holds nothing: what stands beside it is none.

    Below a name of its own all that is there is the part, unless it is nothing. The messages of
    a state are there though no node wrote one: what others wrote is the part, if it is a text.
    """
    empty = {*USUAL[field]} & value.keys()
    if field not in ("input", "output") or not empty:
        return False
    if empty == {"messages"}:
        held = [own for name, own in value.items() if not checks.is_of_run(name)]
        return not WORD.search(as_json([own for own in held if not isinstance(own, int | None)]))
    return not named or all(map(is_nothing, value.values()))


def find_in(values: Mapping[str, object], field: Field, place: TextSource) -> object:
    """Value at a place in the first of two values that has it; a function gets both."""
    if callable(place):
        return find(values, field, place)
    first, second = values.values()
    with suppress(InputError):
        return find(first, field, place)
    return find(second, field, place)


def _is_one(value: Mapping[str, object], field: Field) -> bool:
    """Whether data that nobody named can be read as one whole, without a guess."""
    has_records = any(records.record_in(part) for part in value.values())
    has_documents = field == "output" and context_of(value) is not None
    return field != "rubric" and bool(value) and not (has_records or has_documents)


def is_shown_whole(value: object, field: Field) -> bool:
    """Whether no text of a value has a usual name, and nothing in it is a message.

    A text alone is a text where its keys say no more than that it is one.
    """
    tells = False
    while value and isinstance(value, Mapping) and not is_record(value, field):
        names = usual_in(value, field)
        if any(not checks.is_plain(name) for name in names):
            return False
        if names or len(value) != 1:
            return tells or not names
        [(name, value)] = value.items()
        tells |= not checks.is_plain(name, field)
    is_there = not is_nothing(value)
    is_whole = tells and is_there if isinstance(value, str) else tells or is_there
    return is_whole and not records.record_in(value)


def is_record(value: Mapping[str, object], field: Field) -> bool:
    """Whether a mapping is read as a whole: no text of it has a name of its own."""
    own = usual_in(value, field)
    if field in ("output", "reference") and (
        records.steps_taken(value) or records.calls_beside(value) or records.trajectory_of(value)
    ):
        return True
    if records.is_state(value):
        is_first = not own or own[0] == "messages"
        return is_first or (field == "output" and bool(messages_in(value.get("messages"))))
    present = (name for name in USUAL[field] if value.get(name) is not None)
    is_own = next(present, None) == first_reply(value)[0] or messages_in(value) or content_in(value)
    return bool(is_own or (not own and records.record_in(value)))


def follow(value: object, field: str, path: str) -> object:
    """Value under a key or a path; of a `label` one that people gave.

    Raises:
        InputError: There is no such key; the message says which are there.
    """
    at: Any = value
    steps = path.split(".")
    while steps:
        # A key may have dots itself, as attributes of OpenTelemetry have.
        keys = (".".join(steps[:n]) for n in range(len(steps), 0, -1))
        key = next((k for k in keys if isinstance(at, Mapping) and k in at), None)
        if key is not None:
            held = _given_in(at, key, is_row=at is value) if field == "label" else at[key]
            at, steps = held, steps[key.count(".") + 1 :]
        elif isinstance(at, Sequence) and not isinstance(at, str) and _place(steps[0], len(at)):
            at, steps = at[int(steps[0])], steps[1:]
        else:
            whole = "" if steps[0] == path else f" of {path!r}"
            raise InputError(f"`{field}`: expected the key {steps[0]!r}{whole}, got {keys_in(at)}")
    return at


def known_at(record: object, path: str, field: str = "label") -> object:
    """The value under a key or a path, of what a row need not have; else None."""
    with suppress(InputError):
        return follow(record, field, path)
    return None


# A mark beside an answer, in small letters, that says that it is none.
_NOT_GIVEN = re.compile(checks.KNOWN_NAMES["not_given"]).fullmatch


def _given_in(holder: Mapping[str, Any], key: str, *, is_row: bool) -> object:
    """The value under a key without answers that, as is said beside them, nobody gave.

    Argilla has what it says of a list of answers in a list. A row is an answer itself where
    Prodigy wrote it; in any other what is beside a label is not of it.
    """
    held, marks = holder[key], holder.get(f"{key}.status")
    if isinstance(held, list) and isinstance(marks, list) and len(held) == len(marks):
        both = zip(held, marks, strict=True)
        return [None if _NOT_GIVEN(f"status {mark}".lower()) else own for own, mark in both]
    if is_row and "_task_hash" not in holder:
        return held
    # A flag beside a criterion is one more; beside what annotations call a label it is a mark.
    is_label = key in checks.KNOWN_NAMES["label_keys"]
    own = {n: each for n, each in holder.items() if n != key or key == "answer"}
    marks = (f"{n} {each}".lower() for n, each in own.items() if is_label or isinstance(each, str))
    return None if any(map(_NOT_GIVEN, marks)) else held


def not_given_at(record: object, path: str) -> int:
    """The number of answers at a path that, as is said beside them, nobody gave."""
    sides = (checks.votes_in(known_at(record, path, field)) for field in ("columns", "label"))
    every, given = (sum(not is_nothing(vote) for vote in votes) for votes in sides)
    return every - given


def _place(step: str, length: int) -> bool:
    return step.removeprefix("-").isdecimal() and -length <= int(step) < length


def keys_in(value: object) -> str:
    """Description of a value for an error: its keys, or its type."""
    if isinstance(value, Mapping):
        several = "s" if len(value) > 1 else ""
        return f"the key{several} {', '.join(map(repr, value))}" if value else "no keys"
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"
