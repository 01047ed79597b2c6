"""A slow row holds nobody up: the window between the start of rows and their turn."""

import asyncio
import threading
from concurrent.futures import Future

from langchain_core.runnables import RunnableLambda

from langchain_judges.runs import budget
from langchain_judges.verdict import even_verdict


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
