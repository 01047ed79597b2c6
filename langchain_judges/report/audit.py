"""Proposals and rounds of an audit on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from langchain_judges.rows.printable import clean
from langchain_judges.rows.texts import judged, transcript

_LINES = 12
"""Lines of a long text that are shown at first."""
_WIDTH = 600
"""Characters of a line that are shown at first."""

KEYS = (
    ("a", "accept: the judge is wrong"),
    ("w", "the check is wrong, the judge right"),
    ("r", "reject: nothing to learn"),
    ("l", "accept with another label"),
    ("m", "accept with another failure mode"),
    ("n", "add a note"),
    ("u", "undo"),
    ("s", "skip for now"),
    ("v", "view all of it"),
    ("q", "stop, go on later"),
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
    doubt = f"{proposal['proposed']}: {proposal['why']}"
    parts.append(_section(f"check {proposal['check']}", doubt, whole, "magenta"))
    parts.append(_section("failure mode", proposal.get("mode") or "none suggested", whole))
    if note:
        parts.append(_section("note", note, whole))
    title = Text(f"{place}: {clean(str(proposal['id']))}, round {proposal['round']}")
    return Group(Panel(Group(*parts), title=title, title_align="left"), _keys())


def _section(name: str, text: str, whole: bool, style: str = "") -> Text:
    lines = clean(text.replace("\r", "")).strip("\n").splitlines() or [""]
    left_out = 0
    if not whole:
        cut = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]} …" for line in lines]
        left_out = max(0, len(lines) - _LINES)
        lines = cut[:_LINES]
    if left_out:
        lines.append(f"… {left_out} more lines")
    return Text.assemble((f"{name}\n", "bold"), ("\n".join(lines), style), "\n")


def _keys() -> Table:
    table = Table.grid(padding=(0, 2))
    half = (len(KEYS) + 1) // 2
    for first, second in zip(KEYS[:half], KEYS[half:], strict=True):
        cells = [part for key, does in (first, second)
                 for part in (Text(f" {key} ", "reverse"), Text(does, "dim"))]  # fmt: skip
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
    "no_gain": "Dev has not improved for as many rounds as --patience allows.",
}


def _waiting(result: Mapping[str, Any]) -> list[RenderableType]:
    """Say which accepted examples wait, and of which families nobody knows what they do."""
    lines: list[RenderableType] = []
    fell = sum(each["why"] == "fell" for each in result["waiting"])
    if fell:
        lines.append(
            Text(f"{fell} accepted examples wait: they lowered the dev score.", style="yellow")
        )
    families = sorted({name for entry in result["history"] for name in entry["unmeasured"]})
    if families:
        family_names = ", ".join(clean(name or "(no family)") for name in families)
        rest = len(result["waiting"]) - fell
        what = f"{rest} accepted examples wait" if rest else "Admitted unmeasured"
        lines.append(Text(f"{what}: no item of dev is of {family_names}.", style="yellow"))
    return lines


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
