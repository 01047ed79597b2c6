"""What commands hand to a run, and how they and the app end."""

from __future__ import annotations

import io
import json
import shlex
import sys
from contextlib import nullcontext
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
import requests
from pydantic_core import ValidationError
from typer.testing import CliRunner

from langchain_judges.cli import app, messages, row_files
from langchain_judges.cli.compare import PlaceFlags, _order
from langchain_judges.cli.flags import RunFlags, _flags
from langchain_judges.cli.watch import sentence
from langchain_judges.errors import InputError, OptionError, OutputError, OverBudget
from langchain_judges.escaping import InertConsole
from langchain_judges.integrations.watch import Watch
from langchain_judges.runs.sources import Source
from langchain_judges.runs.summary import Summary
from tests.cases import for_each
from tests.judged_rows import data_of, run_of
from tests.judges import labels
from tests.model_server import good
from tests.test_cli_exits import ends


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(words: str) -> Any:
    return CliRunner().invoke(app, shlex.split(words))


# ---- what commands hand to a run


@pytest.fixture
def handed(monkeypatch):
    """What a run gets in place of being run, by name."""
    told: dict[str, Any] = {}

    def run_rows(worker: Any, rows: Any, options: Any, show: Any, collect: Any = None) -> Any:
        told.update(worker=worker, rows=rows, options=options, show=show, collect=collect)
        return Summary(rows=1), False

    for name in ("judge", "write"):
        monkeypatch.setattr(f"langchain_judges.cli.{name}.run_rows", run_rows)
    monkeypatch.setattr("langchain_judges.cli.messages.run_rows", run_rows)
    return told


MODEL = "--model m --base-url http://127.0.0.1:9"


# Flags, the options of the run, and whether verdicts are printed.
@for_each(
    ("words", "options", "show"),
    [
        ("", {}, True),
        ("-o o.csv --raw", {"out": Path("o.csv"), "raw": True}, False),
        ("--records r.jsonl", {"records": Path("r.jsonl")}, False),
        ("--max-calls 3 --concurrency 2", {"max_calls": 3, "max_concurrency": 2}, True),
        ("--shard 1/2 --records p", {"shard": "1/2", "records": Path("p")}, False),
        ("--keep-requests --strict", {"keep_requests": True}, True),
    ],
)
def test_flags_of_judge_are_options_of_its_run(handed, words, options, show):
    Path("t.csv").write_text("q,output\nWhy?,So.\nHow?,Well.\nWho?,\n")
    done = invoke(f"judge t.csv {MODEL} --column input=q --set rubric=Kind? {words}")
    assert done.exit_code == 0, done.output
    assert handed["options"] == {"columns": {"input": "q"}, **options}
    assert (handed["show"], handed["rows"].size) == (show, 3)
    assert handed["worker"].get_name() == "rubric"
    assert ("Shard 1/2 judges about 1 of 2 rows." in done.stderr) == ("shard" in options)


@for_each(("words", "waits"), [("--rpm 60", (1, 0)), ("--tpm 6000", (0, 1)), ("--rpm 2", (30, 0))])
def test_a_run_waits_for_its_minutes(handed, monkeypatch, words, waits):
    Path("t.csv").write_text("input,output\nWhy?,So.\n")
    assert invoke(f"judge t.csv {MODEL} --set rubric=Kind? {words}").exit_code == 0
    limiter = handed["options"]["rate_limiter"]
    monkeypatch.setattr("time.monotonic", lambda: 1_000.0)
    assert limiter.turn() == 0
    if waits[1]:
        limiter.spend(100)  # a second's
    assert limiter.turn() == pytest.approx(sum(waits))


def test_flags_of_write_are_options_of_its_run(handed):
    Path("t.jsonl").write_text('{"concepts": ["snow", "deck"]}\n')
    for words, options, show in (
        (
            "-o o.csv --max-dollars 2 --prices p.json",
            {"out": Path("o.csv"), "max_dollars": 2.0, "prices": Path("p.json")},
            False,
        ),
        ("--method single_prompt --set model.seed=2", {}, True),
    ):
        done = invoke(f"write t.jsonl {MODEL} {words}")
        assert done.exit_code == 0, done.output
        assert (handed["options"], handed["show"]) == (options, show)
        assert "1 item by" in done.stderr


