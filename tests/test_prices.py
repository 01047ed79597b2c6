"""What a run costs, how it is bounded, and how calls are spread over a minute."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from itertools import product
from typing import Any, cast
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables.retry import RunnableRetry
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.console import Console
from typer.testing import CliRunner

from langchain_judges import (
    JudgeMiddleware,
    ajudge_many,
    as_comparative_evaluator,
    as_evaluator,
    best_of,
    create_allure_audit,
    create_bsm_judge,
    create_bsm_writer,
    create_rubric_judge,
    judge_many,
    learn_aspects,
    load_judge,
)
from langchain_judges.asking.limiter import CallLimiter, MinuteLimiter, RowInRun
from langchain_judges.asking.reading import TokenUsage, token_usage
from langchain_judges.cli import app
from langchain_judges.errors import OptionError, OverBudget
from langchain_judges.integrations import judge_tool
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.methods.allure.guidelines import draw_guidelines
from langchain_judges.methods.registry import Asked, CallEstimate
from langchain_judges.report.terminal import summary_table, verdict_panel
from langchain_judges.runs import budget, calibrate_cascade, many
from langchain_judges.runs.prices import Price, Prices, estimate
from langchain_judges.testing import FakeChatModel, fitting_reply
from langchain_judges.verdict import decision
from langchain_judges.writing import create_story_judge, evaluate_writing
from tests.cases import for_each
from tests.judges import PAIR, answer, of_method
from tests.memories import memory_of
from tests.planners import planning
from tests.test_allure_guidelines import DEV
from tests.test_allure_guidelines import memory as mistakes

TABLE: dict[str, Any] = {
    "date": "2026-11-01",
    "models": {"fake": {"input": 1.0, "cached_input": 0.1, "output": 10.0, "flex": 0.5}},
}
USAGE = {"input_tokens": 1_000, "output_tokens": 200, "total_tokens": 1_200}
NO_USAGE = dict.fromkeys(USAGE, 0)
ROWS = [{**PAIR, "id": f"r{n}"} for n in range(4)]


class Model(FakeChatModel):
    """Takes 1,000 input and 200 output tokens for a reply: 0.003 dollars by the table."""

    model_name: str = "fake"
    service_tier: str | None = None


def reply(prompt):
    return AIMessage(answer(prompt), usage_metadata=USAGE)


@pytest.fixture
def table(tmp_path):
    (tmp_path / "prices.json").write_text(json.dumps(TABLE))
    return tmp_path / "prices.json"


def judged(table, **options):
    judge = of_method("relative", Model(replies=reply), orders="none")
    run = judge_many(judge, ROWS, prices=table, max_concurrency=1, progress=False, **options)
    return list(run), run.summary


def test_each_row_and_the_summary_have_their_cost(table):
    rows, summary = judged(table)
    assert [row["cost"] for row in rows] == pytest.approx([0.003] * 4)
    assert summary.cost == pytest.approx(0.012)
    assert (summary.prices, summary.unpriced) == ("prices.json of 2026-11-01", 0)


def test_tokens_of_the_cache_and_by_flex_have_their_own_price(table):
    prices, model = Prices.read(table), Model(replies=reply)
    # 100 fresh at 1.0, 900 cached at 0.1, 200 out at 10.0: 2,190 millionths.
    usage_paid = TokenUsage(1_000, 900, 200)
    assert prices.cost(model, usage_paid) == pytest.approx(0.00219)
    half = prices.cost(model, usage_paid._replace(tier="flex"))
    assert half == pytest.approx(0.001095)
    assert prices.cost(model, usage_paid._replace(tier="priority")) is None


def test_tokens_written_to_the_cache_have_their_own_price():
    # As langchain-anthropic counts them where it knows for how long they are held.
    details = {"cache_read": 400, "cache_creation": 0, "ephemeral_5m_input_tokens": 500}
    message = AIMessage("yes", usage_metadata={**USAGE, "input_token_details": details})
    assert token_usage(message) == TokenUsage(1_000, 400, 200, written_tokens=500)
    # 100 fresh at 1.0, 400 read at 0.1, 500 written at 1.25, 200 out at 10.0.
    price = Price(input=1.0, cached_input=0.1, cache_write=1.25, output=10.0)
    assert price.of(token_usage(message)) == pytest.approx(0.002765)


def test_a_reply_costs_what_the_model_that_answered_costs(table):
    known = {"fake": Price(input=1, output=1), "gpt-5": Price(input=100, output=100)}
    prices, model = Prices(table.name, known), Model(replies=reply)
    for name, factor in (("gpt-5", 100), ("fake-2026-01-01", 1), (None, 1)):
        message = AIMessage("yes", usage_metadata=USAGE, response_metadata={"model_name": name})
        assert prices.cost(model, token_usage(message)) == pytest.approx(0.0012 * factor)


def test_a_model_with_fallbacks_has_the_price_of_its_own_name(tmp_path):
    model = Model(replies=reply).with_fallbacks([Model(replies=reply)])
    path = tmp_path / "p.json"
    path.write_text(json.dumps(TABLE))
    with pytest.warns(UserWarning, match="else fake"):
        judge = of_method("relative", model, orders="none")
    run = judge_many(judge, ROWS[:1], prices=path, max_dollars=1, progress=False)
    with pytest.raises(OptionError, match="price of 'fake, else fake', by this name in `prices`"):
        list(run)
    path.write_text(json.dumps({**TABLE, "models": {"fake, else fake": TABLE["models"]["fake"]}}))
    run = judge_many(judge, ROWS[:1], prices=path, max_dollars=1, progress=False)
    assert [row["cost"] for row in run] == pytest.approx([0.003])


@for_each("tier", ["flex", "FLEX"])
def test_a_tier_is_known_in_any_letters(tier):
    message = AIMessage("yes", usage_metadata=USAGE, response_metadata={"service_tier": tier})
    price = Price(input=1.0, output=10.0, flex=0.5)
    usual = price.of(token_usage(AIMessage("yes", usage_metadata=USAGE)))
    assert price.of(token_usage(message)) == pytest.approx(usual / 2)


@for_each(
    "usage, meta, paid",
    [
        ({}, {"token_usage": {"prompt_tokens": 1_000, "completion_tokens": 200}}, (1_000, 200)),
        ({}, {"usage": {"input_tokens": 1_000, "output_tokens": 200}}, (1_000, 200)),
        ({}, {"token_count": {"input_tokens": 1_000.0, "output_tokens": 200.0}}, (1_000, 200)),
        (USAGE, {"usage": {"input_tokens": 7}}, (1_000, 200)),
        ({}, {"usage": {"input_tokens": "7", "output_tokens": -1}, "token_usage": None}, (0, 0)),
    ],
)
def test_tokens_are_counted_wherever_a_client_has_them(usage, meta, paid):
    message = AIMessage("yes", usage_metadata=usage or None, response_metadata=meta)
    read = token_usage(message)
    assert read is not None
    assert (read.input_tokens, read.output_tokens) == paid


@for_each(
    "details, meta, is_known",
    [
        ({"input_token_details": {"cache_read": 400, "cache_creation": 10}}, {}, True),
        ({"output_token_details": {"reasoning": 50, "audio": 0}}, {}, True),
        (
            {"input_token_details": {"flex_cache_read": 4, "flex": 996}},
            {"service_tier": "flex"},
            True,
        ),
        ({}, {"usage": {"service_tier": "standard"}}, True),
        ({}, {"usage": {"service_tier": "STANDARD"}}, True),
        ({}, {"service_tier": "PRIORITY"}, False),
        ({"input_token_details": {"ephemeral_1h_input_tokens": 500}}, {}, False),
        ({"input_token_details": {"audio": 5}, "output_token_details": {"audio": 0}}, {}, False),
        ({"output_token_details": {"audio": 5}}, {}, False),
        ({"output_token_details": {"holograms": 5}}, {}, False),
        ({}, {"service_tier": "priority"}, False),
        ({}, {"usage": {"service_tier": "batch"}}, False),
        ({"input_tokens": 0}, {}, False),
    ],
)
def test_what_may_have_another_price_has_none(details, meta, is_known):
    message = AIMessage("yes", usage_metadata={**USAGE, **details}, response_metadata=meta)
    price, paid = Price(input=1.0, output=10.0), token_usage(message)
    assert (price.of(paid) is not None) is is_known
    assert Price(input=0, output=0).of(paid) == 0


CACHED, THOUGHT = {"cached_tokens": 900}, {"reasoning_tokens": 400}


@for_each(
    "usage, paid",
    [
        # Of xAI, and of Gemini by OpenAI's protocol: thoughts are in the sum, and not the reply.
        ({"total_tokens": 510, "completion_tokens_details": THOUGHT}, (100, 0, 410)),
        ({"total_tokens": 510}, (100, 0, 410)),
        ({"total_tokens": 110, "completion_tokens_details": {"reasoning_tokens": 4}}, (100, 0, 10)),
        # Anthropic's numbers as proxies write them: the input is without what a cache had.
        ({"total_tokens": 110, "prompt_tokens_details": CACHED}, (1_000, 900, 10)),
        ({"total_tokens": 1_010, "prompt_tokens_details": CACHED}, (1_000, 900, 10)),
        ({"total_tokens": 160, "prompt_tokens_details": {"cached_tokens": 50}}, (150, 50, 10)),
        ({"total_tokens": 110, "prompt_tokens_details": {"cached_tokens": 50}}, (100, 50, 10)),
        ({"total_tokens": 0}, (100, 0, 10)),
        ({"prompt_tokens": 0, "total_tokens": 510}, (0, 0, 10)),
    ],
)
def test_tokens_that_are_in_the_sum_alone_are_paid_for(usage, paid):
    usage = {"prompt_tokens": 100, "completion_tokens": 10, **usage}
    model = ChatOpenAI(model="gpt", api_key=SecretStr("x"), use_responses_api=False)
    choice = {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
    response = model._create_chat_result({"choices": [choice], "usage": usage, "model": "gpt"})
    for message in (
        response.generations[0].message,
        AIMessage("yes", response_metadata={"token_usage": usage}),
    ):
        read = token_usage(cast("AIMessage", message))
        assert read is not None
        assert (read.input_tokens, read.cached_tokens, read.output_tokens) == paid


@for_each(
    "beside, is_known",
    [
        ({"prompt_tokens_details": {"cached_tokens": 40}}, True),
        ({"timings": {"prompt_n": 1_000, "predicted_per_token_ms": 5.1}}, True),
        ({"cost_details": {"upstream_inference_cost": 1.2}}, True),
        ({"prompt_tokens_details": {"audio_tokens": 40}}, False),
        ({"completion_token_details": {"holograms": 40}}, False),
        ({"cache_creation": {"ephemeral_1h_input_tokens": 40}}, False),
        ({"server_tool_use": {"web_search_requests": 1}}, False),
    ],
)
def test_only_what_counts_tokens_beside_a_usage_may_have_another_price(beside, is_known):
    usage = {"prompt_tokens": 1_000, "completion_tokens": 200, **beside}
    paid = token_usage(AIMessage("yes", response_metadata={"token_usage": usage}))
    assert (Price(input=1.0, output=10.0).of(paid) is not None) is is_known


def test_a_run_ends_when_its_dollars_are_spent(table):
    rows, summary = judged(table, max_dollars=0.0061)
    # Two rows take 0.006; a third might take as much again, and is not begun.
    assert [row["judged"] for row in rows] == [True, True, False, False]
    assert summary.not_judged == {"over_budget": 2}


def test_what_nobody_has_counted_counts_by_its_length(table):
    silent = Model(replies=lambda prompt: AIMessage(answer(prompt), usage_metadata=NO_USAGE))
    judge, limiter = of_method("relative", silent, orders="none"), MinuteLimiter(tpm=1)
    options = {"prices": table, "progress": False, "max_concurrency": 1}
    asked = list(judge_many(judge, ROWS, max_dollars=1e-9, rate_limiter=limiter, **options))
    assert [row["judged"] for row in asked] == [True, False, False, False]
    assert asked[0]["cost"] is None
    assert limiter.turn() > 0


def test_a_summary_names_the_models_that_answered_where_others_were_asked(capsys):
    names = iter(["fake", "fake-2026-01-31", "openai/fake", "[b]mini", "[b]mini", "fake-mini"])

    def routed(prompt):
        metadata = {"model_name": next(names)}
        return AIMessage(answer(prompt), usage_metadata=USAGE, response_metadata=metadata)

    judge = of_method("relative", Model(replies=routed), orders="none")
    run = judge_many(judge, ROWS[:3] * 2, max_concurrency=1, progress=False)
    assert len([*run]) == 6
    assert run.summary.answered == {"[b]mini": 2, "fake-mini": 1}
    Console(width=200).print(summary_table(run.summary))
    assert "by other models than was asked: 2 [b]mini, 1 fake-mini" in capsys.readouterr().out


@for_each(
    ("asked", "answered", "is_told"),
    [
        ("gpt-5-mini", "gpt-5", True),
        ("gpt-5", "gpt-5-mini", True),
        ("gpt-5", "gpt-5.1", True),
        ("openai/gpt-5", "gpt-5-2025-08-07", False),
        ("claude-sonnet-latest", "claude-sonnet-20250219", False),
        ("models/gemini-flash", "gemini-flash", False),
        ("first, else second", "first", False),
        ("first, else second with stop", "second", True),
        ("first with stop", "first", False),
        # A name is its own, even where it is an alias, and in any case.
        ("mistral-large-latest", "mistral-large-latest", False),
        ("chatgpt-4o-latest", "chatgpt-4o-latest", False),
        ("qwen2.5:7b", "qwen2.5:7b", False),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/llama-3.3-70b-instruct", False),
        # A tag of a word names no other model; one of a size does.
        ("llama3.1", "llama3.1:latest", False),
        ("llama3.1:latest", "llama3.1", False),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", False),
        ("qwen3", "qwen3:thinking", True),
        ("gemma-2", "gemma-2-27", True),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620", False),
        ("gpt-4", "gpt-4-1106-preview", False),
        ("llama3.1:8b", "llama3.1:70b", True),
        ("llama3.1", "llama3.1:70b", True),
        # Versions and dates, as providers write them.
        ("grok-3-latest", "grok-3", False),
        ("codestral-latest", "codestral-2501", False),
        ("gpt-4", "gpt-4-0613", False),
        ("gemini-1.5-flash-latest", "gemini-1.5-flash-001", False),
        ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06", False),
        ("command-r-plus", "command-r-plus-08-2024", False),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet@20241022", False),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620", False),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4-20250514", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", True),
        ("claude-sonnet-4", "claude-sonnet-4-5", True),
        ("mixtral-8x7b", "mixtral-8x22b", True),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude-3-opus-20240229", True),
    ],
)
def test_a_version_of_the_model_that_was_asked_is_no_other_model(asked, answered, is_told):
    row = RowInRun(CallLimiter(1), 0)
    row.leave(Model(replies=[], model_name=asked), TokenUsage(1, model=answered), [], "")
    assert [*row.limiter.answered] == [answered] * is_told


def test_a_bound_on_dollars_needs_a_price(table):
    judge = of_method("relative", FakeChatModel(replies=reply))
    with pytest.raises(OptionError, match="price of 'FakeChatModel'"):
        list(judge_many(judge, ROWS, prices=table, max_dollars=1.0, progress=False))
    with pytest.raises(OptionError, match="`max_dollars` needs `prices`"):
        judge_many(judge, ROWS, max_dollars=1.0)


def test_a_reply_whose_tokens_nobody_counted_costs_what_is_not_known(table, capsys):
    silent = Model(replies=lambda prompt: AIMessage(answer(prompt), usage_metadata=NO_USAGE))
    run = judge_many(of_method("relative", silent), ROWS[:1], prices=table)
    [row] = run
    assert run.summary.unpriced == run.summary.calls == 2
    console = Console(width=100)
    console.print(summary_table(run.summary))
    console.print(verdict_panel(row))
    shown = capsys.readouterr().out
    assert "not reported" in shown
    assert "2 calls, tokens not reported" in shown


def test_a_reply_without_a_price_is_counted_and_not_guessed(table):
    judge = of_method("relative", FakeChatModel(replies=reply), orders="none")
    run = judge_many(judge, ROWS, prices=table, progress=False)
    assert [row["cost"] for row in run] == [None] * 4
    assert (run.summary.cost, run.summary.unpriced) == (0.0, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"date": "x", "models": {"m": {"input": -1, "output": 1}}}', "models.m.input"),
        ("{", "not a file of prices"),
    ],
)
def test_a_file_of_prices_is_checked(tmp_path, text, message):
    (tmp_path / "prices.json").write_text(text)
    with pytest.raises(OptionError, match=message):
        Prices.read(tmp_path / "prices.json")


def test_the_package_s_table_knows_models_of_providers_and_nobody_s_own_server():
    pytest.importorskip("genai_prices")
    prices = Prices.read("genai-prices")
    price = prices.of(ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr("x")))
    assert (price.input, price.cached_input, price.output) == (0.15, 0.075, 0.6)
    own = ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr("x"), base_url="http://127.0.0.1:9/v1")
    assert prices.of(own) is None
    assert prices.of(ChatOpenAI(model="no-such-model", api_key=SecretStr("x"))) is None


@pytest.mark.parametrize(
    ("spec", "is_known"),
    [
        ({"name": "openai:gpt-4o-mini"}, True),
        ({"name": "google_genai:gemini-2.5-flash"}, True),
        ({"name": "gpt-4o-mini", "base_url": "http://127.0.0.1"}, False),
        ({"name": "ollama:gpt-4o-mini"}, False),
        ({"name": "openai:gpt-4o-mini", "base_url": "https://api.openai.com/v1"}, True),
    ],
)
def test_a_model_that_is_not_made_has_its_provider_s_price(spec, is_known, monkeypatch):
    pytest.importorskip("genai_prices")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert (Prices.read("genai-prices").of(spec) is not None) == is_known


def test_calls_and_tokens_of_a_minute_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    limiter = MinuteLimiter(rpm=60, tpm=6_000)  # a call a second, 100 tokens a second
    assert [limiter.turn(), limiter.turn()] == [0.0, 1.0]
    limiter.spend(500)
    assert limiter.turn() == 5.0


async def test_a_wait_for_a_turn_ends_when_the_run_is_stopped(monkeypatch):
    # Calls in flight may take all the time they want: the wait alone is ended.
    monkeypatch.setattr(many, "GRACE", 3600.0)
    waits = asyncio.Event()

    class Limiter(MinuteLimiter):
        def turn(self):
            waits.set()
            return 3600.0

    judge = of_method("relative", Model(replies=reply), orders="none")
    run = ajudge_many(judge, ROWS, rate_limiter=Limiter(rpm=1), progress=False)
    rows = asyncio.ensure_future(anext(run, None))
    await waits.wait()
    run.stop()
    await rows  # an hour early


def test_a_dry_run_estimates_tokens_and_dollars(tmp_path, table):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({**PAIR, "input": "x" * 500_000}) + "\n")
    prices = {"gpt-5-mini": TABLE["models"]["fake"]}
    table.write_text(json.dumps({**TABLE, "models": prices}))
    words = ["judge", str(rows), "--model", "openai:gpt-5-mini", "--method", "relative"]
    result = CliRunner().invoke(app, [*words, "--dry-run", "--prices", str(table)])
    # Two calls of 500,012 bytes and 246 tokens of the method: 250,498; two replies of 150.
    assert re.search(r"250,498 input.* 300 output.* \$0\.25", result.stderr)


def test_an_estimate_counts_what_the_provider_reads_from_its_cache(table):
    prices = Prices.read(table)
    size = 2 * 4 * 2000  # two rows of 2,000 tokens
    openai: Any = {"name": "openai:fake"}
    plan = CallEstimate("bsm", "pair", (Asked(10, openai),))
    cost = estimate(plan, n=2, size=size, prices=prices)
    # Ten calls of 4,000 and 600 tokens; all but two of ten find the 4,000 in the cache.
    assert (cost.input_tokens, cost.cached_tokens) == (46_000, 32_000)
    assert estimate(plan, n=2, size=size // 2, prices=prices).cached_tokens == 0  # short
    here: Any = {"name": "local"}
    alone = CallEstimate("bsm", "pair", (Asked(10, here),))
    assert estimate(alone, n=2, size=size).cached_tokens == 0


def dry(table, model):
    judge = of_method("relative", model, orders="none")
    return estimate(judge, n=2, size=24, prices=Prices.read(table))


def test_an_estimate_by_flex_has_half_the_price(table):
    # 24 bytes are 6 tokens, and 300 a call: 606 at 1.0; 300 of replies at 10.0.
    assert dry(table, Model(replies=reply)).dollars == pytest.approx(0.003606)
    flex = Model(replies=reply, service_tier="flex")
    assert dry(table, flex).dollars == pytest.approx(0.001803)


LIMIT: dict[str, Any] = {"max_calls": 2}
LABELLED = [{**row, "label": "A"} for row in ROWS]
TASK = {"concepts": ["dog", "cat", "tree", "river"]}
# Everything in Python that asks a model, beside `judge_many`, with a limit.
PAYS: dict[str, Any] = {
    "a judge": lambda model: create_bsm_judge(model).invoke(PAIR, budget(**LIMIT)),
    "a writer": lambda model: create_bsm_writer(model).invoke(TASK, budget(**LIMIT)),
    "aspects": lambda model: learn_aspects(model, ["a", "b", "c"], config=budget(**LIMIT)),
    "an audit": lambda model: create_allure_audit(
        model, memory_of(), auditor=lambda _: "reject"
    ).invoke({"items": planning(6)}, budget(**LIMIT)),
    "guidelines": lambda model: draw_guidelines(model, mistakes(), DEV, config=budget(**LIMIT)),
    "a calibration": lambda model: calibrate_cascade(
        create_cascade([load_judge("direct", model)] * 2), LABELLED, progress=False, **LIMIT
    ),
}


@for_each("what", PAYS)
def test_whatever_asks_stops_at_its_limit(what):
    model = FakeChatModel(replies=fitting_reply)
    with pytest.raises(OverBudget, match=r"the budget (of 2 calls )?is spent"):
        PAYS[what](model)
    assert len(model.prompts) == 2


@for_each("judge, judged", [("relative", 1), ("rubric", 2)])
def test_the_best_of_what_was_judged_before_a_budget_was_spent_is_returned(judge, judged):
    model, options = FakeChatModel(replies=fitting_reply), RUBRIC if judge == "rubric" else {}
    limit: Any = budget(**LIMIT)
    task = {"input": "Why?", "answers": [*"abcd"]}
    best = best_of(4, load_judge(judge, model, **options)).invoke(task, limit)
    decided = [match for match in best["bracket"] if decision(match["verdict"]) is not None]
    # Three matches of two calls each, or four labels of one.
    assert (len(model.prompts), len(decided)) == (2, judged)
    spent = [failure["reason"] for failure in best["failures"]]
    assert spent == ["over_budget"] * (len(best["bracket"]) - judged)
    with pytest.raises(OverBudget, match="no answer was judged"):
        best_of(4, load_judge(judge, model, **options)).invoke(task, limit)


@for_each("of_judge, is_async", product([True, False], repeat=2))
def test_a_budget_for_one_match_is_spent_on_one_and_not_on_parts_of_two(of_judge, is_async):
    limit: Any = budget(max_calls=5)  # a match of two criteria: a plan, two grades in each order
    judge: Any = create_bsm_judge(FakeChatModel(replies=fitting_reply), max_criteria=2)
    best = best_of(4, judge.with_config(limit) if of_judge else judge)
    given = {"input": "Why?", "answers": [*"abcd"]}, None if of_judge else limit
    found = asyncio.run(best.ainvoke(*given)) if is_async else best.invoke(*given)
    assert [decision(match["verdict"]) is None for match in found["bracket"]] == [False, True, True]


RUBRIC: dict[str, Any] = {"rubric": "It is kind."}
# What calls a judge for its owner: each returns its verdict, or what else was said.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "an evaluator": lambda rubric, _: as_evaluator(rubric)(inputs="q", outputs="a"),
    "an evaluator of LangSmith": lambda rubric, _: as_evaluator(rubric).evaluate_run(
        cast("Any", {"id": uuid4(), "inputs": {"input": "q"}, "outputs": {"output": "a"}})
    ),
    "a comparison": lambda _, relative: as_comparative_evaluator(relative)(
        inputs="q", outputs=["a", "b"]
    ),
    "middleware": lambda rubric, _: answer_of_agent(rubric),
    "a tool": lambda rubric, _: judge_tool(rubric).invoke({"input": "q", "output": "a"}),
}


def answer_of_agent(judge):
    checked = [JudgeMiddleware(judge, max_revisions=0)]
    agent: Any = create_agent(FakeChatModel(replies=["done"]), middleware=checked)
    return agent.invoke({"messages": [("user", "q")]})


@for_each("what", CALLS)
def test_a_judge_with_a_budget_is_not_asked_beyond_it_and_says_so(what):
    model = FakeChatModel(replies=fitting_reply)
    own: Any = budget(max_calls=2)
    judges = create_rubric_judge(model, **RUBRIC), load_judge("relative", model, orders="none")
    limited = [judge.with_config(own) for judge in judges]
    answers = [str(CALLS[what](*limited)) for _ in range(3)]
    assert len(model.prompts) == 2
    assert ["the budget of 2" in answer for answer in answers] == [False, False, True]


def test_a_place_to_work_in_takes_no_budget_away():
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, **RUBRIC).with_config(budget(**LIMIT))
    with pytest.raises(OverBudget):
        judge.batch([{"input": "q", "output": "a"}] * 3, {"max_concurrency": 4})
    assert len(model.prompts) == 2


def test_a_budget_that_would_not_hold_is_refused():
    free = create_rubric_judge(FakeChatModel(replies=fitting_reply), **RUBRIC)
    judge = free.with_config(budget(**LIMIT))
    row = {"input": "q", "output": "a"}
    hidden: Any = RunnableRetry(bound=free.with_retry().with_config(budget(**LIMIT)))
    for each in (judge, judge.with_retry(), hidden):
        with pytest.raises(OptionError, match="give it to the run"):
            judge_many(each, [row], progress=False)
    with pytest.raises(OptionError, match="give it to the run"):
        judge.invoke(row, budget(**LIMIT))
    for each in (judge, create_jury([free] * 2)):
        with pytest.raises(OptionError, match="calls of this process alone"):
            _ = each.with_config(budget(**LIMIT)).spec


def test_texts_are_compared_up_to_a_limit():
    model = FakeChatModel(replies=fitting_reply)
    rows, others = ([{**TASK, "text": f"{n} {word}"} for n in range(3)] for word in "ab")
    quality = evaluate_writing(rows, others, judge=create_story_judge(model), **LIMIT)["quality"]
    assert quality
    assert quality["not_judged"] == 2
    assert len(model.prompts) == 2


def test_the_judges_of_a_calibration_share_its_dollars_and_it_goes_on_from_its_records(
    table, tmp_path
):
    model = Model(replies=reply)
    cascade: Any = create_cascade(
        [load_judge("direct", model, name=n, instructions=n) for n in "ab"]
    )
    own: Any = {"records": tmp_path / "verdicts.jsonl", "prices": table, "progress": False}
    with pytest.raises(OverBudget, match="before 'b' judged every row"):
        calibrate_cascade(cascade, LABELLED, max_dollars=0.016, max_concurrency=1, **own)
    assert len(model.prompts) == 5  # a second reply on b might cost more than is left
    with pytest.raises(OptionError, match="no judge of the cascade reaches"):  # of 4 rows
        calibrate_cascade(cascade, LABELLED, **own)
    assert len(model.prompts) == 8


def test_a_limit_that_there_is_not_is_refused():
    with pytest.raises(OptionError, match="did you mean 'max_calls'"):
        budget(max_cals=2)
    with pytest.raises(OptionError, match="`max_dollars` needs `prices`"):
        budget(max_dollars=2)
