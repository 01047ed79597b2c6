"""Calls in flight as jobs of a batch API: what is sent, what is paid, what is found again."""

import asyncio
import json
import re
import threading
from functools import partial
from types import SimpleNamespace
from unittest.mock import AsyncMock, MagicMock

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typer.testing import CliRunner

from langchain_judges import (
    ajudge_many,
    create_bsm_judge,
    create_relative_judge,
    resolve_model,
)
from langchain_judges.asking import batches
from langchain_judges.asking.batches import PASSING, AnthropicJobs, Batcher, Job, batch_model
from langchain_judges.asking.reply_log import ReplyStore, key_of
from langchain_judges.cli import app
from langchain_judges.errors import ModelAccessError, OptionError
from langchain_judges.runs import many
from tests.batch_server import BatchServer
from tests.fakes import FakeChatModel, goods, judged_by
from tests.judges import answer, of_method

LONG = 3600.0
"""Seconds that no test waits: jobs are sent when they are full."""


def judged(body):
    if body["messages"][0]["content"] == "Hello":
        return "Hi"
    form = json.dumps(body.get("response_format"))
    return answer("\n".join(message["content"] for message in body["messages"]) + form)


def model_of(server, tmp_path, most_requests, **options):
    chat = ChatOpenAI(
        model="m", base_url=server.address, api_key=SecretStr("a-key"), use_responses_api=False
    )
    return batch_model(
        chat,
        tmp_path / "journal.sqlite",
        quiet=LONG,
        poll=0.01,
        most_requests=most_requests,
        **options,
    )


def planned(body):
    return judged_by(goods)("\n".join(message["content"] for message in body["messages"]))


def rows_of(n):
    pair = {"input": "Why?", "output_b": "bad"}
    return [{**pair, "output_a": f"good {i}", "id": f"r{i}"} for i in range(n)]


async def run(judge, rows, **options):
    options = {"max_concurrency": 1000, "progress": False, **options}
    return [row async for row in ajudge_many(judge, rows, **options)]


@pytest.fixture
def server():
    with BatchServer(judged) as server:
        yield server


def relative(model):
    return create_relative_judge(model, orders="none")


async def test_all_rows_wait_at_the_same_step_so_rounds_form_by_themselves(server, tmp_path):
    # Branch-Solve-Merge with two criteria in two orders: 4 solves for each of 5 rows.
    judge = of_method("bsm", model_of(server, tmp_path, 20))
    rows = await run(judge, rows_of(5))
    assert [row["verdict"]["preference"] for row in rows] == ["A"] * 5
    assert server.requests == [20]


async def test_what_rows_of_one_task_share_is_asked_once_and_first(tmp_path):
    with BatchServer(planned) as server:
        judge = create_bsm_judge(model_of(server, tmp_path, 1), max_criteria=1)
        rows = await run(judge, rows_of(2))
        asked = [server.lines(job["input_file_id"]) for job in server.jobs.values()]
    assert [row["judged"] for row in rows] == [True] * 2
    bodies = [json.dumps(line["body"]) for lines in asked for line in lines]
    assert len(set(bodies)) == len(bodies)
    # To who plans no answer is shown.
    shared = [re.search(r"good \d", body) is None for body in bodies]
    assert shared[0]
    assert shared == sorted(shared, reverse=True)


