"""What the package needs and says of itself; what an extra brings is missed in one sentence."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import langchain_judges
from langchain_judges.asking import local
from langchain_judges.errors import JudgeError, MissingExtraError
from langchain_judges.report import trust
from langchain_judges.rows.files import read_table
from langchain_judges.runs.prices import Prices
from langchain_judges.viewer import view
from tests.cases import for_each
from tests.judged_rows import run_of
from tests.test_architecture import tree_of

PACKAGE = Path(langchain_judges.__file__).parent
ROOT = Path(__file__).parents[1]
ROOMS = re.findall(r"^::: (\S+)", (ROOT / "docs/reference.md").read_text(), re.MULTILINE)
EXTRAS = {
    "anthropic": set(),
    "embeddings": {"sentence_transformers", "torch", "transformers"},
    "excel": {"openpyxl"},
    "hub": {"datasets", "pandas", "pyarrow"},
    "local": {"tokenizers", "xllamacpp"},
    "prices": {"genai_prices"},
    "trust": {"pandas"},
    "viewer": {"markdown_it", "starlette", "uvicorn"},
    "writing": {"lemminflect", "snowballstemmer"},
}
"""The modules that each extra brings, as far as the package imports them."""
BROUGHT = set().union(*EXTRAS.values())
IN_CORE = {
    "annotated_types", "httpx", "markupsafe", "openai", "pydantic_core", "requests",
    "langgraph_sdk", "threadpoolctl", "yaml",
}  # fmt: skip
"""Packages that are imported though another package of the core brings them."""


def block(monkeypatch, package):
    """Hide an installed package, also what of it is loaded."""
    for name in [package, *sys.modules]:
        if name.split(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)


USES = [
    ("hub", "pyarrow", "Reading Parquet", lambda: list(read_table(Path("x.parquet")))),
    ("local", "xllamacpp", "A model in this process", lambda: local._start(Path(__file__))),
    ("prices", "genai_prices", "A table of prices", lambda: Prices.read("genai-prices")),
    ("trust", "pandas", "A data frame", lambda: trust(run_of(["A"])).to_dataframe()),
    ("viewer", "starlette", "The page", lambda: view([])),
]  # fmt: skip


@pytest.mark.parametrize(("extra", "package", "what", "use"), USES)
def test_a_missing_extra_is_one_sentence_with_the_command(
    monkeypatch, tmp_path, extra, package, what, use
):
    monkeypatch.setattr("langchain_judges.asking.local._servers", {})
    monkeypatch.chdir(tmp_path)
    Path("x.parquet").touch()
    # The page's own module is loaded anew, and afterwards is what other tests know.
    monkeypatch.delitem(sys.modules, "langchain_judges.viewer.app", raising=False)
    block(monkeypatch, package)
    with pytest.raises(MissingExtraError) as caught:
        use()
    sentence = rf"{what} needs {package}[\w.]*: pip install .*\(the extra {extra}\)\."
    assert re.fullmatch(sentence, str(caught.value))
    # The name of this package is on no index yet: whoever takes it must not be installed.
    assert "langchain-judges" not in str(caught.value)
    assert isinstance(caught.value, JudgeError)


def imports(tree, *, guarded=False):
    """Yield (module, the extra that an enclosing `needs` names) of every import."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # no import stands in one
        inside = guarded
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.With):
            calls = [getattr(item.context_expr, "func", None) for item in node.items]
            names = {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
            inside = guarded or bool(names & {"needs", "_word_forms"})
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], guarded) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0], guarded
        yield from imports(node, guarded=inside)


def test_what_is_imported_is_declared_and_an_extra_is_missed_in_a_sentence():
    found = {
        (str(path.relative_to(PACKAGE)), *each)
        for path in PACKAGE.rglob("*.py")
        for each in imports(tree_of(path))
    }
    # The room of the viewer is an extra as a whole, and both its doors say so.
    bare = [each for each in found if each[1] in BROUGHT and not each[2]]
    assert {Path(file).parts[0] for file, *_ in bare} == {"viewer"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w-]+", each)[0].replace("-", "_") for each in project["dependencies"]}
    names = declared | BROUGHT | IN_CORE | set(sys.stdlib_module_names)
    names |= {"faiss", "sklearn", "yaml", "langchain_judges", "typing_extensions", "skip"}
    assert {module for _, module, _ in found} - names == set()
    assert set(project["optional-dependencies"]) == {*EXTRAS, "all", "dev", "postgres"}


def test_what_is_pinned_runs_on_the_oldest_python_that_the_package_runs_on():
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest = allowed.removeprefix(">=")
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for each in metadata.distributions():
        about = dict(
            re.findall(r"^([A-Z][\w-]+): (.+)", each.read_text("METADATA") or "", re.MULTILINE)
        )
        if (about.get("Name"), about.get("Version")) in pins and "Requires-Python" in about:
            assert oldest in SpecifierSet(about["Requires-Python"]), about["Name"]


