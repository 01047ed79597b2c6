"""Tables in, tables out: any form that people have, their own columns unchanged to the byte."""

from __future__ import annotations

import csv
import gc
import json
import re
import signal
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import Client, traceable
from typer.testing import CliRunner

from langchain_judges import create_relative_judge, create_rubric_judge, judge_many, load_judge
from langchain_judges.cli import app
from langchain_judges.errors import InputError, JudgeError, OptionError, OutputError
from langchain_judges.integrations.langsmith_runs import experiment_rows
from langchain_judges.report.joined_rows import rows_in as all_rows
from langchain_judges.rows.checks import FIELDS, KNOWN_NAMES, place_in
from langchain_judges.rows.columns import facts_in, mapped, understood
from langchain_judges.rows.data import is_nothing
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.files import named_classes, read_table
from langchain_judges.rows.lookup import follow
from langchain_judges.rows.notes import unshown
from langchain_judges.rows.spreadsheets import LARGEST_CELL
from langchain_judges.rows.texts import READ
from langchain_judges.runs.comparison import joined
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.testing import reply
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import NOTES, Notes, no_usage
from tests.cases import for_each
from tests.fakes import FakeChatModel, unfenced
from tests.judges import answer, bsm
from tests.langsmith_server import LangSmithServer
from tests.model_server import refusal
from tests.processes import held, rows_in, start, wait_until
from tests.test_compare import over_the_wire

REPLIES = [
    {"question": "Where is my parcel?", "reply": "On its way.", "agent": "007", "day": "1/2/3"},
    {"question": "Um\nwelche Zeit?", "reply": 'Er sagte "bald", 3', "agent": "", "day": "=1+1"},
    {"question": "何時ですか", "reply": "三時です。", "agent": " x ", "day": "-"},
]


@pytest.fixture
def pd() -> Any:
    return import_module("pandas")  # of a second, by the first test that needs it


def labels(prompt: str) -> str:
    return json.dumps({"label": "1", "explanation": "Kind."})


def polite(model: Any = None, **options: Any) -> Any:
    model = model or FakeChatModel(replies=labels)
    return create_rubric_judge(model, rubric="Is it polite?", **options)


def relative() -> Any:
    return create_relative_judge(FakeChatModel(replies=answer))


def written(path: Path, rows: list[dict[str, str]] = REPLIES) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(LARGEST_CELL)  # one limit for the whole process
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


FORMS = {
    "list": lambda folder: REPLIES,
    "iterator": lambda folder: iter(REPLIES),
    "pandas": lambda folder: import_module("pandas").DataFrame(REPLIES),
    "arrow": lambda folder: import_module("pyarrow").Table.from_pylist(REPLIES),
    "csv": lambda folder: written(folder / "r.csv"),
    "path as text": lambda folder: str(written(folder / "r.csv")),
}


def is_judged_by_its_usual_columns(table: Any) -> None:
    model = FakeChatModel(replies=labels)
    run = judge_many(polite(model), table, progress=False)
    assert [row["verdict"]["label"] for row in run] == [1, 1, 1]
    assert all(each["reply"] in "\n".join(model.prompts) for each in REPLIES)


@for_each("form", FORMS)
def test_a_table_of_any_form_is_judged_by_its_usual_columns(form, tmp_path):
    is_judged_by_its_usual_columns(FORMS[form](tmp_path))


@for_each("labels, told", [('{"tone": 1}', []), ("", []), ("good", ["labels"]), ("7", ["labels"])])
def test_a_column_of_labels_holds_them_by_criterion_or_is_told(labels, told, tmp_path):
    table = written(tmp_path / "r.csv", [{**REPLIES[0], "labels": labels}])
    (row,) = judge_many(polite(), table, progress=False)
    assert [each["unit"] for each in row["verdict"]["failures"]] == told
    assert row["judged"]
    assert row.get("labels") == ({"tone": 1} if labels.startswith("{") else None)


NAMED: Any = {"_type": "ClassLabel", "names": ["polite", "rude"]}
LISTED: Any = {"feature": NAMED, "_type": "Sequence"}
# What stands in a column, how Hugging Face describes it, and what is read.
CLASSES: dict[str, tuple[list[Any], Any, list[Any]]] = {
    "a class": ([0, 1, -1], NAMED, ["polite", "rude", None]),
    "votes": ([[0, 1], [1], []], LISTED, [["polite", "rude"], ["rude"], []]),
    "an older list": ([[0], [1], [0]], [NAMED], [["polite"], ["rude"], ["polite"]]),
    "parts": ([{"a": 0}, {"a": 1}, None], {"a": NAMED}, [{"a": "polite"}, {"a": "rude"}, None]),
    "numbers": ([0, 1, -1], {"dtype": "int64", "_type": "Value"}, [0, 1, -1]),
}


@for_each("kind", CLASSES)
def test_classes_are_read_by_the_names_that_hugging_face_keeps(kind, tmp_path):
    cells, feature, read = CLASSES[kind]
    table = import_module("pyarrow").table({"label": cells, "n": [0, 1, 2]})
    about = json.dumps({"info": {"features": {"label": feature, "n": {"dtype": "int64"}}}})
    table = table.replace_schema_metadata({"huggingface": about})
    import_module("pyarrow.parquet").write_table(table, tmp_path / "r.parquet")
    for source in (table, table.to_batches()[0], tmp_path / "r.parquet"):
        found = [*source_of(source).records]
        assert found == [{"label": own, "n": n} for n, own in enumerate(read)]


ODD = [[], {"names": None}, {"names": 2}, {"a": NAMED, "b": None}, [[], NAMED], LISTED | {"a": 1}]


@for_each("feature", [*(own for _, own, _ in CLASSES.values()), *ODD])
@for_each("cell", [-2, 2, None, [None, 5], {"a": 7, "b": 1}])
def test_a_number_without_a_named_class_is_no_other_class(feature, cell):
    feature = {"_type": "ClassLabel"} | feature if isinstance(feature, dict) else feature
    (read,) = named_classes([{"label": cell}], {"label": feature})
    told = re.sub(r"'?(-?\d) \(no named class\)'?", r"\1", str(read["label"]))
    assert told == str(cell)


@for_each(
    "about", ["null", "{bad", "\u00e9", "[]", '{"info": null}', '{"info": {"features": [1]}}']
)
def test_metadata_that_describe_no_columns_are_passed_over(about):
    table = import_module("pyarrow").table({"label": [0]})
    table = table.replace_schema_metadata({"huggingface": about.encode("latin-1")})
    assert [*source_of(table).records] == [{"label": 0}]


def test_names_of_categories_are_read_in_any_table(pd):
    column = pd.Categorical(["rude", "polite", None], ["polite", "rude"])
    frame = pd.DataFrame({"label": column})
    table = import_module("pyarrow").Table.from_pandas(frame)
    for source in (frame, table, import_module("polars").from_arrow(table)):
        found = [record["label"] for record in source_of(source).records]
        assert [found[:2], is_nothing(found[2])] == [["rude", "polite"], True]


@pytest.mark.system
def test_a_data_set_of_hugging_face_is_judged_by_its_usual_columns():
    hub = import_module("datasets")
    is_judged_by_its_usual_columns(hub.Dataset.from_list(REPLIES))
    for kind in ("a class", "votes"):
        cells, _, read = CLASSES[kind]
        feature: Any = hub.ClassLabel(names=["polite", "rude"])
        features = hub.Features({"label": feature if kind == "a class" else [feature]})
        table = hub.Dataset.from_dict({"label": cells}, features=features)
        for source in (table, table.to_iterable_dataset(), table.with_format("numpy")):
            assert [record["label"] for record in source_of(source).records] == read
            assert [record.get("label") for record in all_rows(source, "rows")] == read


