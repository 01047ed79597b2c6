"""What options of an ALLURE judge and of its audit may be."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

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


def check_audit(**given: Any) -> None:
    """Check the options of an audit, each given by its own name.

    Raises:
        OptionError: The message names the rule and the value.
    """
    share, risk, truth = given["dev"], given["risk"], given["truth"]
    for name in ("max_rounds", "patience", "max_concurrency"):
        value = given[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise OptionError(f"`{name}` must be a whole number of at least 1, got {value!r}")
    for name, allowed in (
        ("admit", ("round", "example")),
        ("again", get_args(Again)),
        ("allow_leak", (True, False)),
    ):
        if given[name] not in allowed:
            raise OptionError(f"`{name}` must be one of {allowed!r}, got {given[name]!r}")
    if not _number(risk) or not 0 <= risk <= 1:
        raise OptionError(f"`risk` must be between 0 and 1, got {risk!r}")
    if not isinstance(share, list | tuple | None) and not (_number(share) and 0 < share < 1):
        raise OptionError(
            f"`dev` must be a list of items or a share above 0 and below 1, got {share!r}"
        )
    if not isinstance(truth, str) or not truth:
        raise OptionError(f"`truth` must be the name of a field, got {truth!r}")


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
