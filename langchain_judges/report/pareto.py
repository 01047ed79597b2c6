"""A comparison of methods as one page: agreement against cost, and which pay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langchain_judges.errors import needs
from langchain_judges.runs.studies.comparison import Comparison, Rate, Standing

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 360, 48, 40
_COLUMNS = (
    *("Method", "Agreement", "95 %", "Flips", "Not judged", "Calls a row", "Tokens a row"),
    *("Dollars", "Seconds", "Worth its cost"),
)


class Point(NamedTuple):
    """A method on the picture."""

    name: str
    cost: float
    """Calls for a row, or dollars for 1,000 rows."""
    share: float
    low: float
    high: float
    best: bool
    """Whether no other agrees as often for less, or more often for as much."""


def points_of(methods: Mapping[str, Standing]) -> tuple[list[Point], str]:
    """Return the methods that have an agreement and a cost, and what the cost is.

    Dollars where they are known of all of them, else calls.
    """
    rates = {
        name: rate
        for name, each in methods.items()
        if (rate := _share(each["labelled"])) and each["rows"]
    }
    costs = {name: methods[name]["calls"] / methods[name]["rows"] for name in rates}
    prices = {
        name: 1000 * dollars / methods[name]["rows"]
        for name in rates
        if (dollars := methods[name]["dollars"])
    }
    priced = bool(rates) and prices.keys() == rates.keys()
    if priced:
        costs = prices
    points = []
    for name, (share, low, high) in rates.items():
        beaten = any(
            rates[other][0] >= share
            and costs[other] <= costs[name]
            and (rates[other][0], costs[other]) != (share, costs[name])
            for other in rates
        )
        points.append(Point(name, costs[name], share, low, high, not beaten))
    return points, "dollars for 1,000 rows" if priced else "calls for a row"


def _share(rate: Rate | None) -> tuple[float, float, float] | None:
    """Return a share and the ends of its interval."""
    if rate is None or rate["share"] is None or rate["low"] is None or rate["high"] is None:
        return None
    return rate["share"], rate["low"], rate["high"]


def comparison_page(comparison: Comparison, data: str) -> str:
    """Return a page of a comparison, with nothing loaded from elsewhere.

    Args:
        comparison: What `runs.studies.comparison.compare` returned.
        data: The name of the data, for the title.

    Raises:
        MissingExtraError: The extra `trust` is not installed.
    """
    with needs("trust", "The page of a comparison"):
        from langchain_judges.report.page_templates import template

        page = template("comparison.html")
    points, unit = points_of(comparison["methods"])
    best = [p.name for p in sorted(points, key=lambda p: p.cost) if p.best]
    lead = "No row has a label to agree with."
    if best:
        lead = f"Worth their cost here: {', '.join(best)}."
    skipped = "; ".join(f"{name}: {why}" for name, why in comparison["skipped"].items())
    text = page.render(
        data=data,
        lead=lead,
        unit=unit,
        picture=_picture(points) if points else None,
        columns=_COLUMNS,
        rows=[
            [name, *_cells(each), "yes" if name in best else ""]
            for name, each in comparison["methods"].items()
        ],
        skipped=f"Not compared: {skipped}." if skipped else "",
    )
    return f"{text}\n"


def _picture(points: Sequence[Point]) -> dict[str, object]:
    """Return where agreement stands against cost, the cost on a logarithmic scale."""
    logs = [math.log10(max(point.cost, 1e-9)) for point in points]
    first, last = min(logs) - 0.1, max(logs) + 0.3
    floor = min(point.low for point in points)

    def height(share: float) -> float:
        return 10 + (1 - share) / (1 - floor + 1e-9) * (_HEIGHT - _BOTTOM - 10)

    costs = [point.cost for point in points]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - 10,
        "bottom": _HEIGHT - _BOTTOM,
        "floor": floor,
        "cheapest": min(costs),
        "dearest": max(costs),
        "marks": [
            {
                "name": point.name,
                "best": point.best,
                "x": _LEFT + (log - first) / (last - first) * (_WIDTH - _LEFT - 10),
                "y": height(point.share),
                "low": height(point.low),
                "high": height(point.high),
            }
            for point, log in zip(points, logs, strict=True)
        ],
    }


def _cells(standing: Standing) -> list[str]:
    rate, rows = _share(standing["labelled"]), max(1, standing["rows"])
    return [
        f"{rate[0]:.1%}" if rate else "-",
        f"{rate[1]:.0%} to {rate[2]:.0%}" if rate else "-",
        f"{standing['flips']:,} of {standing['both_orders']:,}",
        f"{standing['not_judged']:,}",
        f"{standing['calls'] / rows:.1f}",
        f"{standing['tokens'] / rows:,.0f}",
        "-" if standing["dollars"] is None else f"{standing['dollars']:.4f}",
        f"{standing['seconds']:,.0f}",
    ]
