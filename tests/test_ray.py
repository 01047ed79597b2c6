"""Judging on a real Ray cluster of this machine, as the cookbook does."""

import os
import signal
import threading
from pathlib import Path

import pytest

from langchain_judges.errors import ModelAccessError, OutputError
from langchain_judges.rows.files import read_table
from langchain_judges.testing import FakeModelServer, error
from tests.judges import PAIR, answer_call

# Ray warns of itself.
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

ROWS = [{**PAIR, "output_a": f"good good {n}", "id": f"r{n}"} for n in range(40)]


@pytest.fixture(scope="module", autouse=True)
def ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        # A worker starts in seconds, on a busy machine in minutes.
        patch.setenv("RAY_agent_register_timeout_ms", "600000")
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield ray
        ray.shutdown()


def judged(server, folder, **options):
    from cookbook.on_ray import judge_on_ray

    model = {"name": "openai:m", "base_url": server.url}
    spec = {"method": "relative", "model": model, "options": {"orders": "none"}}
    options = {"max_concurrency": 4, **options}
    return judge_on_ray(ROWS, spec, folder / "parts", folder / "all.jsonl", 2, **options)


def test_rows_are_judged_once_and_resumed_without_a_call(tmp_path):
    with FakeModelServer(answer_call) as server:
        assert judged(server, tmp_path) == (40, 40, 2)
        assert [row["id"] for row in read_table(tmp_path / "all.jsonl")] == [
            row["id"] for row in ROWS
        ]
        assert judged(server, tmp_path) == (40, 40, 2)
    assert len(server.calls) == 40
    assert server.peak <= 8


def test_a_refused_key_stops_all_and_is_said(tmp_path):
    with FakeModelServer(lambda _: error(401)) as server, pytest.raises(ModelAccessError):
        judged(server, tmp_path)


def test_a_budget_bounds_each_shard_and_the_rest_is_judged_later(tmp_path):
    with FakeModelServer(answer_call) as server:
        with pytest.raises(OutputError, match="have not finished"):
            judged(server, tmp_path, max_calls=5)
        assert len(server.calls) <= 10
        assert judged(server, tmp_path).judged == 40
    assert len(server.calls) == 40


# Last, for Ray starts another process for the one that was killed, which takes seconds.
def test_a_task_that_is_killed_is_begun_again_and_pays_for_nothing_that_it_wrote(tmp_path):
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
        os.kill(next(filter(is_task, processes)), signal.SIGKILL)
        hold.set()

    with FakeModelServer(slow) as server:
        threading.Thread(target=kill, daemon=True).start()
        assert judged(server, tmp_path).judged == 40
    # Four calls were in flight in each of the two tasks.
    assert len(server.calls) <= 40 + 4


def is_task(pid):
    """Say whether a process judges a shard."""
    try:
        return b"judge_shard" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
