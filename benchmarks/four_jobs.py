"""Four everyday jobs by this package, openevals, deepeval and ragas: how long a user waits.

A model server on loopback fills whatever schema it is asked for, one second after it was asked.
Each package does the jobs in a process of its own, as its documentation shows them:

1. 30 replies of a table, one question;
2. which of two versions is better, 24 inputs;
3. whether one answer is grounded in its source;
4. how often the judge of job 1 is right by 30 labels.

The packages need environments of their own; a package without one is left out. Run with

    python -m benchmarks.four_jobs openevals=venv1/bin/python deepeval=venv2/bin/python
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

DELAY = 1.0
ROWS = [
    {"input": f"Where is parcel {n}?", "output": f"It comes on day {n}.", "label": n % 2}
    for n in range(30)
]
PAIRS = [
    {"input": f"Why {n}?", "output_a": f"Because of {n}.", "output_b": "No idea."}
    for n in range(24)
]
QUESTION, SOURCE = "Is the reply polite?", "Parcels take a day."
LOOSE = {"score": 8, "reason": "so", "steps": ["Read it."], "statements": ["It comes."]} | {
    "verdicts": [{"verdict": "yes", "reason": "so", "statement": "It comes."}],
    "truths": ["It comes."],
    "claims": ["It comes."],
}
"""For a package that describes its form in words alone."""
Job = Callable[[], Any]


def fill(schema: Any, parts: Any) -> Any:
    """The first value that a JSON schema allows."""
    if "$ref" in schema:
        return fill(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], parts)
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: fill(part, parts) for name, part in schema["properties"].items()}
    kind = schema.get("type")
    if kind == "array":
        return [fill(schema.get("items", {}), parts)]
    return {"boolean": True, "integer": 1, "number": 1}.get(kind, "because")


def serve() -> None:
    """Answer until the standard input is closed."""
    from langchain_judges.testing import FakeModelServer, ServerCall, ServerReply, reply

    def answer(call: ServerCall) -> ServerReply:
        body = call.body
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        if names := re.search(r'"arena_test_cases": \{\s*"(\w+)"', call.prompt):
            return reply(json.dumps({"winner": names[1], "reason": "so"}))
        if schema:
            return reply(json.dumps(fill(schema, schema.get("$defs", {}))))
        if tools := body.get("tools"):
            own = tools[0]["function"]
            filled = fill(own["parameters"], own["parameters"].get("$defs", {}))
            function = {"name": own["name"], "arguments": json.dumps(filled)}
            called = {"id": "1", "type": "function", "function": function}
            return reply(None, "tool_calls", tool_calls=[called])
        if described := re.search(r'\{\s*"(?:\$defs|description|properties)"', call.prompt):
            with_form = call.prompt[described.start() :]
            form, _ = json.JSONDecoder().raw_decode(with_form)
            return reply(json.dumps(fill(form, form.get("$defs", {}))))
        return reply(json.dumps(LOOSE))

    with FakeModelServer(lambda call: replace(answer(call), delay=DELAY)) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def here(url: str) -> list[Job]:
    from langchain_openai import ChatOpenAI

    from langchain_judges import create_relative_judge, create_rubric_judge, judge_many
    from langchain_judges.report import trust

    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), use_responses_api=False)
    grounded = create_rubric_judge(model, rubric="groundedness")
    item = {"input": "When?", "output": "It comes tomorrow.", "source": SOURCE}
    done: list[Any] = []
    return [
        lambda: done.extend(judge_many(create_rubric_judge(model, rubric=QUESTION), ROWS)),
        lambda: list(judge_many(create_relative_judge(model), PAIRS)),
        lambda: grounded.invoke(item),
        lambda: trust(done).sentence,
    ]


def openevals(url: str) -> list[Job]:
    from langchain_openai import ChatOpenAI
    from openevals.llm import create_llm_as_judge
    from openevals.prompts import RAG_GROUNDEDNESS_PROMPT

    model = ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"))
    form = "{inputs}\n{outputs}"
    polite = create_llm_as_judge(prompt=f"{QUESTION}\n{form}", judge=model)
    better = create_llm_as_judge(prompt=f"Is A better?\n{form}", judge=model)
    grounded = create_llm_as_judge(prompt=RAG_GROUNDEDNESS_PROMPT, judge=model)
    done: list[Any] = []
    return [
        lambda: done.extend(polite(inputs=r["input"], outputs=r["output"]) for r in ROWS),
        lambda: [
            better(inputs=p["input"], outputs=f"A: {p['output_a']}\nB: {p['output_b']}")
            for p in PAIRS
        ],
        lambda: grounded(context=SOURCE, outputs="It comes tomorrow."),
        lambda: sum(d["score"] == r["label"] for d, r in zip(done, ROWS, strict=True)),
    ]


def deepeval(url: str) -> list[Job]:
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1"}
    from deepeval import test_case as cases
    from deepeval.metrics import ArenaGEval, FaithfulnessMetric, GEval
    from deepeval.models import GPTModel

    fields = getattr(cases, "LLMTestCaseParams", None) or cases.SingleTurnParams
    shared: Any = {"model": GPTModel(model="gpt-4o-mini", base_url=url, api_key="x")}
    shared["async_mode"] = False
    of = {"evaluation_params": [fields.INPUT, fields.ACTUAL_OUTPUT], **shared}
    polite = GEval(name="polite", criteria=QUESTION, **of)
    arena = ArenaGEval(name="better", criteria="Which is better?", **of)
    grounded = FaithfulnessMetric(**shared)
    done: list[Any] = []

    def case(row: Any, output: str = "output", **more: Any) -> Any:
        return cases.LLMTestCase(input=row["input"], actual_output=row[output], **more)

    def contest(pair: Any) -> Any:
        both = [
            cases.Contestant(name=name, test_case=case(pair, name))
            for name in ("output_a", "output_b")
        ]
        return arena.measure(cases.ArenaTestCase(contestants=both), _show_indicator=False)

    return [
        lambda: done.extend(polite.measure(case(r), _show_indicator=False) for r in ROWS),
        lambda: [contest(pair) for pair in PAIRS],
        lambda: grounded.measure(case(ROWS[0], retrieval_context=[SOURCE]), _show_indicator=False),
        lambda: sum((d > 0.5) == r["label"] for d, r in zip(done, ROWS, strict=True)),
    ]


def ragas(url: str) -> list[Job]:
    import types

    # ragas 0.4.3 imports two classes that langchain-community no longer has.
    for kind, name in (("chat_models", "ChatVertexAI"), ("llms", "VertexAI")):
        module = types.ModuleType(f"langchain_community.{kind}.vertexai")
        setattr(module, name, type(name, (), {}))
        sys.modules[module.__name__] = module
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import DiscreteMetric
    from ragas.metrics.collections import Faithfulness

    model = llm_factory("m", client=AsyncOpenAI(base_url=url, api_key="x"))
    texts = "{input} {output}"
    polite = DiscreteMetric(
        name="polite", allowed_values=["yes", "no"], prompt=f"{QUESTION} {texts}"
    )
    both = "Which is better? {input} a: {output_a} b: {output_b}"
    better = DiscreteMetric(name="better", allowed_values=["a", "b"], prompt=both)
    done: list[Any] = []
    loop = asyncio.Runner()  # its client stays with one event loop

    async def score(metric: Any, rows: list[Any]) -> list[Any]:
        return await asyncio.gather(*(metric.ascore(llm=model, **row) for row in rows))

    grounded = Faithfulness(llm=model)
    item = {"user_input": "When?", "response": "It comes.", "retrieved_contexts": [SOURCE]}
    return [
        lambda: done.extend(loop.run(score(polite, ROWS))),
        lambda: loop.run(score(better, PAIRS)),
        lambda: loop.run(grounded.ascore(**item)),
        lambda: sum((d.value == "yes") == r["label"] for d, r in zip(done, ROWS, strict=True)),
    ]


PACKAGES = {"here": here, "openevals": openevals, "deepeval": deepeval, "ragas": ragas}


def main() -> None:
    if sys.argv[1:] == ["--serve"]:
        return serve()
    if sys.argv[1] == "--jobs":
        began = time.perf_counter()
        jobs = PACKAGES[sys.argv[2]](sys.argv[3])
        seconds = [time.perf_counter() - began]
        for job in jobs:
            began = time.perf_counter()
            job()
            seconds.append(time.perf_counter() - began)
        print("\n" + " | ".join([f"| {sys.argv[2]}", *(f"{s:.1f}" for s in seconds)]) + " |")
        return None
    from benchmarks.bare_loops import program

    pythons = dict(each.split("=", 1) for each in sys.argv[1:]) | {"here": sys.executable}
    print(f"Seconds, {DELAY:g} s a reply:\n")
    print("| package | to import | job 1 | job 2 | job 3 | job 4 |\n|---|---|---|---|---|---|")
    with program("benchmarks.four_jobs", "--serve") as line:
        url = line()
        for package in (name for name in PACKAGES if name in pythons):
            command = [pythons[package], str(Path(__file__)), "--jobs", package, url]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            print((run.stdout.strip() or run.stderr).splitlines()[-1], flush=True)
    return None


if __name__ == "__main__":
    main()
