"""Finding texts in the data of applications: under usual names, a key or a path.

What a text is checked against is among them: texts and documents, as applications have them.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Annotated, Any, Literal, cast

from annotated_types import MinLen
from pydantic import BaseModel

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.options import Rule, check_value
from langchain_judges.rows import checks
from langchain_judges.rows import messages as chat
from langchain_judges.rows import record as records
from langchain_judges.rows.media import content_in, kind_of_block, mark_of
from langchain_judges.rows.texts import NO_TASK, READ, is_blank, plain
from langchain_judges.verdict import NOTES, Notes, first_names

# Where a text is found: a key, a path such as `"answer.text"` or `"choices.0"`, a function of
# the whole value, or None to search the usual keys.
TextSource = Annotated[str | Callable[[Any], object] | None, Rule("a key, a path or a function")]

Field = Literal["input", "output", "reference", "context", "rubric"]

# The names under which people have what a text is checked against.
CONTEXTS: tuple[str, ...] = tuple(chat.KNOWN_NAMES["contexts"])
# The beginning of a word, or two characters of a script that puts no spaces between words.
_WORD = re.compile(
    r"(?<!\S)[^\w\s]*[^\W\d_]|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff]{2}"
)
# Where a line of a document would read as the beginning of another one.
_LIKE_A_HEAD = re.compile(r"^(?=(?:> )*\[\d+\](?: |$))", re.MULTILINE)

# Fields of a row to which a column may be mapped.
FIELDS = frozenset({*READ, *checks.ANNOTATIONS, "id", "task_kind", "family", "chosen", "rejected"})
# Field of a row → its column, or several.
Columns = Mapping[str, str | Sequence[str]]

_NEEDED = {"pair": ["input", "output_a", "output_b"], "item": ["input", "output"]}
_OPTIONAL = {"pair": ["reference"], "item": ["expected", "source"]}


def understood(
    names: Collection[str],
    columns: Columns | None,
    takes: str,
    *,
    needed: Sequence[str] = ("input", "output", "output_a", "output_b"),
) -> dict[str, str | Sequence[str]]:
    """The columns of a table by field: those named, and those with a usual name.

    A field whose own name is a column keeps it; an instruction and its input are one task.

    Args:
        names: The table's columns, as keys of a row where errors are to name places in it.
        columns: Field → column, as a person named them.
        takes: `"pair"` or `"item"`.
        needed: Fields that must be there, of those that rows need.

    Raises:
        InputError: A field that is needed has no column; the message names what is there, and
            the nearest.
    """
    found = dict(columns or {})
    if "input" not in found and {"instruction", "input"} <= {*names}:
        found["input"] = ["instruction", "input"]
    used = columns_in(found)
    plain = {checks.plain_name(name): name for name in names if name not in used}
    rivals = {"chosen", "rejected"} <= {*names, *found}
    # `reference`, a field of pairs, is also what people call an item's `expected`.
    taken = FIELDS - {"reference"}
    # Outputs first: `messages` alone are what happened, and beside an answer what was asked.
    first, *others = _NEEDED[takes]
    for field in (*others, first, *_OPTIONAL[takes]):
        if field in found or field in names or (rivals and field.startswith("output_")):
            continue
        known = (name for name in (field, *checks.NAMES[field]) if name in plain)
        if name := next((name for name in known if plain[name] not in taken), None):
            found[field] = plain.pop(name)
        elif field in needed and field in _NEEDED[takes]:
            raise _not_found(field, names, takes, [*plain.values()])
    return found


def _not_found(field: str, names: Iterable[str], takes: str, free: Sequence[str]) -> InputError:
    own = {*map(checks.plain_name, names)}
    if field == "output_a" and own & {"output", *checks.NAMES["output"]}:
        what = "these rows are single texts, and the judge compares two"
    elif field == "output" and own & {"output_a", *checks.NAMES["output_a"]}:
        what = "these rows are pairs, and the judge takes one text"
    else:
        usual = [field, *checks.NAMES[field]]
        alike = (repr(name) for name in free if did_you_mean(checks.plain_name(name), usual))
        none = ", or [] (--column input=) where texts answer nothing" * (field == "input")
        place = checks.place_in(names, field) or next(alike, f"COLUMN{none}")
        what = f"name it by `columns` {field}={place}"
    there = ", ".join(map(repr, names)) or "none"
    return InputError(f"no column for `{field}` is found; there are {there}; {what}")


def named_row(row: Mapping[str, Any], takes: str | None) -> Mapping[str, Any]:
    """Row with its fields renamed from their other usual names.

    >>> named_row({"question": "Why?", "prediction": "So."}, "item")
    {'output': 'So.', 'input': 'Why?'}
    """
    return mapped(row, columns_of(row, takes), takes, {}) if takes in _NEEDED else row


def columns_of(row: Mapping[str, Any], takes: str | None) -> Columns:
    """The columns by field of one row, by their usual names."""
    if (takes := takes or checks.kind_in(row)) not in _NEEDED:
        return {}
    names = [str(name) for name, value in row.items() if value is not None]
    if isinstance(task := row.get("input"), str) and is_blank(task):
        names.remove("input")  # Alpaca's, beside an instruction that needs none
    return _columns(tuple(names), takes)


def with_variables(row: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """A row whose fields of some names stand among its `variables` too."""
    own = {name: row[name] for name in names if row.get(name) is not None}
    known = known if isinstance(known := row.get("variables"), Mapping) else {}
    return {**row, "variables": {**known, **own}} if own else row


@lru_cache(256)
def _columns(names: Sequence[str], takes: str) -> Columns:
    return understood(names, None, takes, needed=())


# Two ways to name a pair's texts: naming one leaves columns that have the other's names.
_RIVALS = ({"output_a", "output_b"}, {"chosen", "rejected"})


def mapped(
    record: Mapping[str, Any], columns: Columns, takes: str | None, named: Columns
) -> dict[str, Any]:
    """A record with the named columns as fields, and with notes on columns that fit them too.

    Args:
        record: The record.
        columns: Columns by field, as they are understood, or paths such as `item.question`.
        takes: `"pair"` or `"item"`, if known.
        named: Those that a person named, who has looked: they are in no doubt.

    Raises:
        InputError: A column is missing.
    """
    given = record
    are_told = {"input", "output"} & {*named}
    if takes == "item" and "messages" in columns_in(columns) and not are_told:
        record, columns = _state_of(record, columns, named)
    used = {*columns_in(columns)}
    below = tuple(f"{key}." for key in record)
    if paths := [name for name in used - record.keys() if name.startswith(below)]:
        told = {n: own for n, own in columns.items() if n.split(".")[0] in checks.ANNOTATIONS}
        facts = columns_in(told)
        read = {p: known_at if p in facts else partial(follow, field="columns") for p in paths}
        record = {**record, **{path: read[path](record, path=path) for path in paths}}
    if missing := next((each for each in sorted(used) if each not in record), None):
        several = "," in missing and {each.strip() for each in missing.split(",")} <= {*record}
        several_hint = "name several in a list, or repeat --column; "
        hint = several_hint if several else did_you_mean(missing, record)
        raise InputError(f"no column {missing!r}; {hint}there are {list(record)!r}")
    notes = Notes.of(record)
    if not (notes or notes.columns or notes.named):  # it is read for the first time
        notes = _doubts(record, columns, takes, named)
        notes.columns, notes.named = given, bool(named)
    for mine, others in (_RIVALS, _RIVALS[::-1]):
        used |= others if mine & columns.keys() else set()
    rest = {name: value for name, value in record.items() if name not in {*used, NOTES}}
    fields: dict[str, Any] = {
        field: record[own] if isinstance(own, str) else [record[each] for each in own] or None
        for field, own in columns.items()
    }
    if isinstance(own := columns.get("input"), list | tuple):
        fields["input"] = _joined(fields["input"]) if own else NO_TASK
    whole = rest | fields
    names = (name for name in ("input", "output", "output_a", "output_b") if name in whole)
    empty = (n for n in names if isinstance(whole[n], str | list | None) and not whole[n])
    notes.empty = {name: columns.get(name, name) for name in empty}
    is_told = NOTES in record or notes or notes.named or used or "chosen" in record
    is_told = is_told or record is not given
    return whole | ({NOTES: notes} if is_told or notes.empty else {})


def _state_of(
    record: Mapping[str, Any], columns: Columns, named: Columns
) -> tuple[Mapping[str, Any], Columns]:
    """A record whose messages are what happened, with them and what is beside as its output.

    They are the task where they end with a request, and another column holds the answer.
    """
    said = chat.messages_in(chat.plain_data(record.get("messages")))
    is_task = said and said[-1]["role"] in ("user", "system")
    if not said or (is_task and columns.get("input") == "messages"):
        return record, columns
    own = [name for name in record if name in records.OF_STATE and name not in columns_in(named)]
    rest = {name: value for name, value in record.items() if name not in own}
    left = {field: column for field, column in columns.items() if column not in own}
    return {**rest, "output": {name: record[name] for name in own}}, left


def _joined(cells: Sequence[object]) -> object:
    """The task of several columns: each is read by itself, and an empty one is left out."""
    parts = [chat.plain_data(cell) for cell in cells if not chat.is_nothing(cell)]
    for place, part in enumerate(parts):
        with suppress(InputError):  # it is shown as data then
            parts[place] = find(part, "input", None, named=True)
    if not any(map(records.record_in, parts)):
        return "\n".join(map(chat.text_in, parts)) if len(parts) > 1 else next(iter(parts), None)
    said = (
        records.record_in(part) or [{"role": "user", "content": chat.text_in(part)}]
        for part in parts
    )
    return [message for each in said for message in each]


def _doubts(
    record: Mapping[str, Any], columns: Columns, takes: str | None, named: Columns
) -> Notes:
    """Notes on columns with a usual name of a field that is read from another."""
    used = {*columns_in(columns), *(FIELDS - {"reference"})}
    notes = Notes()
    for field in (*_NEEDED.get(takes or "", ()), *_OPTIONAL.get(takes or "", ())):
        rest = [name for name in record if name not in used]
        alike = [name for name in rest if checks.plain_name(str(name)) in checks.NAMES[field]]
        read = record.get(column := str(columns.get(field, field)))
        if field in named or not alike or read is None:
            continue
        # A list may be of texts that are shown from other columns, as a preferred one.
        shown = lines_in([record[name] for name in used & record.keys()])
        others = (n for n in alike if type(v := record[n]) is not list or lines_in(v) - shown)
        differ = (n for n in others if chat.as_json(record[n]) != chat.as_json(read))
        if rivals := [n for n in differ if not chat.is_nothing(record[n])]:
            notes.add(field, f"is read from {column!r}; not shown: {first_names(rivals)}")
    return notes


def check_columns(columns: Columns) -> None:
    """Check that no field is read from several columns which one column must hold.

    Raises:
        OptionError: One is, or two systems are not two.
    """
    for field, own in columns.items():
        fit = {"human_votes": own, "input": True, "source": own, "systems": len(own) == 2}
        fit["label"] = not own
        if not isinstance(own, str) and not fit.get(field.partition(".")[0]):
            raise OptionError(
                f"`columns` reads {field!r} from {', '.join(own) or 'none'}; several columns "
                "may hold human_votes, input and source, two of them systems, one another field"
            )


def columns_in(columns: Columns) -> list[str]:
    """The columns that fields are read from."""
    return [each for own in columns.values() for each in ([own] if isinstance(own, str) else own)]


# Usual keys of data, the first of which is read: those of columns, then others.
USUAL: dict[Field, tuple[str, ...]] = {
    "input": ("input", *checks.NAMES["input"], "document", "text", "content"),
    **{"output": records.ANSWER_KEYS, "context": CONTEXTS, "rubric": ()},
    "reference": tuple(chat.KNOWN_NAMES["references"]),
}


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
            message = f"`{field}`: the function failed ({problem}) on {keys}"
            raise InputError(message) from exc
    if source is not None:
        return follow(records.state_values(value), field, source)
    while isinstance(value := records.opened(value), Mapping) and not _is_record(value, field):
        names = [name for name in USUAL[field] if value.get(name) is not None]
        is_null = not names and _is_null(value, field, named=named)
        is_whole = not is_null and (named or _is_one(value, field))
        if not names and is_whole and _is_data(value, field):
            return value
        if not names and len(value) != 1:
            keys = ", ".join(map(repr, USUAL[field]))
            raise InputError(
                f"`{field}`: expected one of the keys {keys}, got {keys_in(value)}"
                f"{', the usual ones of which are null' if is_null else ''}; "
                f"name the key with `{field}=`, or all of it with `{field}=lambda value: value`"
            )
        named = named or bool(names)
        value = value[names[0]] if names else next(iter(value.values()))
    return value


def _is_null(value: Mapping[str, object], field: Field, *, named: bool) -> bool:
    """Whether a task or an answer is there and null: what stands beside it is none.

    Below a name of its own all that is there is the part, unless it is nothing.
    """
    if field not in ("input", "output") or not {*USUAL[field]} & value.keys():
        return False
    return not named or all(map(chat.is_nothing, value.values()))


def find_in(values: Mapping[str, object], field: Field, place: TextSource) -> object:
    """Value at a place in the first of two values that has it; a function gets both."""
    if callable(place):
        return find(values, field, place)
    first, second = values.values()
    with suppress(InputError):
        return find(first, field, place)
    return find(second, field, place)


def unread(value: object, field: Field, case: Mapping[str, object], text: object) -> str:
    """Which key or reply `find` takes where others have something to show; "" if none has.

    That is a usual name, or a list of texts or data that is nowhere in a case. Of a reference
    the only key is told too, whose name may say that it is no answer.
    """
    shown, is_task = lines_in(case), field == "input"
    while isinstance(value := records.state_values(records.opened(value)), Mapping):
        calls = records.calls_beside(value)
        is_record = _is_record(value, field) and not calls
        own = "messages" if records.is_state(value) else "intermediate_steps"
        usual = (own,) if is_record else USUAL[field]
        names = [name for name in usual if value.get(name) is not None]
        rivals, words = [], []
        told = _SHOWN_ELSEWHERE - ({"__interrupt__"} if not is_record else set())
        first = "tools_called" if value.get("tool_calls") is None else "tool_calls"
        told |= {first} if calls else set()
        for name in sorted(names and value.keys() - {names[0], *told}, key=repr):
            part = chat.messages_in(value[name]) or value[name]
            is_other = name in names and chat.as_json(part) != chat.as_json(value[names[0]])
            # A word or a number beside a task may ask something; beside an answer it is about it.
            said = lines_in(part) if field == "output" else lines_of(part, name if is_task else "")
            if is_other or said - shown:
                rivals.append(name)
            elif not (chat.is_nothing(part) or lines_in(part) & shown):
                words.append(name)
        if rivals:
            return f"is read from {names[0]!r}; not shown: {first_names(rivals + words)}"
        if is_record and (number := len(records.replies_in(value))) > 1:
            return f"has {number:,} replies; the first is shown"
        if is_record or (not names and (len(value) != 1 or field == "reference")):
            return f"is read from {keys_in(value)}" if len(value) == 1 and not is_record else ""
        value = value[names[0]] if names else next(iter(value.values()))
    listed = value if isinstance(text, str) and isinstance(value, list) else []
    is_one = len(listed) > 1 and text == "\n".join(map(str, listed))
    return f"is a list of {len(listed):,} texts, shown as one" if is_one else ""


# What a record has of a state, what another field is read from, and what has nothing to show.
_OF_RUN = {*chat.KNOWN_NAMES["state"], *chat.KNOWN_NAMES["origin"]}
_SHOWN_ELSEWHERE = {"agent_outcome", *CONTEXTS, *_OF_RUN} - {"messages"}
# Names of what asks something of an answer, as `max_words` does.
_ASKING = re.compile(chat.KNOWN_NAMES["asking"])


def lines_of(value: object, name: object) -> set[str]:
    """Lines in data; of a word or a number alone, where its name asks something of an answer."""
    asks = bool(_ASKING.match(checks.plain_name(str(name))))
    return lines_in(str(value) if asks and isinstance(value, int | float) else value, alone=asks)


def lines_in(value: Any, *, alone: bool = True) -> set[str]:
    """The lines of the texts in data, and of a text that is not in a list or an object.

    Args:
        value: Data, or a text.
        alone: Whether such a text counts that is no more than a name, a number or a date.
    """
    value = chat.plain_data(value)
    if isinstance(value, BaseModel):
        own = getattr(value, "page_content", None)  # of a document
        value = own or chat.messages_in(value) or chat.dump_of(value)
    parts = [*value] if isinstance(value, list | tuple) else []
    if isinstance(value, Mapping):
        # A text may be read from a message without its role, which ShareGPT calls `from`.
        role = "from" if {"from", "value"} <= value.keys() else "role"
        parts = [part for name, part in value.items() if name != role]
    elif isinstance(value, str) and (alone or len(_WORD.findall(value)) > 1):
        return {line.strip() for line in value.splitlines()}
    return set[str]().union(*map(lines_in, parts))


def _is_one(value: Mapping[str, object], field: Field) -> bool:
    """Whether data that nobody named can be read as one whole, without a guess."""
    has_records = any(records.record_in(part) for part in value.values())
    has_documents = field == "output" and context_of(value) is not None
    return field != "rubric" and bool(value) and not (has_records or has_documents)


def _is_data(value: object, field: Field) -> bool:
    """Whether no text of a value has a usual name, and nothing in it is a message.

    A text alone is a text, whatever its key is.
    """
    while isinstance(value, Mapping) and len(value) == 1:
        if _is_record(value, field) or any(name in value for name in USUAL[field]):
            return False
        value = next(iter(value.values()))
    if isinstance(value, Mapping) and any(value.get(n) is not None for n in USUAL[field]):
        return False
    return not isinstance(value, str) and not records.record_in(value)


def _is_record(value: Mapping[str, object], field: Field) -> bool:
    """Whether a mapping is read as a whole: no text of it has a name of its own."""
    own = [name for name in USUAL[field] if value.get(name) is not None]
    is_work = (
        records.steps_taken(value) or records.calls_beside(value) or records.trajectory_of(value)
    )
    if is_work and field in ("output", "reference"):
        return True
    if records.is_state(value):
        is_record = field == "output" and bool(chat.messages_in(value.get("messages")))
        return is_record or not own or own[0] == "messages"
    return bool(
        chat.messages_in(value) or content_in(value) or (not own and records.record_in(value))
    )


def follow(value: object, field: str, path: str) -> object:
    """Value under a key or a path.

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
            at, steps = at[key], steps[key.count(".") + 1 :]
        elif isinstance(at, Sequence) and not isinstance(at, str) and _place(steps[0], len(at)):
            at, steps = at[int(steps[0])], steps[1:]
        else:
            whole = "" if steps[0] == path else f" of {path!r}"
            raise InputError(f"`{field}`: expected the key {steps[0]!r}{whole}, got {keys_in(at)}")
    return at


