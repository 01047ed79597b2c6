"""Spreadsheets in and out: books that people open, and cells that run nowhere."""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from langchain_judges import create_relative_judge, create_rubric_judge, judge_many
from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.escaping import inert_cell
from langchain_judges.report.terminal import criteria_table
from langchain_judges.rows.checks import number_in
from langchain_judges.rows.files import read_table
from langchain_judges.runs.book import Book
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.sheets import judged_cells
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.runs.summary import Percent
from langchain_judges.runs.tables import FORMS
from langchain_judges.verdict import NOTES
from tests.attacks.cells import live_in_rows
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judged_rows import run_of
from tests.judges import answer

RUBRIC = ["Tone: Is it kind?", "Remedy: Does it help?"]
ROWS = [
    {"id": "1", "question": "Where?", "reply": "On its way.\nBye", "note": "007"},
    {"id": "2", "question": "When?", "reply": "=HYPERLINK(1)", "note": "-2+3+cmd|' /C'!A0"},
    {"id": "3", "question": "\x1b[2JWho?", "reply": "I.", "note": "a\u202eb"},
]


def scored(prompt: str) -> str:
    if "Tone" in prompt and "Who?" in prompt:
        return "?"
    label = "rude" if "When?" in prompt else "polite"
    return json.dumps({"label": label, "explanation": "=1+1"})


def by_two_criteria(**options: Any) -> Any:
    model = FakeChatModel(replies=scored)
    return create_rubric_judge(
        model, rubric=RUBRIC, labels=["rude", "polite"], each=True, repairs=0, **options
    )


