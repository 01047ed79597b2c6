"""The kind of a row, decided here once, what it must have to be judged, and its labels."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, cast

from langchain_judges.errors import InputError
from langchain_judges.lazy import packaged
from langchain_judges.rows.media import kind_of_block, media_in
from langchain_judges.rows.texts import CONVERSATION, NO_TASK, READ, TALKING, is_blank, plain
from langchain_judges.verdict import NOTES, Label, Notes, first_names

# Usual names of the fields of a row.
KNOWN_NAMES: Mapping[str, Any] = packaged(__package__, "names.yaml")
NAMES: dict[str, list[str]] = {**KNOWN_NAMES["columns"], "output": KNOWN_NAMES["answers"]}
# Where a row keeps the documents that stood beside the answer in its `output`. A response is
# made of them: they are shown to a judge that needs a source, and to no other.
OF_OUTPUT = "documents_of_output"
# Two texts to compare, one text to label, or concepts that a text must use.
RowKind = Literal["pair", "item", "task"]
# Whether a judge compares two texts or labels one.
Kind = Literal["pair", "item"]


def kind_in(fields: Container[str]) -> RowKind | None:
    """The kind of row that has some fields; None where they hold nothing to judge.

    >>> kind_in(["input", "output_a", "output_b"]), kind_in(["input"])
    ('pair', None)
    """
    if "concepts" in fields:
        return "task"
    return "pair" if "output_a" in fields else "item" if "output" in fields else None


def kind_of_row(row: Mapping[str, object]) -> RowKind:
    """The kind of a row, by its fields; without a text it is a pair that lacks them.

    >>> kind_of_row({"input": "Why?", "output": "Because."})
    'item'
    """
    return kind_in(row) or "pair"


def kind_of_example(example: Mapping[str, object]) -> Literal["pair", "item"]:
    """The kind of an example of a memory: that of a pair has both texts as `output`.

    >>> kind_of_example({"output": {"output_a": "Yes.", "output_b": "No."}})
    'pair'
    """
    return "pair" if isinstance(example.get("output"), Mapping) else "item"


def names_of_sides(result: Mapping[str, Any], systems: Sequence[str] | None) -> dict[str, str]:
    """Who wrote A and B, of all rows or by the row's `systems`; none unless they are two."""
    given = systems or result.get("systems")
    own = given if isinstance(given, list | tuple) else ()
    names = [each for each in own if isinstance(each, str) and each.strip()]
    return dict(zip("AB", names, strict=True)) if len({*names}) == len(own) == 2 else {}


def kind_of_result(result: Mapping[str, Any]) -> RowKind:
    """The kind of the row that a result is of.

    A row of `judge_many` names it; for what a judge or writer returns, the form decides.

    >>> kind_of_result({"verdict": {"label": 1}})
    'item'
    """
    kind: RowKind | None = result.get("kind")
    if kind is not None:
        return kind
    return "task" if "text" in result else kind_of_verdict(result.get("verdict") or {})


