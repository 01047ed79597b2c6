"""The help of every command: what it takes, the names for its options, two examples."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.guide import GUIDES
from langchain_judges.methods.allure.checks import CHECKS
from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.writing.registry import WRITERS

COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
JUDGES = METHODS | COMBINATIONS
LISTED = {"judge": JUDGES, "trust": JUDGES, "write": WRITERS, "audit": CHECKS}


def help_of(command):
    return CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"}).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_a_command_takes_and_gives_two_examples(name):
    text = help_of(name)
    assert "\nTakes:\n  " in text
    _, _, examples = text.partition("\nExamples:\n")
    assert examples.count("\n  langchain-judges ") + 1 == 2
    assert max(map(len, text.splitlines())) <= 80
    assert not set(text) & set("╭│╰")


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_are_shown_without_a_value_and_others_with_one(name):
    text = help_of(name)
    for option in COMMANDS[name].params:
        flag = option.opts[-1]
        if not flag.startswith("--"):
            continue
        (shown,) = re.findall(rf"(?m)^  (?:-\w, )?{flag}(?: (\S+).*)?$", text) or [""]
        valued = shown.startswith("<") or shown.isupper() or "=" in shown or "/" in shown
        assert valued is not bool(getattr(option, "is_flag", False)), flag


@pytest.mark.parametrize("example", [e for guide in GUIDES.values() for e in guide.examples])
def test_every_option_of_an_example_exists(example):
    name, *words = shlex.split(example)
    known = {opt for param in COMMANDS[name].params for opt in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize(("name", "names"), LISTED.items())
def test_help_lists_methods_with_presets_and_checks(name, names):
    text = " ".join(help_of(name).split())
    for each, kind in names.items():
        assert f" {each} " in text
        presets = ", ".join(getattr(kind, "presets", {}))
        assert presets.replace("  ", " ") in text


def test_the_list_of_commands_cuts_no_sentence():
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    assert "..." not in text.partition("Commands:")[2]
    assert all(guide.summary in text for guide in GUIDES.values())
