"""Which call goes ahead of others that begin alike, what they are served, what is marked."""

import asyncio
import json
import os.path
import threading
from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel, SecretStr
from rich.console import Console

from langchain_judges import (
    create_allure_judge,
    create_rubric_judge,
    judge_many,
    load_judge,
    resolve_model,
)
from langchain_judges.asking.adapter import ModelAdapter, beginnings
from langchain_judges.asking.effects import Effect, FirstCalls
from langchain_judges.report.terminal import summary_table
from langchain_judges.testing import FakeChatModel, FakeModelServer, reply
from tests.fakes import goods, judged_by
from tests.judges import answer
from tests.loopback import Handler, listening, send
from tests.memories import example, memory_of

LONG = "good advice on keeping basil " * 60
PAIR = {"input": "How is basil kept?" + LONG, "output_a": LONG, "output_b": LONG + "in June"}
MARK = {"type": "ephemeral"}


class Reply(BaseModel):
    """The shape that is asked for."""

    text: str


class ChatAnthropic(FakeChatModel):
    """Known by its name, as the real one is."""


class ChatGoogleGenerativeAI(FakeChatModel):
    """Known by its name, as the real one is."""


def prompt(material, criterion="clarity"):
    text = f"<text-0123456789>\n{material}\n</text-0123456789>\n\nScore {criterion}."
    return [SystemMessage("You judge."), HumanMessage(text)]


def test_the_mark_stands_behind_the_material_and_no_word_changes():
    prefix: Any = beginnings(prompt(LONG * 3), Reply)
    system, human = prefix.marked
    assert (system.content, human.text) == ("You judge.", prompt(LONG * 3)[1].text)
    assert [block.get("cache_control") for block in human.content] == [MARK, None]
    assert human.content[1]["text"] == "\n\nScore clarity."


def sent_by(model_class, method="bsm", **options):
    """The messages of each call of a judgment."""
    model = model_class(replies=judged_by(goods))
    load_judge(method, model, orders="none", **options).invoke(PAIR)
    return model.messages


def marks(messages):
    return sum(
        "cache_control" in block
        for message in messages
        if isinstance(message.content, list)
        for block in message.content
    )


def test_the_solve_calls_of_a_pair_are_marked_and_its_plan_is_not():
    by_step = Counter(
        ("score_1" in messages[-1].text, marks(messages)) for messages in sent_by(ChatAnthropic)
    )
    assert by_step == {(False, 0): 1, (True, 1): 5}


async def order_of(outcomes):
    """Events of calls with one prefix, each with the outcome that is given."""
    cache, log, answered = FirstCalls(), [], asyncio.Event()

    async def wait():
        await answered.wait()

    async def call(number):
        log.append(f"sent {number}")
        await Effect(lambda: None, wait)
        log.append(f"answered {number}")
        return outcomes[number]

    async def steps(number):
        async with cache.turn(["key"]) as waiting:
            if result := await call(number):
                waiting.clear()
            return result

    tasks = [asyncio.create_task(steps(n)) for n in range(len(outcomes))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = list(log)
    answered.set()
    return before, log, [await task for task in tasks]


async def test_the_first_call_is_answered_before_the_others_are_sent():
    before, log, results = await order_of([1, 2, 3])
    assert before == ["sent 0"]
    assert (log[1], sorted(results)) == ("answered 0", [1, 2, 3])
    assert Counter(log).most_common(1)[0][1] == 1


async def test_another_call_goes_ahead_where_the_first_one_failed():
    _, log, results = await order_of([0, 2, 3])
    assert log[:4] == ["sent 0", "answered 0", "sent 1", "answered 1"]
    assert sorted(results) == [0, 2, 3]


@pytest.fixture
def anthropic_server():
    """Answers solve calls in Anthropic's protocol; yields its address and what it was sent."""
    bodies = []

    class Messages(Handler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bodies.append(body)
            scores = {"score_1": 4, "score_2": 2, "explanation": "clearer"}
            tool = {"type": "tool_use", "id": "t1", "name": body["tools"][0]["name"]}
            usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 90}
            message = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
            content = [{**tool, "input": scores}]
            send(self, {**message, "content": content, "stop_reason": "tool_use", "usage": usage})

    with listening(Messages) as server:
        yield f"http://127.0.0.1:{server.server_port}", bodies


@pytest.mark.system  # its client takes seconds to load
def test_chat_anthropic_sends_the_same_marked_prefix_for_every_criterion(anthropic_server):
    anthropic = pytest.importorskip("langchain_anthropic")
    url, bodies = anthropic_server
    model = anthropic.ChatAnthropic(model="m", base_url=url, api_key=SecretStr("a-key"))
    judge = load_judge("bsm", model, criteria=["Clarity", "Depth"], orders="none")
    usage = judge.invoke(PAIR)["verdict"]["usage"]
    content = [body["messages"][0]["content"] for body in bodies]
    assert [block.get("cache_control") for block in content[0]] == [MARK, None]
    prefixes = {
        json.dumps([body["tools"], body["system"], blocks[0]])
        for body, blocks in zip(bodies, content, strict=True)
    }
    assert (len(bodies), len(prefixes)) == (2, 1)
    assert (usage["input_tokens"], usage["cached_tokens"]) == (200, 180)


def test_a_summary_says_which_share_of_the_tokens_came_from_the_cache():
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    told = {**usage, "prompt_tokens_details": {"cached_tokens": 60}}
    filled = reply('{"label": 1, "reason": "So."}')
    filled.payload["usage"] = told
    with FakeModelServer(lambda _: filled) as server:
        model = resolve_model("m", base_url=server.url, api_key="x")
        judge = create_rubric_judge(model, rubric="Is it polite?")
        run = judge_many(judge, [{"input": "Hello?", "output": "Hi."}], progress=False)
        list(run)
    assert run.summary.cached_tokens == 60 * run.summary.calls
    console = Console(record=True, width=100)
    console.print(summary_table(run.summary))
    assert "60% of them" in console.export_text()


class CachingProvider:
    """Answers as a provider that caches: what begins as an answered prompt is served."""

    def __init__(self, answer, together=1):
        """Answer; where so many calls come `together`, none before all have come."""
        self.answer = answer
        self.all = threading.Barrier(together)
        self.answered: list[str] = []
        self.sent = self.served = 0
        self.lock = threading.Lock()

    def __call__(self, prompt):
        with self.lock:
            begins = [len(os.path.commonprefix([prompt, each])) for each in self.answered]  # noqa: RUF071 - no paths
            shared = max(begins, default=0)
            self.sent += len(prompt)
            self.served += shared if shared >= 4096 else 0
        self.all.wait(60)
        with self.lock:
            self.answered.append(prompt)
        return self.answer(prompt)


TEXT = "The plants on the sill need more light than a window gives in winter. "
LONG_PAIR = {"input": TEXT * 20, "output_a": TEXT * 40 + "A", "output_b": TEXT * 38 + "B"}
LONG_ITEM = {"input": TEXT * 20, "output": TEXT * 60, "expected": "x"}
CRITERIA = [{"name": name, "description": f"It shows {name}."} for name in "abcdef"]


LONG_CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], float]] = {
    "`bsm`, 5 criteria": ("bsm", {"criteria": ["a", "b", "c", "d", "e"]}, LONG_PAIR, 0.7),
    "`sc2`, 8 samples": ("sc2", {"aspects": ["Tone", "Depth"], "samples": 8}, LONG_PAIR, 0.75),
    "`cot_sc`, 5 samples": ("cot_sc", {"samples": 5}, LONG_PAIR, 0.75),
    "`rubric`, 6 criteria, `each=True`": (
        "rubric",
        {"rubric": CRITERIA, "each": True},
        LONG_ITEM,
        0.7,
    ),
}


