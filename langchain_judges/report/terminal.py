"""Verdicts, summaries, rankings and audits on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from langchain_judges.escaping import clean, shortened
from langchain_judges.lazy import packaged
from langchain_judges.report.evidence import own_evidence
from langchain_judges.rows.checks import SIDES, kind_of_result
from langchain_judges.runs.summary import HEAD, Summary, counted, number_of

if TYPE_CHECKING:
    from langchain_judges.runs.comparison import Ranking


def verdict_panel(row: Mapping[str, Any]) -> RenderableType:
    """Render one result: the verdict, what decided, and the method's own findings."""
    verdict = row["verdict"]
    parts: list[RenderableType] = [Text(clean(verdict["rationale"]))]
    for found in own_evidence(row):
        parts += [Text(clean(found.title), style="bold"), _table(found.head, found.rows, 120)]
    recalled = row.get("recalled") or {}
    if recalled.get("allow_leak") or verdict.get("recalled"):
        ids = verdict.get("recalled") or recalled.get("ids") or ()
        note = Text(f"shown {counted(len(ids), 'remembered example')}", style="dim")
        if recalled.get("allow_leak"):
            leak = "; those of the item's own group were allowed, so this is not a test"
            note.append(leak, style="yellow")
        parts.append(note)
    return _panel(row, kind_of_result(row), _headline(verdict), parts, verdict)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], longest: int = 40) -> Table:
    """Render a table; cells may hold what looks like markup, and so are text."""
    table = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*(Text(clean(shortened(cell, longest))) for cell in row))
    return table


def text_panel(row: Mapping[str, Any]) -> RenderableType:
    """Render one written text: itself, what it lacks and which step lost it."""
    text, omissions = row["text"], row.get("missing") or []
    parts: list[RenderableType] = [Text(clean(text or "No usable text was written."))]
    for step in ("solve", "merge"):
        names = [each["concept"] for each in omissions if each["lost_in"] == step]
        if text and names:
            parts.append(Text(clean(f"lost in {step}: {', '.join(names)}"), style="yellow"))
    total = len(row.get("concepts") or [])
    headline = f"{total - len(omissions)} of {total} concepts" if text else "not written"
    return _panel(row, "text", headline, parts, row)


def _panel(
    row: Mapping[str, Any],
    kind: str,
    headline: str,
    parts: Sequence[RenderableType],
    outcome: Mapping[str, Any],
) -> RenderableType:
    """Render what a row came to, with its failures and its cost below."""
    failures = [
        Text(clean(f"! {f['step']} {f['unit']}: {f['reason']}: {f['detail']}"[:200]), "red")
        for f in outcome["failures"]
    ]
    usage = outcome["usage"]
    tokens = usage["input_tokens"] + usage["output_tokens"]
    told = "tokens not reported" if usage["calls"] and not tokens else counted(tokens, "token")
    cost = Text(f"{counted(usage['calls'], 'call')}, {told}", "dim")
    own = row.get("id")
    name = f"{kind} {row.get('index', -1) + 1}" if own in (None, "") else str(own)
    # Text, not str: ids and criteria may hold what looks like markup.
    title = Text(clean(f"{name}: {headline}"))
    return Panel(Group(*parts, *failures, cost), title=title, title_align="left")


def _headline(verdict: Mapping[str, Any]) -> str:
    score = "" if verdict["score"] is None else f", score {verdict['score']:.2f}"
    if verdict.get("label") is not None:
        return f"label {verdict['label']}{score}"
    preference = verdict.get("preference")
    if preference is None:
        return "not judged"
    word = "tie" if preference == "tie" else f"{preference} preferred"
    flip = {True: ", the orders disagree", False: ", both orders agree", None: ""}
    return f"{word}{score}{flip[verdict['flipped']]}"


def criteria_table(summary: Summary) -> Table:
    """Render what each criterion came to."""
    rows: list[tuple[str, ...]] = []
    last = ""
    for name, *cells in summary.criteria.written():
        rows.append(("" if name == last else name, *cells))
        last = name
    return _table(HEAD, rows)


# What is counted, the count, and what it is out of.
Line = tuple[str, str, str]


def summary_table(summary: Summary) -> Table:
    """Render the summary of a run, A and B by the names of the systems, if they have some."""
    columns = Column(style="bold"), Column(justify="right"), Column()
    table = Table(*columns, box=None, show_header=False, pad_edge=False)
    for line in _lines(summary):
        table.add_row(*(Text(clean(cell)) for cell in line))
    return table


def _lines(summary: Summary) -> Iterator[Line]:
    yield from _outcomes(summary)
    yield "failures", f"{summary.failures.total():,}", _by_kind(summary.failures)
    others = _by_kind(summary.answered)
    yield "calls", f"{summary.calls:,}", others and f"by other models than was asked: {others}"
    cached = summary.cached_tokens
    of = f"{cached / summary.tokens:.0%} of them from the provider's cache" if cached else ""
    told = "not reported" if summary.calls and not summary.tokens else f"{summary.tokens:,}"
    yield "tokens", told, of
    if summary.prices:
        unpriced = f"; no price is known for {summary.unpriced:,} calls"
        of = f"by {summary.prices}{unpriced if summary.unpriced else ''}"
        yield "dollars", f"{summary.cost:,.4f}", of
    yield "seconds", f"{summary.seconds:,.1f}", ""
    for stage, rows in summary.stages.most_common():
        yield "decided", f"{rows:,}", f"of {summary.rows:,} rows by {stage}"
    if summary.labelled:
        yield "as labelled", f"{summary.agreed:,}", _WORDS["of"]["labelled"].format(summary)
    if summary.leaks:
        yield "leaks", f"{summary.leaks:,}", _WORDS["of"]["leaks"]
    if summary.resumed:
        elsewhere = f", {summary.elsewhere:,} of them at another address"
        of = f"rows of an earlier run{elsewhere if summary.elsewhere else ''}"
        yield "resumed", f"{summary.resumed:,}", of
    if summary.others:
        yield "others", f"{summary.others:,}", "rows of other judges in the file"


