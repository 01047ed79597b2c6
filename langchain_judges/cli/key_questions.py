"""Where a person answers one question after the other at the terminal, by single keys."""

from __future__ import annotations

import os
import select
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from rich.console import Console, RenderableType

from langchain_judges.report.labelling import Answer

try:
    import termios
    import tty
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

Question = TypeVar("Question")


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


class Desk(ABC, Generic[Question]):
    """Where questions meet a person: a console and keys."""

    def __init__(self, console: Console, key: Callable[[], str]) -> None:
        """Open the desk, with nothing to answer yet."""
        self.console, self.key = console, key

    @abstractmethod
    def screen(self, question: Question, place: str) -> RenderableType:
        """Return what is shown of a question, and of its place among the others."""

    @abstractmethod
    def answer(self, question: Question, key: str) -> Answer | None:
        """Return what a key answers, None if it is no answer."""

    @abstractmethod
    def keep(self, question: Question, answer: Answer) -> None:
        """Write an answer down."""

    @abstractmethod
    def take_back(self, question: Question) -> None:
        """Take the answer to a question back."""

    def go_through(
        self, questions: Iterable[Question], answered: Iterable[Question] = ()
    ) -> int:
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
