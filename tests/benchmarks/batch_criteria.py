"""What several criteria in one call of Branch-Solve-Merge save, and what a halo then changes.

    python -m tests.benchmarks.batch_criteria [PAIRS]

Simulated judges. How good a text is by a criterion is drawn: a part that is the text's own and
a part of the criterion, both normal. A look adds noise of its own, the same whether the
criterion is asked alone or beside others. The halo is assumed, not measured: within a call,
every score but the first is drawn towards the first by that share. So a call of one criterion
has none, and what `batch_criteria` changes here is the halo alone.

Printed for each number of criteria in a call: calls and input tokens of a pair (four bytes a
token), and for each halo on how many pairs the verdict is that of one criterion in each call,
and in brackets on how many the text that is better in truth is preferred.
"""

from __future__ import annotations

import json
import random
import re
import sys
from typing import Any, NamedTuple

from langchain_judges import create_bsm_judge
from tests.benchmarks.prefix import text
from tests.fakes import FakeChatModel

CRITERIA = [f"Point {n}" for n in range(1, 6)]
BATCHES = (2, 3, 5)
HALOS = (0.0, 0.25, 0.5, 0.75)
SPREAD, NOISE = 0.7, 0.7
"""Standard deviations, in points of a score: of each part of a quality, and of a look."""


class Outcome(NamedTuple):
    """What the pairs came to."""

    preferences: list[str | None]
    calls: float
    tokens: float


def quality(pair: int, side: str, criterion: int) -> float:
    """Return how good a text is in truth by a criterion, in points from the middle."""
    whole = random.Random(f"{pair}:{side}").gauss(0, SPREAD)
    return whole + random.Random(f"{pair}:{side}:{criterion}").gauss(0, SPREAD)


def better(pair: int) -> str:
    """Return the text that is better by the sum of its qualities."""
    totals = {
        side: sum(quality(pair, side, n) for n in range(1, len(CRITERIA) + 1)) for side in "AB"
    }
    return max(totals, key=lambda side: totals[side])


class Simulated:
    """A judge's replies: every criterion of a call, later ones drawn to the first."""

    def __init__(self, halo: float, draw: int) -> None:
        """Take the halo, and which draw of the noise this is."""
        self.halo, self.draw = halo, draw
        self.bytes = self.calls = 0

    def __call__(self, prompt: str) -> str:
        """Reply to a solve call."""
        self.calls += 1
        self.bytes += len(prompt.encode())
        pair = int(re.findall(r"task (\d+)", prompt)[0])
        sides = "AB" if prompt.find("alpha") < prompt.find("omega") else "BA"
        criteria = [int(n) for n in re.findall(r"Point (\d+)", prompt)]
        looks = [[self.look(pair, side, n, sides) for side in sides] for n in criteria]
        replies = []
        for look in looks:
            scores = [
                (1 - self.halo) * own + self.halo * first
                for own, first in zip(look, looks[0], strict=True)
            ]
            one, other = (min(5, max(1, round(3 + score))) for score in scores)
            replies.append({"score_1": one, "score_2": other, "explanation": ""})
        if len(replies) == 1:
            return json.dumps(replies[0])
        return json.dumps({f"criterion_{n}": reply for n, reply in enumerate(replies, 1)})

    def look(self, pair: int, side: str, criterion: int, sides: str) -> float:
        """Return what one look finds of a text by a criterion."""
        chance = random.Random(f"{self.draw}:{pair}:{side}:{criterion}:{sides}")
        return quality(pair, side, criterion) + chance.gauss(0, NOISE)


def judged(pairs: int, size: int, halo: float, draw: int = 0) -> Outcome:
    """Return the preferences of all pairs, and the mean calls and input tokens of a pair."""
    model = Simulated(halo, draw)
    judge = create_bsm_judge(
        FakeChatModel(replies=model), criteria=CRITERIA, batch_criteria=size
    )
    preferences = []
    for n in range(pairs):
        pair: dict[str, Any] = {
            "input": f"task {n}: {text(60, 0)}?",
            "output_a": f"alpha {text(190, 3)}",
            "output_b": f"omega {text(170, 11)}",
        }
        verdict = judge.invoke(pair, {"max_concurrency": 1})["verdict"]
        preferences.append(verdict["preference"])
    return Outcome(preferences, model.calls / pairs, model.bytes / 4 / pairs)


def same(one: Outcome, other: Outcome) -> float:
    """Return the share of the pairs with the same verdict."""
    both = list(zip(one.preferences, other.preferences, strict=True))
    return sum(a == b for a, b in both) / len(both)


def right(outcome: Outcome) -> float:
    """Return the share of the pairs on which the better text is preferred; a tie is wrong."""
    pairs = enumerate(outcome.preferences)
    return sum(preference == better(n) for n, preference in pairs) / len(outcome.preferences)


def main() -> None:
    """Print the table."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    alone = judged(pairs, 1, 0.0)
    again = judged(pairs, 1, 0.0, draw=1)
    halos = " | ".join(f"halo {halo:.0%}" for halo in HALOS)
    print(f"| criteria in a call | calls | tokens | {halos} |")
    print("|---" * (3 + len(HALOS)) + "|")
    for words, outcomes in (
        ("1", [alone] * len(HALOS)),
        ("1, asked again", [again] * len(HALOS)),
        *((str(size), [judged(pairs, size, halo) for halo in HALOS]) for size in BATCHES),
    ):
        cells = [f"{same(alone, each):.0%} ({right(each):.0%})" for each in outcomes]
        calls, tokens = outcomes[0].calls, outcomes[0].tokens
        print(f"| {words} | {calls:.0f} | {tokens:,.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
