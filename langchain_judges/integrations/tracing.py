"""The end of a traced program: a bounded wait for LangSmith to receive its traces."""

from __future__ import annotations

import threading

TRACES_WAIT = 10.0
"""Default for how many seconds to wait."""


def end_traces(seconds: float = TRACES_WAIT) -> bool:
    """Wait until LangSmith has received every trace, for a limited time.

    Without this, a program whose LangSmith is down or hangs ends minutes late: the threads
    that send traces keep it alive. Set `LANGSMITH_USE_DAEMON=true` before LangChain is
    imported and call this last; traces that are not sent by then are dropped. The command
    line does both.

    Args:
        seconds: The longest time to wait.

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
    sending.join(seconds)
    return not sending.is_alive()
