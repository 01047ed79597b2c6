"""`langchain-judges write` as a person meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.testing import reply
from tests.fakes import writes
from tests.model_server import refusal
from tests.processes import held, interrupt, rows_in, start, wait_until

ROOT = Path(__file__).parents[1]


def behave(call):
    return reply(writes(call.prompt))


def tasks(n):
    return [
        {"id": f"t{i}", "concepts": ["snow", "goat", "ice cream", f"concept{i}"]}
        for i in range(n)
    ]


@pytest.fixture
def file_of(tmp_path):
    def lines(rows):
        path = tmp_path / "tasks.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    return lines


def writing(path, server, *more):
    arguments = ["write", path, "--model", "fake", "--base-url", server.url, *more]
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_texts_are_written_into_a_file_counted_and_resumed(serve, file_of, tmp_path):
    server, out = serve(behave), tmp_path / "texts.jsonl"
    result = writing(file_of(tasks(3)), server, "-o", out)
    assert result.exit_code == 0, result.output
    assert "3 texts by bsm: at most 15 calls (5 for each text)" in result.stderr
    counted = " ".join(result.stdout.split())
    assert "all concepts 3 of 3 texts missing 0 of 12 concepts not written 0" in counted
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == ["t0", "t1", "t2"]
    assert all(row["text"] and row["missing"] == [] for row in rows)
    again = writing(file_of(tasks(4)), server, "-o", out)
    assert "resumed 3" in " ".join(again.stdout.split())
    assert len(server.calls) == 16


def test_without_a_file_every_text_is_printed_with_what_it_lacks(serve, file_of):
    def lossy(call):
        return reply('{"text": "Snow."}' if "Make one" in call.prompt else writes(call.prompt))

    result = writing(file_of(tasks(1)), serve(lossy), "--preset", "paper")
    assert "t0: 1 of 4 concepts" in result.stdout
    assert "Snow." in result.stdout
    assert "lost in merge: goat, ice cream, concept0" in result.stdout
    counted = " ".join(result.stdout.split())
    assert "missing 3 of 4 concepts: 3 in merge" in counted


def test_a_dry_run_asks_nothing(serve, file_of):
    server = serve(behave)
    result = writing(
        file_of(tasks(2)), server, "--dry-run", "--set", "depth=2", "--set", "rewrites=0"
    )
    assert result.exit_code == 0
    assert "2 texts by bsm: at most 20 calls (10 for each text)" in result.stderr
    assert server.calls == []


def test_the_baselines_have_names(serve, file_of):
    server = serve(behave)
    more = ["--method", "direct", "--preset", "self_consistency", "--set", "samples=3"]
    result = writing(file_of(tasks(1)), server, *more)
    assert result.exit_code == 0, result.output
    assert len(server.calls) == 4


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ([{"concepts": []}], [], "line 1: `concepts` must be a list of at least one word"),
        ([{"input": "x"}], [], "line 1: `concepts` must be a list of at least one word"),
        ([], [], "has no list of concepts"),
        (
            tasks(1),
            ["--method", "drpe"],
            "there is no method 'drpe'; did you mean 'direct'? there are bsm",
        ),
        (tasks(1), ["--set", "criteria=[]"], "'bsm' has no option 'criteria'"),
        (
            tasks(1),
            ["--set", "groups=1"],
            "`--set groups` must be a whole number of at least 2",
        ),
    ],
)
def test_wrong_use_is_a_sentence_and_code_2(serve, file_of, rows, more, message):
    server = serve(behave)
    result = writing(file_of(rows), server, *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert server.calls == []


def test_failures_are_counted_shown_and_code_1_under_strict(serve, file_of):
    def refusing(call):
        return refusal() if "Make one" in call.prompt else behave(call)

    result = writing(file_of(tasks(2)), serve(refusing), "--strict")
    assert result.exit_code == 1
    assert "t0: not written" in result.stdout
    assert "No usable text was written." in result.stdout
    assert "not written 2 2 refusal" in " ".join(result.stdout.split())


def test_a_spent_budget_is_code_3(serve, file_of, tmp_path):
    out = tmp_path / "texts.jsonl"
    result = writing(file_of(tasks(3)), serve(behave), "-o", out, "--max-calls", "6")
    assert result.exit_code == 3
    assert "2 over_budget" in result.stdout


@pytest.mark.system
def test_ctrl_c_is_code_130_and_the_same_command_goes_on(serve, file_of, tmp_path):
    out, path = tmp_path / "texts.jsonl", file_of(tasks(30))
    script, event = held(behave, lambda _: rows_in(out) >= 2)
    server = serve(script)
    running = start("-m", "langchain_judges.cli", "write", path, "--concurrency", 2,
                    "--model", "fake", "--base-url", server.url, "-o", out)  # fmt: skip
    wait_until(lambda: rows_in(out) >= 2)
    interrupt(running)
    event.set()
    running.communicate()
    assert running.returncode == 130
    server.replies = behave
    calls, file = len(server.calls), len(out.read_text().splitlines())
    assert 2 <= file < 30
    assert writing(path, server, "-o", out).exit_code == 0
    # A text takes four calls; what had come in for unfinished ones is not paid again.
    assert 4 * 30 <= len(server.calls) <= 4 * 30 + 2
    assert len(server.calls) - calls <= 4 * (30 - file)
    assert len(out.read_text().splitlines()) == 30
