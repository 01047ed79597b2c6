"""The interface of a memory that judges and audits need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, TypeGuard

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Recall, Recalled


class Block(AbstractContextManager[None], AbstractAsyncContextManager[None], Protocol):
    """A block of code that is entered by `with` and by `async with`."""


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

    def forget(self, ids: Sequence[str] = ...) -> int:
        """Forget examples and return their number."""

    async def aforget(self, ids: Sequence[str] = ...) -> int:
        """Forget examples and return their number."""

    def trial(self, examples: Iterable[Mapping[str, object]]) -> Block:
        """Return a block in which the memory includes more examples, without storing them."""


_NEEDED = ("recall", "arecall", "remember", "aremember", "forget", "aforget", "trial")


def is_memory(value: object) -> TypeGuard[Memory]:
    """Return whether an object is a `Memory`, by its methods; its version may be slow."""
    return all(callable(getattr(type(value), name, None)) for name in _NEEDED)


def check_memory(value: object) -> Memory | None:
    """Return a memory, or None for None.

    Raises:
        OptionError: The value is neither.
    """
    if value is None or is_memory(value):
        return value
    raise OptionError(f"`memory` must be a FailureMemory, got {type(value).__name__}")