def test_workflows_and_templates_are_yaml_and_may_only_read():
    files = [*(ROOT / ".github").rglob("*.yml")]
    assert len(files) >= 5
    for file in files:
        data = yaml.safe_load(file.read_text())
        if file.parent.name == "workflows":
            assert data["permissions"] == {"contents": "read"}
            uses = re.findall(r"uses: (\S+)", file.read_text())
            assert [each for each in uses if not re.search(r"@[0-9a-f]{40}$", each)] == []


# -- what make runs

PYTHON = """#!/bin/sh
echo "$@" >> {log}
exit {code}
"""


def made(folder, python, *words):
    """Run make with a script in the place of Python, in the environment as installed."""
    (folder / "python").write_text(python)
    (folder / "python").chmod(0o755)
    command = ["make", "-s", "-C", str(ROOT), *words, f"BIN={folder}"]
    command += ["-o", ".venv/.dev", "-o", ".venv/.package"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.system
@for_each(("ends", "code"), [(0, 0), (1, 2)])
def test_make_runs_every_test_and_any_failure_counts(tmp_path, ends, code):
    log = tmp_path / f"log {ends}"
    result = made(tmp_path, PYTHON.format(log=f'"{log}"', code=ends), "test")
    assert result.returncode == code, result.stderr
    assert log.read_text() == "-m pytest -n auto --dist worksteal\n"


@pytest.mark.system
@for_each(
    ("path_has", "used"),
    [('exec /usr/bin/python3 "$@"', "/usr/bin/python3"), ("echo '(3, 99)'", "python3")],
)
def test_the_systems_python_is_used_where_it_is_of_the_version_on_the_path(
    tmp_path, monkeypatch, path_has, used
):
    (tmp_path / "python3").write_text(f"#!/bin/sh\n{path_has}\n")
    (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("PYTHON", raising=False)
    result = made(
        tmp_path, PYTHON.format(log="/dev/null", code=0), "--eval=a:;@echo $(PYTHON)", "a"
    )
    assert result.stdout == f"{used}\n", result.stderr


STUBS = [path.relative_to(PACKAGE.parent).parent for path in PACKAGE.rglob("__init__.pyi")]


@for_each("folder", STUBS)
def test_each_name_that_a_package_tells_type_checkers_is_there(folder):
    room = import_module(".".join(folder.parts))
    assert room.__all__ == sorted(room.__all__) == dir(room)
    assert all(getattr(room, name) is not None for name in room.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing


def test_a_package_exports_no_name_that_the_top_level_exports():
    top = set(langchain_judges.__all__)
    for path in PACKAGE.rglob("__init__.py"):
        if len(parts := path.relative_to(PACKAGE).parent.parts):
            package = import_module(".".join(["langchain_judges", *parts]))
            assert top & set(getattr(package, "__all__", ())) == set(), package.__name__


def test_every_public_name_stands_in_the_module_that_it_says_it_is_of():
    for name in langchain_judges.__all__:
        thing = getattr(langchain_judges, name)
        module = getattr(thing, "__module__", "")
        if module.startswith("langchain_judges"):
            assert hasattr(import_module(module), name), (name, module)


def test_tools_that_read_the_signature_of_a_public_function_find_its_options():
    packages = map(import_module, ROOMS)
    things = [getattr(package, name) for package in packages for name in package.__all__]
    functions = [thing for thing in things if inspect.isfunction(thing)]
    assert len(functions) > 50
    assert [each.__name__ for each in functions if inspect.unwrap(each) is not each] == []


JUDGES_ONCE = (
    "from langchain_judges import create_rubric_judge\n"
    "from langchain_judges.testing import FakeChatModel\n"
    "model = FakeChatModel(replies=[{'explanation': 'e', 'label': '1'}])\n"
    "judge = create_rubric_judge(model, rubric='Is it polite?')\n"
    "print(judge.invoke({'input': 'q', 'output': 'a'})['verdict']['label'])\n"
)


@pytest.mark.system
@pytest.mark.parametrize("flags", [["-OO"], []])
def test_a_judge_and_the_help_work_without_docstrings_and_without_sources(tmp_path, flags):
    if not flags:
        shutil.copytree(PACKAGE, tmp_path / "langchain_judges")
        command = [sys.executable, "-m", "compileall", "-qb", tmp_path / "langchain_judges"]
        subprocess.run(command, check=True)
        for path in (tmp_path / "langchain_judges").rglob("*.py"):
            path.unlink()
    folder = PACKAGE.parent if flags else tmp_path

    code = (
        f"import runpy, sys\nsys.path.insert(0, {str(folder)!r})\n{JUDGES_ONCE}"
        "sys.argv = ['-m', 'judge', '--help']\n"
        "runpy.run_module('langchain_judges.cli', run_name='__main__')\n"
    )
    command = [sys.executable, *flags, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    label, _, shown = done.stdout.partition("\n")
    assert label == "1"
    assert "None" not in shown.replace("None:", "")
    assert "--concurrency" in shown
    assert flags or "Maximum number" in shown
