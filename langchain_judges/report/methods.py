"""A comparison of methods: a table on a terminal, and a page of agreement against cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from langchain_judges.report.page import template
from langchain_judges.runs.comparison import Comparison, Rate, Standing


def comparison_table(comparison: Comparison) -> Table:
    """Render a comparison: one column for each method, one line for each number."""
    methods = comparison["methods"]
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for method in methods:
        table.add_column(method, justify="right")
    lines = {
        "settings": [_settings(each["options"]) for each in methods.values()],
        "calls a pair": [f"{each['calls_each']:,}" for each in methods.values()],
    }
    for side in ("A", "B", "tie"):
        lines[side] = [f"{each['verdicts'][side]:,}" for each in methods.values()]
    lines["not judged"] = [f"{each['not_judged']:,}" for each in methods.values()]
    lines["flips"] = [_flips(each) for each in methods.values()]
    lines["failures"] = [_failures(each["failures"]) for each in methods.values()]
    lines["calls"] = [f"{each['calls']:,}" for each in methods.values()]
    lines["tokens"] = [f"{each['tokens']:,}" for each in methods.values()]
    if any(each["labelled"] for each in methods.values()):
        lines["as labelled"] = [_rate(each["labelled"]) for each in methods.values()]
    for other in list(methods)[:-1] if len(methods) > 1 else []:
        lines[f"as {other}"] = [_agreement(comparison, other, method) for method in methods]
    for name, cells in lines.items():
        table.add_row(Text(name, style="bold"), *(Text(cell) for cell in cells))
    return table


def _settings(options: Mapping[str, object]) -> str:
    """Return options in a few words; the names of aspects and the like would fill the page."""
    lines = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            lines += [f"{inner} {setting}" for inner, setting in value.items()]
        elif isinstance(value, list | tuple):
            lines.append(f"{len(value)} {name}")
        else:
            lines.append(f"{name} {str(value)[:20]}")
    return "\n".join(lines) or "-"


def _flips(standing: Standing) -> str:
    if not standing["both_orders"]:
        return "-"
    return f"{standing['flips']:,} of {standing['both_orders']:,}"


def _failures(failures: Mapping[str, int]) -> str:
    total = sum(failures.values())
    reasons = [f"{n} {reason}" for reason, n in sorted(failures.items())]
    return "\n".join([f"{total:,}", *reasons])


def _agreement(comparison: Comparison, first: str, second: str) -> str:
    """Return the agreement of two methods; each pair is shown once, above the diagonal."""
    for entry in comparison["agreement"]:
        if entry["methods"] == [first, second]:
            return _rate(entry["rate"])
    return ""


def _rate(rate: Rate | None) -> str:
    if rate is None or rate["share"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    percents = f"{100 * rate['low']:.0f}–{100 * rate['high']:.0f}"
    return f"{rate['count']:,} of {rate['of']:,}\n{100 * rate['share']:.0f} % [{percents}]"


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
        comparison: What `runs.comparison.compare` returned.
        data: The name of the data, for the title.
    """
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
