"""The rules of the house, held by reading its code and by starting it."""

import ast
import gc
import inspect
import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import yaml
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langgraph.pregel import Pregel
from pydantic import BaseModel, SecretStr, create_model
from pytest_socket import SocketConnectBlockedError

import langchain_judges
from langchain_judges.asking.effects import check_stop, without_collection
from langchain_judges.asking.masking import masked
from langchain_judges.methods.registry import load_judge
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from tests.judges import PAIR

PACKAGE = Path(langchain_judges.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LAYERS = [
    {"progress", "errors", "escaping", "lazy", "verdict", "orders"},
    {"options", "asking", "rows", "metrics"},
    {"memory"},
    {"methods"},
    {"runs", "writing"},
    {"integrations", "report", "datasets", "testing"},
    {"compat", "viewer"},
    {"cli", "__init__"},
]
"""Who may import whom: only what stands on an earlier line, or on the same."""
DEPTH = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}


def module_of(path: Path) -> str:
    """A module's name inside of the package: `rows.texts`, `memory`, `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMES = {module_of(path) for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed module; several tests look at each."""
    return ast.parse(path.read_text())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands inside of a node, without expressions: no import is one."""
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, ast.expr):
            yield inner
            yield from statements(inner)


@cache
def own_imports(path: Path) -> set[str]:
    """The modules of the package that a module imports, for types alone too."""
    modules = set()
    for node in statements(tree_of(path)):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        package, _, module = node.module.partition(".")
        if package != PACKAGE.name:
            continue
        for alias in node.names:
            inner = f"{module}.{alias.name}".strip(".")
            modules.add(inner if inner in NAMES else module or "__init__")
    return modules


def room_of(module: str) -> str:
    return module.split(".")[0]


def test_no_module_is_reached_through_a_package_that_may_not_have_loaded_it() -> None:
    packages = {room_of(name) for name in NAMES if "." in name}
    for path in MODULES:
        imports = [each for each in tree_of(path).body if isinstance(each, ast.ImportFrom)]
        own = {name.name for each in imports if each.module == PACKAGE.name for name in each.names}
        if named := own & packages:
            read = {ast.unparse(n) for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute)}
            assert not {each for each in read & NAMES if room_of(each) in named}, path


def test_rooms_import_only_rooms_below_them() -> None:
    upwards = [
        (module_of(path), name)
        for path in MODULES
        for name in own_imports(path)
        if DEPTH[room_of(name)] > DEPTH[room_of(module_of(path))]
    ]
    assert upwards == []


def test_modules_do_not_import_each_other() -> None:
    graph = {module_of(path): own_imports(path) for path in MODULES}
    tuple(TopologicalSorter({m: uses - {m} for m, uses in graph.items()}).static_order())


DERIVED = {"allure": "rubric"}
"""The methods that are another method with more: which stands on which."""


def test_methods_never_import_each_other() -> None:
    folders = {path.parent.name for path in (PACKAGE / "methods").glob("*/__init__.py")}
    for path in (PACKAGE / "methods").glob("*/**/*.py"):
        own = path.relative_to(PACKAGE).parts[1]
        others = folders - {own, DERIVED.get(own)} | {"registry"}
        assert not {f"methods.{other}" for other in others} & {
            ".".join(name.split(".")[:2]) for name in own_imports(path)
        }, path


def test_public_names_resolve() -> None:
    rooms = ("integrations", "memory", "report", "runs", "testing", "writing")
    for room in ("", *(f".{name}" for name in (*rooms, "methods", "methods.sc2"))):
        package = import_module(f"langchain_judges{room}")
        for name in package.__all__:
            assert getattr(package, name) is not package, name
            assert not isinstance(getattr(package, name), ModuleType), name


def fresh(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_tests_reach_no_address_but_loopback() -> None:
    # The blocker warns before it raises, and here every warning is an error.
    refused = (SocketConnectBlockedError, UserWarning)
    with socket.socket() as probe, pytest.raises(refused, match=r"192\.0\.2\.1"):
        probe.connect(("192.0.2.1", 80))


STAGES = """
import sys
def stage(code):
    before = set(sys.modules)
    exec(code, globals())
    print(*set(sys.modules) - before)
