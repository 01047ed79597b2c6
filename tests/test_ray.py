"""Judging on a real Ray cluster of this machine."""

import os
import signal
import threading
from pathlib import Path

import pytest

from langchain_judges.errors import ModelAccessError, OptionError
from langchain_judges.testing import FakeModelServer, error
from tests.judges import PAIR, answer_call

# Ray warns of itself.
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

ROWS = [{**PAIR, "output_a": f"good good {n}", "id": f"r{n}"} for n in range(40)]


@pytest.fixture(scope="module", autouse=True)
def ray():
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    # A worker starts in seconds, on a busy machine in minutes.
    os.environ["RAY_agent_register_timeout_ms"] = "600000"  # noqa: SIM112 - as Ray calls it
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def judged(rows, server, out, **options):
    from langchain_judges.runs.on_ray import judge_dataset

    model = {"name": "openai:m", "base_url": server.url}
    spec = {"method": "relative", "model": model, "options": {"orders": "none"}}
    return judge_dataset(rows, spec, records=out, max_concurrency=8, **options)


def test_a_dataset_is_judged_once_and_resumed_without_a_call(ray, tmp_path):
    with FakeModelServer(answer_call) as server:
        result = judged(ray.data.from_items(ROWS), server, tmp_path)
        table = result.rows.take_all()
        assert sorted(row["id"] for row in table) == sorted(row["id"] for row in ROWS)
        assert (result.summary.rows, result.summary.preferences["A"]) == (40, 40)
        again = judged(ROWS, server, tmp_path, rpm=1e6)
    assert (len(server.calls), again.summary.resumed) == (40, 40)
    assert server.peak <= 8


def test_an_actor_that_is_killed_is_begun_again_and_pays_for_nothing_that_it_wrote(tmp_path):
    hold, arrived = threading.Event(), threading.Event()

    def slow(call):
        if call.number == 20:
            arrived.set()
        reply = answer_call(call)
        reply.hold = hold if call.number >= 20 else None
        return reply

    def kill():
        arrived.wait()
        processes = map(int, filter(str.isdigit, os.listdir("/proc")))
        os.kill(next(filter(actor, processes)), signal.SIGKILL)
        hold.set()

    with FakeModelServer(slow) as server:
        threading.Thread(target=kill, daemon=True).start()
        result = judged(ROWS, server, tmp_path)
    assert result.summary.rows == 40
    # Four calls were in flight in each of the two actors.
    assert len(server.calls) <= 40 + 4


def actor(pid):
    """Say whether a process is an actor of the judge."""
    try:
        return b"_Actor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_refused_key_stops_all_and_is_said(tmp_path):
    with FakeModelServer(lambda _: error(401)) as server, pytest.raises(ModelAccessError):
        judged(ROWS, server, tmp_path)


def test_a_budget_bounds_all_actors_and_the_rest_is_judged_later(tmp_path):
    with FakeModelServer(answer_call) as server:
        run = judged(ROWS, server, tmp_path, max_calls=10)
        assert len(server.calls) <= 10
        assert run.summary.not_judged["over_budget"] == 40 - len(server.calls)
        assert run.rows.count() == 40
        assert judged(ROWS, server, tmp_path).summary.preferences["A"] == 40
        with pytest.raises(OptionError, match="`max_calls` must be at least `actors`, 2"):
            judged(ROWS, server, tmp_path, max_calls=1)
    assert len(server.calls) == 40
