"""Rubrics in files: those of the package, by name, and those of callers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BeforeValidator, Field

from langchain_judges.errors import OptionError
from langchain_judges.methods.rubric.criteria import Criterion, read_rubric
from langchain_judges.options import Options

Needs = Literal["expected", "source"]
"""What a row must bring beside task and output."""
_FOLDER = files("langchain_judges.methods.rubric") / "ready"
_LONGEST = 1_000_000
"""Characters of a file; a rubric is a page."""


class Rubric(Options):
    """Criteria, and how to judge by them."""

    called = "a rubric"

    criteria: Annotated[tuple[Criterion, ...], BeforeValidator(read_rubric)]
    """In the order in which they are asked."""
    about: str = ""
    """What it is for, in a line."""
    steps: Annotated[Sequence[str], Field()] = ()
    """How to judge, step by step."""
    needs: Needs | None = None
    """What a row must bring beside task and output."""
    also: Annotated[Sequence[str], Field()] = ()
    """Other names under which it is known."""


_BOOL = "tag:yaml.org,2002:bool"
_RESOLVERS = {
    first: [(tag, form) for tag, form in forms if tag != _BOOL or first in "tTfF"]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_LOADER = type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": _RESOLVERS})
"""Reads `yes`, `no`, `on` and `off` as the words they are: labels may be called so."""


def load_rubric(path: str | PathLike[str]) -> Rubric:
    """Return the rubric in a YAML or JSON file.

    The file holds a list of criteria, a mapping of names to descriptions, or a mapping with
    `criteria` and, as one likes, `steps`, `needs` and `about`.

    Raises:
        OptionError: It cannot be read, or holds no rubric.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise OptionError(f"`file`: {Path(path)} cannot be read: {exc}") from exc
    if len(text) > _LONGEST:
        raise OptionError(f"`file`: {Path(path)} has {len(text):,} characters; no rubric has")
    try:
        return _read(text)
    except yaml.YAMLError as exc:
        raise OptionError(f"`file`: {Path(path)} is neither YAML nor JSON: {exc}") from None
    except OptionError as exc:
        raise OptionError(f"{Path(path)}: {exc}") from None


def _read(text: str) -> Rubric:
    data = yaml.load(text, _LOADER)  # noqa: S506 - a SafeLoader with fewer words
    if isinstance(data, Mapping) and "criteria" in data:
        return Rubric(**{str(name): value for name, value in data.items()})
    if not isinstance(data, list | Mapping):
        raise OptionError(f"a rubric must be a list or a mapping of criteria, got {data!r}")
    return Rubric(criteria=read_rubric(data))


@cache
def ready_rubrics() -> Mapping[str, Rubric]:
    """Return the rubrics of the package by name."""
    return {name: _read(_text_of(name)) for name in ready_names()}


def _text_of(name: str) -> str:
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


@cache
def ready_names() -> tuple[str, ...]:
    """Return the names of the rubrics of the package."""
    names = [file.name for file in _FOLDER.iterdir()]
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


@cache
def _names() -> Mapping[str, str]:
    """Return the name of a ready rubric by every name that it is known by."""
    names = {name: name for name in ready_rubrics()}
    return names | {
        other: name for name, rubric in ready_rubrics().items() for other in rubric.also
    }


def ready(name: str) -> Rubric | None:
    """Return the ready rubric of a name; None if there is none."""
    own_name = _names().get(name)
    return ready_rubrics()[own_name] if own_name else None


def ready_text(name: str) -> str | None:
    """Return the file of the ready rubric of a name; None if there is none."""
    own_name = _names().get(name)
    return _text_of(own_name) if own_name else None


def check_name(text: str) -> None:
    """Check that a text that looks like a name is that of a ready rubric.

    Raises:
        OptionError: There is no rubric of that name.
    """
    file_names = _names()
    if text in file_names or not re.fullmatch(r"[a-z]+(_[a-z]+)*", text):
        return
    near = get_close_matches(text, list(file_names), n=1)
    if near or "_" in text:
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise OptionError(
            f"there is no rubric {text!r}; {hint}there are {', '.join(file_names)}"
        )
