"""Replies that were paid for: written down before they are used, and paid for once."""

import asyncio
import contextlib
import json
import random
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import ModelAuthenticationError
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_judges import ajudge_many, create_bsm_judge, create_relative_judge, judge_many
from langchain_judges.asking import reply_log
from langchain_judges.asking.reply_log import _STORES, ReplyStore, ScopeReplies, json_text
from langchain_judges.errors import ModelAccessError, OutputError
from langchain_judges.runs import results
from langchain_judges.runs.results import Results
from tests.cases import for_each
from tests.fakes import FakeChatModel, goods, judged_by
from tests.model_server import pairs
from tests.processes import wait_until
from tests.test_runs import collect

KINDS = pytest.mark.parametrize("kind", ["sync", "async"])
THREAD: Any = {"configurable": {"thread_id": "t"}}


class LateSaver(InMemorySaver):
    """Has not written a branch's result when the process dies."""

    def put_writes(self, config, writes, task_id, task_path=""):
        pass


def invoke(judge, row, kind):
    if kind == "sync":
        return judge.invoke(row, THREAD)
    return asyncio.run(judge.ainvoke(row, THREAD))


@KINDS
def test_a_kill_before_the_checkpoint_is_written_costs_no_finished_call(kind):
    answered, answer = Counter[str](), judged_by(goods)
    alive: list[int] = []

    def respond(prompt):
        if "how much Tone" in prompt and not alive:
            return ModelAuthenticationError("the end of this process")
        answered[prompt] += 1
        return answer(prompt)

    criteria = [f"{name}: how much {name}" for name in ("Depth", "Clarity", "Tone")]
    judge = create_bsm_judge(
        FakeChatModel(replies=respond), criteria=criteria, orders="none", checkpointer=LateSaver()
    ).with_config(max_concurrency=1)  # Tone comes last
    with pytest.raises(ModelAccessError):
        invoke(judge, pairs(1)[0], kind)
    assert answered.total() == 2
    alive.append(True)
    verdict = invoke(judge, None, kind)["verdict"]
    assert set(answered.values()) == {1}
    # What the store held counts as paid in the verdict: three calls of 7 + 3 tokens.
    assert (verdict["usage"]["calls"], verdict["usage"]["input_tokens"]) == (3, 21)


@KINDS
def test_calls_beside_the_one_whose_key_is_revoked_come_back_and_are_paid_once(kind):
    answered, answer = Counter[str](), judged_by(goods)
    calls, revoked, good_key = iter(range(100)), threading.Event(), threading.Event()
    waiting = threading.Semaphore(0)

    def respond(prompt):
        number = next(calls)
        if not good_key.is_set() and number in {5, 6}:
            waiting.release()
            revoked.wait()
        if not good_key.is_set() and number == 7:
            waiting.acquire()
            waiting.acquire()
            revoked.set()
            return ModelAuthenticationError("revoked")
        answered[prompt] += 1
        return answer(prompt)

    judge = create_bsm_judge(FakeChatModel(replies=respond), checkpointer=InMemorySaver())
    with pytest.raises(ModelAccessError):
        judged(judge, kind)
    good_key.set()
    assert judged(judge, kind)[0]["verdict"]["preference"] == "A"
    # A plan and ten solves.
    assert (len(answered), set(answered.values())) == (11, {1})


def judged(judge, kind):
    settings: dict[str, Any] = {"max_concurrency": 3, "progress": False}
    if kind == "sync":
        return list(judge_many(judge, pairs(1), **settings))

    async def work():
        return [row async for row in ajudge_many(judge, pairs(1), **settings)]

    return asyncio.run(work())


@KINDS
def test_of_a_row_that_was_not_judged_only_what_failed_is_asked_again(kind):
    requests, usable, answer = Counter[str](), threading.Event(), judged_by(goods)

    def respond(prompt):
        requests[prompt] += 1
        return answer(prompt) if "how much Depth" in prompt or usable.is_set() else "no"

    judge = create_bsm_judge(
        FakeChatModel(replies=respond),
        criteria=["Depth: how much Depth", "Tone: how much Tone"],
        orders="none",
        repairs=0,
        checkpointer=InMemorySaver(),
    )
    assert judged(judge, kind)[0]["verdict"]["preference"] is None
    usable.set()
    assert judged(judge, kind)[0]["verdict"]["preference"] == "A"
    # Depth once, Tone twice.
    assert sorted(requests.values()) == [1, 2]


