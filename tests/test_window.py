"""A slow row holds nobody up: the window between the start of rows and their turn."""

import asyncio
import threading
from concurrent.futures import Future

import pytest
from langchain_core.runnables import RunnableLambda

from langchain_judges import ajudge_many
from langchain_judges.runs import budget
from langchain_judges.verdict import even_verdict
from tests.model_server import pairs
from tests.test_runs import KINDS, collect


def held_until(others: int, slow: set[str]) -> RunnableLambda:
    """Return a judge that holds some rows until it has judged so many others."""
    enough, judged = threading.Event(), []

    def judge(pair):
        if pair["id"] in slow:
            assert enough.wait(120)
        else:
            judged.append(pair["id"])
            if len(judged) == others:
                enough.set()
        return {"verdict": even_verdict()}

    async def later(pair):
        return await asyncio.to_thread(judge, pair)

    return RunnableLambda(judge, later)


@KINDS
def test_rows_behind_slow_ones_are_judged_while_these_are_still_out(kind):
    # Two places are four unfinished rows; three are held until all the others are judged.
    judge = held_until(37, {"p0", "p7", "p20"})
    rows, _ = collect(judge, pairs(40), kind, max_concurrency=2)
    assert [row["id"] for row in rows] == [f"p{i}" for i in range(40)]


def test_no_row_is_started_while_too_many_results_are_held_back(monkeypatch):
    monkeypatch.setattr(budget, "HELD_BACK", 3)
    rows: budget.Window[Future[None]] = budget.Window(2, lambda _: None)
    slow: Future[None] = Future()
    rows.start(slow)
    for _ in range(3):
        assert rows.has_room()
        rows.start(Future())
        rows.rows[-1].set_result(None)
        rows.finished()
    assert not rows.has_room()
    slow.set_result(None)
    rows.finished()
    assert [rows.pop() is slow for _ in range(4)] == [True, False, False, False]
    assert rows.has_room()


@pytest.mark.parametrize(("characters", "most", "peak"), [(1, 310, 3), (390_000, 1000, 1)])
async def test_started_rows_take_no_more_memory_than_allowed(
    characters, most, peak, monkeypatch
):
    monkeypatch.setattr(budget, "OPEN_KILOBYTES", most)
    # A row of one call takes 30 + 70 kB and 2.5 bytes for each character.
    rows = [{"input": f"{n}", "output_a": "a" * characters, "output_b": "b"} for n in range(6)]
    counts = [0]

    async def judge(_):
        counts.append(counts[-1] + 1)
        await asyncio.sleep(0)
        counts.append(counts[-1] - 1)
        return {"verdict": even_verdict()}

    marked = RunnableLambda(judge).with_config(metadata={"method": "m", "calls": 1})
    run = ajudge_many(marked, rows, open_rows=6, progress=False)
    assert len([row async for row in run]) == 6
    assert max(counts) == peak