def test_flags_of_compare_are_options_of_its_run(handed):
    Path("t.csv").write_text("q,v1,v2\nWhy?,So.,Well.\n")
    beside = Path(".pr.md.run/records.jsonl")
    for words, out, records in (
        ("", None, None),
        ("-o o.csv", Path("o.csv"), None),
        ("-o o.csv -o pr.md --records r.jsonl", Path("o.csv"), Path("r.jsonl")),
        ("-o pr.md", None, beside),
    ):
        done = invoke(f"compare t.csv --systems v1,v2 {MODEL} --column input=q {words}")
        assert done.exit_code == 0, done.output
        named = {"input": "q", "output_a": "v1", "output_b": "v2"}
        assert handed["options"] == {"out": out, "records": records, "columns": named}
        assert Path("pr.md").exists() == ("pr.md" in words)
        assert not handed["show"]


# ---- a run at the terminal


def test_a_run_prints_its_verdicts_where_that_is_asked_and_always_its_counts(capsys):
    rows = [{"id": f"i{n}", "input": "?", "output": n} for n in ("good", "bad")]
    for show in (True, False):
        got: list[Any] = []
        summary, stopped = messages.run_rows(
            labels(), rows, {"max_concurrency": 1}, show, got.append
        )
        said = capsys.readouterr()
        assert (summary.rows, stopped, len(got)) == (2, False, 2)
        assert ("igood: label 1, score 0.90" in said.out) == show
        assert ("ibad: label 0, score 0.10" in said.out) == show
        assert " ".join(said.out.split()).count("label 1 1") == 1
        assert "calls" not in said.err


def test_what_langsmith_refuses_or_does_not_answer_is_one_sentence(monkeypatch):
    monkeypatch.setenv("LANGSMITH_API_KEY", "k")
    long = f"first {'x' * 400}. second"
    for error, said in (
        (
            requests.ConnectionError("no\n route. Try later"),
            "cannot be reached (ConnectionError): no route",
        ),
        (requests.HTTPError(long), f"refused (HTTPError): first {'x' * 294}"),
        (
            ValidationError.from_exception_data(
                "Run", [{"type": "missing", "loc": ("id",), "input": {}}]
            ),
            "answered off its schema (ValidationError): 1 validation error for Run id Field "
            "required",
        ),
    ):
        with pytest.raises(OutputError) as info, messages.langsmith_client():
            raise error
        assert str(info.value) == f"LangSmith {said}"


# ---- the app


def test_what_is_no_command_is_said(monkeypatch):
    assert invoke("--version").stdout == f"{version('langchain-judges')}\n"
    assert "Judge every row of a file." in invoke("").output
    done = invoke("--plugin no_such_module show")
    assert (done.exit_code, "'no_such_module' cannot be imported: No mod" in done.stderr) == (
        2,
        True,
    )
    done = invoke("evaluate")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "There is no command 'evaluate'; did you mean 'judge'? there are audit, c" in done.stderr


