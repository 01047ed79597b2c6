"""The options of a Branch-Solve-Merge judge, checked, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.methods.plans import Criterion
from langchain_judges.orders import Order, OrderRule, orders_of

CriterionLike = str | Mapping[str, str]
"""A criterion as callers write it: a name, `"name: description"`, or both by key."""


@dataclass(frozen=True)
class Options:
    """Checked options; `criteria` and `fallback` are empty where none were given."""

    criteria: tuple[Criterion, ...]
    fallback: tuple[Criterion, ...]
    max_criteria: int
    scale: tuple[int, int]
    merge: Literal["sum", "model"]
    orders: OrderRule
    samples: int
    reuse_plan: bool
    show_turn1_answers: bool
    explain_first: bool
    min_valid: int | None
    seed: int
    instructions: str
    repairs: int
    writes_reference: bool

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked."""
        return orders_of(self.orders)

    def solves(self) -> int:
        """Return the most solve calls a pair can take."""
        most = len(self.criteria) or max(self.max_criteria, len(self.fallback))
        return most * len(self.order_list) * self.samples

    def calls(self) -> int:
        """Return the calls for a pair with a full plan, without repairs: 1 + 2K."""
        plans = 0 if self.criteria else 1 if self.reuse_plan else len(self.order_list)
        most = len(self.criteria) or self.max_criteria
        solves = most * len(self.order_list) * self.samples
        merges = len(self.order_list) if self.merge == "model" else 0
        return plans + solves + merges + self.writes_reference

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain data, for metadata and keys."""
        return asdict(self)


def check_options(
    *,
    criteria: Sequence[CriterionLike] | None,
    fallback_criteria: Sequence[CriterionLike] | None,
    instructions: str | None,
    **rest: Any,
) -> Options:
    """Return the options, or say which of them is not allowed.

    Raises:
        OptionError: The message names the rule and the value.
    """
    for name in ("reuse_plan", "show_turn1_answers", "explain_first"):
        if not isinstance(rest[name], bool):
            raise OptionError(f"`{name}` must be true or false, got {rest[name]!r}")
    options = Options(
        criteria=_criteria(criteria, "criteria"),
        fallback=_criteria(fallback_criteria, "fallback_criteria"),
        instructions=(instructions or "").strip(),
        **{**rest, "scale": _scale(rest["scale"])},
    )
    orders_of(options.orders)
    if options.merge not in ("sum", "model"):
        raise OptionError(f"`merge` must be 'sum' or 'model', got {options.merge!r}")
    for name, least in (("max_criteria", 1), ("samples", 1)):
        at_least(name, getattr(options, name), least)
    if options.min_valid is not None:
        at_least("min_valid", options.min_valid, 1)
        most = len(options.criteria) or options.max_criteria
        if options.min_valid > most:
            raise OptionError(
                f"`min_valid` must be at most the number of criteria ({most}), "
                f"got {options.min_valid!r}"
            )
    return options


def at_least(name: str, value: object, least: int) -> None:
    """Check that an option is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` must be a whole number of at least {least}, got {value!r}")


def _scale(scale: object) -> tuple[int, int]:
    pair = list(scale) if isinstance(scale, list | tuple) else []
    whole = [n for n in pair if isinstance(n, int) and not isinstance(n, bool)]
    if len(pair) != 2 or len(whole) != 2 or not whole[0] < whole[1]:
        raise OptionError(f"`scale` must be two whole numbers (low, high), got {scale!r}")
    return whole[0], whole[1]


def _criteria(given: Sequence[CriterionLike] | None, option: str) -> tuple[Criterion, ...]:
    if given is None:
        return ()
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise OptionError(f"`{option}` must be a list of at least one criterion, got {given!r}")
    criteria = tuple(_criterion(each, option) for each in given)
    names = [criterion["name"].casefold() for criterion in criteria]
    if len(set(names)) < len(names):
        raise OptionError(f"`{option}` must have distinct names, got {names!r}")
    return criteria


def _criterion(given: CriterionLike, option: str) -> Criterion:
    if isinstance(given, str):
        name, _, description = given.partition(":")
    elif isinstance(given, Mapping):
        name, description = given.get("name", ""), given.get("description", "")
    else:
        name = description = ""
    if not (isinstance(name, str) and isinstance(description, str) and name.strip()):
        raise OptionError(
            f"`{option}` takes names, 'name: description' or "
            f"{{'name', 'description'}}, got {given!r}"
        )
    return {"name": name.strip(), "description": description.strip()}
