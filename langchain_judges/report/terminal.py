"""Verdicts, summaries, comparisons, rankings and audits on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from langchain_judges.escaping import clean, shortened
from langchain_judges.report.evidence import TextTable, own_evidence
from langchain_judges.rows.checks import kind_of_result
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.runs.decision import counted

if TYPE_CHECKING:
    from langchain_judges.runs.comparison import Comparison, Rate, Standing
    from langchain_judges.runs.ranking import Ranking
    from langchain_judges.runs.summary import Summary


def verdict_panel(row: Mapping[str, Any]) -> RenderableType:
    """Render one result: the verdict, what decided, and the method's own findings."""
    verdict = row["verdict"]
    parts: list[RenderableType] = [Text(clean(verdict["rationale"]))]
    for found in own_evidence(row):
        parts += [Text(clean(found.title), style="bold"), _own_table(found)]
    if (row.get("recalled") or {}).get("allow_leak") or verdict.get("recalled"):
        parts.append(_recalled(row))
    return _panel(row, kind_of_result(row), _headline(verdict), [*parts, *_costs(verdict)])


def _own_table(found: TextTable) -> Table:
    """Render what a method found: votes, scores, tables."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in found.head:
        table.add_column(name)
    for row in found.rows:
        table.add_row(*(Text(clean(shortened(cell, 120))) for cell in row))
    return table


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
    calls = counted(usage["calls"], "call")
    cost = Text(f"{calls}, {counted(tokens, 'token')}", style="dim")
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
    recalled = row.get("recalled") or {}
    leak = recalled.get("allow_leak")
    ids = row["verdict"].get("recalled") or recalled.get("ids") or ()
    note = f"shown {counted(len(ids), 'remembered example')}"
    if leak:
        note += "; those of the item's own group were allowed, so this is no test"
    return Text(note, style="yellow" if leak else "dim")


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
    for stage, rows in summary.stages.most_common():
        table.add_row("decided", f"{rows:,}", f"of {summary.rows:,} rows by {stage}")
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
        if summary.abstained:
            why = "what was shown does not suffice, says the judge"
            table.add_row("cannot assess", f"{summary.abstained:,}", why)
        if not summary.labels:
            both = f"of {summary.both_orders:,} in both orders"
            table.add_row("flips", f"{summary.flips:,}", both)


def comparison_table(comparison: Comparison) -> Table:
    """Render a comparison: one column for each method, one line for each number."""
    methods = comparison["methods"]
    standings = methods.values()
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for method in methods:
        table.add_column(method, justify="right")
    lines = {
        "settings": [_settings(each["options"]) for each in standings],
        "calls a pair": [f"{each['calls_each']:,}" for each in standings],
        **{
            side: [f"{each['verdicts'][side]:,}" for each in standings]
            for side in ("A", "B", "tie")
        },
        "not judged": [f"{each['not_judged']:,}" for each in standings],
        "flips": [_flips(each) for each in standings],
        "failures": [_failures(each["failures"]) for each in standings],
        "calls": [f"{each['calls']:,}" for each in standings],
        "tokens": [f"{each['tokens']:,}" for each in standings],
        "dollars": [_dollars(each["dollars"]) for each in standings],
        "as labelled": [_rate(each["labelled"]) for each in standings],
    }
    # Each two methods stand once, above the diagonal.
    agreed = {tuple(each["methods"]): _rate(each["rate"]) for each in comparison["agreement"]}
    for other in list(methods)[:-1]:
        lines[f"as {other}"] = [agreed.get((other, method), "") for method in methods]
    for name, cells in lines.items():
        if set(cells) != {"-"}:
            table.add_row(Text(name, style="bold"), *map(Text, cells))
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
    both = standing["both_orders"]
    return f"{standing['flips']:,} of {both:,}" if both else "-"


def _failures(failures: Mapping[str, int]) -> str:
    reasons = [f"{n} {reason}" for reason, n in sorted(failures.items())]
    return "\n".join([f"{sum(failures.values()):,}", *reasons])


def _dollars(dollars: float | None) -> str:
    return "-" if dollars is None else f"{dollars:,.4f}"


def _rate(rate: Rate | None) -> str:
    if rate is None or rate["share"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    percents = f"{100 * rate['low']:.0f}–{100 * rate['high']:.0f}"
    return f"{rate['count']:,} of {rate['of']:,}\n{100 * rate['share']:.0f} % [{percents}]"


def ranking_table(ranking: Ranking) -> Table:
    """Render a ranking: a line for each system, strongest first."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "system", "strength", "interval", "comparisons", "lead over the next"):
        table.add_column(column, justify="left" if column == "system" else "right")
    leads = {True: "settled", False: "open", None: ""}
    for place, each in enumerate(ranking["systems"], 1):
        table.add_row(
            str(place),
            Text(clean(each["system"])),
            f"{each['strength']:+.2f}",
            f"{each['low']:+.2f} to {each['high']:+.2f}",
            f"{each['comparisons']:,}",
            leads[each["parted"]],
        )
    return table


