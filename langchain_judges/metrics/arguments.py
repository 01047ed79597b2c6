"""What metrics take: the types of their arguments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from langchain_judges.verdict import Label

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Judgment = Label | Mapping[str, object] | None
"""What a judge says of an item: a bare preference, label or number; a verdict; or a row that
holds one under `verdict`. None is a failed judgment."""

Judgments = Iterable[Judgment]

RightLabels = Iterable[Label | None]
"""The right answer to each item, as people give it; None where there is none."""

Confidences = Iterable[float | None] | None
"""How sure the judge is of each item, from 0 to 1; None reads it from the verdicts."""

Votes = Iterable[Label | Sequence[Label | None] | None]
"""The votes of people on each item, or its only vote."""

GroupKeys = Iterable[Hashable] | None
"""The cluster of each item, such as its question; None: each item is its own."""

Systems = Iterable[Sequence[str | None]]
"""Who wrote A and who wrote B, for each pair; None where it is not known."""


class IntervalOptions(TypedDict, total=False):
    """What metrics with an interval take, by the names that they share."""

    groups: GroupKeys
    confidence: float
    """The level of the interval."""
