"""An audit that is killed by the system, and what it has paid for when it resumes.

The server holds the replies back until the process is dead, and counts the requests.
"""

import json
import threading
from collections import Counter

import pytest

from langchain_judges.testing import ServerReply, reply
from tests.planners import fooled, planning
from tests.processes import start

pytestmark = pytest.mark.system

LANES, ITEMS = 4, 24

AUDIT = """
import asyncio, json, sys
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langchain_judges import create_allure_audit
from tests.memories import memory_of

url, folder, kind, auditor, items, lanes = sys.argv[1:]
model = ChatOpenAI(model="fake", base_url=url, api_key="x", use_responses_api=False)
settings = {"max_rounds": 1, "max_concurrency": int(lanes), "right_share": 0}
settings["auditor"] = model if auditor == "model" else (lambda proposal: "reject")

def audit(saver):
    return create_allure_audit(model, memory_of(), checkpointer=saver, **settings)

config = {"configurable": {"thread_id": "t"}}
file = folder + "/audit.sqlite"
if kind == "sync":
    with SqliteSaver.from_conn_string(file) as saver:
        begun = saver.get_tuple(config)
        result = audit(saver).invoke(None if begun else {"items": json.loads(items)}, config)
        left = [c.config["configurable"]["thread_id"] for c in saver.list(None)]
else:
    async def work():
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            begun = await saver.aget_tuple(config)
            given = None if begun else {"items": json.loads(items)}
            result = await audit(saver).ainvoke(given, config)
            seen = [each.config async for each in saver.alist(None)]
            return result, [each["configurable"]["thread_id"] for each in seen]
    result, left = asyncio.run(work())
print(json.dumps([result["history"][0]["usage"]["calls"], sorted(set(left))]))
"""


class Held:
    """Answers so many requests, holds the others, and says when all lanes are held."""

    def __init__(self, answer):
        self.answer = answer
        self.asked, self.answered = Counter[str](), Counter[str]()
        self.lock = threading.Lock()
        self.allow(0)

    def allow(self, count):
        self.left, self.waiting = count, 0
        self.full, self.release = threading.Event(), threading.Event()

    def __call__(self, call):
        # The same request of one item is the same prompt.
        with self.lock:
            self.asked[call.prompt] += 1
            if self.left:
                self.left -= 1
                self.answered[call.prompt] += 1
                return self.answer(call)
            self.waiting += 1
            if self.waiting == LANES:
                self.full.set()
            return ServerReply(self.answer(call).payload, hold=self.release)


def run(server, folder, kind, auditor="reject"):
    items = json.dumps(planning(ITEMS // 2))
    return start("-c", AUDIT, server.url, folder, kind, auditor, items, LANES)


def killed_when_all_wait(holdout, process):
    assert holdout.full.wait(300)
    process.kill()
    process.communicate()
    holdout.release.set()


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_no_finished_call_of_an_audit_is_paid_again_after_kills(serve, tmp_path, kind):
    script = Held(lambda call: reply(fooled(call.prompt)))
    server = serve(script)
    for allowed in (9, 7):
        script.allow(allowed)
        killed_when_all_wait(script, run(server, tmp_path, kind))
    script.allow(10**6)
    out, _ = run(server, tmp_path, kind).communicate()
    # Each item was answered once; only the four that each kill cut off were asked again.
    assert set(script.answered.values()) == {1}
    assert (script.answered.total(), script.asked.total()) == (ITEMS, ITEMS + 2 * LANES)
    # Usage adds up over the kills, and nothing of the journal is left.
    assert json.loads(out) == [ITEMS, ["t"]]


def test_a_model_that_audits_is_not_paid_again_after_a_kill(serve, tmp_path):
    def answer(call):
        if call.shape == "Audited":
            return reply('{"reason": "no", "answer": "reject", "mode": "none"}')
        return reply(fooled(call.prompt))

    script = Held(answer)
    server = serve(script)
    # All 24 labels, and the first eight of the 12 audits, which go out together.
    script.allow(ITEMS + 8)
    killed_when_all_wait(script, run(server, tmp_path, "sync", "model"))
    script.allow(10**6)
    run(server, tmp_path, "sync", "model").communicate()
    assert set(script.answered.values()) == {1}
    assert script.answered.total() == ITEMS + ITEMS // 2
