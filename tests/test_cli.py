"""The command line as a person meets it: bad rows, budgets, faults, Ctrl-C, exit codes."""

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langsmith.utils import LangSmithError
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.messages import langsmith_client
from langchain_judges.cli.row_files import RowFile, check_known_of, open_rows
from langchain_judges.datasets import rows
from langchain_judges.errors import InputError, OptionError, OutputError
from langchain_judges.escaping import InertConsole
from langchain_judges.rows.checks import FIELDS, check_item
from langchain_judges.rows.columns import NEEDED
from langchain_judges.runs.table_form import TableForm
from langchain_judges.testing import error, fitting_reply, reply
from tests.cases import for_each
from tests.model_server import good, pairs, refusal
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


def test_a_folder_named_as_a_public_set_is_data(serve, small_sets):
    options = ["--method", "relative", "--max-rows", "2", "--dry-run"]
    result = judging(small_sets / "llmbar", serve(), *options)
    assert result.exit_code == 0, result.output
    assert "2 pairs by relative" in result.stderr


def test_a_wrong_key_stops_with_one_sentence(serve, write):
    server = serve(lambda call: error(401, "invalid key"))
    result = judging(write(pairs(50)), server)
    assert result.exit_code == 2
    assert "401" in result.stderr
    assert "Traceback" not in result.output
    assert len(server.calls) <= 32


@pytest.mark.system
def test_ctrl_c_finishes_what_is_in_flight_and_exits_130(serve, write, tmp_path):
    out = tmp_path / "o.jsonl"
    script, event = held(good, lambda _: rows_in(out) >= 3)
    server = serve(script)
    process = start("-m", "langchain_judges.cli", "judge", write(pairs(300)),
                    "--method", "bsm", "--model", "m", "--base-url", server.url,
                    "--records", out)  # fmt: skip
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


def items(number, **more):
    return [
        {"input": "2 + 2?", "output": f"It is {n}.", "expected": "4", "id": f"i{n}", **more}
        for n in range(number)
    ]


def labels(call):
    label = "1" if "It is 1." in call.prompt else "0"
    return reply(json.dumps({"label": label, "explanation": "so it is"}))


def test_a_judge_of_one_text_judges_items(serve, write):
    result = judging(write(items(3, label=0)), serve(labels), "--method", "allure")
    assert result.exit_code == 0, result.output
    assert "3 items by allure: at most 3 calls (1 for each item)" in result.stderr
    assert "i1: label 1, score 1.00" in result.stdout
    counted = " ".join(result.stdout.split())
    assert "label 0 2 label 1 1 not judged 0 failures 0 calls 3" in counted
    assert "as labelled 2 of 3 judged rows with a label" in counted


ROWS: list[Any] = [
    pairs(1)[0],
    "{not json",
    {"input": "q", "output_a": "a"},
    {"input": "q", "output_a": "", "output_b": "b"},
    *({**pairs(1)[0], "label": label} for label in ("maybe", "model_a")),
]
PROBLEMS = {2: "not JSON", 3: "the field `output_b` is missing", 4: "the field `output_a` is empty"}


def test_bad_rows_are_named_and_stand_in_the_result_with_their_reason(serve, write, tmp_path):
    out, records = tmp_path / "o.jsonl", tmp_path / "run.jsonl"
    server = serve()
    more = ("--method", "bsm", "--set", 'criteria=["Tone"]', "-o", out, "--records", records)
    result = judging(write(ROWS), server, *more)
    assert result.exit_code == 0, result.output
    for number, problem in PROBLEMS.items():
        assert re.search(rf"in.jsonl, (row|line) {number}(, column 2)?: {problem}", result.stderr)
    assert "3 of 6 rows are bad" in result.stderr
    assert "Row 5 is judged, but its annotations cannot be used as labels" in result.stderr
    assert len(server.calls) == 6
    table = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["preference"] is None for row in table] == [n + 1 in PROBLEMS for n in range(6)]
    assert all(problem in table[n - 1]["failures"] for n, problem in PROBLEMS.items())
    assert "as labelled 1 of 1" in " ".join(result.stdout.split())


