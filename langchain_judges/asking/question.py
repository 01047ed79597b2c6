"""What a step asks, its reply, and what it costs while it is being asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_judges.asking.adapter import ModelAdapter, Sampling
from langchain_judges.asking.limiter import ROW_COST
from langchain_judges.asking.models import model_name
from langchain_judges.asking.replies.reading import Parse, Problem, ReplyData
from langchain_judges.asking.store import ThreadReplies
from langchain_judges.orders import Order
from langchain_judges.verdict import Failure, StepUsage, Usage, no_step_usage, no_usage

Measurements = dict[str, Any]
"""What was read of a reply itself beside its data, by name: plain JSON."""


@dataclass(frozen=True)
class Question:
    """What a step asks, the same for every unit it works on."""

    method: str
    step: str
    adapter: ModelAdapter
    prompt: ChatPromptTemplate
    shape: type[BaseModel]
    """What the reply must look like; its bounds and choices are checked."""
    version: str
    """Hash of the method's prompts, for traces and cache keys."""
    label: str = ""
    """What its calls are called in traces, if not by the step; `{unit}` puts the unit there."""
    parse: Parse | None = None
    """Reads a reply in plain words, for models that ignore the format."""
    partial: type[BaseModel] | None = None
    """A laxer shape, to save what can be read of a reply that stays unusable."""
    measure: Callable[[AIMessage, ReplyData], Measurements] | None = None
    """Reads what only the reply itself tells, such as token log-probabilities, of the data
    that were read from it."""
    measured_as: str = ""
    """What `measure` reads, where it can read more than one thing; for cache keys."""
    sampled: bool = False
    """Whether several replies to the same prompt are wanted."""
    cache_first: bool = True
    """Whether the first of calls that begin alike is answered before the others are sent."""
    shares_material: bool = False
    """Whether other calls show the same material and take a reply of the same shape."""
    logprobs: bool = False
    alternatives: int = 0
    """Other tokens whose log-probabilities come with those of each token."""
    repairs: int = 1
    """Repair turns after an unusable reply; each is a paid call."""
    cache: BaseCache | None = None
    replies: ThreadReplies | None = None
    """Where every good reply is written before the graph uses it."""


class StoredReply(TypedDict):
    """A reply as a store holds it: plain JSON."""

    data: ReplyData | None
    failures: list[Failure]
    usage: Usage
    measured: Measurements
    problem: list[Any] | None
    """Its reason and its detail."""


@dataclass
class Reply:
    """The checked data of a reply, or None and why; and what it cost."""

    data: ReplyData | None
    failures: list[Failure]
    usage: Usage
    message: AIMessage | None = None
    """The reply itself; None where there is none, or a cache answered."""
    measured: Measurements = field(default_factory=dict)
    """What `Question.measure` read."""
    problem: Problem | None = None
    """What was wrong with a reply of which only a part is used."""

    def stored(self) -> StoredReply:
        """Return it as a store holds it, without its message."""
        return {
            "data": self.data,
            "failures": self.failures,
            "usage": self.usage,
            "measured": self.measured,
            "problem": list(self.problem) if self.problem else None,
        }

    @classmethod
    def of(cls, entry: StoredReply) -> Reply:
        """Return the reply that a store holds."""
        problem = Problem(*entry["problem"]) if entry["problem"] else None
        parts = entry["data"], entry["failures"], entry["usage"]
        return cls(*parts, None, entry["measured"], problem)


@dataclass
class Asking:
    """One question about one unit, while it is being asked."""

    question: Question
    unit: str
    order: Order | None
    seed: int | None
    cost: StepUsage = field(default_factory=no_step_usage)
    lacking: set[str] = field(default_factory=set)
    """What its requests lacked because the model refuses it."""
    cache_key: str = ""
    """Of what the prompt has in common with others, so that a provider finds its cache."""
    unwritten: int = 0
    """Replies that came, and that neither the graph nor the store has yet."""

    def wrote(self) -> None:
        """Say that the graph or the store has what came."""
        if self.unwritten and (row_cost := ROW_COST.get()):
            row_cost.limiter.wrote(self.unwritten)
        self.unwritten = 0

    def reply(
        self,
        data: ReplyData | None,
        problem: Problem | None,
        message: AIMessage | None = None,
    ) -> Reply:
        """Return the reply with what it cost."""
        failures: list[Failure] = []
        if problem:
            failures.append(
                {
                    "step": self.question.step,
                    "unit": self.unit,
                    "reason": problem.reason,
                    "detail": problem.detail[:500],
                }
            )
        return Reply(data, failures, self.usage(), message)

    def usage(self) -> Usage:
        """Return what was paid so far."""
        usage = no_usage()
        for key in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            usage[key] = self.cost[key]
        usage["by_step"] = {self.question.step: self.cost}
        if self.lacking:
            usage["asked_without"] = sorted(self.lacking)
        return usage

    def config(self, sampling: Sampling) -> RunnableConfig:
        """Return the run's name, tags and metadata, as LangSmith shows them."""
        question = self.question
        name = ":".join(filter(None, [question.label or question.step, self.unit]))
        if "{unit}" in question.label:
            name = question.label.replace("{unit}", self.unit) or question.step
        return {
            "run_name": name,
            "tags": [question.method, question.step],
            "metadata": {
                "unit": self.unit,
                "order": self.order,
                "model": model_name(question.adapter.model),
                "prompt_version": question.version,
                "temperature": "refused"
                if "temperature" in question.adapter.refused
                else sampling.get("temperature", question.adapter.identity.get("temperature")),
            },
        }


_SPREAD = 1000
"""Distance of the seeds of two judges, so that their samples are not the same ones."""


def sample_seed(seed: int, number: int) -> int:
    """Return the seed of one sample of a judge; of each sample, and each judge, another."""
    return _SPREAD * seed + number


def chat_prompt(system: str, *human: str) -> ChatPromptTemplate:
    """Return a prompt of two messages.

    Args:
        system: The template of the system message.
        *human: The template of the human one, in parts that are joined as they are.
    """
    return ChatPromptTemplate.from_messages([("system", system), ("human", "".join(human))])
