"""The interface of a memory that judges and audits need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Recall, Recalled


class Block(Protocol):
    """A block of code that is entered by `with` and by `async with`."""

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the block."""

    async def __aenter__(self) -> None:
        """Begin the block."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the block."""


class Memory(Protocol):
    """A store of audited examples, such as `FailureMemory`."""

    @property
    def how(self) -> Recall | str:
        """The default choice of examples for a judge."""

    @property
    def budget(self) -> int | None:
        """The most characters of examples for a judge; None for the judge's own limit."""

    @property
    def version(self) -> Any:
        """A value that changes with the content."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def recall(self, item: Any, how: Any = ..., *, allow_leak: bool = ...) -> Recalled:
        """Return the examples to show for an item."""

    async def arecall(self, item: Any, how: Any = ..., *, allow_leak: bool = ...) -> Recalled:
        """Return the examples to show for an item."""

    def remember(self, examples: Any) -> list[str]:
        """Store examples and return their ids."""

    async def aremember(self, examples: Any) -> list[str]:
        """Store examples and return their ids."""

    def forget(self, ids: Any = ...) -> int:
        """Forget examples and return their number."""

    async def aforget(self, ids: Any = ...) -> int:
        """Forget examples and return their number."""

    def trial(self, examples: Iterable[Mapping[str, Any]]) -> Block:
        """Return a block in which the memory includes more examples, without storing them."""


_NEEDED = ("recall", "arecall", "remember", "aremember", "forget", "aforget", "trial")


def is_memory(value: object) -> bool:
    """Return whether an object is a `Memory`, by its methods; its version may be slow."""
    return all(callable(getattr(type(value), name, None)) for name in _NEEDED)


def check_memory(value: Any) -> Memory | None:
    """Return a memory, or None for None.

    Raises:
        OptionError: The value is neither.
    """
    if value is None or is_memory(value):
        memory: Memory | None = value
        return memory
    raise OptionError(f"`memory` must be a FailureMemory, got {type(value).__name__}")
