"""How commands end: their exit codes and the last words, one table for all reasons."""

from __future__ import annotations

import errno
import os
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import click
import pytest
import typer
from langchain_core.prompts import ChatPromptTemplate
from typer.testing import CliRunner

from langchain_judges.asking.ask import GRACE
from langchain_judges.cli import COMMANDS, app, messages, show
from langchain_judges.cli.judge_flags import tools_in
from langchain_judges.cli.label import write_first
from langchain_judges.errors import InputError, OptionError, OutputError, OverBudget
from langchain_judges.escaping import InertConsole
from langchain_judges.methods.registry import METHODS
from langchain_judges.runs.summary import Summary
from tests.cases import for_each


def ends(work: Any) -> int:
    """The exit code of what a command does last; 0 where it goes on."""
    try:
        work()
    except typer.Exit as exc:
        return exc.exit_code
    return 0


# Rows that could not be judged, of three; then what else happened, and how that ends.
@for_each(
    ("undone", "flags", "code"),
    [
        (0, {}, 0),
        (1, {}, 0),
        (3, {}, 1),
        (0, {"failed": True}, 1),
        (0, {"spent": True}, 3),
        (3, {"spent": True, "failed": True}, 3),
        (0, {"interrupted": True}, 130),
        (3, {"interrupted": True, "spent": True, "failed": True}, 130),
    ],
)
def test_a_run_ends_with_the_code_of_what_matters_most(undone, flags, code, capsys):
    own = {"spent": False, "failed": False, **flags}
    assert ends(lambda: messages.leave(Counter({"refusal": undone}), 3, **own)) == code
    said = f"{undone} of 3 rows could not be judged; {undone} by refusal\n" if undone else ""
    assert capsys.readouterr().err == said


def test_no_row_at_all_is_no_failure():
    assert ends(lambda: messages.leave(Counter(), 0, spent=False, failed=False)) == 0


def test_the_commonest_reasons_are_named_and_the_rest_is_counted(capsys):
    causes = Counter(one=1, four=4, three=3, two=2, half=2000)
    messages.leave(causes, 3000, spent=False, failed=False)
    why = "2,000 by half; 4 by four; 3 by three; 3 by other reasons"
    assert capsys.readouterr().err == f"2,010 of 3,000 rows could not be judged; {why}\n"


# What a run came to, whether failures count, and the code.
@for_each(
    ("summary", "strict", "code"),
    [
        (Summary(rows=2, failures=Counter(empty=1)), False, 0),
        (Summary(rows=2, failures=Counter(empty=1)), True, 1),
        (Summary(rows=2), True, 0),
        (Summary(rows=2, not_judged=Counter(over_budget=1)), False, 3),
        (Summary(rows=2, not_judged=Counter(refusal=2), causes=Counter(x=1)), False, 1),
        (Summary(rows=3, not_judged=Counter(refusal=2), causes=Counter(x=1)), False, 0),
    ],
)
def test_a_summary_ends_a_command(summary, strict, code, capsys):
    assert ends(lambda: messages.leave_with(summary, strict)) == code
    other = "1 by x; 1 by other reasons" in capsys.readouterr().err
    assert other == bool(summary.causes)


@for_each(("file", "kept"), [("r.jsonl", "x"), ("r.jsonl", ""), (".r.jsonl.run/a", "")])
def test_a_stopped_command_says_whether_it_resumes(tmp_path, capsys, file, kept):
    out = tmp_path / f"{len(file)}{kept}" / "r.jsonl"
    assert not messages.is_saved(None, out)
    (out.parent / file).parent.mkdir(parents=True)
    (out.parent / file).write_text(kept)
    saved = bool(kept) or file != "r.jsonl"
    assert messages.is_saved(None, out) == saved
    work = lambda: messages.leave_with(Summary(rows=1), False, out, interrupted=True)  # noqa: E731
    assert ends(work) == 130
    resumes = "Stopped; the same command resumes where it stopped.\n"
    nothing = "Stopped before anything was saved, as by -o.\n"
    assert capsys.readouterr().err == (resumes if saved else nothing)


def test_an_empty_folder_of_a_run_resumes_nothing(tmp_path):
    (tmp_path / ".r.jsonl.run").mkdir()
    assert not messages.is_saved(tmp_path / "r.jsonl")


@for_each(
    ("error", "code", "said"),
    [
        (OverBudget("the budget is spent"), 3, "The budget is spent; the same command with a"),
        (OptionError("`columns` is empty"), 2, "--column is empty\n"),
        (InputError("the field `columns` is empty"), 2, "the field --column is empty\n"),
        (OutputError("disk full"), 2, "disk full\n"),
    ],
)
def test_what_is_refused_ends_a_command_in_one_sentence(error, code, said, capsys):
    def refuse() -> None:
        with messages.refusals_as_exits():
            raise error

    assert ends(refuse) == code
    assert capsys.readouterr().err.startswith(said)


def test_an_output_without_room_ends_a_command_in_one_sentence(monkeypatch, capsys):
    def fill() -> None:
        with messages.refusals_as_exits():
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", full := sys.stdout)
    assert ends(fill) == 1
    assert capsys.readouterr().err == "The output cannot be written: No space left on device.\n"
    assert sys.stdout is not full


