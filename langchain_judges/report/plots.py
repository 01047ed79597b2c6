"""Plots as inline SVG that takes its colours from the page, so that dark pages have dark plots.

Blue, vermilion and grey of Okabe and Ito, which colour-blind people tell apart; shapes and
words say the same again.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from langchain_judges.errors import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 440
"""Units of the drawing; a phone shows it at three quarters, so letters stay legible."""
_LETTERS = 13

# Stand-ins that no drawing uses otherwise; the page's own colours replace them.
_INK, _MUTED, _LINE = "#010101", "#020202", "#030303"
_JUDGE, _PEOPLE, _OTHER = "#040404", "#050505", "#060606"
_PAGE = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _LINE: "var(--line)",
    _JUDGE: "var(--judge)",
    _PEOPLE: "var(--people)",
    _OTHER: "var(--other)",
}
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "langchain-judges",
    "text.parse_math": False,
    "font.size": _LETTERS,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _INK,
}
_QUARTERS = range(0, 101, 25)
_LONGEST = 30
"""Letters of a name in a plot."""

_numbers = count(1)


class Mark(NamedTuple):
    """One line of a plot of shares: a point with its interval."""

    label: str
    value: float
    interval: tuple[float, float] | None
    kind: str = "judge"
    """`judge`, `people` or `baseline`: colour and shape."""
    text: str = ""
    """What stands at the right end."""


_SHAPES = {"judge": ("o", _JUDGE), "people": ("D", _PEOPLE), "baseline": ("|", _MUTED)}


def _drawing(height: float, draw: Callable[[Figure], None], described: str) -> Markup:
    """Return what a function draws on a figure of this height."""
    with needs("trust", "A plot"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH / 72, height / 72))
        draw(figure)
        return _svg(figure, described)


def shares(marks: Sequence[Mark], unit: str, described: str) -> Markup:
    """Draw shares with their intervals, one a line, from 0 to 100 %."""
    height = 40 * len(marks) + 48

    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.02, 42 / height, 0.96, 1 - 44 / height))
        for line, mark in enumerate(marks):
            _mark(axes, line, mark)
        axes.set_xlim(0, 100)
        axes.set_ylim(len(marks) - 0.4, -0.6)
        axes.set_xticks(_QUARTERS)
        axes.set_xlabel(unit)
        _bare(axes)
        axes.set_yticks([])

    return _drawing(height, draw, described)


def _mark(axes: Axes, line: int, mark: Mark) -> None:
    shape, colour = _SHAPES[mark.kind]
    y = line + 0.2
    if mark.interval is not None:
        low, high = (100 * end for end in mark.interval)
        axes.plot([low, high], [y, y], color=colour, lw=3, alpha=0.45, solid_capstyle="butt")
    size = 11 if shape == "|" else 7
    axes.plot([100 * mark.value], [y], shape, color=colour, ms=size, mew=2, zorder=3)
    axes.text(0, line - 0.22, _short(mark.label), va="center", ha="left", color=_INK)
    axes.text(100, line - 0.22, _clean(mark.text), va="center", ha="right", color=_MUTED)


def slots(parts: Sequence[tuple[str, float, str]], described: str) -> Markup:
    """Draw what a change of places does to verdicts, as one bar of shares that add up to 1.

    Args:
        parts: The name, the share and the colour (`judge`, `people`, `other` or `baseline`).
        described: What a screen reader says.
    """
    colours = {"judge": _JUDGE, "people": _PEOPLE, "other": _OTHER, "baseline": _MUTED}
    rows = 26 * len(parts)
    height = rows + 92

    def draw(figure: Figure) -> None:
        bar = figure.add_axes((0.02, 1 - 34 / height, 0.96, 30 / height))
        start = 0.0
        for _, share, kind in parts:
            bar.barh(0, 100 * share, left=start, height=1, color=colours[kind], lw=0)
            start += 100 * share
        bar.set_xlim(0, 100)
        bar.set_xticks(_QUARTERS)
        bar.set_yticks([])
        bar.set_xlabel("share of rows asked in both orders, %")
        _bare(bar, grid=False)
        names = figure.add_axes((0.02, 0, 0.96, rows / height))
        names.set_axis_off()
        names.set_xlim(0, 100)
        names.set_ylim(len(parts), 0)
        for line, (name, share, kind) in enumerate(parts):
            names.plot([1.5], [line + 0.5], "s", color=colours[kind], ms=10)
            names.text(5, line + 0.5, name, va="center", color=_INK)
            percents = f"{100 * share:.1f} %"
            names.text(100, line + 0.5, percents, va="center", ha="right", color=_MUTED)

    return _drawing(height, draw, described)


def lengths(
    names: Sequence[str],
    judge: Sequence[float],
    people: Sequence[float],
    described: str,
    *,
    whom: str = "people",
) -> Markup:
    """Draw how often the longer text is preferred, by how much longer it is.

    Args:
        names: Of the steps of length, shortest lead first.
        judge: The judge's share of preferences for the longer text at each step.
        people: People's share.
        described: What a screen reader says.
        whom: What the line of people is called.
    """

    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.115, 0.2, 0.86, 0.77))
        _line(axes, people, whom, _PEOPLE, "D--", above=people[-1] > judge[-1])
        _line(axes, judge, "judge", _JUDGE, "o-", above=judge[-1] >= people[-1])
        axes.axhline(50, color=_MUTED, lw=1, ls=":")
        axes.set_xticks(range(len(names)), list(names))
        axes.set_xlim(-0.3, len(names) - 0.7)
        _percent_heights(axes, "difference in length, characters")

    return _drawing(250, draw, described)


def _line(
    axes: Axes, shares: Sequence[float], name: str, colour: str, style: str, *, above: bool
) -> None:
    """Draw a line over its steps, with its name above or below its end."""
    heights = [100 * share for share in shares]
    axes.plot(range(len(heights)), heights, style, color=colour, lw=2, ms=7)
    axes.annotate(
        name,
        (len(heights) - 1, heights[-1]),
        xytext=(0, 12 if above else -12),
        textcoords="offset points",
        ha="right",
        va="center",
        color=colour,
    )


Points = Sequence[tuple[float, float, tuple[float, float] | None]]
"""Of each point x, y and the interval of y, all in [0, 1]."""


def calibration(points: Points, described: str) -> Markup:
    """Draw how often answers are right by their confidence; the dotted line is perfect.

    Args:
        points: The confidence, and the share that is right.
        described: What a screen reader says.
    """
    return _curve(points, "confidence, %", described, perfect=True)


def abstention(points: Points, described: str) -> Markup:
    """Draw how often the surest answers are right, by the share of the answers they are.

    Args:
        points: The share of the answers that is taken, and how many of these are right.
        described: What a screen reader says.
    """
    return _curve(points, "share of the answers that are taken, surest first, %", described)


def _curve(points: Points, unit: str, described: str, *, perfect: bool = False) -> Markup:
    places = [100 * x for x, *_ in points]
    heights = [100 * y for _, y, _ in points]

    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.115, 0.17, 0.86, 0.8))
        if perfect:
            axes.plot([0, 100], [0, 100], ":", color=_MUTED, lw=1)
        for place, (_, _, interval) in zip(places, points, strict=True):
            if interval is not None:
                ends = [100 * end for end in interval]
                axes.plot([place] * 2, ends, color=_JUDGE, lw=3, alpha=0.45)
        axes.plot(places, heights, "o-", color=_JUDGE, lw=2, ms=6)
        axes.set_xlim(min(50.0, *(place - 3 for place in places)), 102)
        _percent_heights(axes, unit)

    return _drawing(300, draw, described)


def _percent_heights(axes: Axes, unit: str) -> None:
    """Let heights be percentages, over a horizontal axis of some unit."""
    axes.set_ylim(0, 104)
    axes.set_yticks(_QUARTERS)
    axes.set_xlabel(unit)
    _bare(axes, grid=False)
    axes.tick_params(axis="both", colors=_MUTED)


def _bare(axes: Axes, *, grid: bool = True) -> None:
    for side in ("left", "right", "top", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.patch.set_alpha(0)
    if grid:
        axes.grid(axis="x", color=_LINE, lw=1)
        axes.set_axisbelow(True)


def _short(text: str) -> str:
    text = _clean(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _clean(text: str) -> str:
    """Return what XML can hold of a text."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return printable.encode("utf-8", "replace").decode()


def _svg(figure: Figure, described: str) -> Markup:
    figure.patch.set_alpha(0)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for size in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    # Several drawings share a page, so their names must not meet.
    own = f"p{next(_numbers)}-"
    svg = re.sub(r'\bid="', f'id="{own}', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{own}", svg)
    for stand_in, colour in _PAGE.items():
        svg = svg.replace(stand_in, colour)
    label = escape(_clean(described))
    svg = svg.replace("<svg", f'<svg class="plot" role="img" aria-label="{label}"', 1)
    return Markup(svg)  # noqa: S704 - matplotlib escapes the texts it draws
