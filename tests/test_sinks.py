"""Every way by which a person reads what a server said: inert there, and without secrets."""

import csv
import json
import re
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from io import StringIO

import pytest
import typer
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from typer.testing import CliRunner

from langchain_judges import create_bsm_judge, create_relative_judge, judge_many, report
from langchain_judges.asking.failures import diagnosis
from langchain_judges.cli import app
from langchain_judges.cli.messages import refusals_as_exits, run_rows
from langchain_judges.errors import STEERING, JudgeError, ModelAccessError, OutputError
from langchain_judges.methods.sc2 import render_table
from langchain_judges.report.overview import markdown
from langchain_judges.runs.shards import merge_shards
from langchain_judges.runs.sheets import encodable
from langchain_judges.testing import error, reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel
from tests.judged_rows import data_of, run_of
from tests.model_server import pairs, scores

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
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\ufeff=1", "\uff1d1+1"]
SECRETS = {
    "key": "mykey-1234",
    "header": "tenant-5678",
    "query": "version-9012",
    "query of the address": "signed-7890",
}
MARKUP = "<script>alert('x')</script><img src=x onerror=alert(1)>"
STEERS = "".join(PAYLOADS.values())
TEXT = f"=cmd() before {' '.join(SECRETS.values())} {MARKUP} {STEERS}"


class Served(FakeChatModel):
    api_key: str = SECRETS["key"]
    default_headers: dict[str, str] = {"X-Tenant": f"Bearer {SECRETS['header']}"}
    default_query: dict[str, str] = {"v": SECRETS["query"]}
    base_url: str = "http://host/v1?s=signed-7890"


class Denied(Exception):
    status_code = 401


SAYINGS = {
    "reply": json.dumps({"explanation": TEXT, "preference": "1"}),
    "unreadable reply": TEXT,
    "refusal": AIMessage("", additional_kwargs={"refusal": TEXT}),
    "error": ValueError(TEXT),
}


def judge_of(reply):
    return create_relative_judge(Served(replies=lambda _: reply), orders="none", repairs=0)


def judged(reply, folder):
    """The ways out of one run, each as what a person reads there."""
    data = data_of(["A", "B"] * 4, group=MARKUP + STEERS)
    out, traced = folder / "out.jsonl", RunCollectorCallbackHandler()
    options = {"records": out, "progress": False, "config": {"callbacks": [traced]}}
    rows = list(judge_many(judge_of(reply), data, **options))
    trusted = report.trust(rows, data, name=MARKUP + STEERS, data_name=MARKUP + STEERS)
    merge_shards(out, folder / "o.csv")
    merge_shards(out, folder / "o.parquet")
    merge_shards(out, folder / "o.jsonl")
    table = import_module("pyarrow.parquet").read_table(folder / "o.parquet").to_pylist()
    # One's own cells are data, as they came: only half a character cannot be held.
    assert {row.pop("group") for row in table} == {encodable(MARKUP + STEERS)}
    return {
        "results file": out.read_text(),
        "merged file": (folder / "o.jsonl").read_text(),
        "CSV": (folder / "o.csv").read_text(),
        "Parquet": "\n".join(str(cell) for row in table for cell in row.values()),
        "terminal": on_terminal(judge_of(reply), data),
        "page": trusted.to_html(),
        "report's CSV": trusted.to_csv(),
        "report's JSON": trusted.to_json(),
        "Markdown": markdown(trusted, []),
        "trace": "\n".join(said for run in traced.traced_runs for said in shown_of(run)),
    }


def on_terminal(judge, data):
    written = StringIO()
    with redirect_stdout(written):
        run_rows(judge, data, {"progress": False}, show=True)
    return written.getvalue()


def shown_of(run):
    below = [text for child in run.child_runs for text in shown_of(child)]
    return [f"{run.run_type} {run.inputs} {run.outputs} {run.error}", *below]


@pytest.mark.whole
@pytest.mark.parametrize("saying", SAYINGS)
def test_no_way_out_of_a_run_steers_who_reads_it_or_shows_a_secret(saying, tmp_path, caplog):
    outputs = judged(SAYINGS[saying], tmp_path)
    outputs["log"] = "\n".join(record.getMessage() for record in caplog.records)
    for name, text in outputs.items():
        assert (name, [secret for secret in SECRETS.values() if secret in text]) == (name, [])
        # A trace is data, which the page that shows it has to draw.
        assert (name, STEERING.findall(text) if name != "trace" else []) == (name, [])
    for name in ("results file", "merged file", "CSV", "Parquet", "trace", "terminal"):
        assert (name, "***" in outputs[name]) == (name, True)
    cells = [cell for row in csv.reader(StringIO(outputs["CSV"])) for cell in row]
    assert not [cell for cell in cells if re.match("[\\s\ufeff]*[=+@]", cell)]
    for name in ("page", "Markdown"):
        assert not re.search("<script>alert|<img", outputs[name])


