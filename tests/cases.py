"""One test of many cases that differ in their data alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest


def for_each(names: str | Sequence[str], cases: Iterable[Any], ids: Any = None) -> Any:
    """Run a test for every case, one after another; each that fails is named.

    It is written as `pytest.mark.parametrize` is, and counts as one test, which costs less than
    collecting hundreds. For cases of milliseconds that share no fixture.

    Args:
        names: The parameters that a case gives, as a list or separated by commas.
        cases: The values; a tuple a case where there are several names.
        ids: Names of the cases, or a function from a case to its name.
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    rows = list(_named(fields, list(cases), ids))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def run(*args: Any, **fixtures: Any) -> None:
                failures: list[BaseException] = []
                for name, row in rows:
                    with _case(name, failures):
                        await test(*args, **fixtures, **row)
                _raise(failures)
        else:

            @functools.wraps(test)
            def run(*args: Any, **fixtures: Any) -> None:
                failures: list[BaseException] = []
                for name, row in rows:
                    with _case(name, failures):
                        test(*args, **fixtures, **row)
                _raise(failures)

        signature = inspect.signature(test)
        rest = [own for own in signature.parameters.values() if own.name not in fields]
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    return decorate


def _named(
    fields: Sequence[str], cases: list[Any], ids: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    if not cases:
        raise ValueError("a test of no case cannot fail")
    names = [ids(case) for case in cases] if callable(ids) else list(ids or map(repr, cases))
    for name, case in zip(names, cases, strict=True):
        values = case if len(fields) > 1 else (case,)
        yield str(name), dict(zip(fields, values, strict=True))


@contextmanager
def _case(name: str, failures: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever a case raises
        error.add_note(f"in the case {name[:200]}")
        failures.append(error)


def _raise(failures: list[BaseException]) -> None:
    if len(failures) > 1:
        raise BaseExceptionGroup(f"{len(failures)} cases fail", failures)
    if failures:
        raise failures[0]