async def test_a_run_that_was_killed_finds_its_job_and_sends_nothing_twice(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(many, "GRACE", 0.0)
    server.hold.clear()
    arrival = threading.Event()
    first = relative(model_of(server, tmp_path, 6, report=lambda _: arrival.set()))
    task = asyncio.create_task(run(first, rows_of(6)))
    await asyncio.to_thread(arrival.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    server.hold.set()
    again = relative(model_of(server, tmp_path, 6))
    rows = await run(again, rows_of(6))
    assert [row["judged"] for row in rows] == [True] * 6
    assert server.requests == [6]


async def test_a_job_that_was_made_without_an_answer_is_found_by_its_mark(server, tmp_path):
    server.drop_made = 1
    rows = await run(relative(model_of(server, tmp_path, 3)), rows_of(3))
    assert [row["judged"] for row in rows] == [True] * 3
    assert server.requests == [3]


async def test_a_job_that_was_only_intended_is_sent(server, tmp_path):
    rows = rows_of(2)
    server.refuse = 401
    with pytest.raises(ModelAccessError):
        await run(relative(model_of(server, tmp_path, 2)), rows)
    server.refuse = None
    again = await run(relative(model_of(server, tmp_path, 2)), rows)
    assert [row["judged"] for row in again] == [True, True]
    assert server.requests == [2]


async def test_of_an_expired_job_what_was_answered_is_used_and_the_rest_asked_again(tmp_path):
    ends = ["expired", "completed"]
    with BatchServer(judged, lambda number: ends[number]) as server:
        chat = model_of(server, tmp_path, 4)
        task = asyncio.create_task(run(relative(chat), rows_of(4)))
        # Two are asked again; they are fewer than a job holds, so two more rows fill it.
        more = asyncio.create_task(run(relative(chat), rows_of(6)[4:]))
        rows = [*await task, *await more]
    assert [row["judged"] for row in rows] == [True] * 6
    assert sum(server.requests) == 8


async def test_one_request_that_fails_costs_its_row(tmp_path):
    def answer(body):
        return 400 if "good 1" in str(body) else judged(body)

    with BatchServer(answer) as server:
        rows = await run(relative(model_of(server, tmp_path, 3)), rows_of(3))
    assert [row["judged"] for row in rows] == [True, False, True]
    assert "it failed" in rows[1]["verdict"]["failures"][0]["detail"]


async def test_the_same_request_twice_is_two_requests(server, tmp_path):
    chat = model_of(server, tmp_path, 2)
    await asyncio.gather(chat.ainvoke("Hello"), chat.ainvoke("Hello"))
    assert server.requests == [2]
    chat = model_of(server, tmp_path, 2)
    await asyncio.gather(chat.ainvoke("Hello"), chat.ainvoke("Hello"))
    assert server.requests == [2]


@pytest.mark.system  # its client takes seconds to load
async def test_a_judge_s_calls_are_jobs_of_anthropic_s(server, tmp_path):
    anthropic = pytest.importorskip("langchain_anthropic")
    url = server.address.removesuffix("/v1")
    chat = anthropic.ChatAnthropic(model="m", base_url=url, api_key=SecretStr("a-key"))
    model = batch_model(
        chat, tmp_path / "journal.sqlite", quiet=LONG, poll=0.01, most_requests=2
    )
    # What a batch answers with 503 was asked in three jobs: its client must not ask again.
    assert [getattr(model, name).max_retries for name in ("_client", "_async_client")] == [0, 0]
    rows = await run(relative(model), rows_of(2))
    assert sum(server.requests) >= 2
    assert [row["judged"] for row in rows] == [True, True], rows[0]["verdict"]["failures"]


def test_only_two_protocols_have_batches(tmp_path):
    with pytest.raises(OptionError, match="OpenAI's or Anthropic's protocol"):
        batch_model(FakeChatModel(), tmp_path / "journal")


def test_a_key_stands_nowhere_on_disk(server, tmp_path):
    chat = model_of(server, tmp_path, 1)
    chat.invoke("Hello")
    assert not any(b"a-key" in path.read_bytes() for path in tmp_path.iterdir())
    assert resolve_model(chat) is chat


def command(server, tmp_path, *arguments):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in rows_of(3)))
    out = ["--records", str(tmp_path / "out.jsonl")]
    options = ["--method", "relative", "--model", "m", "--base-url", server.address]
    return CliRunner().invoke(app, ["judge", str(rows), *options, *out, *arguments])


def test_the_command_asks_by_jobs_and_remembers_them(server, tmp_path, monkeypatch):
    small = partial(batch_model, quiet=LONG, poll=0.01, most_requests=6)
    monkeypatch.setattr(batches, "batch_model", small)
    result = command(server, tmp_path, "--batch")
    assert (result.exit_code, server.requests) == (0, [6])  # three rows in two orders
    assert "Job batch_0: completed" in result.stderr
    (tmp_path / "out.jsonl").unlink()
    assert command(server, tmp_path, "--batch").exit_code == 0
    assert server.requests == [6]


