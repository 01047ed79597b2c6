"""How many plausible bugs the tests find: a sample of mutants of four rooms, by mutmut.

Run `.ci/mutants` (or `python -m benchmarks.mutants` where mutmut is installed): it writes the
mutants of metrics, report, integrations and the command line into `mutants/`, draws a sample by
`--seed` that is even over the rooms, and tries it for `--minutes`. It prints each room's share
of mutants that a test killed and the names of those that none did (`mutmut show NAME` shows
one), and exits with 1 under `--least`. Survivors with a reason count neither way: no test could
tell them, or they change nothing but words that people read.

mutmut tries mutants of a few quick tests first, so a sample that ran out of time is no fair
part. Samples tried in a random order on two busy cores, with few tests of over half a second:
of metrics 90 % of 69 were killed and 90 % of 20, of report 90 % of 67 and 96 % of 26, of
integrations 86 % of 29 and 96 % of 25, of the command line 86 % of 57 and 88 % of 26. The
second ones were drawn after tests had been written for survivors of the first, and are so small
that the true share may be 15 points off. Slower tests kill some of what is left.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOMS = ("metrics", "report", "integrations", "cli")
MUTANTS = Path("mutants/langchain_judges")
# A small function: mutmut writes the mutants of all files, and learns which test runs what.
FIRST = "langchain_judges.metrics.agreement.x__slots*"
# Its tests passed, or none runs it.
SURVIVED, UNTRIED = (0, 33), None
# Changes that no test can tell, by what of a line they change, and why.
EQUIVALENT = {
    r",( strict=\w+)? *(?=\))": "the columns are of one length, made or checked before",
    r"(?i)utf-8": "another name of the same encoding",
    r"(?i)\"(yellow|green|red)\"": "a style in capitals is the same style",
    r"(?<=hexdigest\(\)\[:)1[67](?=\])": "more of a hash that tells things apart as it is",
    r"(?<=told\.join\()(None|[\d.]+)": "how long is waited for what ends at once",
    r"highlight=(False|None)": "a console that colours no numbers, either way",
    r"\d\.0 / np\.maximum\(longest": "the longest step of Newton's on the way to one maximum",
    r"(?<=longest = np\.abs\(step\)\.max\(axis=)(-1|None)": "as above",
    r"(?<=Console\(highlight=False, )markup=(False|None)": "a console that reads no markup",
}


def mutmut(names: Sequence[str], seconds: float) -> None:
    """Try mutants for so long; what was tried is stored as it goes.

    It stops with an error where a test fails without any mutant.
    """
    command = [sys.executable, "-m", "mutmut", "run", *names]
    try:
        subprocess.run(command, check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        print("The time is over.")


def outcomes(room: str) -> dict[str, int | None]:
    """Exit codes of a room's tests by mutant: 0 where it survived, None if untried."""
    files = sorted((MUTANTS / room).rglob("*.meta"))
    return {
        name: code
        for path in files
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items()
    }


def reason(diff: str) -> str:
    """Why no test can tell a mutant, by its diff; empty where one could."""
    old, new = (
        [line[1:] for line in diff.splitlines() if line[:1] == mark and line[:3] != mark * 3]
        for mark in "-+"
    )
    for part, why in EQUIVALENT.items():
        if [re.sub(part, "", line) for line in old] == [re.sub(part, "", line) for line in new]:
            return why
    return "words alone" if changes_words("\n".join(old), "\n".join(new)) else ""


def changes_words(old: str, new: str) -> bool:
    """Whether a mutant marks or shouts a literal of several words, and does nothing else.

    A single word may be a key or an option, and stays with the tests.
    """
    if new.replace("XX", "") != old and new.casefold() != old.casefold():
        return False
    both = zip(*(re.split("[\"']", side) for side in (old, new)), strict=True)
    changed = [before for before, after in both if before != after]
    return bool(changed) and all(re.match(r"(?=.*\w)(?=.* )[^%]*$", part) for part in changed)


def shown(name: str) -> str:
    """The diff of a mutant."""
    command = [sys.executable, "-m", "mutmut", "show", name]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


def sample(seed: int, size: int) -> dict[str, list[str]]:
    """Draw as many mutants of each room."""
    draw = random.Random(seed)
    names = {room: sorted(outcomes(room)) for room in ROOMS}
    return {room: draw.sample(own, min(size, len(own))) for room, own in names.items()}


def main() -> None:
    """Try a sample and say what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seed", type=int, default=int(time.time() // 604_800))
    parser.add_argument("--size", type=int, default=100, help="mutants of each room")
    parser.add_argument("--least", type=float, default=0.9)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    mutmut([FIRST], 60 * options.minutes)
    chosen = sample(options.seed, options.size)
    mutmut([n for own in chosen.values() for n in own], max(60.0, end - time.monotonic()))
    counts = Counter[str]()
    for room in ROOMS:
        found = outcomes(room)
        tried = {n: found[n] for n in chosen[room] if found[n] is not UNTRIED}
        alive = {n: reason(shown(n)) for n, code in tried.items() if code in SURVIVED}
        told = sum(not why for why in alive.values())
        counted = len(tried) - len(alive) + told
        counts.update(tried=counted, survived=told)
        share = 1 - told / counted if counted else 1.0
        excused = f"{len(alive) - told} survive with a reason"
        drawn = f"{len(tried):,} of {len(chosen[room]):,} drawn ones tried"
        print(f"{room}: {share:.0%} of {counted:,} mutants killed; {drawn}, {excused}")
        print("\n".join(f"  {name}  {why}" for name, why in alive.items()))
    if not counts["tried"] or counts["survived"] > (1 - options.least) * counts["tried"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
