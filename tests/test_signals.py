"""After a signal nothing more is asked: every command, graph and way, counted at the server."""

import json
import os
import signal
import threading
from dataclasses import replace

import httpx
import pytest

from tests.attacks.matrix import Case, tried
from tests.judges import answer_call
from tests.planners import planning
from tests.processes import start, wait_until

pytestmark = pytest.mark.system

PAIRS = [
    {"input": f"Why {n}?", "output_a": f"good good {n}", "output_b": f"bad {n}"} for n in range(12)
]
GRAPH = """
import signal, sys
from langchain_openai import ChatOpenAI
from langchain_judges import create_allure_audit, load_judge
from langchain_judges.methods import create_jury
from tests.judges import FEW, ITEM, PAIR
from tests.memories import memory_of
from tests.planners import planning

def caught(*_):
    print("caught", flush=True)
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, caught)
url, what = sys.argv[1:]
model = ChatOpenAI(model="fake", base_url=url, api_key="x", use_responses_api=False)
some = {"max_concurrency": 2}
if what == "audit":
    some |= {"max_rounds": 1, "auditor": lambda _: "reject"}
    create_allure_audit(model, memory_of(), **some).invoke({"items": planning(6)})
elif what == "batch":
    pairs = [PAIR | {"input": str(n)} for n in range(12)]
    load_judge("relative", model, orders="none").batch(pairs, some)
elif what == "jury":
    # One request at a time of each member: the limit is one of each graph.
    members = [load_judge("relative", model, orders="none", name=each) for each in "abcdef"]
    create_jury(members).invoke(PAIR, some)
else:
    each = {"drpe": {"voting": {"batch": False}}, "cot_sc": {"samples": 20}}
    more = {**FEW.get(what, {}), **each.get(what, {})}
    load_judge(what, model, **more).invoke(PAIR, some)
"""


THREADS = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from langchain_openai import ChatOpenAI
from langchain_judges import judge_many, load_judge
from tests.judges import PAIR

url, what = sys.argv[1:]
model = ChatOpenAI(model="fake", base_url=url, api_key="x", use_responses_api=False)
judge = load_judge("relative", model, orders="none")
pairs = [PAIR | {"input": str(n)} for n in range(12)]

def some(part):
    for pair in pairs[part::2]:
        judge.invoke(pair)

pool = ThreadPoolExecutor(2)
try:
    if what == "threads":
        threads = [threading.Thread(target=some, args=[part]) for part in range(2)]
        for thread in threads:
            thread.start()
        done = threading.Event()
        done.wait()
    elif what == "many":
        pool.submit(lambda: list(judge_many(judge, pairs, max_concurrency=2))).result()
    else:
        for future in [pool.submit(judge.invoke, pair) for pair in pairs]:
            future.result()
except KeyboardInterrupt:
    if what in ("left", "threads"):
        # Called when the main thread has ended, before it waits for the others.
        threading._register_atexit(lambda: print("caught", flush=True))
        raise
    print("caught", flush=True)
    pool.shutdown()
"""


HANDLER = """
import sys, threading
from langchain_openai import ChatOpenAI
from langchain_judges import load_judge
from tests.judges import PAIR

model = ChatOpenAI(model="fake", base_url=sys.argv[1], api_key="x", use_responses_api=False)
judge = load_judge("relative", model, orders="none")
asking = threading.Thread(target=judge.invoke, args=[PAIR], daemon=True)
try:
    asking.start()
    threading.Event().wait()
except KeyboardInterrupt:
    pairs = [PAIR | {"input": str(n)} for n in range(3)]
    for result in judge.batch(pairs):
        print(result["verdict"]["preference"], flush=True)
