"""README.md and docs/: what they show compiles, is there, and runs."""

import ast
import json
import re
import shlex
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import create_relative_judge, judge_many
from langchain_judges.asking import embeddings
from langchain_judges.cli import COMMANDS as NAMES
from langchain_judges.cli import app
from langchain_judges.rows.record import record_in
from langchain_judges.testing import FakeModelServer, ServerCall, fitting_reply, reply
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import answer, answer_call
from tests.memories import Letters
from tests.model_server import good, pairs
from tests.planners import planning
from tests.test_architecture import tree_of
from tests.test_sc2_tables import learner

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_GROUP: Any = typer.main.get_command(app)
COMMANDS = {name: _GROUP.get_command(None, name) for name in NAMES}

each_page = for_each("page", PAGES, ids=lambda page: page.name)


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_page
def test_commands_and_their_options_are_there(page):
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["langchain-judges"]:
                continue
            options = {name for p in COMMANDS[words[1]].params for name in p.opts}
            assert {word for word in words if re.match(r"--?[a-z]", word)} <= options, line
    text, *_ = page.read_text().partition("## The paper, item by item")
    every = {name for each in (_GROUP, *COMMANDS.values()) for p in each.params for name in p.opts}
    for code in re.findall(r"`((?:--|langchain-judges )[^`]+)`", text):
        assert set(re.findall(r"(?<!\S)--[a-z][\w-]*", code)) <= every, code


@each_page
def test_make_targets_are_there(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    names = re.findall(r"`make ([\w-]+)|^make ([\w-]+)", page.read_text(), re.MULTILINE)
    assert {a or b for a, b in names} <= targets


@each_page
def test_links_within_the_project_are_relative_and_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        result = (page.parent / path).resolve() if path else page
        assert result.exists(), target
        assert ROOT in (result, *result.parents), target
        if not anchor.startswith("langchain_judges."):  # made by the site, which is strict
            assert not anchor or anchor in anchors(result), target


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def docstrings():
    return [
        (path, ast.get_docstring(node) or "")
        for path in (ROOT / "langchain_judges").rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, DOCUMENTED)
    ]


# Not `memory` and `report`: examples call objects so.
ROOMS = "compat|datasets|integrations|methods|metrics|runs|testing|viewer|writing"


def test_a_docstring_names_the_thing():
    vague = re.compile(r"(What|How|Returns?)\b")
    assert [(path.name, text) for path, text in docstrings() if vague.match(text)] == []


def test_names_and_files_in_backticks_are_there():
    texts = [*docstrings(), *((page, page.read_text()) for page in PAGES)]
    files = {path.name for path in (ROOT / "langchain_judges").rglob("*.py")}
    for path, text in texts:
        for name in re.findall(rf"`((?:{ROOMS})\.[A-Za-z_]+)\b(?!\.(?:db|jsonl?|csv))", text):
            assert resolve_name(f"langchain_judges.{name}"), (path, name)
        inside = "langchain_judges" in path.parts
        named = set(re.findall(r"`(\w+\.py)`", text)) if inside else set()
        assert named <= files, path


@for_each("name", ["README.md", "agents.md", "langchain.md", "start-agent.md"])
def test_a_name_that_the_package_itself_does_not_export_is_shown_with_its_place(name):
    page = next(each for each in PAGES if each.name == name)
    text = page.read_text()
    code = "\n".join(blocks(page, "python"))
    for stub in (ROOT / "langchain_judges").glob("*/__init__.pyi"):
        room = import_module(f"langchain_judges.{stub.parent.name}")
        # A name of one plain word is a word as well, unless it is called.
        for each in room.__all__:
            if re.search(rf"`{each}" + (r"\b" if re.search("[A-Z_]", each) else r"\("), text):
                is_imported = re.search(rf"import [^`]*?\b{each}\b", code)
                assert is_imported or f"`{room.__name__}.{each}" in text, each


# Names of other packages, and in examples.
FOREIGN = {
    *(
        "compute_agreement",
        "evaluate_comparative",
        "mcp_call",
        "randomize_order",
        "web_search_call",
    ),
    *("with_fallbacks", "with_retry", "extract_langgraph_trajectory_from_thread"),
    *("answer_1", "answer_2", "claim_1", "expected_1", "my_method", "role_2"),
}
A_NAME = re.compile(r"(?<![\w*])_?[a-z]+(?:_[a-z0-9]+)+(?![\w*])")


def words_of(tree):
    """Yield the names and texts of code, without its docstrings."""
    documented: list[Any] = [node for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
    told = {id(node.body[0].value) for node in documented if ast.get_docstring(node)}
    for node in ast.walk(tree):
        for value in vars(node).values() if id(node) not in told else ():
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str):
                    yield each


@pytest.mark.whole
def test_names_with_an_underscore_in_docstrings_are_in_the_code():
    package = ROOT / "langchain_judges"
    code = [word for path in package.rglob("*.py") for word in words_of(tree_of(path))]
    data = [*package.rglob("*.yaml"), *package.rglob("*.sql")]
    code += [path.read_text() for path in data]
    known = {*re.findall(r"\w+", " ".join(code)), *(path.stem for path in package.rglob("*"))}
    for path, text in docstrings():
        named = A_NAME.findall(" ".join(re.findall(r"`([^`\n]+)`", text)))
        assert {*named} - known <= FOREIGN, path


