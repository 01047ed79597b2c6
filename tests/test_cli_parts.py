"""What the parts of commands do with what they were told: files, names, sentences, columns."""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from langchain_judges import report
from langchain_judges.cli import audit, judge_flags, messages, row_files, trust
from langchain_judges.cli.compare import PlaceFlags, _check_answers, _pairs_of, _table_of_systems
from langchain_judges.cli.flags import OutputFlags, QuestionFlags, RowFlags, RunFlags
from langchain_judges.cli.judge_flags import JudgeFlags
from langchain_judges.cli.label import FirstToLabel, _tell_labelled
from langchain_judges.cli.watch import sentence, span
from langchain_judges.errors import InputError, OptionError, OutputError
from langchain_judges.escaping import InertConsole
from langchain_judges.integrations.langsmith_runs import QueuedRuns
from langchain_judges.integrations.watch import Watch
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods.registry import Asked, CallEstimate
from langchain_judges.report.labelling import WHOLE_ROW, LabelFile
from langchain_judges.report.overview import head_text, table_text
from langchain_judges.rows.checks import ANNOTATIONS, check_item, check_pair
from langchain_judges.runs.sources import Source
from langchain_judges.runs.summary import Summary
from tests.cases import for_each
from tests.judged_rows import data_of, run_of
from tests.test_cli_exits import ends


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- compare


# Files of a comparison, how many systems, and its table or why it is refused.
@for_each(
    ("out", "systems", "table"),
    [
        (["a.csv"], 2, "a.csv"),
        (["no/a.csv"], 2, "no/a.csv"),  # its folder is made
        (["a.md"], 2, None),
        (["a.md", "a.xlsx"], 3, "a.xlsx"),
        ([], 2, None),
        (["a.csv", "b.md", "c.xlsx"], 2, "--out may name one table, got a.csv, c.xlsx"),
        (["a.csv"], 3, "--out of more than two systems is .xlsx or .md"),
        (["a.csv", "no/b.md"], 2, "--out must name a file in a folder; there is no no"),
    ],
)
def test_a_comparison_writes_one_table(out, systems, table):
    flags = PlaceFlags([*map(Path, out)])
    if table is None or not table.startswith("--"):
        assert flags.table(systems) == (table and Path(table))
        return
    with pytest.raises(OptionError) as info:
        flags.table(systems)
    assert str(info.value).startswith(table)


def test_verdicts_of_a_comparison_are_beside_its_first_file():
    out, records = [Path("x/a.md"), Path("b.csv")], Path("r.jsonl")
    beside = Path("x/.a.md.run/records.jsonl")
    journals = [PlaceFlags(*own).journal for own in ((), (out,), (out, records))]
    assert journals == [None, beside, records]
    assert PlaceFlags(out, records).places == (records, *out)
    assert PlaceFlags().places == (None,)


def test_systems_are_called_as_their_files_or_flags_say(capsys):
    for name, ids in (("v1", "123"), ("v2", "23")):
        lines = [{"id": i, "input": i, "output": f"{name} {i}"} for i in ids]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    files = ["v1.jsonl", "v2.jsonl"]
    for said, names in ((None, ["v1", "v2"]), (" a , b,", ["a", "b"])):
        source, found = _table_of_systems(files, said, RowFlags())
        assert found == names
        assert [[row[name] for name in names] for row in source.records] == [
            ["v1 2", "v2 2"],
            ["v1 3", "v2 3"],
        ]
        told = f"{names[0]}: 1 row left out: no partner of its input and id\n"
        assert capsys.readouterr().err == told
    for said in ("a", "a,a"):
        with pytest.raises(OptionError, match="--systems must name each of 2 files, got"):
            _table_of_systems(files, said, RowFlags())


@for_each(
    ("answers", "said"),
    [
        (("x", "", "z"), None),
        ((None, "y", "z"), None),
        (("x", "", " "), "there are no two answers to compare: x1 of x1, x2, x3"),
        (("", None, ""), "there are no two answers to compare: no system of x1, x2, x3"),
    ],
)
def test_two_answers_can_be_compared(answers, said):
    fields = dict(zip(("output_a", "output_b", "x3"), answers, strict=True))
    if not said:
        _check_answers(["x1", "x2", "x3"], {"input": "?", **fields})
        return
    with pytest.raises(InputError, match=said):
        _check_answers(["x1", "x2", "x3"], {"input": "?", **fields})


