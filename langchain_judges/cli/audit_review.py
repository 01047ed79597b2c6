"""How people answer proposals at the terminal."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from langchain_judges.methods.allure.review import AuditProposal
    from langchain_judges.verdict import Label

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
        if key == "\x1b":
            _drain(descriptor)
        return key
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _drain(descriptor: int) -> None:
    """Throw away what follows an escape: an arrow key sends several characters at once."""
    while select.select([descriptor], [], [], 0.01)[0]:
        if not os.read(descriptor, 16):
            return


Key = Callable[[], str]
"""Waits for a key and returns it."""
Line = Callable[[str], str]
"""Asks for a line of text."""


@dataclass
class Review:
    """Answers to the proposals of one round, while they are being given.

    Each answer is in the file before the next proposal is shown, so that a review resumes
    where it was after anything.

    Args:
        proposals: What the audit asks.
        path: The JSONL file of the answers so far.
    """

    proposals: Sequence[AuditProposal]
    path: Path
    answers: dict[str, dict[str, object]] = field(default_factory=dict)
    """By the id of the proposal, in the order in which they were given."""
    note: str = ""
    """Goes with the next answer."""
    skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read what was answered before."""
        ids = {str(proposal["id"]) for proposal in self.proposals}
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").split("\n")[:-1]:
            answer = json.loads(line)
            if answer["id"] in ids:
                self.answers[answer["id"]] = answer

    @property
    def current(self) -> AuditProposal | None:
        """The proposal to show; those that were skipped come last, None comes at the end."""
        open_proposals = [p for p in self.proposals if p["id"] not in self.answers]
        unskipped = [p for p in open_proposals if p["id"] not in self.skipped]
        if unskipped or not open_proposals:
            return next(iter(unskipped), None)
        return min(open_proposals, key=lambda proposal: self.skipped.index(proposal["id"]))

    @property
    def place(self) -> str:
        """Where the review stands, as people read it."""
        return f"{len(self.answers) + 1} of {len(self.proposals)}"

    def answer(self, name: str, **edit: Label) -> None:
        """Answer the current proposal and keep the answer."""
        proposal = self.current
        if proposal is None:
            return
        own = proposal["id"]
        self.answers[own] = {"id": own, "answer": name, "note": self.note, **edit}
        self.note = ""
        self._save()

    def undo(self) -> bool:
        """Take the last answer back; False if there is none."""
        if not self.answers:
            return False
        own, answer = self.answers.popitem()
        self.note = str(answer["note"])
        # It comes again at once, before those that were skipped.
        self.skipped = [each for each in self.skipped if each != own]
        self._save()
        return True

    def skip(self) -> None:
        """Put the current proposal behind the others."""
        if (proposal := self.current) is not None:
            own = proposal["id"]
            self.skipped = [*(each for each in self.skipped if each != own), own]
            self.note = ""

    def close(self) -> None:
        """Remove the file: the answers are with the audit."""
        self.path.unlink(missing_ok=True)

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f".{self.path.name}.tmp")
        lines = [json.dumps(answer) for answer in self.answers.values()]
        new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.replace(new, self.path)


@dataclass
class Desk:
    """Where a review meets a person: a console, keys, and lines of text."""

    console: Console
    key: Key
    line: Line
    labels: Sequence[Label]
    modes: Sequence[Mapping[str, str]]

    def go_through(self, review: Review) -> bool:
        """Show one proposal after the other; False if the person stops before the end."""
        # Loaded here: `label` needs keys alone.
        from langchain_judges.report.terminal import proposal_screen

        whole = False
        while (proposal := review.current) is not None:
            if self.console.is_terminal:
                self.console.clear()
            screen = proposal_screen(proposal, review.place, review.note, whole=whole)
            self.console.print(screen)
            try:
                pressed = self.key().casefold()
                if pressed == "q":
                    return False
                whole = self._press(pressed, review) and not whole
            except (KeyboardInterrupt, EOFError):
                return False
        return True

    def _press(self, pressed: str, review: Review) -> bool:
        """Do what a key says; True if the same proposal is to be shown in full."""
        if pressed in _PLAIN:
            review.answer(_PLAIN[pressed])
        elif pressed == "l":
            names = [str(label) for label in self.labels]
            if (choice := self._choose(names)) is not None:
                review.answer("label", label=self.labels[names.index(choice)])
        elif pressed == "m":
            names = [mode["name"] for mode in self.modes]
            if (mode := self._choose(names, own=True)) is not None:
                review.answer("mode", mode=mode)
        elif pressed == "n":
            review.note = self.line("note").strip()
        elif pressed == "u" and not review.undo():
            self.console.bell()
        elif pressed == "s":
            review.skip()
        return pressed == "v"

    def _choose(self, names: Sequence[str], *, own: bool = False) -> str | None:
        """Let the person choose by number or name; None if nothing was chosen."""
        from langchain_judges.report.terminal import choices

        self.console.print(choices(names))
        choice = self.line("number, or a name of your own" if own else "number").strip()
        if choice.isdecimal() and 1 <= int(choice) <= len(names):
            return names[int(choice) - 1]
        if choice in names or (own and choice):
            return choice
        self.console.bell()
        return None


_PLAIN = {"a": "accept", "r": "reject", "w": "check_wrong"}
"""The keys that are answers by themselves."""