def share_of_method(case, **more):
    """The share of one row's input that a caching provider serves."""
    method, options, row, _ = LONG_CASES[case]
    provider = CachingProvider(answer)
    model = ChatGoogleGenerativeAI(replies=provider)
    load_judge(method, model, **options, **more).invoke(row)
    return provider.served / provider.sent


@pytest.mark.parametrize("case", LONG_CASES)
def test_most_of_what_calls_share_is_read_from_the_cache(case):
    assert share_of_method(case) >= LONG_CASES[case][-1]


def share_of_examples(recall):
    """The share of a second row's input, both shown a memory of 20 examples."""
    examples = [
        example(f"{TEXT * 4} {n}", n % 2, input=f"Which plant is number {n}?") for n in range(20)
    ]
    provider = CachingProvider(answer)
    model = ChatGoogleGenerativeAI(replies=provider)
    judge = create_allure_judge(model, memory=memory_of(*examples), recall=recall)
    judge.invoke({"input": "Where does it stand?", "output": "At the door.", "expected": "x"})
    before = provider.sent
    judge.invoke({"input": "How much water?", "output": "A cup a week.", "expected": "y"})
    return provider.served / (provider.sent - before)


@pytest.mark.parametrize("recall", ["all", "uniform:12"])
def test_rows_share_their_remembered_examples(recall):
    assert share_of_examples(recall) >= 0.9


def share_of_rounds():
    """The share of the second and later rounds' input where a judge consults a tool."""
    sizes = iter(range(3))

    def consults(prompt):
        if "You collect evidence" not in prompt:
            return answer(prompt)
        size = next(sizes, None)
        wanted = [] if size is None else [{"tool": "measure", "arguments": f'{{"n": {size}}}'}]
        return json.dumps({"calls": wanted})

    @tool
    def measure(n: int) -> str:
        """Measure a plant."""
        return f"plant {n}: " + TEXT

    provider = CachingProvider(consults)
    judge = create_rubric_judge(
        ChatGoogleGenerativeAI(replies=provider), rubric="Is it right?", tools=[measure]
    )
    assert judge.invoke(LONG_ITEM)["verdict"]["usage"]["calls"] == 5
    consulting = [each for each in provider.answered if "You collect evidence" in each]
    return provider.served / sum(map(len, consulting[1:]))


def test_rounds_of_lookups_are_served_what_the_rounds_before_them_showed():
    assert share_of_rounds() >= 0.8


def test_nobody_waits_where_the_option_says_so():
    shares = []
    for first in (True, False):
        # Calls that are not held back are all under way at once, and are served nothing.
        provider = CachingProvider(answer, together=1 if first else 3)
        options: dict[str, Any] = {"criteria": ["a", "b", "c"], "cache_first": first}
        judge = load_judge(
            "bsm", ChatGoogleGenerativeAI(replies=provider), orders="none", **options
        )
        judge.invoke(LONG_PAIR)
        shares.append(provider.served / provider.sent)
    assert shares[0] > 0.5 > 0.1 > shares[1]


def test_openai_is_told_by_which_name_it_finds_the_beginning():
    model = resolve_model("openai:m", api_key="x")
    adapter = ModelAdapter(model)
    named = adapter.request(Reply, {}, cache_key="a key")
    assert named.settings["prompt_cache_key"] == "a key"
    assert "prompt_cache_key" not in adapter.request(Reply, {}).settings
    elsewhere = ModelAdapter(resolve_model("m", base_url="http://127.0.0.1:1/v1"))
    request = elsewhere.request(Reply, {}, cache_key="a key")
    assert "prompt_cache_key" not in request.settings
