"""Labels by people: the file of answers, and the screen."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from langchain_judges.cli.label_statistics import points
from langchain_judges.errors import InputError
from langchain_judges.report.evidence import shown
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.rows.printable import clean
from langchain_judges.runs.result_row import content_key


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
    seed: int = 0

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
        return random.Random(f"{self.seed}:{place}").choice("AB")  # noqa: S311 - no secret

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
    return Panel(Text(clean(shown(text or ""))), title=Text(title), title_align="left")