def test_other_commands_name_bad_rows_and_leave_them_out(serve, write, tmp_path):
    rows = [{"label": "A", **row} if isinstance(row, dict) else row for row in ROWS]
    words = ["--model", "fake", "--base-url", serve().url, "-o", tmp_path / "r.html"]
    result = invoke("trust", write(rows), *words)
    assert result.exit_code == 0, result.output
    assert "4 of 6 rows" in result.stderr


@for_each("command, calls", [("judge", 2), ("trust", 1)])
def test_a_label_of_a_cell_is_the_judges_and_an_unknown_one_no_label(
    serve, tmp_path, command, calls
):
    server, path = serve(labels), tmp_path / "i.csv"
    path.write_text("input,output,expected,label\nq,a,a,meh\nq2,a,a,0\nq3,a,,0\n")
    arguments = ["--method", "allure", "--model", "fake", "--base-url", server.url]
    out = {"judge": "o.csv", "trust": "r.html"}[command]
    result = invoke(command, path, *arguments, "-o", tmp_path / out)
    assert (result.exit_code, len(server.calls)) == (0, calls)
    unused = "Row 1 is judged, but its annotations cannot be used as labels"
    told = {"judge": unused, "trust": "row 1"}
    assert f"{told[command]}: `label` must be one of 0, 1, got 'meh'" in result.stderr
    assert "row 3: there is nothing to judge by: the judge needs a reference" in result.stderr
    sentences = {"judge": "as labelled 1 of 1", "trust": "the labels 100\xa0%"}
    assert sentences[command] in re.sub(" +", " ", result.stdout)