def kind_of_verdict(verdict: Mapping[str, object]) -> Literal["pair", "item"]:
    """The kind of the row that a verdict, or its part by one criterion, is of.

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
    rule = f"`{field}` must be {KNOWN_NAMES['text']}"
    if not isinstance(value, list) or not value:
        raise InputError(f"{rule}, got {type(value).__name__} {str(value)[:40]!r}")
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise InputError(f"{rule}, got the message {str(message)[:60]!r}")
        text, calls = plain(message.get("content")), message.get("tool_calls")
        if calls or message["role"] == "tool":
            _check_characters(f"{text}{calls or ''}", field)
        else:
            _check_words(text, field)


def _check_texts(row: Mapping[str, object], fields: Sequence[str]) -> None:
    for field in fields:
        if row.get(field) is None:
            raise without_field(field, row)
        check_text(row[field], field)


def without_field(field: str, row: Mapping[str, object]) -> InputError:
    """The error of a row without a field: what is empty, or how to name one of those it has."""
    for name in ("output", "output_a", "output_b"):  # its messages may hold what is missing
        if row.get(name) and isinstance(row[name], list):
            check_text(row[name], name)
    empty = Notes.of(row).empty
    field = next((name for name in empty if not row.get(name)), field)
    or_none = f"; where texts answer nothing, write {NO_TASK!r} there" if field == "input" else ""
    if field in empty:
        missing = (n for n in Notes.of(row) if n["reason"] == "missing")
        why = "".join(f", which {n['detail']}" for n in missing if n["unit"] == empty[field])
        return InputError(f"the field `{field}` is empty, read from {empty[field]!r}{why}{or_none}")
    if field == "output_a" and {"chosen", "rejected"} <= row.keys():
        return InputError(KNOWN_NAMES["preferred"])
    work = turns_of(row.get("output", row.get("output_a")), "assistant")
    names = dict.fromkeys(m.get("name") for m in work if m.get("role") == "participant")
    if names and field == "input":
        or_none = f"; no message is of a 'user': they are of {first_names([*names])}"
    place = place_in(Notes.of(row).columns or row, field) or "…"
    missing = KNOWN_NAMES["missing"].format(field=field, fields=fields_of(row), place=place)
    return InputError(missing + or_none)


@lru_cache(1024)  # the rows of a run have the same names
def plain_name(name: str) -> str:
    """A name of a column as usual names are written: in small letters, with underscores."""
    return re.sub(r"[\s\-]+|(?<=[a-z])(?=[A-Z0-9])", "_", str(name).strip()).casefold()


@lru_cache(1024)
def is_plain(name: object, field: str = "") -> bool:
    """Whether the only name in data says no more than that a text is there, of a field."""
    words = [*KNOWN_NAMES["plain"]["any"], *KNOWN_NAMES["plain"].get(field, ())]
    return bool(re.fullmatch(rf"(?:(?:{'|'.join(words)})s?(?:_|$))+", plain_name(str(name))))


def is_of_run(name: object) -> bool:
    """Whether a name is of what differs by its nature from run to run, such as an id."""
    return bool(re.fullmatch(KNOWN_NAMES["of_run"], plain_name(str(name))))


def place_in(row: object, field: str) -> str:
    """The path in a row to the first text below a usual name of a field; "" if there is none.

    What may be the right answer in a data set's record is no judged answer.

    >>> place_in({"id": 1, "data": [{"prompt": "Why?"}]}, "input")
    'data.0.prompt'
    >>> place_in({"doc": {"answer": "4"}, "sample": {"answer": "5"}}, "output")
    'sample.answer'
    """
    usual = {field, *NAMES.get(field, ())} - {"user", "a", "b"}
    right = KNOWN_NAMES["references"] if field.startswith("output") else ()
    others = {"output", "outputs"} if field == "input" else {"input", "inputs"}
    found = []
    for path, _ in _texts_in(row):
        first, *names = map(plain_name, path.split("."))
        is_right = first in KNOWN_NAMES["records"] and names[-1] in right
        if names[-1] in usual and not (is_right or others & {first, *names}):
            found.append(path)
    return min(found, key=lambda path: path.count("."), default="")


def _texts_in(whole: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts below the columns of a row, each with its path; of a list the first."""
    parts = enumerate(whole[:1]) if isinstance(whole, list) else ()
    for name, part in whole.items() if isinstance(whole, Mapping) else parts:
        if isinstance(part, str) and path and not is_blank(part):
            yield f"{path}.{name}", part
        elif name not in _UNSURE and path.count(".") < _DEEPEST:
            yield from _texts_in(part, f"{path}.{name}" if path else str(name))


# Columns that hold no texts of a row, and how far down texts are looked for.
_UNSURE, _DEEPEST = {"metadata", "meta"}, 5


def fields_of(row: Mapping[str, object]) -> str:
    """List the fields of a row, and which of the user's are null."""
    # A judge's state also has its own fields, which are still empty.
    own = {n: v for n, v in row.items() if n not in (NOTES, OF_OUTPUT) and v not in (None, [])}
    shown = (Notes.of(row).columns or own).items()
    names = [f"{name!r} (null)" if value is None else repr(name) for name, value in shown]
    return f"the fields are {', '.join(names) or 'none'}"


def expected_answers(item: Mapping[str, object]) -> list[str]:
    """An item's expected answers as a list, empty if it has none."""
    expected = item.get("expected")
    if expected is None or isinstance(expected, str):
        return [] if expected is None else [expected]
    return [*map(str, cast("Sequence[object]", expected))]


# What a rubric may need of a row.
Need = Literal["expected", "source", "calls", "image", "audio", "conversation", "instructions"]


