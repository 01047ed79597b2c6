"""A run of many rows, a tenth of whose requests fail.

    python -m benchmarks.faults 20000

Printed: how many rows were judged, why the others were not, and how many rows got a good reply
more than once.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from langchain_judges import ajudge_many, load_judge
from langchain_judges.asking import send
from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, error, reply

FAULTS: dict[str, Callable[[], ServerReply]] = {
    "429": lambda: error(429),
    "500": lambda: error(500),
    "dropped": lambda: ServerReply(drop=True),
    "empty": lambda: ServerReply(body=b""),
    "cut": lambda: ServerReply(body=b'{"id": "x'),
    "prose": lambda: reply("I like it."),
}
GOOD = '{"explanation": "clear", "preference": "1"}'


class Faulty:
    """Answers nine of ten requests well, by a seed."""

    def __init__(self, seed: int = 0) -> None:
        self.faults, self.good = Counter[str](), Counter[str]()
        self._chance = random.Random(seed)

    def __call__(self, call: ServerCall) -> ServerReply:
        if self._chance.random() < 0.1:
            name = self._chance.choice(list(FAULTS))
            self.faults[name] += 1
            return FAULTS[name]()
        self.good[str(call.body["messages"][1])] += 1
        return reply(GOOD)


async def tried(rows: int) -> str:
    script, reasons = Faulty(), Counter[str]()
    pairs = (
        {"input": f"Question {n}?", "output_a": "a", "output_b": "b", "id": str(n)}
        for n in range(rows)
    )
    with tempfile.TemporaryDirectory() as folder, FakeModelServer(script) as server:
        judge = load_judge("relative", server.chat(), orders="none")
        out = Path(folder) / "r.jsonl"
        async for row in ajudge_many(judge, pairs, max_concurrency=32, records=out, progress=False):
            if not row["judged"]:
                reasons[row["verdict"]["failures"][0]["reason"]] += 1
    twice = sum(count > 1 for count in script.good.values())
    return (
        f"{rows - reasons.total():,} of {rows:,} rows judged, the others {dict(reasons)}; "
        f"{script.faults.total():,} faults {dict(script.faults)}; {twice} good replies twice"
    )


if __name__ == "__main__":
    send.FIRST_WAIT = 0.01
    print(asyncio.run(tried(int(sys.argv[1]))))