@KINDS
def test_a_kill_before_a_repair_costs_the_repair_alone(tmp_path, kind):
    paid, answer = Counter[str](), judged_by(goods)
    good_key: list[int] = []

    def respond(prompt):
        is_repair = "That reply cannot be used" in prompt
        if is_repair and not good_key:
            return ModelAuthenticationError("revoked")
        paid[prompt] += 1
        return answer(prompt) if is_repair else "no"

    judge = create_bsm_judge(FakeChatModel(replies=respond), criteria=["Depth: how much Depth"])
    settings = {"records": tmp_path / "o.jsonl", "max_concurrency": 1}
    with pytest.raises(ModelAccessError):
        collect(judge, pairs(1), kind, **settings)
    good_key.append(1)
    [row], _ = collect(judge, pairs(1), kind, **settings)
    # One criterion in two orders, and a repair of each.
    assert sorted(paid.values()) == [1] * 4
    assert row["verdict"]["usage"]["calls"] == 4


@KINDS
def test_a_run_that_was_stopped_pays_for_no_reply_of_an_unfinished_row_again(tmp_path, kind):
    answered, answer = Counter[str](), judged_by(goods)
    good_key: list[int] = []

    def respond(prompt):
        if answered.total() == 5 and not good_key:
            return ModelAuthenticationError("revoked")
        answered[prompt] += 1
        return answer(prompt)

    judge = create_bsm_judge(FakeChatModel(replies=respond), criteria=["Depth", "Tone"])
    settings = {"records": tmp_path / "o.jsonl", "max_concurrency": 1}
    with pytest.raises(ModelAccessError):
        collect(judge, pairs(2), kind, **settings)
    assert len(list(tmp_path.iterdir())) == 2
    good_key.append(1)
    rows, _ = collect(judge, pairs(2), kind, **settings)
    # Two criteria in two orders for each of two rows; what came before the end counts too.
    assert (len(answered), set(answered.values())) == (8, {1})
    assert [row["verdict"]["usage"]["calls"] for row in rows] == [4, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]


def kept(path, **values):
    """An open store that holds values of the scope `row`."""
    store = ReplyStore(path)
    for key, value in values.items():
        store.keep("row", key, value)
    return store


def test_threads_that_keep_at_the_same_time_share_a_write(tmp_path):
    store, writes = ReplyStore(tmp_path / "r"), list[str]()
    store._file.set_trace_callback(writes.append)
    with ThreadPoolExecutor(8) as pool:
        with store._using:  # nobody can write
            threads = [pool.submit(store.keep, "row", str(n), n) for n in range(8)]
            wait_until(lambda: len(store._group.changes) == 8)
        for each in threads:
            each.result()
    assert writes.count("COMMIT") == 1
    assert len(dict(store.entries("row"))) == 8


@pytest.mark.whole
@KINDS
def test_a_row_is_looked_up_once_and_what_it_brings_is_written_once(tmp_path, monkeypatch, kind):
    done, connected, write = Counter[str](), reply_log._connected, results.write_whole

    def traced(*path, **how):
        file = connected(*path, **how)
        file.set_trace_callback(lambda statement: done.update([statement[:11]]))
        return file

    def written(file, line):
        done["line"] += 1
        write(file, line)

    monkeypatch.setattr(reply_log, "_connected", traced)
    monkeypatch.setattr(results, "write_whole", written)
    judge = create_relative_judge(FakeChatModel(replies=judged_by(goods)))
    for options in ({"records": tmp_path / "o.jsonl"}, {"out": tmp_path / "o.csv"}):
        done.clear()
        collect(judge, pairs(70), kind, **options)
        # Each row: one look at what a killed run has left, two replies, one result. Replies are
        # forgotten after 64 rows and in the end; then what rows share is forgotten too.
        kinds = {"SELECT key,": 70, "INSERT OR R": 140, "DELETE FROM": 2 + 1, "line": 70}
        assert {name: done[name] for name in kinds} == kinds, options