stage("import langchain_judges")
stage("import langgraph.graph")
stage("langchain_judges.create_bsm_judge")
"""


@pytest.mark.system
def test_importing_the_package_costs_no_more_than_langgraph() -> None:
    lines = fresh(STAGES).split("\n")
    stages = [{name.partition(".")[0] for name in line.split()} for line in lines]
    at_import, _, for_a_judge = stages
    assert at_import - sys.stdlib_module_names == {"langchain_judges"}
    # What a prompt needs: templates of LangChain, and Jinja to render them safely.
    prompts = {"langchain_core", "jinja2", "markupsafe", "yaml"}
    # And what its options can hold: a memory, whose vectors are arrays.
    own = {"langchain_judges", "numpy", *prompts, *sys.stdlib_module_names}
    others = {name for name in for_a_judge if not name.startswith("_cython")}
    assert others <= own


@pytest.mark.system
def test_the_help_of_commands_loads_neither_methods_nor_statistics() -> None:
    code = """
import sys
from importlib import import_module
from langchain_judges.cli import COMMANDS
for command in COMMANDS:
    import_module(f"langchain_judges.cli.{command}")
print({"langgraph", "numpy", "langchain_judges.methods.graph"} & set(sys.modules))
"""
    assert fresh(code).strip() == "set()"


@pytest.mark.system
def test_the_options_of_a_method_and_its_calls_load_no_graph() -> None:
    code = """
import sys, langchain_judges.methods.context
from langchain_judges.methods.registry import METHODS
for name, kind in METHODS.items():
    kind(**kind.few).calls()
print({"langgraph.graph", "langgraph.pregel"} & set(sys.modules))
"""
    assert fresh(code).strip() == "set()"


@pytest.mark.system
def test_a_judge_pays_for_the_checks_of_its_own_options_alone() -> None:
    code = """
from langchain_judges import create_relative_judge
from langchain_judges.methods.direct.options import Absolute, Relative
from langchain_judges.testing import FakeChatModel
create_relative_judge(FakeChatModel(replies=[]))
print(Relative.__pydantic_complete__, Absolute.__pydantic_complete__)
"""
    assert fresh(code).strip() == "True False"


# Names of other packages that begin with an underscore and are no part of their interface; each
# stands in one file, and the test below fails where it means something else.
FOREIGN = {
    "_current_exceptions": "asking/effects.py",
    "_SHUTTING_DOWN": "asking/effects.py",
    "_get_invocation_params": "asking/masking.py",
}
# Documented in spite of their underscore.
DOCUMENTED = {"_asdict", "_exit", "_fields", "_replace"}


def private_names(tree: ast.AST) -> Iterator[str]:
    """Names with an underscore that are read of anything but `self`, `cls` and `super()`."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield name


def defined_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def test_what_is_private_to_another_package_is_used_in_one_place_alone():
    foreign: dict[str, set[str]] = {}
    for path in MODULES:
        tree = tree_of(path)
        own = {*defined_names(tree), *DOCUMENTED} - {*FOREIGN}  # of this file alone
        for name in {*private_names(tree)} - own:
            if name.startswith("_") and not name.startswith("__"):
                foreign.setdefault(name, set()).add(path.relative_to(PACKAGE).as_posix())
    assert foreign == {name: {file} for name, file in FOREIGN.items()}


# Where an object of another package is given a class or a value past its own setters.
SURGERY = {"asking/masking.py", "asking/models.py", "options.py"}
# What no parameter can carry, with the reason beside it.
CONTEXT_VARIABLES = {
    "_STOP": "asking/effects.py",  # a signal, to the threads that LangGraph starts
    "_VIEWS": "memory/failure_memory.py",  # a view, to those of a judge within a `with`
    "_HEARD": "integrations/middleware.py",  # who hears the calls of an agent's models
    "_KEYS": "integrations/evaluators.py",  # a row of LangSmith's, to each of its evaluators
}


def is_surgery(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="__class__", ctx=ast.Store()):
            return True
        case (
            ast.Subscript(ctx=ast.Store(), value=called)
            | ast.Attribute(attr="pop" | "update", value=called)
        ):
            its_own = ast.unparse(called) == "vars(self)"
            return ast.unparse(called).startswith("vars(") and not its_own
    return False


def test_objects_of_other_packages_are_changed_in_few_places_alone():
    places = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if any(map(is_surgery, ast.walk(tree_of(path))))
    }
    assert places == SURGERY


def test_context_variables_are_few_and_each_says_why_it_is_one():
    found = {}
    for path in MODULES:
        lines = path.read_text("utf-8").split("\n")
        for number, line in enumerate(lines):
            if name := re.match(r"(\w+): ContextVar\[", line):
                found[name[1]] = path.relative_to(PACKAGE).as_posix()
                assert lines[number - 1].startswith("# "), name[1]
    assert found == CONTEXT_VARIABLES


