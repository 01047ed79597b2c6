"""Where a person answers one question after the other at the terminal, by single keys."""

from __future__ import annotations

import json
import os
import select
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Console, RenderableType

from langchain_judges.errors import InputError
from langchain_judges.rows.files import whole_file

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

Question = TypeVar("Question")
Answer = dict[str, Any]


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


def line_of(row: Mapping[str, object]) -> str:
    """Return a row as a line of JSONL."""
    return json.dumps(row, default=str) + "\n"


class AnswerFile:
    """Answers in a JSONL file; each is there before the next question is shown."""

    def __init__(self, path: Path, field: str) -> None:
        """Read what was answered before.

        Args:
            path: The file.
            field: What every answer has.

        Raises:
            InputError: The file is damaged.
        """
        self.path = path
        self.answers: list[Answer] = []
        for number, line in enumerate(self._text().splitlines(), 1):
            try:
                answer = json.loads(line)
                self.answers.append({**answer, field: answer[field]})
            except (ValueError, TypeError, KeyError) as exc:
                raise InputError(f"{path}:{number} has no {field}") from exc

    def add(self, answer: Answer) -> None:
        """Keep an answer, beside those that others have given since."""
        self.answers.append(answer)
        text = self._text()
        self._save(text + ("\n" if text and text[-1] != "\n" else "") + line_of(answer))

    def undo(self) -> None:
        """Take the last answer back."""
        before, _, after = self._text().rpartition(line_of(self.answers.pop()))
        self._save(before + after)

    def _text(self) -> str:
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def _save(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path) as draft:
            draft.write_text(text, encoding="utf-8")


class Desk(ABC, Generic[Question]):
    """Where questions meet a person: a console, keys, and a file of answers."""

    def __init__(self, console: Console, key: Callable[[], str], file: AnswerFile) -> None:
        """Open the desk, with nothing to answer yet."""
        self.console, self.key, self.file = console, key, file

    @abstractmethod
    def screen(self, question: Question, place: str) -> RenderableType:
        """Return what is shown of a question, and of its place among the others."""

    @abstractmethod
    def answer(self, question: Question, key: str) -> Answer | None:
        """Return what a key answers, None if it is no answer."""

    def go_through(
        self, questions: Iterable[Question], answered: Iterable[Question] = ()
    ) -> int:
        """Show one question after the other; those that were skipped come last.

        Args:
            questions: What is to be answered.
            answered: Whose answers end the file and may be taken back, in their order.

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
                self.file.undo()
                left.appendleft(done.pop())
            elif answer is not None:
                self.file.add(answer)
                done.append(left.popleft())
        return len(left)
