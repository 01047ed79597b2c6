"""The command `trust`: what it asks, writes and refuses, its baselines and its bars."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cookbook.recorded_judges import recorded_judge
from langchain_judges import judge_many, report
from langchain_judges.cli import app
from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.row_files import check_known_of, known_rows
from langchain_judges.report.labelling import WHOLE_ROW, LabelFile
from langchain_judges.report.overview import markdown
from tests.cases import for_each
from tests.judged_rows import data_of, items_of, run_of
from tests.model_server import good, pairs, refusal
from tests.test_report_page import Page

NBSP = "\u00a0"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def asking(server):
    """Flags that name the judge to run: `bsm`, whose replies the served model knows."""
    return ("--method", "bsm", "--model", "fake", "--base-url", server.url)


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{**pair, "label": "B" if i == 2 else "A"} for i, pair in enumerate(pairs(4))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.whole
def test_trust_judges_reports_and_goes_on_where_it_was(serve, labelled, tmp_path):
    server, out = serve(), tmp_path / "deep" / "report.html"
    arguments = ("trust", labelled, *asking(server), "-o", out)
    first = invoke(*arguments, "-o", tmp_path / "r.csv", "-o", tmp_path / "r.json")
    assert first.exit_code == 0, first.output
    assert "agreement with the labels 75 %" in " ".join(first.stdout.lower().split())
    assert "at most 44 calls (11 for each pair)" in first.stderr
    calls = len(server.calls)
    page = Page(out.read_text())
    assert page.values["agreement.label.wrong"] == ["0.750000"]
    assert f"{calls}" in page.text
    assert json.loads((tmp_path / "r.json").read_text())["usage"]["calls"] == calls
    assert "agreement.label.wrong" in (tmp_path / "r.csv").read_text()
    again = invoke(*arguments)
    assert again.exit_code == 0
    assert len(server.calls) == calls
    file = out.with_suffix(".verdicts.jsonl")
    finished = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "f.html")
    assert finished.exit_code == 0, finished.output
    assert Page((tmp_path / "f.html").read_text()).values == page.values


@pytest.mark.parametrize("out", ["report.html", "adv.json"])
def test_the_advised_commands_run(serve, tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    rows = [{**pair, "label": "A"} for pair in pairs(6)] + pairs(8)[6:]
    Path("some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = invoke("trust", "some.jsonl", *asking(serve()), "-o", out)
    label, trust = first.stdout.partition("Next: ")[2].splitlines()[1:3]
    for command in (label, trust):
        done = CliRunner().invoke(app, shlex.split(command)[1:], input="1q")
        assert done.exit_code == 0, done.output


def test_trust_puts_finished_runs_side_by_side(labelled, tmp_path):
    data = [json.loads(line) for line in labelled.read_text().splitlines()]
    paths = []
    for name, answer in (("one", "A"), ("two", "B")):
        record = {"judge": name, "setting": "s", "order": "AB", "preference": answer}
        judge = recorded_judge([{**record, "id": row["id"], "raw": ""} for row in data])
        paths.append(tmp_path / f"{name}.jsonl")
        list(judge_many(judge, data, records=paths[-1], progress=False))
    arguments = [part for path in paths for part in ("--verdicts", path)]
    places = [tmp_path / name for name in ("r.html", "r.md")]
    result = invoke("trust", labelled, *arguments, "-o", places[0], "-o", places[1])
    assert result.exit_code == 0, result.output
    assert "- Not settled between" in places[1].read_text()
    assert "two · recorded:s: No: " in result.stdout
    assert "Averages over many rows. Not yet: " in result.stdout
    assert "Which one is right more often" in (tmp_path / "r.html").read_text()


def test_a_spent_budget_reports_what_was_judged(serve, labelled, tmp_path):
    out = tmp_path / "r.html"
    model = asking(serve())
    result = invoke("trust", labelled, *model, "-o", out, "--max-calls", "22")
    assert result.exit_code == 3
    assert f"Not judged 0{NBSP}% [0 of 2 rows]" in re.sub(" +", " ", result.stdout)
    assert "left out: 2 that were not asked because the budget was spent" in result.stderr
    outcome = invoke("trust", labelled, "--verdicts", out.with_suffix(".verdicts.jsonl"), "-o", out)
    assert f"Not judged 0{NBSP}% [0 of 2 rows]" in re.sub(" +", " ", outcome.stdout)
    assert "left out: 2 that were not asked" in out.read_text()
    nothing = invoke("trust", labelled, *model, "-o", tmp_path / "n.html", "--max-calls", "5")
    assert nothing.exit_code == 3
    assert not (tmp_path / "n.html").exists()


def test_nothing_that_is_read_is_written_over(serve, labelled, tmp_path):
    server = serve()
    arguments = ("--model", "fake", "--base-url", server.url)
    rows, page = tmp_path / "pairs.json", tmp_path / "page.html"
    rows.write_text(f"[{','.join(labelled.read_text().splitlines())}]")
    before = rows.read_bytes()
    for written in (("-o", rows), ("-o", page, "-o", rows)):
        result = invoke("trust", rows, *arguments, *written)
        assert (result.exit_code, server.calls) == (2, [])
        assert "is read by this command" in result.stderr
    assert rows.read_bytes() == before


def test_strict_minds_failures(serve, labelled, tmp_path):
    def behave(call):
        return good(call) if call.shape != "Scores" else refusal()

    arguments = (*asking(serve(behave)), "-o", tmp_path / "r.html")
    result = invoke("trust", labelled, *arguments, "--strict")
    assert result.exit_code == 1
    assert f"Not judged 100{NBSP}% [4 of 4 rows]" in re.sub(" +", " ", result.stdout)
    assert "no row was judged" in result.stdout


def left(tmp_path, verdicts, *flags):
    """The end of `trust` for verdicts on texts, some with a reason in place of a label."""
    labels = [None if isinstance(each, str) else each for each in verdicts]
    rows = items_of(labels, output="text", expected="text")
    for number, (row, said) in enumerate(zip(rows, verdicts, strict=True)):
        failure = {"step": "s", "unit": "", "reason": said, "detail": ""}
        row["verdict"]["failures"] = [failure] if isinstance(said, str) else []
        row |= {"input": f"q {number}", "label": number % 2}
    file = tmp_path / "v.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("trust", "--verdicts", file, "-o", tmp_path / "r.html", *flags)
    return result.exit_code, result.stderr


@for_each("reason", ["over_budget", "cannot_assess"])
def test_what_a_finished_run_has_no_verdict_on_is_told(tmp_path, reason):
    some = left(tmp_path, [1, 0, reason])
    assert (some[0], "1 of 3 rows could not be judged" in some[1]) == (0, True)
    assert left(tmp_path, [1, 0, reason], "--strict")[0] == 1


def test_no_text_that_could_be_assessed_is_no_row_judged(tmp_path):
    assert left(tmp_path, ["cannot_assess"] * 4)[0] == 1


def test_verdicts_of_other_judges_may_lack_fields(tmp_path):
    file = tmp_path / "v.jsonl"
    texts = {"input": "q", "output_a": "x", "output_b": "y", "label": "A"}
    file.write_text(json.dumps({**texts, "verdict": {"preference": "A"}}) + "\n")
    result = invoke("trust", "--verdicts", file, "-o", tmp_path / "r.html", "--strict")
    assert result.exit_code == 0, result.output


def test_trust_without_labels_is_refused_before_anything_is_asked(serve, tmp_path):
    path = tmp_path / "win.csv"
    path.write_text("input,output_a,output_b,winner\nWhy 1?,good,bad,A\n")
    server = serve()
    inputs = ("trust", path, *asking(server), "-o", tmp_path / "r.html")
    result = invoke(*inputs)
    assert (result.exit_code, server.calls) == (2, [])
    assert "as in --column label=COLUMN; the fields are 'input', 'output_a'" in result.stderr
    outcome = invoke(*inputs, "--column", "label=winner")
    assert outcome.exit_code == 0, outcome.output
    assert "Agreement with the labels 100" in re.sub(" +", " ", outcome.stdout)


def test_labels_of_no_criterion_of_the_judge_are_refused_before_anything_is_asked(serve, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("input,output,label.wit\nWhy?,So.,1\n")
    server = serve()
    asked = ("--method", "rubric", "--set", "rubric=Kind?", *asking(server)[2:])
    result = invoke("trust", path, *asked, "-o", tmp_path / "r.html")
    assert (result.exit_code, server.calls) == (2, [])
    assert "labels of no criterion: wit. Nothing was asked" in result.stderr


@pytest.mark.whole
def test_verdicts_on_an_older_text_or_a_row_that_is_gone_are_left_out(serve, labelled, tmp_path):
    server, file = serve(), tmp_path / "v.jsonl"
    arguments = (*asking(server), "-o", tmp_path / "e2.html")
    assert invoke("trust", labelled, *arguments, "--records", file).exit_code == 0
    rows = [json.loads(line) for line in labelled.read_text().splitlines()]
    rows[0]["output_a"] = "bad now"
    # Another order and no ids: the texts tell which verdict is of which row.
    edited = [{k: v for k, v in row.items() if k != "id"} for row in [rows[2], rows[1]]]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in [rows[0], *edited]))
    calls = len(server.calls)
    result = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "e3.html")
    assert result.exit_code == 0, result.output
    assert len(server.calls) == calls
    assert "left out: 1 of an older text of their row and 1 of rows that are not" in result.stderr
    # Of the two that are left people contradict one.
    assert "Agreement with the labels 50" in re.sub(" +", " ", result.stdout)
    assert "1 of an older text" in (tmp_path / "e3.html").read_text()
    labelled.write_text(json.dumps({**rows[0], "id": "p0"}) + "\n")
    none = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "e4.html")
    assert none.exit_code == 2
    assert (
        "no verdict belongs to a row of the data. Verdicts left out: 1 of an older" in none.stderr
    )


# Of four kinds of rows the judge is right on two, half right on one; A wins 2.5 and 4 of 5.
def test_any_judge_is_trusted_by_two_columns_of_a_table(tmp_path):
    table, out = tmp_path / "rows.csv", tmp_path / "r.json"
    table.write_text("gpt,ann,other\n" + "A,A,A\nB,B,B\ntie,A,A\nA,A,A\nB,A,A\n" * 20)
    result = invoke("trust", table, "--judge", "gpt", "--column", "label=ann", "-o", out)
    assert result.exit_code == 0, result.output
    assert f"50{NBSP}% by the judge and 80{NBSP}% by the label" in result.stdout
    saved = json.loads(out.read_text())
    assert (saved["judge"], saved["rows"], saved["data"]) == ("gpt", 100, "rows.csv")
    step = saved["next_step"]["command"]
    assert step == f"langchain-judges trust {table} --column label=ann --judge NEW-COLUMN"
    two = ("--column", "label=ann", "--column", "label=other")
    said = invoke("trust", table, "--judge", "gpt", *two, "-o", out).stderr
    assert f"Written: {out}." in said.replace("\n", "")
    step = json.loads(out.read_text())["next_step"]["command"]
    assert step.endswith(" --column label=ann --column label=other --judge NEW-COLUMN")
    limited = invoke(
        *("trust", table, "--judge", "gpt", "--column", "label=ann"),
        *("--max-rows", "40", "-o", out),
    )
    assert (limited.exit_code, json.loads(out.read_text())["rows"]) == (0, 40)
    bar = ("--min-agreement", "0.9", "-o", out, "--column", "label=ann")
    assert invoke("trust", table, "--judge", "gpt", *bar).exit_code == 4
    both = invoke("trust", table, "--judge", "gpt", "--judge", "other", *bar[2:])
    assert f"other is right more often than gpt by 30.0{NBSP}points" in both.stdout
    column = invoke("trust", table, "--judge", "gpt", "--column", "input=ann")
    assert (column.exit_code, "label=COLUMN" in column.stderr) == (2, True)
    wrong = invoke("trust", table, "--judge", "nobody", *bar[2:])
    assert (wrong.exit_code, "there are gpt, ann, other" in wrong.stderr) == (2, True)


def test_a_record_may_lack_a_text_whose_column_may_be_the_judges_too(tmp_path):
    table, out = tmp_path / "rows.jsonl", tmp_path / "r.json"
    row = {"label": "A", "gpt": "A"}
    rows = [row | ({"resp": "text"} if number else {}) for number in range(20)]
    table.write_text("".join(json.dumps(each) + "\n" for each in rows))
    for column in ("output=resp", "output=gpt"):
        options = ("--judge", "gpt", "--column", column, "-o", out)
        said = invoke("trust", table, *options)
        assert said.exit_code == 0, said.output
    typo = invoke("trust", table, "--judge", "gpt", "--column", "output=rsp", "-o", out)
    assert (typo.exit_code, "no column 'rsp'" in typo.stderr) == (2, True)


def test_the_one_text_of_two_that_is_rated_is_named_by_a_flag(tmp_path):
    table, out = tmp_path / "rows.csv", tmp_path / "r.json"
    table.write_text("prompt,response1,response2,ann,gpt\n" + "q,x,y,1,2\nq,z,y,2,2\n" * 20)
    command = ("trust", table, "--judge", "gpt", "--column", "label=ann", "-o", out)
    refused = invoke(*command)
    assert (refused.exit_code, "call that `output`" in refused.stderr) == (2, True)
    assert invoke(*command, "--column", "output=response2").exit_code == 0


# Of 20 rows 12 have a label; one of them is labelled again, two new rows come with labels.
@for_each("judge", [("--judge", "gpt"), ("--verdicts", "v.jsonl")])
def test_labels_of_a_file_join_the_rows_of_a_table(tmp_path, monkeypatch, judge):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"r{n}", "input": f"q{n}", "output": "x", "gpt": n % 2, "label": n % 2}
        for n in range(22)
    ]
    run = items_of([row["gpt"] for row in rows])
    lines = [json.dumps(each) for each in run]
    Path("v.jsonl").write_text("\n".join(lines) + "\n")
    table = [{**row, "label": "" if n > 11 else row["label"]} for n, row in enumerate(rows[:20])]
    with Path("rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(table)
    labels = LabelFile(Path("labels.jsonl"))
    for row in [{**rows[0], "label": None}, *rows[20:]]:
        labels.say({**row, "label": None}, "ann", WHOLE_ROW, 1)
    labels.close()
    said = invoke("trust", "rows.csv", "labels.jsonl", *judge, "-o", "r.json", "-o", "r.md")
    assert said.exit_code == 0, said.output
    found = {n["key"]: n for n in json.loads(Path("r.json").read_text())["numbers"]}
    # Of 14 labels two are 1 where the judge says 0: of row 0, and of row 20.
    wrong = found["agreement.label.wrong"]
    assert (wrong["n"], wrong["value"]) == (14, pytest.approx(12 / 14))
    assert "langchain-judges trust rows.csv labels.jsonl " in Path("r.md").read_text()


# The judge is right on all 60 rows of a table without ids; two are labelled anew, as wrong.
# Beside two people each of them adds two pairs of people who differ.
@for_each(
    ("people", "key", "value"),
    [
        (["ann"], "agreement.label.wrong", 58 / 60),
        (["ann", "bob"], "agreement.label.wrong", 1),
        (["ann", "bob"], "agreement.people", 60 / 64),
    ],
)
@for_each("names", ["question,answer", "input,output", "frage,output"])
def test_a_row_labelled_again_counts_once(tmp_path, monkeypatch, names, people, key, value):
    monkeypatch.chdir(tmp_path)
    texts = ["input=frage"] * names.startswith("frage")
    cells = [f"q{n},x,{','.join([str(n % 2)] * (1 + len(people)))}" for n in range(60)]
    Path("rows.csv").write_text("\n".join([f"{names},gpt,{','.join(people)}", *cells]))
    Path("labels.jsonl").unlink(missing_ok=True)
    labels = LabelFile(Path("labels.jsonl"))
    for row in list(known_rows(Path("rows.csv"), RowFlags(texts), check_known_of))[52:54]:
        labels.say(row, "dee", WHOLE_ROW, 1 - int(str(row["gpt"])))
    labels.close()
    named = [*texts, *(f"label={name}" for name in people)]
    columns = [word for name in named for word in ("--column", name)]
    command = ("trust", "rows.csv", "labels.jsonl", "--judge", "gpt", *columns, "-o", "r.json")
    said = invoke(*command)
    assert (said.exit_code, "not in the table" in said.stderr) == (0, False)
    saved = json.loads(Path("r.json").read_text())
    found = {n["key"]: n for n in saved["numbers"]}[key]
    assert (saved["rows"], found["value"]) == (60, pytest.approx(value))
    Path("labels.jsonl").write_text(Path("labels.jsonl").read_text().replace('"q5', '"other'))
    assert "not in the table by id and texts: 2 labelled ones" in invoke(*command).stderr


def test_of_several_people_in_a_file_the_label_is_that_of_most(tmp_path):
    table, file = tmp_path / "rows.csv", tmp_path / "labels.jsonl"
    table.write_text("input,output,gpt,label\n" + "".join(f"q{n},x,1,1\n" for n in range(20)))
    labels = LabelFile(file)
    (row, *_) = known_rows(table, RowFlags(), check_known_of)
    for name, label in (("dee", 0), ("eve", 0), ("fay", 0), ("gil", 1)):
        labels.say(row, name, WHOLE_ROW, label)
    labels.close()
    out = tmp_path / "r.json"
    assert invoke("trust", table, file, "--judge", "gpt", "-o", out).exit_code == 0
    made = json.loads(out.read_text())
    numbers = {each["key"]: each for each in made["numbers"]}
    assert numbers["agreement.label.wrong"]["value"] == pytest.approx(19 / 20)
    again = f"langchain-judges trust {table} {file} --judge gpt"
    assert made["next_step"]["command"].splitlines()[-1] == again


def test_two_columns_with_a_comma_are_two_orders(tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("ab,ba,ann\n" + "A,A,A\nA,B,B\n" * 20)
    rest = ("--column", "label=ann", "-o", tmp_path / "r.json")
    result = invoke("trust", table, "--judge", "ab, ba", *rest)
    assert result.exit_code == 0, result.output
    assert f"swap places 50{NBSP}% (" in re.sub(" +", " ", result.stdout)
    wrong = invoke("trust", table, "--judge", "ab, ba", "--order-rule", "some", *rest)
    assert (wrong.exit_code, "strict" in wrong.stderr) == (2, True)


# ---- an earlier report, and bars


LABELS = ["A", "B"] * 60


def saved(answers, labels=LABELS):
    """A report as it is read back from its JSON."""
    return json.loads(report.trust(run_of(answers), data_of(labels)).to_json())


# The columns of two people, as the next step of a table with ratings or sides names them.
@for_each("cells", ["A,A,B\nB,B,B\nA,B,B\n", "5,1,1\n4,2,2\n5,3,3\n"])
def test_the_next_step_of_several_people_runs_as_it_is_printed(tmp_path, cells):
    table, out = tmp_path / "rows.csv", tmp_path / "r.json"
    head, texts = ("output_a,output_b", "x,y") if cells[0] == "A" else ("output", "x")
    lines = [f"q{i},{texts},{line}" for i, line in enumerate(cells.split() * 20)]
    table.write_text("\n".join([f"input,{head},gpt,ann,bob", *lines]))
    two = ("--column", "label=ann", "--column", "label=bob")
    assert invoke("trust", table, "--judge", "gpt", *two, "-o", out).exit_code == 0
    step = json.loads(out.read_text())["next_step"]
    assert step["rows"][0] == "row 1"
    assert step["command"].count("--column") == 2
    _, *words = shlex.split(step["command"].replace("NEW-COLUMN", "gpt"))
    assert invoke(*words, "-o", out).exit_code == 0


# Right on all 120 rows before; now half wrong on every third, or on two.
@for_each(("every", "worse"), [(3, True), (60, False)])
def test_the_same_rows_are_compared_in_pairs(every, worse):
    now = ["tie" if i % every == 0 else label for i, label in enumerate(LABELS)]
    drift = report.trust(run_of(now), data_of(LABELS), baseline=saved(LABELS)).drift
    assert (drift.change, drift.changed) == (
        pytest.approx(-0.5 / every),  # a tie is half wrong
        pytest.approx(1 / every),
    )
    assert (drift.change.n, drift.worse) == (120, worse)
    # Averages stay; a third of ties are a sixth of mistakes, and two of 120 are none.
    words = {"single": ("yes", "not yet"), "averages": ("yes", "not yet")} if worse else {}
    assert drift.words == words
    assert ("Single verdicts: yes → not yet" in drift.sentence) is worse
    assert drift.sentence.endswith("worse." if worse else "not shown to be worse.")


def test_the_summary_for_a_pull_request_says_what_changed_since_the_baseline():
    now = report.trust(run_of(["A"] * 120), data_of(LABELS), baseline=saved(LABELS))
    summary = markdown(now, report.gates(now))
    assert " ".join(now.drift.sentence.split()) in summary.splitlines()
    assert summary.count("Averages over many rows: yes → no") == 1
    assert "| **failed** |" in summary


def test_rows_of_the_same_texts_are_compared_one_by_one():
    # Two rows of one text, of which the judge was right on both and now is on the first alone.
    runs = [run_of(answers, content={"output_a": "1f"}) for answers in (["A", "B"], ["A", "A"])]
    for run in runs:
        for row, label in zip(run, "AB", strict=True):
            row["label"] = label
    earlier = json.loads(report.trust(runs[0]).to_json())
    assert [each["row"] for each in earlier["answers"]] == ["1f", "1f#2"]
    drift = report.trust(runs[1], baseline=earlier).drift
    assert (drift.change.n, drift.change, drift.changed) == (2, -0.5, 0.5)


@for_each(("bar", "passed"), [(0.5, True), (0.51, False)])
def test_a_bar_is_held_by_the_very_number(bar, passed):
    trust = report.trust(run_of(["A"] * 60), data_of(LABELS))
    assert report.gates(trust, bar)[0].passed is passed


def files(folder, answers):
    (folder / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in data_of(LABELS)))
    (folder / "v.jsonl").write_text("".join(json.dumps(r) + "\n" for r in run_of(answers)))
    words = ["trust", folder / "data.jsonl", "--verdicts", folder / "v.jsonl"]
    return [*words, "-o", folder / "r.html"]


def test_every_report_says_how_many_rows_were_unusable(tmp_path):
    command = files(tmp_path, ["A"] * 120)
    with (tmp_path / "data.jsonl").open("a") as file:
        file.writelines('{"output_a": "a", "output_b": "b", "label": "maybe"}\n' for _ in "abc")
    outs = [tmp_path / f"r.{ending}" for ending in ("md", "json", "html")]
    result = invoke(*command, *(word for out in outs for word in ("-o", out)))
    assert result.exit_code == 0, result.output
    for said in ("left out, as they are unusable: 3.", "120 of 123 rows; left out: 3 unusable"):
        assert [said in out.read_text() for out in outs] == [True] * 3, said


def test_the_command_exits_with_4_under_a_bar_and_says_which(tmp_path):
    command = files(tmp_path, ["A"] * 60)
    summary = tmp_path / "step_summary_0f3"  # as GitHub calls it
    result = invoke(*command, "--min-agreement", "0.7", "-o", summary)
    assert result.exit_code == 4
    assert "failed: agreement 50" in result.stderr
    assert "**failed**" in summary.read_text()
    assert invoke(*command, "--min-agreement", "0.4").exit_code == 0


def test_two_columns_of_labels_are_refused_where_a_model_judges(labelled, tmp_path):
    twice = ("--column", "label=ann", "--column", "label=bob", "--model", "m")
    result = invoke("trust", labelled, *twice, "-o", tmp_path / "r.html")
    assert result.exit_code == 2
    assert "--column reads 'label' from ann, bob" in result.stderr


@pytest.mark.whole
@for_each("bar", [("--min-agreement", "0.5"), ("--max-wrong", "0.6"), ("--max-wrong", "0.4")])
def test_a_bar_reads_the_report_and_changes_no_answer(tmp_path, bar):
    command = files(tmp_path, [*LABELS[:40], *LABELS[41:], "A"])
    out = tmp_path / "r.json"
    answers = []
    for flags in ((), bar):
        invoke(*command, *flags, "-o", out)
        report = json.loads(out.read_text())
        answers.append((report["policy"], report["uses"]))
    assert answers[0] == answers[1]
    assert answers[0][0]["max_wrong"] == 0.2


@for_each(("most", "code"), [("0.5", 0), ("0.49", 4)])
def test_more_wrong_verdicts_than_allowed_are_exit_code_4(tmp_path, most, code):
    result = invoke(*files(tmp_path, ["A"] * 60), "--max-wrong", most)
    assert result.exit_code == code
    assert f"wrong verdicts 50{NBSP}%" in result.stderr


def test_the_command_exits_with_4_if_worse_than_the_baseline_which_it_may_replace(tmp_path):
    last = tmp_path / "last.json"
    assert invoke(*files(tmp_path, LABELS), "-o", last).exit_code == 0
    worse = ["tie" if i % 3 else label for i, label in enumerate(LABELS)]
    result = invoke(*files(tmp_path, worse), "--baseline", last, "-o", last)
    assert result.exit_code == 4
    assert "failed: change since" in result.stderr
    assert json.loads(last.read_text())["drift"]["worse"] is True


def test_what_no_person_answered_is_left_out_and_the_next_step_names_the_table(tmp_path):
    table = tmp_path / "rows.csv"
    cells = (f"q{n},a,b,{'A' if n else ''},B\n" for n in range(12))
    table.write_text("input,output_a,output_b,best,gpt\n" + "".join(cells))
    arguments = ("--judge", "gpt", "--column", "label=best", "-o", tmp_path / "r.md")
    said = invoke("trust", table, *arguments)
    page = (tmp_path / "r.md").read_text()
    assert "11 rows; 1 row without a label, left out" in page
    assert said.exit_code == 0
    assert ".verdicts" not in page
    table.write_text(table.read_text().replace(",A,B", ",,B"))
    assert invoke("trust", table, *arguments).exit_code == 0
    page = (tmp_path / "r.md").read_text()
    assert f"langchain-judges label {table}" in page
    assert "--verdicts" not in page


@for_each("field", ["label", "human_votes"])
def test_places_that_are_advised_for_votes_of_a_file_can_be_named_as_they_stand(field, tmp_path):
    def row(number: int) -> dict[str, object]:
        said = [{"value": number % 2, "user": "u"}, {"value": 1, "user": "v"}]
        return {"prompt": f"q{number}", "gpt": number % 2, "responses": {"quality": said}}

    table = tmp_path / "rows.json"
    table.write_text(json.dumps([row(number) for number in range(20)]))
    command = ("trust", table, "--judge", "gpt", "-o", tmp_path / "r.json", "--column")
    refused = invoke(*command, f"{field}=responses.quality").stderr
    places = re.findall(r"'([^']*)'", refused.partition("name the labels in it:")[2])
    flags = [word for place in places for word in ("--column", f"{field}={place}")]
    assert invoke(*command[:-1], *flags).exit_code == 0
    numbers = {
        n["key"]: n["value"] for n in json.loads((tmp_path / "r.json").read_text())["numbers"]
    }
    assert (numbers["agreement.people"], numbers["agreement.votes.wrong"]) == (0.5, 0.75)