def test_a_refused_key_steers_no_traceback_and_is_not_in_it():
    with pytest.raises(ModelAccessError) as caught:
        judge_of(Denied(TEXT)).invoke(data_of(["A"])[0])
    text = "".join(traceback.format_exception(caught.value))
    assert "=cmd() before *** *** *** ***" in text
    assert not STEERING.search(text)


@pytest.mark.whole
def test_no_character_that_steers_is_printable():
    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    assert not any(map(str.isprintable, STEERING.findall(characters)))


# -- what a run does not show: errors, file names, tables, styles


def refused(text):
    written = StringIO()
    with redirect_stderr(written), pytest.raises(typer.Exit), refusals_as_exits():
        raise OutputError(f"Results cannot be written to {text}")
    return written.getvalue()


def of_file_name(text):
    name = f"{text.encode('utf-8', 'replace').decode()}.jsonl".replace("/", "_")
    return CliRunner().invoke(app, ["judge", name, "--model", "local"]).output


ROW = {"aspect": "Tone", "common": "", "only_a": "", "only_b": ""}
SINKS = {
    "command": refused,
    "file name": of_file_name,
    "table": lambda said: render_table({"rows": [{**ROW, "common": said}]}, names=(said, said)),
    "detail": lambda said: diagnosis(ValueError(said)).detail,
    "error": lambda said: str(JudgeError(said)),
}


@for_each("text", PAYLOADS.values(), ids=PAYLOADS)
@for_each("sink", SINKS)
def test_nothing_that_others_wrote_steers_what_shows_it(sink, text):
    output = SINKS[sink](f"before {text} after")
    assert "before" in output
    assert not STEERING.search(output)


@for_each("text", FORMULAS)
def test_a_spreadsheet_calculates_nothing_of_a_report(text):
    rows, data = run_of(["A", "B"] * 6), data_of(["B", "A"] * 6)
    shown = report.trust(rows, data, name=text, data_name=text).to_csv()
    cells = {cell for row in csv.reader(StringIO(shown)) for cell in row}
    assert any(text.strip("\t \ufeff") in cell for cell in cells)
    formulas = [cell for cell in cells if re.match("[\\s\ufeff]*[=+@-]", cell)]
    assert not [cell for cell in formulas if not re.fullmatch(r"-?[\d.]+", cell)]


# -- what a server or a client says of the configuration

KEY, HEADER, QUERY, _ = SECRETS.values()


def bsm(model):
    return create_bsm_judge(model, criteria=["Depth"], orders="none", repairs=0)


ECHO = f"{KEY} {HEADER} {QUERY}"


@for_each("answer", [error(400, ECHO), error(401, ECHO), reply(scores(4, 2, ECHO))])
def test_what_a_server_echoes_of_the_configuration_reaches_no_tracer(serve, answer):
    headers, query = {"X-Tenant": f"Bearer {HEADER}"}, {"v": QUERY}
    server, traced = serve(lambda call: answer), RunCollectorCallbackHandler()
    model = chat(server, api_key=KEY, default_headers=headers, default_query=query)
    with suppress(ModelAccessError):
        bsm(model).invoke(pairs(1)[0], {"callbacks": [traced]})
    runs = [text for run in traced.traced_runs for text in shown_of(run)]
    assert [text for text in runs for each in ECHO.split() if each in text] == []
    assert any(text.startswith("llm") and "*** *** ***" in text for text in runs)


class Listener(AsyncCallbackHandler):
    def __init__(self):
        self.pieces = []

    async def on_llm_new_token(self, token, **_):
        self.pieces.append(token)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_who_listens_to_the_tokens_of_a_judge_gets_no_secret(kind):
    class Served(FakeChatModel):
        api_key: str = KEY
        streaming: bool = True

        def _stream(self, messages, *rest, **settings):
            for piece in scores(4, 2, f"as {KEY} says"):
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    model, listener = Served(replies=lambda _: scores(4, 2, f"as {KEY} says")), Listener()
    config = {"callbacks": [listener]}
    run = bsm(model).astream(pairs(1)[0], config, stream_mode="messages")
    if kind == "sync":
        run = iterated(bsm(model).stream(pairs(1)[0], config, stream_mode="messages"))
    messages = [message async for message, _ in run]
    assert [KEY in message.text for message in messages] == [False]
    assert "***" in messages[0].text
    assert listener.pieces == []


async def iterated(values):
    for value in values:
        yield value