# A message with names of Python, and what it says at a command with two flags and a setting.
@for_each(
    ("text", "told"),
    [
        ("`max_calls` is 0", "--max-calls is 0"),
        ("`max_calls=5` is low", "--max-calls 5 is low"),
        ("`progress=True` is needed", "--progress is needed"),
        ("`data` is no flag", "`data` is no flag"),
        ("`criteria` must be a list, got 'x'", "--set criteria must be a list, got 'x'" + (
            "; VALUE is JSON, a list such as criteria='[\"Accuracy\", \"Tone\"]'"
        )),
        ("`criteria` must be a text, got 'x'", "--set criteria must be a text, got 'x'"),
        ("`low=1` is wrong", "--set judges.low=1 is wrong"),
        ("`other=1` is wrong", "--set other=1 is wrong"),
        ("`kind` is wrong", "--set check.kind is wrong"),
        ("`methods` names one", "--method names one"),
    ],
)  # fmt: skip
def test_messages_name_flags_in_place_of_python(text, told):
    names = {"max_calls": "--max-calls", "progress": "--progress", "data": "data"}
    params = [SimpleNamespace(name=name, opts=[flag]) for name, flag in names.items()]
    given = {"option": ["criteria=x", "judges.low=2", "check.kind=a=b"]}
    context: Any = SimpleNamespace(command=SimpleNamespace(params=params), params=given)
    assert messages._in_flags(OptionError(text), context) == told


@for_each(("columns", "width"), [(None, 240), ("90", 90)])
def test_a_pipe_takes_wide_tables(monkeypatch, columns, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    assert os.environ.get("COLUMNS") == columns
    assert messages.table_console().width == width


# Lines of a file of Python, and what it holds: tools, none, or a mistake.
@for_each(
    ("lines", "said"),
    [
        ("from langchain_core.tools import tool\nlook = tool(len, description='x')", ""),
        ("look = 1", "defines no LangChain tool"),
        ("look = (", "cannot be run"),
        ("import no_such_module", "cannot be run"),
    ],
)
def test_a_file_without_tools_is_refused(tmp_path, lines, said):
    path = tmp_path / "some.py"
    path.write_text(lines)
    if not said:
        assert [each.name for each in tools_in(path)] == ["len"]
        return
    with pytest.raises(OptionError, match=said):
        tools_in(path)


def test_rows_to_label_are_written_beside_the_run(tmp_path, capsys):
    rows = {0: {"id": "é"}, 1: {"id": "b"}}
    write_first(lambda places: {p: rows[p] for p in places}, ["flipped", ""], 5, tmp_path / "r.md")
    path = tmp_path / "r.label.jsonl"
    assert path.read_text(encoding="utf-8") == '{"id": "\\u00e9", "doubt": "flipped"}\n'
    assert f"{path} -o labels.jsonl --max-rows 1\n" in capsys.readouterr().err
    write_first(lambda places: {}, ["", ""], 5, tmp_path / "n.md")
    assert not (tmp_path / "n.label.jsonl").exists()


def test_every_method_is_shown_with_its_presets_and_options():
    shown = CliRunner().invoke(app, ["show"]).stdout
    for name, method in METHODS.items():
        takes = "two texts" if method.takes == "pair" else "one text"
        assert f"{name} ({takes})\n    {method.summary}\n" in shown
        if method.presets:
            assert f"    presets: {', '.join(method.presets)}\n" in shown
    one = CliRunner().invoke(app, ["show", "bsm"]).stdout
    assert one.startswith(f"bsm: {METHODS['bsm'].summary}\n")
    assert "`" not in one
    assert '  neural_merge: merge="model"\n' in one
    assert "\n  scale=[1, 5]\n      Lowest and highest score.\n" in one


def test_prompts_are_printed_as_they_are(capsys):
    step = ChatPromptTemplate.from_messages([("human", "Is [bold]this[/bold] {good}?")])
    show._print_prompts(InertConsole(soft_wrap=True), {"step": step})
    assert "=== step: good\n" in (shown := capsys.readouterr().out)
    assert "Is [bold]this[/bold] {good}?\n" in shown


def test_every_command_is_listed_and_its_help_has_examples():
    context: Any = click.Context(click.Command("x"))
    group: Any = typer.main.get_command(app)
    assert group.list_commands(context) == list(COMMANDS)
    for name in COMMANDS:
        text = CliRunner().invoke(app, [name, "--help"]).stdout
        examples = [line for line in text.splitlines() if "langchain-judges " + name in line]
        assert examples, name


def test_a_stop_is_announced_and_ends_what_waits_too_long(monkeypatch, capsys):
    timers: list[Any] = []
    late = SimpleNamespace(daemon=False, start=lambda: timers.append("started"))

    def timer(*own: object) -> object:
        timers.append(own)
        return late

    monkeypatch.setattr("threading.Timer", timer)
    messages.begin_to_stop(print)
    assert (timers, late.daemon) == ([(GRACE + 5, print), "started"], True)
    told = "Stopping: calls in flight may finish. Press Ctrl-C again to stop at once.\n"
    assert capsys.readouterr().err == told


@for_each(
    ("leave", "told"),
    [
        (messages.leave_at_once, "Stopped at once; calls in flight are lost.\n"),
        (messages.leave_stopped, "Stopped before anything was saved, as by -o.\n"),
    ],
)
def test_a_process_that_cannot_wait_ends_with_the_code_of_ctrl_c(monkeypatch, capsys, leave, told):
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    leave()
    assert (codes, capsys.readouterr().err) == ([130], told)
