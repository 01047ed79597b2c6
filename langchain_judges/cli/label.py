"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import os
import select
import shlex
import sys
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar, cast

import typer
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from langchain_judges.cli.flags import Labels, Paths, RowFlags, by_criterion, unfolded
from langchain_judges.cli.messages import error_console, refusals_as_exits, say
from langchain_judges.cli.row_files import (
    RowFile,
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    known_rows,
)
from langchain_judges.errors import InputError
from langchain_judges.escaping import clean
from langchain_judges.report.labelling import (
    FIRST,
    SURE,
    Answer,
    LabelFile,
    Question,
    Questionnaire,
    chosen,
    doubt_of,
    doubts,
    line_of,
    mark_of,
    sides,
)
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.runs.summary import counted

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

Shown = TypeVar("Shown")
# Rows to label now, unless --max-rows says how many.
_AT_ONCE = 20


def write_first(
    at: Callable[[set[int]], Mapping[int, Mapping[str, object]]],
    kinds: Sequence[str],
    number: int,
    beside: Path,
) -> None:
    """Write the rows to label first as a file that `label` opens, and say what to do with it.

    Args:
        at: Returns the rows at some places; some may not be there.
        kinds: Of each row its doubt.
        number: How many rows.
        beside: A file of the run or the report.
    """
    if not (places := chosen(kinds, number)):
        return
    rows, path = at(set(places)), beside.with_suffix(".label.jsonl")
    first = [{**rows[place], "doubt": kinds[place]} for place in places if place in rows]
    path.write_text("".join(map(line_of, first)), encoding="utf-8")
    say(
        f"Label first: {counted(len(first), 'row')} in {path}, doubtful ones ahead: "
        f"langchain-judges label {shlex.quote(str(path))} -o labels.jsonl "
        f"--max-rows {len(first)}"
    )


class FirstToLabel:
    """Finds the rows to label first while a run goes on, a few bytes for each row."""

    def __init__(self, rows: RowFile, beside: Path | None) -> None:
        """Know no row's doubt yet.

        Args:
            rows: The rows of the run.
            beside: What the run writes; None: the rows are written nowhere.
        """
        self.rows, self.beside = rows, beside
        self.kinds: list[str] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """Note a result; results come in the order of the rows."""
        verdict = result.get("verdict") or {}
        failures = {failure["reason"] for failure in verdict.get("failures") or []}
        nothing = result.get("label") is not None or failures & {"invalid_input", "over_budget"}
        self.kinds.append("" if nothing else doubt_of(verdict))

    def tell(self, summary: Summary) -> None:
        """Write the rows if a run of pairs settles nothing, or its labels are doubtful."""
        from langchain_judges.runs.summary import is_open

        wanted = summary.labels and {*self.kinds} - {"", SURE}
        if (is_open(summary) or wanted) and self.beside:
            write_first(self.rows.at, self.kinds, FIRST, self.beside)