def test_what_a_function_returns_begins_with_no_colon():
    # The reference takes what stands before one for a type.
    wrong = [text for _, text in docstrings() if re.search(r"\nReturns:\n.*:(\s|$)", text, re.M)]
    assert wrong == []


def test_the_pages_are_short():
    assert len(PAGES[0].read_text().split()) <= 1_100
    assert sum(len(page.read_text().split()) for page in PAGES) <= 22_000


def behave(call: ServerCall):
    if call.shape == "Labelled":
        label = "5" if "Parcel 7" in call.prompt else "0"
        return reply(json.dumps({"label": label, "explanation": "It blames the customer."}))
    return good(call)


@pytest.mark.whole
def test_the_python_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({**pair, "label": "A"}) + "\n" for pair in pairs(6)]
    (tmp_path / "labelled.jsonl").write_text("".join(lines))
    with FakeModelServer(behave) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        names: dict = {}
        for block in blocks(PAGES[0], "python"):
            exec(block.replace("http://127.0.0.1:11434/v1", server.url), names)
    output = capsys.readouterr().out
    assert output.count("It blames the customer.") == 2 + 1 + 1  # rows, agent, LangSmith
    assert "10 (A) to 10 (B)" in output
    assert "\n5 It blames the customer." in output
    assert "\nAverages" in output
    assert "<html" in (tmp_path / "report.html").read_text()


def many(number):
    return [{**pair, "label": "AB"[i % 2]} for i, pair in enumerate(pairs(number))]


def right(number):
    return [{**pair, "label": "A"} for pair in pairs(number)]


def judged(number):
    return list(judge_many(create_relative_judge(FakeChatModel(replies=answer)), many(number)))


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "agents.md": dict,
    "allure.md": lambda: {
        **{"saver": InMemorySaver(), "items": planning(6)},
        "dev": [{"input": "2 + 2?", "output": "4", "expected": "4", "label": 1}],
    },
    "bsm.md": dict,
    "ci.md": dict,
    "compared.md": dict,
    "drpe.md": dict,
    "index.md": dict,
    "langchain.md": dict,
    "lookups.md": dict,
    "many-rows.md": lambda: {"pairs": pairs(2)},
    "one-text.md": dict,
    "pairs.md": dict,
    "sc2.md": lambda: {"pairs": pairs(51)},
    "start-agent.md": dict,
    "several-judges.md": lambda: {"pair": many(1)[0], "pairs": many(4), "labelled": right(60)},
    "tables.md": dict,
    "trust.md": lambda: {
        **{"rows": judged(10), "others": judged(10), "data": many(10)},
        "judge": create_relative_judge(FakeChatModel(replies=answer)),
        "questions": list(map(str, range(10))),
    },
}
"""Names of the reader's that a page uses: own rows, and a judge of an earlier block."""


def test_the_python_of_every_page_is_run():
    elsewhere = {"README.md", "architecture.md", "verdict.md", "langsmith.md"}
    shown = {page.name for page in PAGES if blocks(page, "python")}
    assert shown == elsewhere | GIVEN.keys()


def behave_as_any(call: ServerCall):
    if call.shape in ("Extracted", "Merged"):
        return reply(learner(call.prompt))
    if call.shape in ("Claims", "Checked", "Guidelines"):
        return reply(fitting_reply(call))
    if "You collect evidence" in call.prompt:
        wanted = {"name": "ticket", "arguments": '{"number": 7}'}
        calls = [{"id": "1", "type": "function", "function": wanted}]
        return reply("", tool_calls=[] if "<finding-" in call.prompt else calls)
    return answer_call(call)


SLOW = {"allure.md", "many-rows.md", "several-judges.md"}


@pytest.mark.whole
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.figures) if n in SLOW else n for n in GIVEN]
)
def test_the_python_of_a_page_runs_as_it_stands(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("question,answer_1,answer_2,winner\nWhy?,a,b,A\n")
    letters, real = Letters(), embeddings.SentenceEmbeddings
    monkeypatch.setattr(real, "embed_documents", lambda _, texts: letters.embed_documents(texts))
    monkeypatch.setattr(real, "embed_query", lambda _, text: letters.embed_query(text))
    with FakeModelServer(behave_as_any) as server:
        monkeypatch.setenv("VLLM_API_KEY", "none")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        names = GIVEN[name]()
        for block in blocks(ROOT / "docs" / name, "python"):
            exec(block.replace("http://127.0.0.1:11434/v1", server.url), names)


def test_the_guide_for_agents_writes_what_failed_and_how_a_run_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad = {"name": "sum", "args": "{a", "id": "2", "error": None, "type": "invalid_tool_call"}
    called = {"name": "track", "args": {"parcel": 7}, "id": "1"}
    run = [
        AIMessage("", tool_calls=[called], invalid_tool_calls=[bad]),
        ToolMessage("quota exceeded", tool_call_id="1", status="error"),
        AIMessage("In Os", name="clerk", response_metadata={"finish_reason": "length"}),
    ]
    page = blocks(ROOT / "docs/start-agent.md", "python")
    exec(next(block for block in page if "runs.jsonl" in block), {"messages": run})
    row = json.loads((tmp_path / "runs.jsonl").read_text())
    assert record_in(row["output"]) == record_in(run)
    assert [each["role"] for each in record_in(run)][-1] == "how it ended"
