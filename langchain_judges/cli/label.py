"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import json
import os
import random
import shlex
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from langchain_judges.cli.audit_review import read_key
from langchain_judges.cli.flags import RowFlags, unfolded
from langchain_judges.cli.messages import error_console, refusals_as_exits, say
from langchain_judges.cli.rows import (
    RowFile,
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    known_rows,
)
from langchain_judges.errors import InputError, OptionError
from langchain_judges.escaping import clean
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.runs.rows import content_key
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import decision

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

SURE, UNJUDGED = "sure", "not judged"
UNSURE = 0.75
"""A verdict of less confidence is doubtful."""
FIRST = 50
"""Rows to label first, where nothing says how many would settle the question."""


def is_labelled(row: Mapping[str, object]) -> bool:
    """Return whether people said anything of a row."""
    names = ("label", "labels", "human_votes")
    return any(row.get(name) not in (None, "", {}, []) for name in names)


def doubt_of(verdict: Mapping[str, Any]) -> str:
    """Return why a verdict is doubtful; `SURE` where it is not."""
    confidence = verdict.get("confidence")
    if decision(verdict) is None:
        return UNJUDGED
    if verdict.get("flipped"):
        return "flipped"
    return "unsure" if confidence is not None and confidence < UNSURE else SURE


def doubts(
    rows: Sequence[Mapping[str, object]], runs: Sequence[Sequence[Mapping[str, object]]]
) -> list[str]:
    """Return why the verdicts on each row are doubtful, by all judges."""
    from langchain_judges.report.rows import join

    answers: list[set[object]] = [set() for _ in rows]
    found: list[set[str]] = [set() for _ in rows]
    for run in runs:
        for judgment in join(run, rows).rows:
            answers[judgment.place].add(judgment.answer)
            found[judgment.place].add(doubt_of(judgment.verdict))
    return [_of_all(own, kinds) for own, kinds in zip(answers, found, strict=True)]


def _of_all(answers: set[object], kinds: set[str]) -> str:
    if None in answers or not answers:
        return UNJUDGED
    return "judges disagree" if len(answers) > 1 else min(kinds - {SURE}, default=SURE)