SCOPES = ["a", "a\0b", "\0", "a\0", "a'b", '"', "%", "é", "a\n"]


@for_each("gone", SCOPES)
def test_a_scope_of_any_name_is_forgotten_and_no_other(gone):
    store = ReplyStore(None)
    for scope in SCOPES:
        store.keep(scope, "k", 1)
    store.forget(gone)
    assert sorted(store.scopes()) == sorted({*SCOPES} - {gone})
    store.forget(*SCOPES)
    assert store.scopes() == []


def test_a_damaged_reply_is_set_aside_and_asked_for_again(tmp_path, caplog):
    kept(tmp_path / "r", good="x", bad="y").close()
    with closing(sqlite3.connect(tmp_path / "r", isolation_level=None)) as file:
        file.execute("UPDATE replies SET value = '999' WHERE key = 'bad'")
    store = ReplyStore(tmp_path / "r")
    assert dict(store.entries("row")) == {"good": "x"}
    assert "A damaged reply" in caplog.text
    assert ScopeReplies(store, "row").find("good") == "x"
    assert ScopeReplies(store, "row").find("bad") is None


@pytest.mark.parametrize("seed", range(8))
def test_one_changed_byte_neither_raises_nor_changes_a_reply(tmp_path, seed, caplog):
    values = {f"key {n}": f"value {n} " * 20 for n in range(30)}
    kept(tmp_path / "r", **values).close()
    data, places = bytearray((tmp_path / "r").read_bytes()), random.Random(seed)
    data[places.randrange(len(data))] ^= places.randrange(1, 256)
    (tmp_path / "r").write_bytes(data)
    store = ReplyStore(tmp_path / "r")
    entries = dict(store.entries("row"))
    assert entries.items() <= values.items()
    store.keep("row", "new", 1)
    assert dict(store.entries("row"))["new"] == 1
    # What is gone was named, or belongs to a scope that nobody has.
    assert len(entries) == 30 or "amaged" in caplog.text or len(store.scopes()) > 1


def test_a_file_whose_damaged_words_sqlite_cannot_name_is_set_aside(tmp_path, caplog):
    kept(tmp_path / "r", key="value").close()
    data = (tmp_path / "r").read_bytes()
    assert b"CREATE TABLE replies" in data
    (tmp_path / "r").write_bytes(data.replace(b"CREATE TABLE r", b"CREATE TABL\xc6 r"))
    assert ReplyStore(tmp_path / "r").scopes() == []
    assert "moved to r.damaged" in caplog.text


def test_a_run_whose_store_could_not_be_opened_holds_no_file(tmp_path):
    out, judge = tmp_path / "o.jsonl", create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    store = tmp_path / f"{Results.prefix_of(out)}replies"
    store.mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        list(judge_many(judge, pairs(2), records=out, progress=False))
    store.rmdir()
    assert len(list(judge_many(judge, pairs(2), records=out, progress=False))) == 2


def test_a_store_that_cannot_be_read_at_its_end_is_free_again(tmp_path):
    store = ReplyStore(tmp_path / "r")
    store._file.execute("DROP TABLE replies")  # a full disk lets nothing be read either
    with pytest.raises(OutputError, match="no such table"):
        store.close()
    with closing(ReplyStore(tmp_path / "r")) as again:
        again.keep("row", "key", 1)


