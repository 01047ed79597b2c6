"""Notes on how a row was read, and on what of it no judge is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any, cast

from pydantic import BaseModel

from langchain_judges.rows import checks, documents, lookup, messages, texts
from langchain_judges.rows import record as records
from langchain_judges.rows.checks import plain_name
from langchain_judges.rows.data import as_json, bare_data, dump_of, is_nothing, mappings_in, spelt
from langchain_judges.rows.media import kind_of_block
from langchain_judges.rows.responses import replies_in
from langchain_judges.rows.texts import CONVERSATION, READ, TALKING
from langchain_judges.rows.tool_calls import OF_CALL, calls_listed
from langchain_judges.verdict import NOTES, Notes, first_names

# A name, as data sets have, where a text to check against may stand.
_NAME = re.compile(r"[a-z][\w./:-]{3,}|\w+([-_/]\w+)+", re.ASCII)
# How a text begins that was made of messages, as a cell of CSV has them: in JSON or in Python.
_SPELT = re.compile("|".join(checks.KNOWN_NAMES["spelt"]))
_OF_ROLES: dict[str, list[Any]] = checks.KNOWN_NAMES["of_roles"]
_ALIKE = {"expected": "reference", "chosen": "output", "rejected": "output"}
_READ_BY_KEY = ("input", "output", "output_a", "output_b", "reference", *_ALIKE)
_SHOWN = (*READ, checks.OF_OUTPUT, "media", "variables", "assertions")


def row_notes(row: Mapping[str, Any], given: Mapping[str, Any], notes: Notes) -> Notes:
    """Add notes on how a row was read to those of a reading before."""
    # Who named columns, and is in no doubt, has looked at them all.
    has_looked = (notes.named and not notes) or "corrected" in row
    told = " ".join(each["detail"] for each in notes)
    shown = {name: row[name] for name in _SHOWN if name in row}
    if "output_a" in row:  # of a pair it may name a data set as well
        shown.pop("source", None)
    if row.get("source"):
        shown.pop(checks.OF_OUTPUT, None)
    read = {name: (given[name], row.get(name)) for name in _READ_BY_KEY if name in given}
    notes = notes_on(read, {**shown, NOTES: notes})
    for unit, text in shown.items():
        for role in sorted(_OF_ROLES.keys() & {each.get("role") for each in mappings_in(text)}):
            notes.add(unit, *_OF_ROLES[role])
    if "output_a" in row and row.get("input") == CONVERSATION:
        notes.add("input", "is not known, as the conversations begin with different requests")
    _note_turn(notes, row)
    if row.get("rubric") and not given.get("rubric"):
        notes.add("rubric", "is read from 'assertions', in place of a judge's own")
    if "output_a" not in row:
        _note_source(notes, documents.context_of(given), row.get("source"))
    by_label = any("by" in each for each in mappings_in(row.get("answers")))
    told += repr("answers") if by_label else ""  # `label` wrote them
    unsaid = [name for name in unshown(row) if repr(name) not in told]
    if unsaid and not has_looked and checks.kind_in(row) in ("pair", "item"):
        there = lines_in(shown)
        facts = {*checks.KNOWN_NAMES["facts"]}
        if rest := [n for n in unsaid if lines_of(row[n], "" if n in facts else n) - there]:
            rest += [n for n in unsaid if n not in rest and not lines_in(row[n]) & there]
            notes.add("row", f"has columns that are not shown: {first_names(rest)}")
    return notes


def _note_turn(notes: Notes, row: Mapping[str, Any]) -> None:
    """Note a turn that people know of, where the conversation goes beyond it."""
    work = checks.turns_of(row.get("output_a") or row.get("output"), "assistant")
    said = [each.get("role") for each in (*checks.turns_of(row.get("input"), "user"), *work)]
    number = [role for role, _ in groupby(r for r in said if r in TALKING)].count("assistant")
    if checks.number_in(row.get("turn")) in range(1, number):
        notes.add("turn", f"is {row['turn']}, and the conversation goes on to turn {number}")


def _note_source(notes: Notes, source: object, text: str | None) -> None:
    """Note how the source of a single text was read."""
    own = source[0] if isinstance(source, list) and len(source) == 1 else source
    if isinstance(own, str) and _NAME.fullmatch(own):
        notes.add("source", f"is {own!r}: it may name a data set, and is no text to check against")
    if isinstance(source, str) and documents.LIST.match(source):
        number = documents.documents_in(text or "")
        is_read = documents.listed_in(source) is not None
        told = f"which is read as documents: {number:,}" if is_read else "and shown as it stands"
        notes.add("source", f"is the text of a list, {told}")
    elif not isinstance(source, str | int | float) and documents.is_data(source):
        notes.add("source", "has documents of no known form, shown as JSON", "read_as_json")


def notes_on_documents(row: Mapping[str, Any]) -> Notes:
    """The notes of a row, with one where documents beside its answer are not shown.

    They are where steps brought them, or a caller's own prompt names them: each of their lines
    then stands in what is shown, as it is or in JSON.
    """
    notes, own = Notes.of(row), (row.get("variables") or {}).values()
    filled = (each if isinstance(each, str) else as_json(each) for each in own)
    shown = "\n".join([*texts.texts_read(row), *filled])
    for line in lines_in(documents.without_heads(row[checks.OF_OUTPUT])):
        if not any(form in shown for form in (line, as_json(line)[1:-1], json.dumps(line)[1:-1])):
            notes.add("output", "has documents beside it that are not shown (see `needs`)")
    return notes


def notes_on(read: Mapping[str, tuple[object, object]], shown: Mapping[str, object]) -> Notes:
    """Notes where data were read as a whole, or one of several keys.

    Args:
        read: What was given and what was read of it, by field, or by the side of one.
        shown: All of the row that a judge is shown.
    """
    notes = Notes.of(shown)
    is_text = all(isinstance(value, str) for value, _ in read.values())
    prompt = "" if is_text else "\n".join(texts.texts_read(shown))
    # A block keeps its other keys, of which no prompt shows any.
    lines = lines_in([prompt, *(shown[name] for name in shown if name not in READ)])
    for unit, (value, text) in read.items():
        field = cast("Any", _ALIKE.get(unit, unit.partition("_")[0]))
        value = value.outputs if records.is_run(value := records.opened(value)) else value
        told = spelt(text) if isinstance(text, str) and _SPELT.match(text) else None
        if isinstance(told, str) or (told and records.record_in(told)):
            notes.add(unit, "is the text of messages and shown as it stands; pass them as data")
        elif type(text) is str and not isinstance(value, str) and text[:2] in ("[{", "[["):
            notes.add(unit, "is a list of no known messages, shown as JSON", "read_as_json")
        elif not isinstance(value, str):
            notes += _of_messages(unit, value, prompt, lines)
        if text is None or not isinstance(value, Mapping | list | tuple):
            continue
        if isinstance(value, Mapping) and text == as_json(value):
            null = first_names([name for name in value if name in lookup.USUAL[field]])
            why = f"nothing is under {null}" if null else "none of its keys is a usual one"
            detail = f"is shown whole, as JSON, as {why}: {first_names([*value])}"
            notes.add(unit, detail, "read_as_json")
        elif detail := _unread(value, field, shown, text, notes):
            notes.add(unit, detail)
        columns = shown if notes.named else notes.columns or shown
        names = map(plain_name, value if isinstance(value, Mapping) else columns)
        number = len(text) if isinstance(text, list) and field == "reference" else 1
        if number > 1 and _ANY_OF.isdisjoint(names):
            notes.add(unit, checks.KNOWN_NAMES["any_is_right"].format(number))
    return notes


# Names of a list of answers that say that any of them is right.
_ANY_OF = {*checks.KNOWN_NAMES["any_of"]}


# Where what a message says may be.
_SAID: list[str] = checks.KNOWN_NAMES["said"]


def _of_messages(unit: str, value: object, shown: str, lines: Set[str]) -> Notes:
    """Notes on the messages in a field: keys that are not shown, blocks of no known form."""
    notes, keys, blocks = Notes(), dict[str, None](), dict[str, None]()
    for fields in messages.messages_below(value):
        held = {n: fields[n] for n in _SAID if isinstance(fields.get(n), str | list | Mapping)}
        for name in held if len(held) > 1 or held.keys().isdisjoint(messages.CONTENTS) else ():
            own = messages.messages_in({"role": "assistant", "content": held[name]})
            is_left = _is_left(name, texts.texts_read({"output": own}), lines, shown)
            keys |= {name: None} if is_left else {}
        for part in (fields, *_parts_of(fields)):
            if part is not fields and as_json(bare_data(part)) in lines:
                blocks |= {str(part.get("type") or next(iter(part), "{}")): None}
                continue
            names = (name for name in part if name not in messages.OF_MESSAGE)
            keys |= {name: None for name in names if _is_left(name, part[name], lines, shown)}
    if keys:
        notes.add(unit, f"has messages with keys that are not shown: {first_names([*keys])}")
    if blocks:
        detail = f"has messages with data shown as JSON: {first_names([*blocks])}"
        notes.add(unit, detail, "read_as_json")
    return notes


def _is_left(name: str, held: object, lines: Set[str], shown: str) -> bool:
    """Whether a line of what stands under a key is neither shown nor in JSON that is."""
    left = map(as_json, lines_of(_texts_under(name, spelt(held)), "") - lines)
    return any((line[1:-1] if name in OF_CALL else line) not in shown for line in left)


def _texts_under(name: str, held: Any) -> object:
    """The data under a key; of documents their texts, which may be shown as a source."""
    return documents.texts_in(held) if name in documents.CONTEXTS else held


def _parts_of(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the calls and the blocks of a message that say something."""
    content = next((fields[name] for name in messages.CONTENTS if fields.get(name)), None)
    blocks = mappings_in([content] if isinstance(content, Mapping) else content)
    yield from calls_listed(fields)
    for block in blocks if messages.role_of(fields) != "tool" else ():
        if not (messages.is_silent(own := messages.typed(block)) or kind_of_block(own)):
            yield own


