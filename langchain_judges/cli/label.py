"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import os
import select
import shlex
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

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
    LabelFile,
    Questionnaire,
    chosen,
    doubt_of,
    doubts,
    line_of,
    sides,
)
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.runs.summary import counted
from langchain_judges.viewer.desks import Desk, LabelDesk, ProposalDesk
from langchain_judges.viewer.items import Collection

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

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
        f"Worth labelling: {counted(len(first), 'row')} in {path}, doubtful ones first: "
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


Screen = Callable[[int, str, str, bool], RenderableType]
# Keys of every screen; those of a review.
_ALWAYS = "[n] note · [s] skip · [u] undo · [q] stop; the same command resumes"
_REVIEW = "[m] accept, and name the failure mode · [v] view all of it"


@dataclass
class Terminal:
    """A desk's questions, one a screen, answered by keys.

    Attributes:
        console: Where they are shown.
        key: Waits for a key.
        desk: What is asked, and where answers go.
        screen: Renders what a question is about: its place in the desk, its position among the
            questions, the note taken, and whether long texts are shown in full.
        by: Who answers.
    """

    console: Console
    key: Callable[[], str]
    desk: Desk
    screen: Screen
    by: str = ""

    def go_through(
        self, asked: Iterable[tuple[int, str]], answered: Iterable[tuple[int, str]] = ()
    ) -> None:
        """Show one question after the other; those that were skipped come last.

        Args:
            asked: Places and names of the questions to answer.
            answered: Of those whose answers are there and may be taken back.
        """
        left, done, whole = deque(asked), list(answered), False
        while left:
            place, name = left[0]
            self._show(place, name, f"{len(done) + 1} of {len(done) + len(left)}", whole)
            try:
                key = self.key().casefold()
                is_answer = self._press(place, name, key)
            except (KeyboardInterrupt, EOFError):
                break
            if key == "q":
                break
            if key == "s":
                left.rotate(-1)
            elif key == "u" and done:
                left.appendleft(done.pop())
                self.desk.take_back(left[0][0], self.by, left[0][1])
            elif is_answer:
                done.append(left.popleft())
            whole = key == "v" and not whole

    def _keys(self, place: int, name: str) -> dict[str, str]:
        [keys] = [each["keys"] for each in self.desk.questions(place) if each["name"] == name]
        return dict(keys)

    def _show(self, place: int, name: str, position: str, whole: bool) -> None:
        if self.console.is_terminal:
            self.console.clear()
        note = self.desk.noted(place, self.by)
        # Consoles of commands cut lines that are too long; a text is read to its end.
        self.console.print(self.screen(place, position, note, whole), soft_wrap=False)
        named = self._keys(place, name).items()
        keys = [f"[{key}]" if key == words else f"[{key}] {words}" for key, words in named]
        keys += [_REVIEW] if self._is_review else []
        what = f"{name}: " if name else ""
        self.console.print(Text(f"{what}{' · '.join([*keys, _ALWAYS])}", style="dim"))

    @property
    def _is_review(self) -> bool:
        return isinstance(self.desk, ProposalDesk)

    def _press(self, place: int, name: str, key: str) -> bool:
        """Do what a key says; return whether that answers the question."""
        mode = self._mode() if key == "m" and self._is_review else ""
        if key == "n":
            self.desk.note(place, self.by, self.console.input("note: ").strip())
        key = "a" if mode else key
        if is_answer := key in self._keys(place, name):
            self.desk.say(place, self.by, name, key, mode)
        return is_answer

    def _mode(self) -> str:
        """The failure mode that a person chooses by its number or names."""
        from langchain_judges.report.terminal import choices

        names = self.desk.modes
        self.console.print(choices(names))
        said = self.console.input("number, or a name of your own: ").strip()
        is_number = said.isdecimal() and 1 <= int(said) <= len(names)
        return names[int(said) - 1] if is_number else said


def row_screen(
    row: Mapping[str, Any], position: str, note: str, *, wide: bool
) -> RenderableType:
    """Render the task and the text of a row, or the texts without their names.

    Args:
        row: The row.
        position: Of the question among the others.
        note: What was noted of it.
        wide: Whether two texts have room beside each other.
    """
    names = ("reference", "expected", "source")
    parts: list[RenderableType] = [_panel("task", row.get("input"))]
    parts += [_panel(name, row[name]) for name in names if row.get(name)]
    if kind_of_row(row) == "pair":
        texts = [row[f"output_{side.lower()}"] for side in sides(row)]
        panels = [_panel(str(number), text) for number, text in enumerate(texts, 1)]
        parts += [Columns(panels, equal=True, expand=True)] if wide else panels
    else:
        parts.append(_panel("text", row.get("output")))
    parts += [_panel("note", note)] if note else []
    return Group(*parts, Text(position, style="dim"))


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
    from langchain_judges.report.joined_rows import read_verdicts

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
            questions = [
                (place, each.name)
                for place in places
                for each in asked.of(rows[place])
                if each.name not in file.answered(rows[place], by)
            ]
            console = error_console()
            wide = console.width >= 100
            Terminal(
                console,
                read_key,
                LabelDesk(Collection(rows), file, asked),
                lambda place, at, note, _: row_screen(rows[place], at, note, wide=wide),
                by,
            ).go_through(questions)
            now = {n for n, name in questions if name in file.answered(rows[n], by)}
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
