"""Options given as `--set NAME=VALUE`: read, checked, named in a refusal."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from langchain_judges.errors import OptionError
from langchain_judges.options import unknown_option

if TYPE_CHECKING:
    from langchain_judges.methods.registry import Methods

NOT_ON_A_SHELL = {
    "cache",
    "checkpointer",
    "embeddings",
    "memory",
    "method",
    "model",
    "name",
    "prompts",
    "store",
}
"""Options that only Python can set."""


def set_options(settings: list[str]) -> dict[str, object]:
    """Return the options that `--set` gave; some make no sense on a shell."""
    options = dict(setting(each) for each in settings)
    if beyond := NOT_ON_A_SHELL & {name.rpartition(".")[2] for name in options}:
        raise OptionError(f"--set takes no {sorted(beyond)!r}: these are for Python")
    return options


def setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Return the name and value of an option given as NAME=VALUE, the value as JSON."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def check_settable(table: Methods, method: str, options: Iterable[str]) -> None:
    """Check that a method has the options that `--set` gave; it is loaded elsewhere.

    Raises:
        OptionError: It has not; the message lists those that a shell can set.
    """
    if method not in table:
        return
    takes = set(table[method].defaults()) - NOT_ON_A_SHELL
    for option in options:
        if option not in takes:
            raise unknown_option(method, option, tuple(takes))


@contextlib.contextmanager
def settings_as_flags(options: Mapping[str, object]) -> Iterator[None]:
    """Let a refusal name the options as `--set` does, and show the JSON that a list needs.

    Args:
        options: What `--set` gave, by name; for one of several methods `METHOD.NAME`.

    Raises:
        OptionError: The refusal in these words.
    """
    try:
        yield
    except OptionError as exc:
        text = str(exc)
        for name, value in options.items():
            text = text.replace(f"`{name.rpartition('.')[2]}` must", f"`--set {name}` must")
            if isinstance(value, str) and repr(value) in text:
                text += json_hint(name, value)
        raise OptionError(text) from exc


def json_hint(name: str, value: str) -> str:
    """Return how a list is written for `--set`, if that is what a text seems to be."""
    if value.lstrip().startswith(("[", "{")):
        return '; this is not valid JSON: texts need double quotes, as in \'["a", "b"]\''
    if "," not in value:
        return ""
    listed = json.dumps([part.strip() for part in value.split(",")], ensure_ascii=False)
    return f"; a list is written as JSON: --set {name}='{listed}'"
