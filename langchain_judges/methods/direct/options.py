"""The options of a baseline, checked, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.methods.base import check_common
from langchain_judges.methods.few_shot import WorkedExample
from langchain_judges.orders import Order, OrderRule, orders_of

Reads = Literal["label", "forced_label", "scores"]
"""What a reply holds: one of three labels, one of two, or scores for both texts."""


@dataclass(frozen=True)
class Options:
    """Checked options of one baseline."""

    method: str
    reads: Reads
    orders: OrderRule
    samples: int = 1
    coin: bool = False
    """Whether a coin decides where the samples of one order are even."""
    reference_first: bool = False
    """Whether a single order shows B first, as DRPE does."""
    shots: tuple[WorkedExample, ...] = ()
    aspects: tuple[str, ...] = ()
    scale: tuple[int, int] = (1, 10)
    max_criteria: int = 0
    """Criteria of the plan of plan & solve; 0 for all other baselines."""
    min_valid: int | None = None
    seed: int = 0
    instructions: str = ""
    repairs: int = 1

    def __post_init__(self) -> None:
        """Check the options; each message names the rule and the value."""
        orders_of(self.orders)
        _whole("samples", self.samples, 1)
        check_common(seed=self.seed, repairs=self.repairs)
        if self.min_valid is not None:
            _whole("min_valid", self.min_valid, 1)
            most = self.max_criteria or self.samples
            if self.min_valid > most:
                raise OptionError(f"`min_valid` must be at most {most}, got {self.min_valid!r}")

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked."""
        if self.orders == "none" and self.reference_first:
            return ("BA",)
        return orders_of(self.orders)

    def calls(self) -> int:
        """Return the calls for a pair, without repairs."""
        return bool(self.max_criteria) + len(self.order_list) * self.samples

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain data, for metadata and keys."""
        told = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **told,
            "shots": [dict(shot) for shot in self.shots],
            "aspects": list(self.aspects),
            "scale": list(self.scale),
        }


def checked_scale(scale: object) -> tuple[int, int]:
    """Return the scale, or say that it is none."""
    ends = list(scale) if isinstance(scale, list | tuple) else []
    whole = [end for end in ends if isinstance(end, int) and not isinstance(end, bool)]
    if len(ends) != 2 or len(whole) != 2 or not whole[0] < whole[1]:
        raise OptionError(f"`scale` must be two whole numbers (low, high), got {scale!r}")
    return whole[0], whole[1]


def checked_text(instructions: str | None) -> str:
    """Return the caller's instructions without the space around them."""
    check_common(instructions=instructions)
    return (instructions or "").strip()


def checked_aspects(aspects: Sequence[str] | None) -> tuple[str, ...]:
    """Return the aspects, or say what is wrong with them."""
    if aspects is None:
        return ()
    words = isinstance(aspects, Sequence) and not isinstance(aspects, str)
    named = [a.strip() for a in aspects if isinstance(a, str) and a.strip()] if words else []
    distinct = {name.casefold() for name in named}
    if not named or len(named) < len(aspects) or len(distinct) < len(named):
        raise OptionError(f"`aspects` must be a list of distinct names, got {aspects!r}")
    return tuple(named)


def _whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` must be a whole number of at least {least}, got {value!r}")
