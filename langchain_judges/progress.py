"""Words for work that takes long in silence: in the log, and on a terminal."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds of silence before anything is said.
AFTER = 1.0


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Announce work that takes longer than a second, from a separate thread.

    It is logged at level INFO, and printed on standard error if that is a terminal.

    >>> with busy("Loading the embedder"):
    ...     pass
    """
    timer = threading.Timer(AFTER, _tell, [f"{what} …"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(text: str) -> None:
    logging.getLogger(__name__).info(text)
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")
