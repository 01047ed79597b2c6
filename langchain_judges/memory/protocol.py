"""What a judge, and an audit that teaches it, need of a memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol


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
    """Where audited examples are kept; `FailureMemory` is one."""

    @property
    def version(self) -> Any:
        """What changes with the content."""

    def __len__(self) -> int:
        """Return how many examples there are."""

    def recall(self, item: Any, how: Any = ..., *, allow_leak: bool = ...) -> Sequence[Any]:
        """Return the examples to show for an item."""

    async def arecall(
        self, item: Any, how: Any = ..., *, allow_leak: bool = ...
    ) -> Sequence[Any]:
        """Return the examples to show for an item."""

    def remember(self, examples: Any) -> list[str]:
        """Keep examples and return their ids."""

    async def aremember(self, examples: Any) -> list[str]:
        """Keep examples and return their ids."""

    def forget(self, ids: Any = ...) -> int:
        """Forget examples and return how many they were."""

    async def aforget(self, ids: Any = ...) -> int:
        """Forget examples and return how many they were."""

    def trial(self, examples: Iterable[Mapping[str, Any]]) -> Block:
        """Return a block in which the memory reads as if it held some examples more."""
