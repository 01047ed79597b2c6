"""The plots of a report, as inline SVG that takes its colours from the page.

Blue, vermilion and grey of Okabe and Ito, which colour-blind people tell apart; shapes and
words say the same again.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from langchain_judges import metrics
from langchain_judges.errors import needs
from langchain_judges.report.content import ReportContent
from langchain_judges.report.number import Number, percent, range_text, value_text
from langchain_judges.report.rows import preference_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CATEGORIES = 16
ONE_ORDER = "agreement.mean_of_orders.wrong"
"""The agreement of a judge that is asked in one order, mean of both."""


def _mark(number: Number, label: str, kind: str) -> Mark:
    span = range_text(number, 0)
    text = f"{value_text(number)} ({span})" if span else value_text(number)
    return Mark(label, float(number.result), number.result.interval, kind, text)


def agreement_plot(report: ReportContent) -> Markup | None:
    """The judge, people and the baselines."""
    headline = report.shares_headline
    if math.isnan(headline.result):
        return None
    numbers = report.numbers
    marks = [_mark(headline, "This judge", "judge")]
    if ONE_ORDER in numbers and "baseline.coin" in numbers:
        # Beside baselines that are asked once stands a judge that is asked once.
        marks.append(_mark(numbers[ONE_ORDER], "It, by one order alone", "judge"))
    marks += _people_and_baselines(numbers)
    unit = f"share of {'votes' if report.sample.by_votes else 'rows'} matched, %"
    return draw_shares(
        marks, unit, f"Agreement: judge, people and baselines. {_description(marks)}"
    )


def _people_and_baselines(numbers: Mapping[str, Number]) -> list[Mark]:
    people = numbers["agreement.people"]
    marks = [
        _mark(number, number.title, "baseline")
        for key, number in numbers.items()
        if key.startswith("baseline.") and key != "baseline.lead"
    ]
    if math.isnan(people.result):
        return marks
    return [_mark(people, "People among themselves", "people"), *marks]


def _description(marks: Sequence[Mark]) -> str:
    return "; ".join(f"{mark.label}: {mark.text}" for mark in marks)


def judges_plot(reports: Sequence[ReportContent]) -> Markup | None:
    """All judges, people and the baselines."""
    marks = [
        _mark(report.shares_headline, report.name, "judge")
        for report in reports
        if not math.isnan(report.shares_headline.result)
    ]
    if not marks:
        return None
    marks += _people_and_baselines(reports[0].numbers)
    unit = f"agreement with {reports[0].sample.whom}, %"
    return draw_shares(marks, unit, f"All judges. {_description(marks)}")


def slot_plot(report: ReportContent) -> Markup | None:
    """What becomes of verdicts when the texts swap places."""
    numbers = report.numbers
    if "bias.toward_first" not in numbers or math.isnan(numbers["bias.flips"].result):
        return None
    keys = ("bias.flips", "bias.toward_first", "bias.toward_second")
    flips, first, second = (float(numbers[key].result) for key in keys)
    parts = [
        ("same verdict in both orders", 1 - flips, "judge"),
        ("the first slot won both orders", first, "people"),
        ("the second slot won both orders", second, "other"),
        ("into or out of a tie", max(0.0, flips - first - second), "baseline"),
    ]
    description = "; ".join(f"{name}: {100 * share:.1f} %" for name, share, _ in parts)
    return draw_slots(parts, f"Verdicts when the texts swap places. {description}")


LEAST_ROWS = 20
"""With fewer rows whose texts differ in length there is no curve."""


def length_plot(report: ReportContent) -> Markup | None:
    """How often judge and people prefer the longer text, in up to four steps of its lead."""
    import numpy as np

    sample = report.sample
    if not sample.pairs:
        return None
    leads = []
    for place, a, b in zip(sample.with_texts, *sample.lengths, strict=True):
        row = sample.rows[place]
        judge = preference_points([row.answer] if row.answer is not None else [])
        people = preference_points(row.target)
        if a != b and judge is not None and people is not None:
            sides = [p if a > b else 1 - p for p in (judge, people)]
            leads.append((abs(a - b), *sides))
    if len(leads) < LEAST_ROWS:
        return None
    table = np.asarray(leads)
    # Quarters of the rows; where many leads are equal two quarters may be one step.
    cuts = np.unique(np.quantile(table[:, 0], (0.25, 0.5, 0.75), method="inverted_cdf"))
    step = np.searchsorted(cuts, table[:, 0])
    steps = [table[step == number] for number in range(len(cuts) + 1)]
    steps = [part for part in steps if len(part)]
    names = [_span(part[:, 0].min(), part[:, 0].max()) for part in steps]
    shares = [[float(part[:, column].mean()) for part in steps] for column in (1, 2)]
    description = "; ".join(
        f"{name} characters: judge {percent(j)} %, {report.sample.whom} {percent(p)} %"
        for name, j, p in zip(names, *shares, strict=True)
    )
    title = f"Preference for the longer text. {description}"
    return draw_lengths(names, shares[0], shares[1], title, whom=sample.whom)


def _span(low: float, high: float) -> str:
    return f"{int(low):,}" if low == high else f"{int(low):,}–{int(high):,}"


def categories(report: ReportContent) -> list[Number]:
    """Return the agreement in each category that has a label, largest category first."""
    return [
        number
        for key, number in report.numbers.items()
        if key.startswith("category.") and not math.isnan(number.result)
    ]


def category_plot(report: ReportContent) -> Markup | None:
    """The agreement in the largest categories."""
    numbers = categories(report)
    if len(numbers) < 2:
        return None
    marks = []
    for number in numbers[:MOST_CATEGORIES]:
        mark = _mark(number, number.title, "judge")
        marks.append(mark._replace(text=f"{value_text(number, 0)}, n = {number.result.n:,}"))
    unit = f"agreement with {report.sample.whom}, %"
    return draw_shares(marks, unit, f"Agreement by category. {_description(marks)}")


def history_plot(report: ReportContent) -> Markup | None:
    """The agreement of this report and of those before it."""
    if report.drift is None:
        return None
    marks = []
    for each in report.drift.history:
        if each["agreement"] is None:
            continue
        low, high = each["low"], each["high"]
        span = None if low is None or high is None else (low, high)
        text = f"{percent(each['agreement'], 1)} %, n = {each['n']:,}"
        marks.append(Mark(each["date"] or "earlier", each["agreement"], span, text=text))
    return draw_shares(marks, "agreement, %", f"Agreement by date. {_description(marks)}")


def confidence_plot(report: ReportContent) -> Markup | None:
    """How often answers are right, by the confidence that the judge has in them."""
    sample = report.sample
    if not sample.has_confidence:
        return None
    calibration = metrics.confidence_calibration(
        sample.verdicts, sample.labels, **sample.settings
    )
    if len(calibration.bins) < 2:
        return None
    points = [
        (each.confidence, float(each.agreement), each.agreement.interval)
        for each in calibration.bins
    ]
    title = f"Agreement by confidence. {_right_at(points, 'confidence')}"
    return draw_calibration(points, title)


SHARES = tuple(tenths / 10 for tenths in range(10, 0, -1))


def abstention_plot(report: ReportContent) -> Markup | None:
    """How often the judge is right where only its surest answers are taken."""
    sample = report.sample
    if not sample.has_confidence:
        return None
    curve = metrics.abstention_curve(
        sample.verdicts, sample.labels, shares=SHARES, **sample.settings
    )
    results = {share: result for share, result in curve if result.n >= LEAST_ROWS}
    if len(results) < 3:
        return None
    points = [(share, float(own), own.interval) for share, own in results.items()]
    title = f"Agreement of the surest answers. {_right_at(points, 'surest')}"
    return draw_abstention(points, title)


def _right_at(points: Points, unit: str) -> str:
    return "; ".join(f"{unit} {percent(x)} %: right {percent(y)} %" for x, y, _ in points)


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


def draw_shares(marks: Sequence[Mark], unit: str, described: str) -> Markup:
    """Draw shares with their intervals, one a line, from 0 to 100 %."""
    height = 40 * len(marks) + 48

    def draw(figure: Figure) -> None:
        axes = figure.add_axes((0.02, 42 / height, 0.96, 1 - 44 / height))
        for line, mark in enumerate(marks):
            _draw_mark(axes, line, mark)
        axes.set_xlim(0, 100)
        axes.set_ylim(len(marks) - 0.4, -0.6)
        axes.set_xticks(_QUARTERS)
        axes.set_xlabel(unit)
        _bare(axes)
        axes.set_yticks([])

    return _drawing(height, draw, described)


def _draw_mark(axes: Axes, line: int, mark: Mark) -> None:
    shape, colour = _SHAPES[mark.kind]
    y = line + 0.2
    if mark.interval is not None:
        low, high = (100 * end for end in mark.interval)
        axes.plot([low, high], [y, y], color=colour, lw=3, alpha=0.45, solid_capstyle="butt")
    size = 11 if shape == "|" else 7
    axes.plot([100 * mark.value], [y], shape, color=colour, ms=size, mew=2, zorder=3)
    axes.text(0, line - 0.22, _short(mark.label), va="center", ha="left", color=_INK)
    axes.text(100, line - 0.22, _clean(mark.text), va="center", ha="right", color=_MUTED)


def draw_slots(parts: Sequence[tuple[str, float, str]], described: str) -> Markup:
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


def draw_lengths(
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


def draw_calibration(points: Points, described: str) -> Markup:
    """Draw how often answers are right by their confidence; the dotted line is perfect.

    Args:
        points: The confidence, and the share that is right.
        described: What a screen reader says.
    """
    return _curve(points, "confidence, %", described, perfect=True)


def draw_abstention(points: Points, described: str) -> Markup:
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
