"""Every attack by class, with its tries and failures: `python -m tests.attacks [--quick]`.

Replies, messages and files are drawn by hypothesis; changes of recorded replies, runs of agents
and tables are made from seeds; runs are killed at every write, and by every signal. The exit
code is 1 if anything failed. `--quick` takes about a minute and starts no server. A line is
printed as soon as a part of a class is done; names of classes, such as `deaths_at_writes`, are
all that is tried.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_judges.runs.tables import FORMS
from tests.attacks import cells, evidence, messages, mutations, replies, writes

Tries = Iterator[tuple[str, str]]
"""The part of a class that each try is of, and what went wrong; empty: nothing."""


def _drawn(
    part: str, strategy: st.SearchStrategy[Any], number: int, check: Callable[[Any], str]
) -> Tries:
    """Draw so many values, and yield what is wrong with each."""
    found: list[str] = []

    @settings(
        max_examples=number, deadline=None, database=None, suppress_health_check=[*HealthCheck]
    )
    @given(strategy)
    def tried(value: Any) -> None:
        found.append(check(value))

    tried()
    yield from ((part, wrong) for wrong in found)


def _no_verdict(one: replies.Try) -> str:
    verdict = one.verdict()
    return f"{verdict!r} of {one.message.content!r:.200}" if verdict else ""


def replies_that_are_no_verdict(number: int) -> Tries:
    """Draw from each class its share of what is left: of some there are few."""
    left = number
    for done, (part, strategy) in enumerate(replies.TRIES.items()):
        found = [*_drawn(part, strategy, left // (len(replies.TRIES) - done), _no_verdict)]
        left -= len(found)
        yield from found


def messages_of_odd_forms(number: int) -> Tries:
    yield from _drawn("", messages.messages(), number, messages.problem)


def recorded_replies_changed(number: int) -> Tries:
    for seed in range(number):
        name, read_as = mutations.outcome(seed)
        yield "", f"{seed} ({name})" if read_as == "another" else ""


def agents_that_forge_steps(number: int) -> Tries:
    for seed in range(number):
        yield "", str(wrong) if (wrong := evidence.tried(seed)[1]) else ""


def cells_of_tables(number: int) -> Tries:
    """Rows of tables: what a spreadsheet shows, and what a judge said in any form."""
    forms = [(suffix, raw) for suffix in FORMS for raw in (False, True)]
    for suffix, raw in forms:
        part = f"{suffix}, as they came" if raw else suffix
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(1 + number // len(forms) // cells.ROWS):
                rows = cells.live_in_rows(Path(folder), suffix, seed, raw=raw)
                yield from ((part, wrong) for wrong in rows)


def files_damaged(number: int) -> Tries:
    from tests import test_damaged_files as files

    for way, work in files.WAYS.items():
        with tempfile.TemporaryDirectory() as place:
            whole = Path(place) / "whole"
            whole.mkdir()
            answer = work(whole)
            copies = (Path(place) / f"copy {n}" for n in range(1_000_000))
            check = partial(files.damage, way, whole, answer, copies)
            yield from _drawn(way, st.data(), number // len(files.WAYS), check)


def deaths_at_writes(parts: int | None) -> Tries:
    for entry in writes.ENTRIES:
        for wrong in writes.problems(entry, parts):
            yield entry, wrong


def runs_ended_by_signals(_: int | None) -> Tries:
    from tests.attacks import matrix

    for case, problem in matrix.problems([*matrix.cases([])]):
        yield case.subject, f"{case.way}, {case.end}: {problem}" if problem else ""


CLASSES: dict[Callable[[Any], Tries], tuple[int | None, int | None]] = {
    replies_that_are_no_verdict: (20_000, 700),
    messages_of_odd_forms: (5_000, 100),
    recorded_replies_changed: (100_000, 2_000),
    agents_that_forge_steps: (1_000, 20),
    cells_of_tables: (20_000, 400),
    files_damaged: (2_000, 40),
    deaths_at_writes: (None, 0),
    runs_ended_by_signals: (None, 0),
}
"""Attacks, with their number of tries at length and quickly; 0 leaves one out."""


def report(tries: Tries, name: str) -> int:
    """Print each part of a class as it is done, and return how many tries went wrong."""
    began, total = time.monotonic(), 0
    for part, found in groupby(tries, itemgetter(0)):
        counts = Counter[bool]()
        for _, wrong in found:
            counts[bool(wrong)] += 1
            if wrong and counts[True] <= 5:
                print(f"  {wrong:.300}", flush=True)
        seconds = time.monotonic() - began
        of = f"{name}, {part}" if part else name
        print(f"{of}: {counts[True]} of {counts.total():,} failed, {seconds:.0f} s", flush=True)
        began, total = time.monotonic(), total + counts[True]
    return total


def main(names: list[str], *, quick: bool) -> int:
    """Try every class, or those that are named; return how many tries went wrong."""
    total = 0
    for tries, (at_length, quickly) in CLASSES.items():
        number = quickly if quick else at_length
        if number != 0 and (not names or tries.__name__ in names):
            total += report(tries(number), tries.__name__.replace("_", " "))
    return total


if __name__ == "__main__":
    logging.disable()  # what is damaged on purpose is not news
    names = [each for each in sys.argv[1:] if each != "--quick"]
    sys.exit(bool(main(names, quick="--quick" in sys.argv)))
