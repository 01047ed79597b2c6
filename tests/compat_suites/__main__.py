"""Run the suites by their own code and by ours, and say which tests ours loses.

    python -m tests.compat_suites --openevals CHECKOUT --agentevals CHECKOUT

Each path is a checkout of the peer's repository, or its `python` folder. Nothing is fetched:
models and LangSmith's hub are a server on loopback that answers by what it is shown.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.compat_suites.answers import AnswerServer

# Which names of ours stand in the place of theirs, by module.
REPLACED = {
    "openevals.llm": ("openevals", ["create_llm_as_judge", "create_async_llm_as_judge"]),
    "openevals.trajectory.llm": (
        "openevals",
        ["create_trajectory_llm_as_judge", "create_async_trajectory_llm_as_judge"],
    ),
    "openevals.trajectory.match": (
        "openevals",
        ["create_trajectory_match_evaluator", "create_async_trajectory_match_evaluator"],
    ),
    "openevals.code.llm": (
        "openevals",
        ["create_code_llm_as_judge", "create_async_code_llm_as_judge"],
    ),
    "agentevals.trajectory.llm": (
        "agentevals",
        ["create_trajectory_llm_as_judge", "create_async_trajectory_llm_as_judge"],
    ),
    "agentevals.trajectory.match": (
        "agentevals",
        ["create_trajectory_match_evaluator", "create_async_trajectory_match_evaluator"],
    ),
    "agentevals.graph_trajectory.llm": (
        "agentevals",
        ["create_graph_trajectory_llm_as_judge", "create_async_graph_trajectory_llm_as_judge"],
    ),
    "agentevals.graph_trajectory.strict": (
        "agentevals",
        ["graph_trajectory_strict_match", "graph_trajectory_strict_match_async"],
    ),
}
# The tests of judges and trajectories.
FILES = {
    "agentevals": ["tests"],
    "openevals": [
        *("tests/test_llm.py", "tests/test_llm_async.py", "tests/test_security_prompts.py"),
        *("tests/test_answer_relevance.py", "tests/test_conciseness.py", "tests/test_rag.py"),
        *("tests/test_correctness.py", "tests/test_hallucination.py", "tests/test_toxicity.py"),
        *("tests/test_plan_adherence.py", "tests/test_trajectory_prompts.py"),
        *("tests/trajectory", "tests/code/test_code_llm_as_judge.py"),
        "tests/code/test_code_llm_as_judge_async.py",
    ],
}
# Why a test that their code passes is lost, by the end of its name.
LOST: dict[str, str] = {}


class Outcomes:
    """Keeps what came of each test, and puts our names in the place of theirs."""

    def __init__(self, suite: str, *, ours: bool) -> None:
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}
        self.suite, self.ours = suite, ours

    def pytest_configure(self) -> None:
        for path, (room, names) in REPLACED.items() if self.ours else ():
            if path.startswith(self.suite):
                compat = importlib.import_module(f"langchain_judges.compat.{room}")
                module = importlib.import_module(path)
                for name in names:
                    setattr(module, name, getattr(compat, name))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr).strip().splitlines()[-1][:200]
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


def run_here(suite: str, folder: Path, into: Path, *, ours: bool) -> None:
    """Run a suite in this process."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    outcomes = Outcomes(suite, ours=ours)
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=short", "-n", "0"]
    pytest.main([*quiet, "-c", "pyproject.toml", *FILES[suite]], plugins=[outcomes])
    into.write_text(json.dumps({"passed": outcomes.passed, "failed": outcomes.failed}))


def run_apart(suite: str, folder: Path, *, ours: bool) -> dict[str, Any]:
    """Run a suite in a process of its own, and return what came of it."""
    with AnswerServer() as address, tempfile.TemporaryDirectory() as scratch:
        into = Path(scratch) / "outcomes.json"
        names = {"OPENAI_BASE_URL": f"{address}/v1", "LANGSMITH_ENDPOINT": address}
        keys = dict.fromkeys(("OPENAI_API_KEY", "LANGSMITH_API_KEY"), "none")
        off = dict.fromkeys(("LANGSMITH_TRACING", "LANGSMITH_TEST_TRACKING"), "false")
        root = str(Path(__file__).parents[2])
        code = "ours" if ours else "theirs"
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, code, suite, str(folder), str(into)],
            env={**os.environ, **names, **keys, **off, "PYTHONPATH": root},
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if not into.exists():
            raise SystemExit(f"{suite} did not run:\n{done.stdout}\n{done.stderr}")
        outcomes: dict[str, Any] = json.loads(into.read_text())
        return outcomes


def compare(suite: str, folder: Path) -> bool:
    """Run a suite twice, print what is lost, and say whether each loss has its reason."""
    theirs, ours = (run_apart(suite, folder, ours=which) for which in (False, True))
    kept = [each for each in theirs["passed"] if each in set(ours["passed"])]
    print(f"{suite}: {len(kept)} of {len(theirs['passed'])} that its own code passes")
    sound = bool(kept)
    for name in sorted(set(theirs["passed"]) - set(kept)):
        reason = next((why for end, why in LOST.items() if name.endswith(end)), None)
        sound &= reason is not None
        print(f"  lost: {name}: {reason or ours['failed'].get(name, 'not run')}")
    for name, why in sorted(theirs["failed"].items()):
        ends = ", not by ours" if name in ours["passed"] else ""
        print(f"  fails by its own code{ends}: {name}: {why}")
    return sound


def folder_of(path: Path) -> Path:
    """The folder of a checkout that has the Python tests."""
    return (path / "python" if (path / "python").is_dir() else path).resolve()


def main() -> int:
    """Compare the suites whose paths are given."""
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        whose, suite, folder, into = sys.argv[1:]
        run_here(suite, Path(folder), Path(into), ours=whose == "ours")
        return 0
    parser = argparse.ArgumentParser(description=__doc__, prog="tests.compat_suites")
    for suite in FILES:
        parser.add_argument(f"--{suite}", type=Path, help="its checkout")
    paths = {name: path for name, path in vars(parser.parse_args()).items() if path}
    if not paths:
        parser.error("give the path of a checkout")
    results = [compare(suite, folder_of(path)) for suite, path in paths.items()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
