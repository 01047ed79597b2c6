"""What comes over the wire is bounded, whatever a server sends."""

import asyncio
import json
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_judges import create_rubric_judge
from langchain_judges.asking import bodies, send
from langchain_judges.asking.bodies import client_of_loop, client_of_threads
from langchain_judges.errors import ModelAccessError
from langchain_judges.testing import reply
from tests.loopback import Handler, listening
from tests.test_growth import work

ITEM = {"input": "Why?", "output": "So."}
MEGABYTE = b" " * 1_000_000


@cache
def packed(megabytes):
    """White space of so many megabytes, which gzip makes a thousandth of, and a verdict."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(MEGABYTE) for _ in range(megabytes)]
    verdict = json.dumps(reply('{"explanation": "x", "label": "1"}').payload)
    return b"".join([*parts, packer.compress(verdict.encode()), packer.flush()])


def judged(answer, encoding="gzip", way="invoke", status=200, judges=1):
    """The verdict on an answer of a server on loopback, and the connections to it."""
    connections = set()

    class Packed(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            connections.add(self.client_address)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-encoding", encoding)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with listening(Packed) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), max_retries=0)
        for _ in range(judges):
            judge = create_rubric_judge(model, rubric="Good?")
            result = asyncio.run(judge.ainvoke(ITEM)) if way == "ainvoke" else judge.invoke(ITEM)
        return result["verdict"] | {"connections": len(connections)}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_no_more_than_the_bound_is_unpacked(way, monkeypatch):
    monkeypatch.setattr(send, "ATTEMPTS", 1)
    monkeypatch.setattr(bodies, "MOST_BYTES", 8_000_000)
    assert judged(packed(4), way=way)["label"] == 1
    bomb = packed(100)
    tracemalloc.start()
    try:
        verdict = judged(bomb, way=way)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (verdict["label"], verdict["failures"][0]["reason"]) == (None, "provider_error")
    assert "more than 8,000,000 bytes" in verdict["failures"][0]["detail"]
    assert most < 40_000_000


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "zstd"])
def test_what_is_packed_otherwise_is_refused(encoding, monkeypatch):
    monkeypatch.setattr(send, "ATTEMPTS", 1)
    (failure,) = judged(packed(0), encoding)["failures"]
    assert encoding in failure["detail"]


@pytest.mark.parametrize("encoding", ["utf-8", "", "x", "deflate"])
def test_what_a_client_would_read_is_read(encoding):
    verdict = json.dumps(reply('{"explanation": "x", "label": "1"}').payload).encode()
    answer = zlib.compress(verdict) if encoding == "deflate" else verdict
    assert judged(answer, encoding)["label"] == 1


@pytest.mark.parametrize("encoding", ["br", "gzip"])
def test_a_status_counts_however_its_body_is_packed(encoding):
    with pytest.raises(ModelAccessError):
        judged(b"no gzip", encoding, status=401)


def test_judges_in_threads_share_connections():
    assert judged(packed(0), judges=5)["connections"] == 1


def test_a_damaged_packing_costs_the_row_alone(monkeypatch):
    monkeypatch.setattr(send, "ATTEMPTS", 1)
    (failure,) = judged(b"no gzip")["failures"]
    assert "Error -3" in failure["detail"]


def test_certificates_are_read_once_for_all_judges_and_loops():
    bodies.certificates.cache_clear()
    bodies.client_of_threads.cache_clear()
    for way in ("invoke", "invoke", "ainvoke", "ainvoke"):
        judged(packed(0), way=way)
    assert bodies.certificates.cache_info()[:2] == (2, 1)  # hits, misses


class Together(Handler):
    """Answers where as many ask at once as its gate waits for, and keeps their connections."""

    protocol_version = "HTTP/1.1"
    gate: threading.Barrier
    ends: threading.Semaphore

    def do_POST(self):
        self.gate.wait()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def finish(self):
        super().finish()
        self.ends.release()


def together(many):
    fields = {"gate": threading.Barrier(many), "ends": threading.Semaphore(0)}
    return type("TogetherNow", (Together,), fields)


def one_more_request(many, client):
    """The lines that a request runs, while so many connections of its client are kept."""
    handler = together(many)
    with listening(handler) as server, asyncio.Runner() as loop:
        url = f"http://127.0.0.1:{server.server_port}/"

        async def ask(times, model):
            await asyncio.gather(*(model.post(url) for _ in range(times)))

        async def made():
            return client()

        model = loop.run(made())
        loop.run(ask(many, model))
        handler.gate = threading.Barrier(1)
        return work(lambda: loop.run(ask(1, model)))


def test_a_request_takes_as_long_however_many_connections_are_kept():
    assert one_more_request(16, client_of_loop) < 1.2 * one_more_request(2, client_of_loop)


def test_who_sets_a_cookie_gets_it_back_by_whichever_client_asks_next():
    seen = []

    class Cookies(Handler):
        def do_POST(self):
            seen.append(self.headers["cookie"])
            self.send_response(200)
            self.send_header("set-cookie", "place=7")
            self.end_headers()

    with listening(Cookies) as server:
        client = client_of_threads()
        for _ in range(2):
            client.post(f"http://127.0.0.1:{server.server_port}/")
    client.cookies.clear()
    assert seen == [None, "place=7"]


def test_what_many_at_once_left_open_is_closed_by_who_asks_later(monkeypatch):
    monkeypatch.setattr(bodies, "_KEPT", -1.0)
    handler = together(3)
    with listening(handler) as server, ThreadPoolExecutor(3) as threads:
        url, client = f"http://127.0.0.1:{server.server_port}/", client_of_threads.__wrapped__()
        assert [each.status_code for each in threads.map(client.post, [url] * 3)] == [200] * 3
        handler.gate = threading.Barrier(1)
        client.post(url)
        assert [handler.ends.acquire(timeout=60) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("many", [1, 3])
def test_an_answer_that_is_read_part_by_part_is_whole_whoever_asks_meanwhile(many, monkeypatch):
    monkeypatch.setattr(bodies, "_KEPT", -1.0)

    class Whole(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.send_response(200)
            self.send_header("content-length", "2000000")
            self.end_headers()
            self.wfile.write(MEGABYTE * 2)

    async def read(url):
        client = client_of_loop()
        async with client.stream("POST", url) as answer:
            for _ in range(many):
                await asyncio.gather(client.post(url), client.post(url))
            return len(await answer.aread())

    with listening(Whole) as server:
        assert asyncio.run(read(f"http://127.0.0.1:{server.server_port}/")) == 2_000_000