"""


class Held:
    """Answers one request, holds the others, and says when both lanes wait."""

    def __init__(self):
        self.held, self.release = threading.Event(), threading.Event()
        self.asked = 0
        self.lock = threading.Lock()

    def __call__(self, call):
        with self.lock:
            self.asked += 1
            if self.asked <= 1:
                return answer_call(call)
            if self.asked == 3:
                self.held.set()
        return replace(answer_call(call), hold=self.release)


def wait_held(script, program):
    """Wait until both lanes wait; a program that has ended will never ask."""
    wait_until(lambda: script.held.is_set() or program.poll() is not None, 60)
    assert script.held.is_set(), program.communicate()


GRAPHS = ["audit", "cot_sc", "sc2", "bsm", "drpe", "jury", "batch"]


@pytest.mark.parametrize(
    ("program", "what"),
    [(GRAPH, what) for what in GRAPHS]
    + [(THREADS, what) for what in ("joined", "left", "threads", "many")],
    ids=lambda value: {GRAPH: "graph", THREADS: "threads of a user"}.get(value, value),
)
def test_nothing_is_asked_after_ctrl_c(serve, program, what):
    script = Held()
    running = start("-c", program, serve(script).url, what)
    wait_held(script, running)
    running.send_signal(signal.SIGINT)
    assert "caught" in running.stdout.readline()
    before = script.asked
    script.release.set()
    _, errors = running.communicate()
    assert script.asked == before == 3
    if what == "threads":  # their lines mix; none is of LangGraph's steps
        assert "RunStopped" in errors
        assert "pregel/_" not in errors


def test_a_handler_of_ctrl_c_can_judge_in_threads(serve):
    asked, release = threading.Event(), threading.Event()

    def script(call):
        asked.set()
        return answer_call(call) if call.number else replace(answer_call(call), hold=release)

    program = start("-c", HANDLER, serve(script).url)
    wait_until(lambda: asked.is_set() or program.poll() is not None, 60)
    program.send_signal(signal.SIGINT)
    said, errors = program.communicate()
    release.set()
    assert said.split() == ["A"] * 3, errors


COMMANDS = {
    "judge": ("judge", "pairs.jsonl", "--method", "bsm", "--records", "o.jsonl"),
    "trust": ("trust", "pairs.jsonl", "--method", "relative"),
    "compare": ("compare", "answers.jsonl", "--systems", "a,b,c"),
    "compared methods": ("trust", "pairs.jsonl", "--method", "relative,bsm"),
    "write": ("write", "tasks.jsonl", "--records", "o.jsonl"),
    "audit": ("audit", "items.jsonl", "--memory", "memory"),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_asks_nothing_after_a_signal(serve, tmp_path, monkeypatch, command, number):
    monkeypatch.chdir(tmp_path)
    files = {
        "pairs": [{**pair, "label": "A"} for pair in PAIRS],
        "answers": [
            {"id": str(n), "input": f"Why {n}?", **{"a": "good", "b": "bad", "c": "so"}}
            for n in range(8)
        ],
        "tasks": [{"concepts": ["snow", "deck", "wine", str(n)]} for n in range(8)],
        "items": planning(6),
    }
    for name, rows in files.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    script = Held()
    model = ("--model", "fake", "--base-url", serve(script).url, "--concurrency", 2)
    program = start("-m", "langchain_judges.cli", *COMMANDS[command], *model)
    wait_held(script, program)
    program.send_signal(number)
    while "Stopping" not in (line := program.stderr.readline()):
        assert line, "it ended without a word"
    before = script.asked
    script.release.set()
    program.communicate()
    assert program.returncode == 130
    assert script.asked == before == 3


def said_without_a_reader(program):
    """What a program says to its end where nobody reads what it prints, as in `| head -1`."""
    program.stdout.close()
    with program.stderr:
        errors = program.stderr.read()
    wait_until(lambda: program.poll() is not None)
    return errors


@pytest.mark.parametrize("command", ["judge", "trust", "show"])
def test_a_broken_pipe_ends_a_command_quietly_and_nothing_is_paid_twice(
    serve, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps({**pair, "label": "A"}) + "\n" for pair in PAIRS[:4])
    (tmp_path / "pairs.jsonl").write_text(lines)
    server = serve(answer_call)
    model = ("--model", "fake", "--base-url", server.url) if command in COMMANDS else ()
    asked = []
    for _ in range(2):
        program = start("-m", "langchain_judges.cli", *COMMANDS.get(command, [command]), *model)
        errors = said_without_a_reader(program)
        assert program.returncode == 1
        assert "Traceback" not in errors
        assert "BrokenPipe" not in errors
        asked.append(len(server.calls))
    assert asked[0] == asked[1]
    assert bool(asked[0]) == bool(model)


def test_what_was_answered_on_a_page_is_there_after_a_signal(tmp_path):
    rows, out = tmp_path / "pairs.jsonl", tmp_path / "labels.jsonl"
    rows.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    for place, number in enumerate((signal.SIGTERM, signal.SIGHUP)):
        program = start("-m", "langchain_judges.cli", "view", rows, "-o", out)
        address = httpx.URL(program.stdout.readline().strip())
        sent = {"do": "say", "place": place, "name": "", "key": "1"}
        said = httpx.post(address.copy_with(path="/answer"), json=sent)
        assert said.status_code == 200
        program.send_signal(number)
        program.communicate()
        assert len(out.read_text().splitlines()) == place + 1


# A program of which the first argument is the terminal that it reads.
AT_A_TERMINAL = """
import os, runpy, sys
os.dup2(os.open(sys.argv.pop(1), os.O_RDWR), 0)
runpy.run_module("langchain_judges.cli", run_name="__main__", alter_sys=True)
"""
INTERRUPTS = [["SIGTERM"], ["SIGHUP"], ["SIGQUIT"], ["SIGINT"], ["SIGINT", "SIGINT"]]


def test_what_was_answered_at_a_terminal_is_there_after_any_signal(tmp_path):
    rows, out = tmp_path / "pairs.jsonl", tmp_path / "labels.jsonl"
    rows.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    keyboard, terminal = os.openpty()
    for answered, names in enumerate(INTERRUPTS, 1):
        program = start("-c", AT_A_TERMINAL, os.ttyname(terminal), "label", rows, "-o", out)
        for key in (b"1", b""):  # its next question comes when an answer is in the file
            while "resumes" not in (line := program.stderr.readline()):
                assert line, "it ended without a question"
            os.write(keyboard, key)
        for name in names:
            program.send_signal(signal.Signals[name])
        assert "Traceback" not in program.communicate()[1]
        labels = [json.loads(line) for line in out.read_text().splitlines()]
        assert len({each["input"] for each in labels}) == len(labels) == answered


def test_a_second_signal_leaves_at_once_with_one_sentence(serve, tmp_path):
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    script = Held()
    model = ("--model", "fake", "--base-url", serve(script).url, "--concurrency", 2)
    program = start("-m", "langchain_judges.cli", "judge", tmp_path / "p.jsonl", *model)
    wait_held(script, program)
    program.send_signal(signal.SIGINT)
    while "Stopping" not in (line := program.stderr.readline()):
        assert line, "it ended without a word"
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate()
    assert "Stopped at once" in errors
    assert program.returncode == 130


# With half a second for calls in flight instead of ten, and as much for the files.
SOON = "from langchain_judges import cli\nfrom langchain_judges.asking import ask\n"
SOON += "from langchain_judges.cli import messages\n"
SOON += "ask.GRACE = messages._LATE = 0.5\ncli.run()"


def test_a_reply_that_never_comes_keeps_no_command_alive(serve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(item) + "\n" for item in planning(6))
    (tmp_path / "items.jsonl").write_text(lines)
    script = Held()
    model = ("--model", "fake", "--base-url", serve(script).url, "--concurrency", 2)
    program = start("-c", SOON, *COMMANDS["audit"], *model)
    wait_held(script, program)
    program.send_signal(signal.SIGTERM)
    _, errors = program.communicate()  # the replies are held until it has ended
    script.release.set()
    assert "Stopped" in errors
    assert program.returncode == 130


# -- runs that are ended midway and resumed: `python -m tests.attacks.matrix` tries all


@pytest.mark.parametrize(
    "case",
    [
        Case("bsm", "out, threads", "kill -9"),
        Case("relative", "out, async", "Ctrl-C"),
        Case("relative", "out, async", "kill -9"),
        Case("relative", "checkpointer, threads", "kill -9"),
        Case("relative", "checkpointer, async", "kill -9"),
        Case("writer", "checkpointer, async", "cancellation"),
        Case("jury", "checkpointer, threads", "SIGTERM"),
        Case("bsm", "checkpointer alone, threads", "kill -9"),
        Case("bsm", "checkpointer alone, async", "kill -9"),
        Case("relative", "out, threads", "SIGHUP"),
        Case("relative", "out, async", "SIGQUIT"),
        Case("audit", "checkpointer, threads", "kill -9"),
        Case("audit", "checkpointer, async", "kill -9"),
    ],
    ids=", ".join,
)
def test_no_finished_call_is_paid_twice_and_the_verdicts_are_the_same(case):
    assert tried(case) == ""
