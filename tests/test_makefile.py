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
    ("method", "shown", "not_shown"),
    [
        ("bsm", "each scored in both orders", "not good verdicts"),
        ("write", "Three drafts", "not good texts"),
    ],
)
def test_the_demo_says_first_what_it_shows_and_last_how_to_use_a_real_model(
    tmp_path, method, shown, not_shown
):
    program = tmp_path / "langchain-judges"
    program.write_text("#!/bin/sh\necho verdicts\n")
    program.chmod(0o755)
    command = ["make", "-s", "-C", str(ROOT), "demo", f"BIN={tmp_path}", f"METHOD={method}"]
    command += ["-o", ".venv/.package"]
    first, verdicts, last = subprocess.check_output(command, text=True).splitlines()
    assert shown in first
    assert not_shown in first
    assert verdicts == "verdicts"
    assert last.endswith("--model openai:gpt-5-mini --show")