def book(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {
        sheet.title: list(sheet.iter_rows(values_only=True))
        for sheet in openpyxl.load_workbook(path)
    }


@pytest.fixture
def judged(tmp_path) -> Path:
    out = tmp_path / "scores.xlsx"
    list(judge_many(by_two_criteria(), ROWS, out=out, progress=False))
    return out


def test_a_book_has_the_rows_with_label_score_and_reason_by_criterion(judged):
    head, *rows = book(judged)["rows"]
    first = dict(zip(head, rows[0], strict=True))
    assert head[:4] == ("id", "question", "reply", "note")
    assert [first[f"Tone{part}"] for part in ("", ".score", ".reason")] == ["polite", 1, "'=1+1"]
    assert (first["reply"], first["note"]) == (ROWS[0]["reply"], "007")


OF_A_VERDICT = {"score": 0.7, "confidence": None, "reason": "r", "failures": None, "calls": 3}


@for_each(
    ("names", "first"),
    [((name, "Tone"), f"criterion.{name}") for name in ("label", "cost", *OF_A_VERDICT)]
    + [(("Tone.score", "Tone"), "criterion.Tone.score"), (("Place", "Tone"), "Place")],
)
def test_no_criterion_takes_a_column_of_the_verdict_or_of_another(names, first):
    parts = [
        {"criterion": name, "label": n, "score": n / 10, "reason": f"of {name}"}
        for n, name in enumerate(names, 2)
    ]
    verdict = {**OF_A_VERDICT, "label": 0.7, "rationale": "r", "usage": {"calls": 3}}
    result: Any = {"verdict": {**verdict, "failures": []}, "subscores": parts}
    cells = judged_cells(result)
    assert {name: cells[name] for name in OF_A_VERDICT} == OF_A_VERDICT
    for name, part in zip((first, "Tone"), parts, strict=True):
        found = [cells[name], cells[f"{name}.score"], cells[f"{name}.reason"]]
        assert found == [part["label"], part["score"], part["reason"]]


def test_a_book_sums_up_each_criterion_and_lists_the_failures(judged):
    sheets = book(judged)
    lines = {line[:2]: line[2:] for line in sheets["summary"]}
    # Wilson's interval of 1 of 2, with z² = 3.84: 0.5 ± 1.96 · √(0.25 / 2 + 3.84 / 16) / 2.92.
    assert lines["Tone", "polite"] == pytest.approx((1, 0.5, 0.0945, 0.9055, None), abs=1e-4)
    assert lines["Tone", "not judged"] == (1, None, None, None, "unparsable")
    assert lines["Remedy", "polite"][:2] == (2, 2 / 3)
    assert lines["Remedy", "mean score"][1] == 2 / 3
    assert ("calls", 6) in lines
    assert lines["judge", "rubric by FakeChatModel"]
    assert [row[:4] for row in sheets["failures"][1:]] == [(4, "3", "evaluate", "Tone")]


def test_a_book_of_a_run_without_failures_has_no_sheet_of_them(tmp_path):
    list(judge_many(by_two_criteria(), ROWS[:1], out=tmp_path / "s.xlsx", progress=False))
    assert list(book(tmp_path / "s.xlsx")) == ["rows", "summary"]


def test_the_numbers_of_a_column_have_as_many_decimals(judged):
    lines = openpyxl.load_workbook(judged)["summary"].iter_rows(min_row=2)
    forms = {cell[3].number_format for cell in lines if cell[1].value == "mean score"}
    assert forms == {"0.00"}


def test_a_share_is_as_wide_as_it_is_shown(tmp_path):
    made = Book()
    made.add("shares", ["to"], lambda: [[Percent(1)], [Percent(0.9)]])
    made.save(tmp_path / "b.xlsx")
    column = openpyxl.load_workbook(tmp_path / "b.xlsx")["shares"]
    assert column.column_dimensions["A"].width >= len("100.0%")
    assert [cell.value for (cell,) in column.iter_rows(min_row=2)] == [1, 0.9]


@for_each("name, is_there", [("s.csv", False), ("s.xlsx", False), ("s.jsonl", True)])
def test_a_total_of_criteria_stands_in_one_column_that_people_read(tmp_path, name, is_there):
    judge = create_rubric_judge(
        FakeChatModel(replies=lambda _: json.dumps({"label": 1, "explanation": "So."})),
        rubric=RUBRIC, each=True,
    )  # fmt: skip
    list(judge_many(judge, ROWS, out=tmp_path / name, progress=False))
    (first, *_) = read_table(tmp_path / name)
    assert ("label" in first, float(first["score"])) == (is_there, 1)


def test_a_book_is_laid_out_to_be_read(judged):
    sheet = openpyxl.load_workbook(judged)["rows"]
    tone = [cell.value for cell in sheet[1]].index("Tone")
    colours = [row[tone].fill.fgColor.rgb for row in sheet.iter_rows(min_row=2)]
    assert sheet.freeze_panes == "A2"
    assert len(set(colours)) == 3  # polite, rude, not judged
    assert sheet["C2"].alignment.wrap_text
    assert sheet.column_dimensions["C"].width > 10


@for_each("ending", [".csv", ".tsv", ".xlsx"])
def test_no_cell_nor_name_of_a_column_is_live(ending, tmp_path):
    rows = [{"=cmd()": "x", "torn": "\ud800", **row} for row in ROWS]
    out = tmp_path / f"s{ending}"
    list(judge_many(by_two_criteria(), rows, out=out, progress=False))
    if ending == ".xlsx":
        cells = [c for sheet in openpyxl.load_workbook(out) for row in sheet for c in row]
        assert not [cell for cell in cells if cell.data_type == "f"]
        texts = [str(cell.value or "") for cell in cells]
    else:
        with out.open(encoding="utf-8", newline="") as file:
            delimiter = "\t" if ending == ".tsv" else ","
            texts = [c for row in csv.reader(file, delimiter=delimiter) for c in row]
    assert not [text for text in texts if text[:1] in ("=", "@", "-", "+") and text[1:]]
    assert not [text for text in texts if {"\x1b", "\u202e", "\ud800"} & set(text)]


def test_own_cells_stay_as_they_came_on_request_and_else_it_is_said(tmp_path, caplog):
    rows = ROWS[:2]
    for raw in (False, True):
        run = judge_many(by_two_criteria(best="polite"), rows, progress=False)
        with caplog.at_level(logging.WARNING):
            run.to_csv(tmp_path / "s.csv", raw=raw)
    with (tmp_path / "s.csv").open(newline="") as file:
        assert [row["reply"] for row in csv.DictReader(file)] == [r["reply"] for r in rows]
    (record,) = (each for each in caplog.records if each.name.endswith("sheets"))
    assert record.getMessage().startswith("s.csv: 2 of")


@pytest.mark.whole
@for_each("raw", [False, True], ids=["", "as they came"])
@for_each("ending", FORMS)
def test_what_a_judge_says_runs_and_steers_nothing_in_any_form(ending, raw, tmp_path):
    assert not [live for live in live_in_rows(tmp_path, ending, 1, raw=raw) if live]


@for_each("label", [",", "-", "1,2", "007", "1,0000"])
def test_a_label_that_is_almost_a_number_stands_in_a_book_as_it_is(label, tmp_path):
    out = tmp_path / f"{label}.xlsx"
    model = FakeChatModel(replies=lambda _: json.dumps({"label": label, "explanation": "So."}))
    judge = create_rubric_judge(model, rubric="Kind?", labels=[label, "no"])
    list(judge_many(judge, ROWS, out=out, progress=False))
    lines = book(out)["summary"]
    assert [line[1] for line in lines if line[2] == 3] == [label, "mean score"]


@for_each("labels", [[0, 1], [1, 2, 3, 4, 5], [0.5, 1.5], ["no", "1"]])
def test_a_label_stands_in_the_summary_of_a_book_as_in_its_rows(labels, tmp_path):
    replies = itertools.cycle(json.dumps({"label": str(n), "explanation": "So."}) for n in labels)
    model = FakeChatModel(replies=lambda _: next(replies))
    judge = create_rubric_judge(model, rubric="Kind?", labels=labels, best=labels[-1])
    out = tmp_path / f"{labels}.xlsx"
    rows = [{"question": f"q{n}", "reply": f"a{n}"} for n in range(5)]
    list(judge_many(judge, rows, out=out, progress=False, max_concurrency=1))
    sheets = book(out)
    given = {row[sheets["rows"][0].index("label")] for row in sheets["rows"][1:]}
    assert given == {*labels}
    lines = [line for line in sheets["summary"][1:] if line[0] == "label"]
    assert {line[1] for line in lines} == given | {"mean score", "best label"}
    assert [line[-1] for line in lines if line[1] == "best label"] == labels[-1:]


@for_each("ending, number", [(".xlsx", 1234567890123456789), (".parquet", 2**64)])
def test_numbers_of_more_digits_than_a_form_holds_are_texts(ending, number, tmp_path):
    out = tmp_path / f"s{ending}"
    list(judge_many(by_two_criteria(), [{**ROWS[0], "n": number}], out=out, progress=False))
    assert [row["n"] for row in read_table(out)] == [str(number)]


@pytest.mark.whole
def test_a_small_book_that_unpacks_to_a_huge_one_is_refused_before_it_is(tmp_path):
    made = Book()
    made.add("s", ["input"], lambda: [["x"]])
    made.save(tmp_path / "b.xlsx")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/sharedStrings.xml", b"x" * 105_000_000)
    with pytest.raises(InputError, match=r"b\.xlsx unpacks to 105 MB"):
        list(read_table(tmp_path / "b.xlsx"))


@given(st.text() | st.from_regex(r"[\s\u200b]*[=+\-@\t\r].*"))
def test_no_text_becomes_a_formula(text):
    cell = inert_cell(text)
    bare = re.sub(r"[\s\u200b-\u200f\u2060\ufeff]", "", cell)
    assert bare[:1] not in ("=", "@", "+", "-") or not bare.strip("+-0123456789.eE")
    assert not bare.strip("+-") or cell.lstrip(" \u200b\ufeff")[:1] not in ("\t", "\r")


@pytest.mark.parametrize("steering", ["\x1b", "\x9b", "\u202e", "\ud800", "\ufffe", "\uffff"])
def test_no_cell_holds_what_steers_a_terminal_or_spoils_a_workbook(steering):
    assert inert_cell(f"a{steering}b") == "a\ufffdb"


def test_a_data_frame_of_torn_texts_can_be_written(tmp_path):
    rows = [{"question": "q", "reply": "a", "note": "torn \ud800"}]
    judge_many(by_two_criteria(), rows, progress=False).to_pandas().to_csv(tmp_path / "s.csv")
    assert "torn ?" in (tmp_path / "s.csv").read_text()


def test_numbers_are_rounded_for_people_and_whole_in_jsonl(tmp_path):
    judge = create_relative_judge(FakeChatModel(replies=answer))
    rows = [{"input": "q", "output_a": "a", "output_b": "b", "confidence": 0.7408182206817177}]
    for ending in (".csv", ".jsonl"):
        list(judge_many(judge, rows, out=tmp_path / f"s{ending}", progress=False))
    assert "0.7408182206817177" in (tmp_path / "s.csv").read_text()  # one's own
    assert json.loads((tmp_path / "s.jsonl").read_text())["score"] is not None


def test_reasons_name_two_systems_by_their_columns():
    [row] = run_of(["A"])
    row["verdict"]["rationale"] = "A is better (A first): response B rambles. An A for effort."
    cells = judged_cells(row, ("v1", "v2"))
    told = "v1 is better (v1 first): response v2 rambles. An A for effort."
    assert (cells["preference"], cells["reason"]) == ("v1", told)


def test_a_row_that_was_read_before_has_its_own_columns_alone(tmp_path):
    record = {"question": "Why?", "answer": "So."}
    row = Records(Source([record], True), None, "item").row(record, 0)
    assert NOTES in row
    list(judge_many(by_two_criteria(), [row], out=tmp_path / "s.csv", progress=False))
    assert NOTES not in (tmp_path / "s.csv").read_text()


def test_csv_named_for_excel_begins_with_a_byte_order_mark(tmp_path):
    for name, mark in (("s.csv", False), ("s.excel.csv", True)):
        list(judge_many(by_two_criteria(), ROWS[:1], out=tmp_path / name, progress=False))
        assert (tmp_path / name).read_bytes().startswith(b"\xef\xbb\xbf") is mark


def test_the_counts_go_into_markdown(tmp_path):
    out = tmp_path / "s.md"
    list(judge_many(by_two_criteria(), ROWS, out=out, progress=False))
    assert "| Remedy | polite | 2 | 67 % | 21 % to 94 % |" in out.read_text().splitlines()


def test_a_text_longer_than_a_cell_is_cut_and_says_so(tmp_path):
    out = tmp_path / "s.xlsx"
    rows = [{"question": "q", "reply": "x" * 40_000}]
    list(judge_many(by_two_criteria(), rows, out=out, progress=False))
    (_, row, *_) = book(out)["rows"]
    assert len(row[1]) == 32_767
    assert "(cut: " in row[1][-50:]


# ---- in


def sheet_of(path: Path) -> list[dict[str, Any]]:
    return [dict(record) for record in read_table(path)]


@for_each(
    ("text", "encoding"),
    [
        ("Frage;Antwort\nWo?;Hier, gleich, da\nWer?;Ich, du\n", "utf-8-sig"),
        ("Frage\tAntwort\nWo?\tHier; da\n", "utf-8"),
        ("Frage|Antwort\nWo?|Hier, da\n", "utf-16"),
        ("sep=;\nFrage;Antwort\nWo?;\"Hier;\nda\"\n", "utf-8"),
        ("Frage;Antwort\nGröße?;Groß\n", "cp1252"),
        ("Frage,Antwort\nГде моя посылка?,\"Уже в пути, ждите\"\n", "cp1251"),
        ("Frage,Antwort\nどこですか,ここです\n", "cp932"),
        ("Frage;Antwort\nWo?;Hier\n;\n", "utf-8"),
    ],
)  # fmt: skip
def test_separators_marks_and_encodings_are_found(text, encoding, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(text.encode(encoding))
    first = sheet_of(path)[0]
    lines = text.replace('"', "").split("\n")
    assert list(first) == ["Frage", "Antwort"]
    assert first["Frage"] in text
    assert first["Antwort"].partition("\n")[0] in "".join(lines)


def test_an_encoding_that_is_guessed_is_said_once(tmp_path, caplog):
    path = tmp_path / "r.csv"
    path.write_bytes("Frage;Antwort\nGröße?;Groß\n".encode("cp1252"))
    for _ in range(2):
        assert sheet_of(path) == [{"Frage": "Größe?", "Antwort": "Groß"}]
    (record,) = caplog.records
    assert "Windows-1252" in record.getMessage()


# What people write in languages of each page of Windows, of which it is certain in some.
WRITTEN = {
    "cp1252": ["Größe ist groß", "Il est déjà arrivé, ça va", "Llegará mañana, señor"],
    "cp1250": ["Już jedzie, proszę czekać", "Príliš žluťoučký kůň", "Űrhajó, köszönöm"],
    "cp1251": ["Ваша посылка уже в пути, ждите", "Ваша посилка вже в дорозі, її доставлять"],
    "cp1253": ["Πού είναι το δέμα μου; Έρχεται σύντομα"],
    "cp1254": ["Görüşürüz, İstanbul'da şu an, ığdır"],
    "cp1255": ["איפה החבילה שלי?", "בדרך אליך"], "cp1256": ["أين طردي؟ طردك في الطريق"],
    "cp1257": ["Jau pakeliui, prašome palaukti, ačiū už kantrybę", "Ceļā, lūdzu, uzgaidiet, žēl"],
    "cp874": ["พัสดุของฉันอยู่ที่ไหน กำลังจัดส่ง"], "cp932": ["荷物はどこですか？配送中です"],
    "gbk": ["我的包裹在哪里？在路上，谢谢您的耐心等待"], "big5": ["我的包裹在哪裡？在路上，謝謝您"],
    "cp949": ["제 소포는 어디에 있나요? 배송 중입니다"],
    "koi8_r": ["Ваша посылка уже в пути, ждите"],
    "mac_roman": ["Größe ist groß", "Il est déjà arrivé"], "cp437": ["Größe ist groß"],
}  # fmt: skip
CERTAIN = {"cp1251", "cp1253", "cp1256", "cp874", "gbk", "big5", "cp949", "koi8_r"}


@for_each("encoding", WRITTEN)
@for_each("times", [1, 2, 30])
def test_a_text_is_read_in_its_own_encoding_or_the_likely_ones_are_named(encoding, times, tmp_path):
    for place, text in enumerate(WRITTEN[encoding]):
        path = tmp_path / f"{place}.csv"
        path.write_bytes(("q,r\n" + f'?,"{text}"\n' * times).encode(encoding))
        assert sheet_of(Path(f"{path}#{encoding}"))[0]["r"] == text
        read = [] if encoding in CERTAIN else [{"q": "?", "r": text}] * times
        with suppress(InputError):
            read = sheet_of(path)
        assert read == [{"q": "?", "r": text}] * times


def test_of_encodings_that_are_as_likely_each_is_named_with_a_word(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes("q,r\nHora,mañana\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"cp1252 \(mañana\) or cp1250 \(mańana\)"):
        sheet_of(path)
    with pytest.raises(InputError, match="unknown encoding: cp1"):  # of Python's codecs
        sheet_of(Path(f"{path}#cp1"))


def test_lines_far_below_say_the_encoding_too(tmp_path):
    path = tmp_path / "r.csv"
    text = "Ваша посылка уже в пути"
    path.write_bytes(("q,r\n" + "?,yes\n" * 400_000 + f"?,{text}\n").encode("cp1251"))
    assert sheet_of(path)[-1]["r"] == text


@for_each("other", ["cp1252", "cp1251", "cp932", "gbk", "utf-16-le"])
@for_each(("mark", "right"), [("", 1), ("", 30), ("\ufeff", 0)])
def test_lines_of_another_encoding_in_a_file_of_utf8_are_named(other, mark, right, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes((f"{mark}q,r\n" + "Größe?,Где どこ\n" * right).encode())
    text = {"cp1252": "Größe?,Groß", "cp1251": "Где,Тут"}.get(other, "質,答")
    with path.open("ab") as file:
        file.write(text.encode(other))
    with pytest.raises(InputError, match=rf"is UTF-8 but for line {right + 2}: "):
        sheet_of(path)


@for_each("words", [["Ні", "Так, звичайно, я згоден"], ["Её", "Да, конечно, я согласен"]])
def test_short_words_of_another_encoding_that_are_utf8_by_chance_are_read(words, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(
        "\n".join(["q,r", *(f'?,"{word}"' for word in words * 9), ""]).encode("cp1251")
    )
    assert [record["r"] for record in sheet_of(path)] == words * 9


def a_book(path: Path, **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_read_by_its_name_else_the_first_and_that_is_said(tmp_path, caplog):
    path = a_book(tmp_path / "r.xlsx", one=[["a"], [1]], two=[["b"], [2]])
    assert sheet_of(path) == [{"a": 1}]
    assert "sheet 'one'" in caplog.text
    assert sheet_of(Path(f"{path}#two")) == [{"b": 2}]
    with pytest.raises(InputError, match=r"'twe'.* 'two'"):
        sheet_of(Path(f"{path}#twe"))


def test_a_title_or_merged_cells_above_the_names_are_refused_by_cell(tmp_path):
    rows: list[list[Any]] = [
        ["Replies of March", None, None],
        ["id", "question", "reply"],
        [1, "a", "b"],
    ]
    path = a_book(tmp_path / "r.xlsx", one=rows)
    with pytest.raises(InputError, match=r"B1 .* B2 .*'question'"):
        sheet_of(path)


def test_a_cell_that_is_merged_over_rows_stands_in_each_of_them(tmp_path):
    rows: list[list[Any]] = [
        ["id", "question", "reply"],
        [1, "a", "b"],
        [2, None, "c"],
        ["part", None, None],
    ]
    path = a_book(tmp_path / "r.xlsx", one=rows)
    book = openpyxl.load_workbook(path)
    for area in ("B2:B3", "A4:C4"):
        book["one"].merge_cells(area)
    book.save(path)
    assert [record["question"] for record in sheet_of(path)] == ["a", "a", None]


QUALTRICS = [
    ["StartDate", "Q1", "Q2"],
    ["Start Date", "What do you ask?", "What was said?"],
    ['{"ImportId":"startDate"}', '{"ImportId":"QID1"}', '{"ImportId":"QID2"}'],
    ["2024", "Why?", "So."],
]


@for_each("rows", [QUALTRICS, [QUALTRICS[0], QUALTRICS[3], QUALTRICS[0]]])
def test_rows_that_tell_what_the_columns_are_are_no_data_and_that_is_said(rows, tmp_path, caplog):
    caplog.clear()
    lines = io.StringIO(newline="")
    csv.writer(lines).writerows(rows)
    table, book = (tmp_path / f"{len(rows)}.{ending}" for ending in ("csv", "xlsx"))
    table.write_text(lines.getvalue())
    for path in (table, a_book(book, one=rows)):
        assert [record["Q2"] for record in sheet_of(path)] == ["So."]
        told = [f"{path}: row {n} tells" in caplog.text for n in (2, 3)]
        assert told == [row != QUALTRICS[3] for row in rows[1:3]]


@for_each("library", [pd.DataFrame, pa.table])
def test_a_table_in_memory_of_such_rows_is_refused(library: Any):
    names, *rows = QUALTRICS
    table = library({name: [row[n] for row in rows] for n, name in enumerate(names)})
    with pytest.raises(InputError, match=r"first 2 rows .*; give `TABLE\[2:\]`"):
        source_of(table)
    assert [each["Q2"] for each in source_of(table[2:]).records] == ["So."]


def test_columns_of_one_name_or_none_are_all_kept(tmp_path):
    path = a_book(tmp_path / "r.xlsx", one=[[None, "note", "note"], [0, "a", "b"]])
    assert sheet_of(path) == [{"column A": 0, "note": "a", "note (C)": "b"}]


def test_a_semicolon_table_of_other_names_is_judged_once_they_are_named(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("Ticket Nr.;Kundenfrage;Antwort\n7;Wo?;Hier\n", encoding="utf-8-sig")
    with pytest.raises(InputError, match=r"'Ticket Nr.', 'Kundenfrage', 'Antwort'"):
        list(judge_many(by_two_criteria(), path, progress=False))
    columns = {"input": "Kundenfrage", "output": "Antwort", "id": "Ticket Nr."}
    (row,) = judge_many(by_two_criteria(), path, columns=columns, progress=False)
    assert (row["id"], row["judged"]) == ("7", True)


@for_each(
    ("cell", "number"), [("3,5", 3.5), ("0,25", 0.25), ("1", 1), ("a,b", "a,b"), ("1,000", "1,000")]
)
def test_labels_with_decimal_commas_are_numbers(cell, number):
    assert number_in(cell) == number


def test_bad_cells_and_ids_that_are_there_twice_are_named(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("id;question;reply\n1;Wo?;Hier\n\n2;Wer?;\n1;Wann?;Jetzt\n")
    command = ["judge", str(path), "--method", "rubric", "--set", "rubric=Kind?"]
    done = CliRunner().invoke(app, [*command, "--model", "openai:gpt-5-mini", "--dry-run"])
    assert "row 2: the field `output`" in done.output
    assert "(cell C4)" in done.output
    assert "2 rows have the id '1'" in done.output


def test_the_counts_by_criterion_stand_at_the_terminal(tmp_path):
    run = judge_many(by_two_criteria(), ROWS, progress=False)
    list(run)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(criteria_table(run.summary))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["Remedy", "polite", "2", "67", "%", "21", "%", "to", "94", "%"] in lines