_LINES = 12
"""Lines of a long text that are shown at first."""
_WIDTH = 600
"""Characters of a line that are shown at first."""

_DOUBTED = (
    ("a", "accept: the judge is wrong"),
    ("w", "the check is wrong, the judge right"),
    ("r", "reject: nothing to learn"),
    ("l", "accept with another label"),
    ("m", "accept with another failure mode"),
)
_DRAWN = (
    ("a", "accept: the judge is right"),
    ("l", "the judge is wrong: give the label"),
    ("r", "reject: nothing to learn"),
)
_ALWAYS = (
    ("n", "say why in a line: judges read it"),
    ("u", "undo"),
    ("s", "skip for now"),
    ("v", "view all of it"),
    ("q", "stop; the same command resumes"),
)
"""What the keys of a review do."""


def proposal_screen(
    proposal: Mapping[str, Any], place: str, note: str = "", *, whole: bool = False
) -> RenderableType:
    """Render one proposal: the task, both answers, what the judge said, and the keys.

    Args:
        proposal: A `Proposal`.
        place: Where it stands among the others, as people read it: `2 of 7`.
        note: What was noted of it so far.
        whole: Show long texts in full.
    """
    item = proposal["item"]
    parts: list[RenderableType] = [_section("task", transcript(item["input"]), whole)]
    if item.get("source") and item["source"] != item["input"]:
        parts.append(_section("source", str(item["source"]), whole))
    expected = item.get("expected")
    if expected is not None:
        answers = [expected] if isinstance(expected, str) else expected
        parts.append(_section("expected", "\n".join(map(str, answers)), whole, "green"))
    parts.append(_section("response", judged(item["output"]), whole, "cyan"))
    score = proposal.get("score")
    sure = "" if score is None else f" (score {score:.2f})"
    text = f"{proposal['label']}{sure}: {proposal['rationale']}"
    parts.append(_section("judge", text, whole, "yellow"))
    drawn = proposal["proposed"] == proposal["label"]
    doubt = f"{proposal['proposed']}: {proposal['why']}"
    parts.append(_section(f"check {proposal['check']}", doubt, whole, "magenta"))
    if not drawn:
        parts.append(_section("failure mode", proposal.get("mode") or "none suggested", whole))
    if note:
        parts.append(_section("note", note, whole))
    title = Text(f"{place}: {clean(str(proposal['id']))}, round {proposal['round']}")
    panel = Panel(Group(*parts), title=title, title_align="left")
    return Group(panel, _keys(_DRAWN if drawn else _DOUBTED))


def _section(name: str, text: str, whole: bool, style: str = "") -> Text:
    lines = clean(text.replace("\r", "")).strip("\n").splitlines() or [""]
    left_out = 0
    if not whole:
        cut = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …" for line in lines]
        left_out = max(0, len(lines) - _LINES)
        lines = cut[:_LINES]
    if left_out:
        lines.append(f"… {counted(left_out, 'more line')}")
    return Text.assemble((f"{name}\n", "bold"), ("\n".join(lines), style), "\n")


