"""Result of a metric: a number with its interval and the items it was counted on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self


class Interval(NamedTuple):
    """The ends of a confidence interval, in the units of the number it belongs to."""

    low: float
    high: float

    @classmethod
    def around(cls, centre: float, half: float) -> Interval:
        """The interval that reaches as far to either side."""
        return cls(centre - half, centre + half)

    def covers(self, value: float) -> bool:
        """Whether `value` lies in the interval, its ends included."""
        return self.low <= value <= self.high

    def within(self, least: float, most: float) -> Interval:
        """The part of the interval between two bounds that it overlaps."""
        return Interval(max(least, self.low), min(most, self.high))


class Result(float):
    """A statistic: use it as a number, and read from it what it rests on.

    It is a `float`, so it compares, rounds, formats and serialises as one. NaN stands only
    where the statistic is undefined, and then `reason` says why.

    Attributes:
        n: What the number was counted on, in the units that the function's docstring names.
        n_failed: Items that could not be used, by reason: the first failure of a judgment
            (`refusal`, `timeout`, …), `not_judged` where none is known, and `no_label`
            where people's answer is missing.
        interval: The confidence interval, None where none was computed.
        se: The standard error, None where none was computed.
        no_interval: Why there is no interval, such as `too few groups`; None if there is one,
            or where the function computes none.
        reason: Why the number is NaN; None if it is not.
    """

    n: int
    n_failed: Mapping[str, int]
    interval: Interval | None
    se: float | None
    no_interval: str | None
    reason: str | None

    def __new__(  # noqa: PLR0913 - the parts of any statistic
        cls,
        value: float,
        *,
        n: int,
        n_failed: Mapping[str, int] | None = None,
        interval: Interval | None = None,
        se: float | None = None,
        no_interval: str | None = None,
        reason: str | None = None,
        **more: Any,
    ) -> Self:
        """Make a result; `more` are the attributes of a subclass."""
        if math.isnan(value) != (reason is not None):
            raise ValueError("a result needs a `reason` if it is NaN, and only then")
        self = super().__new__(cls, value)
        fields: dict[str, object] = {"n": int(n), "interval": interval, "reason": reason, **more}
        fields["no_interval"] = None if interval else no_interval
        fields["se"] = None if se is None else float(se)
        counts = (n_failed or {}).items()
        fields["n_failed"] = MappingProxyType({why: count for why, count in counts if count})
        self.__dict__.update(fields)
        return self

    @classmethod
    def undefined(
        cls, reason: str, *, n: int = 0, n_failed: Mapping[str, int] | None = None, **more: Any
    ) -> Self:
        """NaN, and why."""
        return cls(math.nan, n=n, n_failed=n_failed, reason=reason, **more)

    @property
    def value(self) -> float:
        """The bare number."""
        return float(self)

    def replace(self, **fields: Any) -> Self:
        """The same number with other fields, such as `n_failed`."""
        return type(self)(float(self), **{**self.__dict__, **fields})

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; NaN becomes None."""
        fields = {"value": float(self), **self.__dict__}
        return {name: _finite(value) for name, value in fields.items()}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a result cannot be changed: `{name}`")

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {**self.__dict__, "n_failed": dict(self.n_failed)}

    def __getstate__(self) -> None:
        return None

    def __repr__(self) -> str:
        _, fields = self.__getnewargs_ex__()
        fields = {name: value for name, value in fields.items() if value is not None}
        if self.interval:
            fields["interval"] = tuple(round(end, 6) for end in self.interval)
        parts = ", ".join(f"{name}={value!r}" for name, value in fields.items())
        return f"{type(self).__name__}({float(self)!r}, {parts})"

    def __str__(self) -> str:
        return float.__repr__(self)


class Findings:
    """Base of results with several parts: frozen dataclasses, read by name or by key."""

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; what is not finite becomes None."""
        return {name: _finite(value) for name, value in vars(self).items()}


def _finite(value: object) -> Any:
    if isinstance(value, Result | Findings):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
