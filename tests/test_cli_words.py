"""What commands say: help, `show`, dry runs, and refusals that name flag and nearest."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from langchain_judges import progress
from langchain_judges.cli import COMMANDS, app
from langchain_judges.cli.flags import unfolded
from langchain_judges.cli.judge_flags import ModelFlags
from langchain_judges.cli.show import option_text
from langchain_judges.cli.view import PageFlags, serve_page
from langchain_judges.methods.registry import METHODS
from langchain_judges.methods.rubric.criteria import ready_names, ready_text
from langchain_judges.testing import FakeModelServer, fitting_reply
from tests.cases import for_each
from tests.judges import ITEM, PAIR

GROUP: Any = get_command(app)


def invoke(*words: object, width: int = 200) -> Any:
    env = {"COLUMNS": str(width), "OPENAI_API_KEY": "none"}
    return CliRunner().invoke(app, list(map(str, words)), env=env)


# ---- help


@for_each("name", COMMANDS)
def test_help_says_what_a_command_takes_its_flags_and_two_examples(name):
    text = invoke(name, "--help", width=80).stdout
    _, _, examples = text.partition("\nExamples:\n")
    assert examples.count("\n  langchain-judges ") + 1 == 2
    assert max(map(len, text.splitlines())) <= 80
    # Help is for a shell: nothing of Python stands in it.
    assert not re.search(r"\bNone\b|max_concurrency|judge_many|`", text)
    for option in GROUP.get_command(None, name).params:
        assert option.help, option.name
        flag = option.opts[-1]
        if flag.startswith("--"):
            (shown,) = re.findall(rf"(?m)^  (?:-\w, )?{flag}(?: (\S+).*)?$", text) or [""]
            valued = shown.startswith("<") or shown.isupper() or "=" in shown or "/" in shown
            assert valued is not bool(getattr(option, "is_flag", False)), flag


def test_every_command_that_asks_a_model_has_the_three_bounds():
    flags: dict[str, set[str]] = {name: set() for name in COMMANDS}
    for name in COMMANDS:
        for option in GROUP.get_command(None, name).params:
            flags[name] |= {*option.opts}
    asking = {name: own for name, own in flags.items() if "--model" in own}
    assert asking.keys() == {"judge", "compare", "trust", "audit", "write", "watch"}
    bounds = {"--max-rows", "--max-calls", "--max-dollars"}
    assert {name for name, own in asking.items() if not own >= bounds} == set()


EXAMPLES = [each for name in COMMANDS for each in GROUP.get_command(None, name).epilog.split("\n")]


@for_each("example", EXAMPLES)
def test_every_option_of_an_example_exists(example):
    _, name, *words = shlex.split(example)
    known = {opt for param in GROUP.get_command(None, name).params for opt in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_list_of_commands_cuts_no_sentence():
    listed = invoke("--help", width=80).stdout.partition("\nCommands:\n")[2]
    assert "..." not in listed
    assert all(summary in listed for summary in COMMANDS.values())


# ---- show


def test_every_method_is_listed_with_its_presets():
    listed = invoke("show").stdout
    for name, method in METHODS.items():
        assert f"{name} (" in listed
        assert method.summary in listed
    assert listed.endswith("its prompts: show NAME prompts\n")


@for_each("name", METHODS)
def test_every_option_that_a_shell_can_set_is_listed_in_the_form_of_set(name):
    listed = invoke("show", name).stdout
    assert ("\nPresets, by --preset NAME:\n  " in listed) == bool(METHODS[name].presets)
    barred = {"cache", "checkpointer", "embeddings", "memory", "name", "store"}
    shown = dict(re.findall(r"(?m)^  (\w+)=(.*)$", listed))
    assert shown.keys() == set(METHODS[name].defaults()) - barred
    assert all(json.loads(value) is not ... for value in shown.values())
    assert option_text({"né": ["ja"]}) == '{"né": ["ja"]}'


@for_each("name", ready_names())
def test_a_rubric_is_shown_as_its_file_is(name):
    assert invoke("show", name, width=80).stdout == f"{ready_text(name).rstrip()}\n"


def test_a_judge_made_of_judges_has_no_prompts_to_show():
    result = invoke("show", "jury", "prompts")
    assert (result.exit_code, "its judges have them" in result.stderr) == (2, True)


def test_settings_of_a_model_are_its_own_and_its_timeout_stands_apart():
    given = ["model.timeout=9", "model.temperature=0.3", "rubric=Is it kind?"]
    spec = ModelFlags("m", "http://x", given).spec_of("m")
    assert spec == {
        "name": "m",
        "timeout": 9,
        "base_url": "http://x",
        "settings": {"temperature": 0.3},
    }
    assert ModelFlags("m").spec_of("n") == {"name": "n"}


def test_a_plugin_is_looked_for_in_its_own_folder_first(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", ["elsewhere", *sys.path])
    (tmp_path / "judge_of_mine.py").write_text("FOUND = True\n")
    assert invoke("--plugin", tmp_path / "judge_of_mine.py", "show", "jury").exit_code == 0
    assert sys.path[:2] == [str(tmp_path), "elsewhere"]
    assert sys.modules.pop("judge_of_mine").FOUND


def test_the_address_of_a_page_is_all_that_is_printed(monkeypatch, capsys):
    asked: list[object] = []

    def server(*shown, port):
        asked.extend([*shown, port])
        return SimpleNamespace(address="http://127.0.0.1:1", run=lambda: asked.append("run"))

    monkeypatch.setattr("langchain_judges.viewer.app.Server", server)
    page: Any = "page"
    serve_page(page, PageFlags(port=7))
    assert (asked, capsys.readouterr().out) == (["page", 7, "run"], "http://127.0.0.1:1\n")


# ---- groups of flags


@dataclass(frozen=True)
class Place:
    city: Annotated[str, typer.Option(help="Where.")]
    rooms: Annotated[int, typer.Option(min=1)] = 2
    by_sea: bool = False


def find(place: Place, price: Annotated[float, typer.Argument()]) -> None:
    typer.echo(f"{place} {price}")


@dataclass(frozen=True)
class Room(Place):
    rooms: int = field(default=1, init=False)


def small(place: Room) -> None:
    typer.echo(place)


@for_each(
    ("command", "words", "printed"),
    [
        (find, "9.5 --city Bonn", "Place(city='Bonn', rooms=2, by_sea=False) 9.5\n"),
        (find, "1 --city Bonn --by-sea", "Place(city='Bonn', rooms=2, by_sea=True) 1.0\n"),
        (find, "9.5", ""),
        (find, "9.5 --city Bonn --rooms 0", ""),
        (small, "--city Bonn", "Room(city='Bonn', rooms=1, by_sea=False)\n"),
        (small, "--city Bonn --rooms 3", ""),
    ],
)
def test_each_field_of_a_group_is_a_flag_unless_it_is_left_out(command, words, printed):
    own = typer.Typer()
    own.command()(unfolded(command))
    result = CliRunner().invoke(own, words.split())
    assert (result.stdout, result.exit_code) == (printed, 0 if printed else 2)


# ---- refusals


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with files of rows, where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.jsonl").write_text(json.dumps({**PAIR, "label": "A"}) + "\n")
    item = {"input": "Why?", "output": "So.", "expected": "7", "label": "x"}
    (tmp_path / "items.jsonl").write_text(json.dumps(item) + "\n")
    own = {"ask": "Why?", "tell": "So."}
    (tmp_path / "own.jsonl").write_text(json.dumps(own) + "\n")
    (tmp_path / "right.jsonl").write_text(json.dumps(ITEM) + "\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "cut.json").write_text('[{"input": "q",')
    (tmp_path / "numbers.json").write_text("[1, 2]")
    (tmp_path / "two.jsonl").write_text('{"input": "Why?", "a": "So.", "b": "No."}\n')
    (tmp_path / "tasks.jsonl").write_text('{"concepts": ["snow", "deck", "wine"]}\n')
    return tmp_path


REFUSED = {
    "judge pair.jsonl --model m": "did you mean 'pairs.jsonl'?",
    "judge /": "name a model by --model",
    "judge / --model m": "No public data set has this name, and / is a folder; name a table",
    "judge empty.jsonl --model m": "has no pair to judge",
    "judge cut.json --model m": "cut.json, line 1, column 16: not JSON",
    "judge numbers.json --model m": "numbers.json has no usable row; nothing was asked.",
    "judge pairs.jsonl --model nonsense": "The model 'nonsense' is not known",
    "judge pairs.jsonl --model local:/no.gguf": "There is no model file at /no.gguf",
    "judge pairs.jsonl --model gpt-m -o / ": "--out must end in .csv",
    "judge pairs.jsonl --model m -o x.docx": "--out must end in .csv, .jsonl, .md, .parquet",
    "judge pairs.jsonl --model m --dry-run -o x.docx": "--out must end in .csv",
    "write tasks.jsonl --model m -o x.docx": "--out must end in .csv",
    "compare pairs.jsonl --systems a,b --model m -o x.docx": "--out must end in .csv",
    "compare a.jsonl b.jsonl --model m --method rubric": "--method relative compares two",
    "compare a.jsonl --systems a,b --model m --method allure": "'allure' takes one item at a time",
    "trust pairs.jsonl --model m -o x.docx": "--out must end in .csv, .html, .json, .md",
    "judge own.jsonl --model m --set rubric=Tone?": "in columns whose names are not known",
    "judge own.jsonl --model m --preset helpfulness": "in columns whose names are not known",
    "judge own.jsonl --model m": "in columns whose names are not known",
    "judge pairs.jsonl --model m --method bms": "did you mean 'bsm'?",
    "judge pairs.jsonl --model m --method bsm --preset papr": "did you mean 'paper'?",
    "judge pairs.jsonl --model m --method bsm --set scal=5": "did you mean 'scale'?",
    "judge pairs.jsonl --model m --set k": "is not NAME=VALUE",
    "judge pairs.jsonl --model m --method bsm --set cache=5": "these are for Python",
    "judge pairs.jsonl --method bsm --model gpt-m --set scale=5": "--set scale must be two",
    "judge pairs.jsonl --method bsm --model m --set 'criteria=Care, Tone'": "criteria='[",
    "judge items.jsonl --model gpt-m --method allure --set labels=x,y": "such as labels='[",
    "judge pairs.jsonl --model m --column inpt=q": "did you mean 'input'?",
    "judge pairs.jsonl --model m --column input": "FIELD=COLUMN, such as input=question",
    "judge pairs.jsonl --model m --column input=inptu": "no column 'inptu'; did you mean",
    "judge right.jsonl --method allure --model gpt-m --memory no": "there is no memory at no",
    "trust pairs.jsonl --verdicts pairs.jsonl --baseline none.json": "none.json cannot be read",
    "compare pairs.jsonl --model m": "--systems must name two columns or more",
    "compare nowhere --systems a,b --model m": "there is no file nowhere",
    "compare . --systems a,b --model m": ". is a folder",
    "compare pairs.jsonl --systems a,b --model m -o no/a.md": "--out must name a file in a",
    "compare pairs.jsonl --systems a,b,c --model m -o a.csv": "--out of more than two systems",
    "judge pairs.jsonl --method relative --model a,b": "relative asks one model, got",
    "trust pairs.jsonl --method bsm,bsm --model m": "--method names one twice",
    "label pairs.jsonl -o l.jsonl --labels 11": "--labels must be two or more different labels",
    "label pairs.jsonl -o .": "--out must name a file, and . is a folder",
    "trust": "name either --model",
    "trust own.jsonl --judge tell": "or --column label=COLUMN",
    "trust --model fake": "name the rows to judge",
    "trust no.csv --model fake": "No public data set has this name, and there is no file no",
    "trust --verdicts nowhere.jsonl": "there is no file nowhere.jsonl",
    "trust --verdicts .": ". is a folder",
    "trust pairs.jsonl --model m --baseline pairs.jsonl": "pairs.jsonl is not a report",
    "trust pairs.jsonl --verdicts v.jsonl --dry-run": "--dry-run needs --model",
    "merge empty.jsonl -o a.csv": "holds results of 0 judges",
    "show bms": "there is no method or rubric 'bms'; did you mean 'bsm'?",
    "show faithfulness": "did you mean 'groundedness'?",
    "judge items.jsonl --model m --preset politness --method rubric": "did you mean 'tone'?",
    "judge pairs.jsonl --model m --rubric Tone?": "of the judge: --set rubric=VALUE",
    "judge pairs.jsonl --model m --max-dolars=4": "did you mean '--max-dollars'?",
    "judge --model m -- --colum": "there is no file --colum",
    "jugde pairs.jsonl": "There is no command 'jugde'; did you mean 'judge'?",
    "rank pairs.jsonl": "did you mean 'compare'?",
}


@pytest.mark.whole
@for_each(("words", "sentence"), REFUSED.items())
def test_a_refusal_is_one_sentence_before_anything_is_asked(folder, words, sentence):
    result = invoke(*shlex.split(words))
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert "`client`" not in result.stderr  # nobody gives one here


@for_each("name", COMMANDS)
def test_a_flag_of_one_value_is_taken_once_by_every_command(name):
    commands: Any = get_command(app)
    params = commands.get_command(typer.Context(commands), name).params
    for each in (each for each in params if each.param_type_name == "option"):
        said = invoke(name, each.opts[0], "1", each.opts[-1], "2").stderr
        is_single = not (each.multiple or each.is_flag)
        assert (f"{each.opts[-1]} is there twice, and takes one value." in said) is is_single


def test_a_flag_is_offered_only_where_it_is_near_and_a_flags_value_is_no_flag(folder):
    assert invoke("judge", "--foo").stderr.strip().endswith("There is no flag --foo")
    value = invoke("judge", "pairs.jsonl", "--model", "m", "--column", "--colum")
    assert "--column takes FIELD=COLUMN" in value.stderr


@for_each("words", ["view data", "trust data", "judge data", "audit items", "compare data data"])
def test_a_folder_may_have_the_name_of_an_argument(folder, words):
    (folder / words.split()[1]).mkdir(exist_ok=True)
    result = invoke(*words.split())
    assert (result.exit_code, type(result.exception)) == (2, SystemExit), result.output


@for_each("command", ["judge", "trust", "compare", "audit --memory memory", "write"])
def test_every_command_that_asks_refuses_a_wrong_flag(folder, command):
    name, *more = command.split()
    for wrong in ("--set nope", "--set model=x", "--concurrency 0"):
        model = ["--model", "m", "--base-url", "http://127.0.0.1:9"]
        result = invoke(name, "pairs.jsonl", *more, *model, *wrong.split())
        assert (result.exit_code, result.stdout) == (2, "")
        assert wrong.split()[0] in result.stderr


@for_each(
    "words",
    [
        "judge pairs.jsonl",
        "compare two.jsonl --systems a,b",
        "write tasks.jsonl",
        "trust pairs.jsonl",
        "audit right.jsonl --memory memory",
    ],
)
def test_a_dry_run_refuses_prices_that_are_not_there(folder, words):
    result = invoke(*words.split(), "--model", "gpt-m", "--dry-run", "--prices", "p.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "p.json is not" in result.stderr


def test_an_option_that_only_python_has_is_not_named_as_one_of_the_judge(folder):
    words = "judge right.jsonl --set rubric=Polite? --model m -o s.csv"
    for _ in range(2):  # the second address is another
        with FakeModelServer(fitting_reply) as server:
            result = invoke(*words.split(), "--base-url", server.url)
    assert "`same_server=True`" in result.stderr


class Terminal(io.StringIO):
    def __init__(self):
        super().__init__()
        self.told = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        written = super().write(text)
        self.told.set()
        return written


def test_long_work_is_told_in_the_log_and_on_a_terminal_and_short_work_is_not(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    caplog.set_level("INFO")
    with progress.busy("Short work"):
        pass
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.busy("Long work"):
        assert terminal.told.wait(60)
    assert (caplog.messages, terminal.getvalue()) == (["Long work …"], "Long work …\n")


# ---- dry runs

HEAVY = ("faiss", "pandas", "sklearn")


def planned(tmp_path, rows, command, *words):
    """The announcement of a dry run of some rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = invoke(command, path, "--model", "openai:gpt-5-mini", *words, "--dry-run")
    assert result.exit_code == 0, result.output
    return result.stderr


