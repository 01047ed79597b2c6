"""The end of a program whose traces go to LangSmith: bounded, whatever LangSmith does.

The threads of LangSmith's client keep a process alive until it has taken every trace, for
minutes where it is down. They are made daemons before the client is, and the traces that are
left at the end of the program get ten seconds.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from functools import cache

# Seconds that the last traces get.
TRACES_WAIT = 10.0


def end_traces(seconds: float | None = None) -> bool:
    """Wait until LangSmith has received every trace, for a limited time.

    A program that has made a judge does this when it ends; a server calls it when it shuts
    down.

    Args:
        seconds: The longest time to wait; None: ten.

    Returns:
        Whether everything was sent or dropped by the client; True without tracing.
    """
    # Loaded on use: most programs trace nothing.
    from langchain_core.tracers.langchain import get_client
    from langsmith.utils import tracing_is_enabled

    if not tracing_is_enabled():
        return True
    # The client's own timeout covers only a part of its waiting.
    sending = threading.Thread(target=get_client().flush, daemon=True, name="last traces")
    sending.start()
    sending.join(TRACES_WAIT if seconds is None else seconds)
    return not sending.is_alive()


@cache
def bound_exit() -> None:
    """See to it, once, that LangSmith keeps no process alive."""
    # Read when the client is made, which a trace does that comes after the first judge.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    atexit.register(_at_exit)


def _at_exit() -> None:
    if "langsmith" in sys.modules and not end_traces():
        late = f"LangSmith did not take all traces within {TRACES_WAIT:g} seconds"
        sys.stderr.write(f"{late}; the rest is lost. The results are not.\n")