def test_an_experiment_is_read_by_its_name(monkeypatch):
    monkeypatch.setenv("LANGSMITH_API_KEY", "k")

    def read(_, *names):
        return [[{"id": 1, "input": "?", "output": name}] for name in names]

    monkeypatch.setattr("langchain_judges.integrations.langsmith_runs.experiment_rows", read)
    source, names = _table_of_systems(["langsmith:old", "langsmith:v2.1"], None, RowFlags())
    assert names == ["old", "v2"]
    assert [[row[name] for name in names] for row in source.records] == [["old", "v2.1"]]
    assert source.is_table


def test_pairs_of_systems_are_counted_with_their_bytes(capsys):
    both: dict[str, Any] = {"input": "?", "output_a": "aa", "output_b": "bbb"}
    rows: Any = [{**both, "c": "cccc"}, {**both, "c": ""}]
    file = row_files.RowFile(Path("t.csv"), Source(rows, True, check=lambda row: None))
    file.count()
    # A question with each two of three texts, then with the first two.
    number, size, pair = _pairs_of(file, "abc")
    assert (number, size) == (4, (1 + 5) + (1 + 6) + (1 + 7) + (1 + 5))
    assert (pair["output_a"], pair["output_b"]) == ("aa", "bbb")
    told = "Of c 1 row without an answer left out of its pairs.\n"
    assert capsys.readouterr().err == told
    with pytest.raises(OptionError, match="--systems: no row has an answer of 'd'"):
        _pairs_of(file, "abd")


# ---- flags


def test_options_of_a_run_are_those_that_were_set():
    output = OutputFlags(Path("o.csv"), Path("r.jsonl"))
    assert output.options() == {"out": Path("o.csv"), "records": Path("r.jsonl")}
    assert (output.file, OutputFlags(Path("o.csv")).file) == (Path("r.jsonl"), Path("o.csv"))
    assert OutputFlags().file is None
    run = RunFlags(max_concurrency=3, max_dollars=0.5, dry_run=True, strict=True)
    assert run.options() == {"max_concurrency": 3, "max_dollars": 0.5}
    assert RunFlags(keep_requests=True).options() == {"keep_requests": True}


def test_labels_of_the_whole_stand_apart_from_those_of_criteria():
    assert QuestionFlags().questions == (None, [])
    assert QuestionFlags(["tone=", "01", "facts=ab"]).questions == ("01", ["tone=", "facts=ab"])
    with pytest.raises(OptionError, match="of a whole text is named once, got 01, a,b"):
        QuestionFlags(["01", "a,b"]).questions  # noqa: B018


# Values of a shell are JSON or else text.
@for_each(
    ("text", "option"),
    [
        ("k=5", ("k", 5)),
        (" k =x=y", ("k", "x=y")),
        ("k=null", ("k", None)),
        ('k=["a"]', ("k", ["a"])),
        ("k=", ("k", "")),
    ],
)
def test_a_setting_is_json_or_a_text(text, option):
    assert judge_flags.setting(text) == option


@for_each("value", ['["Tone: x", "Help"', '{"a": 1', '"Is it polite?'])
def test_a_setting_that_begins_as_json_and_is_none_is_refused(value):
    with pytest.raises(OptionError, match=r"--set rubric: .* must be JSON \(.* column \d+"):
        judge_flags.setting(f"rubric={value}")


def test_options_of_a_part_are_left_to_it():
    given = ["model.timeout=9", "models=2", "check.k=1", "audit.k=2", "k=3"]
    assert judge_flags.set_options(given[1:2] + given[4:]) == {"models": 2, "k": 3}
    own = judge_flags.set_options(given, ("model", "check", "audit"))
    assert own == {"models": 2, "k": 3}
    assert judge_flags.options_of_part("check", given) == {"k": 1}
    assert judge_flags.options_of_part("model", None) == judge_flags.set_options(None) == {}
    with pytest.raises(OptionError, match=r"takes no \['cache', 'name'\]: these are for Py"):
        judge_flags.set_options(["k=1", "x.name=a", "cache=1"])


@for_each(
    ("flags", "spec"),
    [
        ({"model": "m"}, {"method": "relative", "model": {"name": "m"}, "options": {}}),
        (
            {"model": "m", "method": "rubric", "preset": "tone", "option": ["model.seed=1"]},
            {
                "method": "rubric",
                "model": {"name": "m", "settings": {"seed": 1}},
                "options": {},
                "preset": "tone",
            },
        ),
        (
            {"model": "m, n,", "method": "jury", "base_url": "http://x"},
            {
                "method": "jury",
                "model": [{"name": n, "base_url": "http://x"} for n in "mn"],
                "options": {},
            },
        ),
        # A file's name may have a comma.
        (
            {"model": "local:/a,b.gguf"},
            {"method": "relative", "model": {"name": "local:/a,b.gguf"}, "options": {}},
        ),
    ],
)
def test_flags_name_a_judge(flags, spec):
    assert judge_flags.judge_spec(JudgeFlags(**flags)) == spec


