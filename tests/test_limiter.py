import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from langchain_judges import ajudge_many, create_rubric_judge, judge_many, load_judge
from langchain_judges.asking.effects import Effect, SingleFlight, StopSignal, gather, run
from langchain_judges.asking.limiter import CallLimiter
from langchain_judges.asking.reading import TokenUsage
from langchain_judges.asking.reply_log import ReplyStore
from langchain_judges.errors import OptionError, OverBudget, RunStopped
from langchain_judges.methods import create_jury
from langchain_judges.runs.options import CallLimits
from langchain_judges.runs.run_state import limiter_of
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judges import ITEM, PAIR, answer, answer_call
from tests.processes import wait_until


def queued(limiter):
    """Wait until somebody waits for a place."""
    wait_until(lambda: limiter._waiting)


def test_places_are_handed_out_up_to_the_bound_in_threads():
    # Nobody leaves before three are inside; a fourth would be seen there.
    limiter, lock, three = CallLimiter(3), threading.Lock(), threading.Barrier(3)
    inside, peak = [0], [0]

    def work(rank):
        run(limiter.enter(rank))
        with lock:
            inside[0] += 1
            peak[0] = max(peak[0], inside[0])
        three.wait()
        with lock:
            inside[0] -= 1
        limiter.leave(TokenUsage())

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(24)))
    assert peak[0] == 3
    assert limiter.calls == 24


async def test_a_cancelled_waiter_takes_no_place():
    limiter = CallLimiter(1)
    await limiter.enter()
    waiting = asyncio.create_task(limiter.enter())
    for _ in range(10):  # until it waits
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    limiter.leave()
    await limiter.enter()


