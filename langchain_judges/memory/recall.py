"""What a judge recalls from its memory for an item: how, how much, and its report of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Literal, NotRequired, Protocol, TypeGuard, TypeVar

from typing_extensions import TypedDict

from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example, copy_of, texts_of
from langchain_judges.memory.shown import WORDING, length_of
from langchain_judges.verdict import Failure, Pair

T = TypeVar("T")

BUDGET = 24_000
"""Default for the characters of examples shown to a judge of pairs."""
_CHARACTERS = 3
"""Characters per token, by a cautious guess."""
_RESERVED = 1500
"""Tokens of a model's context reserved for instructions and the reply."""

RecallKind = Literal["none", "all", "uniform", "near", "knn"]


@dataclass(frozen=True)
class Recall:
    """A choice of examples; create it with the functions of this module."""

    kind: RecallKind
    m: int | None = None
    seed: int = 0
    any_family: bool = False

    def __str__(self) -> str:
        """Return the choice as shown in metadata: `knn:8`."""
        return self.kind if self.m is None else f"{self.kind}:{self.m}"

    def as_json(self) -> dict[str, object]:
        """Return the choice as plain data."""
        return asdict(self)


def none() -> Recall:
    """Choose no example."""
    return Recall("none")


def all_(*, any_family: bool = False) -> Recall:
    """Choose every example, in the order they were remembered (Hasanbeig et al. 2023)."""
    return Recall("all", any_family=any_family)


def uniform(m: int, *, seed: int = 0, any_family: bool = False) -> Recall:
    """Choose `m` random examples, the same for every item that may see them.

    With the same seed, a larger `m` includes the examples of a smaller one.
    """
    return Recall("uniform", _check_count(m), seed=seed, any_family=any_family)


def near(m: int = 8, *, any_family: bool = False) -> Recall:
    """Choose `m` examples near the item, equally many of each corrected label where there are.

    A judge that is shown mistakes of one kind alone learns to turn its labels round.
    """
    return Recall("near", _check_count(m), any_family=any_family)


def knn(m: int = 8, *, any_family: bool = False) -> Recall:
    """Choose the `m` examples nearest to the item, by task, response and expected answer."""
    return Recall("knn", _check_count(m), any_family=any_family)


_FACTORIES: dict[str, Callable[[int], Recall]] = {
    "uniform": uniform,
    "near": near,
    "knn": knn,
}


def read_recall(how: Recall | str) -> Recall:
    """Return a choice from itself or from its name, such as `"all"` or `"knn:8"`.

    Raises:
        OptionError: The choice does not exist.
    """
    if isinstance(how, Recall):
        return how
    name, _, rest = how.partition(":") if isinstance(how, str) else ("", "", "")
    if name == "none" and not rest:
        return none()
    if name == "all" and not rest:
        return all_()
    if name in _FACTORIES and (rest.isdigit() or (not rest and name in {"near", "knn"})):
        return _FACTORIES[name](int(rest or 8))
    raise OptionError(
        "`recall` must be 'none', 'all', 'uniform:m', 'near:m', 'knn:m' or come from a "
        f"function of `langchain_judges.memory`, got {how!r}"
    )


def _check_count(m: int) -> int:
    if not isinstance(m, int) or isinstance(m, bool) or m < 1:
        raise OptionError(f"`m` must be a whole number of at least 1, got {m!r}")
    return m


class Recalled(list[Example]):
    """The recalled examples in the order in which they were chosen, and what is known of them.

    Args:
        examples: The memory's own examples; they are copied, so that these can be changed.

    Attributes:
        version: Version of the memory they come from.
        leaked: Ids of examples that are the item itself or of its group; empty unless
            allowed.
        barred: Ids of examples that were candidates and were barred because they would
            leak.
    """

    def __init__(self, examples: Iterable[Example] = ()) -> None:
        """Copy the examples."""
        super().__init__(map(copy_of, examples))
        self.version = ""
        self.allow_leak = False
        self.leaked: tuple[str, ...] = ()
        self.barred: tuple[str, ...] = ()


class HeldMemory(Protocol):
    """A memory as it was at one time."""

    @property
    def version(self) -> str:
        """The version of the memory then."""

    def show(self) -> object:
        """Let what this thread or task does from here on see the memory as it was then."""


