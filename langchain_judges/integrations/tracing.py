"""The end of a traced program: LangSmith gets a bounded time to take what was traced."""

from __future__ import annotations

import threading

TRACES_WAIT = 10.0
"""Seconds that LangSmith gets, unless told."""


def end_traces(seconds: float = TRACES_WAIT) -> bool:
    """Wait until LangSmith has taken every trace, but no longer than some seconds.

    A program whose LangSmith is down or hangs ends minutes late otherwise: the threads that
    send traces keep it alive. Set `LANGSMITH_USE_DAEMON=true` before LangChain is imported,
    call this last, and the rest is given up; the command line does both.

    Args:
        seconds: The most that is waited.

    Returns:
        Whether everything was sent or given up by the client; True without tracing.
    """
    # Loaded on use: most programs trace nothing.
    from langchain_core.tracers.langchain import get_client
    from langsmith.utils import tracing_is_enabled

    if not tracing_is_enabled():
        return True
    # The client's own limit bounds only a part of what it waits for.
    sending = threading.Thread(target=get_client().flush, daemon=True, name="last traces")
    sending.start()
    sending.join(seconds)
    return not sending.is_alive()