def refused_once_another_is_done(limiter, error, message):
    """Enter, which waits for the call in flight and is refused when that has ended."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run, limiter.enter())
        queued(limiter)
        assert not waiting.done()
        limiter.leave(TokenUsage())
        with pytest.raises(error, match=message):
            waiting.result()


def test_a_budget_of_calls_is_exact_and_counts_those_in_flight():
    limiter = CallLimiter(5, max_calls=2)
    run(limiter.enter())
    limiter.leave(TokenUsage())
    run(limiter.enter())
    refused_once_another_is_done(limiter, OverBudget, "budget of 2 calls")


def test_a_closed_gate_waits_for_calls_in_flight_before_it_refuses():
    limiter = CallLimiter(2)
    run(limiter.enter())
    limiter.close(RunStopped("enough"))
    refused_once_another_is_done(limiter, RunStopped, "enough")


@pytest.mark.parametrize("drive", [run, asyncio.run])
def test_a_pause_ends_when_the_gate_is_closed(drive):
    async def waiting():
        await limiter.pause(3600)

    limiter = CallLimiter(1)
    with ThreadPoolExecutor(1) as pool:
        pausing = pool.submit(drive, waiting())
        limiter.close(RunStopped("enough"))
        pausing.result()
        drive(waiting())


def counting(calls, ready=lambda: None):
    """A step that computes a value once it is ready, and is counted."""

    async def compute():
        calls.append(1)
        await Effect(ready, lambda: asyncio.sleep(0))
        return "value"

    return compute


def test_a_value_is_computed_once_for_many_threads():
    flight: SingleFlight[str] = SingleFlight()
    calls: list[str] = []

    def all_want_it():
        wait_until(lambda: len(flight._first._calls["k"]._waiters) == 7)

    with ThreadPoolExecutor(8) as pool:
        results = list(
            pool.map(lambda _: run(flight.get("k", counting(calls, all_want_it), bool)), range(8))
        )
    assert len(calls) == 1
    assert sorted(reused for _, reused in results) == [False] + [True] * 7


async def test_a_value_is_computed_once_for_many_tasks_and_again_when_forgotten():
    flight: SingleFlight[str] = SingleFlight(size=1)
    calls: list[str] = []
    await asyncio.gather(*(flight.get("k", counting(calls), bool) for _ in range(8)))
    assert len(calls) == 1
    await flight.get("other", counting(calls), bool)
    await flight.get("k", counting(calls), bool)
    assert len(calls) == 3


async def part(value):
    if value == "bad":
        raise ValueError(value)
    return value


async def meeting(barrier):
    await Effect(lambda: barrier.wait(60), barrier.wait)


def two_meet():
    """Do two parts that end only if both are at work at the same time."""
    barrier = threading.Barrier(2)
    run(gather([meeting(barrier), meeting(barrier)]))


@pytest.mark.system
def test_a_fork_asks_in_threads_of_its_own():
    two_meet()
    pid = os.fork()
    if not pid:
        signal.alarm(60)  # who waits for threads of the parent waits for ever
        two_meet()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_gather_raises_what_a_part_raises():
    with pytest.raises(ValueError, match="bad"):
        run(gather([part(1), part("bad")]))
    with pytest.raises(ValueError, match="bad"):
        asyncio.run(gather([part(1), part("bad")]))


CRITERIA = [{"name": name, "description": f"It shows {name}."} for name in "abcdef"]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("method", ["rubric", "cot_sc", "jury"])
def test_a_graph_has_no_more_calls_in_flight_than_its_config_says(serve, method, kind):
    release = threading.Event()
    peaks: list[int] = []

    def behave(call):
        if len(server.calls) <= 6:  # these show that the models take all settings
            return answer_call(call)
        peaks.append(server.waiting)
        if peaks[-1] == 2:  # a moment, in which a third call could come beside them
            threading.Timer(0.1, release.set).start()
        return replace(answer_call(call), hold=release)

    server = serve(behave)
    model = chat(server)
    judges = {
        "rubric": lambda: load_judge("rubric", model, rubric=CRITERIA, each=True),
        "cot_sc": lambda: load_judge("cot_sc", model, samples=6),
        "jury": lambda: create_jury([load_judge("relative", model, name=n) for n in "abc"]),
    }
    judge, config = judges[method](), RunnableConfig(max_concurrency=2)
    item = ITEM if method == "rubric" else PAIR
    judge.invoke(item)
    if kind == "sync":
        judge.invoke(item, config)
    else:
        asyncio.run(judge.ainvoke(item, config))
    assert (max(peaks), len(peaks)) == (2, 6)


@for_each("limit", [0, -1, "2", 1.5])
def test_a_limit_of_a_config_is_a_whole_number(limit):
    judge = load_judge("relative", FakeChatModel(replies=answer))
    for name in ("recursion_limit", "max_concurrency"):
        config: Any = {name: limit}
        with pytest.raises(OptionError, match=f"`{name}` must be a whole number"):
            judge.invoke(PAIR, config)
        with pytest.raises(OptionError, match=f"`{name}` must be a whole number"):
            asyncio.run(judge.ainvoke(PAIR, config))


async def all_of(results):
    return [each async for each in results]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_place_is_given_back_when_the_reply_is_written_down(tmp_path, monkeypatch, kind):
    order: list[str] = []

    def noted(owner, name):
        own = getattr(owner, name)

        def called(*args, **also):
            order.append(name)
            return own(*args, **also)

        monkeypatch.setattr(owner, name, called)

    noted(ReplyStore, "keep")
    noted(CallLimiter, "leave")
    replies = iter(["no JSON"])  # of which the draft is written down
    model = FakeChatModel(replies=lambda prompt: next(replies, "") or answer(prompt))
    judge = load_judge("relative", model)
    options: Any = {"records": tmp_path / "o.jsonl", "max_concurrency": 1, "progress": False}
    if kind == "sync":
        list(judge_many(judge, [PAIR] * 2, **options))
    else:
        asyncio.run(all_of(ajudge_many(judge, [PAIR] * 2, **options)))
    assert order == ["keep", "leave"] * 5


async def foreign():
    await asyncio.sleep(0)
    return "works"


def test_a_step_awaits_anything_in_a_loop_and_effects_alone_in_a_thread():
    assert asyncio.run(foreign()) == "works"
    with pytest.raises(TypeError, match="awaits effects"):
        run(foreign())


def test_an_effect_may_run_an_event_loop_of_its_own_in_the_thread():
    async def inner():
        return await Effect(lambda: "thread", lambda: asyncio.sleep(0, "loop"))

    async def outer():
        nested = await Effect(lambda: asyncio.run(inner()), inner)
        return nested, await inner()

    assert run(outer()) == ("loop", "thread")


def test_a_signal_amid_a_wait_for_signals_finds_no_lock_of_it():
    # A handler runs between any two lines of the thread that it interrupts: here between all.
    stop = StopSignal()

    def interrupted(*_: object) -> Any:
        stop.give()
        return interrupted

    def waiting() -> None:
        sys.settrace(interrupted)
        stop.wait(3600)

    waiter = threading.Thread(target=waiting, daemon=True)
    waiter.start()
    waiter.join(30)
    assert stop.came
    assert not waiter.is_alive()


def test_a_signal_wakes_everybody_who_waits_for_one():
    stop = StopSignal()
    waiters = [threading.Thread(target=stop.wait, args=(3600,), daemon=True) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    stop.give()
    for waiter in waiters:
        waiter.join(30)
    assert not any(waiter.is_alive() for waiter in waiters)


@for_each("wrap", [lambda judge: judge, lambda judge: judge.with_retry()])
def test_a_run_keeps_the_limit_of_its_judge_unless_it_has_one(wrap):
    judge = create_rubric_judge("local", rubric="Is it kind?")
    for own, given, most in ((None, None, 4), (2, None, 2), (2, 3, 3), (30, None, 30)):
        bound = judge.with_config(max_concurrency=own) if own else judge
        limits = CallLimits(max_concurrency=given)
        assert limiter_of(wrap(bound), limits).max_in_flight == most


async def test_a_call_in_flight_counts_as_the_mean_of_the_replies_against_a_limit_of_dollars():
    limiter = CallLimiter(8, max_dollars=1.0)
    calls = [asyncio.ensure_future(limiter.enter()) for _ in range(8)]

    async def let_in():
        for _ in range(5):
            await asyncio.sleep(0)
        return sum(call.done() for call in calls)

    paid = TokenUsage(1)
    assert await let_in() == 1  # nobody knows yet what a call costs
    limiter.leave(paid, 0.3, spent=0.3)
    assert await let_in() == 4  # with 0.3 spent, three in flight may bring 0.9 more
    for _ in range(3):
        limiter.leave(paid, 0.3, spent=0.3)
    assert await let_in() == 8
    assert [type(call.exception()) for call in calls] == [type(None)] * 4 + [OverBudget] * 4
