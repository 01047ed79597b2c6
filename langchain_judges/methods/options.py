"""What every judge and writer takes, and what a method says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Le
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import AfterValidator, InstanceOf, SkipValidation, field_validator

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Memory, Recall, is_memory, read_recall
from langchain_judges.memory.shown import Recaller, recaller
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.evidence import EvidenceTable, Sketch
from langchain_judges.methods.marks import Kind
from langchain_judges.options import (
    ClientMost,
    ForClient,
    NotSerialisable,
    Options,
    Owner,
    Rule,
)
from langchain_judges.orders import Order, OrderRule, orders_of


def _check_text(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text


Written = Annotated[str, AfterValidator(_check_text), Rule("a text that is not empty")]
"""A text with something in it."""

OtherModel = Annotated[
    Written | InstanceOf[BaseChatModel] | None,
    Owner(),
    Rule(
        "a chat model (without `bind` or `with_retry`), 'local', 'local:/path/to.gguf' or a "
        "name such as 'openai:gpt-5-mini'"
    ),
]
"""A model for one step, instead of the judge's own."""

Seed = Annotated[int, Ge(0), ClientMost(2**53)]
"""Of random choices."""


class GraphOptions(Options):
    """What every judge and writer takes, and what a method says of itself."""

    method: ClassVar[str]
    """The method's name on the command line, in traces and in results."""
    summary: ClassVar[str]
    """One line for lists of methods."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options by name; a preset is data, not another code path."""
    budgets: ClassVar[tuple[Budget, ...]] = ()
    """How it spends a budget of calls for a pair; the first rule that fits counts."""
    events: ClassVar[Mapping[str, str]] = {}
    """State keys whose items are streamed one by one, and what an item is called."""
    evidence: ClassVar[Sequence[EvidenceTable]] = ()
    """What a page shows of its results, beside the verdict."""
    sketches: ClassVar[Sequence[Sketch]] = ()
    """What a terminal shows of a result, beside the verdict."""
    templates: ClassVar[Mapping[str, ChatPromptTemplate]]
    """The prompt of each step."""

    instructions: str | None = None
    """Your rubric, or the language to answer in; shown to every step."""
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    """Overrides the model's own."""
    repairs: Annotated[int, Ge(0), ClientMost(3)] = 1
    """Turns in which a model may correct an unusable reply."""
    prompts: Annotated[
        Mapping[str, InstanceOf[ChatPromptTemplate]] | None,
        NotSerialisable(),
        Rule("prompts by step, each a `ChatPromptTemplate`"),
    ] = None
    """Replacements for the method's prompts, by step, with the same variables."""
    name: Written | None = None
    """Name of the graph in traces; default the method's."""
    checkpointer: Annotated[
        BaseCheckpointSaver[Any] | bool | None,
        NotSerialisable(),
        Rule("a LangGraph checkpointer, such as `SqliteSaver`, or None"),
    ] = None
    """LangGraph checkpointer: `SqliteSaver` for `invoke`, `AsyncSqliteSaver` for `ainvoke`."""
    cache: Annotated[
        BaseCache | None, NotSerialisable(), Rule("a LangChain `BaseCache` or None")
    ] = None
    """LangChain cache for checked replies."""
    store: Annotated[
        BaseStore | None, NotSerialisable(), Rule("a LangGraph `BaseStore` or None")
    ] = None
    """LangGraph store, passed to the graph."""

    @field_validator("instructions")
    @classmethod
    def _stripped(cls, text: str | None) -> str | None:
        return (text or "").strip() or None

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return self.method

    def calls(self) -> int:
        """Return the calls for one row, excluding repairs."""
        raise NotImplementedError

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return self.calls()


def _memory(value: object) -> object:
    if value is not None and not is_memory(value):
        raise ValueError
    return value


def _choice(recall: Recall | str | None) -> Recall | str | None:
    if recall is not None:
        read_recall(recall)
    return recall


class JudgeOptions(GraphOptions):
    """What every judge takes."""

    takes: ClassVar[Kind] = "pair"
    """What it judges: two texts, or one."""

    memory: Annotated[
        Memory | None,
        SkipValidation,
        AfterValidator(_memory),
        Rule("a FailureMemory"),
        NotSerialisable(),
    ] = None
    """Audited mistakes; the judge sees those that resemble the row."""
    recall: Annotated[
        Recall | str | None,
        AfterValidator(_choice),
        Rule("a choice of examples such as 'knn:8'"),
        ForClient(str | None),
    ] = None
    """How examples are chosen from the memory, such as `"knn:8"` or `"none"`; None uses the
    memory's own strategy."""
    allow_leak: bool = False
    """Allow examples of the row itself and of its group; results then say so."""

    def recaller(self, contexts: Sequence[int | None]) -> Recaller | None:
        """Return how the judge asks its memory; None without one.

        Args:
            contexts: Tokens that the models take that are shown examples, where known.
        """
        return recaller(self.memory, self.recall, self.allow_leak, contexts)

    @property
    def order_rule(self) -> OrderRule:
        """How the verdicts of the orders become one."""
        return getattr(self, "orders", None) or "none"

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked."""
        return orders_of(self.order_rule)


def check_quorum(least: int | None, most: int) -> None:
    """Check that `min_valid` can be met.

    Raises:
        OptionError: It cannot.
    """
    if least is not None and least > most:
        raise OptionError(f"`min_valid` must be at most {most}, got {least!r}")