def _outcomes(summary: Summary) -> Iterator[Line]:
    """Yield what the verdicts or the written texts are, and how many rows have none."""
    undone = f"{summary.not_judged.total():,}", _by_kind(summary.not_judged)
    if summary.wrote:
        yield "all concepts", f"{summary.complete:,}", f"of {summary.texts:,} texts"
        by_step = ", ".join(f"{n:,} in {step}" for step, n in summary.lost.most_common())
        details = f"of {summary.concepts:,} concepts{by_step and ': '}{by_step}"
        yield "missing", f"{summary.lost.total():,}", details
        yield "not written", *undone
        return
    # Of several criteria the totals are no labels; a table by criterion stands below.
    best = summary.criteria.best
    labels = () if summary.totals else sorted({*summary.preferences, *best})
    for label in labels if summary.labels else ():
        told = "counts as good; `best` says otherwise" if summary.assumed else "the best"
        yield f"label {label}", f"{summary.preferences[label]:,}", told * (label in best)
    if not summary.labels:
        slots = [(side, summary.preferences[side]) for side in SIDES]
        named = [(name, number_of(share)) for name, share in summary.sides or ()]
        for name, number in [*(named or slots[:2]), slots[2]]:
            yield name, f"{number:,}", ""
    yield "not judged", *undone
    if summary.abstained:
        yield "cannot assess", f"{summary.abstained:,}", _WORDS["of"]["abstained"]
    if not summary.labels:
        yield "flips", f"{summary.flips:,}", f"of {summary.both_orders:,} in both orders"


def _by_kind(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def ranking_table(ranking: Ranking) -> Table:
    """Render a ranking: a line for each system, strongest first."""
    head = ("", "system", "strength", "interval", "comparisons", "lead over the next")
    leads = {True: "settled", False: "open", None: ""}
    rows = [
        (
            str(place),
            each["system"],
            f"{each['strength']:+.2f}",
            f"{each['low']:+.2f} to {each['high']:+.2f}",
            f"{each['comparisons']:,}",
            leads[each["parted"]],
        )
        for place, each in enumerate(ranking["systems"], 1)
    ]
    table = _table(head, rows, _WIDTH)
    for place, column in enumerate(table.columns):
        column.justify = "left" if head[place] == "system" else "right"
    return table


# Characters of a cell that are shown.
_WIDTH = 600


def rounds_table(result: Mapping[str, Any]) -> Table:
    """Render the results of an audit's rounds, a line for each, on 80 columns."""
    names = ["round", "evaluated", "doubted", "accepted", "rejected", "check_wrong"]
    names += ["remembered", "waiting"]
    columns = [Column(name.replace("_", " "), justify="right") for name in (*names, "calls")]
    table = Table(*columns, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for entry in result["history"]:
        counts = [entry[name] for name in names]
        table.add_row(*(f"{each:,}" for each in (*counts, entry["usage"]["calls"])))
    return table


def gain_words(gain: Mapping[str, Any]) -> str:
    """Gain of an audit on items that decided nothing, or why it is unknown."""
    if gain["problem"]:
        return f"What this brought is not measured: {gain['problem']}."
    before, after = gain["before"], gain["after"]
    worse = " The judge is worse with what it learnt." if gain["gain"] < 0 else ""
    spans = {"was": _range(before), "now": _range(after), "by": _range(gain, "+")}
    told = str(_WORDS["gain"]).format(before=before, after=after, change=gain["gain"], **spans)
    return told + worse


def _range(value: Mapping[str, Any], sign: str = "") -> str:
    """The interval of a value, in parentheses; empty where it has none."""
    if value["low"] is None:
        return ""
    return f" ({value['low']:{sign}.2f} to {value['high']:{sign}.2f})"


_WORDS: dict[str, Any] = packaged(__package__, "words.yaml")


def audit_report(result: Mapping[str, Any]) -> RenderableType:
    """Render the result of an audit."""
    lines = [Text(_WORDS["ended"].get(result["stopped"], ""))]
    if gain := result["gain"]:
        style = "yellow" if gain["problem"] or gain["gain"] < 0 else ""
        lines.append(Text(gain_words(gain), style))
    wrong = sum(decision["answer"] == "check_wrong" for decision in result["decisions"])
    if wrong:
        lines.append(Text(_WORDS["check_wrong"].format(wrong)))
    for why, count in Counter(each["why"] for each in result["waiting"]).items():
        many = counted(count, "accepted example waits", "accepted examples wait")
        lines.append(Text(f"{many}: {_WORDS['waits'][why]}.", "yellow"))
    return Group(rounds_table(result), *lines)