class Memory(Protocol):
    """A store of audited examples, such as `FailureMemory`."""

    @property
    def how(self) -> Recall | str:
        """The default choice of examples for a judge."""

    @property
    def budget(self) -> int | None:
        """The most characters of examples for a judge; None for the judge's own limit."""

    @property
    def version(self) -> str:
        """A value that changes with the content."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def recall(
        self, item: Mapping[str, object], how: Recall | str = ..., *, allow_leak: bool = ...
    ) -> Recalled:
        """Return the examples to show for an item."""

    async def arecall(
        self, item: Mapping[str, object], how: Recall | str = ..., *, allow_leak: bool = ...
    ) -> Recalled:
        """Return the examples to show for an item."""

    def remember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Store examples and return their ids."""

    async def aremember(self, examples: Iterable[Mapping[str, object]]) -> list[str]:
        """Store examples and return their ids."""

    def trial(self, examples: Iterable[Mapping[str, object]]) -> AbstractContextManager[None]:
        """Return a block in which the memory includes more examples, without storing them."""

    def hold(self) -> HeldMemory:
        """Return the memory as it is now."""


def is_memory(value: object) -> TypeGuard[Memory]:
    """Return whether an object is a `Memory`, by its methods; its version may be slow."""
    needed = ("recall", "arecall", "remember", "aremember", "trial", "hold")
    return all(callable(getattr(type(value), name, None)) for name in needed)


class RememberedPair(Pair):
    """A pair with the fields that decide what is asked and recalled; no model sees them."""

    family: NotRequired[str]
    group: NotRequired[str]
    task_kind: NotRequired[str | None]


class RecallReport(TypedDict):
    """What a judge reports about its examples, in addition to the verdict.

    Attributes:
        ids: Ids of the examples shown, in order.
        left_out: Number of recalled examples that did not fit.
        leaked: Ids of shown examples that are the item itself or of its group
            (`allow_leak=True`).
        version: Version of the memory.
    """

    ids: list[str]
    left_out: int
    leaked: list[str]
    allow_leak: bool
    version: str


@dataclass(frozen=True)
class Recaller:
    """A judge's memory, and how the judge recalls from it.

    Attributes:
        context: Tokens of the model's context, if known.
    """

    memory: Memory
    how: Recall
    allow_leak: bool
    context: int | None = None

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

    def recall(self, item: Mapping[str, object]) -> Steps[Recalled]:
        """Recall examples for an item, whether they fit or not."""
        query = {name: value for name, value in item.items() if value is not None}
        memory, how, leak = self.memory, self.how, self.allow_leak
        recalled: Recalled = yield Wait(
            lambda: memory.recall(query, how, allow_leak=leak),
            lambda: memory.arecall(query, how, allow_leak=leak),
        )
        return recalled

    def fitting(self, recalled: Recalled, item: Mapping[str, object]) -> list[Example]:
        """Return the examples that fit, in the order in which they are shown."""
        room = self._budget
        if self.context:
            own = texts_of(item)
            size = sum(map(len, (own.task, *own.outputs, own.expected)))
            room = min(room, _CHARACTERS * (self.context - _RESERVED) - size)
        return fitting(recalled, room, length_of, self.how)

    def report(self, recalled: Recalled, examples: Sequence[Example]) -> RecallReport:
        """Return the report on what was recalled, of which some examples are shown."""
        ids = [example["id"] for example in examples]
        return {
            "ids": ids,
            "left_out": len(recalled) - len(examples),
            "leaked": [name for name in recalled.leaked if name in ids],
            "allow_leak": self.allow_leak,
            "version": recalled.version or self.memory.version,
        }


def fitting(
    examples: Sequence[T], room: float, size: Callable[[T], int], how: Recall
) -> list[T]:
    """Return the examples that fit: the first of a choice, or the newest if it is `all`.

    They stand in the order in which they are shown: the nearest last, next to the item.
    """
    newest = how.kind == "all"
    chosen: list[T] = []
    for example in reversed(examples) if newest else examples:
        room -= size(example)
        if room < 0:
            break
        chosen.append(example)
    return chosen[::-1] if newest or how.kind in {"near", "knn"} else chosen


def cut_failures(report: RecallReport) -> list[Failure]:
    """Return a failure for examples that are not shown, so that the cut is visible."""
    if not report["left_out"]:
        return []
    count = len(report["ids"]) + report["left_out"]
    detail = (
        f"{report['left_out']} of {count} recalled examples are left out: there is no room, or "
        "they carry other labels"
    )
    return [{"step": "recall", "unit": "examples", "reason": "input_cut", "detail": detail}]
