"""docs/options.md is made from the options themselves.

Where it is stale: `python -m tests.test_options_page --update`.
"""

import sys
from pathlib import Path
from typing import Any

from langchain_judges.methods.options import GraphOptions, JudgeOptions
from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.options import described, rule_of, type_of
from langchain_judges.writing.registry import WRITERS

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
SHARED = {*GraphOptions.model_fields, *JudgeOptions.model_fields}
HEAD = """# Options

Every option of every method, made from the classes that declare them. On the command line:
`--set NAME=VALUE`, the value as JSON. A preset is a set of options by name:
`load_judge("bsm", model, preset="paper")`, or `--preset paper`.
"""


def row(kind, name, field):
    default = field.get_default(call_default_factory=True)
    words = " ".join((field.description or "").split()).replace("|", "\\|")
    kinds = type_of(kind, name).replace("|", "\\|")
    return f"| `{name}` | `{kinds}` | `{default!r}` | {words} |"


def table(kind, *, shared=False):
    lines = ["| option | type | default | what it is |", "|---|---|---|---|"]
    return "\n".join(
        lines
        + [row(kind, name, f) for name, f in described(kind) if (name in SHARED) == shared]
    )


def page():
    parts = [HEAD, "## What every judge takes\n", table(JudgeOptions, shared=True)]
    tables: dict[str, Any] = {
        "Judges": METHODS,
        "Judges made of judges": COMBINATIONS,
        "Writers": WRITERS,
    }
    for title, methods in tables.items():
        parts.append(f"\n## {title}")
        for name, method in methods.items():
            presets = ", ".join(f"`{preset}`" for preset in method.presets) or "none"
            summary = f"{method.summary} Presets: {presets}."
            parts += [f"\n### `{name}`\n", summary + "\n", table(method)]
    return "\n".join(parts) + "\n"


def test_the_page_of_options_is_up_to_date():
    assert PAGE.read_text() == page(), "python -m tests.test_options_page --update"


def test_every_rule_can_be_said():
    for method in [*METHODS.values(), *COMBINATIONS.values(), *WRITERS.values()]:
        for name in method.model_fields:
            assert not rule_of(method, name).startswith("a <")


if __name__ == "__main__" and "--update" in sys.argv:
    PAGE.write_text(page())
