"""What a judge recalls from its memory for an item: how, how much, and its account of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypeVar

from typing_extensions import TypedDict

from langchain_judges.asking.steps import Effect, Steps
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example, texts_of
from langchain_judges.memory.protocol import Memory, check_memory
from langchain_judges.memory.recall import Recall, Recalled, read_recall
from langchain_judges.memory.rendering import WORDING, example_texts
from langchain_judges.verdict import Failure, Pair

T = TypeVar("T")

BUDGET = 24_000
"""Default for the characters of examples shown to a judge of pairs."""
_CHARACTERS = 3
"""Characters per token, by a cautious guess."""
_RESERVED = 1500
"""Tokens of a model's context reserved for instructions and the reply."""


class RememberedPair(Pair):
    """A pair with the fields that decide which examples it may recall; no model sees them."""

    family: NotRequired[str]
    group: NotRequired[str]


class Account(TypedDict):
    """What a judge reports about its examples, in addition to the verdict."""

    ids: list[str]
    """Ids of the examples shown, in order."""
    left_out: int
    """Number of recalled examples that did not fit."""
    leaked: list[str]
    """Ids of shown examples that are the item itself or of its group (`allow_leak=True`)."""
    allow_leak: bool
    version: str
    """Version of the memory."""


class Reminded(TypedDict):
    """The examples recalled for one item; plain data for the state of a graph."""

    examples: list[Example]
    account: Account


@dataclass(frozen=True)
class Reminder:
    """A judge's memory, and how the judge recalls from it."""

    memory: Memory
    how: Recall
    allow_leak: bool
    context: int | None = None
    """Tokens of the model's context, if known."""

    def mark(self) -> dict[str, object]:
        """Return the settings of the memory that belong to the judge's mark.

        The memory's content is not among them, because it changes.
        """
        return {
            "recall": self.how.as_json(),
            "allow_leak": self.allow_leak,
            "wording": WORDING[:12],
            "budget": self._budget,
        }

    @property
    def _budget(self) -> int:
        return BUDGET if self.memory.budget is None else self.memory.budget

    @property
    def empty_update(self) -> dict[str, Account]:
        """The state update of a judge that needs no examples: for two identical texts."""
        account: Account = {
            "ids": [],
            "left_out": 0,
            "leaked": [],
            "allow_leak": self.allow_leak,
            "version": self.memory.version,
        }
        return {"recalled": account}

    def recall(self, item: Mapping[str, object]) -> Steps[Reminded]:
        """Recall examples for an item; the caller names the run in traces."""
        return self.fit((yield from self.fetch(item)), item)

    def fetch(self, item: Mapping[str, object]) -> Steps[Recalled]:
        """Recall examples for an item, whether they fit or not."""
        query = {name: value for name, value in item.items() if value is not None}
        memory, how, leak = self.memory, self.how, self.allow_leak
        recalled: Recalled = yield Effect(
            lambda: memory.recall(query, how, allow_leak=leak),
            lambda: memory.arecall(query, how, allow_leak=leak),
        )
        return recalled

    def _room(self, item: Mapping[str, object]) -> int:
        """Return how many characters of examples may be shown with an item."""
        if not self.context:
            return self._budget
        own = texts_of(item)
        size = sum(map(len, (own.task, *own.outputs, own.expected)))
        return min(self._budget, _CHARACTERS * (self.context - _RESERVED) - size)

    def fit(self, recalled: Recalled, item: Mapping[str, object]) -> Reminded:
        """Keep the examples that fit: the first, or the newest if the choice is `all`."""
        examples: list[Example] = fitting(
            recalled,
            self._room(item),
            lambda example: sum(map(len, example_texts([example]))),
            newest=self.how.kind == "all",
        )
        examples = nearest_last(examples, self.how)
        ids = [example["id"] for example in examples]
        account: Account = {
            "ids": ids,
            "left_out": len(recalled) - len(examples),
            "leaked": [name for name in recalled.leaked if name in ids],
            "allow_leak": recalled.allow_leak,
            "version": recalled.version,
        }
        return {"examples": examples, "account": account}


def fitting(
    examples: Sequence[T], room: float, size: Callable[[T], int], *, newest: bool
) -> list[T]:
    """Return the examples that fit: the first, or the last, in their order."""
    recent: list[T] = []
    for example in reversed(examples) if newest else examples:
        room -= size(example)
        if room < 0:
            break
        recent.append(example)
    return recent[::-1] if newest else recent


def nearest_last(examples: list[Example], how: Recall) -> list[Example]:
    """Return examples with the nearest one last, next to the item; others unchanged."""
    return examples[::-1] if how.inner.kind in {"knn", "mmr"} else examples


def reminder(
    memory: Memory | None,
    recall: Recall | str | None,
    allow_leak: bool,
    contexts: Sequence[int | None] = (),
) -> Reminder | None:
    """Return how a judge recalls, from the keywords of its factory; None without a memory.

    Args:
        memory: The memory.
        recall: The choice of examples; default the memory's own.
        allow_leak: Allow examples of the item itself and its group.
        contexts: Tokens of the models' contexts, if known.

    Raises:
        OptionError: An option is not allowed, or is set without a memory.
    """
    if not isinstance(allow_leak, bool):
        raise OptionError(f"`allow_leak` must be true or false, got {allow_leak!r}")
    if memory is None:
        if recall is not None or allow_leak:
            raise OptionError("`recall` and `allow_leak` need a `memory`")
        return None
    check_memory(memory)
    how = read_recall(memory.how if recall is None else recall)
    return Reminder(memory, how, allow_leak, min(filter(None, contexts), default=None))


def cut_failures(account: Account) -> list[Failure]:
    """Return a failure for examples that did not fit, so that the cut is visible."""
    if not account["left_out"]:
        return []
    count = len(account["ids"]) + account["left_out"]
    detail = f"{account['left_out']} of {count} recalled examples had no room and were left out"
    return [{"step": "recall", "unit": "examples", "reason": "input_cut", "detail": detail}]