# One for each method or room, by contract; a command and what it runs; types of any kind.
RECURRING = {"PROMPTS", "WORDS", "build", "decide", "compare", "run", "trust", "view", "P", "T"}


def test_a_name_stands_for_one_thing_but_for_those_that_recur_by_contract():
    homes: dict[str, set[str]] = {}
    for path in MODULES:
        if room_of(module_of(path)) != "compat":  # whose names are other packages'
            for node in tree_of(path).body:
                match node:
                    case (
                        ast.FunctionDef(name=name)
                        | ast.AsyncFunctionDef(name=name)
                        | ast.ClassDef(name=name)
                        | ast.AnnAssign(target=ast.Name(id=name))
                        | ast.Assign(targets=[ast.Name(id=name)])
                    ):
                        homes.setdefault(name, set()).add(module_of(path))
    several = {n for n, places in homes.items() if len(places) > 1 and not n.startswith("_")}
    assert several <= RECURRING, {n: homes[n] for n in several - RECURRING}


class Once(BaseModel):
    """Has a constant that a class below may want as an option."""

    samples: ClassVar[int] = 1


def test_what_is_private_to_another_package_is_still_what_it_was():
    found: list[object] = []
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        here: Any = sys._current_exceptions()[threading.get_ident()]
        found += here if isinstance(here, tuple) else [here]
    assert any(isinstance(each, KeyboardInterrupt) for each in found)
    assert vars(threading)["_SHUTTING_DOWN"] is False
    source = inspect.getsource(BaseChatModel.generate)
    assert "self._get_invocation_params(stop=stop, **kwargs)" in source
    # Secrets are masked by a class of our own, which takes the place of the model's.
    masked_model: Any = masked(ChatOpenAI(model="m", api_key=SecretStr("sk-secret-key")))
    assert type(masked_model).__mro__[1] is ChatOpenAI
    assert "sk-secret-key" not in str(masked_model._get_invocation_params(user="sk-secret-key"))
    # An option in place of a constant of a class above would be no option of its own.
    with pytest.warns(UserWarning, match='"samples" in "Sampled" shadows an attribute'):
        create_model("Sampled", __base__=Once, samples=(int, 2))
    # A judge is made of a compiled graph as LangGraph copies one: by all of its fields.
    assert "self.__class__(**attrs)" in inspect.getsource(Pregel.copy)


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_the_exceptions_of_all_threads_are_read(
    collects, monkeypatch
):
    """A collection there may wait, until Python 3.12, for a thread that cannot start."""
    seen: list[bool] = []

    def exceptions() -> dict[int, object]:
        seen.append(gc.isenabled())
        return {}

    monkeypatch.setattr(sys, "_current_exceptions", exceptions)
    (gc.enable if collects else gc.disable)()
    try:
        look = threading.Thread(target=check_stop)
        look.start()
        look.join()
        assert (seen, gc.isenabled()) == ([False, False], collects)
    finally:
        gc.enable()


def test_garbage_is_collected_again_when_the_last_block_has_ended_whichever_began_first():
    first, second = without_collection(), without_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def files_run(judge: Any, row: dict[str, str]) -> dict[str, int]:
    """How many files of each room run code for a row, once the judge is built and warm."""
    ran: set[str] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{PACKAGE}/"):
            ran.add(frame.f_code.co_filename.removeprefix(f"{PACKAGE}/"))

    judge.invoke({**row, "input": "What is warm?"})
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        judge.invoke(row)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return Counter(name.partition("/")[0] for name in ran)


@pytest.mark.parametrize(
    ("method", "asking", "methods"),
    [("bsm", 8, 9), ("relative", 9, 7), ("sc2", 9, 9), ("rubric", 9, 10)],
)
def test_who_follows_a_row_through_a_method_opens_few_files(method, asking, methods):
    options = {"rubric": "Is it kind?"} if method == "rubric" else {}
    judge = load_judge(method, FakeChatModel(replies=fitting_reply), **options)
    single = {"input": "Why?", "output": "So."}
    ran = files_run(judge, single if method == "rubric" else PAIR)
    assert (ran["asking"] <= asking, ran["methods"] <= methods) == (True, True), ran


def test_packaged_data_are_read_alike_without_libyaml():
    for path in sorted(PACKAGE.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        assert yaml.load(text, yaml.SafeLoader) == yaml.load(text, yaml.CSafeLoader), path
