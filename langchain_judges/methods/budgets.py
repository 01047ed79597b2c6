"""How each method spends a budget of calls for a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from langchain_judges.errors import OptionError

ASPECTS = (
    "main answer",
    "facts and details",
    "reasons and steps",
    "advice and warnings",
    "form and tone",
)
"""What SC² compares by where the caller names no aspects: finding some is paid for apart.

Each is something that a table can report without a verdict."""


@dataclass(frozen=True)
class Budget:
    """How a method spends a budget: `fixed + each · n` calls for a pair, n as large as fits."""

    fixed: int
    each: int = 0
    option: str = ""
    """The option that n sets; dots reach into groups and lists of `also`: `panel.dynamic`."""
    least: int = 1
    most: int | None = None
    spare: str = ""
    """The option that gets what n leaves over, plus one."""
    also: Mapping[str, object] = field(default_factory=dict)
    """Options that go with it."""


class BudgetError(OptionError):
    """A budget is too small for a method."""


def fit(method: str, rules: Sequence[Budget], budget: int) -> dict[str, Any]:
    """Return the options with which a method spends at most `budget` calls for a pair.

    Args:
        method: Its name, for messages.
        rules: How it spends a budget; the first that the budget allows counts.
        budget: Calls for a pair.

    Raises:
        BudgetError: The budget is too small for the method.
        OptionError: It is not a whole number of at least 1.

    >>> fit("bsm", [Budget(1, 2, "max_criteria")], 16)
    {'max_criteria': 7}
    """
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise OptionError(f"`budget` must be a whole number of at least 1, got {budget!r}")
    for rule in rules:
        if budget >= rule.fixed + rule.each * rule.least:
            return _spend(rule, budget)
    needs = min(rule.fixed + rule.each * rule.least for rule in rules)
    raise BudgetError(f"{method!r} needs at least {needs} calls for a pair, got {budget}")


def _spend(rule: Budget, budget: int) -> dict[str, Any]:
    options: dict[str, Any] = deepcopy(dict(rule.also))
    if not rule.each:
        return options
    n = (budget - rule.fixed) // rule.each
    n = min(n, rule.most) if rule.most else n
    *path, name = rule.option.split(".")
    place: Any = options
    for key in path:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    place[name] = n
    spare = budget - rule.fixed - rule.each * n
    if rule.spare and spare:
        options[rule.spare] = 1 + spare
    return options