@for_each("suffix", [".jsonl", ".json", ".tsv", ".parquet"])
def test_files_of_every_form_are_read_by_their_path(pd, suffix, tmp_path):
    path, frame = tmp_path / f"r{suffix}", pd.DataFrame(REPLIES)
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".tsv":
        frame.to_csv(path, sep="\t", index=False)
    else:
        frame.to_json(path, orient="records", lines=suffix == ".jsonl")
    assert len(list(judge_many(polite(), path, progress=False))) == 3


@for_each("own", [[1889.0, None], [0.1, 2.5], [1889.0, 0.3333], [1e22, 12345.6]])
@for_each("form", ["list", "pandas", "polars", "arrow", "parquet"])
@for_each("bits", [32, 64])
def test_a_number_is_shown_in_its_own_digits_whatever_table_holds_it(own, form, bits, pd, tmp_path):
    whole = {1889.0: "1889", 1e22: "1e+22"}  # of others the text is the same in Python
    frame = pd.DataFrame({"input": ["a", "b"], "output": own}).astype({"output": f"float{bits}"})
    table = import_module("pyarrow").Table.from_pandas(frame)
    forms = {"pandas": frame, "arrow": table, "list": frame.to_dict("records")}
    forms["polars"] = import_module("polars").from_arrow(table)
    frame.to_parquet(path := tmp_path / "t.parquet")
    read = [plain_row(row)["output"] for row in source_of(forms.get(form, path)).records]
    said = [text for text in read if not is_nothing(text)]
    assert said == [whole.get(each, str(each)) for each in own if each is not None]


