import threading

import pytest

from langchain_judges.integrations import end_traces


class Client:
    def __init__(self, arrival):
        self.flush = arrival.wait


@pytest.mark.parametrize("hangs", [True, False])
def test_langsmith_gets_a_bounded_time_to_take_the_last_traces(monkeypatch, hangs):
    arrival = threading.Event()
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setattr("langsmith.utils.tracing_is_enabled", lambda: True)
    monkeypatch.setattr("langchain_core.tracers.langchain.get_client", lambda: Client(arrival))
    if not hangs:
        arrival.set()
    assert end_traces(0.01 if hangs else 300) is not hangs
    arrival.set()


def test_without_tracing_nobody_is_waited_for():
    assert end_traces(0)
