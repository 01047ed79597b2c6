"""One record of what happened, read from every shape people have.

A record is a list of messages as plain JSON data (`texts.Message`): who said what, which tools
were called and what they returned, the structured response, and how it ended. It is read from
messages, from the state of an agent or a LangGraph thread, and from a provider's response;
`work.py` reads runs of LangSmith.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, takewhile, zip_longest
from types import SimpleNamespace
from typing import Any, TypeGuard

from langchain_core.load.serializable import Serializable
from pydantic import BaseModel

from langchain_judges.errors import InputError
from langchain_judges.rows import checks, data, media, tool_calls
from langchain_judges.rows.messages import is_block, message_fields, messages_in
from langchain_judges.rows.responses import ended, ending, first_reply
from langchain_judges.rows.texts import CONVERSATION, OUTCOMES, Message, has_answer, plain

# Usual names of a column of answers, and of an answer in data.
ANSWER_KEYS = ("output", *checks.KNOWN_NAMES["answers"], "result", "content")
# Those of a reply that a node wrote beside the messages of a state, and what else one has.
_BESIDE: list[str] = checks.KNOWN_NAMES["beside"]
OF_STATE = {*checks.KNOWN_NAMES["state"], *_BESIDE}
# What is known of a call that stands beside an answer.
_OF_CALL = {*checks.KNOWN_NAMES["of_call"], *tool_calls.ARGUMENTS}


def is_state(value: object) -> bool:
    """Whether a value is an agent's state or a LangGraph thread's."""
    state = _state(value) or {}
    return "structured_response" in state or bool(messages_in(state.get("messages")))


def record_in(value: object, *, is_work: bool = False, task: object = None) -> list[Message]:
    """The record of what happened in a value of any shape; [] if it holds none.

    What is not of the messages themselves follows them, under one of the roles of `OUTCOMES`.

    Args:
        value: Messages, a state, a thread, a response.
        is_work: Whether it is what is judged: of a state that ends with a request, the record
            says that nobody replied, and agents that speak as users are told by their names.
        task: What was asked, where the work is a part of a row.
    """
    if messages := messages_in(value):
        said = told_apart(messages, task) if is_work else messages
        return [*said, *ending(said, value)]
    if isinstance(value, list) and any(map(tool_calls.is_call, value)):
        # The content of a reply without its message; what no content has are items beside it.
        parts = [(is_own, [*group]) for is_own, group in groupby(value, is_block)]
        held = ([{"role": "assistant", "content": p}] if is_own else p for is_own, p in parts)
        return messages_in([*chain(*held)])
    if content := media.content_in(value):
        return [{"role": "user", "content": content}]
    if isinstance(value, Mapping) and (trajectory := trajectory_of(value)):
        return _of_graph(trajectory)
    if (steps := steps_taken(value)) is not None:
        return _of_executor(value, steps)
    if (state := _state(value)) is not None:
        record = _of_state(state, task, is_work=is_work)
        is_silent = is_work and _SILENT.issuperset(each["role"] for each in record)
        return [*record, _NO_REPLY] if record and is_silent else record
    if isinstance(value, Mapping) and (calls := calls_beside(value)):
        return _of_calls(calls, _answer(value))
    return first_reply(value)[1]


def state_values(value: Any) -> Any:
    """The values in a LangGraph thread or its snapshot; anything else itself."""
    return _thread(value).get("values", value)


def _thread(value: Any) -> Mapping[str, Any]:
    """The fields of a LangGraph thread or its snapshot; empty for anything else.

    Of a thread's history, which holds them all, the last snapshot by its time, or the first.
    """
    if isinstance(value, list) and all(threads := [*map(_thread, value)]):
        return max(threads, key=lambda each: str(each.get("created_at") or ""), default={})
    fields = value._asdict() if hasattr(value, "_asdict") else value
    names = {*fields} & {"next", "thread_id"} if isinstance(fields, Mapping) else ()
    return fields if names and "values" in fields else {}


def is_run(value: object) -> TypeGuard[Any]:
    """Whether a value is a run of LangSmith, whose library is not loaded for it."""
    return hasattr(value, "run_type") and hasattr(value, "outputs") and hasattr(value, "inputs")


# What is read of a run or an example, where it is JSON.
_OF_RUN = ["id", "name", "run_type", "inputs", "outputs", "error", "start_time", "dotted_order"]


def as_object(value: Any) -> Any:
    """Run or example of LangSmith as an object, with its child runs, also where it is JSON."""
    if not isinstance(value, Mapping):
        return value
    children = [as_object(each) for each in value.get("child_runs") or ()]
    return SimpleNamespace(**{**dict.fromkeys(_OF_RUN), **value, "child_runs": children})


def record_row(value: Any) -> object:
    """A row as a mapping, where its fields have names; what else it is stays as it is.

    A named tuple, a row of a data frame or a database, a data class and a model are rows too.
    """
    value = value._asdict() if hasattr(value, "_asdict") else value
    if is_run(value):
        return {"id": str(value.id), "output": value}
    if getattr(value, "ndim", 1) > 1:
        return value  # a table is no row
    return opened(data.plain_data(dict(value) if hasattr(value, "keys") else value), is_row=True)


COMMAND = {"graph", "update", "resume", "goto"}  # of LangGraph


def opened(value: object, *, is_row: bool = False) -> object:
    """A model of the user's as its dump, a run that is JSON as a run, a result as its state.

    With `version="v2"` the result of LangGraph's `invoke` is `{"value", "interrupts"}`, each
    with its `id` and `value`.
    """
    if isinstance(value, BaseModel) and not (isinstance(value, Serializable) or is_run(value)):
        value = data.dump_of(value)
    value = _with_instructions(value) if isinstance(value, Mapping) and not is_row else value
    fields = value if isinstance(value, Mapping) else {}
    if {"run_type", "inputs", "outputs"} <= fields.keys():
        return as_object(value)
    if "status_code" in fields and first_reply(fields.get("body"))[1]:
        return fields["body"]  # of OpenAI's batches
    if fields.keys() == COMMAND:
        return fields["update"] if fields["resume"] is None else fields["resume"]
    if fields.keys() != {"value", "interrupts"}:
        return value
    state, waiting = opened(fields["value"]), data.plain_data(fields["interrupts"])
    parts = waiting if isinstance(waiting, list | tuple) else [waiting]
    if not all(isinstance(each, Mapping) and {"value", "id"} <= each.keys() for each in parts):
        return value
    if not waiting:
        return state
    shown = state if isinstance(state, Mapping) else {"output": state}
    return {**shown, "__interrupt__": waiting}


# Where a request to a model has its messages, and what the model is told beside them.
_REQUESTS: dict[str, list[str]] = checks.KNOWN_NAMES["requests"]


def _with_instructions(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A request to a model with what it is told as its first message; other data unchanged."""
    place = next((name for name in _REQUESTS if value.get(name)), "")
    config = value.get("config")
    known = {**(config if isinstance(config, Mapping) else {}), **value}
    told = data.first_value(known, *_REQUESTS.get(place, ()))
    # Rows of data sets have a `model` and `instructions` too.
    is_sent = {*value} & {"model", "modelId", "contents"} and not {*value} & {*_BESIDE, "output_a"}
    is_list = place == "contents" or isinstance(value.get(place), list)
    said = as_messages(value[place]) if told and is_sent and is_list else []
    read = {place, "config", *_REQUESTS.get(place, ())}
    rest = {name: own for name, own in value.items() if name not in read}
    system = told if isinstance(told, Mapping) else {"content": told}
    return {**rest, "messages": [{**system, "role": "system"}, *said]} if said else value