def test_a_module_of_the_working_folder_can_be_plugged_in(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("plugged_in_here.py").write_text("FOUND = True\n")
    assert invoke("--plugin plugged_in_here show jury").exit_code == 0
    assert sys.modules.pop("plugged_in_here").FOUND


def test_warnings_are_yellow_and_refusals_red(monkeypatch):
    out = io.StringIO()
    console = InertConsole(file=out, force_terminal=True, color_system="standard")
    monkeypatch.setattr(messages, "error_console", lambda: console)
    messages.say("[bold]as it is[/bold]")
    messages.warn("beware")
    for error in (OptionError("no"), OverBudget("the budget is spent")):
        assert ends(lambda error=error: refused(error)) in (2, 3)
    plain, warned, *red = out.getvalue().splitlines()
    assert plain == "[bold]as it is[/bold]"
    assert warned == "\x1b[33mbeware\x1b[0m"
    assert [line[:5] for line in red] == ["\x1b[31m"] * 2


def refused(error: Exception) -> None:
    with messages.refusals_as_exits():
        raise error


def test_flags_of_a_run_have_the_meaning_and_least_value_of_its_options():
    flags = {each.name: each for each in _flags(RunFlags)}
    options = {name: get_args(each.annotation)[1] for name, each in flags.items()}
    assert [name for name, each in options.items() if each.param_decls] == [
        "dry_run",
        "strict",
        "keep_requests",
    ]
    assert options["dry_run"].param_decls == ("--dry-run",)
    least = {name: each.min for name, each in options.items() if each.min is not None}
    assert least == {"max_concurrency": 1, "max_calls": 1}
    assert options["strict"].help == "Exit with 1 if anything failed."
    assert options["keep_requests"].help.startswith("Keep each request with its reply in a")
    assert "`" not in "".join(each.help for each in options.values())
    assert [each.default for each in flags.values()] == [None] * 4 + [False] * 3
    assert {get_args(each.annotation)[0] for each in flags.values()} >= {bool, int | None}


# How an order ends: what was not judged, of how many comparisons.
@for_each(
    ("undone", "asked", "strict", "over", "code"),
    [
        (0, 3, True, False, 0),
        (1, 3, False, False, 0),
        (1, 3, True, False, 1),
        (3, 3, False, False, 1),
        (1_000, 2_000, 0, False, 0),
        (0, 3, False, True, 3),
    ],
)
def test_an_order_ends_as_its_comparisons_did(
    monkeypatch, capsys, undone, asked, strict, over, code
):
    own = {"strength": 0.1, "low": 0.0, "high": 0.2, "comparisons": 2, "more": 4}
    systems = [{"system": name, **own, "parted": False} for name in "abc"]
    told: dict[str, Any] = {}

    def rank(tasks: Any, judge: Any, **options: Any) -> Any:
        told.update(options, tasks=[*tasks])
        took = {"calls": 6, "cost": 0.5, "over_budget": over}
        return {"systems": systems, "not_judged": undone, "comparisons": asked, **took}

    monkeypatch.setattr("langchain_judges.runs.comparison.rank", rank)
    both: dict[str, Any] = {"input": "?", "output_a": "x", "output_b": " ", "c": "z"}
    file = row_files.RowFile(Path("t.csv"), Source([both], True, check=lambda row: None))
    run, output = RunFlags(max_calls=5, strict=bool(strict)), PlaceFlags([Path("a.md")])
    assert ends(lambda: _order(labels(), file, "abc", run, output)) == code
    assert told["tasks"][0]["outputs"] == {"a": "x", "c": "z"}
    assert (told["max_calls"], told["records"], told["progress"]) == (5, output.journal, False)
    said, lost = capsys.readouterr(), f"{undone:,} of {asked:,} comparisons could not be judged"
    assert said.err == (f"{lost}\n" if undone else "")
    assert "a before b" in said.out
    assert f"It took 6 calls and $0.5000{'; the limit is reached' * over}." in said.out
    assert Path("a.md").exists()


# A look at a project, and how the command ends.
@for_each(
    ("look", "code"),
    [
        (Watch(judged=2), 0),
        (Watch(judged=1, failed=1), 0),
        (Watch(failed=1), 1),
        (Watch(), 0),
        (Watch(judged=1, stopped="the budget is spent"), 3),
    ],
)
def test_a_look_ends_with_its_code_and_is_asked_for_as_flags_say(monkeypatch, look, code):
    told: dict[str, Any] = {}

    def watch_project(client: Any, **options: Any) -> Watch:
        told.update(options)
        return look

    monkeypatch.setenv("LANGSMITH_API_KEY", "k")
    monkeypatch.setattr("langchain_judges.integrations.watch.watch_project", watch_project)
    flags = "--sample 0.5 --since 2h --threads --key k --queue q --max-rows 3 --max-calls 4"
    words = f"watch --project app {MODEL} --preset tone --column source=docs {flags}"
    done = invoke(words)
    assert (done.exit_code, done.stderr) == (code, f"{sentence(look)}\n")
    assert told.pop("judge").get_name() == "rubric"
    assert not told.pop("stop").is_set()
    given = {name: value for name, value in told.items() if value is not None}
    assert given == {
        "context": "docs",
        "project": "app",
        "sample": 0.5,
        "since": timedelta(hours=2),
        "threads": True,
        "key": "k",
        "queue": "q",
        "max_rows": 3,
        "max_calls": 4,
    }


@for_each(
    ("row", "said"),
    [
        ({"input": "?", "output": "x", "label": "1"}, ""),
        ({"input": "?", "output": "x"}, ""),
        ({"input": "?", "output": ""}, "the field `output` is empty"),
        (
            {"input": "?", "output": "x", "label": "meh"},
            "`label` must be one of 0, 1, got 'meh'; rename it, or give the judge yours",
        ),
        ({"input": "?", "output": "x", "human_votes": ["1", 0, ""]}, ""),
        (
            {"input": "?", "output": "x", "human_votes": ["1", "Yes "]},
            "`human_votes` must be one of 0, 1, got 'Yes '",
        ),
    ],
)
def test_a_row_is_checked_by_what_its_judge_needs(row, said):
    check = row_files.check_of({"method": "rubric", "options": {"rubric": "Kind?"}})
    if said:
        with pytest.raises(InputError, match=said):
            check(row)
        return
    is_labelled = "label" in row
    check(row)
    assert row.get("label") == (1 if is_labelled else None)


@for_each(
    ("known", "said"),
    [
        ({"label": "good"}, "`label` must be a number, the total"),
        ({"labels": {"b": "maybe"}}, r"`label\.b` must be one of 0, 1, got 'maybe'"),
        ({"label": "0.5", "labels": {"b": "1", "c": "other people's"}}, ""),
    ],
)
def test_labels_of_several_criteria_are_checked_before_a_call(known, said):
    check = row_files.check_of({"method": "rubric", "options": {"rubric": ["a", "b"]}})
    row = {"input": "?", "output": "x", **known}
    with pytest.raises(InputError, match=said) if said else nullcontext():
        check(row)


def test_one_problem_of_many_cells_is_told_once_and_no_columns_are_asked_for():
    labels = pd.DataFrame({"input": "q", "output": "t", "ok": ["ja"] * 3 + ["nein"]})
    labels.to_excel("t.xlsx", index=False)
    flags = "--model openai:m --set rubric=Ok? --column label=ok --dry-run"
    told = invoke(f"trust t.xlsx {flags}").stderr
    assert "row 1 and 2 more: `label` must be one of 0, 1, got 'ja'" in told
    assert ("(cell C2)" in told, "(cell C3)" in told, "Name columns" in told) == (1, 0, 0)


@for_each("field", ["category", "label", "human_votes"])
def test_a_row_is_judged_whatever_people_know_of_it(field):
    Path("t.jsonl").write_text(json.dumps({"input": "q", "output": "t", field: {"abuse": 1}}))
    judge = "t.jsonl --model openai:m --method rubric --set rubric=Ok?"
    planned = invoke(f"judge {judge} --dry-run").stderr
    assert "1 item by rubric" in planned
    assert f"Row 1 is judged, but its annotations cannot be used as labels: `{field}`" in planned
    assert f"`{field}`" in invoke(f"trust {judge} --dry-run").stderr


@for_each("field", ["group", "category", "label", "human_votes", "systems"])
def test_a_pair_is_judged_whatever_people_know_of_it_and_that_is_told(serve, field):
    pair = {"input": "q", "output_a": "t", "output_b": "u", field: {"abuse": [1]}}
    Path("t.jsonl").write_text("\n".join(json.dumps({**pair, "input": each}) for each in "qr"))
    server = serve(good)
    done = invoke(f"judge t.jsonl --model m --base-url {server.url} -o {field}.csv")
    assert (done.exit_code, len(server.calls)) == (0, 4), done.stderr
    assert f"annotations cannot be used as labels: `{field}`" in done.stderr


def test_a_page_is_either_looked_at_or_labelled_on():
    Path("t.csv").write_text("id,input,output\nr1,Why?,So.\nr2,How?,Well.\n")
    done = invoke("view t.csv -o l.jsonl --export p.html")
    assert (done.exit_code, "--export writes a page to look at" in done.stderr) == (2, True)
    for flag in ("-o t.csv", "--export t.csv"):
        done = invoke(f"view t.csv {flag}")
        assert (done.exit_code, "t.csv is read by this command" in done.stderr) == (2, True)
    for flag, name in (("-o", "--out"), ("--export", "--export")):
        assert (
            f"{name} must name a file in a folder; there"
            in invoke(f"view t.csv {flag} no/x").stderr
        )
    assert invoke("view t.csv --export p.html --max-rows 1").exit_code == 0
    page = Path("p.html").read_text()
    assert ("Why?" in page, "How?" in page) == (True, False)


def test_what_a_report_left_out_is_said_by_the_name_of_its_judge():
    data = data_of(["A", "B"] * 10)
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    for name in "xy":
        run = run_of(["A"] * 21)
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in run))
    for names in ("x", "xy"):
        verdicts = " ".join(f"--verdicts {name}.jsonl" for name in names)
        done = invoke(f"trust d.jsonl {verdicts} -o r.md --min-agreement 0.1")
        assert done.exit_code == 0, done.output
        lines = [line for line in done.stderr.splitlines() if "left out: 1 " in line]
        heads = [line.partition(": ")[0] for line in lines]
        own = ["judge", "judge (y.jsonl)"]
        assert heads == (own if names[1:] else ["Verdicts left out"])
        assert done.stderr.count("passed: agreement 50") == len(names)


@for_each("command", ["judge", "trust"])
@for_each("field", ["group", "family", "id"])
def test_names_of_rows_may_be_numbers(command, field):
    row = {"input": "q", "output": "t", "label": 1, field: 7}
    Path("t.jsonl").write_text(json.dumps(row))
    words = f"{command} t.jsonl --model openai:m --method rubric --set rubric=Ok? --dry-run"
    assert "1 item by rubric" in invoke(words).stderr
