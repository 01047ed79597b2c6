"""What options of an ALLURE judge and of its audit may be."""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Ge, Le

from langchain_judges.errors import OptionError
from langchain_judges.methods.allure.audit.checks import Label

Instruct = Literal["bare", "criteria", "steps"]
"""What the judge is told beside the labels: nothing, the criteria, or steps too."""

Again = Literal["families", "all"]
"""Which items a round of an audit judges again: those of families that learnt, or all."""

ExampleOrder = Literal["insertion", "shuffle", "modes"]
"""How examples are ordered: as recalled, by a seed, or in blocks of one failure mode."""


ClientLabel = str | Annotated[float, Ge(-1000), Le(1000)]
"""A label as the client of a server may name it."""


def read_labels(labels: object) -> tuple[Label, ...]:
    """Return at least two labels, all numbers or all texts, worst first.

    Raises:
        OptionError: They are something else.
    """
    given = tuple(labels) if isinstance(labels, list | tuple) else ()
    alike = all(isinstance(each, str) and each.strip() for each in given) or all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in given
    )
    distinct = len({str(each).casefold() for each in given}) == len(given)
    if len(given) < 2 or not alike or not distinct:
        raise OptionError(
            "`labels` must be two or more distinct numbers or texts, from worst to best, got "
            f"{labels!r}"
        )
    return given