# What a record has of a state, and what another field is read from.
_SHOWN_ELSEWHERE = {"agent_outcome", *checks.KNOWN_NAMES["state"]} - {"messages"}


def _unread(
    value: object, field: lookup.Field, case: Mapping[str, object], text: object, notes: Notes
) -> str:
    """Which key or reply `find` takes where others have something to show; "" if none has.

    That is a usual name, or a list of texts or data that is nowhere in a case. The only key is
    told too, whose name may say that it is no answer; around messages that of a reference alone.
    Where nothing is, words beside a task are kept as `notes.beside`.
    """
    while isinstance(value := records.state_values(records.opened(value)), Mapping):
        calls = records.calls_beside(value)
        is_record = lookup.is_record(value, field) and not calls
        own = "messages" if records.steps_taken(value) is None else "intermediate_steps"
        names = [*{own} & value.keys()] if is_record else lookup.usual_in(value, field)
        told = _SHOWN_ELSEWHERE - ({"__interrupt__"} if not is_record else set())
        told |= {*[n for n in checks.KNOWN_NAMES["calls"] if value.get(n)][:1]} if calls else set()
        told |= {name for name in value if checks.is_of_run(name)}
        others = sorted(names and value.keys() - {names[0], *told}, key=repr)
        rivals, words = _not_shown(value, names, others, field, case)
        if rivals:
            return f"is read from {names[0]!r}; not shown: {first_names(rivals + words)}"
        if field == "input":
            filled: Any = case.get("variables") or {}
            left = (n for n in unshown(value) if n in words and n not in filled)
            notes.beside = [*notes.beside, *(n for n in left if not _ID.fullmatch(plain_name(n)))]
        if is_record and (number := len(replies_in(value))) > 1:
            return f"has {number:,} replies; the first is shown"
        if is_record or (not names and (len(value) != 1 or lookup.is_shown_whole(value, field))):
            return ""
        [name] = names[:1] or value
        is_step = field != "reference" and bool(records.record_in(value[name]))
        if not (names or is_step or checks.is_plain(name, field)):
            return f"is read from {lookup.keys_in(value)}"
        value = value[name]
    listed = value if isinstance(text, str) and isinstance(value, list) else []
    is_one = len(listed) > 1 and text in [joint.join(map(str, listed)) for joint in ("\n", "")]
    return f"is a list of {len(listed):,} texts, shown as one" if is_one else ""