def known_at(record: object, path: str) -> object:
    """The value under a key or a path, of what a row need not have; else None."""
    with suppress(InputError):
        return follow(record, "label", path)
    return None


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


def context_in(value: object) -> str | None:
    r"""The text of a context; of several documents each has a number.

    A document's title and source, where its metadata have them, stand above it. A line of a
    document that looks like such a head is quoted: no document can pass for several.

    >>> context_in(["It rained.\n[2] Oslo", {"text": "Snow.", "metadata": {"title": "Rome"}}])
    '[1]\nIt rained.\n> [2] Oslo\n\n[2] Rome\nSnow.'
    """
    if isinstance(value, str):
        if (documents := listed_in(value)) is None:
            return value if value.strip() else None
        value = documents
    parts = [(name, _LIKE_A_HEAD.sub("> ", chat.text_in(each))) for name, each in _documents(value)]
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return "\n\n".join(
        f"[{number}]{f' {title}' if title else ''}\n{text}"
        for number, (title, text) in enumerate(parts, 1)
    )


# How the text of a list of documents begins, in JSON, of Python or of LangChain.
LIST = re.compile(r"""\s*\[\s*(\]|["'{]|Document\()""")


def listed_in(text: str) -> list[Any] | None:
    """The list of documents that a text is, as a cell of a table holds it; None if it is none.

    It is JSON, or what Python writes: `['a' 'b']`, of numpy, would come to one text.
    """
    bare = "".join(text.split())
    for read in (json.loads, literal_eval) if LIST.match(text) else ():
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found: Any = read(text.strip())
            if isinstance(found, list) and (
                read is json.loads or "".join(repr(found).split()) == bare
            ):
                return found
    return None


