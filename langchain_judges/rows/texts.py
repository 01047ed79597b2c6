"""The texts that are judged, and how they are written for a model and for people."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, NotRequired, cast
from unicodedata import category

from typing_extensions import TypedDict

from langchain_judges.rows.fences import fence
from langchain_judges.rows.media import kind_of_block, mark_of

# A text, or chat messages `{"role", "content"}`.
Text = str | Sequence[Mapping[str, object]]


class ToolCall(TypedDict):
    """One call of a tool in a message.

    Attributes:
        args: Its arguments; a text where a model wrote no valid JSON.
        error: Why it is no valid call.
        failed: Why it failed, as it says itself.
    """

    name: str
    args: object
    id: str
    error: NotRequired[str]
    failed: NotRequired[str]


class Message(TypedDict):
    """One message of a conversation or of an agent's work, as plain JSON data.

    Attributes:
        role: One of `ROLES`.
        content: Its text, or its content blocks.
        name: Who speaks, where several have the role; of a result, the tool.
        tool_call_id: The call whose result it is.
        status: `error` of a result: the call failed.
    """

    role: str
    content: str | list[str | dict[str, Any]]
    name: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    status: NotRequired[str]


# A text as this package reads it from other forms.
PlainText = str | list[Message]


_HALVES = re.compile("[\ud800-\udfff]")


def without_lone_surrogates(value: Any) -> Any:
    r"""JSON data without lone surrogates, which no request can carry.

    A model may write one as an escape, and later prompts quote its reply.

    >>> without_lone_surrogates({"name": ["a\ud800"]})
    {'name': ['a�']}
    """
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_lone_surrogates(part) for part in value]
    if isinstance(value, dict):
        clean = without_lone_surrogates
        return {clean(key): clean(part) for key, part in value.items()}
    return value


# Invisible characters of other categories: Hangul fillers and the empty Braille cell.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def is_blank(text: str) -> bool:
    r"""Whether a text is invisible: only white space, control and format characters.

    >>> is_blank("\u200b\ufeff\x00"), is_blank("0")
    (True, False)
    """
    return all(c.isspace() or c in _BLANKS or category(c) in {"Cc", "Cf"} for c in text)


def plain(content: object) -> str:
    """The text of a message's content, a string or a list of content blocks.

    Images, audio and files are named by their marks; see `media.py`.
    """
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block if isinstance(block, str) else _block(block) for block in blocks]
    return "\n".join(text for text in texts if text)


def _block(block: object) -> str:
    fields = block if isinstance(block, dict) else {}
    text = mark_of(fields) if kind_of_block(fields) else fields.get("text")
    return text if isinstance(text, str) else ""


class WorkStep(NamedTuple):
    """One part of a conversation or of an agent's work, as a judge is shown it.

    Attributes:
        mark: Who does what: `turn 2, user`, `call 1 of search`, `error 1 of search`.
    """

    mark: str
    text: str


def steps_of(messages: Sequence[Mapping[str, Any]], *, is_work: bool = True) -> list[WorkStep]:
    """Messages as steps, each with its mark.

    The result of a call has the number of the call, by its id, where there is more than one.

    Args:
        messages: Each with `role` and `content`.
        is_work: Whether they are what is judged: then the last answer after calls of tools is
            the final one.
    """
    numbers = _Numbers(messages)
    agents = {message.get("name") for message in messages if message["role"] == "assistant"}
    talk = any(message.get("role") == "user" for message in messages)
    used_tools = any(_calls(message) or message.get("role") == "tool" for message in messages)
    answers = len(messages) > 1 and not used_tools
    answers &= all(m.get("role") == "assistant" and not m.get("name") for m in messages)
    steps: list[WorkStep] = []
    roles = [str(message.get("role", "user")) for message in messages]
    # What answers a request that stands elsewhere is of its turn; the next request is another.
    turn = int(next((role for role in roles if role in TALKING), "user") != "user")
    for place, message in enumerate(messages):
        role, text = roles[place], plain(message.get("content"))
        turn += role == "user"
        if role == "tool":
            left = len([*takewhile("tool".__eq__, roles[place:])])
            steps.append(WorkStep(numbers.result(message, left), text or "(nothing)"))
            continue
        name = f" {_word(message['name'])}" if message.get("name") else ""
        who, by = role + name, f" by{name}" if name and len(agents) > 1 else ""
        if role in TALKING and talk:
            who = f"turn {turn}, {who}"
        elif answers:
            who = f"answer {place + 1}"
        last = {*OUTCOMES}.issuperset(roles[place + 1 :])
        if is_work and used_tools and last and role == "assistant" and not _calls(message):
            who = f"final answer{by}"
        if text.strip():
            steps.append(WorkStep(who, text))
        steps += [WorkStep(numbers.call(c) + by, _arguments(c)) for c in _calls(message)]
    return steps


# The task of a conversation that is judged as a whole.
CONVERSATION = "(the conversation)"
# The task of a text that answers nothing, such as a comment.
NO_TASK = "(no task)"
# Roles of messages that nobody wrote: what else is known of an agent's work.
OUTCOMES = ("structured response", "tools available", "how it ended", "file")
# Who may have written a message. Of any other role is a `participant`, by its name.
ROLES = frozenset(
    {"user", "assistant", "system", "tool", "participant", "source", "summary", *OUTCOMES}
    | {"input", "nodes", "result", "item"}  # of a graph, and of no known type
)
_ANSWERS = {"assistant", "structured response"}


TALKING = ("user", "assistant")


def has_answer(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an agent's work ends with an answer, to which a user may say a last word."""
    said = [m for m in messages if m.get("role") not in OUTCOMES[1:]]
    while said and said[-1].get("role") == "user":
        said.pop()
    return bool(said) and said[-1].get("role") in _ANSWERS and not _calls(said[-1])


