"""State of the ALLURE judge, the shapes its model replies in, and what a memory must do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Protocol

from pydantic import BaseModel, BeforeValidator, create_model
from typing_extensions import TypedDict

from langchain_judges.memory.rendering import Account
from langchain_judges.methods.allure.audit.checks import Label
from langchain_judges.verdict import Failure, Item, LabelVerdict

Explain = Literal["after", "first", "none"]
"""Whether a reply gives its reason after the label, before it, or not at all."""


class Memory(Protocol):
    """What the judge and the audit need of a memory; `FailureMemory` is one."""

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


class JudgeState(Item, total=False):
    """State of the judge; every value is plain JSON."""

    examples: list[dict[str, Any]]
    """What was recalled, in the order in which it is shown."""
    failures: list[Failure]
    """What recalling could not show."""
    memory_version: str | None
    recalled: Account
    verdict: LabelVerdict | None


class JudgeResult(TypedDict):
    """What the judge returns."""

    id: str | None
    """The id that was given, if there was one."""
    verdict: LabelVerdict
    memory_version: NotRequired[str | None]
    """The version of the memory that it judged with; None without a memory."""
    leak_allowed: NotRequired[bool]
    """Whether examples of the item's own group could be shown."""
    recalled: NotRequired[Account]
    """Which examples were shown, and which of them leak; absent without a memory."""


def label_shape(labels: Sequence[Label], explain: Explain) -> type[BaseModel]:
    """Return the shape of a reply: one of the labels as a text, and the reason."""
    known = {str(label).casefold(): str(label) for label in labels}

    def as_text(value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a label is not true or false")
        return known.get(str(value).strip().casefold(), value)

    names = tuple(str(label) for label in labels)
    choice: Any = Annotated[Literal[names], BeforeValidator(as_text)]
    label: dict[str, Any] = {"label": (choice, ...)}
    reason: dict[str, Any] = {"explanation": (str, ...)}
    fields = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
    return create_model("Labelled", **fields[explain])


def shown_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a judge may see of an item; what people know of it stays behind."""
    return {field: item[field] for field in Item.__annotations__ if field in item}
