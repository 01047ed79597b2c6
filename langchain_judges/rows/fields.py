"""Read a judge's fields from the inputs and outputs of any application.

Datasets, runs and agents hold texts in many shapes: a string, a dictionary with one key or
many, chat messages as objects or as dictionaries, nested. A value that cannot be read raises
an `InputError` that names the expected key and the keys that were there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

from pydantic import BaseModel

from langchain_judges.errors import InputError
from langchain_judges.rows import checks, data, lookup, messages
from langchain_judges.rows import record as records
from langchain_judges.rows.documents import context_in, context_of, documents_on
from langchain_judges.rows.media import media_in
from langchain_judges.rows.notes import row_notes
from langchain_judges.rows.texts import CONVERSATION, Message, PlainText, readable
from langchain_judges.rows.work import outputs_of, part_of, shown_messages, shown_text, work_of_part
from langchain_judges.verdict import NOTES, Notes


def plain_row(row: Mapping[str, object]) -> dict[str, Any]:
    """A row whose texts are texts or records of plain data, whatever shape they had.

    Values that cannot be read are left as they are: a later check reports them by name.

    Raises:
        InputError: A run of LangSmith failed, and has no output.

    >>> plain_row({"input": [("user", "Why?")], "output": {"type": "ai", "content": "So."}})
    {'input': [{'role': 'user', 'content': 'Why?'}], 'output': 'So.'}
    """
    given = {n: records.opened(data.plain_data(own)) for n, own in row.items() if n != NOTES}
    copy = given.copy()
    done = {name: copy[name] for name in _WORK if copy.get(name)}
    work = {"output": copy.get("output"), **done}
    # A column of that name may hold a number of calls, or what is no call.
    if done and "output_a" not in copy and records.record_in(work):
        copy = {name: value for name, value in copy.items() if name not in done}
        copy["output"] = work
    if "run_type" in copy and {"output", "outputs"} & copy.keys():  # of LangSmith
        run = records.opened({**copy, "inputs": None, "outputs": copy.get("output")})
        copy |= {"output": outputs_of(run), "child_runs": None, "error": None}
    # The output of an example may be a pair; better and worse texts become one.
    names = _SIDES if {*_SIDES} & copy.keys() else _PREFERRED
    sides = [name for name in names if name in copy and not _is_pair(copy[name])]
    if "input" in copy:
        copy["input"] = _read_or_left(task_in, copy["input"])
    elif sides and (asked := _asked_by_all([copy[name] for name in sides])):
        copy["input"] = asked
    output = outputs_of(own) if records.is_run(own := copy.get("output")) else own
    beside = context_in(context_of(output) or documents_on(output))
    for name in sides:
        copy[name] = _read_or_left(lambda v: _work_of_row(v, copy.get("input")), copy[name])
    copy |= _after_history(copy, sides)
    for name in (each for each in ("reference", "expected", "instruction") if each in copy):
        is_text = "output_a" in copy and name == "reference"
        read = reference_in if is_text else partial(expected_in, output=given.get("output"))
        copy[name] = _read_or_left(partial(read, named=True), copy[name]) or None
    numbered = [n for n in ("family", "group") if isinstance(copy.get(n), int | float)]
    copy |= {name: data.text_in(copy[name]) for name in numbered}
    if not {"output_a", "concepts", "corrected"} & copy.keys():
        copy |= _of_item(copy) | ({checks.OF_OUTPUT: beside} if beside else {})
    if isinstance(items := copy.get("items"), list):  # of an audit
        copy["items"] = [plain_row(i) if isinstance(i, Mapping) else i for i in items]
    if "concepts" in copy and not copy.get("instruction") and isinstance(copy.get("input"), str):
        copy["instruction"] = copy["input"]  # of a writing task
    notes = row_notes(copy, given, Notes.of(row))
    return {**copy, NOTES: notes} if notes or notes.columns else copy


# Columns of what was done beside the output.
_WORK = ("intermediate_steps", "tool_calls", "tools_called")
_SIDES, _PREFERRED = ("output", "output_a", "output_b"), ("chosen", "rejected")


def _is_pair(value: object) -> bool:
    return isinstance(value, Mapping) and "output_a" in value


def _asked_by_all(sides: Sequence[object]) -> PlainText | None:
    """Task found in the work of a row, if it is the same on each side.

    Of two conversations it is what is said to both, or else how both begin.
    """
    first, *others = (asked_in(side) for side in sides)
    if others == [CONVERSATION] and first == CONVERSATION:
        talks = (records.record_in(part_of(side, "output", None), is_work=True) for side in sides)
        a, b = ([each for each in record if each["role"] == "user"] for record in talks)
        same = a if len(a) == len(b) and all(map(records.says_same, a, b)) else a[:1]
        return same if all(map(records.says_same, same, b)) else first
    return first if all(other == first for other in others) else None


def _of_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of items only: the text of the source, media in it, criteria."""
    found = context_of(row)
    # A cell of CSV holds them as JSON.
    own = data.spelt(row.get("rubric") or row.get("assertions"))
    # Images, audio and files, whose marks are in the text.
    text, media = context_in(found), [*media_in(messages.messages_in(found) or found)]
    own = criteria_in(own) if isinstance(own, list) else own
    read: dict[str, Any] = {"source": text} if text is not None or "source" in row else {}
    read |= {"media": media} if media else {}
    return read | ({"rubric": own} if isinstance(own, list | Mapping) else {})


