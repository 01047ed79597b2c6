"""Every attack by class, with its tries and failures: `python -m tests.attacks [--quick]`.

Classes of replies, cells and files are drawn by hypothesis; recorded replies are changed by
seeds; runs are killed at every write, and by every signal. The exit code is 1 if anything
failed. `--quick` takes about a minute and starts no server.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_judges.runs.tables import FORMS
from langchain_judges.verdict import no_usage
from tests.attacks import evidence, mutations, replies, writes
from tests.attacks.cells import live_cells, live_in

Tries = Iterator[str]
"""A text for each try: what went wrong, empty where nothing did."""


def _drawn(strategy: st.SearchStrategy[Any], number: int, check: Callable[[Any], str]) -> Tries:
    """Draw so many values, and yield what is wrong with each."""
    found: list[str] = []

    @settings(
        max_examples=number, deadline=None, database=None, suppress_health_check=[*HealthCheck]
    )
    @given(strategy)
    def tried(value: Any) -> None:
        found.append(check(value))

    tried()
    yield from found


def _no_verdict(one: replies.Try) -> str:
    verdict = one.verdict()
    return f"{verdict!r} of {one.message.content!r:.200}" if verdict else ""


def replies_that_are_no_verdict(number: int) -> Tries:
    """Draw from each class its share of what is left: of some there are few."""
    left = number
    for after, strategy in zip(
        range(len(replies.TRIES), 0, -1), replies.TRIES.values(), strict=True
    ):
        found = [*_drawn(strategy, left // after, _no_verdict)]
        left -= len(found)
        yield from found


def recorded_replies_changed(number: int) -> Tries:
    for seed in range(number):
        name, read_as = mutations.outcome(seed)
        yield f"{seed} ({name})" if read_as == "another" else ""


def agents_that_forge_steps(number: int) -> Tries:
    for seed in range(number):
        yield str(wrong) if (wrong := evidence.tried(seed)[1]) else ""


def _judged(reason: str) -> dict[str, Any]:
    """A result with a reason of somebody else's words."""
    verdict = {"label": 1, "score": 1.0, "confidence": None, "rationale": reason}
    verdict |= {"failures": [], "usage": no_usage()}
    return {"index": 0, "kind": "item", "judged": True, "judge": {}, "verdict": verdict}


def cells_of_tables(number: int) -> Tries:
    rows = st.tuples(st.dictionaries(live_cells, live_cells, min_size=1), live_cells)

    def check(row: tuple[dict[str, str], str], suffix: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / f"o{suffix}"
            with closing(FORMS[suffix](out)) as file:
                file.add(row[0], _judged(row[1]))
            return repr(live) if (live := [*live_in(out)]) else ""

    for suffix in (".csv", ".tsv"):
        yield from _drawn(rows, number // 2, partial(check, suffix=suffix))


def files_damaged(number: int) -> Tries:
    from tests import test_damaged_files as files

    for way, work in files.WAYS.items():
        with tempfile.TemporaryDirectory() as place:
            whole = Path(place) / "whole"
            whole.mkdir()
            answer = work(whole)
            copies = (Path(place) / f"copy {n}" for n in range(1_000_000))
            check = partial(files.damage, way, whole, answer, copies)
            yield from _drawn(st.data(), number // len(files.WAYS), check)


def deaths_at_writes(parts: int | None) -> Tries:
    for entry in writes.ENTRIES:
        for wrong in writes.problems(entry, parts):
            yield f"{entry}: {wrong}" if wrong else ""


def runs_ended_by_signals(_: int | None) -> Tries:
    from tests.attacks import matrix

    os.environ["ALSO_IMPORTED"] = "tests.attacks.killed_run openai.resources.chat"
    for case in matrix.cases([]):
        problem = matrix.safely(case)
        yield f"{', '.join(case)}: {problem}" if problem else ""


CLASSES: dict[Callable[[Any], Tries], tuple[int | None, int | None]] = {
    replies_that_are_no_verdict: (20_000, 700),
    recorded_replies_changed: (100_000, 2_000),
    agents_that_forge_steps: (1_000, 20),
    cells_of_tables: (20_000, 400),
    files_damaged: (2_000, 40),
    deaths_at_writes: (None, 0),
    runs_ended_by_signals: (None, 0),
}
"""What is tried, with how many tries at length and quickly; 0 leaves it out."""


def main(*, quick: bool) -> int:
    """Try every class; return how many tries went wrong."""
    total = 0
    for tries, (at_length, quickly) in CLASSES.items():
        number = quickly if quick else at_length
        if number == 0:
            continue
        began, found = time.monotonic(), list(tries(number))
        wrong = [each for each in found if each]
        total += len(wrong)
        name, seconds = tries.__name__.replace("_", " "), time.monotonic() - began
        print(f"{name}: {len(wrong)} of {len(found):,} failed, {seconds:.0f} s", flush=True)
        for each in wrong[:5]:
            print(f"  {each:.300}", flush=True)
    return total


if __name__ == "__main__":
    logging.disable()  # what is damaged on purpose is not news
    sys.exit(bool(main(quick="--quick" in sys.argv[1:])))
