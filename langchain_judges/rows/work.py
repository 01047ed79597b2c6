"""The work in an application's outputs, or in a run of LangSmith: a text or a record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.escaping import shortened
from langchain_judges.rows import checks, data, documents, lookup, media, messages, tool_calls
from langchain_judges.rows import record as records
from langchain_judges.rows.data import as_json, holds_nothing, is_nothing, plain_data, spelt
from langchain_judges.rows.lookup import Field, TextSource
from langchain_judges.rows.responses import ended
from langchain_judges.rows.texts import Message, PlainText, ToolCall, plain, readable


def work_in(
    value: object, source: TextSource = None, field: Field = "output", *, task: object = None
) -> PlainText:
    """The `output` of a row from an application's outputs.

    It is a text, or the record of what happened: the turns of a conversation, an agent's calls
    with their results, a message with images.

    Args:
        value: The outputs.
        source: Where the text is in them.
        field: The field that is read, for errors.
        task: What was asked, which the record does not repeat.

    Raises:
        InputError: The outputs hold no text.
    """
    return work_of_part(part_of(value, field, source), field, task)


def part_of(value: object, field: Field, source: TextSource, *, named: bool = False) -> object:
    """The part of an application's data, or of a run, that is a field, as plain data."""
    if records.is_run(value):
        value = outputs_of(value) if field == "output" else value.inputs
    given = value if callable(source) else records.opened(plain_data(value))
    found = lookup.find(given, field, source, named=named)
    return found if source is None else plain_data(found)


def work_of_part(part: object, field: Field, task: object = None) -> PlainText:
    """The text or the record that a part of an application's outputs is."""
    record = shown_messages(records.record_in(part, is_work=True, task=task), field)
    if not record:
        return shown_text(part, field)
    record = records.without_task(record, task)
    only, *others = record
    is_text = not others and readable(record) == (text := plain(only["content"]))
    return text if is_text and not any(media.media_in(only)) else record


def shown_messages(record: list[Message], field: Field) -> list[Message]:
    """The messages of a record that have something to show."""
    spoken = [m for m in record if _acts(m) or plain(m["content"]).strip()]
    if record and not spoken:
        raise InputError(f"`{field}`: the text is empty")
    return spoken


def _acts(message: Message) -> bool:
    return bool(message.get("tool_calls")) or message["role"] == "tool"


def shown_text(value: object, field: Field) -> str:
    """Render a value as text; structures become JSON."""
    if isinstance(value, str):
        text = value
    elif is_nothing(value):
        raise InputError(f"`{field}`: expected a text or messages, got {as_json(value)}")
    elif isinstance(value, list | tuple) and all(map(messages.is_block, value)) and plain([*value]):
        are_lines = any(isinstance(each, str) for each in value) and not data.is_streamed(value)
        role = "assistant" if field.startswith("output") and not are_lines else "system"
        text = plain(messages.messages_in({"role": role, "content": [*value]})[0]["content"])
    else:
        if isinstance(value, list | tuple) and any(map(messages.is_spoken, value)):
            checks.check_text([*value], field)  # one of them is no message
        text = as_json(value)
    if not text.strip():
        raise InputError(f"`{field}`: the text is empty")
    return text


def outputs_of(
    run: Any, source: TextSource = None, kinds: Collection[str] = ("tool", "retriever")
) -> object:
    """A run's outputs, with what its child runs of some kinds did and found, and its error.

    They are unchanged if the run did not fail, and no loaded child run did what they do not
    hold. Otherwise they hold the text at a source as messages, and documents that were found.

    Raises:
        InputError: The run failed, and has no outputs.
    """
    if run.error and holds_nothing(run.outputs):
        raise InputError(f"the run failed and has no output: {why_failed(run)}")
    finders = _steps_below(run, {*kinds} - {"tool"})
    found = [each.outputs for each in finders if documents.context_in(each.outputs)]
    steps, waits = [*_steps_below(run, kinds)], dict.fromkeys(_waits_for(run))
    if not (steps or found or run.error or waits) or holds_nothing(run.outputs):
        return run.outputs
    try:
        said = _said(work_in(run.outputs, source))
    except InputError:  # reported by whoever reads the outputs
        return run.outputs
    new, end = _by_place(steps, said), _failure(run)
    held = run.outputs if isinstance(run.outputs, Mapping) else {}
    if waits and not (end or "__interrupt__" in held or records.is_reply(said[-1])):
        end = [ended(f"It was interrupted and waits: {'; '.join(waits)}")]
    if not (new or found or end):
        return run.outputs
    kept = {name: held[name] for name in lookup.USUAL["context"] if name in held}
    if found and documents.context_of(kept) is None:
        kept["documents"] = found
    done = [m for n in range(len(said) + 1) for m in (*new[n], *said[n : n + 1])]
    return {**kept, "messages": [*done, *end]}