def test_a_polars_frame_is_read_and_written_back(tmp_path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(REPLIES).with_columns(n=polars.lit(7), none=polars.lit(None))
    scored = judge_many(polite(), frame, out=tmp_path / "s.parquet", progress=False).to_pandas()
    assert scored["label"].tolist() == [1, 1, 1]
    assert scored["n"].tolist() == [7, 7, 7]
    table = polars.read_parquet(tmp_path / "s.parquet")
    assert table.select(frame.columns[:5]).equals(frame.select(frame.columns[:5]))


def test_a_sheet_is_read_with_its_codes_dates_and_empty_cells(pd, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    day = datetime(2026, 11, 2)
    for cells_of_row in (["question", "reply", "code", "day"], ["Why?", "So.", "007", day],
                         ["何時?", "三時", None, None]):  # fmt: skip
        book.active.append(cells_of_row)
    book.save(tmp_path / "r.xlsx")
    first, second = (
        judge_many(polite(), tmp_path / "r.xlsx", progress=False).to_pandas().to_dict("records")
    )
    assert (first["question"], first["code"], first["label"]) == ("Why?", "007", 1)
    assert first["day"] == day
    assert (second["reply"], second["label"]) == ("三時", 1)
    assert pd.isna(second["code"])


# A number, the format of its cell, and what Excel shows (United States).
IN_CELLS = [
    (0.85, "0%", "85%"), (0.125, "0.0 %", "12.5 %"), (7, "00000", "00007"), (2, "0.00", "2.00"),
    (1234.5, '"$"#,##0.00', "$1,234.50"), (1234.5, "#,##0.00 [$€-407]", "1,234.50 €"),
    (-1234.5, '"$"#,##0_);[Red]\\("$"#,##0\\)', "($1,235)"), (-0.5, "0.0", "-0.5"),
    (0, '#,##0;-#,##0;"none: "0', "none: 0"), (3, '0" kg"', "3 kg"), (0.125, "0.00", "0.13"),
    (1 / 3, "General", "0.333333333333333"), (12.5, "General", "12.5"), (4, "General", "4"),
    (datetime(2024, 3, 1), "DD.MM.YYYY", "2024-03-01"),
]  # fmt: skip


def test_a_judge_sees_of_a_cell_what_its_format_shows_and_the_table_keeps_its_number(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["question", "reply", "label"])
    for number, code, _ in IN_CELLS:
        book.active.append(["How many?", number, 0.85])
        row = book.active.max_row
        book.active.cell(row, 2).number_format = code
        book.active.cell(row, 3).number_format = "0%"
    book.save(path := tmp_path / "r.xlsx")
    records = Records(source_of(path), None, "item")
    for (number, code, shown), record in zip(IN_CELLS, records.source.records, strict=True):
        row = records.row(record, 0)
        assert (row["output"], row["label"]) == (shown, 0.85), code
        assert (record["reply"], type(json.loads(json.dumps(row["label"])))) == (number, float)
    model = FakeChatModel(replies=labels)
    run = judge_many(polite(model), path, out=tmp_path / "s.xlsx", progress=False)
    assert run.to_pandas()["reply"].tolist() == [number for number, _, _ in IN_CELLS]
    sheet = openpyxl.load_workbook(tmp_path / "s.xlsx")["rows"]
    numbers = [number for number, _, _ in IN_CELLS if isinstance(number, int | float)]
    assert [cell.value for cell in sheet["B"][1 : len(numbers) + 1]] == numbers


def test_a_prompt_of_ones_own_has_what_a_cell_shows_and_a_checkpoint_holds_it(tmp_path):
    book = openpyxl.Workbook()
    for cells in (["question", "reply", "share"], ["How many?", "Most.", 0.85]):
        book.active.append(cells)
    book.active["C2"].number_format = "0%"
    book.save(path := tmp_path / "r.xlsx")
    prompts = {"evaluate": "{criteria} {share} {request} {response} {ask}"}
    model = FakeChatModel(replies=labels)
    judge = polite(model, prompts=prompts, checkpointer=InMemorySaver())
    (row,) = judge_many(judge, path, progress=False)
    assert row["verdict"]["label"] == 1
    assert "85%" in model.prompts[0]


@for_each("code", ["# ?/?", "0.00E+00", "0.0#", "#,##0,", "[>9]0;0.0", ";;;"])
def test_a_format_that_is_not_read_is_said(code, tmp_path, caplog):
    book = openpyxl.Workbook()
    book.active.append(["question", "reply"])
    book.active.append(["How many?", 0.5])
    book.active["B2"].number_format = code
    book.save(path := tmp_path / "r.xlsx")
    assert [record["reply"] for record in source_of(path).records] == [0.5]
    assert f"numbers of the format {code} are shown without it" in caplog.text


def test_columns_are_named_where_their_names_are_unusual(pd):
    rows = [{"frage": "Why?", "reply": "So."}]
    with pytest.raises(InputError, match=r"`input`.* 'frage'"):
        list(judge_many(polite(), pd.DataFrame(rows), progress=False))
    with pytest.raises(InputError, match=r"'quest', 'reply';.* input='quest'$"):
        list(judge_many(polite(), pd.DataFrame([{"quest": "Why?", "reply": "So."}])))
    columns = {"input": "frage"}
    assert len(list(judge_many(polite(), pd.DataFrame(rows), columns=columns))) == 1
    with pytest.raises(OptionError, match=r"'inptu'.* 'input'"):
        list(judge_many(polite(), pd.DataFrame(rows), columns={"inptu": "frage"}))
    with pytest.raises(InputError, match=r"'fraeg'.* 'frage'"):
        list(judge_many(polite(), rows, columns={"input": "fraeg"}))


@for_each(
    ("missing", "hint"), [("support 2026", True), ("replies.cvs", False), (Path("replies"), False)]
)
def test_a_client_is_asked_for_where_a_missing_name_may_be_that_of_a_data_set(missing, hint):
    with pytest.raises(InputError, match=f"^there is no file {missing}") as caught:
        judge_many(polite(), missing)
    assert ("`client`" in str(caught.value)) == hint


@for_each(
    ("names", "takes", "found"),
    [
        (["Question", "Reply"], "item", {"input": "Question", "output": "Reply"}),
        (["query", "answer", "response"], "item", {"input": "query", "output": "response"}),
        (["prompt", "chosen", "rejected"], "pair", {"input": "prompt"}),
        (["query", "response_a", "response_b"], "pair",
         {"input": "query", "output_a": "response_a", "output_b": "response_b"}),
        (["prompt", "response1", "response2"], "pair",
         {"input": "prompt", "output_a": "response1", "output_b": "response2"}),
        (["prompt", "response_0", "response_1", "better_response_id"], "pair",
         {"input": "prompt", "output_a": "response_0", "output_b": "response_1"}),
        (["prompt", "answer_0", "answer_1", "answer_2"], "pair",
         {"input": "prompt", "output_a": "answer_0", "output_b": "answer_1"}),
        (["input", "output", "text"], "item", {}),
        (["messages", "completion"], "item", {"input": "messages", "output": "completion"}),
        (["question", "output", "context", "ground_truth"], "item",
         {"input": "question", "source": "context", "expected": "ground_truth"}),
    ],
)  # fmt: skip
def test_usual_names_of_columns_are_understood(names, takes, found):
    assert understood(names, None, takes) == found


# What is known of a row, and a value that it may have.
KNOWN = {"label": 1, "labels": {"tone": 1}, "group": "g", "category": "c", "turn": 2, "id": "i",
         "systems": ["x"], "human_votes": [1, 0], "family": "f", "label.tone": 1,
         "labels.tone": 1, "human_votes.tone": [1, 0]}  # fmt: skip
LETTERS: list[Any] = [str.upper, str.title, " {} ".format, lambda n: n.replace("_", " ")]


@for_each("field", KNOWN)
@for_each("written", LETTERS)
def test_what_is_known_of_a_row_is_read_in_any_letters(field, written):
    head, dot, criterion = field.partition(".")
    name, texts = f"{written(head)}{dot}{criterion}", {"Question": "q", " Reply": "x"}
    own, other = ({**texts, n: KNOWN[field]} for n in (field, name))
    reader = partial(Records(source_of([own]), None, "item").row, index=0)
    found = [{k: v for k, v in reader(row).items() if k != NOTES} for row in (own, other)]
    assert found[0] == found[1]
    if name != field:  # a field's own name comes first, though it is empty
        both = {**own, field: None, name: KNOWN[field]}
        assert facts_in(tuple(both)) == {}
        assert facts_in(tuple(other)) == {field: name}
        assert facts_in(tuple(other), (name,)) == {}


def test_facts_are_all_that_a_row_is_known_by():
    texts = {"chosen", "rejected", "task_kind", *READ}
    assert {field for field in KNOWN if "." not in field} == FIELDS - texts


DOTTED = {"gen_ai.input.messages": "Where?", "gen_ai.output.messages": "Kyiv", "n": [{"a.b": 1}]}


@for_each("row", [{"attributes": DOTTED}, {"a.b": {"span.attributes": [DOTTED]}}])
def test_a_place_that_an_error_names_can_be_followed_through_keys_with_dots(row):
    found = {field: place_in(row, field) for field in ("input", "output")}
    assert [follow(row, "columns", path) for path in found.values()] == ["Where?", "Kyiv"]
    [judged] = judge_many(polite(), [row], columns=found)
    assert judged["verdict"]["failures"] == []


def test_a_path_goes_through_the_longest_key():
    row = {"a": {"b": 1, "b.c": 2, "d": [{"e.f": 3}]}, "a.b.c": 4}
    paths = ["a.b.c", "a.b", "a.d.0.e.f"]
    assert [follow(row, "columns", path) for path in paths] == [4, 1, 3]


def test_what_evaluators_call_a_field_is_a_column_of_it():
    for name, field in KNOWN_NAMES["parameters"].items():
        assert understood([name], None, "item", needed=()) == {field: name}


@for_each(
    "row, unread",
    [
        ({"question": "q", "answer": "known", "response": "r"}, ["answer"]),
        ({"question": "q", "task": "sums", "summary": "s", "text": "t"}, ["task", "text"]),
        ({"question": "q", "reply": "r", "reference": "s", "gold": "t"}, ["gold"]),
        ({"question": "q", "reply": "r", "agent": "007"}, ["agent"]),
    ],
)
def test_columns_that_would_fit_a_field_too_are_named_once(row, unread, caplog):
    caplog.clear()
    list(judge_many(polite(), [row, row], progress=False))
    said = [record.getMessage().partition("not shown")[2] for record in caplog.records]
    assert [name for name in row if repr(name) in str(said)] == unread
    assert len(said) == len(unread)
    list(judge_many(polite(), [row], progress=False))  # of each run
    assert len(caplog.records) == 2 * len(unread)


def test_texts_that_answer_nothing_are_judged_where_a_person_says_so(tmp_path):
    (tmp_path / "comments.csv").write_text("comment\nGo away.\n")
    model, columns = FakeChatModel(replies=labels), dict[str, Any](output="comment")
    with pytest.raises(InputError, match=r"no column for `input` .* or \[\] .* answer nothing"):
        list(judge_many(polite(model), tmp_path / "comments.csv", columns=columns))
    assert not model.prompts

    columns |= {"input": []}
    [row] = judge_many(polite(model), tmp_path / "comments.csv", columns=columns)
    assert row["verdict"]["label"] == 1
    assert "(no task)" in model.prompts[0]
    with pytest.raises(InputError, match=r"where texts answer nothing, write '\(no task\)' there"):
        polite(model).invoke({"output": "Go away."})
    assert polite(model).invoke({"input": "(no task)", "output": "Go away."})["verdict"]["label"]


SINGLE = {"question": "Where?", "response": "Kyiv"}
PAIRED = {"prompt": "Where?", "response_a": "Kyiv", "response_b": "Oslo"}
# Rows as exports of annotation tools and evaluators have them: their texts below other columns.
EXPORTED = {
    "below a key": lambda row: {"id": 1, "metadata": {"question": "no"}, "data": row},
    "in a list": lambda row: {"annotations": [], "items": [row]},
    "further down": lambda row: {"sample": {"doc": row, "scores": [1]}},
    "in other words": lambda row: {"fields": {n.title().replace("_", "-"): row[n] for n in row}},
    "each apart": lambda row: {f"part_{n}": {n: text} for n, text in row.items()},
}


@for_each("row", [SINGLE, PAIRED])
@for_each("shape", EXPORTED)
@for_each("form", [".jsonl", ".json", "list"])
def test_advice_on_texts_below_a_column_works_when_it_is_followed(form, shape, row, tmp_path):
    record = EXPORTED[shape](row)
    (path := tmp_path / f"r{form}").write_text(json.dumps([record] if form == ".json" else record))
    judge = polite() if row is SINGLE else relative()
    columns, told = dict[str, Any](), [""]
    while told:
        try:
            rows = [record] if form == "list" else path
            list(judge_many(judge, rows, columns=columns, progress=False))
            told = []
        except InputError as exc:
            told = re.findall(r"`columns` (\w+)=([^;,\s]+)|--column (\w+)=([^;\s]+)", str(exc))[:1]
            field, place = filter(None, told[0])
            assert columns.setdefault(field, place) == place
            assert len(columns) <= len(row)
    shown = unfenced(judge.model.prompts[0])
    assert all(f"]\n{text}\n" in shown for text in row.values())


def test_a_column_that_is_read_already_is_not_advised():
    columns = {"output_a": "instruction_a", "output_b": "instruction_b"}
    with pytest.raises(InputError, match="by `columns` input=COLUMN"):
        understood([*columns.values(), "source"], columns, "pair")


@for_each("record", ["doc", "item", "datasource_item", "dataset_item", "example"])
@for_each("name", ["answer", "output", "text", "completion", "summary"])
def test_the_right_answer_in_a_record_of_a_data_set_is_not_advised_as_the_judged_one(record, name):
    whole = {record: {"question": "2+2?", name: "4"}, "target": "4", "filtered": ["5"]}
    columns = {"input": f"{record}.question"}
    with pytest.raises(InputError, match="by `columns` output=COLUMN"):
        understood(whole, columns, "item")
    sampled = {**whole, "generated": {"answer": "5"}}
    with pytest.raises(InputError, match=r"by `columns` output=generated\.answer"):
        understood(sampled, columns, "item")


def test_a_column_that_a_person_named_is_in_no_doubt(caplog):
    row = {"question": "q", "answer": "a", "response": "r"}
    list(judge_many(polite(), [row], columns={"output": "answer"}, progress=False))
    assert not caplog.records


def test_a_conversation_alone_is_what_happened():
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    model = FakeChatModel(replies=labels)
    for rows in ([{"messages": talk}], import_module("pandas").DataFrame([{"messages": talk}])):
        list(judge_many(polite(model), rows, progress=False))
    said = "[request]\nWhy?\n\n[response]\nSo."
    assert [said in unfenced(prompt) for prompt in model.prompts] == [True, True]


def test_rows_of_the_other_kind_are_said_to_be():
    with pytest.raises(InputError, match="single texts"):
        understood(["question", "output"], None, "pair")


def test_a_bad_row_is_a_row_of_the_result_with_its_reason(tmp_path):
    rows = [{**REPLIES[0], "reply": ""}, REPLIES[1]]
    list(judge_many(polite(), written(tmp_path / "r.csv", rows), out=tmp_path / "s.csv"))
    first, second = read(tmp_path / "s.csv")
    assert (first["label"], second["label"]) == ("", "1")
    assert "invalid_input" in first["failures"]
    assert first["question"] == rows[0]["question"]


def test_a_line_that_cannot_be_read_mixes_nothing_into_a_column_of_that_name(tmp_path):
    path = tmp_path / "r.jsonl"
    rows = [{"question": "a", "reply": "b", "reason": f"own {n}"} for n in range(2)]
    late = {"question": "a", "reply": "b", "label": "own"}
    path.write_text("\n".join(["{torn", *map(json.dumps, rows), json.dumps(late), "[5]"]))
    bad, named = "Not judged: invalid_input.", ("reason", "label", "judge.reason")
    for ending in (".csv", ".tsv", ".jsonl", ".parquet"):
        out = tmp_path / f"s{ending}"
        list(judge_many(polite(), path, out=out, progress=False))
        table = [{name: row.get(name) or None for name in named} for row in cells(out)]
        assert [tuple(row.values()) for row in table] == [
            (None, None, bad),
            ("own 0", None, "Kind."),
            ("own 1", None, "Kind."),
            (None, "own", "Kind."),
            (None, None, bad),
        ]
    frame = judge_many(polite(), path, progress=False).to_pandas()
    assert frame["judge.reason"].tolist() == [bad, "Kind.", "Kind.", "Kind.", bad]


def label_column(path: Path) -> list[str | None]:
    """The judge's labels of a table of any form, as texts; None where there is none."""
    labels = [row["label"] for row in cells(path)]
    return [str(label) if label not in (None, "") else None for label in labels]


def cells(path: Path) -> Any:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return import_module("pyarrow.parquet").read_table(path).to_pylist()
    return read(path)


def test_a_line_with_too_many_cells_is_a_row_with_its_reason(tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "s.csv"
    path.write_text("question,reply\nWhy?,So,and more\nWhen?,Now\n")
    list(judge_many(polite(), path, out=out, progress=False))
    first, second = read(out)
    assert (first["question"], first["label"], second["label"]) == ("Why?", "", "1")
    assert "more cells than columns" in first["failures"]


def test_a_list_whose_first_rows_are_bad_is_judged_unless_all_are():
    rows = [5, {}, {"input": "Why?"}, {"input": "Why?", "output": "So."}]
    results = list(judge_many(polite(), rows, progress=False))
    assert [(row["kind"], row["judged"]) for row in results] == [
        *[("item", False)] * 3,
        ("item", True),
    ]
    with pytest.raises(InputError, match="row 1: "):
        list(judge_many(polite(), [5, "x"], progress=False))
    with pytest.raises(InputError, match="row 1: "):
        list(judge_many(polite(), [5] * 10 + rows, progress=False))


# ---- out


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_own_cells_come_back_to_the_byte_but_what_a_spreadsheet_would_run(suffix, tmp_path):
    model = FakeChatModel(replies=[{"label": "1", "explanation": "=cmd|' /C calc'!A0"}] * 3)
    out = tmp_path / f"scores{suffix}"
    list(judge_many(polite(model), written(tmp_path / "r.csv"), out=out, progress=False))
    rows = read(out)
    inert = [{**row, "day": row["day"].replace("=", "'=", 1)} for row in REPLIES]
    assert [{name: row[name] for name in REPLIES[0]} for row in rows] == inert
    assert list(rows[0])[: len(REPLIES[0])] == list(REPLIES[0])
    own = ["label", "score", "confidence", "reason", "failures", "calls"]
    assert list(rows[0])[len(REPLIES[0]) :] == own
    assert all(row["reason"].startswith("'=cmd") for row in rows)
    assert {path.name for path in tmp_path.iterdir()} == {"r.csv", out.name, f".{out.name}.run"}


@for_each("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_that_was_judged_before_keeps_the_columns_of_that_judge(pd, suffix, tmp_path):
    source: Any = [
        {"input": "Why?", "output": "So.", "label": "mine"},
        {"input": "Who?", "output": "I.", "label": "hers", "judge.label": "late"},
    ]
    before = source
    for number in range(3):
        out = tmp_path / f"{number}{suffix}"
        list(judge_many(polite(), source, out=out, progress=False))
        frame = pd.DataFrame(cells(out))
        after = frame.astype(object).where(frame.notna(), None).to_dict("records")
        for row, own in zip(after, before, strict=True):
            assert {name: row[name] for name in own} == own
            assert int(row["judge." * (number + 2) + "label"]) == 1
        source, before = out, after


def test_a_data_frame_comes_back_with_its_own_index_and_types(pd):
    frame = pd.DataFrame(
        {"question": ["a", "b"], "reply": ["x", None], "label": ["billing", "other"]},
        index=["p", "q"],
    )
    scored = judge_many(polite(), frame, progress=False).to_pandas()
    pd.testing.assert_frame_equal(scored[list(frame)], frame)
    assert scored.loc["p", "judge.label"] == 1
    assert "invalid_input" in scored.loc["q", "failures"]


def test_a_frame_of_a_run_can_be_followed_by_its_file(pd, tmp_path):
    run = judge_many(polite(), pd.DataFrame(REPLIES), progress=False)
    frame = run.to_pandas()
    run.to_csv(tmp_path / "t.csv")
    assert list(pd.read_csv(tmp_path / "t.csv")["label"]) == list(frame["label"]) == [1, 1, 1]


@for_each("read", [next, list])
def test_a_run_of_which_rows_were_read_makes_no_table_without_them(pd, read, tmp_path):
    run = judge_many(polite(), pd.DataFrame(REPLIES), progress=False)
    read(run)
    for table in (run.to_pandas, lambda: run.to_csv(tmp_path / "t.csv")):
        with pytest.raises(JudgeError, match="read already"):
            table()
    assert not [*tmp_path.iterdir()]
    run.close()


def test_several_criteria_have_a_column_each_with_its_reason(tmp_path):
    rubric = ["Tone: Is it kind?", "Remedy: Does it help?"]
    judge = create_rubric_judge(FakeChatModel(replies=labels), rubric=rubric, each=True)
    (row,) = judge_many(judge, REPLIES[:1], progress=False).to_pandas().to_dict("records")
    assert (row["Tone"], row["Tone.reason"], row["Remedy"]) == (1, "Kind.", 1)


@for_each("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_table_resumes_with_open_and_new_rows_alone(ending, tmp_path):
    out = tmp_path / f"s{ending}"
    model = FakeChatModel(replies=lambda prompt: labels(prompt) if "parcel" in prompt else "?")
    judge = polite(model, repairs=0)
    list(judge_many(judge, REPLIES[:2], out=out, progress=False))
    assert label_column(out) == ["1", None]
    model.replies = labels
    for rows, calls in ((REPLIES[:2], 1), (REPLIES[:2], 0), (REPLIES, 1)):
        before = len(model.prompts)
        list(judge_many(judge, rows, out=out, progress=False))
        assert (len(model.prompts) - before, label_column(out)) == (calls, ["1"] * len(rows))
    out.unlink()
    list(judge_many(judge, REPLIES, out=out, progress=False))
    assert (len(model.prompts) - before, label_column(out)) == (1, ["1"] * 3)


def test_a_table_of_somebody_else_or_edited_is_not_written_over(tmp_path):
    out = tmp_path / "s.csv"
    out.write_text("mine")
    with pytest.raises(OutputError, match="no run wrote it"):
        list(judge_many(polite(), REPLIES, out=out, progress=False))
    out.unlink()
    list(judge_many(polite(), REPLIES, out=out, progress=False))
    edited = out.read_bytes().replace(b"Kind", b"Rude")
    out.write_bytes(edited)
    with pytest.raises(OutputError, match="was changed"):
        list(judge_many(polite(), REPLIES, out=out, progress=False))
    assert out.read_bytes() == edited


def test_a_table_is_known_after_two_kills_between_its_receipt_and_itself(tmp_path, monkeypatch):
    out, put = tmp_path / "s.csv", Path.replace

    def killed(path: Path, target: Path) -> Path:
        if path.name == "draft.s.csv":
            raise KeyboardInterrupt
        return put(path, target)

    list(judge_many(polite(), REPLIES[:1], out=out, progress=False))
    for number in (2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", killed)
            with pytest.raises(KeyboardInterrupt):
                list(judge_many(polite(), REPLIES[:number], out=out, progress=False))
    list(judge_many(polite(), REPLIES, out=out, progress=False))
    assert len(label_column(out)) == 3


def test_the_table_of_another_judge_or_of_more_rows_is_not_written_over(tmp_path):
    out = tmp_path / "s.csv"
    list(judge_many(polite(), REPLIES, out=out, progress=False))
    before = out.read_bytes()
    with pytest.raises(OutputError, match="table of another judge"):
        list(judge_many(polite(temperature=1.0), REPLIES, out=out, progress=False))
    with pytest.raises(OutputError, match=r"3 rows.* has 1;"):
        list(judge_many(polite(), REPLIES[:1], out=out, progress=False))
    with pytest.raises(OutputError, match=r"3 rows.* has 1;"):
        list(judge_many(polite(), (row for row in REPLIES[:1]), out=out, progress=False))
    assert out.read_bytes() == before
    out.unlink()
    list(judge_many(polite(), REPLIES[:1], out=out, progress=False))
    assert len(read(out)) == 1


def test_two_open_runs_cannot_write_one_table(tmp_path):
    out = tmp_path / "s.csv"
    first = judge_many(polite(), REPLIES, out=out, records=tmp_path / "a", progress=False)
    next(first)
    second = judge_many(polite(), REPLIES, out=out, records=tmp_path / "b", progress=False)
    with pytest.raises(OutputError, match=r"Another run .*s\.csv"):
        list(second)
    list(first)
    assert label_column(out) == ["1"] * 3


def test_a_table_takes_cells_of_any_size_and_mixed_lists(tmp_path):
    rows = [{**REPLIES[0], "reply": "x" * 200_000}, {**REPLIES[1], "tags": [1, "a", None]}]
    for ending in (".csv", ".parquet"):
        out = tmp_path / f"s{ending}"
        list(judge_many(polite(), rows, out=out, progress=False))
        assert label_column(out) == ["1", "1"]


@for_each(
    ("out", "options", "problem"),
    [
        ("s.txt", {}, "`out` must end in .csv, .jsonl, .md, .parquet, .tsv, .xlsx, got"),
        ("s3://bucket/s.csv", {}, "are files, on any disk"),
        ("s.csv", {"shard": "1/2"}, "`shard` needs `records`, the folder of the parts, and no"),
        ("s.jsonl", {"records": "./s.jsonl"}, "`out` and `records` name the same file"),
    ],
)
def test_a_table_that_cannot_be_written_is_refused_at_once(out, options, problem):
    with pytest.raises(OptionError, match=re.escape(problem)):
        judge_many(polite(), REPLIES, out=out, **options)


def kind(call):
    return reply(labels(call.prompt))


def comparing(server, *words, exit_code=0):
    line = ["compare", *words, "--model", "m", "--base-url", server.url]
    done = CliRunner().invoke(app, [str(word) for word in line])
    assert done.exit_code == exit_code, done.output
    return done


def answers(system: str, numbers: Iterable[int]) -> list[dict[str, str]]:
    """Outputs of a system: those of v2 are good, but not on billing."""
    rows = []
    for n in numbers:
        text = "good" if (system == "v2") is (n % 4 != 0) else f"bad {system}"
        area = "billing" if n % 4 == 0 else "other"
        rows.append({"id": f"q{n}", "question": f"Why {n}?", "reply": text, "category": area})
    return rows


def lines_of(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.whole
def test_two_files_of_outputs_are_joined_by_id_and_the_answer_goes_into_a_pull_request(
    serve, tmp_path
):
    first = lines_of(tmp_path / "v1.jsonl", answers("v1", range(41)))
    second = lines_of(tmp_path / "v2.jsonl", reversed(answers("v2", range(40))))
    out = [tmp_path / name for name in ("s.csv", "pr.md")]
    words = [word for path in out for word in ("-o", path)]
    server = serve(over_the_wire)
    done = comparing(server, first, second, *words)
    better = "v2 is better in 30 of 40 (75 %, 60–86 %): settled."
    assert better in done.stdout
    counts = [line.split() for line in done.stdout.splitlines()[:2]]
    assert counts == [["v1", "10"], ["v2", "30"]]
    assert "1 row left out" in done.stderr
    table = read(out[0])
    assert [row["v1"] for row in table] == [row["reply"] for row in answers("v1", range(40))]
    assert {row["preference"] for row in table if row["category"] == "billing"} == {"v1"}
    note = out[1].read_text()
    assert note.startswith(f"{better}\n\n| | v2 better | v1 better |\n|---|---|---|\n")
    assert "| billing | 0 of 10 (0 %, 0–28 %) | 10 |\n" in note
    assert note.count("\n- q") == 6
    calls = len(server.calls)
    comparing(server, first, second, "-o", out[0])
    assert len(server.calls) == calls


def test_columns_in_which_two_files_differ_are_told_of(serve, tmp_path):
    paths = [
        lines_of(tmp_path / f"{name}.jsonl", [{**row, "ms": name, "score": name} for row in rows])
        for name in ("v1", "v2")
        for rows in [answers(name, range(4))]
    ]
    told = comparing(serve(over_the_wire), *paths, "--dry-run").stderr
    assert "4 rows: files differ in `ms`, `score`; the first one's is kept." in told


def test_a_system_without_an_answer_costs_its_row_and_no_other(serve, tmp_path):
    rows = [answers("v1", range(4)), answers("v2", range(4))]
    rows[0][1]["reply"], rows[1][2]["reply"] = "", None
    first, second = (lines_of(tmp_path / f"v{n}.jsonl", own) for n, own in enumerate(rows, 1))
    server, out = serve(over_the_wire), tmp_path / "s.csv"
    done = comparing(server, first, second, "-o", out)
    told = ("row 2: the field `output_a` is", "row 3: the field `output_b` is", "2 of 4 rows")
    assert all(each in done.stderr for each in told), done.stderr
    assert [bool(row["preference"]) for row in read(out)] == [True, False, False, True]


@pytest.mark.whole
@for_each("names", [*permutations(["v1", "v2"]), ("v2", "v3", "v1")])
def test_how_the_output_of_each_system_was_read_is_noted_by_its_name(names, serve, tmp_path):
    said = {"role": "assistant", "content": "good"}
    outputs: dict[str, Any] = {
        "v1": {"answer": "bad", "debug": "the words"},
        "v2": {"answer": "bad too", "messages": [said]},
        "v3": "none of these",
    }
    paths = [
        lines_of(tmp_path / f"{name}.jsonl", [{"input": "Why?", "output": outputs[name]}])
        for name in names
    ]
    kept = tmp_path / f"{'-'.join(names)}.jsonl"
    comparing(serve(over_the_wire), *paths, "-o", tmp_path / "pr.md", "--records", kept)
    for line in map(json.loads, kept.read_text().splitlines()):
        noted = {each["unit"]: each["detail"] for each in line["verdict"]["failures"]}
        told = {
            "v1": "is read from 'answer'; not shown: 'debug'",
            "v2": "is read from 'messages'; not shown: 'answer'",
        }
        compared = line["id"].split(": ")[1].split(" / ") if len(names) > 2 else names
        assert noted == {name: told[name] for name in compared if name in told}


@pytest.mark.whole
def test_two_files_in_other_orders_are_one_workbook_that_the_next_run_goes_on(serve, tmp_path):
    mixed = [n * 7 % 40 for n in range(40)]
    first = lines_of(tmp_path / "v1.jsonl", answers("v1", range(40)))
    second = lines_of(tmp_path / "v2.jsonl", answers("v2", mixed))
    server, out = serve(over_the_wire), tmp_path / "result.xlsx"
    comparing(server, first, second, "-o", out, "--max-rows", "10")
    calls = len(server.calls)
    comparing(server, first, second, "-o", out)
    assert len(server.calls) == 4 * calls  # no pair is asked again
    book = openpyxl.load_workbook(out)
    head, *rows = book["rows"].iter_rows(values_only=True)
    table = [dict(zip(head, row, strict=True)) for row in rows]
    assert [(row["id"], row["v1"], row["v2"]) for row in table] == [
        (f"q{n}", answers("v1", [n])[0]["reply"], answers("v2", [n])[0]["reply"]) for n in range(40)
    ]
    assert [row["preference"] == "v1" for row in table] == [n % 4 == 0 for n in range(40)]
    assert book.sheetnames == ["rows", "summary"]


@pytest.mark.whole
def test_three_systems_are_ranked_with_the_neighbours_that_are_not_settled(serve, tmp_path):
    rows = [
        {"question": f"Why {n}?", "v1": f"bad {n}", "v2": "good", "v3": f"bad too {n}"}
        for n in range(12)
    ]
    out = tmp_path / "pr.md"
    words = ("--systems", "v1,v2,v3", "-o", out)
    more = ("--records", tmp_path / "r.jsonl", "--set", "orders=lenient")
    server = serve(over_the_wire)
    done = comparing(server, written(tmp_path / "r.csv", rows), *words, *more)
    assert re.search(r"v2 before v\d: settled", done.stdout)
    assert "not settled" in done.stdout
    assert out.read_text().count("\n| v") == 3
    calls = len(server.calls)
    assert comparing(server, tmp_path / "r.csv", *words, *more).stdout == done.stdout
    assert len(server.calls) == calls


# Replies that are refused, flags, and the code of three systems of which each pair is asked.
@pytest.mark.whole
@for_each(
    "refused, strict, code", [("good", (), 1), ("bad too", (), 0), ("bad too", ("--strict",), 1)]
)
def test_a_ranking_fails_where_nothing_was_judged_and_by_strict_where_a_part(
    serve, tmp_path, refused, strict, code
):
    rows = [{"question": "Why?", "v1": "good bad", "v2": "good", "v3": "good bad too"}] * 2
    behave = lambda call: refusal() if refused in call.prompt else over_the_wire(call)  # noqa: E731
    path = written(tmp_path / "r.csv", rows)
    comparing(serve(behave), path, "--systems", "v1,v2,v3", *strict, exit_code=code)


def test_each_run_of_an_experiment_is_a_row_whatever_became_of_its_example(monkeypatch):
    with LangSmithServer() as langsmith:
        client, alone = (
            Client(api_url=langsmith.url, api_key="k", auto_batch_tracing=each)
            for each in (True, False)
        )
        data = client.create_dataset("support")
        langsmith._new_session(None, None, {"name": "p"})
        for n in "ab":
            client.create_example(inputs={"asked": n}, dataset_id=data.id)
        done = client.evaluate(lambda inputs: {"answer": "y"}, data="support", max_concurrency=0)
        times: Any = dict.fromkeys(("start_time", "end_time"), datetime.now(UTC))
        own: Any = {"inputs": {"asked": "c"}, "outputs": {"answer": "z"}, "project_name": "p"}
        alone.create_run("f", run_type="chain", **own, **times)
        client.flush()
        langsmith.examples.popitem()
        listed, asked = Client.list_examples, []

        def noted(self, **which):
            asked.append((which["as_of"], which["dataset_id"]))
            return listed(self, **which)

        monkeypatch.setattr(Client, "list_examples", noted)
        rows: Any = experiment_rows(client, done.experiment_name, "p")
        version = client.read_project(project_name=done.experiment_name).metadata
    plain = [[row["input"]["asked"] + row["output"]["answer"] for row in each] for each in rows]
    assert (sorted(plain[0]), plain[1]) == (["ay", "by"], ["cz"])
    assert asked == [(version["dataset_version"], data.id)]
    assert version["dataset_version"] is not None


COLUMNS_OF_SET = {"input": "id", "output": "question"}


def test_two_experiments_of_langsmith_are_compared(serve, tmp_path, monkeypatch):
    with LangSmithServer() as langsmith:
        client = Client(api_url=langsmith.url, api_key="k")
        data = client.create_dataset("support")
        for n in range(8):
            inputs = {"question": f"Why {n}?"}
            client.create_example(inputs=inputs, dataset_id=data.id)
        names = []
        # LangSmith names a run's inputs after the parameters of the function.
        old, new = traceable(lambda inputs: {"answer": "bad"}), lambda asked: {"answer": "good"}
        for target in (old, new):
            done = client.evaluate(target, data="support", max_concurrency=0)
            names.append(done.experiment_name)
        client.flush()
        monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "k")
        monkeypatch.setenv("LANGSMITH_TRACING", "false")
        words = [f"langsmith:{name}" for name in names]
        done = comparing(serve(over_the_wire), *words, "--systems", "old,new")
        judged = judge_many(polite(), "support", client=client, columns=COLUMNS_OF_SET)
        assert len(list(judged)) == 8
    assert "8 of 8" in done.stdout


def test_a_run_that_failed_is_not_compared_and_its_error_is_told():
    notes = Notes()
    notes.add("output", "is of a run that failed: Boom", "missing")
    rows: Any = {"old": {"output": None, NOTES: notes}, "new": {"output": "So."}}
    sound = {"input": "How?", "output": "Thus."}
    files = {name: Source([{"input": "Why?", **own}, sound], True) for name, own in rows.items()}
    [pair, _], _, _ = joined(files)
    columns = {"output_a": "old", "output_b": "new"}
    [result] = judge_many(bsm(), Source([pair], True), columns=columns)
    [failure] = result["verdict"]["failures"]
    told = "`output_a` is empty, read from 'old', which is of a run that failed: Boom"
    assert (failure["reason"], failure["detail"]) == ("invalid_input", f"the field {told}")
    alone = {name: own.first(1) for name, own in files.items()}
    with pytest.raises(InputError, match=r"old: the field `output` is empty.* that failed: Boom"):
        joined(alone)


def test_a_reference_of_files_is_shown_with_their_pairs():
    rows = [{"question": "Why?", "output": text, "gold": "So."} for text in "ab"]
    files = {text: Source([row], True) for text, row in zip("ab", rows, strict=True)}
    [pair], _, _ = joined(files, {"expected": "gold"})
    assert (pair["reference"], pair["a"], pair["b"]) == ("So.", "a", "b")


@for_each(
    ("files", "words", "problem"),
    [
        (2, "", "no row of v0 and v1 has the same `input` and `id`"),
        (1, "--systems a", "--systems must name two columns or more, got 'a'"),
        (1, "--systems a,b", "no column 'a'; there are ['id', 'input', 'output']"),
        (1, "--systems input,output -o no/a.md", "--out must name a file in a folder"),
    ],
)
def test_wrong_use_of_a_comparison_is_one_sentence(tmp_path, files, words, problem):
    for n in range(files):
        lines_of(tmp_path / f"v{n}.jsonl", [{"id": str(n), "input": "q", "output": "a"}])
    paths = [tmp_path / f"v{n}.jsonl" for n in range(files)]
    line = ["compare", *paths, "--model", "gpt-m", *words.split()]
    done = CliRunner().invoke(app, list(map(str, line)), env={"OPENAI_API_KEY": "none"})
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr.replace("\n", " ")


def has_rows(file: Path, least: int, call: object = None) -> bool:
    return rows_in(file) >= least


@pytest.mark.system
def test_a_run_killed_fifteen_times_ends_in_one_whole_table(serve, tmp_path):
    rows = [{"question": f"Why {n}?", "reply": "Sorry.", "no": f"{n:04}"} for n in range(64)]
    source, out = written(tmp_path / "r.csv", rows), tmp_path / "s.csv"
    own = tmp_path / ".s.csv.run" / "records.jsonl"
    words = ["judge", source, "--method", "rubric", "--set", "rubric=Is it polite?"]
    calls = 0
    for moment in range(1, 16):
        enough = partial(has_rows, own, 4 * moment)
        script, event = held(kind, enough)
        server = serve(script)
        command = [*words, "--model", "m", "--base-url", server.url, "--concurrency", "2"]
        process = start("-m", "langchain_judges.cli", *command, "-o", out)
        wait_until(enough)
        process.send_signal(signal.SIGKILL)
        event.set()
        process.communicate()
        calls += len(server.calls)
        assert not out.exists()
    server = serve(kind)
    command = [*words, "--model", "m", "--base-url", server.url]
    process = start("-m", "langchain_judges.cli", *command, "-o", out)
    printed, errors = process.communicate()
    assert (process.returncode, "Label " in printed) == (0, True), errors
    table = read(out)
    assert [row["no"] for row in table] == [row["no"] for row in rows]
    assert all(row["label"] for row in table)
    # A kill costs at most the calls that were in flight.
    assert len(rows) <= calls + len(server.calls) <= len(rows) + 15 * 3
    left = {path.name for path in (tmp_path / ".s.csv.run").iterdir()}
    assert left == {"records.jsonl", "table.json"}


@pytest.mark.figures
def test_thousands_of_rows_of_parquet_come_back_in_flat_memory(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    source, out, count = tmp_path / "r.parquet", tmp_path / "s.parquet", 4_000
    days = pa.array([None if n % 7 == 0 else datetime(2026, 1, 1 + n % 28) for n in range(count)])
    own = pa.table(
        {
            "question": [f"Why {n}?" for n in range(count)],
            "reply": ["So. " * 50] * count,
            "code": [f"{n:07}" for n in range(count)],
            "day": days.cast(pa.date32()),
            "tags": [["a", "b"][: n % 3] for n in range(count)],
        }
    )
    parquet.write_table(own, source)
    verdict = {"label": 1, "score": 1.0, "failures": [], "usage": no_usage()}
    judge: Any = RunnableLambda(lambda _: {"verdict": verdict}).with_config(
        metadata={"method": "always", "takes": "item"}
    )
    sizes = []
    for number, _ in enumerate(judge_many(judge, source, out=out, progress=False)):
        if number in (500, 3_500):  # each amid a batch of a thousand that was read
            gc.collect()
            sizes.append((sys.getallocatedblocks(), pa.total_allocated_bytes()))
    table = parquet.read_table(out)
    assert table.select(own.column_names).equals(own)
    assert table["label"].to_pylist() == [1] * count
    # A key's hash in a set is a block of a row, a result that is kept a dozen. What is on its way
    # is some thousand blocks, however many rows there are: three thousand rows tell them apart.
    blocks, arrow = (after - before for before, after in zip(*sizes, strict=True))
    assert (blocks < 6 * 3_000, arrow < 200 * 3_000) == (True, True), (blocks, arrow)


def test_instructions_and_their_inputs_in_two_columns_are_one_task(tmp_path):
    rows = [
        {"instruction": "Translate.", "input": "Kyiv", "output": "Київ"},
        {"instruction": "Name a city.", "input": "", "output": "Kyiv"},
    ]
    table = written(tmp_path / "alpaca.csv", rows)
    named: Any = {"input": ["instruction", "input"]}
    for given, columns in ((table, named), (table, None), (rows, None)):
        model = FakeChatModel(replies=answer)
        list(judge_many(polite(model), given, columns=columns, progress=False))
        tasks = re.findall(r"<request-.*?>\n(.*?)\n</", "".join(model.prompts), re.DOTALL)
        assert sorted(tasks) == ["Name a city.", "Translate.\nKyiv"]


ASKED = {"role": "user", "content": "Why?"}


@for_each(
    ("cell", "task"),
    [
        (None, "doc"),
        (float("nan"), "doc"),
        (7, "7\ndoc"),
        (["a", "b"], "a\nb\ndoc"),
        ({"question": "Why?", "id": 3}, "Why?\ndoc"),
        ({"city": "Kyiv", "days": 2}, '{"city": "Kyiv", "days": 2}\ndoc'),
        ([ASKED], [ASKED, {"role": "user", "content": "doc"}]),
    ],
)
def test_a_task_of_two_columns_has_each_cell_as_a_task_by_itself(cell, task):
    columns = {"input": ["task", "context"]}
    row = mapped({"task": cell, "context": "doc", "output": "a"}, columns, "item", columns)
    assert row["input"] == task
    assert plain_row(row)["input"] == task


NESTED = {"item": {"question": "Where?", "right": ["Kyiv"]}, "choices": [{"text": "Oslo"}]}
PLACES = {"input": "item.question", "output": "choices.0.text", "expected": "item.right"}


@for_each("suffix", ["jsonl", "json", "parquet"])
def test_a_field_is_read_from_a_path_in_a_column(suffix, pd, tmp_path):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, rubric="correctness")
    path = tmp_path / f"nested.{suffix}"
    if suffix == "parquet":
        pd.DataFrame([NESTED]).to_parquet(path)
    else:
        path.write_text(json.dumps([NESTED] if suffix == "json" else NESTED))
    [result] = judge_many(judge, path, columns=PLACES, progress=False)
    assert result["verdict"]["failures"] == []
    assert all(each in model.prompts[0] for each in ("Where?", "Oslo", "Kyiv"))


def test_a_path_that_is_in_no_row_is_told_by_what_is_there():
    for path, told in [("item.q", "got the keys 'question', 'right'"), ("choices.1", "list of 1")]:
        with pytest.raises(InputError, match=told):
            list(judge_many(polite(), [NESTED], columns={**PLACES, "output": path}))


@for_each(
    ("row", "told"),
    [
        ({"input": None, "output": "x"}, "`input` is empty, read from 'input'; where texts"),
        ({"messages": []}, "`output` is empty, read from 'messages'"),
        ({"answer": "x"}, "`input` is missing; the fields are 'answer': name one"),
    ],
)
def test_a_field_that_is_there_and_empty_is_not_asked_for_as_a_missing_one(row, told):
    judge = polite()
    with pytest.raises(InputError, match=told):
        judge.invoke(row)
    good = {"input": "q", "output": "x"}
    bad, _ = judge_many(judge, [row, good], progress=False)
    assert re.search(told, bad["verdict"]["failures"][0]["detail"])


@for_each(
    ("text", "told"),
    [
        ('{"evalId": 1, "results": [{}]}', "with 'evalId', 'results': put 'results' alone, or"),
        (json.dumps({str(n): {} for n in range(9)}), "and 4 more: put its objects in a list"),
        ('[{"input": "q"},\n{"input": "w', "line 2, column 11: not JSON [(]Unterminated"),
        ('{\n"input": "q",\n"outp', "line 3, column 1: not JSON [(]Unterminated"),
        ('{"input": "q"}\n{"input": "w', "line 2, column 11: not JSON [(]Unterminated"),
        ('"text"', "record 1: not an object"),
    ],
)
def test_a_file_of_json_that_holds_no_rows_says_what_it_holds(text, told, tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "rows.json"
    path.write_text(text)
    with pytest.raises(InputError, match=f"{path}.*{told}"):
        list(read_table(path))


def test_an_object_of_texts_alone_is_the_row_of_its_file(tmp_path):
    (tmp_path / "one.json").write_text('{"input": "Why?",\n "output": "So.", "n": 1}')
    assert [*read_table(tmp_path / "one.json")] == [{"input": "Why?", "output": "So.", "n": 1}]


def outcomes(judge, rows):
    """The label of each row, and what is told of it."""
    verdicts = [(row.get("verdict") or row) for row in judge_many(judge, rows, progress=False)]
    return [(each.get("label"), [f["detail"] for f in each["failures"]]) for each in verdicts]


def test_what_tables_write_for_a_missing_value_or_an_error_is_no_answer(tmp_path):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it good?")
    book = openpyxl.Workbook()
    for cells in (["question", "answer"], ["q1", "NaN"], ["q2", "#REF!"], ["q3", "yes"]):
        book.active.append(cells)
    book.active["B3"].data_type = "e"
    book.save(tmp_path / "rows.xlsx")
    first, second, third = outcomes(judge, tmp_path / "rows.xlsx")
    assert first == (None, ["the field `output` is empty, read from 'NaN'"])
    assert second == (None, ["the field `output` is empty, read from '#REF!'"])
    assert third[0] is not None
    assert not third[1]


def test_a_word_that_may_stand_for_nothing_is_judged_and_noted(tmp_path):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it good?")
    (tmp_path / "rows.csv").write_text("question,answer\nq1,N/A\nq2,Not applicable\n")
    first, second = outcomes(judge, tmp_path / "rows.csv")
    assert first[0] is not None
    assert first[1] == ["is 'N/A', which may stand for nothing"]
    assert second[1] == []


@for_each("cell", ["nan", "N/A", "null", "{}", "-"])
def test_a_word_that_may_stand_for_nothing_is_no_source(cell):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="groundedness")
    row = {"question": "q", "contexts": cell, "answer": "x"}
    table = import_module("pandas").DataFrame([row])
    [(label, told)] = outcomes(judge, table)
    assert label is None
    assert told[0].startswith("there is nothing to judge by")


def test_a_row_that_is_no_table_may_say_what_it_likes():
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it good?")
    [(label, told)] = outcomes(judge, [{"input": "What is 0/0 in Python?", "output": "nan"}])
    assert label is not None
    assert not told


def test_messages_in_a_cell_are_written_as_json_that_is_read_again(tmp_path):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), rubric="Is it good?")
    messages = [HumanMessage("Where is it?"), AIMessage("It comes today.")]
    row = {"thread": 7, "output": {"messages": messages}}
    list(judge_many(judge, [row], out=tmp_path / "x.csv", progress=False))
    [record] = read_table(tmp_path / "x.csv")
    [asked, said] = json.loads(record["output"])["messages"]
    assert (asked["content"], said["content"]) == ("Where is it?", "It comes today.")


@for_each("texts, others", [(("output",), []), (("output_a", "output_b"), ["rubric"])])
def test_a_rubric_of_a_row_is_for_a_judge_of_one_text_alone(texts, others):
    row = {"input": "Why?", "rubric": "Is it rude?", **dict.fromkeys(texts, "So.")}
    assert unshown(row) == others


@for_each(
    ("method", "options", "said"),
    [
        ("direct", {}, "has the `task_kind` 'summary': the judge asks all rows by its `task`, 'h"),
        ("sc2", {"aspects": ["Wit"], "samples": 1}, "asks all rows by its `task`, 'helpful'"),
        ("cot", {"task": "summary"}, ""),
        ("llm_score", {}, ""),
        ("relative", {}, ""),
    ],
)
def test_a_task_of_rows_that_a_judge_does_not_ask_by_is_named_once(method, options, said, caplog):
    caplog.clear()
    judge = load_judge(method, FakeChatModel(), **options)
    pair = {"input": "q", "output_a": "a", "output_b": "b", "task_kind": "summary"}
    list(judge_many(judge, [{**pair, "task_kind": ""}, pair, pair], progress=False))
    told = [each.getMessage() for each in caplog.records if "task_kind" in each.getMessage()]
    assert [text.startswith("Row 2 ") and said in text for text in told] == [True] * bool(said)