async def test_replies_of_a_thread_stand_beside_its_checkpoints(tmp_path, monkeypatch):
    path = str(tmp_path / "s.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        create_bsm_judge(FakeChatModel(), checkpointer=saver).invoke(pairs(1)[0], THREAD)
        assert _STORES[saver].path == tmp_path / "s.sqlite.replies"
    async with AsyncSqliteSaver.from_conn_string(path) as later:
        judge = create_bsm_judge(FakeChatModel(), checkpointer=later)
        await judge.ainvoke(pairs(1)[0], THREAD)
        assert _STORES[later].path == tmp_path / "s.sqlite.replies"
    # Other checkpointers have the file that the environment names, if it names one.
    for name in (None, tmp_path / "r"):
        if name:
            monkeypatch.setenv("JUDGES_REPLIES", str(name))
        memory = InMemorySaver()
        create_bsm_judge(FakeChatModel(), checkpointer=memory).invoke(pairs(1)[0], THREAD)
        assert _STORES[memory].path == name


class Planner:
    """Plans another criterion each time it is asked, and refuses access after some calls."""

    def __init__(self):
        self.names, self.most = iter(("Depth", "Clarity", "Tone", "Wit")), 100
        self.answer = judged_by(goods)

    def __call__(self, prompt):
        self.most -= 1
        if self.most < 0:
            return ModelAuthenticationError("the end of this process")
        if '"criteria"' in self.answer(prompt):
            return {"criteria": [{"name": next(self.names), "description": "it"}]}
        return self.answer(prompt)


def judged_anew(replies, rows, kind, **options):
    """Judge as a process of its own, which remembers nothing but what is in its files."""
    judge = create_bsm_judge(FakeChatModel(replies=replies), max_criteria=1)
    options = {**options, "progress": False, "max_concurrency": 1, "open_rows": 1}
    return collect(judge, rows, kind, **options)[0]


@KINDS
@pytest.mark.parametrize("calls", range(8))
def test_a_stop_changes_neither_the_plan_nor_the_cost_of_the_rows_after_it(tmp_path, kind, calls):
    model, records = Planner(), tmp_path / "r.jsonl"
    rows = [{**row, "input": "Why?"} for row in pairs(3)]
    model.most = calls
    with contextlib.suppress(ModelAccessError):
        judged_anew(model, rows, kind, records=records)
    model.most = 100
    results = judged_anew(model, rows, kind, records=records)
    assert [row["verdict"]["usage"]["calls"] for row in results] == [3, 2, 2]
    assert {each["name"] for row in results for each in row["criteria"]} == {"Depth"}
    assert model.most == 100 - (7 - calls)
    assert [each.name for each in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("calls", range(1, 7))
def test_a_run_that_keeps_results_finds_what_its_checkpointer_alone_had_kept(tmp_path, calls):
    model, rows = Planner(), [{**row, "input": "Why?"} for row in pairs(3)]
    model.most = calls

    def judged(**options):
        with SqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
            judge = create_bsm_judge(
                FakeChatModel(replies=model), max_criteria=1, checkpointer=saver
            )
            options = {**options, "max_concurrency": 1, "open_rows": 1, "progress": False}
            return list(judge_many(judge, rows, **options))

    with contextlib.suppress(ModelAccessError):
        judged()
    model.most = 100
    results = judged(records=tmp_path / "r.jsonl")
    assert model.most == 100 - (7 - calls)
    assert [row["verdict"]["usage"]["calls"] for row in results] == [3, 2, 2]


@KINDS
def test_a_reply_is_in_the_log_before_a_slow_cache_is_waited_for(kind, tmp_path):
    stored = []

    class Slow(InMemoryCache):
        def update(self, prompt, llm_string, value):
            store = ReplyStore(tmp_path / "s.replies", shared=True)
            stored.append([key for scope in store.scopes() for key, _ in store.entries(scope)])
            super().update(prompt, llm_string, value)

    def judge(saver):
        model = FakeChatModel(replies=judged_by(goods))
        return create_bsm_judge(model, criteria=["Depth"], cache=Slow(), checkpointer=saver)

    async def later():
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "s")) as saver:
            await judge(saver).ainvoke(pairs(1)[0], THREAD)

    if kind == "async":
        asyncio.run(later())
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "s")) as saver:
            judge(saver).invoke(pairs(1)[0], THREAD)
    assert [len(keys) > n for n, keys in enumerate(stored)] == [True, True]


# With the first half of a character: beside a second half it would be a whole one.
TEXTS = st.lists(st.sampled_from('aé€😀\0\n"\\\ud83d'), max_size=8).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS


@given(st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(TEXTS, each)))
def test_any_plain_data_is_read_back_as_it_was_written(data):
    assert json.loads(json_text(data)) == data
