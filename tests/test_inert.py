"""What people read steers nothing: no terminal, no page, no spreadsheet, whoever wrote it."""

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from langchain_judges import report
from langchain_judges.asking.faults import diagnosis
from langchain_judges.cli import app
from langchain_judges.cli.messages import tell_refusal
from langchain_judges.errors import OutputError
from langchain_judges.methods.sc2 import render_table
from langchain_judges.report.terminal import text_panel, verdict_panel
from langchain_judges.rows.printable import InertConsole
from langchain_judges.runs.results import Results
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.judged_rows import data_of, run_of, verdict

PAYLOADS = {
    "a screen is cleared": "\x1b[2J",
    "the title is set": "\x1b]0;owned\x07",
    "the clipboard is written": "\x1b]52;c;AAAA\x1b\\",
    "a link is made": "\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\",
    "eight-bit control": "\x9b2J\x9d0;owned\x9c",
    "direction": "\u202etxt.exe\u202c \u2066isolated\u2069",
    "a line is overwritten": "fine\rowned\x08\x7f",
    "half a character": "\ud83d",
}
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    " =1",
    "\ufeff=1",
    "\uff1d1+1",
]


def on_terminal(*printed):
    written = io.StringIO()
    console = InertConsole(file=written, force_terminal=True, color_system=None)
    for each in printed:
        console.print(each, markup=False)
    return written.getvalue()


def failed(text):
    failure = {"step": text, "unit": text, "reason": "refusal", "detail": text}
    return verdict("A", rationale=text, failures=[failure])


def panels(wording):
    row = {"id": wording, "index": 0, "verdict": failed(wording)}
    text = {"id": wording, "text": wording, "concepts": [], "failures": [], "usage": no_usage()}
    return on_terminal(verdict_panel(row), text_panel(text))


def refused(text):
    written = io.StringIO()
    console = InertConsole(file=written, soft_wrap=True)
    tell_refusal(OutputError(f"Results cannot be written to {text}"), console, text)
    return written.getvalue()


def whole_report(text):
    rows = [{**row, "verdict": failed(text)} for row in run_of(["A", "B"] * 6)]
    data = data_of(["B", "A"] * 6)
    data = [{**row, "output_a": text * 2, "output_b": text, "group": text} for row in data]
    rows = [{**row, "id": each["id"]} for row, each in zip(rows, data, strict=True)]
    return report.trust(rows, data, name=text, data_name=text)


def in_file(tmp_path):
    def write(text):
        results = Results(tmp_path / "o.jsonl", "mark")
        row = {"key": text, "kind": "pair", "judged": True, "verdict": failed(text)}
        results.append(row)
        results.close()
        line = (tmp_path / "o.jsonl").read_bytes().decode()
        assert json.loads(line) == row  # nothing is lost
        return line

    return write


def of_file_name(text):
    name = f"{text.encode('utf-8', 'replace').decode()}.jsonl".replace("/", "_")
    return CliRunner().invoke(app, ["judge", name, "--model", "local"]).output


TABLE = {"aspect": "Tone", "common": "", "only_a": "", "only_b": ""}
SINKS = {
    "terminal": panels,
    "command": refused,
    "file name": of_file_name,
    "page": lambda said: whole_report(said).to_html(),
    "CSV": lambda said: whole_report(said).to_csv(),
    "Markdown": lambda said: whole_report(said).to_markdown(),
    "JSON": lambda said: whole_report(said).to_json(),
    "table": lambda said: render_table([{**TABLE, "common": said}], names=(said, said)),
    "error": lambda said: diagnosis(ValueError(said)).detail,
}


@for_each("text", PAYLOADS.values(), ids=PAYLOADS)
@for_each("sink", SINKS)
def test_nothing_that_others_wrote_steers_what_shows_it(sink, text):
    output = SINKS[sink](f"before {text} after")
    assert "before" in output
    assert not STEERING.search(output)


@pytest.mark.parametrize("text", PAYLOADS.values(), ids=PAYLOADS)
def test_a_line_of_a_results_file_steers_nothing_and_says_all(tmp_path, text):
    assert not STEERING.search(in_file(tmp_path)(text))


@for_each("text", FORMULAS)
def test_a_spreadsheet_calculates_nothing_of_a_report(text):
    cells = {
        cell for row in csv.reader(io.StringIO(whole_report(text).to_csv())) for cell in row
    }
    assert any(text.strip("\t \ufeff") in cell for cell in cells)
    assert not any(re.match("[\\s\ufeff]*[=+@-]", cell) for cell in cells if not number(cell))


def number(cell):
    try:
        return isinstance(float(cell), float)
    except ValueError:
        return False


def test_styles_of_our_own_reach_the_terminal():
    written = io.StringIO()
    console = InertConsole(file=written, force_terminal=True, color_system="standard")
    console.print("red \x1b[2J", style="red", markup=False, highlight=False)
    assert written.getvalue() == "\x1b[31mred \ufffd[2J\x1b[0m\n"
