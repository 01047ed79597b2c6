"""A slow row holds nobody up: the window between the start of rows and their turn."""

from concurrent.futures import Future
from typing import Any

from langchain_judges.runs import many


def test_no_row_is_started_while_too_many_results_are_held_back(monkeypatch):
    monkeypatch.setattr(many, "HELD_BACK", 3)
    rows: many.Window[Future[Any]] = many.Window(2, lambda _: None)
    slow: Future[Any] = Future()
    rows.start(slow)
    for _ in range(3):
        assert rows.has_room()
        rows.start(Future())
        rows.rows[-1].set_result(None)
        rows.unfinished -= 1
    assert not rows.has_room()
    slow.set_result(None)
    rows.unfinished -= 1
    assert [rows.rows.popleft() is slow for _ in range(4)] == [True, False, False, False]
    assert rows.has_room()
