"""A question of a step: what is asked of which model, what came of it, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from langchain_core import prompts
from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges import errors, orders
from langchain_judges import verdict as verdicts
from langchain_judges.asking import limiter, own_prompts, reply_log
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.reading import ASK_ERRORS, Parse, Problem, ReplyData, json_schema
from langchain_judges.rows import fences, media

# Where LangGraph's `configurable` holds the run that a judgment belongs to. Graphs within a
# graph inherit it; by its underscores it is neither checkpointed nor traced.
_RUN = "__langchain_judges_run"


class Booked(TypedDict):
    """The part of a verdict that its account knows."""

    failures: list[verdicts.Failure]
    usage: verdicts.Usage


@dataclass
class Booking:
    """Failures and cost of one question.

    Attributes:
        usage: None: nothing was asked.
    """

    failures: list[verdicts.Failure] = field(default_factory=list)
    usage: verdicts.Usage | None = None


@dataclass
class Account:
    """The account of a row: every question and failure of its judgment, in order.

    Attributes:
        row: The state of the graph, where images and files of the judged texts are found.
        run: What bounds the calls and keeps the replies of the row; None outside a run.
    """

    row: Mapping[str, Any] = field(default_factory=dict)
    run: limiter.RowInRun | None = None
    bookings: list[Booking | Account] = field(default_factory=list)

    def open(self) -> Booking:
        """A place for a question that is about to be asked."""
        booking = Booking()
        self.bookings.append(booking)
        return booking

    def part(self) -> Account:
        """The account of one of several steps at once; parts are told as they were opened."""
        part = Account(self.row, self.run)
        self.bookings.append(part)
        return part

    def fail(self, failures: Sequence[verdicts.Failure]) -> None:
        """Book failures apart from the questions.

        Raises:
            TypeError: One is no `Failure`.
        """
        names, reasons = set(verdicts.Failure.__annotations__), get_args(verdicts.FailureReason)
        for each in failures:
            fields = each if isinstance(each, Mapping) else {}
            if set(fields) != names or fields["reason"] not in reasons:
                raise TypeError(ASK_ERRORS["no_failure"].format(reasons, each))
        self.open().failures.extend(failures)

    @property
    def booked(self) -> Booked:
        """Failures and usage so far, in the form of a verdict."""
        return {"failures": self.failures, "usage": self.usage}

    @property
    def failures(self) -> list[verdicts.Failure]:
        """Everything that went wrong so far, in the order in which it was asked."""
        return [failure for booking in self.bookings for failure in booking.failures]

    @property
    def usage(self) -> verdicts.Usage:
        """Cost so far."""
        return verdicts.add_usage([each.usage for each in self.bookings if each.usage])


def run_of(config: Mapping[str, Any] | None) -> limiter.RowInRun | None:
    """The run that a judgment belongs to, by its configuration."""
    run: limiter.RowInRun | None = ((config or {}).get("configurable") or {}).get(_RUN)
    return run


def within_run(config: RunnableConfig | None, run: limiter.RowInRun) -> RunnableConfig:
    """A configuration whose judgments belong to a run."""
    settings = {**((config or {}).get("configurable") or {}), _RUN: run}
    return {**(config or {}), "configurable": settings}


# What was read of a reply itself beside its data, by name: plain JSON.
Measurements = dict[str, Any]
# A `Reply` as the log holds it: plain JSON.
StoredReply = dict[str, Any]
_MESSAGE_OF_TEMPLATE: dict[type, type[HumanMessage | SystemMessage]] = {
    prompts.HumanMessagePromptTemplate: HumanMessage,
    prompts.SystemMessagePromptTemplate: SystemMessage,
}


@dataclass(frozen=True)
class Question:
    """Question of a step, the same for every unit it works on.

    Attributes:
        method: The judge's method.
        step: The graph's node.
        adapter: How the model is asked.
        prompt: The template.
        reply_schema: What the reply must look like; its bounds and choices are checked.
        version: Hash of the method's prompts, for traces and cache keys.
        label: What its calls are called in traces, if not by the step; `{unit}` puts the unit
            there.
        parse: Reads a reply in plain words, for models that ignore the format.
        partial: A laxer shape, to save what can be read of a reply that stays unusable.
        measure: Reads what only the reply itself tells, such as token log-probabilities, of
            the data that were read from it.
        measured_as: What `measure` reads, where it can read more than one thing; for cache
            keys.
        sampled: Whether several replies to the same prompt are wanted.
        cache_first: Whether the first of calls that begin alike is answered before the others
            are sent.
        shares_material: Whether other calls show the same material and take a reply of the
            same shape.
        logprobs: Whether token log-probabilities are wanted.
        alternatives: Other tokens whose log-probabilities come with those of each token.
        repairs: Repair turns after an unusable reply; each is a paid call.
        cache: A LangChain cache for good replies.
        is_shared: Whether all rows with an equal call share one reply, as they do a plan.
        log: Where every good reply is written before the graph uses it.
        tools: What may be called instead of a reply, as OpenAI writes tools; a model that
            cannot call any replies by the schema.
    """

    method: str
    step: str
    adapter: ModelAdapter
    prompt: prompts.ChatPromptTemplate
    reply_schema: type[BaseModel]
    version: str
    label: str = ""
    parse: Parse | None = None
    partial: type[BaseModel] | None = None
    measure: Callable[[AIMessage, ReplyData], Measurements] | None = None
    measured_as: str = ""
    sampled: bool = False
    cache_first: bool = True
    shares_material: bool = False
    logprobs: bool = False
    alternatives: int = 0
    repairs: int = 1
    cache: BaseCache | None = None
    is_shared: bool = False
    log: reply_log.ReplyLog = field(default_factory=reply_log.ReplyLog)
    tools: Sequence[dict[str, Any]] = ()
    _decisive: dict[int | None, str] = field(default_factory=dict, init=False, compare=False)

    def decisive(self, seed: int | None) -> str:
        """JSON of all that decides a reply of a seed beside its prompt, made once."""
        if seed not in self._decisive:
            call = {
                "model": self.adapter.identity,
                # What the model refuses is learnt anew by each process.
                "sampling": self.adapter.wanted_sampling(self.sampled, seed),
                "seed": seed,
                "reply": json_schema(self.reply_schema),
                # A reply kept without log-probabilities is no answer where they are wanted.
                "measured": [self.logprobs, self.measured_as],
                "tools": self.tools,
            }
            self._decisive[seed] = json.dumps(call, sort_keys=True, default=str)
        return self._decisive[seed]

    def config(self, unit: str, order: orders.Order | None, seed: int | None) -> RunnableConfig:
        """The name, tags and metadata of a call's run, as LangSmith shows them."""
        name = ":".join(filter(None, [self.label or self.step, unit]))
        if "{unit}" in self.label:
            name = self.label.replace("{unit}", unit) or self.step
        sampling, known = self.adapter.sampling(self.sampled, seed), self.adapter.identity
        own = sampling.get("temperature", known.get("temperature"))
        metadata = {
            "unit": unit,
            "order": order,
            "model": known["name"],
            "prompt_version": self.version,
            "temperature": "refused" if "temperature" in self.adapter.refused else own,
        }
        return {"run_name": name, "tags": [self.method, self.step], "metadata": metadata}


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost.

    Attributes:
        data: What was read from the reply.
        failures: What went wrong.
        usage: What was paid.
        measured: What `Question.measure` read.
        problem: What was wrong with a reply of which only a part is used.
    """

    data: ReplyData | None
    failures: list[verdicts.Failure]
    usage: verdicts.Usage
    measured: Measurements = field(default_factory=dict)
    problem: Problem | None = None

    def stored(self) -> StoredReply:
        """The reply as plain JSON."""
        return dict(vars(self))

    @classmethod
    def of(cls, entry: StoredReply) -> Reply:
        """The reply that the log holds."""
        problem = Problem(*entry["problem"]) if entry["problem"] else None
        return cls(**{**entry, "problem": problem})


@dataclass
class Asking:
    """One question about one unit, while it is being asked.

    Attributes:
        question: What is asked.
        variables: Fill the prompt's template.
        account: Of the row, where it is booked.
        unit: What about.
        order: The order in which the texts are shown.
        seed: Of one sample of many.
        messages: The prompt, and what was said about unusable replies to it.
        cost: What was paid so far.
        dropped_settings: What its requests lacked because the model refuses it.
        cache_key: Of what the prompt has in common with others, so that a provider finds its
            cache.
        leave: Gives the place of its last call back, where one is held.
    """

    question: Question
    variables: Mapping[str, object]
    account: Account
    unit: str
    order: orders.Order | None
    seed: int | None
    messages: list[BaseMessage] = field(default_factory=list)
    cost: verdicts.StepUsage = field(default_factory=verdicts.no_step_usage)
    dropped_settings: set[str] = field(default_factory=set)
    cache_key: str = ""
    leave: Callable[[], None] | None = None

    def give_back(self) -> None:
        """Give its place back: what came is written down, or nothing came."""
        leave, self.leave = self.leave, None
        if leave:
            leave()

    @cached_property
    def prompt(self) -> list[BaseMessage]:
        """The messages that are sent first."""
        return rendered(self.question, self.variables, self.account.row)

    @cached_property
    def key(self) -> tuple[str, str]:
        """The two strings by which the log and a LangChain cache know a call."""
        messages = [_message_key(message) for message in self.prompt]
        return reply_log.json_text(messages), self.question.decisive(self.seed)

    def reply(self, data: ReplyData | None, problem: Problem | None) -> Reply:
        """The reply with what it cost."""
        failures = [problem.failure(self.question.step, self.unit)] if problem else []
        return Reply(data, failures, self.usage())

    def usage(self) -> verdicts.Usage:
        """Cost so far."""
        usage = verdicts.no_usage()
        for key in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            usage[key] = self.cost[key]
        usage["by_step"] = {self.question.step: self.cost}
        if self.dropped_settings:
            usage["asked_without"] = sorted(self.dropped_settings)
        return usage


def sample_seed(seed: int, number: int) -> int:
    """The seed of one sample of a judge; of each sample, and each judge, another."""
    # So far apart that the samples of two judges are not the same ones.
    return 1000 * seed + number


def chat_prompt(system: str, *human: str) -> prompts.ChatPromptTemplate:
    """A prompt of two messages.

    Args:
        system: The template of the system message.
        *human: The template of the human one, in parts that are joined as they are.

    Raises:
        OptionError: A brace stands alone, or around what is no name.
    """
    return own_prompts.template_of("the prompt", [("system", system), ("human", "".join(human))])


def rendered(
    question: Question, variables: Mapping[str, object], row: Mapping[str, Any]
) -> list[BaseMessage]:
    """The messages of a question, with the images, audio and files that a row holds."""
    messages = fences.sealed_messages(_rendered(question, variables))
    for at, message in enumerate(messages):
        if isinstance(message, HumanMessage) and isinstance(message.content, str):
            messages[at] = fences.with_content(message, media.with_media(message.content, row))
    return messages


def _rendered(question: Question, variables: Mapping[str, object]) -> list[BaseMessage]:
    """The messages of a question, before its fences are sealed.

    What many rows share, the variable `shared`, ends the system message whatever the template
    says: before the row, so that providers can cache it, and in templates of a caller's own.
    """
    prompt = question.prompt
    variables = own_prompts.with_fences(prompt, variables)
    if lacking := sorted(set(prompt.input_variables) - set(variables)):
        what = f"the prompt {question.step!r} shows {lacking}"
        if isinstance(prompt, own_prompts.FencedPrompt):  # of the caller, who names columns
            raise errors.InputError(f"{what}, which this row does not have")
        raise LookupError(f"{what}, which the variables of its step do not hold")
    # As LangChain fills it; an empty list is its own, for messages that may lack.
    filled = prompt.partial_variables.items()
    own = {n: v() if callable(v) else v for n, v in filled if v != [] or n not in variables}
    given = {**variables, **own}
    messages = [each for part in prompt.messages for each in _filled_part(part, given)]
    if not (shared := variables.get("shared")):
        return messages
    if not isinstance(first := messages[0], SystemMessage):
        return [SystemMessage(str(shared).strip()), *messages]
    return [SystemMessage(f"{first.content}{shared}"), *messages[1:]]


def _filled_part(part: Any, variables: Mapping[str, object]) -> list[BaseMessage]:
    """The messages of a part of a prompt."""
    if isinstance(part, BaseMessage):
        return [part]
    kind, text = _MESSAGE_OF_TEMPLATE.get(type(part)), vars(part).get("prompt")
    is_plain = isinstance(text, prompts.PromptTemplate) and text.template_format == "f-string"
    if not kind or not is_plain or text.partial_variables:
        return list(part.format_messages(**variables))
    # LangChain's own formatter takes ten times as long.
    return [kind(text.template.format_map(variables), additional_kwargs=part.additional_kwargs)]


def _message_key(message: BaseMessage) -> list[Any]:
    """Key of a message: two histories may differ in their tool calls alone."""
    fields, known = ("tool_calls", "invalid_tool_calls", "tool_call_id"), vars(message)
    of_tools = {name: found for name in fields if (found := known.get(name))}
    return [message.type, message.content, *([of_tools] if of_tools else [])]