def is_data(context: object) -> bool:
    """Whether a document of a context is shown as JSON."""
    return any(isinstance(each, Mapping | BaseModel) for _, each in _documents(context))


def documents_in(context: str) -> int:
    """Number of documents in a text of `context_in`."""
    return max(1, len(re.findall(r"^\[\d+\](?: |$)", context, re.MULTILINE)))


def context_of(fields: object) -> object:
    """Value under one of the usual names, if there is one."""
    held = map(fields.get, CONTEXTS) if isinstance(fields, Mapping) else ()
    return next((each for each in held if each is not None and context_in(each)), None)


# Columns that a judge is shown, or that are known to be for people alone.
_KNOWN = {*FIELDS, "media", "concepts", "instruction", "variables", "assertions", "metadata"}
_KNOWN -= {"source", "chosen", "rejected"}


def unshown(row: Mapping[str, Any]) -> list[str]:
    """The columns of a row that hold something and that no judge is shown.

    Of those that may hold a source, a judge of one text is shown the `source` of the row. A judge
    of pairs takes no `rubric` of a row.
    """
    known = _KNOWN - {"rubric"} if "output_a" in row else _KNOWN
    rest = [name for name, value in row.items() if name not in known and not chat.is_nothing(value)]
    own = row.get("source") if "output" in row else None
    read = {name for name in {*CONTEXTS} & {*rest} if context_in(row[name]) == own}
    return [name for name in rest if name not in {*read, checks.OF_OUTPUT, NOTES}]