@for_each(
    "more",
    [
        {"model": "m"},
        {"preset": "tone"},
        {"option": ["k=1"]},
        {"memory": Path("m")},
        {"tools": Path("t.py")},
        {"base_url": "http://x"},
    ],
)
def test_a_file_of_a_judge_stands_alone(more):
    with pytest.raises(OptionError, match="--spec says what the judge is: name no other"):
        judge_flags.judge_spec(JudgeFlags(spec=Path("j.json"), **more))


def test_a_judge_may_have_a_memory_and_tools(tmp_path):
    memory, tools = tmp_path / "m.db", tmp_path / "t.py"
    FailureMemory(path=memory)
    tools.write_text("from langchain_core.tools import tool\nlook = tool(len, description='x')")
    spec = judge_flags.judge_spec(JudgeFlags(model="m", memory=memory, tools=tools))
    assert sorted(spec["options"]) == ["memory", "tools"]


def plan(*asked: Any) -> CallEstimate:
    return CallEstimate("bsm", "pair", tuple(asked))


def test_a_plan_counts_the_calls_and_says_what_a_small_model_is_for(capsys):
    remote, local = Asked(2, {"name": "m"}), Asked(1, {"name": "local"}, 3)
    judge_flags.tell_plan(plan(remote), 1_000, 9, RunFlags())
    told = "1,000 pairs by bsm: at most 2,000 calls (2 for each pair), excluding retries.\n"
    assert capsys.readouterr().err == told
    judge_flags.tell_plan(plan(remote, local), 1, 9, RunFlags())
    first, second = capsys.readouterr().err.splitlines()
    assert first == "1 pair by bsm: at most 3 calls (3 for each pair), excluding retries."
    assert second.startswith("A small local model shows how methods work")


