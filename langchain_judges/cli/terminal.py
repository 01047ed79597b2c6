"""A desk's questions at a terminal: one a screen, answered by keys."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from langchain_judges.escaping import clean
from langchain_judges.report.labelling import sides
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.runs.summary import counted

if TYPE_CHECKING:
    from langchain_judges.viewer.desks import Desk

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]


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
        by: Who answers.
    """

    console: Console
    key: Callable[[], str]
    desk: Desk
    by: str = ""

    def go_through(
        self, asked: Iterable[tuple[int, str]], answered: Iterable[tuple[int, str]] = ()
    ) -> None:
        """Show one question after the other; those that were skipped come last.

        Args:
            asked: Places and names of the questions to answer.
            answered: Of those whose answers are there and may be taken back.
        """
        left, done, whole, wrong = deque(asked), list(answered), False, ""
        while left:
            place, name = left[0]
            self._show(place, name, f"{len(done) + 1} of {len(done) + len(left)}{wrong}", whole)
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
                self.desk.undo(self.by)
            elif is_answer:
                done.append(left.popleft())
            whole = key == "v" and not whole
            is_known = is_answer or key in "nsu=mv"
            wrong = "" if is_known else f" · {clean(key)!r} is not one of the keys"

    def _keys(self, place: int, name: str) -> dict[str, str]:
        [keys] = [each["keys"] for each in self.desk.questions(place) if each["name"] == name]
        return dict(keys)

    def _show(self, place: int, name: str, position: str, whole: bool) -> None:
        if self.console.is_terminal:
            self.console.clear()
        # Consoles of commands cut lines that are too long; a text is read to its end.
        self.console.print(self._screen(place, position, whole), soft_wrap=False)
        named = self._keys(place, name).items()
        single = [(key, words) for key, words in named if len(key) == 1]
        keys = [f"[{key}]" if key == words else f"[{key}] {words}" for key, words in single]
        typed = [words for key, words in named if len(key) > 1]
        keys += [f"[=] type one of {', '.join(typed)}"] if typed else []
        keys += [_REVIEW] if self._is_review else []
        what = f"{name}: " if name else ""
        self.console.print(Text(f"{what}{' · '.join([*keys, _ALWAYS])}", style="dim"))

    def _screen(self, place: int, position: str, whole: bool) -> RenderableType:
        """Render a row: its texts without their names, and what was said of it."""
        row, note = self.desk.found.rows[place], self.desk.noted(place, self.by)
        most = _LINES if self._is_review and not whole else None
        parts: list[RenderableType] = [_section("task", row.get("input"), most)]
        parts += [_section(name, row[name], most) for name in _BETWEEN if row.get(name)]
        if kind_of_row(row) == "pair":
            texts = [row[f"output_{side.lower()}"] for side in sides(row)]
            panels = [_section(str(n), text, most) for n, text in enumerate(texts, 1)]
            halves = Table.grid(Column(ratio=1), Column(ratio=1), expand=True)
            halves.add_row(*panels)
            parts += [halves] if self.console.width >= 100 else panels
        else:
            parts.append(_section("text", row.get("output"), most))
        said = {"judge and check": row.get("proposed"), "note": note}
        parts += [_section(name, text, most) for name, text in said.items() if text]
        own = f"{position}: {clean(row['id'])}" if self._is_review else position
        return Group(*parts, Text(own, style="dim"))

    @property
    def _is_review(self) -> bool:
        from langchain_judges.viewer.desks import ProposalDesk

        return isinstance(self.desk, ProposalDesk)

    def _press(self, place: int, name: str, key: str) -> bool:
        """Do what a key says; return whether that answers the question."""
        mode = self._mode() if key == "m" and self._is_review else ""
        if key == "n":
            self.desk.note(place, self.by, self.console.input("note: ").strip())
        key, keys = "a" if mode else key, self._keys(place, name)
        if key == "=":
            typed = self.console.input("label: ").strip()
            key = next((k for k, words in keys.items() if words == typed), key)
        if is_answer := key in keys:
            self.desk.say(place, self.by, name, key, mode)
        return is_answer

    def _mode(self) -> str:
        """The failure mode that a person chooses by its number or names."""
        names = self.desk.modes
        for number, name in enumerate(names, 1):
            self.console.print(Text(f"  {number}  {clean(name)}"))
        said = self.console.input("number, or a name of your own: ").strip()
        is_number = said.isdecimal() and 1 <= int(said) <= len(names)
        return names[int(said) - 1] if is_number else said


# Fields of a row between the task and what was written, and lines of a text that are shown.
_BETWEEN = ("reference", "expected", "source")
_LINES = 12


def _section(title: str, text: object, most: int | None) -> Panel:
    from langchain_judges.report.evidence import readable_cell

    lines = clean(readable_cell(text or "")).splitlines()
    cut = len(lines) - most if most else 0
    lines = [*lines[:most], *([f"… {counted(cut, 'more line')}"] if cut > 0 else [])]
    return Panel(Text("\n".join(lines)), title=Text(title), title_align="left")