def _documents(value: object, title: str = "") -> Iterator[tuple[str, object]]:
    """Yield the documents in a value, each with its title: texts, and data of no known form."""
    if chat.is_nothing(value := records.opened(chat.plain_data(value))):
        return
    if isinstance(value, str):
        yield title, value
    elif kind_of_block(value):
        yield title, mark_of(cast("Mapping[str, object]", value))
    elif messages := chat.messages_in(value):
        texts = ((each.get("name", ""), plain(each["content"])) for each in messages)
        yield from ((name, text) for name, text in texts if text)
    elif isinstance(value, list | tuple) and all(map(_is_titled, value)):
        yield from ((heading, " ".join(map(str.strip, said))) for heading, said in value)
    elif isinstance(value, list | tuple):
        yield from (document for each in value for document in _documents(each))
    elif isinstance(getattr(value, "page_content", None), str):
        yield from _documents(vars(value))
    elif isinstance(value, Mapping) and (text := _text_of_document(value)) is not None:
        yield from _documents(text, _title(value))
    elif isinstance(value, Mapping) and (inner := _documents_below(value)):
        yield from _documents(inner)
    else:
        yield title, value


def _is_titled(value: object) -> bool:
    """Whether a value is a title and its sentences, as HotpotQA has its documents."""
    title, *rest = value if isinstance(value, list | tuple) and value else [None]
    said = rest[0] if len(rest) == 1 and isinstance(rest[0], list | tuple) else [None]
    return isinstance(title, str) and all(isinstance(each, str) for each in said)


def _documents_below(value: Mapping[str, Any]) -> object:
    """The documents in what a search or a data set returns beside facts that are no texts."""
    titles, said = value.get("title"), value.get("sentences")
    if isinstance(titles, list) and isinstance(said, list) and len(titles) == len(said):
        return [*zip(titles, said, strict=True)] if len(value) == 2 else None
    beside = {*chat.KNOWN_NAMES["search"]}
    held = (*CONTEXTS, "node", "citations")
    names = [name for name in held if isinstance(value.get(name), list | Mapping)]
    return value[names[0]] if names and value.keys() <= {names[0], *beside} else None


def _text_of_document(value: Mapping[str, object]) -> object:
    texts = [value[name] for name in ("page_content", "text", "content") if value.get(name)]
    return next(iter(texts or (value.values() if len(value) == 1 else ())), None)


def _title(document: Mapping[str, Any]) -> str:
    """A document's title and source, from itself or its metadata."""
    metadata = document.get("metadata")
    fields = {**document, **metadata} if isinstance(metadata, Mapping) else document
    words = [fields.get(name) for name in ("title", "source", "url")]
    return ", ".join(dict.fromkeys(" ".join(str(word).split()) for word in words if word))
