"""The choices of examples that a memory recalls for an item, and what it recalls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, cast

from langchain_judges.errors import OptionError
from langchain_judges.memory.example import Example

RecallKind = Literal["none", "all", "uniform", "near", "knn"]
_NAME = re.compile(r"(none|all)|(near|knn)(?::(\d+))?|(uniform):(\d+)", re.ASCII)


@dataclass(frozen=True)
class Recall:
    """A choice of examples; create it with the functions of this module."""

    kind: RecallKind
    m: int | None = None
    seed: int = 0
    any_family: bool = False

    def __str__(self) -> str:
        """The choice as shown in metadata: `knn:8`."""
        return self.kind if self.m is None else f"{self.kind}:{self.m}"


def none() -> Recall:
    """Choose no examples."""
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
    """Choose `m` examples near the item, as evenly over corrected labels as possible.

    A judge that is shown mistakes of one kind alone learns to reverse its labels.
    """
    return Recall("near", _check_count(m), any_family=any_family)


def knn(m: int = 8, *, any_family: bool = False) -> Recall:
    """Choose the `m` examples nearest to the item, by task, response and expected answer."""
    return Recall("knn", _check_count(m), any_family=any_family)


def read_recall(how: Recall | str) -> Recall:
    """A choice from itself or from its name, such as `"all"` or `"knn:8"`.

    Raises:
        OptionError: The choice does not exist.
    """
    if isinstance(how, Recall):
        return how
    name = _NAME.fullmatch(how) if isinstance(how, str) else None
    if name is None:
        raise OptionError(
            "`recall` must be 'none', 'all', 'uniform:m', 'near:m', 'knn:m' or come from a "
            f"function of `langchain_judges.memory`, got {how!r}"
        )
    kind = cast("RecallKind", name[1] or name[2] or name[4])
    return Recall(kind, None if name[1] else _check_count(int(name[3] or name[5] or 8)))


def _check_count(m: int) -> int:
    if not isinstance(m, int) or isinstance(m, bool) or m < 1:
        raise OptionError(f"`m` must be a whole number of at least 1, got {m!r}")
    return m


class Recalled(list[Example]):
    """The recalled examples in the order of choice, and how they were chosen.

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
        super().__init__(map(deepcopy, examples))
        self.version = ""
        self.allow_leak = False
        self.leaked: tuple[str, ...] = ()
        self.barred: tuple[str, ...] = ()