def _not_shown(
    value: Mapping[str, Any], names: Sequence[str], others: Sequence[str], field: str, case: Any
) -> tuple[list[str], list[str]]:
    """Keys beside the first of the usual ones with what no judge is shown, and those of words."""
    rivals, words = records.results_left_out(value) if names else [], list[str]()
    known = {name: own for name, own in case.items() if name not in ("expected", "reference")}
    shown, beside = (lines_in(each) if others else set() for each in (case, known))
    for name in others:
        part = messages.messages_in(value[name]) or _texts_under(name, value[name])
        is_other = name in names and as_json(part) != as_json(value[names[0]])
        # A word or a number beside a task may ask something; beside an answer it is about it.
        said = lines_of(part, name if field == "input" else "")
        # The word that is right may be what else an answer has, and is not shown as that.
        if field == "output" and not said and name not in checks.NAMES["expected"]:
            is_other |= bool(lines_in(part) - beside)
        is_echo = isinstance(part, Mapping) and as_json(part) in "\n".join(shown)
        if not is_echo and (is_other or said - shown):
            rivals.append(name)
        elif not (is_echo or is_nothing(part) or lines_in(part) & shown):
            words.append(name)
    return rivals, words


# Columns that a judge is shown, or that are known to be for people alone.
_KNOWN = {*checks.FIELDS, "media", "concepts", "instruction", "variables", "assertions", "metadata"}
_KNOWN -= {"source", "chosen", "rejected"}