def _keys(answers: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    for pair in zip_longest(answers, _ALWAYS, fillvalue=("", "")):
        cells = [
            part
            for key, does in pair
            for part in (Text(f" {key} " if key else "", "reverse"), Text(does, "dim"))
        ]
        table.add_row(*cells)
    return table


def choices(names: Sequence[str]) -> Text:
    """Render what can be chosen by number."""
    return Text("\n".join(f"  {number}  {clean(name)}" for number, name in enumerate(names, 1)))


ROUNDS_BESIDE = 5
"""Rounds that stand beside each other on 80 columns."""

_COUNTS = {
    "judged": "evaluated",
    "doubted": "doubted",
    "asked": "proposed",
    "accepted": "accepted",
    "rejected": "rejected",
    "check wrong": "check_wrong",
    "learnt": "remembered",
    "waiting": "waiting",
}
"""What a line of the table is called, and its entry in the history."""


def rounds_tables(result: Mapping[str, Any]) -> list[Table]:
    """Render the results of an audit's rounds, one column for each round."""
    history = result["history"]
    starts = range(0, len(history), ROUNDS_BESIDE)
    return [_rounds_table(history[start : start + ROUNDS_BESIDE]) for start in starts]


def _rounds_table(history: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for entry in history:
        table.add_column(f"round {entry['round']}", justify="right", no_wrap=True)
    for name, key in _COUNTS.items():
        table.add_row(name, *(f"{entry[key]:,}" for entry in history))
    table.add_row("dev", *map(_gain, history))
    table.add_row("calls", *(f"{entry['usage']['calls']:,}" for entry in history))
    return table


def _gain(entry: Mapping[str, Any]) -> str:
    before, after = entry["dev_before"], entry["dev"]
    if not after:
        return "-"
    return f"{before['balanced_accuracy']:.2f} → {after['balanced_accuracy']:.2f}"


_WHY = {
    "max_rounds": "That was the last round.",
    "nothing_new": "The last round taught nothing new.",
    "no_gain": "Dev has not improved for as many rounds as `patience` allows.",
}


def _waiting(result: Mapping[str, Any]) -> list[RenderableType]:
    """Say which accepted examples wait, and of which families nobody knows what they do."""
    lines: list[RenderableType] = []
    fell = sum(each["why"] == "fell" for each in result["waiting"])
    if fell:
        lines.append(Text(f"{_wait(fell)}: the dev score fell.", style="yellow"))
    families = result["history"][-1]["unmeasured"] if result["history"] else []
    if families:
        family_names = ", ".join(clean(name or "(no family)") for name in families)
        rest = len(result["waiting"]) - fell
        text = f"{_wait(rest)}: no item of dev is of {family_names}."
        lines.append(Text(text, style="yellow"))
    return lines


def _wait(count: int) -> str:
    return counted(count, "accepted example waits", "accepted examples wait")


def audit_report(result: Mapping[str, Any]) -> RenderableType:
    """Render the result of an audit."""
    parts: list[RenderableType] = [
        *rounds_tables(result),
        Text(_WHY.get(result["stopped"], "")),
    ]
    dev = result["history"][-1]["dev"] if result["history"] else None
    if dev:
        interval = "no interval: fewer than five groups"
        if dev["low"] is not None:
            interval = f"{dev['low']:.2f} to {dev['high']:.2f}"
        parts.append(
            Text(
                f"On {dev['n']} items of dev: balanced accuracy {dev['balanced_accuracy']:.2f} "
                f"({interval}), accuracy {dev['accuracy']:.2f}; "
                f"always the most frequent label: {dev['majority']:.2f}."
            )
        )
    wrong = sum(decision["answer"] == "check_wrong" for decision in result["decisions"])
    if wrong:
        parts.append(
            Text(f"Answers that the check was wrong: {wrong}. They show where to fix it.")
        )
    parts += _waiting(result)
    if result["leak_allowed"]:
        parts.append(
            Text("Examples of an item's own group were allowed: this is no test.", "yellow")
        )
    return Group(*parts)
