"""Words for work that takes long in silence, where somebody listens: the command line does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER = 1.0
"""Seconds of silence before anything is said."""

_listeners: list[Callable[[str], object]] = []


def listen(listener: Callable[[str], object] | None) -> None:
    """Have long work told to `listener`, from a thread of its own; None: to nobody."""
    _listeners[:] = [listener] if listener else []


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Say what is being done if it takes longer than a second.

    >>> with busy("Loading the embedder"):
    ...     pass
    """
    if not _listeners:
        yield
        return
    timer = threading.Timer(AFTER, _listeners[0], [f"{what} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
