"""The rules of the house, held by reading its code and by starting it."""

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

import langchain_judges

PACKAGE = Path(langchain_judges.__file__).parent
METHODS = {"allure", "bsm", "direct", "drpe", "sc2"}
SEES_EVERYTHING = {"__init__", "classic", "cli"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def own_imports(path: Path) -> set[str]:
    """Return the parts of the package that a module imports anywhere in its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == PACKAGE.name and rest:
                found.add(rest.split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_methods_import_shared_parts_and_shared_parts_no_method(path: Path) -> None:
    part, imported = part_of(path), own_imports(path)
    if part in METHODS:
        assert METHODS & imported <= {part}
        assert "methods" not in imported
    elif part == "methods":
        assert not imported & SEES_EVERYTHING
    elif part not in SEES_EVERYTHING:
        assert not imported & (METHODS | {"methods"} | SEES_EVERYTHING)


@pytest.mark.parametrize("part", ["verdict", "errors"])
def test_the_words_and_the_errors_import_nothing_of_ours(part: str) -> None:
    assert own_imports(PACKAGE / f"{part}.py") == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_private_module_of_another_package_is_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            assert not any(part.startswith("_") for part in node.module.split("."))


def test_public_names_are_sorted_and_all_of_them_resolve() -> None:
    names = langchain_judges.__all__
    assert names == sorted(names)
    assert set(names) == set(langchain_judges._HOMES)
    for name in names:
        assert getattr(langchain_judges, name).__name__ == name


def test_public_names_are_these() -> None:
    assert langchain_judges.__all__ == [
        "Failure",
        "FailureMemory",
        "FaissStore",
        "Item",
        "JudgeError",
        "JudgeMiddleware",
        "LabelVerdict",
        "Pair",
        "Panel",
        "Role",
        "Row",
        "Usage",
        "Verdict",
        "Vote",
        "Voting",
        "ajudge_many",
        "as_comparative_evaluator",
        "as_evaluator",
        "best_of",
        "create_absolute_judge",
        "create_allure_audit",
        "create_allure_judge",
        "create_bsm_judge",
        "create_bsm_writer",
        "create_cot_judge",
        "create_direct_judge",
        "create_drpe_judge",
        "create_llm_score_judge",
        "create_plan_solve_judge",
        "create_relative_judge",
        "create_sc2_judge",
        "create_self_consistency_judge",
        "judge_many",
        "learn_aspects",
        "load_judge",
        "resolve_model",
    ]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'create_nothing'"):
        _ = langchain_judges.create_nothing


def fresh(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_tests_reach_no_address_but_loopback() -> None:
    # The blocker warns before it raises, and here every warning is an error.
    refused = (SocketConnectBlockedError, UserWarning)
    with socket.socket() as probe, pytest.raises(refused, match=r"192\.0\.2\.1"):
        probe.connect(("192.0.2.1", 80))


HEAVY = {"torch", "sentence_transformers", "sklearn", "faiss", "pandas", "matplotlib"}


@pytest.mark.parametrize("also", ["", "; langchain_judges.create_bsm_judge"])
def test_importing_the_package_loads_nothing_heavy(also: str) -> None:
    loaded = fresh(f"import sys, langchain_judges{also}; print(*sys.modules)").split()
    assert not HEAVY & {name.split(".")[0] for name in loaded}


def test_importing_the_package_costs_no_more_than_langgraph() -> None:
    timed = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    ours = min(float(fresh(timed.format("langchain_judges"))) for _ in range(3))
    theirs = min(float(fresh(timed.format("langgraph.graph"))) for _ in range(3))
    assert ours <= 1.15 * theirs
