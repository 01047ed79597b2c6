"""A comparison of methods as one page: agreement against cost, and which pay."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_judges.errors import needs

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 360, 48, 40
_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --muted: #666; --line: #ccc; --best: #0072b2 }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --muted: #aaa; --line: #444;
  --best: #56b4e9 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem }
svg { width: 100%; height: auto } svg text { fill: var(--ink); font-size: 12px }
.axis { stroke: var(--line) } .whisker { stroke: var(--muted) } .point { fill: var(--muted) }
.best { fill: var(--best) } table { border-collapse: collapse }
td, th { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right }
td:first-child, th:first-child { text-align: left } .scroll { overflow-x: auto }
"""


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


def points_of(comparison: Mapping[str, Any]) -> tuple[list[Point], str]:
    """Return the methods that have an agreement and a cost, and what the cost is.

    Dollars where they are known of all of them, else calls.
    """
    standings = {
        name: each
        for name, each in comparison["methods"].items()
        if each["labelled"] and each["labelled"]["share"] is not None and each["rows"]
    }
    priced = bool(standings) and all(each["dollars"] for each in standings.values())
    costs = {
        name: 1000 * each["dollars"] / each["rows"] if priced else each["calls"] / each["rows"]
        for name, each in standings.items()
    }
    shares = {name: each["labelled"]["share"] for name, each in standings.items()}
    points = []
    for name, each in standings.items():
        beaten = any(
            shares[other] >= shares[name]
            and costs[other] <= costs[name]
            and (shares[other], costs[other]) != (shares[name], costs[name])
            for other in standings
        )
        ends = each["labelled"]["low"], each["labelled"]["high"]
        points.append(Point(name, costs[name], shares[name], *ends, not beaten))
    return points, "dollars for 1,000 rows" if priced else "calls for a row"


def comparison_page(comparison: Mapping[str, Any], data: str) -> str:
    """Return a page of a comparison, with nothing loaded from elsewhere.

    Args:
        comparison: What `runs.studies.comparison.compare` returned.
        data: What the rows are called.

    Raises:
        MissingExtraError: The extra `trust` is not installed.
    """
    with needs("trust", "The page of a comparison"):
        from markupsafe import Markup

    points, unit = points_of(comparison)
    best = ", ".join(p.name for p in sorted(points, key=lambda p: p.cost) if p.best)
    lead = f"Worth their cost here: {best}." if best else "No row has a label to agree with."
    skipped = "; ".join(f"{name}: {why}" for name, why in comparison["skipped"].items())
    page = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        "<title>Methods on {data}</title><style>{style}</style></head><body>"
        "<h1>Methods on {data}</h1><p>{lead} A method is worth its cost if no other agrees "
        "with the labels as often for less; bars are 95 % intervals, and where they overlap "
        "the order may be chance.</p>{picture}{table}<p>{skipped}</p></body></html>\n"
    )
    return str(
        page.format(
            data=data,
            style=Markup(_STYLE),  # noqa: S704 - ours
            lead=lead,
            picture=_picture(points, unit) if points else "",
            table=_table(comparison["methods"], {p.name for p in points if p.best}),
            skipped=f"Without part: {skipped}." if skipped else "",
        )
    )


def _picture(points: Sequence[Point], unit: str) -> Markup:
    """Draw agreement against cost, the cost on a logarithmic scale."""
    from markupsafe import Markup

    logs = [math.log10(max(point.cost, 1e-9)) for point in points]
    first, last = min(logs) - 0.1, max(logs) + 0.3
    floor = min(point.low for point in points)

    def height(share: float) -> float:
        return 10 + (1 - share) / (1 - floor + 1e-9) * (_HEIGHT - _BOTTOM - 10)

    label = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        _WIDTH, _HEIGHT, f"Agreement with the labels against {unit}"
    )
    marks = [
        _mark(point, _LEFT + (log - first) / (last - first) * (_WIDTH - _LEFT - 10), height)
        for point, log in zip(points, logs, strict=True)
    ]
    return label + Markup("").join([_axes(points, unit, floor), *marks]) + Markup("</svg>")


def _axes(points: Sequence[Point], unit: str, floor: float) -> Markup:
    from markupsafe import Markup

    return Markup(
        '<line class="axis" x1="{0}" y1="10" x2="{0}" y2="{1}"/>'
        '<line class="axis" x1="{0}" y1="{1}" x2="{2}" y2="{1}"/>'
        '<text x="{0}" y="{3}">{4} (logarithmic), from {5:.3g} to {6:.3g}</text>'
        '<text x="0" y="20">100 %</text><text x="0" y="{1}">{7:.0f} %</text>'
    ).format(
        _LEFT,
        _HEIGHT - _BOTTOM,
        _WIDTH - 10,
        _HEIGHT - 12,
        unit,
        min(point.cost for point in points),
        max(point.cost for point in points),
        100 * floor,
    )


def _mark(point: Point, x: float, height: Callable[[float], float]) -> Markup:
    """Draw a method: a circle with its name, and the interval of its agreement."""
    from markupsafe import Markup

    y = height(point.share)
    return Markup(
        '<line class="whisker" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}"/>'
        '<circle class="{3}" cx="{0:.1f}" cy="{4:.1f}" r="5"/>'
        '<text x="{5:.1f}" y="{6:.1f}">{7}</text>'
    ).format(
        x,
        height(point.low),
        height(point.high),
        "best" if point.best else "point",
        y,
        x + 8,
        y + 4,
        point.name,
    )


def _table(methods: Mapping[str, Mapping[str, Any]], best: set[str]) -> Markup:
    from markupsafe import Markup

    names = (
        "Method",
        "Agreement",
        "95 %",
        "Flips",
        "Not judged",
        "Calls a row",
        "Tokens a row",
    )
    heads = [*names, "Dollars", "Seconds", "Worth its cost"]
    lines = [Markup("").join(Markup("<th>{}</th>").format(each) for each in heads)]
    for name, each in methods.items():
        cells = [name, *_cells(each), "yes" if name in best else ""]
        lines.append(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in cells))
    rows = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup('<div class="scroll"><table>{}</table></div>').format(rows)


def _cells(standing: Mapping[str, Any]) -> list[str]:
    rate, rows = standing["labelled"], max(1, standing["rows"])
    measured = rate is not None and rate["share"] is not None
    return [
        f"{rate['share']:.1%}" if measured else "-",
        f"{rate['low']:.0%} to {rate['high']:.0%}" if measured else "-",
        f"{standing['flips']:,} of {standing['both_orders']:,}",
        f"{standing['not_judged']:,}",
        f"{standing['calls'] / rows:.1f}",
        f"{standing['tokens'] / rows:,.0f}",
        "-" if standing["dollars"] is None else f"{standing['dollars']:.4f}",
        f"{standing['seconds']:,.0f}",
    ]