def test_trust_says_what_it_will_ask(tmp_path):
    rows = [{**PAIR, "label": "A"}, {**PAIR, "input": "How?", "label": "B"}]
    text = planned(tmp_path, rows, "trust", "--method", "relative")
    assert re.search("2 pairs by relative.* 4 calls", text)
    # Two calls a row: 492 tokens of the method and its 16 bytes; replies of 150.
    assert "About 1,000 input and 600 output tokens; it may" in text


def test_systems_say_how_many_comparisons_there_are(tmp_path):
    texts = {"a": "x", "b": "y", "c": "z"}
    rows = [{"question": f"Why {n}?", **texts} for n in range(4)]
    words = ["--column", "input=question", "--max-rows", "3", "--systems", "a,b,c"]
    text = planned(tmp_path, rows, "compare", *words)
    # Three pairs of systems on three tasks.
    assert re.search("9 pairs by relative.* 18 calls", text)


@for_each("method, tokens", [("relative", "1,218"), ("direct", "609")])
def test_an_estimate_takes_no_measure_of_a_row_that_nothing_is_asked_about(
    method, tokens, tmp_path
):
    rows = [{**PAIR, "output_b": PAIR["output_a"]}, PAIR]
    text = planned(tmp_path, rows, "judge", "--method", method)
    assert f"About {tokens} input" in text  # 300 tokens a call, and four bytes each


def test_an_audit_says_what_its_rounds_ask(tmp_path):
    rows, memory = [ITEM, {**ITEM, "input": "How?"}], tmp_path / "memory"
    words = ["--set", "audit.max_rounds=3", "--dev", "0.5", "--auditor", "openai:gpt-5"]
    text = planned(tmp_path, rows, "audit", "--memory", memory, *words)
    assert re.search("2 items by allure.* 2 calls", text)
    assert re.search("3 rounds.* 6 calls", text)
    assert "openai:gpt-5 is asked" in text
    assert not memory.exists()


@pytest.mark.system
def test_a_dry_run_loads_no_library_of_tables_or_vectors(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(PAIR))
    words = ["judge", str(path), "--model", "openai:gpt-5-mini", "--dry-run", "--method"]
    code = (
        "import sys\nfrom typer.testing import CliRunner\n"
        "from langchain_judges.cli import app\n"
        "for method in ('bsm', 'drpe', 'jury'):\n"
        f"    result = CliRunner().invoke(app, [*{words!r}, method])\n"
        "    assert result.exit_code == 0, result.output\n"
        f"    print(method, *(set({HEAVY!r}) & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (loaded.stdout, loaded.stderr) == ("bsm\ndrpe\njury\n", "")