def _by_place(steps: Sequence[Any], said: Sequence[Message]) -> Mapping[int, list[Message]]:
    """The steps of child runs that a record lacks, by the place in it where each belongs.

    A record holds a call with the same id, or where the run says none with the same name and
    arguments, or else one that it may be; agents below the run, and nodes that call tools
    themselves, have others. The last calls are those of the last runs, as a record may begin
    with turns of other traces. A step stands after the last one before it that is held, or
    after the last request.
    """
    calls = [(place, each) for place, m in enumerate(said, 1) for each in m.get("tool_calls", ())]
    calls.reverse()
    results = {m.get("tool_call_id"): m["content"] for m in said if m["role"] == "tool"}
    at = max((n for n, each in enumerate(said, 1) if each["role"] == "user"), default=0)
    new = defaultdict[int, list[Message]](list)
    read = [(step, *_of_step(step)) for step in steps]
    held: dict[int, int] = {}
    every, by_id = [*calls], sorted(read[::-1], key=lambda each: not each[1]["id"])
    for ends in (None, results):
        for step, made, done in (each for each in by_id if id(each[0]) not in held):
            # A call may have been tried several times before a try had a result.
            tried = [*calls, *every] if step.error and ends is None else calls
            for one in [c for c in tried if _is_held(c[1], made, done, ends)][:1]:
                held[id(step)] = one[0]
                calls = [each for each in calls if each is not one]
    for step, made, done in read:
        at = held.get(id(step), at)
        passed_on = map(id, [step, *_steps_below(step, ["tool"])])  # to another tool
        if held.keys().isdisjoint(passed_on) and made["id"] not in results:
            new[at] += done
    return new


def _is_held(asked: ToolCall, made: ToolCall, done: Sequence[Message], ends: Any) -> bool:
    """Whether a run is that of a call; with how each call ended, whether it may be."""
    if made["id"] or ends is None:
        return messages.are_same(asked, made)
    is_given = bool(asked["args"]) and messages.holds(made["args"], asked["args"])
    is_named = f'"{asked["name"]}"' in as_json(made)  # or that of the tool it passes a call to
    return is_given or is_named or ends.get(asked["id"]) == done[-1]["content"]


def steps_within(run: Any) -> list[Message]:
    """The calls and results of loaded child runs, in time, that its outputs do not hold."""
    new = _by_place([*_steps_below(run, ("tool", "retriever"))], records.record_in(run.outputs))
    return [message for done in new.values() for message in done]


# How a stack of Python begins, and its lines in JavaScript.
_STACK = re.compile(r"[ +]*(?:Exception Group )?Traceback \(most recent|\n    at .*:\d+\)?(\n|$)")


# What a graph was interrupted for, in the error of the runs that this ended.
_INTERRUPT = re.compile(r"\bInterrupt\(value=(.*?), (?:id|resumable)=", re.DOTALL)


def _waits_for(run: Any) -> Iterator[str]:
    """Yield what graphs below a run were interrupted for."""
    for each in run.child_runs or ():
        yield from (*_INTERRUPT.findall(str(each.error)), *_waits_for(each))


def _failure(run: Any) -> list[Message]:
    return [ended(f"It failed: {why_failed(run)}")] if run.error else []


def why_failed(run: Any) -> str:
    """The error of a run, without the lines of code that it came through."""
    error = str(run.error).strip()
    told = _STACK.split(error)[0].strip() or error.rpartition("\n")[2]
    return shortened(told, 1000)  # one may repeat the whole request


def record_of_run(run: Any, source: TextSource = None) -> list[Message]:
    """The record of what a run of LangSmith did, and how it ended.

    Raises:
        InputError: There is no text at the source in its outputs.
    """
    if holds_nothing(run.outputs):
        return [*steps_within(run), *_failure(run)]
    outputs = outputs_of(run, source)
    if source is not None and outputs is run.outputs:
        outputs = part_of(outputs, "output", source)
    return records.record_in(outputs, is_work=True) or _said(work_in(outputs))


def _said(work: PlainText) -> list[Message]:
    return [{"role": "assistant", "content": work}] if isinstance(work, str) else work


def _steps_below(run: Any, kinds: Collection[str]) -> Iterator[Any]:
    """Yield the runs of some kinds below a run in time; what a search asked for is its own."""
    for step in sorted(run.child_runs or (), key=lambda s: str(s.dotted_order or s.start_time)):
        is_one = step.run_type in kinds
        yield from [step] if is_one else []
        inner = ["tool"] if step.run_type == "tool" else []
        yield from _steps_below(step, inner if is_one else kinds)


def _of_step(step: Any) -> tuple[ToolCall, list[Message]]:
    """The call of a tool or a retriever as a model made it, and as a record has it, its result."""
    given = spelt(_only(step.inputs, "input"))
    output = records.opened(plain_data(_only(step.outputs, "output")))
    state = output.get("messages") if isinstance(output, Mapping) else None  # of a command
    told = messages.messages_in(output) or messages.messages_in(state)
    said: Any = [{"content": output}, *told][-1]
    made: ToolCall = {"name": step.name, "args": given, "id": said.get("tool_call_id") or ""}
    error = why_failed(step) if step.error else None
    result = {"output": said["content"], "error": error, "status": said.get("status")}
    item = {"type": "run_call", "call_id": made["id"] or str(step.id), **made, **result}
    return made, [*tool_calls.steps_of_item(item)]


def _only(value: object, name: str) -> object:
    """The value under a name, if it is the only one; otherwise all of it."""
    return value[name] if isinstance(value, Mapping) and list(value) == [name] else value
