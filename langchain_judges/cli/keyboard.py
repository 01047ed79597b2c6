"""Reading single keys, from a terminal or from what is piped in."""

from __future__ import annotations

import os
import select
import sys

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
