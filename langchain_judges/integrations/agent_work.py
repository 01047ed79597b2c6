"""The messages of an agent at work: what was asked, what was done since, and its drafts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from langchain_judges.errors import InputError
from langchain_judges.rows import data, fields, texts, work
from langchain_judges.rows.messages import messages_in, speaker_of

# Who requests a revision of the agent's model.
REVISER = "judge"


def task_of(messages: Sequence[AnyMessage], system: str = "", files: Any = None) -> texts.PlainText:
    """The agent's task, without its drafts and the judge's reasons.

    Args:
        messages: Those until the work begins.
        system: The agent's instructions, which stand first if the messages lack them.
        files: Those that were in the state before the agent began.
    """
    rejected = drafts_in(messages)
    asked = [m for m in messages if str(m.id) not in rejected]
    if system and not any(m.type == "system" and m.text == system for m in asked):
        asked = [SystemMessage(system), *asked]
    try:
        return fields.task_in({"messages": asked, "files": files} if files else asked)
    except InputError:
        return texts.NO_TASK


def work_of(messages: Sequence[AnyMessage], files: object = None) -> texts.PlainText:
    """An agent's work since the user's last message, without rejected drafts.

    Args:
        messages: Those since then.
        files: Those that it wrote there, where it may have put results.
    """
    rejected = drafts_in(messages)
    done = [_amid_work(message) for message in messages if str(message.id) not in rejected]
    return work.work_in({"messages": done, "files": files} if files else done)


def _amid_work(message: AnyMessage) -> AnyMessage:
    """A message amid the work; under the user's role it may be a tool's, or the user's own.

    Nothing tells which, so it has its own name, or says when it came.
    """
    marks = {"additional_kwargs": {"lc_source": "during_the_work"}}
    return message.model_copy(update=marks) if _speaker(message) == "user" else message


def beginning(messages: Sequence[AnyMessage], last: str | None) -> int:
    """Start of the work after the user's last message.

    Args:
        messages: Those of the agent's state.
        last: The id of the last message before this run began.
    """
    end = next((i for i, m in enumerate(messages, 1) if m.id == last), len(messages))
    return max((i for i, m in enumerate(messages[:end], 1) if _speaker(m) == "user"), default=0)


def _speaker(message: AnyMessage) -> str:
    role = "user" if message.type == "human" else message.type
    return speaker_of(role, message.additional_kwargs)


def drafts_in(messages: Sequence[AnyMessage]) -> set[str]:
    """The ids of each request to revise and of the draft that it names."""
    requests = (m for m in messages if _speaker(m) == REVISER)
    return {str(id) for m in requests for id in (m.id, *m.additional_kwargs.get("draft", ()))}


def draft_in(state: Any) -> list[str]:
    """The ids of the messages that only say the last answer.

    A call that ran is work, also where its result is the answer: it is no part of a draft, but
    for a structured response that was called alone.
    """
    said = answer_at_end(state["messages"])
    is_draft = len(said) == 1 or (len(said) == 2 and state.get("structured_response") is not None)
    return [str(message.id) for message in said] if is_draft else []


def answer_at_end(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages of the last answer: one, or a call with the results after it.

    A structured response that a tool's call gives ends in that tool's result.
    """
    start = max((n for n, m in enumerate(messages) if m.type != "tool"), default=0)
    return messages[start:] if messages and messages[start].type == "ai" else []


def is_by_model(state: Any) -> bool:
    """Whether a model wrote the last answer, and no guardrail or limit of other middleware.

    Others may have replaced the message: half of its words are then still the model's.
    """
    said, written = answer_at_end(state["messages"]), state.get("written") or ()
    ids, words = {m.id for m in written}, {word for m in written for word in m.text.split()}
    own = [word in words for message in said[:1] for word in message.text.split()]
    return any(m.id in ids for m in said) or 2 * sum(own) >= max(1, len(own))


def as_of_now(state: Any) -> Any:
    """The state without what is of an earlier turn, where no model wrote the last answer.

    Other middleware may have ended the turn before the one that judges could begin it.
    """
    messages, judged = state["messages"], state.get("answers")
    is_asked = beginning(messages, None) > beginning(messages, state.get("begun"))
    is_new = is_asked and not (judged and "revised" in judged[-1])
    begun = {"answers": [], "seen": [], "begun": None, "files_before": state.get("files")}
    return {**state, "structured_response": None, **(begun if is_new else {})}


def answer_in(last: AnyMessage) -> texts.PlainText:
    """The answer that an agent's last message is; empty if it has no text, or is none."""
    said = "".join(texts.plain(message["content"]) for message in messages_in(last))
    is_answer = isinstance(last, AIMessage) and not last.tool_calls
    return work.work_in([last]) if is_answer and said.strip() else ""


def with_answer(state: Any) -> list[AnyMessage]:
    """The messages with the answer as the last.

    That may be a structured response, in place of its call, or what a tool returned to the
    user, which is named after the tool.
    """
    messages: list[AnyMessage] = state["messages"]
    structured = state.get("structured_response")
    results = answer_at_end(messages)[1:]
    if not results:
        return messages
    if structured is None:
        said = results[0].content if len(results) == 1 else "\n\n".join(r.text for r in results)
        return [*messages, AIMessage(said, name=results[-1].name)]
    # The results of other tools, called at the same time, are still to be seen.
    before = messages[:-2] if len(results) == 1 else messages
    return [*before, AIMessage(data.as_json(structured))]


def request_at(messages: Sequence[AnyMessage], last: str | None) -> int:
    """Place of the last words of the user, in one message or in several."""
    end = beginning(messages, last)
    return end - len([*takewhile(lambda m: m.type == "human", reversed(messages[:end]))])


def with_removed(state: Any) -> list[AnyMessage]:
    """The messages of a state with those of this run that other middleware took out of it.

    A summary made in this run is left out: all that it sums up is there, but for turns before
    the last.
    """
    seen: list[AnyMessage] = state.get("seen") or []
    messages: list[AnyMessage] = state["messages"]
    if not seen:
        return messages
    now, known = {m.id: m for m in messages}, {m.id for m in seen}
    place = next((i for i, m in enumerate(messages) if m.id in known), 0)
    had_turns = seen[0].type != "human"
    before = [m for m in messages[:place] if had_turns or _speaker(m) != "summary"]
    after = [m for m in messages[place:] if m.id not in known and _speaker(m) != "summary"]
    return [*before, *(now.get(m.id, m) for m in seen), *after]