def test_what_anthropic_s_job_did_not_answer_is_asked_again_and_what_it_refused_is_not():
    def status(**result):
        return AnthropicJobs(MagicMock()).read({"custom_id": "k", "result": result})[1]

    overloaded = {"error": {"type": "overloaded_error", "message": "busy"}}
    refused = {"error": {"type": "invalid_request_error", "message": "no such field"}}
    left = [
        status(type="expired"),
        status(type="canceled"),
        status(type="errored", **overloaded),
    ]
    assert set(left) <= PASSING
    assert status(type="errored", **refused) == 400


class FewJobs:
    """A batch API of which a test says what each look and each job brings."""

    def __init__(self, looks, results):
        self.looks, self.brought, self.made = iter(looks), results, []

    async def upload(self, endpoint, requests):
        return {"keys": list(requests)}

    async def make(self, content, mark):
        self.made += content["keys"]
        return "new"

    async def look(self, name):
        if error := next(self.looks, None):
            raise error
        return Job(name, "completed", 0, ended=True)

    async def results(self, job):
        for line in self.brought[job.name]:
            yield await line() if callable(line) else line


def in_a_job(tmp_path, jobs, texts):
    """Return what asks for texts that an earlier run has put into a job, and their keys."""
    store = ReplyStore(tmp_path / "journal.sqlite", shared=True)
    path = "/v1/chat/completions"
    keys = [f"{key_of(path, {'text': text})}-1" for text in texts]
    store.keep("mark", "job", {"keys": keys, "name": "old"})
    batcher = Batcher(jobs, store, LONG, 0.0, 1, None)

    def ask(text):
        content = json.dumps({"text": text}).encode()
        request = SimpleNamespace(url=SimpleNamespace(path=path), content=content)
        return batcher.ask(request)

    return ask, keys


async def test_who_asks_while_results_are_read_gets_an_answer_too(tmp_path):
    asked = []

    async def meanwhile():
        asked.append(ask("refused"))
        for _ in range(5):  # until it stands among those that wait
            await asyncio.sleep(0)
        return keys[1], 200, {"n": 1}

    jobs = FewJobs([], {"old": [], "new": []})
    ask, keys = in_a_job(tmp_path, jobs, ["refused", "good"])
    jobs.brought["old"] += [(keys[0], 400, {}), meanwhile]
    jobs.brought["new"] += [(keys[0], 200, {"n": 2})]
    assert (await asyncio.to_thread(ask("good").result, 20)).body == {"n": 1}
    assert (await asyncio.to_thread(asked[0].result, 20)).body == {"n": 2}
    assert jobs.made == [keys[0]]


class OverloadedError(Exception):
    status_code = 503


def test_a_job_that_could_not_be_looked_at_is_looked_at_again_and_not_paid_again(tmp_path):
    jobs = FewJobs([ConnectionError("down"), OverloadedError()], {"old": []})
    ask, keys = in_a_job(tmp_path, jobs, ["one", "two"])
    jobs.brought["old"] += [(key, 200, {}) for key in keys]
    with pytest.raises(ConnectionError):
        ask("one").result(20)
    assert ask("one").result(20).status == 503
    assert [ask(text).result(20).status for text in ("one", "two")] == [200, 200]
    assert not jobs.made


def test_a_mark_that_ends_lines_elsewhere_is_text_in_a_reply(tmp_path):
    text = "first\u2028second\x85third"
    with BatchServer(lambda _: text) as server:
        assert model_of(server, tmp_path, 1).invoke("Hello").text == text


async def test_a_job_whose_results_the_provider_has_no_more_brings_none():
    shown = SimpleNamespace(succeeded=1)
    job = SimpleNamespace(processing_status="ended", results_url=None, request_counts=shown)
    client = MagicMock()
    client.messages.batches.retrieve = AsyncMock(return_value=job)
    jobs = AnthropicJobs(client)
    assert [line async for line in jobs.results(await jobs.look("old"))] == []
    client.messages.batches.results.assert_not_called()