class _Numbers:
    """The numbers of calls, by which their results are told apart."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        calls = [call for message in messages for call in _calls(message)]
        self.are_several, self.made = len(calls) > 1, 0
        self.asked = {message.get("tool_call_id") for message in messages}
        # The number and the name of each call that has no result yet, by the id that one names.
        self.open: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)

    def call(self, call: ToolCall) -> str:
        self.made += 1
        id = call["id"] if call["id"] in self.asked else ""
        self.open[id].append((self.made, call["name"]))
        kind = "invalid call" if call.get("error") is not None else "call"
        return self._mark(kind, self.made, call["name"])

    def result(self, message: Mapping[str, Any], left: int) -> str:
        """The mark of a result, by its call.

        Where no id says which it is, it is the next call that has no result, if no other may
        be meant: there is one, or as many as results are left.
        """
        kind = "error" if message.get("status") == "error" else "result"
        asked, name = message.get("tool_call_id") or "", message.get("name")
        calls = [call for call in self.open[asked] if asked or name in (None, call[1])]
        is_told = bool(asked) or len(calls) in (1, left)
        for call in calls[:1] if is_told else calls:  # else no later result can be of them
            self.open[asked].remove(call)
        if calls and is_told:
            return self._mark(kind, *calls[0])
        several = f"one of {len(calls)} calls" if calls else "a tool"
        return f"{kind} of {_word(name or several)}"

    def _mark(self, kind: str, number: int, name: str) -> str:
        return f"{kind}{f' {number}' if self.are_several else ''} of {_word(name)}"


def _calls(message: Mapping[str, Any]) -> list[ToolCall]:
    return message.get("tool_calls") or []


def _word(name: object) -> str:
    """A name as a mark has it: a model may have invented it."""
    return re.sub(r"[^\w./-]+", "_", str(name))[:64]


def _arguments(call: ToolCall) -> str:
    args = call["args"]
    text = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
    told = call.get("error") or call.get("failed")
    return f"{text}\n({told})" if told else text


class Fitted(NamedTuple):
    """The texts of a row as far as a model has room for them.

    Attributes:
        texts: Those fields that had to be cut.
        left_out: Of each of them how many parts were cut, and how many characters they lost.
    """

    texts: dict[str, Any]
    left_out: dict[str, tuple[int, int]]


def fitted(row: Mapping[str, object], room: int) -> Fitted:
    """Cut the longest parts of a row in their middle where all of it has no room.

    Each message, each call's arguments and each document that is a text of its own is a part.

    Args:
        row: A pair or an item.
        room: Bytes of UTF-8.
    """
    fields = {name: row[name] for name in READ if row.get(name) and name != "rubric"}
    sizes = list(map(_bytes_in, texts_read(fields)))
    if sum(sizes) <= room:
        return Fitted({}, {})
    most = _longest(sorted(sizes), room)
    texts, left_out = {}, {}
    for name, value in fields.items():
        lost: list[int] = []
        cut = _changed(value, partial(_cut, most=most, lost=lost))
        if lost:
            texts[name], left_out[name] = cut, (len(lost), sum(lost))
    return Fitted(texts, left_out)


def _longest(sizes: Sequence[int], room: int) -> int:
    """The longest part with which all have room; sizes are sorted, the lowest first."""
    for done, size in enumerate(sizes):
        if size * (len(sizes) - done) > room:
            return max(0, room) // (len(sizes) - done)
        room -= size
    return room


def _cut(text: str, most: int, lost: list[int]) -> str:
    """The beginning and the end of a text, and how much is left out between."""
    size = _bytes_in(text)
    if size <= most:
        return text
    half = len(text) * most // size // 2
    lost.append(len(text) - 2 * half)
    return f"{text[:half]}\n[… {lost[-1]:,} characters left out …]\n{text[len(text) - half :]}"


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Plain texts, messages and blocks with each text that a prompt shows changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(part, change) for part in value]
    if not isinstance(value, Mapping):
        return value
    names = {"content", "tool_calls"} if "role" in value else {"text"}
    changed = {name: _changed(value[name], change) for name in names & value.keys()}
    if "args" in value:
        text = _arguments(cast("ToolCall", value))
        changed = {} if (cut := change(text)) == text else {"args": cut}
    return {**value, **changed}


# Roles of messages that say what was done, and are no text of their own.
_DONE = ("tool", "summary", *OUTCOMES[1:])
_NO_ANSWER = "(there is no final answer, unless the last result is one)"


def _written(text: Text, write: Callable[[WorkStep], str], *, is_work: bool) -> str:
    """A text, or messages with each step written by itself."""
    if isinstance(text, str):
        return text
    if len(text) == 1 and not _calls(text[0]) and text[0].get("role") not in _DONE:
        return plain(text[0].get("content"))
    parts = [write(step) for step in steps_of(text, is_work=is_work)]
    tools = any(_calls(message) or message.get("role") == "tool" for message in text)
    if is_work and tools and not (has_answer(text) or text[-1].get("role") == "participant"):
        parts.append(_NO_ANSWER)
    return ("\n" if write is _fenced else "\n\n").join(parts)


# What ends a line, in any reader of text, and what nobody sees at the edge of one.
_ENDS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_EDGE = rf"(?:[^\S{_ENDS}]|[\u200b-\u200f\u2060\ufeff])*"
# Where a line of a step would read as a mark.
_LIKE_A_MARK = re.compile(
    rf"(?:\A|(?<=[{_ENDS}]))(?={_EDGE}(?:> *)*(?:\[(?:turn \d+, |answer \d|final answer"
    rf"|(?:call|result|error|invalid call)(?: \d+)? of |{'|'.join(sorted(ROLES))})"
    rf"[^\]{_ENDS}]*\]|{re.escape(_NO_ANSWER)}){_EDGE}(?:[{_ENDS}]|\Z))"
)


def _readable(step: WorkStep) -> str:
    return f"[{step.mark}]\n{_LIKE_A_MARK.sub('> ', step.text)}"


def _fenced(step: WorkStep) -> str:
    tag = f"{re.sub('[ ,]+', '-', step.mark)}-{fence(step.text)}"
    return f"<{tag}>\n{step.text}\n</{tag}>"


def readable(text: Text) -> str:
    """The text that is judged, for people, keys and comparisons: never for prompts.

    Of several messages it has every step with its mark.
    """
    return _written(text, _readable, is_work=True)


def shown(text: Text) -> str:
    """The text that is judged as a prompt shows it: each step in a fence of its own.

    What a step says cannot look like another step. See `fences.py` for what is in the fences.
    """
    return _written(text, _fenced, is_work=True)


def compared(text: Text) -> tuple[bool, str]:
    """Text by which two sides are compared: all turns, not only the last."""
    return isinstance(text, str) or len(text) == 1, readable(text)


def transcript(text: Text) -> str:
    """The task, for people, keys and comparisons: never for prompts."""
    return _written(text, _readable, is_work=False)


def shown_task(text: Text) -> str:
    """The task as a prompt shows it: of several messages each in a fence of its own."""
    return _written(text, _fenced, is_work=False)


def answers_in_turn(task: Text, text: Text) -> bool:
    """Whether a side has answers alone, one for each of the user's messages in the task.

    Those messages may stand between them.
    """
    if isinstance(task, str) or isinstance(text, str) or len(text) < 2:
        return False
    asked = [plain(message.get("content")) for message in task]
    said = [m for m in text if m.get("role") != "user" or plain(m.get("content")) not in asked]
    answers = all(m.get("role") == "assistant" and not _calls(m) for m in said)
    return answers and 1 < len(said) <= user_turns(task) and said[-1] is text[-1]


def with_source(task: Text, source: str | None) -> str:
    """The task, followed by its source if that is a different text."""
    text = transcript(task)
    return f"{text}\n\n{source}" if source and source != text else text


def group_by_task(task: Text, source: str | None = None) -> str:
    """The group of a row that names none: a hash of the words of its task and source.

    Tasks that differ in case, spaces or punctuation are one.
    """
    raw = with_source(task, source).strip()
    text = " ".join(re.findall(r"\w+", raw.casefold())) or raw
    return f"task {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def user_turns(text: Text) -> int:
    """The number of user turns in the task."""
    if isinstance(text, str):
        return 1
    return sum(message.get("role", "user") == "user" for message in text)


READ = ("input", "output_a", "output_b", "reference", "output", "expected", "source", "rubric")


def texts_read(row: Mapping[str, object]) -> list[str]:
    """The texts that a judge reads of a row, those of messages, calls and blocks too."""
    texts: list[str] = []

    def kept(text: str) -> str:
        texts.append(text)
        return text

    _changed([row[name] for name in READ if row.get(name)], kept)
    return texts


# UTF-8 bytes that make a token, about, in any language: English has 4 to 5, Chinese 3 to 5.
BYTES = 4


def bytes_of(texts: Iterable[str]) -> int:
    """Number of bytes of texts in UTF-8."""
    return sum(map(_bytes_in, texts))


def _bytes_in(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