def chosen(kinds: Sequence[str], number: int) -> list[int]:
    """Return the places of the rows to label: half of them doubtful, and doubtful ones first.

    Within the doubtful rows and within the others chance decides, so that the labels of either
    part stand for all of it.

    Args:
        kinds: Of each row its doubt; empty: it has a label, or is none to label.
        number: How many rows.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    doubtful = [place for place, kind in enumerate(kinds) if kind not in ("", SURE)]
    others = [place for place, kind in enumerate(kinds) if kind == SURE]
    most = max(number // 2, number - len(others))
    first = draw.sample(doubtful, min(most, len(doubtful)))
    return first + draw.sample(others, min(number - len(first), len(others)))


def write_first(beside: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as a file that `label` opens, and say what to do with it."""
    path = beside.with_suffix(".label.jsonl")
    lines = [json.dumps(row, default=str) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    say(
        f"Label first: {counted(len(lines), 'row')} in {path}, doubtful ones ahead: "
        f"langchain-judges label {shlex.quote(str(path))} -o labels.jsonl --budget {len(lines)}"
    )


def write_first_of(
    rows: Sequence[Mapping[str, object]],
    runs: Sequence[Sequence[Mapping[str, object]]],
    number: int,
    beside: Path,
) -> None:
    """Write the rows without a label to label first, and say so.

    Args:
        rows: The rows of a report.
        runs: The verdicts on them.
        number: How many labels would settle it; 0 if that is not known.
        beside: A file of the report.
    """
    pairs = zip(rows, doubts(rows, runs), strict=True)
    kinds = ["" if is_labelled(row) else doubt for row, doubt in pairs]
    if places := chosen(kinds, number or FIRST):
        write_first(beside, ({**rows[i], "doubt": kinds[i]} for i in places))


@dataclass
class FirstToLabel:
    """Finds the rows to label first while a run goes on, a few bytes for each row.

    Args:
        rows: The rows of the run.
        beside: What the run writes; None: the rows are written nowhere.
    """

    rows: RowFile
    beside: Path | None
    kinds: list[str] = field(default_factory=list)
    """The kinds of doubt."""
    codes: array[int] = field(default_factory=lambda: array("B"))
    """The kind of each row."""

    def add(self, result: Mapping[str, Any]) -> None:
        """Note a result; results come in the order of the rows."""
        verdict = result.get("verdict") or {}
        failures = {failure["reason"] for failure in verdict.get("failures") or []}
        nothing = result.get("label") is not None or failures & {"invalid_input", "over_budget"}
        kind = "" if nothing else doubt_of(verdict)
        if kind not in self.kinds:
            self.kinds.append(kind)
        self.codes.append(self.kinds.index(kind))

    def tell(self, summary: Summary) -> None:
        """Write the rows if a run of pairs settles nothing, or its labels are doubtful."""
        from langchain_judges.runs.remote import url_of
        from langchain_judges.runs.summary import is_open

        kinds = [self.kinds[code] for code in self.codes]
        wanted = any(kind not in ("", SURE) for kind in kinds)
        if not (is_open(summary) or (summary.labels and wanted)):
            return
        if self.beside is None or url_of(self.beside) or not (places := chosen(kinds, FIRST)):
            return
        found = self.rows.at(set(places))
        write_first(
            self.beside, ({**found[i], "doubt": kinds[i]} for i in places if i in found)
        )


class LabelFile:
    """Labelled rows in a JSONL file, which grows by each answer."""

    def __init__(self, path: Path, rows: Sequence[Mapping[str, object]]) -> None:
        """Read what was labelled before.

        Raises:
            InputError: The file is damaged.
        """
        self._path = path
        self._table = rows
        self._places = {_mark(row): place for place, row in enumerate(rows)}
        self.rows: list[dict[str, object]] = []
        if not path.exists():
            return
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                row = json.loads(line)
                self.rows.append({**row, "label": row["label"]})
            except (ValueError, TypeError, KeyError) as exc:
                raise InputError(f"{path}:{number} is no labelled row") from exc

    def places(self) -> set[int]:
        """Return the places of the rows that have a label, by the table or by this file."""
        own = {place for place, row in enumerate(self._table) if is_labelled(row)}
        return own | {
            self._places[mark] for mark in map(_mark, self.rows) if mark in self._places
        }

    def add(self, row: Mapping[str, object], label: str | int) -> None:
        """Keep an answer."""
        self.rows.append({**row, "label": label})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(self.rows[-1]))

    def undo(self) -> None:
        """Take the last answer back."""
        self.rows.pop()
        new = self._path.with_name(f".{self._path.name}.tmp")
        new.write_text("".join(map(_line, self.rows)), encoding="utf-8")
        os.replace(new, self._path)


def _line(row: Mapping[str, object]) -> str:
    return json.dumps(row, ensure_ascii=True, default=str) + "\n"


def _mark(row: Mapping[str, object]) -> str:
    return json.dumps([row.get("id"), content_key(row)], sort_keys=True)


