"""State and result of the ALLURE judge."""

from __future__ import annotations

from typing import NotRequired

from langchain_judges.methods.items import ItemResult
from langchain_judges.methods.rubric.replies import RubricState


class JudgeState(RubricState, total=False):
    """State of the judge; every value is plain JSON."""

    memory_version: str | None
    leak_allowed: bool


class JudgeResult(ItemResult):
    """What the judge returns."""

    memory_version: NotRequired[str | None]
    """The version of the memory that it judged with; None without a memory."""
    leak_allowed: NotRequired[bool]
    """Whether examples of the item's own group could be shown."""
