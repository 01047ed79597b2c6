"""Several methods on the same rows and the same budget."""

import json
import re
from typing import Any

import openpyxl
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from langchain_judges import load_judge
from langchain_judges.cli import app
from langchain_judges.errors import OptionError
from langchain_judges.methods.registry import COMBINATIONS, METHODS, method_of
from langchain_judges.runs.comparison import compare, line_up, within_budget
from langchain_judges.testing import error, reply
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.test_direct import respond as direct_reply
from tests.test_drpe import respond as drpe_reply

# What one prompt of each method holds and no other's does.
_DRPE = ("Give each a type", "judges are:", "You are this judge")
FEW = {"drpe": {"embeddings": DeterministicFakeEmbedding(size=8)}}


def answer(prompt):
    """Answer for every method: the text with more of the word `good` is better."""
    if any(sign in prompt for sign in _DRPE):
        return drpe_reply(prompt)
    return direct_reply(prompt)


def rows(n, label="A"):
    row = {"output_a": "good", "output_b": "bad", "label": label}
    return [{"id": f"r{i}", "input": f"Why {i}?", **row} for i in range(n)]


def contest(methods, pairs, replies=answer, budget=16, out=None, **options):
    model = FakeChatModel(replies=replies)
    few = {name: value for name, value in FEW.items() if name in methods}
    judges, _ = line_up(methods, model, budget=budget, options=few, **options)
    return compare(judges, pairs, out=out, progress=False), model


SPENDING = sorted(name for name, each in (METHODS | COMBINATIONS).items() if each.budgets)


@for_each("method", SPENDING)
def test_no_method_asks_more_than_its_budget(method):
    rules = method_of(method).budgets
    least = min(rule.fixed + rule.each * rule.least for rule in rules)
    for budget in {1, least - 1} - {0, least}:
        with pytest.raises(OptionError, match=f"needs at least {least} calls"):
            within_budget(method, budget)
    spends = any(rule.each for rule in rules) and method != "drpe"
    for budget in {least, 16}:
        judge = load_judge(method, FakeChatModel(), **within_budget(method, budget))
        calls = judge.config["metadata"]["calls"]
        assert calls <= budget
        assert not spends or calls >= budget - 1


def test_every_contestant_judges_the_same_rows_within_the_budget():
    methods = ["bsm", "drpe", "cot_sc", "relative"]
    result, model = contest(methods, rows(3))
    assert list(result) == methods
    for method in methods:
        standing = result[method]
        assert standing["rows"] == 3
        assert standing["verdicts"] == {"A": 3, "B": 0, "tie": 0}
        assert standing["calls_each"] <= 16
        assert standing["labelled"]["count"] == 3
    # The fake plan holds two criteria: 1 + 2 · 2. DRPE: 2 + 9. The rest: 16 and 2.
    calls = {method: standing["calls"] for method, standing in result.items()}
    assert calls == {"bsm": 15, "drpe": 33, "cot_sc": 48, "relative": 6}
    assert sum(calls.values()) == len(model.prompts)
    assert result["relative"]["tokens"] == 60
    assert json.loads(json.dumps(result)) == result


def test_a_judge_of_one_s_own_is_compared_too():
    verdict = {"verdict": {"preference": "A", "score": 1.0}}
    judge: RunnableLambda[Any, Any] = RunnableLambda(lambda _: verdict)
    own = judge.with_config(metadata={"method": "mine"})
    standing = compare({"mine": own}, rows(2), progress=False)["mine"]
    assert (standing["verdicts"]["A"], standing["calls_each"]) == (2, 0)


def test_what_was_not_judged_counts_as_wrong():
    def answer_or_not(prompt):
        return "?" if "Why 3" in prompt else direct_reply(prompt)

    result, _ = contest(["direct"], rows(5), answer_or_not)
    standing = result["direct"]
    assert (standing["not_judged"], standing["failures"]) == (1, {"unparsable": 1})
    assert (standing["labelled"]["count"], standing["labelled"]["of"]) == (4, 5)
    assert standing["labelled"]["low"] < 0.8 < standing["labelled"]["high"]


def test_methods_that_are_too_dear_take_no_part():
    judges, skipped = line_up(["bsm", "plan_solve", "direct"], FakeChatModel(), budget=2)
    assert list(judges) == ["direct"]
    assert skipped == {
        "bsm": "'bsm' needs at least 3 calls for a pair, got 2",
        "plan_solve": "'plan_solve' needs at least 3 calls for a pair, got 2",
    }


@for_each(
    ("methods", "options", "text"),
    [
        (["bms"], {}, "got ['bms']"),
        ([], {}, "`methods` must be among"),
        (["bsm", "bsm"], {}, "each once; got"),
        (["bsm"], {"budget": 2}, "no method can take part: bsm: 'bsm' needs"),
        (["bsm"], {"options": {"drpe": {}}}, "take part, got ['drpe']"),
    ],
)
def test_wrong_use_is_said(methods, options, text):
    with pytest.raises(OptionError, match=re.escape(text)):
        line_up(methods, FakeChatModel(), **{"budget": 16, **options})


def over_the_wire(call):
    schema = (call.body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return reply(answer(call.prompt + json.dumps(schema)))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(map(json.dumps, rows(3))))
    return path


def trusting(path, server, *options):
    arguments = ["trust", str(path), "--model", "m", "--base-url", server.url, *options]
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_trust_says_which_of_several_methods_agrees_and_resumes(serve, file, tmp_path):
    out, server = tmp_path / "out.html", serve(over_the_wire)
    words = ["--method", "relative,direct", "-o", out, "-o", tmp_path / "out.xlsx"]
    result = trusting(file, server, *words)
    assert result.exit_code == 0, result.output
    assert "pairs by relative: at most 6 calls" in result.stderr
    assert "relative" in result.stdout
    assert "direct" in result.stdout
    calls = len(server.calls)
    assert trusting(file, server, *words).exit_code == 0
    assert len(server.calls) == calls
    sheets = openpyxl.load_workbook(tmp_path / "out.xlsx").sheetnames
    assert sheets == ["answers", "numbers"]


def test_no_verdict_at_all_is_exit_1_with_the_cause(serve, file, tmp_path):
    server = serve(lambda call: error(400, "no room"))
    result = trusting(file, server, "--method", "direct,cot", "-o", tmp_path / "r.html")
    assert result.exit_code == 1
    assert "rows could not be judged" in result.stderr
    assert "provider_error: HTTP 400" in result.stderr
