"""`langchain-judges label`: people label the rows that tell most, at a terminal."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from langchain_judges.cli.audit_review import read_key
from langchain_judges.cli.doubts import doubts, points
from langchain_judges.cli.flags import RowFlags, unfolded
from langchain_judges.cli.messages import error_console, refusals_as_exits
from langchain_judges.cli.rows import (
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

LEAST = 2
"""Labels, and rows without, of each kind of row of which a rate is estimated."""


def estimate(
    scores: Sequence[float | None],
    labels: Sequence[float | None],
    strata: Sequence[tuple[str, str]],
    *,
    pairs: bool,
) -> str:
    """Say what people would answer on all rows, from the labels so far."""
    from langchain_judges.metrics import stratified_ppi_mean

    there = [i for i in range(len(labels)) if scores[i] is not None]
    indices = [i for i in there if labels[i] is not None]
    rest = [i for i in there if labels[i] is None]
    if not rest:
        return "Every row that was judged has a label: there is none left to estimate."
    kinds = _joined_strata(strata, indices, rest)
    if thin := _thin(kinds, indices, rest):
        return (
            "Too few labels to correct the judge's rate: two labels, and two rows without, are "
            f"needed of the rows that are {', '.join(sorted({doubt for _, doubt in thin}))}."
        )
    names = {kinds[i] for i in rest}
    both = [i for i in indices if kinds[i] in names]
    result = stratified_ppi_mean(
        [labels[i] for i in both],
        [scores[i] for i in both],
        [kinds[i] for i in both],
        [scores[i] for i in rest],
        [kinds[i] for i in rest],
    )
    if result.interval is None:
        return f"The judge's rate cannot be corrected: {result.reason or result.no_interval}."
    # A normal interval of few labels may leave what labels there are.
    known = [value for value in (*scores, *labels) if value is not None]
    least, most = (0.0, 1.0) if pairs else (min(known), max(known))
    value, low, high = (min(max(each, least), most) for each in (result, *result.interval))
    if not pairs:
        return (
            "On the rows without a label people's mean label would be "
            f"{value:.2f} ({low:.2f} to {high:.2f})."
        )
    return (
        f"On the rows without a label people would prefer A {100 * value:.1f} % "
        f"({100 * low:.1f} to {100 * high:.1f}) of the time."
    )


def _joined_strata(
    strata: Sequence[tuple[str, str]], labelled: Sequence[int], rest: Sequence[int]
) -> list[tuple[str, str]]:
    """Return strata in which categories with too few labels are one, for each doubt apart.

    Labels are chosen by doubt, so that rows of different doubt are no sample of each other.
    """
    thin = _thin(strata, labelled, rest)
    kinds = [("", kind[1]) if kind in thin else kind for kind in strata]
    # What is still too thin takes in all categories of its doubt.
    doubts = {doubt for _, doubt in _thin(kinds, labelled, rest)}
    return [("", kind[1]) if kind[1] in doubts else kind for kind in kinds]


def _thin(
    strata: Sequence[tuple[str, str]], labelled: Sequence[int], rest: Sequence[int]
) -> set[tuple[str, str]]:
    """Return the strata of the rest that have fewer than two labels or two other rows."""
    counts = [Counter(strata[i] for i in part) for part in (labelled, rest)]
    return {kind for kind in counts[1] if min(count[kind] for count in counts) < LEAST}


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

    def points(self) -> list[float | None]:
        """Return the number of each row's label, by the table or by this file."""
        numbers = [points(row.get("label")) for row in self._table]
        for row in self.rows:
            place = self._places.get(_mark(row))
            if place is not None:
                numbers[place] = points(row["label"])
        return numbers

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
            help="Results of a judge: doubtful rows come first, and the labels correct its "
            "win rate; repeat it for several judges.",
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

    errors, labels = error_console(), labelling.labels
    with refusals_as_exits(errors):
        if not labels.isdigit() or len(set(labels)) != len(labels):
            raise OptionError(f"--labels must be different digits, got {labels!r}")
        paths = labelling.verdicts or []
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        runs = [run for path in paths for run in read_verdicts(path).values()]
        file = known_rows(Path(data), _check_shown, table, runs)
        rows = list(checked_rows(file, errors, "row"))
        desk = LabelDesk(errors, read_key, labels)
        answers = LabelFile(out, rows)
        scores, strata = doubts(rows, runs)
        places = _places(rows, scores, answers.points(), strata, labelling.budget)
    added = desk.go_through(rows, places, answers)
    counts = Counter(str(row["label"]) for row in answers.rows)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    errors.print(f"{added} labelled now, {len(answers.rows)} in {out}: {shares}.", markup=False)
    if runs:
        pairs = kind_of_row(rows[0]) == "pair"
        text = estimate(scores, answers.points(), strata, pairs=pairs)
        errors.print(text, markup=False, highlight=False)


def _check_shown(row: object) -> None:
    check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        raise InputError(
            "there is no `output`, or `output_a` and `output_b`, to label; the fields are "
            f"{', '.join(map(repr, fields))}; name the column, as in --column output=COLUMN"
        )


def _places(
    rows: Sequence[Mapping[str, object]],
    scores: Sequence[float | None],
    labels: Sequence[float | None],
    strata: Sequence[tuple[str, str]],
    budget: int,
) -> list[int]:
    """Return the rows to show: those of a run's file of rows to label first in their order."""
    from langchain_judges.metrics import label_next

    if all(row.get("doubt") for row in rows):
        return [place for place, label in enumerate(labels) if label is None][:budget]
    return label_next(scores, labels, strata, budget)