def read_key() -> str:
    """Wait for a key and return it; from a pipe, return the next character that is no space.

    Raises:
        EOFError: There is no more input.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    while True:
        key = _terminal_key() if sys.stdin.isatty() else sys.stdin.read(1)
        if key in {"", "\x04"}:
            raise EOFError
        if key == "\x03":
            raise KeyboardInterrupt
        if not key.isspace():
            return key


def _terminal_key() -> str:
    if termios is None:
        import msvcrt

        return str(msvcrt.getwch())
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        # At once, for otherwise what was typed ahead is thrown away.
        tty.setcbreak(descriptor, termios.TCSANOW)
        key = os.read(descriptor, 1).decode("utf-8", "replace")
        # An arrow key sends several characters at once.
        while key == "\x1b" and select.select([descriptor], [], [], 0.01)[0]:
            if not os.read(descriptor, 16):
                break
        return key
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


class Desk(ABC, Generic[Shown]):
    """Screen of questions: a console and keys."""

    def __init__(self, console: Console, key: Callable[[], str]) -> None:
        """Open the desk, with nothing to answer yet."""
        self.console, self.key = console, key

    @abstractmethod
    def screen(self, question: Shown, place: str) -> RenderableType:
        """Text of a question, with its position among the others."""

    @abstractmethod
    def answer(self, question: Shown, key: str) -> Answer | None:
        """Answer for a key; None if it is not one."""

    @abstractmethod
    def keep(self, question: Shown, answer: Answer) -> None:
        """Write an answer down."""

    @abstractmethod
    def take_back(self, question: Shown) -> None:
        """Take the answer to a question back."""

    def go_through(self, questions: Iterable[Shown], answered: Iterable[Shown] = ()) -> int:
        """Show one question after the other; those that were skipped come last.

        Args:
            questions: What is to be answered.
            answered: Whose answers are there and may be taken back, in their order.

        Returns:
            How many have no answer, for the person stopped before.
        """
        left, done = deque(questions), list(answered)
        while left:
            if self.console.is_terminal:
                self.console.clear()
            place = f"{len(done) + 1} of {len(done) + len(left)}"
            # Consoles of commands cut lines that are too long; a text is read to its end.
            self.console.print(self.screen(left[0], place), soft_wrap=False)
            try:
                key = self.key().casefold()
                answer = self.answer(left[0], key)
            except (KeyboardInterrupt, EOFError):
                break
            if key == "q":
                break
            if key == "s":
                left.rotate(-1)
            elif key == "u" and done:
                left.appendleft(done.pop())
                self.take_back(left[0])
            elif answer is not None:
                self.keep(left[0], answer)
                done.append(left.popleft())
        return len(left)


class LabelDesk(Desk["Asked"]):
    """Screen on which a person labels rows."""

    def __init__(
        self, console: Console, key: Callable[[], str], file: LabelFile, name: str
    ) -> None:
        """Open the desk for a person."""
        super().__init__(console, key)
        self.file, self.name = file, name

    def answer(self, question: Asked, key: str) -> Answer | None:
        """Return the label that a key gives, None where it cannot be said."""
        choices = question.question.choices
        if key == "x":
            return {"label": None}
        if key == "n":
            note = self.console.input("note: ").strip()
            self.file.keep(question.row, {**self._said(question), "note": note})
        return {"label": choices[key]} if key in choices else None

    def keep(self, question: Asked, answer: Answer) -> None:
        """Write the row with its label."""
        self.file.say(question.row, self.name, question.question.name, answer["label"])

    def take_back(self, question: Asked) -> None:
        """Write the row without it."""
        self.file.take_back(question.row, self.name, question.question.name)

    def _said(self, question: Asked) -> Answer:
        return self.file.said(question.row, self.name)

    def screen(self, question: Asked, place: str) -> RenderableType:
        """Return the task and the text, or the texts without their names."""
        row, asked = question
        names = ("reference", "expected", "source")
        parts: list[RenderableType] = [_panel("task", row.get("input"))]
        parts += [_panel(name, row[name]) for name in names if row.get(name)]
        if kind_of_row(row) == "pair":
            texts = [row[f"output_{side.lower()}"] for side in sides(row)]
            panels = [_panel(str(number), text) for number, text in enumerate(texts, 1)]
            wide = self.console.width >= 100
            parts += [Columns(panels, equal=True, expand=True)] if wide else panels
            keys = "1 or 2 better · t tie"
        else:
            parts.append(_panel("text", row.get("output")))
            named = (
                key if key == str(label) else f"{key} {label}"
                for key, label in asked.choices.items()
            )
            keys = " · ".join(named)
        if note := self._said(question).get("note"):
            parts.append(_panel("note", note))
        what = f"{asked.name}: " if asked.name else ""
        keys += " · x cannot say · n note · s skip · u undo · q stop"
        parts.append(Text(f"{place} · {what}{keys}", style="dim"))
        return Group(*parts)


class Asked(NamedTuple):
    """A question about a row."""

    row: Mapping[str, Any]
    question: Question


def _panel(title: str, text: object) -> Panel:
    from langchain_judges.report.evidence import shown

    return Panel(Text(clean(shown(text or ""))), title=Text(title), title_align="left")


@dataclass(frozen=True)
class LabelFlags:
    """Choice of rows, and the answers that a person may give.

    Attributes:
        verdicts: Results of a judge: doubtful rows come first; repeatable.
        labels: Labels of single texts: digits such as 12345, or words, as in rude,polite;
            default 01. With a criterion, as in tone=rude,polite or tone=, rows are labelled by
            criterion; repeatable.
        name: Your name: the answers of several people are kept apart.
    """

    verdicts: Paths = None
    labels: Labels = None
    name: str = ""


@unfolded
def label(
    data: Annotated[str, typer.Argument(help="Rows to label: a table or a known set.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Labelled rows, JSONL; added to if it is there.")
    ],
    labelling: LabelFlags,
    table: RowFlags,
) -> None:
    """Label rows at a terminal; each answer is in the file before the next row is shown.

    The texts of a pair are in random positions, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts each label has its key), x says that
    it cannot be said, n notes why, s skips, u takes the last answer back, q stops. Criteria are
    asked one after the other. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.

    Examples:
        langchain-judges label rows.jsonl -o labels.jsonl --max-rows 50
        langchain-judges label rows.csv --labels rude,polite -o labels.jsonl
    """
    from langchain_judges.report.matched_rows import read_verdicts

    paths, by = labelling.verdicts or [], labelling.name
    with refusals_as_exits():
        whole_labels, criteria = by_criterion(labelling.labels)
        asked = Questionnaire.read(whole_labels or "01", criteria)
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        runs = [run for path in paths for run in read_verdicts(path).values()]
        whole = replace(table, max_rows=None)
        rows = list(checked_rows(known_rows(Path(data), _check_shown, whole, runs), "row"))
        with closing(LabelFile(out)) as file:
            most = table.max_rows or _AT_ONCE
            places = _places(file, rows, doubts(rows, runs), asked, labelling.name, most)
            desk = LabelDesk(error_console(), read_key, file, by)
            questions = [
                Asked(row, each)
                for row in (rows[place] for place in places)
                for each in asked.of(row)
                if each.name not in file.answered(row, by)
            ]
            desk.go_through(questions)
            now = {
                mark_of(row) for row, each in questions if each.name in file.answered(row, by)
            }
            _tell(file, len(now))


def _places(
    file: LabelFile,
    rows: Sequence[Mapping[str, Any]],
    kinds: Sequence[str],
    asked: Questionnaire,
    by: str,
    most: int,
) -> list[int]:
    """Return the places of the rows that a person labels now."""
    kinds = [
        "" if {each.name for each in asked.of(row)} <= {*file.answered(row, by)} else kind
        for row, kind in zip(rows, kinds, strict=True)
    ]
    if all(row.get("doubt") for row in rows):  # written by a run, in the order to label them
        places = [place for place, kind in enumerate(kinds) if kind]
        return places[:most]
    return chosen(kinds, most)


def _tell(file: LabelFile, now: int) -> None:
    """Print how many rows were labelled, and how often each label was given."""
    counts = Counter[str]()
    for row in file.answers.values():
        by_name = {"": row.get("label"), **(row.get("labels") or {})}
        counts.update(f"{n} {v}:".strip() for n, v in by_name.items() if v is not None)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    say(f"{now} labelled now, {len(file.answers)} in {file.path}: {shares or 'no label'}.")


def _check_shown(row: object) -> None:
    check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        raise InputError(
            "there is no `output`, or `output_a` and `output_b`, to label; the fields are "
            f"{', '.join(map(repr, fields))}; name the column, as in --column output=COLUMN"
        )
