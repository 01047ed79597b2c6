"""Verdicts and summaries on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from langchain_judges.methods.registry import sketches
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.printable import clean

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary


def verdict_panel(row: Mapping[str, Any]) -> RenderableType:
    """Render one result: the verdict, what decided, and the method's own findings."""
    verdict = row["verdict"]
    parts: list[RenderableType] = [Text(clean(verdict["rationale"]))]
    for sketch in sketches():
        parts += sketch(row)
    if row.get("leak_allowed") or verdict.get("recalled"):
        parts.append(_recalled(row))
    return _panel(row, kind_of_result(row), _headline(verdict), [*parts, *_costs(verdict)])


def text_panel(row: Mapping[str, Any]) -> RenderableType:
    """Render one written text: itself, what it lacks and which step lost it."""
    text, omissions = row["text"], row.get("missing") or []
    parts: list[RenderableType] = [Text(clean(text or "No usable text was written."))]
    for step in ("solve", "merge"):
        names = [each["concept"] for each in omissions if each["lost_in"] == step]
        if text and names:
            loss = f"lost in {step}: {', '.join(names)}"
            parts.append(Text(clean(loss), style="yellow"))
    total = len(row.get("concepts") or [])
    headline = f"{total - len(omissions)} of {total} concepts" if text else "not written"
    return _panel(row, "text", headline, [*parts, *_costs(row)])


def _costs(outcome: Mapping[str, Any]) -> list[RenderableType]:
    usage = outcome["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    lines = [
        clean(f"! {f['step']} {f['unit']}: {f['reason']}: {f['detail']}"[:200])
        for f in outcome["failures"]
    ]
    calls = f"{usage['calls']:,} {'call' if usage['calls'] == 1 else 'calls'}"
    cost = Text(f"{calls}, {tokens:,} tokens", style="dim")
    return [*(Text(each, style="red") for each in lines), cost]


def _panel(
    row: Mapping[str, Any], kind: str, headline: str, parts: list[RenderableType]
) -> RenderableType:
    own = row.get("id")
    name = f"{kind} {row.get('index', 0)}" if own in (None, "") else str(own)
    # Text, not str: ids and criteria may hold what looks like markup.
    title = Text(clean(f"{name}: {headline}"))
    return Panel(Group(*parts), title=title, title_align="left")


def _headline(verdict: Mapping[str, Any]) -> str:
    if verdict.get("label") is not None:
        return f"label {verdict['label']}{_score(verdict)}"
    preference = verdict.get("preference")
    if preference is None:
        return "not judged"
    word = "tie" if preference == "tie" else f"{preference} preferred"
    flip = {True: ", the orders disagree", False: ", both orders agree", None: ""}
    return f"{word}{_score(verdict)}{flip[verdict['flipped']]}"


def _score(verdict: Mapping[str, Any]) -> str:
    return "" if verdict["score"] is None else f", score {verdict['score']:.2f}"


def _recalled(row: Mapping[str, Any]) -> Text:
    note = f"shown {len(row['verdict']['recalled'])} remembered examples"
    if row.get("leak_allowed"):
        note += "; those of the item's own group were allowed, so this is no test"
    return Text(note, style="yellow" if row.get("leak_allowed") else "dim")


def _add_cost(table: Table, summary: Summary) -> None:
    table.add_row("calls", f"{summary.calls:,}", "")
    if summary.live:
        of = "of these by ordinary calls, for batch jobs had not answered"
        table.add_row("live", f"{summary.live:,}", of)
    table.add_row("tokens", f"{summary.tokens:,}", "")
    if summary.prices:
        unpriced = f"; no price is known for {summary.unpriced:,} calls"
        of = f"by {summary.prices}{unpriced if summary.unpriced else ''}"
        table.add_row("dollars", f"{summary.cost:,.4f}", of)


def summary_table(summary: Summary) -> Table:
    """Render the summary of a run."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column()
    _add_outcomes(table, summary)
    failures = ", ".join(f"{n} {reason}" for reason, n in summary.failures.most_common())
    table.add_row("failures", f"{sum(summary.failures.values()):,}", failures)
    _add_cost(table, summary)
    table.add_row("seconds", f"{summary.seconds:,.1f}", "")
    if summary.seconds_full >= 1:
        of = "seconds in which results waited for a slow row"
        table.add_row("waited", f"{summary.seconds_full:,.1f}", of)
    if summary.effective_voters is not None:
        of = f"independent ones in a panel of {summary.panel_votes / summary.panels:.1f}"
        table.add_row("voters", f"{summary.effective_voters:.1f}", of)
    _add_combined(table, summary)
    if summary.labelled:
        of = f"of {summary.labelled:,} judged rows with a label"
        table.add_row("as labelled", f"{summary.agreed:,}", of)
    if summary.leaks:
        of = "rows were judged with an example of their own group (`allow_leak`)"
        table.add_row("leaks", f"{summary.leaks:,}", of)
    if summary.resumed:
        table.add_row("resumed", f"{summary.resumed:,}", "rows of an earlier run")
    if summary.others:
        table.add_row("others", f"{summary.others:,}", "rows of other judges in the file")
    return table


def _add_outcomes(table: Table, summary: Summary) -> None:
    """Add what the verdicts or the written texts are, and how many rows have none."""
    reasons = ", ".join(f"{n} {reason}" for reason, n in summary.not_judged.most_common())
    undone = f"{sum(summary.not_judged.values()):,}"
    if summary.wrote:
        table.add_row("all concepts", f"{summary.complete:,}", f"of {summary.texts:,} texts")
        by_step = ", ".join(f"{n:,} in {step}" for step, n in summary.lost.most_common())
        details = f"of {summary.concepts:,} concepts{by_step and ': '}{by_step}"
        table.add_row("missing", f"{sum(summary.lost.values()):,}", details)
        table.add_row("not written", undone, reasons)
    else:
        for preference in summary.sides():
            table.add_row(preference, f"{summary.preferences[preference]:,}", "")
        table.add_row("not judged", undone, reasons)
        if not summary.labels:
            both = f"of {summary.both_orders:,} in both orders"
            table.add_row("flips", f"{summary.flips:,}", both)


def _add_combined(table: Table, summary: Summary) -> None:
    """Add what only judges made of judges come to."""
    for stage, rows in summary.stages.most_common():
        table.add_row("decided", f"{rows:,}", f"of {summary.rows:,} rows by {stage}")
    if jury := summary.jury():
        size, worth, by_errors = jury
        by = "by their errors" if by_errors else "by their votes, so at least"
        table.add_row("voters", f"{worth:.1f}", f"independent ones in a jury of {size}, {by}")