def trajectory_of(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The trajectory of a graph, as agentevals extracts it from a thread, in a value.

    Its results and steps stand under `outputs`, beside `inputs`, whose own are then empty.
    """
    if isinstance(inner := value.get("outputs"), Mapping):
        value = {**value, **inner, "inputs": value.get("inputs") or inner.get("inputs")}
    results, steps = data.listed(value.get("results")), data.listed(value.get("steps"))
    are_nodes = all(isinstance(each, list | tuple) for each in steps)
    return value if results and steps and are_nodes else None


def _state(value: object) -> Mapping[str, Any] | None:
    """The state in a LangGraph thread or its snapshot, or a state itself.

    Why a thread has not ended stands in it too, under `__interrupt__` or `__stops__`.
    """
    state = state_values(value)
    if not isinstance(state, Mapping) or not {"messages", "structured_response"} & {*state}:
        return None
    thread = _thread(value)
    waiting = thread.get("interrupts")
    if isinstance(waiting, Mapping):  # of a thread, by the task that waits
        waiting = [each for own in waiting.values() if isinstance(own, list) for each in own]
    if waiting:
        return {**state, "__interrupt__": waiting}
    tasks = data.mappings_in([*map(record_row, data.listed(thread.get("tasks")))])
    errors = [f"{each.get('name')}: {each['error']}" for each in tasks if each.get("error")]
    following = [f"It stopped before {name}" for name in data.listed(thread.get("next"))]
    following += ["It failed"] if thread.get("status") == "error" else []
    return {**state, "__stops__": [f"It failed in {each}" for each in errors] or following}


def _of_graph(value: Mapping[str, Any]) -> list[Message]:
    """The turns of a graph's trajectory.

    Raises:
        InputError: It is not known which input led to which result.
    """
    record: list[Message] = []
    turns = [*zip_longest(value["steps"], value["results"])]
    while turns and not any(turns[-1]):  # of a thread that waits
        turns.pop()
    asked = data.listed(value.get("inputs")) or [None] * len(turns)
    if len(asked) != len(turns) or any(None in turn for turn in turns):
        raise InputError(checks.KNOWN_NAMES["uneven"])
    for (nodes, result), given in zip(turns, asked, strict=True):
        begun = given.get("__start__", given) if isinstance(given, Mapping) else given
        record += _part_of_turn("input", begun)
        record.append({"role": "nodes", "content": " → ".join(map(str, nodes))})
        record += _part_of_turn("result", result)
    return record


def _part_of_turn(role: str, part: object) -> list[Message]:
    said = messages_in(part.get("messages")) if isinstance(part, Mapping) else []
    return said or ([{"role": role, "content": data.as_json(part)}] if part else [])


def steps_taken(value: object) -> list[tuple[Mapping[str, Any], object]] | None:
    """The actions in what an AgentExecutor returns, each with its observation; else None.

    Chains call other things `intermediate_steps`, such as their queries.
    """
    listed = value.get("intermediate_steps") if isinstance(value, Mapping) else None
    steps = [*map(_parts_of_step, listed)] if isinstance(listed, list) else None
    are_actions = steps is not None and all("tool" in action for action, _ in steps)
    return steps if are_actions and not is_state(value) else None


def _of_executor(value: Any, steps: Sequence[tuple[Mapping[str, Any], object]]) -> list[Message]:
    """Work of an AgentExecutor: each action with its observation, then its answer.

    The graph of one keeps the answer in its outcome.
    """
    record = messages_in(value.get("chat_history"))
    if isinstance(value.get("input"), str):
        record.append({"role": "user", "content": value["input"]})
    calls = []
    for action, seen in steps:
        said = {"log": action.get("log") or "", "result": data.text_in(seen)}
        calls.append({"name": action.get("tool"), "args": action.get("tool_input"), **said})
    returned = _fields_of(_fields_of(value.get("agent_outcome")).get("return_values"))
    return record + _of_calls(calls, _answer(value) or _answer(returned))


def _parts_of_step(step: Any) -> tuple[Mapping[str, Any], object]:
    """The action and the observation of a step, an object, a pair or JSON."""
    pair = (step.get("action"), step.get("observation")) if isinstance(step, Mapping) else step
    action, seen = pair if isinstance(pair, list | tuple) and len(pair) == 2 else (step, None)
    return _fields_of(action), seen


def _fields_of(value: object) -> Mapping[str, Any]:
    """The fields of an action or of an outcome, an object or data."""
    return message_fields(value) or (vars(value) if isinstance(value, Serializable) else {})


def calls_beside(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of tools that an application returns beside its answer.

    [] where something of a call is not known, or the answer is a record itself.
    """
    calls, seen = tool_calls.calls_listed(value), {*value} & {"role", "messages"}
    if not calls or seen or messages_in(value) or record_in(_answer(value)):
        return []
    named = (isinstance(call, Mapping) and {"name", "function"} & {*call} for call in calls)
    return calls if all(named) and {*chain(*calls)} <= _OF_CALL else []


def _answer(value: Mapping[str, Any], names: Sequence[str] = ANSWER_KEYS) -> object:
    return next((value[name] for name in names if not data.is_nothing(value.get(name))), None)


def _of_calls(calls: Sequence[Mapping[str, Any]], answer: object) -> list[Message]:
    record: list[Message] = []
    for number, call in enumerate(calls, 1):
        if call.get("log"):
            record.append({"role": "assistant", "content": str(call["log"])})
        made = [{**call, "id": str(call.get("id") or number)}]
        record += messages_in({"role": "assistant", "content": "", "tool_calls": made})
    if answer:
        record.append({"role": "assistant", "content": data.text_in(answer)})
    return record


_OFFLOADED = re.compile(checks.KNOWN_NAMES["offloaded"]).fullmatch


def results_left_out(state: Mapping[str, Any]) -> list[str]:
    """The files of a state in which an agent's framework keeps what was too long to be seen."""
    files = map(str, state["files"]) if isinstance(state.get("files"), Mapping) else ()
    return [path for path in files if _OFFLOADED(path) and "large_tool_results" in path]


def _of_files(files: object) -> list[Message]:
    """The files that an agent keeps in its state: it may have put results there."""
    held = files.items() if isinstance(files, Mapping) else ()
    # One that was deleted is None.
    kept = ((str(path), file) for path, file in held if not (file is None or _OFFLOADED(str(path))))
    return [{"role": "file", "name": path, "content": _content_of(file)} for path, file in kept]


def _content_of(file: Any) -> str:
    """The content of a file, of a binary one the size: not every judge takes an image."""
    fields = file if isinstance(file, Mapping) else {}
    content = fields.get("content", file)
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        content = "\n".join(content)
    if fields.get("encoding") == "base64" and isinstance(content, str):
        content = data.decoded(content)
    return data.text_in(content) or "(empty)"


def _of_state(state: Mapping[str, Any], task: object, *, is_work: bool) -> list[Message]:
    messages = messages_in(state.get("messages"))
    messages = told_apart(messages, task) if is_work else messages
    response = state.get("structured_response")
    given = [] if response is None else [n for n, m in enumerate(messages) if _gives(m, response)]
    if given and any(each["role"] == "user" for each in messages[given[-1] :]):
        response = None  # of an earlier turn, whose messages hold it
    beside = _reply_beside(state, messages) if is_work and response is None else []
    record = [*messages, *beside, *_tools_available(state.get("tools"))]
    if response is not None:
        # The call by which the answer came is part of it, and so is its acknowledgement.
        record = _without_answer(record, given[-1]) if given else record
        record.append({"role": "structured response", "content": data.as_json(response)})
    record += _of_files(state.get("files"))
    if waiting := data.listed(state.get("__interrupt__")):
        known = map(data.plain_data, waiting)
        said = (one.get("value", one) if isinstance(one, Mapping) else one for one in known)
        record.append(ended(f"It was interrupted and waits: {'; '.join(map(data.text_in, said))}"))
    record += map(ended, state.get("__stops__", ()))
    return [*record, *ending(messages, state.get("messages"))]


def _reply_beside(state: Mapping[str, Any], messages: Sequence[Message]) -> list[Message]:
    """The reply that a state has under another key, where its last message is none.

    A `summary` is the reply only where nobody replied before: else it is the memory.
    """
    if not messages or is_reply(messages[-1]):
        return []
    has_replied = any(each["role"] == "assistant" for each in messages)
    reply = _answer(state, [each for each in _BESIDE if each != "summary" or not has_replied])
    while isinstance(reply, Mapping) and not record_in(reply) and _answer(reply) is not None:
        reply = _answer(reply)
    said = record_in(reply) or _of_calls((), reply)
    return [] if said and any(says_same(said[-1], each) for each in messages) else said


def told_apart(messages: list[Message], task: object = None) -> list[Message]:
    """Messages in which agents that answer under the user's role are participants.

    They have names, the user has none, and nobody replies as assistant. In any other talk, and in
    a task, named users are users.

    Args:
        messages: All that was said, or all but the task.
        task: What was asked, if it is known.
    """
    asked = as_messages(task) if task != CONVERSATION else []
    talk = [*asked, *messages]
    users = [each for each in talk if each["role"] == "user"]
    if not users or users[0].get("name") or any(map(is_reply, talk)):
        return messages
    agents = [u for u in users if u.get("name") and not any(says_same(u, own) for own in asked)]
    return [{**m, "role": "participant"} if m in agents else m for m in messages]


def is_reply(message: Message) -> bool:
    """Whether a message says something to the user, and calls nothing."""
    return has_answer([message]) and bool(plain(message["content"]).strip())


def _gives(message: Message, response: object) -> bool:
    """Whether a message is a structured response, by its only call or by its text."""
    calls, own = message.get("tool_calls") or [], data.as_json(response)
    if len(calls) == 1:
        return calls[0]["name"] == type(response).__name__ or data.as_json(calls[0]["args"]) == own
    is_answer = message["role"] == "assistant" and not calls
    return is_answer and data.as_json(data.spelt(plain(message["content"]))) == own


def _without_answer(record: list[Message], place: int) -> list[Message]:
    """A record without the answer at a place, but for what it says beside a call."""
    calls = record[place].get("tool_calls") or []
    said: list[Message] = [{**record[place], "tool_calls": []}] if calls else []
    results = {each["id"] for each in calls}
    rest = [m for m in record[place + 1 :] if m.get("tool_call_id") not in results]
    return [*record[:place], *(m for m in said if plain(m["content"]).strip()), *rest]


def _tools_available(tools: object) -> list[Message]:
    lines = []
    for tool in data.listed(tools):
        own = tool.get("function", tool) if isinstance(tool, Mapping) else tool
        fields = own if isinstance(own, Mapping) else {"name": own} if isinstance(own, str) else {}
        name = fields.get("name") or getattr(own, "name", None)
        about = fields.get("description") or getattr(own, "description", None)
        lines += [f"{name}: {' '.join(str(about).split())}" if about else str(name)] if name else []
    return [{"role": "tools available", "content": "\n".join(lines)}] if lines else []


# Roles of what stands before the first reply. A summary is a middleware's, of what was before.
ASKING = ("user", "system", "summary")
_NO_REPLY = ended("There is no reply")
# Roles of messages after which a reply is still to come.
_SILENT = {*ASKING, "tools available", "file"}


def without_task(record: Sequence[Message], task: object = None) -> list[Message]:
    """A record without the task at its beginning, which is shown as the task.

    That is the messages that the task has too, and before the first reply whatever is in its
    text if the user says nothing later; without a task all of them. A conversation keeps all
    its turns, also those before the task, which `with_talk` makes its context. Where the task's
    last message is the last there is, and nobody replied before, the record says so.
    """
    asked = as_messages(task)
    if _before(record, asked):
        return [*record]
    rest = list(record[sum(takewhile(bool, map(says_same, asked, record))) :])
    replies = [i for i, each in enumerate(rest) if each["role"] not in ASKING]
    if replies and not any(message["role"] == "user" for message in rest[replies[0] :]):
        done, known = rest[replies[0] :], "\n".join(map(_words, asked))
        others = [each for each in rest[: replies[0]] if _words(each) not in known]
        return done if task is None or done[0]["role"] in OUTCOMES else [*others, *done]
    last = record[-1]
    is_asked = last["role"] in ("user", "system") and any(says_same(last, m) for m in asked)
    return [_NO_REPLY] if is_asked and not replies else rest or [last]


def as_messages(task: Any) -> list[Message]:
    """A task as messages, of the user where it is a text."""
    return messages_in({"role": "user", "content": task} if isinstance(task, str) else task)


def places_in(record: Sequence[Message], asked: Sequence[Message]) -> list[int]:
    """The places in a record where some messages stand."""
    places = range(len(record) - len(asked) + 1) if asked else ()
    return [n for n in places if all(map(says_same, asked, record[n:]))]


def with_talk(task: Any, records: Sequence[Sequence[Message]]) -> Any:
    """A task after the conversation that stands before it in records, if it is one.

    The state of a graph that keeps its threads begins with all turns before.
    """
    asked = [each for each in as_messages(task) if each["role"] != "source"] if records else []
    histories = [found for each in records if (found := _before(each, asked))]
    is_one = bool(histories) and all(each == histories[0] for each in histories)
    return [*histories[0], *as_messages(task)] if is_one else task


def _before(record: Sequence[Message], asked: Sequence[Message]) -> Sequence[Message]:
    """The conversation before the request that the rest of a record answers; else nothing."""
    places = places_in(record, asked)
    place = max(places, default=0)
    before, after = record[:place], record[place + len(asked) :]
    is_last = all(each["role"] != "user" for each in after)
    roles = {each["role"] for each in before}
    # What an assistant did without another request before it is for this one.
    is_other = len(places) == 1 and roles >= {"user", "assistant"}
    is_talk = is_other or roles & {"participant", "summary"}
    return before if is_last and (is_talk or any(map(is_reply, before))) else []


def says_same(one: Message, other: Message) -> bool:
    """Whether two messages say the same."""
    return one["role"] == other["role"] and _words(one) == _words(other)


def _words(message: Message) -> str:
    return " ".join(plain(message["content"]).split())


def last_turn(record: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Part of a record before its last reply, and that reply alone."""
    place = max((n for n, each in enumerate(record) if is_reply(each)), default=len(record) - 1)
    return list(record[:place]), list(record[place : place + 1])


# Roles of messages that are not said to the user.
_ASIDE = ("system", "summary", "tools available")


def answers_in(record: Sequence[Message]) -> list[Message]:
    """The answers in a record: of each turn what follows the last call.

    Where nothing does, that is what the assistant said last, or else the last result. The user's
    messages stay, which answers refer to.
    """
    said = list[Message]()
    shown = (each for each in record if each["role"] not in _ASIDE)
    for turn in ([*part] for _, part in groupby(shown, lambda each: each["role"] == "user")):
        steps = (n for n, m in enumerate(turn, 1) if m["role"] == "tool" or m.get("tool_calls"))
        at = max(steps, default=0)
        if all(each["role"] == "file" for each in turn[at:]):
            heard = [m for m in turn[:at] if plain(m["content"]).strip()]
            heard = [m for m in heard if m["role"] != "tool"] or heard
            said += [{**m, "tool_calls": []} for m in heard[-1:]]
        said += [each for each in turn[at:] if each["role"] != "how it ended"]
    return said if any(each["role"] != "user" for each in said) else [_NO_REPLY]