def test_a_dry_run_says_what_long_texts_add_and_what_keys_lack(capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asked = [Asked(1, {"name": "openai:gpt-m"}, 4), Asked(1, {"name": "openai:gpt-m"}, 1)]
    judge_flags.tell_plan(plan(*asked), 2, 9, RunFlags(dry_run=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:3] == [
        "Texts that exceed the model's context are searched, by up to 5 calls more for each pair.",
        "No key for openai:gpt-m was found; asking needs one.",
    ]
    assert lines[3].startswith("About ")
    assert lines[3].endswith(" output tokens; it may be off by half or double.")
    assert len(lines) == 4


# ---- rows


def bad_rows(*kinds: str) -> row_files.RowFile:
    """A table of a good row and bad ones, each with a message of its own kind."""

    def check(row: Any) -> None:
        if row.get("input"):
            raise InputError(row["input"])

    rows: Any = [{"input": kind} for kind in ("", *kinds)]
    return row_files.RowFile(Path("t.csv"), Source(rows, True, check=check))


def test_bad_rows_of_one_kind_are_said_once_and_most_kinds_alone(capsys):
    row_files.checked_rows(bad_rows("odd", "t.csv, line 3: torn", "odd", "odd"))
    assert capsys.readouterr().err.splitlines() == [
        "t.csv, row 2 and 2 more: odd",
        "t.csv, line 3: torn",
        "4 of 5 rows are bad and are left out.",
    ]
    row_files.checked_rows(bad_rows(*map(str, range(22)), "21"), kept=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[19:] == [
        "t.csv, row 21: 19",
        "… and 3 more bad rows",
        "23 of 24 rows are bad and are in the results with their reason.",
    ]


UNUSABLE = "t.csv, row 1: odd\nt.csv has no usable row; nothing was asked.\n"


@for_each(
    ("rows", "takes", "said"),
    [
        ([], None, "t.csv has no row.\n"),
        ([{"input": "odd"}], None, f"{UNUSABLE}Name columns by --column FIELD=COLUMN.\n"),
        ([{"input": "odd"}], "item", f"{UNUSABLE}{messages.WORDS['no_row']}\n"),
    ],
)
def test_no_usable_row_is_wrong_use(rows, takes, said, capsys):
    file = bad_rows()
    file.source, file.takes = Source(rows, False, check=file.source.check), takes
    with pytest.raises(typer.Exit) as info:
        row_files.checked_rows(file, "row")
    assert (info.value.exit_code, capsys.readouterr().err) == (2, said)


def test_columns_are_named_by_their_fields():
    assert row_files.named_columns(None) is None
    given = ["input = q", "human_votes=ann", "human_votes=bob"]
    assert row_files.named_columns(given) == {"input": "q", "human_votes": ["ann", "bob"]}
    assert row_files.named_columns(["source=a=b"], ["source"]) == {"source": "a=b"}
    for field in ("input", "expected", "reference", "label.tone", *ANNOTATIONS):
        assert row_files.named_columns([f"{field}="]) == {field: []}
    for wrong, fields, takes in (
        ("input", (), "input=question"),
        ("output=", (), "input=question"),
        ("label=x", ["source"], "source=question"),
    ):
        with pytest.raises(OptionError) as info:
            row_files.named_columns([wrong], fields)
        assert f"takes FIELD=COLUMN, such as {takes}, got {wrong!r}" in str(info.value)
    with pytest.raises(OptionError, match="takes FIELD=COLUMN"):
        row_files.named_columns(["label=x", "label=y"], ["label", "source"])


def test_nothing_that_is_read_is_written_over(folder):
    read = [Path("a.csv"), None]
    row_files.check_not_read(read, [None, Path("b.csv")])
    with pytest.raises(OptionError, match=r"a\.csv is read by this command; name another"):
        row_files.check_not_read(read, [Path("b.csv"), folder / "a.csv"])


@for_each(
    ("path", "more", "said"),
    [
        ("a.csv", {}, ""),
        ("a.csv", {"forms": [".md", ".csv"]}, ""),
        ("a.txt", {"forms": [".md", "", ".csv"]}, "--x must end in .csv, .md, got 'a.txt'"),
        (".", {}, "--x must name a file, and . is a folder"),
        ("no/a.csv", {}, "--x must name a file in a folder; there is no no"),
        ("no/a.csv", {"made": True}, ""),
    ],
)
def test_a_file_to_write_is_checked_first(path, more, said):
    if not said:
        row_files.check_file("--x", Path(path), **more)
        return
    with pytest.raises(OptionError) as info:
        row_files.check_file("--x", Path(path), **more)
    assert str(info.value) == said


# Names of columns, flags, the method and what is said of it.
@for_each(
    ("head", "flags", "method", "said"),
    [
        ("input,output", {}, "rubric", "single texts, so the method is rubric; --method ch"),
        ("input,output_a,output_b", {}, "relative", "pairs, so the method is relative; --meth"),
        ("x,y", {}, "relative", "Some texts in t.csv are in columns whose names are not kno"),
        ("x,y,z", {"preset": "tone"}, "rubric", "Some texts in t.csv are in columns whose na"),
        ("x,y,z", {"option": ["rubric=Kind?"]}, "rubric", "Some texts in t.csv are in colum"),
        ("x,y,z", {"option": ["model.seed=1", "rubric=K"]}, "rubric", "Some texts in t.csv"),
        ("x,y,z", {"method": "bsm"}, "bsm", ""),
        ("x,y,z", {"model": None}, None, ""),
        ("x,y,z", {"spec": Path("j.json")}, None, ""),
    ],
)
def test_rows_choose_the_method_that_no_flag_names(head, flags, method, said, capsys):
    Path("t.csv").write_text(f"{head}\n{','.join('abc'[: head.count(',') + 1])}\n")
    judge = JudgeFlags(**{"model": "m", **flags})
    assert row_files.with_method(judge, Path("t.csv"), RowFlags()).method == method
    told = capsys.readouterr().err
    assert told.count("\n") == bool(said)
    assert said in told


def test_how_a_row_is_read_is_said_of_fields_alone():
    named = "question,answer,note,tone,context"
    Path("t.csv").write_text(f"{named}\n{'Why? ' * 20},[b]So.,x,warm,doc\n")
    judge: Any = SimpleNamespace(fields_named={"tone"}, show=lambda row: "[b]prompt")
    file = row_files.open_rows(Path("t.csv"), check_item, RowFlags(), "item")
    out = io.StringIO()
    file.tell_row(1, InertConsole(file=out, width=200), judge)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Row 1 is understood as:"
    assert f"  input (column question): {'Why? ' * 11}…" in lines
    assert {"  output (column answer): [b]So.", "  tone: warm"} <= {*lines}
    assert lines[-2:] == ["A judge is asked:", "[b]prompt"]
    assert "  not shown to the judge: note" in lines


@for_each("columns", [("chosen", "rejected"), ("win", "loss")])
def test_of_a_preferred_text_and_another_it_is_said_which_a_coin_made_a(columns):
    better, worse = columns
    rows = "".join(f"{n},Why?,good {n},bad {n},m\n" for n in range(9))
    Path("t.csv").write_text(f"id,prompt,{better},{worse},note\n{rows}")
    named = [] if better == "chosen" else [f"chosen={better}", f"rejected={worse}"]
    flags = RowFlags([*named, "id=id"])
    shown: list[Any] = []

    def show(row):
        shown.append(row)
        return "prompt"

    judge: Any = SimpleNamespace(fields_named=set(), show=show)
    for number in range(1, 10):
        file = row_files.open_rows(Path("t.csv"), check_pair, flags, "pair")
        out = io.StringIO()
        file.tell_row(number, InertConsole(file=out, width=200), judge)
        row, lines = shown[-1], out.getvalue().splitlines()
        for side in ("output_a", "output_b"):
            own = better if row[side].startswith("good") else worse
            assert f"  {side} (column {own}, by a coin): {row[side]}" in lines
        assert f"  label (column {better}): {row['label']}" in lines
        assert "  not shown to the judge: note" in lines
    assert {row["label"] for row in shown} == {"A", "B"}


def test_a_column_in_whose_place_another_is_named_is_not_shown():
    Path("t.csv").write_text("input,question,output,docs\nold,Why?,So.,doc\n")
    flags = RowFlags(["input=question", "source=docs"])
    file = row_files.open_rows(Path("t.csv"), check_item, flags, "item")
    out = io.StringIO()
    judge: Any = SimpleNamespace(fields_named=set(), show=lambda row: "prompt")
    file.tell_row(1, InertConsole(file=out, width=200), judge)
    said = [line for line in out.getvalue().splitlines() if "not shown" in line]
    assert said == ["  not shown to the judge: input"]


@for_each("shown, said", [(set(), "kind, source"), ({"source"}, "kind")])
def test_the_source_of_a_pair_is_shown_to_a_judge_that_names_it_alone(shown, said):
    Path("t.csv").write_text("input,output_a,output_b,source,kind\nWhy?,So.,No.,a set,x\n")
    file = row_files.open_rows(Path("t.csv"), row_files.check_labelled_pair, RowFlags(), "pair")
    out = io.StringIO()
    judge: Any = SimpleNamespace(fields_named=shown, show=lambda row: "prompt")
    file.tell_row(1, InertConsole(file=out, width=200), judge)
    [told] = [line for line in out.getvalue().splitlines() if "not shown" in line]
    assert {*told.partition(": ")[2].split(", ")} == {*said.split(", ")}


# ---- label


def doubtful(label: object = None) -> dict[str, Any]:
    return {"label": label, "verdict": {"label": 1, "confidence": 0.5}}


def test_rows_of_a_run_without_labels_or_places_are_not_written(folder):
    file: Any = SimpleNamespace(at=lambda places: {place: {"id": "r"} for place in places})
    unsettled = Summary()
    unsettled.preferences.update(A=1, B=1)
    labelled = Summary(labels={"1": 2})  # type: ignore[arg-type]
    for summary, rows, beside, is_there in (
        (unsettled, [None], None, False),
        (unsettled, [None], folder / "a.csv", True),
        (labelled, [1], folder / "b.csv", False),
        (labelled, [1, None], folder / "c.csv", True),
        (Summary(), [None], folder / "d.csv", False),
    ):
        first = FirstToLabel(file, beside)
        for label in rows:
            first.add(doubtful(label))
        first.tell(summary)
        if beside:
            assert beside.with_suffix(".label.jsonl").exists() == is_there
    assert not list(folder.glob("[bd].*"))


def test_labels_are_counted_and_the_first_rows_are_named_on_which_people_differ(capsys):
    file = LabelFile(Path("l.jsonl"))
    for number in range(4):
        row: dict[str, object] = {"id": f"r{number}", "output": "x"}
        for name, label in (("Ana", 0), ("Bo", 1), ("Cy", 1)):
            file.say(row, name, WHOLE_ROW, label)
    _tell_labelled(file, 2)
    file.close()
    first, *rows, last = capsys.readouterr().err.splitlines()
    assert first == "2 labelled now, 4 in l.jsonl: 1: 4."
    assert [row.partition(":")[0] for row in rows] == ["r0", "r1", "r2"]
    assert last == "People differ on 1 more row."


# ---- trust


@for_each(
    ("name", "columns", "read"),
    [
        ("gpt", ["gpt"], ("gpt",)),
        ("ab, ba", ["ab", "ba"], ("ab", "ba")),
        ("a,b", ["a,b"], ("a,b",)),
        ("a,b,c", ["a", "b,c"], ("a", "b,c")),
    ],
)
def test_a_judge_has_one_column_or_two(name, columns, read):
    assert trust._column(name, [dict.fromkeys(columns)]) == read


def test_files_are_named_as_the_next_command_needs_them():
    people = RowFlags(["label = ann", "input=q", "label=bob"])
    assert trust._people(people.column) == (["ann", "bob"], ["input=q"])
    assert trust._people(None) == ([], [])
    paths, verdicts = [Path("t.csv"), Path("l.jsonl")], Path("v.jsonl")
    asked = trust._named(paths, trust.VerdictFlags(model="m"), people, verdicts)
    named = ["input=q", "human_votes=ann", "human_votes=bob"]
    assert (asked.rows, asked.verdicts) == (["t.csv", "l.jsonl"], "v.jsonl")
    assert asked.columns == [word for name in named for word in ("--column", name)]
    own = trust._named(paths, trust.VerdictFlags(judge=["g"]), people, verdicts)
    assert (own.verdicts, own.judge) == ("", ["--judge", "g"])
    alone = trust._named([], trust.VerdictFlags(), RowFlags(["label=ann"]), verdicts)
    assert (alone.rows, alone.columns) == (["v.jsonl"], ["--column", "label=ann"])


@for_each(
    ("flags", "has_rows", "dry_run", "said"),
    [
        ({"model": "m"}, True, True, ""),
        ({"spec": Path("j")}, True, False, ""),
        ({"verdicts": [Path("v")]}, False, False, ""),
        ({"judge": ["g"]}, True, False, ""),
        ({}, True, False, "name either --model"),
        ({"model": "m", "judge": ["g"]}, True, False, "name either --model"),
        ({"model": "m", "verdicts": [Path("v")]}, True, False, "name either --model"),
        ({"model": "m"}, False, False, "name the rows to judge"),
        ({"judge": ["g"]}, False, False, "name the rows to judge"),
        ({"judge": ["g"]}, True, True, "--dry-run needs --model"),
        ({"verdicts": [Path("v")]}, True, True, "--dry-run needs --model"),
    ],
)
def test_trust_takes_one_source_of_verdicts(flags, has_rows, dry_run, said):
    judge = trust.VerdictFlags(**flags)
    if not said:
        trust._check_use(judge, has_rows=has_rows, dry_run=dry_run)
        return
    with pytest.raises(OptionError, match=said):
        trust._check_use(judge, has_rows=has_rows, dry_run=dry_run)


def test_a_report_writes_over_a_baseline_alone():
    rows, last = Path("rows.json"), Path("last.json")
    flags = trust.ReportFlags([Path("new/r.html"), last], baseline=last)
    flags.check_paths([rows])
    assert trust.ReportFlags().paths == [Path("report.html")]
    for wrong in (
        trust.ReportFlags([rows]),
        trust.ReportFlags([Path("r.md")], records=rows),
        trust.ReportFlags([Path("last.md")], baseline=Path("last.md")),
    ):
        with pytest.raises(OptionError, match="is read by this command"):
            wrong.check_paths([rows])


def test_a_baseline_is_of_one_judge():
    one = trust.ReportFlags(baseline=Path("b.json"))
    with pytest.raises(OptionError, match="--baseline is for one judge, got 2"):
        trust._options(one, None, 2)
    for data, name in ((Path("x/t.csv"), "t.csv"), (None, "")):
        found = trust._options(trust.ReportFlags(), data, 2)
        assert found == {"data_name": name, "baseline": None}


def test_a_report_that_cannot_be_written_is_refused_by_its_file():
    Path("f").write_text("")
    with pytest.raises(OutputError, match=r"^f/r\.md cannot be written: "):
        trust.ReportFlags([Path("f/r.md")]).write(SHOWN, "summary")
    Path("sub").mkdir()
    trust.ReportFlags([Path("sub/new/r.txt"), Path("step")]).write(SHOWN, "Zusammenfaßung")
    for path in ("sub/new/r.txt", "step"):
        assert Path(path).read_text(encoding="utf-8").startswith("Zusammenfaßung")


# A report of which only the summary is written.
SHOWN: Any = SimpleNamespace(**dict.fromkeys(["to_html", "to_json", "to_csv", "to_xlsx"]))


def test_each_method_is_a_judge_of_its_own():
    specs = trust._specs(JudgeFlags("m", method="bsm, direct,"))
    assert [spec["method"] for spec in specs] == ["bsm", "direct"]
    assert [spec["method"] for spec in trust._specs(JudgeFlags("m"))] == ["relative"]


# How a run ended, the code of a report on it, and what is said.
@for_each(
    ("over_budget", "interrupted", "code", "said"),
    [
        (0, True, 130, "Stopped before anything was saved"),
        (2, False, 3, "No row was asked: the budget is spent."),
        (1, False, 0, "Verdicts of relative are kept in v.jsonl."),
    ],
)
def test_a_judge_that_is_stopped_or_has_no_budget_ends_a_report(
    over_budget, interrupted, code, said, monkeypatch, capsys
):
    summary = Summary(rows=2, not_judged=Counter(over_budget=over_budget))
    results, told = run_of(["A", "B"]), dict[str, Any]()

    def run_rows(worker: Any, rows: Any, options: Any, show: Any, collect: Any) -> Any:
        told.update(options, show=show)
        return [*map(collect, results)] and (summary, interrupted)

    monkeypatch.setattr(messages, "run_rows", run_rows)
    spec = judge_flags.judge_spec(JudgeFlags("m", base_url="http://127.0.0.1:9"))
    flags, out = RunFlags(max_calls=5), Path("v.jsonl")
    runs: list[Any] = []
    assert ends(lambda: runs.append(trust._judged(spec, [], out, flags))) == code
    assert said in capsys.readouterr().err
    assert runs == [({"judge": results}, True)] * (code == 0)
    assert told == {"max_calls": 5, "records": out, "show": False}


# Results of a run: what each came to, and how a command ends that reads them.
@for_each(
    ("answers", "also", "code"),
    [
        (["A", "B"], {"strict": True}, 0),
        (["A", None], {}, 0),
        (["A", None], {"strict": True}, 1),
        ([None, None], {}, 1),
        (["A", "B"], {"spent": True}, 3),
    ],
)
def test_a_report_ends_as_its_runs_did(answers, also, code, capsys):
    runs: Any = {"j": run_of(answers), "k": run_of(["A"]) if code != 1 else []}
    own = {"spent": False, "strict": False, **also}
    assert ends(lambda: trust._leave(runs, **own)) == code
    undone, rows = answers.count(None), sum(map(len, runs.values()))
    told = f"{undone} of {rows} rows could not be judged; {undone} by refusal" if undone else ""
    assert capsys.readouterr().err.startswith(told)


def test_judges_of_one_name_are_told_apart_by_their_files():
    for name in ("a.jsonl", "b.jsonl"):
        lines = [json.dumps({"judge": "bsm", **row}) for row in run_of(["A"])]
        Path(name).write_text("\n".join(lines))
    paths = [Path("a.jsonl"), Path("b.jsonl")]
    first, second = trust._read_runs(paths)
    assert second == f"{first} (b.jsonl)"
    with pytest.raises(OptionError, match=r"the verdicts of .* \(a\.jsonl\) are named twice"):
        trust._read_runs([paths[0]] * 3)


def test_what_a_report_answers_is_printed_as_it_is(folder, capsys):
    data, right = data_of(["A", "B"] * 10), run_of(["A", "B"] * 10)
    report.trust(right, data).to_json("last.json")
    last = trust._options(trust.ReportFlags(baseline=folder / "last.json"), None, 1)
    one = report.trust(run_of(["A"] * 20), data, name="[b]x[/b]", **last)
    two = report.compare({"[b]x[/b]": run_of(["A"] * 20), "y": right}, data)
    for answer, further in ((one, one.drift), (two, two.shown()[1][0])):
        assert trust._tell(answer, trust.ReportFlags())[1] == (answer is two)
        reports = answer.shown()[0]
        parts = [head_text(reports[0]), *map(table_text, reports), further.sentence]
        assert capsys.readouterr().out == "\n".join([*parts, ""])


def test_bars_that_are_passed_are_green_and_others_red(monkeypatch):
    out = io.StringIO()
    console = InertConsole(file=out, force_terminal=True, color_system="standard", width=99)
    monkeypatch.setattr(messages, "error_console", lambda: console)
    answer = report.trust(run_of(["A"] * 20), data_of(["A", "B"] * 10))
    assert not trust._tell(answer, trust.ReportFlags(min_agreement=0.1, max_wrong=0.1))[1]
    green, red = out.getvalue().splitlines()
    assert green.startswith("\x1b[32mpassed: agreement 50")
    assert red.startswith("\x1b[31mfailed: wrong ")


def test_labels_of_files_take_the_place_of_those_of_rows(capsys):
    rows: Any = [{"id": n, "input": n, "output": "x", "label": 0} for n in "ab"]
    new: Any = [{**rows[1], "label": 1}, {"id": "c", "input": "c", "output": "x", "label": 1}]
    assert trust._with_labels(rows, []) == rows
    assert capsys.readouterr().err == ""
    assert trust._with_labels(rows, new) == [rows[0], *new]
    told = "Further rows, not in the table by id and texts: 1 labelled ones.\n"
    assert capsys.readouterr().err == told


# ---- watch, audit


@for_each(
    ("look", "told"),
    [
        (
            Watch(listed=2_000, sampled=1_500, known=2, judged=1_400, failed=98, calls=3_000),
            "1,500 of 2,000 sampled; 2 had feedback already; 1,400 judged by 3,000 calls; "
            "98 could not be judged.",
        ),
        (
            Watch(listed=9, sampled=9, known=1, judged=2, failed=3, queued=2, stopped="spent"),
            "9 of 9 sampled; 1 had feedback already; 2 judged by 0 calls; 3 could not be "
            "judged; 2 sent to the queue; 3 left for the next look. Stopped: spent.",
        ),
    ],
)
def test_a_look_is_told_in_a_sentence(look, told):
    assert sentence(look) == told


def test_spans_of_time_have_a_unit():
    units = {"45s": 45, " 30m ": 1_800, "2 h": 7_200, "1d": 86_400}
    assert {text: span(text, "--x") for text in units} == {
        text: timedelta(seconds=seconds) for text, seconds in units.items()
    }
    for wrong in ("30", "m", "1w", "1h2m"):
        with pytest.raises(OptionError, match=f"--x must be a number .* got '{wrong}'"):
            span(wrong, "--x")


@for_each(
    ("settings", "told"),
    [
        ({"max_rounds": 1}, []),
        ({"max_rounds": 3}, ["so 3 rounds make at most 3,000 calls."]),
        ({"max_rounds": 1, "dev": 0.5}, ["items held out by --dev."]),
        ({"max_rounds": 1, "auditor": "page"}, []),
        ({"max_rounds": 1, "auditor": "labels"}, []),
        (
            {"max_rounds": 1, "auditor": "openai:gpt-m"},
            [
                "No key for openai:gpt-m was found; asking needs one.",
                "openai:gpt-m is asked once about each doubted label, at most once an item a "
                "round.",
            ],
        ),
    ],
)
def test_the_rounds_of_an_audit_are_told(settings, told, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    audit._tell_rounds(1_000, {"auditor": "human", "dev": None, **settings})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(told)
    assert all(line.endswith(own) for line, own in zip(lines, told, strict=True))


def test_the_labelled_runs_of_a_queue_are_audited(monkeypatch, capsys):
    told: dict[str, Any] = {}

    def labelled_runs(client: Any, queue: str, judge: Any, **options: Any) -> QueuedRuns:
        told.update(options, queue=queue, judge=judge.get_name())
        same = {"input": "?", "output": "x", "expected": "x"}
        items: Any = [{"id": n, **same, "label": n % 2} for n in range(3)]
        return QueuedRuns([{**items[0], "output": ""}, *items[1:]], [("r9", "no label")])

    monkeypatch.setenv("LANGSMITH_API_KEY", "k")
    monkeypatch.setattr("langchain_judges.integrations.langsmith_runs.labelled_runs", labelled_runs)
    spec = judge_flags.judge_spec(JudgeFlags("openai:gpt-m", method="allure"))
    table = RowFlags(["label=tone", "source=docs"], max_rows=2)
    file = audit._queued(Path("langsmith:doubtful"), table, spec)
    file.count()
    assert [each["id"] for each in file] == [1]
    [(number, why)] = file.bad
    assert (number, "`output` is empty" in why) == (1, True)
    own = {"key": "tone", "context": "docs", "queue": "doubtful", "judge": "allure"}
    assert told == own
    assert capsys.readouterr().err == "Runs of 'doubtful' left out: 1; r9: no label.\n"


def test_an_option_of_an_audit_with_a_flag_is_set_by_the_flag_alone():
    settable = audit._settable()
    assert "max_rounds" in settable
    assert not settable & {"check", "auditor", "dev", "labels", "max_concurrency"}
    assert audit._set_of("audit", ["audit.max_rounds=2", "k=1"], settable) == {"max_rounds": 2}
    with pytest.raises(OptionError, match="'audit' has no option 'dev'"):
        audit._set_of("audit", ["audit.dev=1"], settable)
