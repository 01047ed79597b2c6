"""Several methods on the same rows: which of them agrees with people."""

import json

import openpyxl
import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.testing import error, reply
from tests.test_direct import respond as direct_reply


def rows(n, label="A"):
    row = {"output_a": "good", "output_b": "bad", "label": label}
    return [{"id": f"r{i}", "input": f"Why {i}?", **row} for i in range(n)]


def over_the_wire(call):
    return reply(direct_reply(call.prompt))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(map(json.dumps, rows(3))))
    return path


def trusting(path, server, *options):
    arguments = ["trust", str(path), "--model", "m", "--base-url", server.url, *options]
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.mark.whole
def test_trust_says_which_of_several_methods_agrees_and_resumes(serve, file, tmp_path):
    out, server = tmp_path / "out.html", serve(over_the_wire)
    words = ["--method", "relative,direct", "-o", out, "-o", tmp_path / "out.xlsx"]
    result = trusting(file, server, *words)
    assert result.exit_code == 0, result.output
    assert "at most 6 calls" in result.stderr
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
    assert "provider_error: HTTP 400" in result.stderr
