"""The command line as a person meets it: bad rows, budgets, faults, Ctrl-C, exit codes."""

import gzip
import json
import re
import signal
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.testing import ServerReply, error, reply
from tests.model_server import cut, good, pairs, refusal, scores, tool_call
from tests.processes import held, interrupt, rows_in, start, wait_until

ROOT = Path(__file__).parents[1]


@pytest.fixture
def write(tmp_path):
    def lines(rows, name="in.jsonl"):
        path = tmp_path / name
        path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
        return path

    return lines


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def judging(path, server, *more):
    return invoke("judge", path, "--model", "fake", "--base-url", server.url, *more)


def test_pairs_are_judged_into_a_file_and_counted(serve, write, tmp_path):
    out = tmp_path / "out.jsonl"
    result = judging(write(pairs(3)), serve(), "--records", out)
    assert result.exit_code == 0, result.output
    assert "3 pairs by bsm: at most 33 calls (11 for each pair)" in result.stderr
    counted = " ".join(result.stdout.split())
    assert (
        "A 3 B 0 tie 0 not judged 0 flips 0 of 3 in both orders failures 0 calls 33" in counted
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == ["p0", "p1", "p2"]
    assert all(row["verdict"]["usage"]["calls"] == 11 for row in rows)


def test_without_a_file_every_verdict_is_printed(serve, write):
    result = judging(write(pairs(1)), serve(), "--set", "max_criteria=2")
    assert "p0: A preferred, score" in result.stdout
    assert re.search(r"Depth +2:1 +2:1", result.stdout)


def test_a_table_is_judged_as_lines_are(serve, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,input,output_a,output_b\n1,Why?,good,bad\n2,How?,,bad\n")
    refused = judging(path, serve(), "--set", "max_criteria=1")
    assert (refused.exit_code, "in.csv, row 2: " in refused.stderr) == (2, True)
    result = judging(path, serve(), "--set", "max_criteria=1", "--skip-bad")
    assert result.exit_code == 0, result.output
    assert "1: A preferred" in result.stdout


@pytest.mark.parametrize("command", ["judge", "compare"])
def test_a_folder_named_as_a_public_set_is_data(serve, small_sets, command):
    more = ["--methods", "direct", "--budget", "1"] if command == "compare" else []
    server = serve()
    options = ["--model", "fake", "--base-url", server.url, "--limit", "2", "--dry-run", *more]
    result = invoke(command, small_sets / "llmbar", *options)
    assert result.exit_code == 0, result.output
    assert ("2 pairs by bsm" if command == "judge" else "at most 2 calls") in result.stderr
    items = invoke("judge", small_sets / "cogeval", "--method", "allure", *options[:7])
    assert "2 items by allure" in items.stderr


def test_a_dry_run_asks_nothing(serve, write):
    server = serve()
    result = judging(write(pairs(4)), server, "--dry-run", "--set", "samples=5")
    assert result.exit_code == 0
    assert "4 pairs by bsm: at most 204 calls (51 for each pair)" in result.stderr
    assert server.calls == []


BAD = [
    pairs(1)[0],
    "{not json",
    {"input": "q", "output_a": "a"},
    {"input": "q", "output_a": "", "output_b": "b"},
    {"input": 3, "output_a": "a", "output_b": "b"},
    "[1, 2]",
    "",
    pairs(2)[1],
]


def test_bad_rows_are_named_before_anything_is_paid(serve, write):
    server = serve()
    result = judging(write(BAD), server)
    assert result.exit_code == 2
    for line in (
        "line 2: not JSON",
        "line 3: the field `output_b` is missing or null",
        "line 4: the field `output_a` is empty",
        "line 5: `input` must be a text or a list of messages",
        "line 6: a pair must be an object, got list",
        "5 of 7 rows are bad; nothing was asked.",
    ):
        assert line in result.stderr
    assert server.calls == []


def test_bad_rows_can_be_left_out(serve, write, tmp_path):
    out = tmp_path / "o.jsonl"
    result = judging(write(BAD), serve(), "--skip-bad", "--records", out)
    assert result.exit_code == 0
    assert "line 2: not JSON" in result.stderr
    assert len(out.read_text().splitlines()) == 2


def test_a_gzipped_file_and_a_limit(serve, tmp_path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, pairs(9))).encode()))
    result = judging(path, serve(), "--limit", "2")
    assert "2 pairs by bsm" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jsonl", "--model", "x"], "There is no file nowhere.jsonl"),
        (["{in}", "--model", "nonsense"], "The model 'nonsense' is not known"),
        (["{in}", "--model", "openai:gpt-5-mini"], "OPENAI_API_KEY"),
        (["{in}", "--model", "mistralai:x"], "pip install langchain-mistralai"),
        (["{in}", "--model", "local:/no.gguf"], "There is no model file at /no.gguf"),
        (
            ["{in}", "--model", "m", "--base-url", "http://x", "--method", "bms"],
            "there is no method 'bms'",
        ),
        (["{in}", "--model", "m", "--base-url", "http://x", "--set", "k=2"], "no option 'k'"),
        (
            ["{in}", "--model", "m", "--base-url", "http://x", "--set", "scale=5"],
            "`--set scale` must",
        ),
        (["{in}", "--model", "m", "--base-url", "http://x", "--set", "cache=5"], "for Python"),
        (["{in}", "--model", "m", "--base-url", "http://x", "-o", "/"], "must end in .csv"),
        (["/", "--model", "m"], "is neither a file"),
        (["{in}", "--model", "m", "--base-url", "http://x", "--set", "k"], "is not NAME=VALUE"),
        (
            ["{in}", "--model", "m", "--base-url", "http://x", "--concurrency", "0"],
            "--concurrency",
        ),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(write, arguments, message):
    path = str(write(pairs(1)))
    result = invoke("judge", *[a.replace("{in}", path) for a in arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.jsonl.gz", b"no gzip", "cannot be read: Not a gzipped file"),
        ("in.jsonl", b"[\n {}\n]", "is a JSON array; put one object on each line"),
    ],
)
def test_a_file_of_another_kind_is_told(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    result = invoke("judge", path, "--model", "local")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_what_looks_like_markup_is_printed_as_it_is(serve, write):
    row = {**pairs(1)[0], "id": "[red]x[/nope] \ud83d"}
    result = judging(write([row]), serve(), "--set", 'criteria=["Depth [/b]"]')
    assert result.exit_code == 0, result.output
    assert "[red]x[/nope]" in result.stdout
    assert "Depth [/b]" in result.stdout


def test_a_byte_order_mark_and_windows_lines_are_read(serve, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(json.dumps, pairs(2))).encode())
    assert "2 pairs by bsm" in judging(path, serve()).stderr