def lacking(item: Mapping[str, object], needs: Iterable[Need]) -> str:
    """The lack of an item that its rubric cannot do without, as a sentence; empty: none.

    >>> lacking({"input": "Pay it.", "output": "Paid."}, ["calls"]).partition("; ")[0]
    'there are no tool calls in the output'
    """
    work = turns_of(item.get("output"), "assistant")
    said = [each["role"] for each in (*turns_of(item.get("input"), "user"), *work)]
    also = {"expected": "expected", "source": OF_OUTPUT}
    there = {name for name, other in also.items() if item.get(name) or item.get(other)}
    media = media_in([item.get(name) for name in (*READ, "media")])
    there |= {*map(str, map(kind_of_block, media))}
    # A list of tools says that an agent could have called them.
    if any(m.get("tool_calls") or m["role"] in ("tool", "tools available") for m in work):
        there.add("calls")
    if "system" in said:
        there.add("instructions")
    # A request and its answer are no conversation yet.
    if {"user", "assistant"} <= {*said} and len([r for r in said if r in TALKING]) > 2:
        there.add("conversation")
    missing = next((need for need in needs if need not in there), None)
    if missing is None:
        return ""
    lack, how = KNOWN_NAMES["lacking"][missing], KNOWN_NAMES["naming"]
    if missing in ("expected", "source"):
        return f"{lack}; {fields_of(item)}; {how}"
    kinds = [*(each["role"] for each in work), *sorted(there & {"image", "audio", "video"})]
    held = ", ".join(dict.fromkeys(kinds))
    if isinstance(output := item.get("output"), str):
        held = KNOWN_NAMES["unread"] if output.lstrip()[:1] in ("[", "{") else "text"
    return f"{lack}; it holds: {held}; {fields_of(item)}; {how}"


def turns_of(value: Any, speaker: str) -> Sequence[Mapping[str, Any]]:
    """The messages of a field, a text alone being one of a speaker."""
    if isinstance(value, str):
        return [] if value == CONVERSATION else [{"role": speaker}]
    own = value if isinstance(value, list) else []
    return [each for each in own if isinstance(each, Mapping)]


def _check_words(text: str, field: str) -> None:
    if is_blank(text):
        raise InputError(f"the field `{field}` is empty, or has a message without text")
    _check_characters(text, field)