NO_ROW = "has no usable row; nothing was asked."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.jsonl", b'{"frage": "q", "output_a": "a", "output_b": "b"}', NO_ROW),
        ("in.jsonl", b'{"frage": "q", "output_a": "a"}', "--column input=question"),
        ("in.csv", b"frage,output_a,output_b\nq,a,b\n", "name it by --column input=COLUMN"),
        ("in.csv", b"question,reply\nq,a\n", "so the method is rubric; --method chooses another"),
        ("in.csv", b"Frage;Antwort\nq;a\n", "are in columns whose names are not known"),
        ("in.jsonl", b"", "has no pair to judge"),
        ("in.jsonl.gz", b"no gzip", "does not match its suffix (Not a gzipped file"),
        ("in.txt", b"hello", "must end in one of"),
    ],
)
def test_a_file_without_a_good_row_is_refused_before_anything_is_asked(
    serve, tmp_path, name, content, message
):
    path, server = tmp_path / name, serve()
    path.write_bytes(content)
    result = judging(path, server)
    assert (result.exit_code, server.calls) == (2, [])
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_a_dry_run_asks_nothing_needs_no_key_and_shows_how_the_first_row_is_read(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "replies.csv"
    path.write_text("Question,agent_text,agent\nWhere is it?,On its way.,007\n")
    more = ["--method", "rubric", "--set", "rubric=Polite?", "--column", "output=agent_text"]
    result = invoke("judge", path, "--model", "openai:gpt-5-mini", "--dry-run", *more)
    assert result.exit_code == 0, result.output
    assert "No key for openai:gpt-5-mini was found" in result.stderr
    assert "at most 1 call" in result.stderr
    for line in (
        "  input (column Question): Where is it?",
        "  output (column agent_text): On its way.",
        "  not shown to the judge: agent",
    ):
        assert line in result.stderr.splitlines()
    shown = invoke("judge", path, *more, "--model", "openai:gpt-5-mini", "--show-prompt", "1")
    asked = shown.stdout.partition("A judge is asked:\n")[2]
    assert "Text between tags" in asked
    assert asked in f"{result.stderr}\n" or f"{len(asked) - 1:,} characters" in result.stderr


def test_the_prompt_of_a_row_is_shown_whole_and_nothing_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "replies.csv"
    path.write_text(f"question,reply\nWhere is it?,On its way.\nWhen?,{'soon ' * 900}end.\n")
    more = ["--method", "rubric", "--set", "rubric=Polite?", "--model", "openai:gpt-5-mini"]
    result = invoke("judge", path, *more, "--show-prompt", "2")
    assert result.exit_code == 0, result.output
    assert "Row 2 is understood as:" in result.stdout
    assert "soon end." in result.stdout
    assert "On its way." not in result.stdout
    result = invoke("judge", path, *more, "--show-prompt", "3")
    assert (result.exit_code, "row 3: the last one is row 2" in result.stderr) == (2, True)


RUBRIC = ["--method", "rubric", "--set", "rubric=Polite?", "--model", "openai:gpt-5-mini"]


def test_ids_of_ones_own_are_counted_in_bad_rows_too_and_made_up_ones_are_not(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("id,input,output\n,Why?,So.\n0,How?,Well.\nx,Who?,Ann.\nx,When?,\n")
    said = invoke("judge", path, *RUBRIC, "--dry-run").stderr
    assert "2 rows have the id 'x'" in said
    assert "the id '0'" not in said


def test_a_row_that_is_no_object_is_refused_by_its_type():
    with pytest.raises(InputError, match="must be an object, got int"):
        check_known_of(5)


def test_a_run_knows_how_many_rows_there_are_good_and_bad(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("input,output\nWhy?,\nHow?,Well.\nWho?,Ann.\n")
    file = open_rows(path, check_item, RowFlags(), "item")
    file.count()
    assert (file.number, [number for number, _ in file.bad]) == (2, [1])
    assert file.whole().size == 3
    assert [*file.at({0, 2})] == [2]


def test_a_row_to_show_is_counted_as_the_messages_about_rows_count(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("input,output\nWhy?,\nHow?,Well.\n")
    shown = invoke("judge", path, *RUBRIC, "--show-prompt", "2")
    assert "Row 2 is understood as:\n  input: How?" in shown.stdout
    bad = invoke("judge", path, *RUBRIC, "--show-prompt", "1")
    assert (
        bad.exit_code,
        "row 1: the field `output` is empty, read from 'output' (" in bad.stderr,
    ) == (2, True)


# A source of its own column, a column that nobody reads, and a text that is cut.
def test_what_a_judge_is_not_shown_is_named_and_what_is_cut_can_be_printed(tmp_path):
    path, out = tmp_path / "replies.csv", io.StringIO()
    path.write_text(f"input,output,docs,own\nWhy?,,x,1\nHow?,{'Well. ' * 400},y,2\n")
    file = open_rows(path, check_item, RowFlags(["source=docs"]), "item")
    judge: Any = SimpleNamespace(fields_named=set(), show=lambda row: "prompt " * 900)
    file.tell_row(None, InertConsole(file=out, width=4_000), judge, 600)
    told = out.getvalue()
    assert "Row 2 is understood as:" in told
    assert "not shown to the judge: own\n" in told
    assert "… 6,300 characters in all: --show-prompt 2 prints them" in told


def test_a_field_is_read_from_several_columns_by_one_flag_each(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("input,output,ann,bob\nWhy?,So.,1,0\n")
    named = ["--column", "human_votes=ann", "--column", "human_votes=bob"]
    shown = invoke("judge", path, *RUBRIC, "--show-prompt", "1", *named)
    assert 'human_votes (column ann, bob): ["1", "0"]' in shown.stdout
    [row] = rows(path, {"human_votes": ["ann", "bob"]})
    assert row["human_votes"] == ["1", "0"]
    joint = invoke("judge", path, *RUBRIC, "--dry-run", "--column", "human_votes=ann,bob")
    assert "'ann,bob'; name several in a list, or repeat --column" in joint.stderr


def test_no_column_holds_the_task_of_texts_that_answer_nothing(tmp_path):
    path = tmp_path / "comments.csv"
    path.write_text("comment\nGo away.\n")
    named = ["--column", "output=comment", "--column", "input="]
    shown = invoke("judge", path, *RUBRIC, "--show-prompt", "1", *named).stdout
    assert "output (column comment): Go away.\n  input: (no task)\n" in shown
    assert invoke("judge", path, *RUBRIC, "--dry-run", "--column", "output=").exit_code == 2


@for_each("field", sorted(FIELDS | {"label.tone"}))
def test_only_votes_requests_sources_and_two_systems_are_read_from_several_columns(field):
    takes = {"human_votes": {1, 2, 3}, "input": {1, 2, 3}, "source": {1, 2, 3}, "systems": {2}}
    none = set() if field in NEEDED else {0}
    for columns in ([], ["x"], ["x", "y"], ["x", "y", "z"]):
        if len(columns) in takes.get(field, set()) | none:
            assert TableForm({field: columns}).columns == {field: columns}
        else:
            with pytest.raises(OptionError, match=f"`columns` reads '{field}' from"):
                TableForm({field: columns})
    assert TableForm({field: "x"})


@for_each("command", ["judge", "trust", "write"])
def test_an_interrupt_before_the_first_call_is_said(command, tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RowFile, "count", interrupted)
    path = tmp_path / "r.jsonl"
    path.write_text('{"input": "Why?", "output_a": "a", "output_b": "b", "concepts": ["c"]}')
    done = invoke(command, path, "--model", "m", "--base-url", "http://127.0.0.1:9")
    assert done.exit_code == 130
    assert done.stderr.endswith("Stopped before anything was asked.\n")


def test_a_dry_run_says_where_an_earlier_run_has_finished_some_of_its_rows(serve, write, tmp_path):
    rows, out = write(pairs(3)), ("-o", tmp_path / "o.csv")
    kept = "What an earlier run of this judge finished is counted too, and not asked again."
    server = serve(good)
    assert kept not in judging(rows, server, *out, "--method", "bsm", "--dry-run").stderr
    judging(rows, server, *out, "--method", "bsm", "--max-calls", "9")
    assert kept in judging(rows, server, *out, "--method", "bsm", "--dry-run").stderr


def test_langsmith_without_a_key_names_what_sets_one(monkeypatch):
    for name in ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    for hint, key in (("; no key is set by LANGSMITH_API_KEY", ""), ("", "k")):
        if key:
            monkeypatch.setenv("LANGSMITH_API_KEY", key)
        with pytest.raises(OutputError, match="LangSmith refused") as info, langsmith_client():
            raise LangSmithError("Unauthorized")
        assert str(info.value).endswith(f"Unauthorized{hint}")


def test_systems_of_a_pair_are_two(tmp_path):
    path = tmp_path / "pairs.csv"
    named = [f"--column=systems={name}" for name in "xyz"]
    for cell in ("one", '["a", "b", "c"]', '["a", "b"]'):
        path.write_text("input,output_a,output_b,x,y,z\nWhy?,a,b,1,2,3\n")
        dry = ("trust", path, "--model", "local", "--dry-run")
        said = invoke(*dry, *named).stderr
        assert "--column reads 'systems' from x, y, z" in said
        with path.open("w") as file:
            csv.writer(file).writerows(
                [["input", "output_a", "output_b", "systems"], ["Why?", "a", "b", cell]]
            )
        done = invoke(*dry)
        assert ("must be two, who wrote A and B" in done.stderr) == (cell != '["a", "b"]')


def test_a_run_reads_a_field_from_several_columns(serve, tmp_path):
    path, server = tmp_path / "items.csv", serve(labels)
    path.write_text("input,output,c1,c2,ann,bob\nWhy?,So.,One.,Two.,1,0\n")
    several = {"source": ["c1", "c2"], "human_votes": ["ann", "bob"]}
    named = [f"--column={field}={name}" for field, own in several.items() for name in own]
    result = judging(path, server, "--method", "allure", *named)
    assert (result.exit_code, len(server.calls)) == (0, 1), result.stderr


def test_a_warning_is_printed_once_and_names_flags(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "replies.csv"
    path.write_text("input,output\nWhy?,So.\n")
    labels = ["--set", 'labels=["polite", "rude"]']
    said = invoke("judge", path, *RUBRIC, *labels, "--dry-run").stderr
    assert said.count("--set best='polite' or --set best='rude'") == 1
    assert (said.count("best="), said.count("No key for")) == (2, 1)


def test_a_preset_that_is_not_there_is_named_before_its_method(tmp_path):
    path = tmp_path / "replies.csv"
    path.write_text("input,output\nWhy?,So.\n")
    said = invoke("judge", path, *RUBRIC, "--preset", "politness").stderr
    assert "there is no preset 'politness' of 'rubric'; did you mean 'tone'" in said


def test_each_of_the_reasons_is_named_for_which_rows_were_not_judged(serve, write):
    server = serve(lambda call: refusal() if "0?" in call.prompt else error(400, "no room"))
    asked = [{"input": f"{n}?", "output": "So."} for n in range(2)]
    more = ["--method", "rubric", "--set", "rubric=Polite?", "--concurrency", "1"]
    said = judging(write(asked), server, *more).stderr
    told = said.partition("2 of 2 rows could not be judged; ")[2]
    assert (told.count("1 by "), "refusal" in told, "no room" in told) == (2, True, True)


def test_cells_are_said_to_be_inert_of_a_table_that_is_there(serve, write, tmp_path):
    rows, table = write([{**each, "note": "=cmd()"} for each in items(3)]), tmp_path / "o.csv"
    server = serve(labels)
    out = ["-o", table, "--method", "rubric", "--set", "rubric=correctness"]
    for more in (["--max-calls", "1", "--concurrency", "1"], []):
        assert "made inert" in judging(rows, server, *out, *more).stderr
    assert "'=cmd()" in table.read_text()
    assert "made inert" not in judging(rows, server, *out[2:]).stderr


@pytest.mark.parametrize(
    ("behave", "cause"),
    [
        (lambda call: error(500, "no room"), "provider_error: HTTP 500"),
        (lambda call: refusal(), "refusal: "),
        (lambda call: error(400, "bad key sk-abc123"), "sk-***"),
        (None, "(http://127.0.0.1:9/v1)"),
    ],
)
def test_a_run_that_judges_nothing_says_why_and_is_exit_1(
    serve, write, tmp_path, monkeypatch, behave, cause
):
    monkeypatch.setattr("langchain_judges.asking.send.FIRST_WAIT", 0.001)
    out, path = tmp_path / "o.jsonl", write(pairs(3))
    url = serve(behave).url if behave else "http://127.0.0.1:9/v1"
    result = invoke("judge", path, "--model", "fake", "--base-url", url, "--records", out)
    assert result.exit_code == 1
    assert "3 of 3 rows could not be judged; 3 by " in result.stderr
    assert cause in result.stderr
    assert "abc123" not in result.output + out.read_text()


def test_failures_are_exit_1_if_strict_and_a_spent_budget_is_exit_3(serve, write, tmp_path):
    server = serve(lambda call: refusal() if "Why 1?" in call.prompt else good(call))
    path, out = write(pairs(2)), tmp_path / "o.jsonl"
    assert [judging(path, server, *flag).exit_code for flag in ([], ["--strict"])] == [0, 1]
    spent = judging(path, server, "--records", out, "--max-calls", "3")
    assert spent.exit_code == 3
    assert "the budget is spent" in spent.stderr
    assert judging(path, server, "--records", out).exit_code == 0


@for_each("told, codes", [(2, (0, 0)), (1, (0, 1)), (0, (2, 2))])
def test_rows_without_the_instructions_that_a_rubric_needs_are_not_asked_about(
    told, codes, serve, write, tmp_path
):
    turns = [{"role": "user", "content": "Where?"}]
    led = [{"role": "system", "content": "You are a pirate."}, *turns]
    path = write([{"input": led if i < told else turns, "output": f"A{i}."} for i in range(2)])
    asked = ["--set", "rubric=In its role?", "--set", 'needs=["instructions"]']
    for code, strict in zip(codes, ([], ["--strict"]), strict=True):
        server = serve(fitting_reply)
        result = judging(
            path, server, *asked, *strict, "-o", tmp_path / f"{told}{len(strict)}.jsonl"
        )
        assert (result.exit_code, len(server.calls)) == (code, told), result.output
        assert all("You are a pirate." in call.prompt for call in server.calls)
        lines = "no system message says what the agent was told to do; it holds: text; "
        assert (f"row 1 and 1 more: {lines}" in result.stderr) == (not told)
        assert (f"row 2: {lines}" in result.stderr) == (told == 1)
