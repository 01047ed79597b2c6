"""The columns of a table: which hold the fields of a row, and a record read by them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.rows import checks, messages
from langchain_judges.rows import record as records
from langchain_judges.rows.data import as_json, is_nothing, plain_data, text_in
from langchain_judges.rows.lookup import find, follow, known_at, lesser_names, not_given_at
from langchain_judges.rows.notes import lines_in
from langchain_judges.rows.texts import NO_TASK, READ, is_blank
from langchain_judges.verdict import NOTES, Notes, first_names

# Field of a row → its column, or several.
Columns = Mapping[str, str | Sequence[str]]
_NEEDED = {"pair": ["input", "output_a", "output_b"], "item": ["input", "output"]}
_OPTIONAL = {"pair": ["reference"], "item": ["expected", "source"]}
_TEXTS = ("input", "output", "output_a", "output_b")
_FACTS = checks.FIELDS - {*READ}


def understood(
    names: Collection[str], columns: Columns | None, takes: str, *, needed: Sequence[str] = _TEXTS
) -> dict[str, str | Sequence[str]]:
    """The columns of a table by field: those named, and those with a usual name.

    A field whose own name is a column keeps it; an instruction and its input are one task.

    Args:
        names: The table's columns, as keys of a row where its cells tell what they are.
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
    plain = {checks.plain_name(name): name for name in _certain(names) if name not in used}
    rivals = {"chosen", "rejected"} <= {*names, *plain, *found}
    # `reference`, a field of pairs, is also what people call an item's `expected`.
    taken = checks.FIELDS - {"reference"}
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

    >>> named_row({"question": "Why?", "prediction": "So."}, "item")["input"]
    'Why?'
    """
    return mapped(row, columns_of(row, takes), takes, {}) if takes in _NEEDED else row


def columns_of(row: Mapping[str, Any], takes: str | None) -> Columns:
    """The columns by field of one row, by their usual names."""
    if (takes := takes or checks.kind_in(row)) not in _NEEDED:
        return {}
    names = _certain({str(name): value for name, value in row.items() if value is not None})
    if isinstance(task := row.get("input"), str) and is_blank(task):
        names.remove("input")  # Alpaca's, beside an instruction that needs none
    return _columns(tuple(names), takes)


def _certain(names: Collection[str]) -> list[str]:
    """Columns without those of usual names that may be of something else, and say less."""
    cells = names if isinstance(names, Mapping) else {}
    tasks = {n: cells[n] for n in cells if checks.plain_name(n) in checks.NAMES["input"]}
    lesser = lesser_names(plain_data(tasks), [*tasks]) if len(tasks) > 1 else ()
    return [name for name in names if name not in lesser]


def with_variables(row: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """A row whose fields of some names stand among its `variables` too."""
    own = {n: getattr(row[n], "shown", row[n]) for n in names if row.get(n) is not None}
    known = known if isinstance(known := row.get("variables"), Mapping) else {}
    return {**row, "variables": {**known, **own}} if own else row


@lru_cache(256)
def _columns(names: Sequence[str], takes: str) -> Columns:
    return understood(names, None, takes, needed=())


@lru_cache(256)
def facts_in(names: Sequence[Any], taken: Sequence[str] = ()) -> dict[str, Any]:
    """Columns of what is known of a row, such as `Label`: case and blanks do not matter.

    A field's own name is left to itself, and a column that another field is read from to that.
    """
    parts = [str(name).partition(".") for name in names]
    fields = [f"{checks.plain_name(head)}{dot}{part.strip()}" for head, dot, part in parts]
    return {
        field: name
        for field, name in zip(fields, names, strict=True)
        if field in _FACTS or field.startswith(checks.BY_CRITERION)
        if field not in names and name not in taken
    }


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
    if takes == "item" and "messages" in columns_in(columns) and not {"input", "output"} & {*named}:
        record, columns = _state_of(record, columns, named)
    columns = {**facts_in(tuple(record), tuple(columns_in(columns))), **columns}
    used = {*columns_in(columns)}
    below = tuple(f"{key}." for key in record)
    facts = columns_in({n: c for n, c in columns.items() if n.split(".")[0] in checks.ANNOTATIONS})
    lost = {name: number for name in facts if (number := not_given_at(record, name))}
    if paths := [n for n in used if n in lost or (n not in record and n.startswith(below))]:
        cells = (known_at(record, p) if p in facts else follow(record, "columns", p) for p in paths)
        record = {**record, **dict(zip(paths, cells, strict=True))}
    if missing := next((each for each in sorted(used) if each not in record), None):
        several = "," in missing and {each.strip() for each in missing.split(",")} <= {*record}
        several_hint = "name several in a list, or repeat --column; "
        hint = several_hint if several else did_you_mean(missing, record)
        raise InputError(f"no column {missing!r}; {hint}there are {list(record)!r}")
    notes = Notes.of(record)
    if not (notes or notes.columns or notes.named):  # it is read for the first time
        notes = _doubt(record, columns, takes, named)
        notes.columns, notes.named = given, bool(named)
    for name, number in lost.items():
        notes.add(name, checks.KNOWN_NAMES["left_out"].format(number))
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
    names = (name for name in _TEXTS if name in whole)
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
    said = messages.messages_in(plain_data(record.get("messages")))
    is_task = said and said[-1]["role"] in ("user", "system")
    if not said or (is_task and columns.get("input") == "messages"):
        return record, columns
    own = [name for name in record if name in records.OF_STATE and name not in columns_in(named)]
    rest = {name: value for name, value in record.items() if name not in own}
    left = {field: column for field, column in columns.items() if column not in own}
    return {**rest, "output": {name: record[name] for name in own}}, left


def _joined(cells: Sequence[object]) -> object:
    """The task of several columns: each is read by itself, and an empty one is left out."""
    parts = [plain_data(cell) for cell in cells if not is_nothing(cell)]
    for place, part in enumerate(parts):
        with suppress(InputError):  # it is shown as data then
            parts[place] = find(part, "input", None, named=True)
    if not any(map(records.record_in, parts)):
        return "\n".join(map(text_in, parts)) if len(parts) > 1 else next(iter(parts), None)
    said = (records.record_in(part) or records.as_messages(text_in(part)) for part in parts)
    return [message for each in said for message in each]


def _doubt(record: Mapping[str, Any], columns: Columns, takes: str | None, named: Columns) -> Notes:
    """Notes on columns with a usual name of a field that is read from another."""
    used = {*columns_in(columns), *(checks.FIELDS - {"reference"})}
    notes = Notes()
    for field in (*_NEEDED.get(takes or "", ()), *_OPTIONAL.get(takes or "", ())):
        rest = [name for name in record if name not in used]
        alike = [name for name in rest if checks.plain_name(str(name)) in checks.NAMES[field]]
        read = record.get(column := str(columns.get(field, field)))
        if field in named or not alike or read is None:
            continue
        # A list may be of texts that are shown from other columns, as a preferred one.
        cells = plain_data(dict(record))
        shown = lines_in([cells[name] for name in used & cells.keys()])
        others = (n for n in alike if type(v := cells[n]) is not list or lines_in(v) - shown)
        differ = (n for n in others if as_json(record[n]) != as_json(read))
        if rivals := [n for n in differ if not is_nothing(record[n])]:
            notes.add(field, f"is read from {column!r}; not shown: {first_names(rivals)}")
    return notes


# Fields that are always read from a column, where a row has them.
NEEDED = {"output", "output_a", "output_b", "chosen", "rejected", "source", "id"}


def check_columns(columns: Columns) -> None:
    """Check that no field is read from several columns which one column must hold.

    Raises:
        OptionError: One is, or two systems are not two.
    """
    for field, own in columns.items():
        fit = {"human_votes": True, "input": True, "source": True, "systems": len(own) == 2}
        is_fit = fit.get(field.partition(".")[0]) if own else field not in NEEDED
        if not (isinstance(own, str) or is_fit):
            several = f"`columns` reads {field!r} from {', '.join(own) or 'none'}"
            raise OptionError(f"{several}; {checks.KNOWN_NAMES['several']}")


def columns_in(columns: Columns) -> list[str]:
    """The columns that fields are read from."""
    return [each for own in columns.values() for each in ([own] if isinstance(own, str) else own)]