def criteria_in(criteria: Sequence[object]) -> list[object]:
    """Criteria of a row as a rubric takes them, and LangSmith's assertions as criteria.

    >>> criteria_in([{"key": "polite", "comment": "It thanks."}, "Tone"])
    [{'name': 'polite', 'description': 'It thanks.'}, 'Tone']
    """
    return [
        {"name": str(each["key"]), "description": str(each.get("comment") or "")}
        if isinstance(each, Mapping) and "key" in each
        else each
        for each in criteria
    ]


def _work_of_row(value: object, task: object) -> PlainText:
    """The work in a field of a row; of documents, the data next to them."""
    # Where documents lie beside other data, the answer must have one of the usual names.
    is_named = bool(value) and context_of(value) is None
    return work_of_part(part_of(value, "output", None, named=is_named), "output", task)


def _after_history(row: Mapping[str, Any], sides: Sequence[str]) -> dict[str, Any]:
    """Task and work of a row whose work begins with the conversation before the request."""
    talks = {n: row[n] for n in sides if isinstance(row[n], list) and all(map(_is_message, row[n]))}
    task = records.with_talk(row.get("input"), [*talks.values()])
    if task is row.get("input"):
        return {}
    return {"input": task} | {n: work_of_part(talks[n], "output", task) for n in talks}


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and {"role", "content"} <= value.keys()


def _read_or_left(read: Callable[[object], object], value: object) -> object:
    if isinstance(value, str):  # nearly all of them
        return value
    if records.is_run(value):
        return read(value)  # nothing else can
    is_data = isinstance(value, Mapping | BaseModel | bool | int | float)
    is_list = isinstance(value, list | tuple) and any(part is not None for part in value)
    with suppress(InputError):
        return read(value) if is_data or is_list or records.record_in(value) else value
    return value


def _names_an_answer(value: object) -> bool:
    names = (*lookup.USUAL["reference"], "page_content")
    return isinstance(value, Mapping) and any(name in value for name in names)


def _answers_in(values: Sequence[object]) -> str | list[str]:
    """Each of several right answers, which data may name; other data are one answer."""
    named = partial(lookup.find, field="reference", source=None, named=True)
    parts = [_read_or_left(named, one) if _names_an_answer(one) else one for one in values]
    if any(isinstance(one, Mapping | list | tuple) and not records.record_in(one) for one in parts):
        return shown_text(values, "reference")
    return [_reference_of(each) for each in parts]


def task_in(value: object, source: lookup.TextSource = None) -> PlainText:
    """The task in an application's inputs: a text, or the record of a conversation.

    Raises:
        InputError: The inputs hold no task.
    """
    part = part_of(value, "input", source)
    return shown_messages(records.record_in(part), "input") or shown_text(part, "input")