def unshown(row: Mapping[str, Any]) -> list[str]:
    """The columns of a row that hold something and that no judge is shown.

    Of those that may hold a source, a judge of one text is shown the `source` of the row. A judge
    of pairs takes no `rubric` of a row, and a writer nothing that is judged.
    """
    known = _KNOWN - {"rubric"} if "output_a" in row else _KNOWN
    if "concepts" in row:
        is_told = row.get("input") == row.get("instruction")
        known = known - {*READ} | ({"input"} if is_told else set())
    rest = [name for name, value in row.items() if name not in known and not is_nothing(value)]
    own = row.get("source") if "output" in row else None
    read = {n for n in {*documents.CONTEXTS} & {*rest} if documents.context_in(row[n]) == own}
    return [name for name in rest if name not in {*read, checks.OF_OUTPUT, NOTES}]


# Names of ids, such as `user_id` and `orderId`, and of what asks something of an answer, as
# `max_words` does.
_ID = re.compile("(.*_)?(uu)?ids?")
_ASKING = re.compile(checks.KNOWN_NAMES["asking"])


def lines_of(value: object, name: object) -> set[str]:
    """Lines in data; of a word or a number alone, where its name asks something of an answer."""
    asks = bool(_ASKING.match(plain_name(str(name))))
    return lines_in(str(value) if asks and isinstance(value, int | float) else value, alone=asks)


def lines_in(value: Any, *, alone: bool = True) -> set[str]:
    """The lines of the texts in plain data, and of a text that is not in a list or an object.

    Args:
        value: Plain data, or a text.
        alone: Whether such a text counts that is no more than a name, a number or a date.
    """
    if isinstance(value, BaseModel):
        own = getattr(value, "page_content", None)  # of a document
        value = own or messages.messages_in(value) or dump_of(value)
    parts = [*value] if isinstance(value, list | tuple) else []
    if isinstance(value, Mapping):
        # A text may be read from a message without its role, which ShareGPT calls `from`.
        role = "from" if {"from", "value"} <= value.keys() else "role"
        parts = [part for name, part in value.items() if name != role]
    elif isinstance(value, str) and (alone or len(lookup.WORD.findall(value)) > 1):
        return {line.strip() for line in value.splitlines()}
    return set[str]().union(*map(lines_in, parts))
