"""The rules of the house, held by reading its code and by starting it."""

import ast
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from pytest_socket import SocketConnectBlockedError

import langchain_judges

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
    """Return a module's name inside of the package: `rows.texts`, `memory`, `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


NAMES = {module_of(path) for path in MODULES}


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the parsed module; several tests look at each."""
    return ast.parse(path.read_text())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands inside of a node, without expressions: no import is one."""
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, ast.expr):
            yield inner
            yield from statements(inner)


@cache
def own_imports(path: Path) -> set[str]:
    """Return the modules of the package that a module imports, for types alone too."""
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
    for room in ("", *(f".{name}" for name in (*rooms, "methods", "methods.drpe"))):
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
    code = "import sys, langchain_judges.cli; print({'langgraph', 'scipy'} & set(sys.modules))"
    assert fresh(code).strip() == "set()"