def _check_characters(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InputError(f"the field `{field}` has a broken character: {exc.reason}") from exc


def _check_is(value: object, kinds: Any, what: str, rule: str) -> None:
    if not isinstance(value, kinds):
        raise InputError(f"{what} must be {rule}, got {type(value).__name__} {str(value)[:40]!r}")


def check_task(task: Any) -> None:
    """Check that a writing task has concepts, and that its instruction, if any, is a text.

    Raises:
        InputError: `concepts` is not a list of words, or empty; `instruction` is not a text.
    """
    _check_is(task, dict, "a writing task", "an object")
    concepts = task.get("concepts")
    if not isinstance(concepts, list) or not concepts:
        raise InputError(f"{KNOWN_NAMES['concepts']}, got {repr(concepts)[:40]}")
    for concept in concepts:
        _check_is(concept, str, "each of `concepts`", "a text")
        _check_words(concept, "concepts")
    _check_optional(task, "instruction")


def _check_optional(row: Mapping[str, object], field: str) -> None:
    if (text := row.get(field)) is not None:
        _check_is(text, str, f"`{field}`", "a text")
        check_text(text, field)


def check_pair(pair: Any) -> None:
    """Check that `pair` has the fields and types of `Pair`.

    Raises:
        InputError: A field is missing, empty or of the wrong type.
    """
    _check_is(pair, dict, "a pair", "an object")
    _check_texts(pair, ("input", "output_a", "output_b"))
    _check_optional(pair, "reference")


def check_item(item: Any) -> None:
    """Check that `item` has the fields and types of `Item`.

    Raises:
        InputError: A field is missing, empty or of the wrong type.
    """
    _check_is(item, dict, "an item", "an object")
    _check_texts(item, ("input", "output"))
    _check_is(item.get("rubric"), str | list | Mapping | None, "`rubric`", "text or criteria")
    for field in ("source", "family", "group"):
        _check_is(item.get(field), str | None, f"`{field}`", "a text")
    if item.get("source"):
        check_text(item["source"], "source")
    expected = item.get("expected")
    answers = expected if isinstance(expected, list) else [expected] * (expected is not None)
    if expected == [] or not all(isinstance(answer, str) for answer in answers):
        raise InputError(f"`expected` must be a text or a list of texts, got {expected!r}")
    for answer in answers:
        check_text(answer, "expected")


# A number with one comma.
COMMA = re.compile(r"-?\d+,\d+")
# `1,000` may be a thousand or one, and is left as it is.
_NUMBER_TEXT = re.compile(r"-?(0([.,]\d+)?|[1-9]\d*(\.\d+|,(?!\d{3}$)\d+)?)")
_EXACT_TYPES: Mapping[type, type] = {str: str, int: float, float: float}

# What a label of a pair may be.
SIDES = ("A", "B", "tie")

# How labels of pairs are read if no map of labels is given; case does not matter.
SPELLINGS: Mapping[str, str] = KNOWN_NAMES["spellings"]


# Labels of a judge, or of each of its criteria.
OwnLabels = Sequence[object] | Mapping[str, Sequence[object]]
# Fields of a row that no judge sees: what people know of it.
ANNOTATIONS = ("label", "labels", "group", "category", "systems", "turn", "human_votes")
# Begins the name of a column with people's label by one criterion, as `label.accuracy`, or as
# pandas calls it where it flattens `labels`; or of one with several people's.
BY_CRITERION = ("label.", "labels.", "human_votes.")
# Fields of a row to which a column may be mapped.
FIELDS = frozenset({*READ, *ANNOTATIONS, "id", "task_kind", "family", "chosen", "rejected"})


def read_label(value: object, labels: Mapping[Any, Label] | None = None) -> Any:
    """A label, or a list of votes, as the package spells them.

    Args:
        value: The row's label; an empty cell stays empty.
        labels: Spelling → label; None for `SPELLINGS`, which leaves other spellings unchanged.

    Raises:
        InputError: `labels` does not have this spelling.
    """
    if value in (None, ""):
        return value
    if isinstance(value, list):
        votes = [None if vote == "" else read_label(vote, labels) for vote in value]
        return votes if any(vote is not None for vote in votes) else []
    if labels is None:
        return SPELLINGS.get(value.strip().lower(), value) if isinstance(value, str) else value
    if isinstance(value, str | int | float) and value in labels:
        return labels[value]
    # A CSV cell is always text, also where the labels are numbers.
    as_text = {str(spelling): label for spelling, label in labels.items()}
    if str(value) in as_text:
        return as_text[str(value)]
    raise InputError(f"`labels` has no {value!r}; it has {list(labels)!r}")


def typed_like(labels: Iterable[object], label: object) -> Any:
    """A label as the number or the text that a judge's labels are, in its spelling.

    A cell of CSV has no type: its "1" may be the judge's 1, and a 1 its "1"; True is 1.

    Args:
        labels: Labels that the judge gave.
        label: What people gave; left as it is where the judge's labels are of several types.

    >>> typed_like([0, 1], "1"), typed_like(["1", "2"], 1), typed_like([0, 1], "polite")
    (1, '1', 'polite')
    """
    own = list(labels)
    kinds = {_EXACT_TYPES.get(type(each)) for each in own}
    if kinds == {float}:
        return int(label) if isinstance(label, bool) else number_in(label)
    if kinds == {str} and isinstance(label, int | float) and not isinstance(label, bool):
        return str(label)
    if not isinstance(label, str) or label in own:
        return label
    spellings = {each.strip().casefold(): each for each in own if isinstance(each, str)}
    return spellings.get(label.strip().casefold(), label)


def number_in(cell: object) -> Any:
    """The number that a text spells, with a comma too, or each of a list; else unchanged."""
    if isinstance(cell, list):
        return [*map(number_in, cell)]
    is_number = isinstance(cell, str) and _NUMBER_TEXT.fullmatch(cell)
    return json.loads(str(cell).replace(",", ".")) if is_number else cell


def check_annotations(
    row: Mapping[str, Any], labels: OwnLabels = (), *, outside: bool = True
) -> None:
    """Check the annotations of a row: labels, votes, group and category.

    Args:
        row: A pair or an item.
        labels: Those of the judge, which a word or vote about an item must be one of; by name
            where it has several criteria, whose total is a number.
        outside: Whether a number may lie outside the judge's: people may have another scale,
            of which a report compares the order alone.

    Raises:
        InputError: One of them cannot be counted, or a label is none of the judge's.
    """
    of_each = labels if isinstance(labels, Mapping) else {}
    by_criterion = 'a label for each criterion, such as {"accuracy": 4}'
    _check_is(row.get("labels"), Mapping | None, "`labels`", by_criterion)
    systems, is_pair = row.get("systems"), kind_in(row) == "pair"
    are_two = isinstance(systems, list | tuple) and len(systems) == 2
    if is_pair and systems is not None and not are_two:
        raise InputError(f"`systems` of a pair must be two, who wrote A and B, got {systems!r}")
    known = SIDES if is_pair else _TOTAL if of_each else tuple(labels)
    scales = {f"label.{name}": tuple(own) for name, own in of_each.items()}
    scales |= {"label": known, "human_votes": known}
    by_name = {f"label.{name}": own for name, own in (row.get("labels") or {}).items()}
    given = {name: row.get(name) for name in ("group", "category", "label", "human_votes")}
    for field, own in (given | by_name).items():
        scale = scales.get(field, ())
        for label in votes_in(own) if field in ("human_votes", *by_name) else [own]:
            if not isinstance(label, str | int | float | None):
                names = [*label] if isinstance(label, Mapping) else []
                is_count = names and {typed_like(scale, each) for each in names} <= {*scale}
                place = f"a text or a number, named by `columns` {_columns_of(field, own, of_each)}"
                rule = KNOWN_NAMES["rules"]["counts"] if is_count else place
                _check_is(label, str, f"`{field}`", rule)
            check_label(field, label, scale, outside=outside)


def votes_in(label: object) -> list[Any]:
    """The votes of several people that a label by criterion is; a label alone is the only one."""
    return label if isinstance(label, list) else [label]


def _columns_of(field: str, held: object, criteria: Collection[str]) -> str:
    """The column to name, or those of each vote, where a field holds what is no label.

    >>> _columns_of("label", {"tone": {"score": 4}}, ["tone"])
    'label.tone=COLUMN.tone.score'
    >>> _columns_of("human_votes", [{"tone": 4}, {"tone": 5}], ["tone"])
    'human_votes.tone=[COLUMN.0.tone, COLUMN.1.tone]'
    """
    field, _, name = field.partition(".")
    parts = {f"COLUMN.{i}": each for i, each in enumerate(held)} if isinstance(held, list) else {}
    places = list[str]()
    for place, each in (parts or {"COLUMN": held}).items():
        there = each if isinstance(each, Mapping) else {}
        name = name or next((key for key in there if key in criteria), "")
        path = f"{place}.{name}" if name in there else place
        places.append(label_place(path, there.get(name, each)))
    name = name and f".{name}"
    if len(places) == 1 or field in ("group", "category"):
        return f"{field}{name}={places[0]}"
    return f"human_votes{name}={'COLUMN' if places == [*parts] else ', '.join(places).join('[]')}"


# Stands for the labels of a total.
_TOTAL = (0.0,)
_RULES = {SIDES: KNOWN_NAMES["rules"]["sides"], _TOTAL: KNOWN_NAMES["rules"]["total"]}


def check_label(field: str, label: object, known: tuple[Any, ...], *, outside: bool) -> None:
    """Check that what people say of a row is one of the known labels; see `check_annotations`.

    Raises:
        InputError: It is none.
    """
    said = label if known is SIDES else typed_like(known, label)
    may_be_any = known is not SIDES and not (known and isinstance(said, str))
    if may_be_any and not outside and known and known is not _TOTAL and said is not None:
        may_be_any = not isinstance(known[0], str) and min(known) <= said <= max(known)
    if may_be_any or said in (None, "", *known):
        return
    rule = _RULES.get(known, f"one of {', '.join(map(str, known))}")
    own = "" if known in _RULES else ", or give the judge yours: `labels`, the lowest first"
    each = ", ".join(f"…: {one!r}" for one in known)
    mapped = f", map yours in Python by `datasets.rows(ROWS, labels={{{each}}})`"
    none = KNOWN_NAMES["rules"].get(field, "")
    raise InputError(f"`{field}` must be {rule}, got {label!r}; rename it{own}{mapped}{none}")


def label_place(column: str, value: object) -> str:
    """The path to the label in what tools for annotations have in its place.

    >>> label_place("rating", [{"user": "Ann", "value": 4}])
    'rating.0.value'
    """
    while isinstance(value, Mapping | list) and value:
        parts: Any = value if isinstance(value, Mapping) else {0: value[0]}
        name = next(name for name in (*KNOWN_NAMES["label_keys"], *parts) if name in parts)
        column, value = f"{column}.{name}", parts[name]
    return column