def asked_before(inputs: object, outputs: object, source: lookup.TextSource) -> list[Message]:
    """All that was said in outputs until the user's last message, if a run resumed there.

    The inputs of such a run are a command with an answer to an interrupt.
    """
    given = data.plain_data(inputs)
    own = given.get("input", given) if isinstance(given, Mapping) else {}
    if not isinstance(own, Mapping) or own.keys() != records.COMMAND or own["resume"] is None:
        return []
    record = records.record_in(part_of(outputs, "output", source))
    return record[: max((n for n, m in enumerate(record, 1) if m["role"] == "user"), default=0)]


def asked_in(outputs: object, source: lookup.TextSource = None) -> PlainText | None:
    """Task found in an application's outputs: what the user says first.

    Of a conversation in which the user says more, it is `CONVERSATION`; without a user None.
    """
    try:
        if records.is_run(outputs) and outputs.inputs:
            return task_in(outputs.inputs)
        record = records.record_in(part_of(outputs, "output", source), is_work=True)
    except InputError:
        return None
    asked = list(takewhile(lambda message: message["role"] in records.ASKING, record))
    rest = record[len(asked) :]
    if any(message["role"] == "user" for message in rest):
        return CONVERSATION  # it may begin with what the assistant says
    is_asked = rest and any(message["role"] != "system" for message in asked)
    return task_in(asked) if is_asked else None


def reference_in(value: object, source: lookup.TextSource = None, *, named: bool = False) -> str:
    """The text of a reference; for an agent that used tools, the complete trajectory.

    Raises:
        InputError: There is no text, or it contains an image or a file.
    """
    return _reference_of(part_of(value, "reference", source, named=named))


def _reference_of(part: object) -> str:
    work = work_of_part(part, "reference")
    if not isinstance(work, str) and any(media_in(work)):
        raise InputError("`reference`: must be a text, got an image or a file in it")
    return readable(work)


def expected_in(
    value: object, source: lookup.TextSource = None, *, named: bool = False, output: object = None
) -> str | list[str]:
    """The expected answer in a reference, or a list of accepted answers.

    Args:
        value: The reference.
        source: Where the answer is in it.
        named: Whether the value stood below a usual name.
        output: What is judged: where that is a list of several texts, so is the one right answer.

    Raises:
        InputError: The reference holds no answer.
    """
    answers = part_of(value, "reference", source, named=named)
    if data.is_nothing(answers):
        raise InputError("`reference`: there is no answer to compare with, got nothing")
    if isinstance(answers, list | tuple) and not records.record_in(answers):
        return shown_text(answers, "reference") if _is_listed(output) else _answers_in(answers)
    return _reference_of(answers)


def _is_listed(output: object) -> bool:
    """Whether an answer is a list of several texts or numbers, or one in JSON."""
    with suppress(InputError):
        part = data.spelt(part_of(output, "output", None))
        if isinstance(part, list | tuple) and len(part) > 1 and not records.record_in(part):
            are_answers = all(isinstance(each, str | int | float) for each in part)
            return are_answers and not data.is_streamed(part)
    return False


def source_in(inputs: object, outputs: object, source: lookup.TextSource = None) -> object:
    """Source that an application used, from its inputs or its outputs.

    Args:
        inputs: The application's inputs.
        outputs: Its outputs; a retriever may return its documents there.
        source: A key or a path in either, a function of `{"inputs": …, "outputs": …}`, or
            None for the usual keys of the inputs, then of the outputs.

    Raises:
        InputError: `source` is in neither of them.
    """
    if source is None:
        found = [*map(context_of, (inputs, outputs)), documents_on(outputs) or None]
        return next((each for each in found if each is not None), None)
    values = {"inputs": inputs, "outputs": outputs}
    part = data.plain_data(lookup.find_in(values, "context", source))
    if context_in(part) is None:
        raise InputError("`context`: there is nothing to check against, got nothing")
    return part