def test_agreement_with_labels_is_counted(serve, write):
    rows = [{**pair, "label": label} for pair, label in zip(pairs(3), "ABA", strict=True)]
    result = judging(write(rows), serve())
    assert "as labelled 2 of 3 judged rows with a label" in " ".join(result.stdout.split())


def test_the_version_is_printed():
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", invoke("--version").stdout)


def test_an_empty_file_is_said_to_be_empty(write):
    result = invoke("judge", write([]), "--model", "local")
    assert result.exit_code == 2
    assert "has no pair to judge" in result.stderr


def test_a_wrong_key_stops_with_one_sentence(serve, write):
    server = serve(lambda call: error(401, "invalid key"))
    result = judging(write(pairs(50)), server)
    assert result.exit_code == 2
    assert "refuses every call: HTTP 401" in result.stderr
    assert "Traceback" not in result.output
    assert len(server.calls) <= 32


def test_no_server_is_a_failure_and_no_verdict(write, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    path = write(pairs(2))
    result = invoke("judge", path, "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert result.exit_code == 1
    counted = " ".join(result.stdout.split())
    assert "A 0 B 0 tie 0 not judged 2 2 provider_error" in counted
    assert "2 of 2 rows could not be judged; 2 by provider_error:" in result.stderr
    assert "(http://127.0.0.1:9/v1)" in result.stderr


def test_a_spent_budget_is_exit_3_and_can_be_resumed(serve, write, tmp_path):
    path, out, server = write(pairs(4)), tmp_path / "o.jsonl", serve()
    result = judging(path, server, "--records", out, "--max-calls", "25")
    assert result.exit_code == 3
    assert "2 over_budget" in result.stdout
    assert judging(path, server, "--records", out).exit_code == 0
    assert len(server.calls) == 44


FAULTY = {
    3: (reply("no idea"), {"unparsable"}),
    11: (reply(""), {"empty"}),
    19: (refusal(), {"refusal"}),
    23: (cut(), {"truncated"}),
    29: (reply(scores(11, 1)), {"invalid_label"}),
    31: (tool_call(), {"unparsable"}),
    37: (error(400, "bad row"), {"provider_error"}),
}


def misbehaving():
    """Fail for good on seven of forty rows, and pass once each a 429, a 500 and a drop."""
    passing = [error(429), error(500), ServerReply(drop=True)]

    def behave(call):
        row = int(re.search(r"Why (\d+)\?", call.prompt)[1])
        if call.shape == "Scores" and row in FAULTY:
            return FAULTY[row][0]
        if row == 5 and passing:
            return passing.pop()
        return good(call)

    return behave


def test_a_row_that_cannot_be_judged_is_exit_0_unless_strict(serve, write):
    server = serve(lambda call: refusal() if "Why 1?" in call.prompt else good(call))
    path = write(pairs(2))
    assert [judging(path, server, *flag).exit_code for flag in ([], ["--strict"])] == [0, 1]


def test_faults_of_every_kind_spoil_their_own_rows_only(serve, write, tmp_path, monkeypatch):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    out = tmp_path / "o.jsonl"
    server = serve(misbehaving())
    result = judging(write(pairs(40)), server, "--records", out, "--set", "max_criteria=2")
    assert result.exit_code == 0, result.output
    rows = {row["index"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert len(rows) == 40
    for index, row in rows.items():
        reasons = {failure["reason"] for failure in row["verdict"]["failures"]}
        if index in FAULTY:
            assert row["verdict"]["preference"] is None
            assert row["verdict"]["score"] is None
            assert reasons == FAULTY[index][1]
        else:
            assert row["verdict"]["preference"] == "A"
            assert reasons == set()
    assert rows[5]["verdict"]["usage"]["by_step"]["branch"]["retries"] >= 1
    counted = " ".join(result.stdout.split())
    assert "A 33 B 0 tie 0 not judged 7 2 unparsable" in counted


def test_one_faulty_call_in_twenty_costs_no_row_with_five_criteria(serve, write, tmp_path):
    bad = [reply("no idea"), reply(""), refusal(), cut(), reply(scores(11, 1)), tool_call()]

    def behave(call):
        spoiled = (
            call.shape == "Scores" and ": Tone:" in call.prompt and "Why 7?" in call.prompt
        )
        return bad[call.number % len(bad)] if spoiled else good(call)

    out = tmp_path / "o.jsonl"
    result = judging(write(pairs(10)), serve(behave), "--records", out)
    assert result.exit_code == 0
    rows = {row["index"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert [row["verdict"]["preference"] for row in rows.values()] == ["A"] * 10
    assert len(rows[7]["verdict"]["failures"]) == 2


@pytest.mark.system
def test_ctrl_c_finishes_what_is_in_flight_and_exits_130(serve, write, tmp_path):
    out = tmp_path / "o.jsonl"
    script, event = held(good, lambda _: rows_in(out) >= 3)
    server = serve(script)
    process = start("-m", "langchain_judges.cli", "judge", write(pairs(300)),
                    "--model", "m", "--base-url", server.url, "--records", out)  # fmt: skip
    wait_until(lambda: rows_in(out) >= 3)
    stderr = interrupt(process)
    event.set()
    printed, rest = process.communicate()
    assert process.returncode == 130
    assert "the same command resumes where it stopped" in stderr + rest
    assert "Traceback" not in stderr + rest
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert 3 <= len(rows) < 300
    assert f"A {len(rows)} " in " ".join(printed.split())


@pytest.mark.system
def test_the_second_ctrl_c_stops_at_once(serve, write):
    server = serve(lambda call: ServerReply(hold=threading.Event()))  # no reply ever comes
    process = start("-m", "langchain_judges.cli", "judge", write(pairs(3)),
                    "--model", "m", "--base-url", server.url)  # fmt: skip
    server.wait_for_calls(1)
    interrupt(process)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_models_lists_how_to_name_one():
    result = invoke("show", "models")
    assert result.exit_code == 0
    assert "local:/path/to.gguf" in result.stdout
    assert "OPENAI_API_KEY is not set" in " ".join(result.stdout.split())


def items(number, **more):
    return [
        {"input": "2 + 2?", "output": f"It is {n}.", "expected": "4", "id": f"i{n}", **more}
        for n in range(number)
    ]


def labels(call):
    label = "1" if "It is 1." in call.prompt else "0"
    return reply(json.dumps({"label": label, "explanation": "so it is"}))


@pytest.mark.parametrize("command", ["judge", "trust"])
def test_a_label_of_no_known_name_is_a_bad_row_of_one_text_too(serve, tmp_path, command):
    server, path = serve(labels), tmp_path / "i.csv"
    path.write_text("input,output,expected,label\nq,a,a,meh\nq2,a,a,0\n")
    arguments = ["--method", "allure", "--model", "fake", "--base-url", server.url]
    arguments += {"judge": ["--records"], "trust": ["-o"]}[command] + [tmp_path / "o.csv"]
    result = invoke(command, path, *arguments)
    assert (result.exit_code, server.calls) == (2, [])
    assert "row 1: `label` must be one of 0, 1, got 'meh'" in result.stderr
    result = invoke(command, path, *arguments, "--skip-bad")
    assert result.exit_code == 0
    # The text "0" of a cell is the judge's label 0.
    sentences = {"judge": "as labelled    1  of 1", "trust": "the labels 100\xa0%"}
    assert sentences[command] in result.stdout


def test_a_judge_of_one_text_judges_items(serve, write):
    result = judging(write(items(3, label=0)), serve(labels), "--method", "allure", "--show")
    assert result.exit_code == 0, result.output
    assert "3 items by allure: at most 3 calls (1 for each item)" in result.stderr
    assert "i1: label 1, score 1.00" in result.stdout
    counted = " ".join(result.stdout.split())
    assert "0 2 1 1 not judged 0 failures 0 calls 3" in counted
    assert "as labelled 2 of 3 judged rows with a label" in counted


def test_rows_are_not_called_bad_where_the_method_is_misspelt(write):
    result = invoke("judge", write(items(2)), "--model", "local", "--method", "alure")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "there is no method 'alure'; did you mean 'allure'? there are "
    )


def test_an_item_without_a_response_is_named_before_any_call(serve, write):
    server = serve(labels)
    rows = [*items(1), {"input": "2 + 2?", "expected": "4"}]
    result = judging(write(rows), server, "--method", "allure")
    assert result.exit_code == 2
    assert "line 2: the field `output` is missing or null" in result.stderr
    assert server.calls == []


@pytest.mark.parametrize(
    ("behave", "cause"),
    [
        (lambda call: error(500, "no room"), "provider_error: HTTP 500"),
        (lambda call: refusal(), "refusal: "),
        (lambda call: error(400, "bad key sk-abc123"), "sk-***"),
    ],
)
def test_a_run_that_judges_nothing_says_why_and_is_exit_1(
    serve, write, tmp_path, monkeypatch, behave, cause
):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    out = tmp_path / "o.jsonl"
    result = judging(write(pairs(3)), serve(behave), "--records", out)
    assert result.exit_code == 1
    assert "3 of 3 rows could not be judged; 3 by " in result.stderr
    assert cause in result.stderr
    assert "abc123" not in result.output + out.read_text()


def test_a_budget_below_one_pair_says_what_a_pair_takes(serve, write, tmp_path):
    server = serve()
    result = judging(
        write(pairs(3)), server, "--max-calls", "5", "--records", tmp_path / "o.jsonl"
    )
    assert (result.exit_code, server.calls) == (3, [])
    assert "a pair may need 11 calls, and the budget is 5" in result.stderr


LABELS = ["C", "model_a", "a", 1, {"a": 1}, ["A"], None]


@pytest.mark.parametrize("command", ["judge", "trust", "compare"])
def test_labels_are_read_alike_and_bad_ones_named_before_anything_is_paid(
    serve, write, tmp_path, command
):
    rows = [{**p, "label": x} for p, x in zip(pairs(7), LABELS, strict=True)]
    path, server = write(rows), serve()
    arguments = [command, path, "--model", "fake", "--base-url", server.url]
    arguments += {"compare": ["--methods", "bsm"], "trust": ["-o", tmp_path / "r.html"]}.get(
        command, []
    )
    result = invoke(*arguments)
    assert result.exit_code == 2
    for line in (
        "line 4: `label` must be A, B or tie, or a usual spelling of them",
        "line 5: `label` must be a text or a number, got",
        "line 6: `label` must be a text or a number, got",
        "3 of 7 rows are bad; nothing was asked.",
    ):
        assert line in result.stderr
    assert server.calls == []
    outcome = invoke(*arguments, "--skip-bad")
    assert outcome.exit_code == 0, outcome.output
    output = " ".join(outcome.stdout.split())
    # Of the tie and twice A that are left, A is said each time.
    results = {"judge": "as labelled 2 of 3", "compare": "67 % [", "trust": "with the label 67"}
    assert results[command] in output


@pytest.mark.parametrize("field", ["group", "category", "human_votes"])
def test_what_cannot_be_counted_is_a_bad_row(serve, write, field):
    result = judging(write([{**pairs(1)[0], field: {"a": 1}}]), serve())
    assert result.exit_code == 2
    assert f"line 1: `{field}` must be a " in result.stderr


def test_a_named_column_leaves_the_others_their_names(serve, tmp_path):
    path = tmp_path / "win.csv"
    path.write_text("input,output_a,output_b,winner\nWhy 1?,good,bad,model_b\n")
    result = judging(path, serve(), "--column", "label=winner")
    assert result.exit_code == 0, result.output
    assert "as labelled 0 of 1" in " ".join(result.stdout.split())
    wrong = judging(path, serve(), "--column", "lable=winner")
    assert wrong.exit_code == 2
    assert "--column names no field 'lable'; did you mean 'label'?" in wrong.stderr


def test_fields_that_are_there_are_named_where_one_is_missing(serve, tmp_path, write):
    result = judging(write([{"frage": "q", "output_a": "a", "output_b": "b"}]), serve())
    assert (
        "line 1: the field `input` is missing or null; the fields are 'frage'," in result.stderr
    )
    path = tmp_path / "in.csv"
    path.write_text("input;output_a;output_b\nq;a;b\nq;c;d\n")
    result = judging(path, serve())
    assert "row 1 and 1 more: the field `input` is missing" in result.stderr
    assert "separated by semicolons" in result.stderr


def test_repeated_ids_are_told_of(serve, write):
    rows = [{**pair, "id": "same"} for pair in pairs(3)]
    result = judging(write(rows), serve())
    assert "Rows with the id of an earlier row: 2; each" in result.stderr
    assert "A 3 " in " ".join(result.stdout.split())


def test_only_options_that_a_shell_can_set_are_listed(serve, write):
    result = judging(write(pairs(1)), serve(), "--set", "foo=1")
    assert "'bsm' has no option 'foo'; it takes allow_leak, " in result.stderr
    assert "checkpointer" not in result.stderr


def test_a_dry_run_needs_no_key(write, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = invoke("judge", write(pairs(2)), "--model", "openai:gpt-5-mini", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "No key for openai:gpt-5-mini was found" in result.stderr
    assert "at most 22 calls" in result.stderr


def test_a_misspelt_memory_is_no_empty_one(serve, write, tmp_path):
    server = serve(labels)
    more = ("--method", "allure", "--memory", tmp_path / "memtypo")
    result = judging(write(items(1)), server, *more)
    assert (result.exit_code, server.calls) == (2, [])
    assert "there is no memory at" in result.stderr
    file = tmp_path / "memtypo"
    file.write_text("")
    result = judging(write(items(1)), server, *more)
    assert (result.exit_code, server.calls) == (2, [])
    assert "is not a store of this package" in result.stderr


@pytest.mark.parametrize("command", ["judge", "trust"])
def test_an_item_with_nothing_to_judge_by_is_a_bad_row(serve, write, tmp_path, command):
    rows = [*items(2, label=0), {"input": "2 + 2?", "output": "It is 5.", "label": 0}]
    path, server = write(rows), serve(labels)
    arguments = [
        command,
        path,
        "--model",
        "fake",
        "--base-url",
        server.url,
        "--method",
        "allure",
    ]
    arguments += ["-o", tmp_path / ("o.jsonl" if command == "judge" else "r.html")]
    result = invoke(*arguments)
    assert (result.exit_code, server.calls) == (2, [])
    assert "line 3: there is nothing to judge by: the judge needs a reference" in result.stderr
    assert invoke(*arguments, "--skip-bad").exit_code == 0
    assert len(server.calls) == 2
    assert invoke(*arguments, "--set", "rubric=correctness").exit_code == 2
    assert invoke(*arguments, "--set", "rubric=Is it right?").exit_code == 0
