"""Meaning of an exception that leaves a judge: the end of a run, a failed row, or a bug.

What a model raises while it is asked never gets here: `ask` makes a failure of it. What else
comes out of a judge, its memory or a callable of the user's is told apart by its class: a
service fails by an HTTP status or an exception of its own library, code by one of Python's.
"""

from __future__ import annotations

import logging
import sys
import sysconfig
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path

from langgraph.errors import GraphBubbleUp

from langchain_judges.asking.provider_errors import diagnosis, error_under_200, status_of
from langchain_judges.errors import InputError, JudgeError, LackingError, ModelAccessError
from langchain_judges.verdict import Failure, FailureReason

_LOG = logging.getLogger(__name__)
# Where the exceptions are defined that say something of code, and nothing of a service.
_OF_CODE = ("builtins", "langgraph", "langchain_judges", "pydantic", "pydantic_core")
# Frames of these say how a step was called, and not what is wrong with it.
_FRAMEWORKS = ("asyncio", "concurrent", "langchain_core", "langgraph", "langsmith", "threading")


# The bugs that were logged, by class and place.
_REPORTED: set[tuple[type[Exception], str]] = set()


def ends_the_run(exc: Exception) -> bool:
    """Whether an exception concerns the whole run: a refused key, a stop, an interrupt."""
    if isinstance(exc, ModelAccessError):
        return exc.status == 401
    is_of_judge = isinstance(exc, JudgeError) and not isinstance(exc, InputError)
    return is_of_judge or isinstance(exc, GraphBubbleUp)


def is_bug(exc: Exception) -> bool:
    """Whether an exception is a fault in code, which no service and no row is to blame for."""
    if isinstance(exc, JudgeError | GraphBubbleUp | OSError):
        return False
    if status_of(exc) is not None or error_under_200(exc) is not None:
        return False
    if isinstance(exc, RuntimeError) and "Event loop is closed" in str(exc):
        return False
    package = type(exc).__module__.partition(".")[0]
    return package in _OF_CODE or not _is_installed(package)


@cache
def _is_installed(package: str) -> bool:
    """Whether an exception's package is a library, and not the user's own program."""
    file = Path(getattr(sys.modules.get(package), "__file__", None) or "/")
    # A virtual environment may also see the packages of another Python, by a path of its own.
    in_packages = not {"site-packages", "dist-packages"}.isdisjoint(file.parts)
    places = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
    return in_packages or any(file.is_relative_to(place) for place in places)


def failure_of(exc: Exception, step: str) -> Failure:
    """The failure that an exception of a judge comes to; a bug is logged with its traceback.

    Args:
        exc: What the judge raised.
        step: Where it was asked: `run`, `ask`.
    """
    if is_bug(exc):
        place = place_of(exc)
        _report(type(exc), place, lambda: "".join(traceback.format_exception(exc)))
        detail = f"{type(exc).__name__}: {exc} ({place})"
        return {"step": step, "unit": "", "reason": "internal_error", "detail": detail[:500]}
    if isinstance(exc, InputError):
        reason: FailureReason = "lacking" if isinstance(exc, LackingError) else "invalid_input"
        return {"step": step, "unit": "", "reason": reason, "detail": str(exc)[:500]}
    if isinstance(exc, ModelAccessError):
        detail = str(exc).partition("refuses every call: ")[2] or str(exc)
        return {"step": step, "unit": "", "reason": "provider_error", "detail": detail[:500]}
    problem = diagnosis(exc)
    detail = problem.detail[:500]
    return {"step": step, "unit": "", "reason": problem.reason, "detail": detail}


def place_of(exc: Exception) -> str:
    """The innermost place in code that is no framework's: `merge, my_method.py:34`."""
    frames = [
        (frame.f_globals.get("__name__", ""), frame.f_code, line)
        for frame, line in traceback.walk_tb(exc.__traceback__)
    ]
    own = [each for each in frames if each[0].partition(".")[0] not in _FRAMEWORKS]
    if not (found := (own or frames)[-1:]):
        return "its place is not known"
    (_, code, line) = found[0]
    return f"{code.co_qualname}, {Path(code.co_filename).name}:{line}"


def _report(kind: type[Exception], place: str, trace: Callable[[], str]) -> None:
    """Log a bug, once for each place."""
    if (kind, place) not in _REPORTED:
        _REPORTED.add((kind, place))
        _LOG.error("A bug, not a fault of the provider (%s):\n%s", place, trace())
