"""What `make test` does where a part of it fails."""

import subprocess
from pathlib import Path

import pytest

UNIT, REAL = "-m not (system or figures or real)", "-m real"
SYSTEM = "-m (system or figures) and not real"
ROOT = Path(__file__).parents[1]
PYTHON = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *"{failing}") exit 1;; esac
"""


@pytest.mark.system
@pytest.mark.parametrize(("failing", "code"), [(UNIT, 2), (SYSTEM, 2), (REAL, 2), ("none", 0)])
def test_each_part_runs_whatever_else_fails_and_any_failure_counts(tmp_path, failing, code):
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(PYTHON.format(log=log, failing=failing))
    python.chmod(0o755)
    # `-o` takes the environment as installed.
    command = ["make", "-s", "-C", str(ROOT), "test", f"BIN={tmp_path}", "-o", ".venv/.dev"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    commands = [line.partition("-m pytest ")[2] for line in log.read_text().splitlines()]
    assert commands == [f"-n auto {UNIT}", f"-n auto {SYSTEM}", REAL]


@pytest.mark.system
@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], []),
        (["METHOD=bsm"], ["--method", "bsm"]),
        (["METHOD=drpe", "MODEL=local"], ["--method", "drpe", "--model", "local"]),
    ],
)
def test_the_demo_takes_a_method_and_a_model(tmp_path, words, options):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    command = ["make", "-s", "-C", str(ROOT), "demo", f"BIN={tmp_path}", "-o", ".venv/.package"]
    printed = subprocess.check_output([*command, *words], text=True).split()
    assert printed == ["cookbook/demo.py", *options]
