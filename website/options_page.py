"""Write the options into docs/reference.md; `make generated` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from langchain_judges.methods.declaration import GraphOptions, JudgeOptions
from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.options import described, type_of
from langchain_judges.writing.registry import WRITERS

SHARED = {*GraphOptions.model_fields, *JudgeOptions.model_fields}
NAMED = {
    "Sequence": "list",
    "Mapping": "mapping",
    "PathLike": "path",
    "BaseChatModel": "chat model",
    "BaseCheckpointSaver": "checkpointer",
}
"""Types of options in the words of a reader."""
HEAD = """## Options

Every option of every method: a keyword in Python, `--set NAME=VALUE` (as JSON) in a shell. In
brackets stands the default, or the type where that is `None`. A preset is a set of options by
name: `load_judge("bsm", model, preset="paper")`, or `--preset paper`.
"""


def alternatives(node: ast.expr) -> Iterator[str]:
    """Yield what a type allows, each in a word or two; None is left out."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from alternatives(left)
            yield from alternatives(right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=values)):
            yield from (f"`{ast.unparse(value)}`" for value in values)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=value):
            yield f"`{ast.unparse(value)}`"
        case ast.Subscript(value=ast.Name(id=name)):
            yield NAMED.get(name, f"`{name}`")
        case ast.Constant(value=None):
            pass
        case _:
            yield NAMED.get(ast.unparse(node), f"`{ast.unparse(node)}`")


def plain_type(text: str) -> str:
    """Return a type as a reader of tables reads it: "`str`, list or mapping"."""
    words = list(dict.fromkeys(alternatives(ast.parse(text, mode="eval").body)))
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def row(kind: type[GraphOptions], name: str, meaning: str) -> str:
    """Return the line of an option: its default, or its type where that is None, and words."""
    default = kind.defaults()[name]
    shown = plain_type(type_of(kind, name)) if default is None else f"`{default!r}`"
    return f"- `{name}` ({shown}): {meaning}"


def shared_options(kind: type[GraphOptions]) -> str:
    """Return the options that a method shares with all others."""
    own = [(name, meaning) for name, meaning in described(kind).items() if name in SHARED]
    return "\n".join(row(kind, name, meaning) for name, meaning in own)


def summary(method: type[Any]) -> str:
    """Return what a method is, and its presets."""
    presets = ", ".join(f"`{preset}`" for preset in method.presets) or "none"
    if method.method == "rubric":
        presets = "the [ready rubrics](one-text.md#ready-rubrics)"
    return f"{method.summary} Presets: {presets}."


def rows_once(kind: type[GraphOptions], told: dict[tuple[type, str], str]) -> str:
    """Return the options of a method, each declaration once on the page.

    Args:
        kind: The method.
        told: The method under which a declaration stands, by its class and name; added to.
    """
    new, as_of = [], dict[str, list[str]]()
    for name, meaning in described(kind).items():
        if name in SHARED:
            continue
        owner = next(
            each for each in kind.__mro__ if name in vars(each).get("__annotations__", ())
        )
        if method := told.get((owner, name)):
            as_of.setdefault(method, []).append(f"`{name}`")
        else:
            told[owner, name] = kind.method
            new.append(row(kind, name, meaning))
    shared = [f"- {', '.join(names)}: as of `{each}`." for each, names in as_of.items()]
    return "\n".join(new + shared)


def section() -> str:
    """Return the options of every method."""
    parts = [HEAD, "### What every judge takes\n", shared_options(JudgeOptions)]
    told: dict[tuple[type, str], str] = {}
    judges: dict[str, type[Any]] = {**METHODS, **COMBINATIONS}
    for name, method in judges.items():
        parts += [f"\n### `{name}`\n", summary(method) + "\n", rows_once(method, told)]
    for name, writer in WRITERS.items():
        parts += [f"\n### `{name}` writer\n", summary(writer) + "\n", rows_once(writer, told)]
    return "\n".join(parts)