@dataclass
class LabelDesk:
    """Where rows meet a person."""

    console: Console
    key: Callable[[], str]
    digits: str
    """Labels of single texts."""

    def go_through(
        self, rows: Sequence[Mapping[str, object]], places: Sequence[int], answers: LabelFile
    ) -> int:
        """Show one row after the other and return how many were labelled."""
        number = 0
        labelled: list[int] = []
        while number < len(places):
            row = rows[places[number]]
            if self.console.is_terminal:
                self.console.clear()
            first = self._first(places[number])
            screen = self._screen(row, first, f"{number + 1} of {len(places)}")
            # Consoles of commands cut lines that are too long; a text is read to its end.
            self.console.print(screen, soft_wrap=False)
            try:
                pressed = self.key().casefold()
            except (KeyboardInterrupt, EOFError):
                break
            if pressed == "q":
                break
            if pressed == "s":
                number += 1
            elif pressed == "u" and labelled:
                answers.undo()
                number = labelled.pop()
            elif (label := self._label(row, first, pressed)) is not None:
                answers.add(row, label)
                labelled.append(number)
                number += 1
        return len(labelled)

    def _first(self, place: int) -> str:
        """Return which text stands first, by chance and the same on every run."""
        return random.Random(f"0:{place}").choice("AB")  # noqa: S311 - no secret

    def _label(self, row: Mapping[str, object], first: str, pressed: str) -> str | int | None:
        if kind_of_row(row) == "item":
            return int(pressed) if pressed in self.digits else None
        second = "B" if first == "A" else "A"
        return {"1": first, "2": second, "t": "tie"}.get(pressed)

    def _screen(self, row: Mapping[str, object], first: str, place: str) -> RenderableType:
        parts: list[RenderableType] = [_panel("task", row.get("input"))]
        for name in ("reference", "expected", "source"):
            if row.get(name):
                parts.append(_panel(name, row[name]))
        if kind_of_row(row) == "pair":
            order = ("output_a", "output_b") if first == "A" else ("output_b", "output_a")
            texts = [_panel(str(number), row[name]) for number, name in enumerate(order, 1)]
            wide = self.console.width >= 100
            parts += [Columns(texts, equal=True, expand=True)] if wide else texts
            keys = "1 or 2 better · t tie"
        else:
            parts.append(_panel("text", row.get("output")))
            keys = " ".join(self.digits) + " label"
        parts.append(Text(f"{place} · {keys} · s skip · u undo · q stop", style="dim"))
        return Group(*parts)


def _panel(title: str, text: object) -> Panel:
    from langchain_judges.report.evidence import shown

    return Panel(Text(clean(shown(text or ""))), title=Text(title), title_align="left")


@dataclass(frozen=True)
class LabellingFlags:
    """Which rows are shown, how many, and what a person may answer."""

    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Results of a judge: doubtful rows come first; repeat it for several judges.",
        ),
    ] = None
    budget: Annotated[int, typer.Option(min=1, help="How many rows to label now.")] = 20
    labels: Annotated[
        str, typer.Option(help="Labels of single texts, one digit each, such as 01 or 12345.")
    ] = "01"


@unfolded
def label(
    data: Annotated[str, typer.Argument(help="Rows to label: a table or a known set.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Labelled rows, JSONL; added to if it is there.")
    ],
    labelling: LabellingFlags,
    table: RowFlags,
) -> None:
    """Label rows at a terminal; each answer is in the file before the next row is shown.

    The texts of a pair stand in either place by chance, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts a digit is the label), s skips,
    u takes the last answer back, q stops. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.
    """
    from langchain_judges.report.rows import read_verdicts

    labels = labelling.labels
    with refusals_as_exits():
        if not labels.isdigit() or len(set(labels)) != len(labels):
            raise OptionError(f"--labels must be different digits, got {labels!r}")
        paths = labelling.verdicts or []
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        runs = [run for path in paths for run in read_verdicts(path).values()]
        file = known_rows(Path(data), _check_shown, table, runs)
        rows = list(checked_rows(file, "row"))
        desk = LabelDesk(error_console(), read_key, labels)
        answers = LabelFile(out, rows)
        places = _places(rows, doubts(rows, runs), answers.places(), labelling.budget)
    added = desk.go_through(rows, places, answers)
    counts = Counter(str(row["label"]) for row in answers.rows)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    say(f"{added} labelled now, {len(answers.rows)} in {out}: {shares}.")


def _check_shown(row: object) -> None:
    check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        raise InputError(
            "there is no `output`, or `output_a` and `output_b`, to label; the fields are "
            f"{', '.join(map(repr, fields))}; name the column, as in --column output=COLUMN"
        )


def _places(
    rows: Sequence[Mapping[str, object]], kinds: Sequence[str], labelled: set[int], budget: int
) -> list[int]:
    """Return the rows to show: those of a run's file of rows to label first in their order."""
    if all(row.get("doubt") for row in rows):
        return [place for place in range(len(rows)) if place not in labelled][:budget]
    open_kinds = ["" if place in labelled else kind for place, kind in enumerate(kinds)]
    return chosen(open_kinds, budget)
