"""The choices of examples that a memory recalls for an item, and what it recalls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, cast

from langchain_judges.errors import OptionError
from langchain_judges.memory.example import ERRORS, Example

RecallKind = Literal["none", "all", "uniform", "near", "knn"]
_NAME = re.compile(r"(none|all)|(near|knn)(?::(\d+))?|(uniform):(\d+)", re.ASCII)


@dataclass(frozen=True)
class Recall:
    """A choice of examples; a name such as `"knn:8"` gives only its kind and number.

    Attributes:
        kind: `"none"`; `"all"`, in the order they were remembered (Hasanbeig et al. 2023);
            `"uniform"`, random ones, the same for every item that may see them; `"knn"`, the
            nearest to the item by task, response and expected answer; or `"near"`, near ones
            spread as evenly as possible over the corrected labels: a judge that sees mistakes
            of one kind only learns to reverse its labels.
        m: How many examples; ignored for `"none"` and `"all"`.
        seed: Seed of `"uniform"`: with the same one, a larger `m` includes the examples of a
            smaller one.
        any_family: Whether examples of other families count too.

    Raises:
        OptionError: `m` is not a whole number of at least 1.
    """

    kind: RecallKind
    m: int | None = None
    seed: int = 0
    any_family: bool = False

    def __post_init__(self) -> None:
        """Check the number."""
        is_count = isinstance(self.m, int) and not isinstance(self.m, bool) and self.m >= 1
        if not is_count and self.kind not in ("none", "all"):
            raise OptionError(f"`m` must be a whole number of at least 1, got {self.m!r}")


def read_recall(how: Recall | str) -> Recall:
    """A choice from itself or from its name, such as `"all"` or `"knn:8"`.

    Raises:
        OptionError: The choice does not exist.
    """
    if isinstance(how, Recall):
        return how
    name = _NAME.fullmatch(how) if isinstance(how, str) else None
    if name is None:
        raise OptionError(ERRORS["recall"].format(got=how))
    kind = cast("RecallKind", name[1] or name[2] or name[4])
    return Recall(kind, None if name[1] else int(name[3] or name[5] or 8))


class Recalled(list[Example]):
    """The recalled examples in the order of choice, and how they were chosen.

    Args:
        examples: The memory's own examples; they are copied, so that these can be changed.

    Attributes:
        version: Version of the memory they come from.
        allow_leak: Whether the item itself and its group were allowed.
        leaked: Ids of examples that are the item itself or of its group; empty unless
            allowed.
        barred: Ids of candidates that were left out because they would leak.
    """

    def __init__(self, examples: Iterable[Example] = ()) -> None:
        """Copy the examples."""
        super().__init__(map(deepcopy, examples))
        self.version = ""
        self.allow_leak = False
        self.leaked: tuple[str, ...] = ()
        self.barred: tuple[str, ...] = ()
