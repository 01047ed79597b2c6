"""The judge, model and memory that a command names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.cli.messages import error_console
from langchain_judges.cli.settings import check_settable, setting, settings_as_flags
from langchain_judges.errors import ModelSetupError, OptionError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def build_judge(
    method: str,
    chat: Any,
    preset: str | None,
    options: Mapping[str, Any],
    **more: Any,
) -> Any:
    """Create the judge that a command asks for; `more` are options that `--set` cannot set."""
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge

    check_settable(METHODS | COMBINATIONS, method, options)
    with settings_as_flags(options):
        return load_judge(method, chat, preset=preset, **options, **more)


def chat_model(
    model: str,
    base_url: str | None,
    timeout: float,
    settings: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> BaseChatModel:
    """Return the model that a command names; a dry run asks nothing, so it needs no key."""
    from langchain_judges.asking.models import resolve_model

    more = dict(setting(each, "--model-set") for each in settings or ())
    try:
        return resolve_model(model, base_url=base_url, timeout=timeout, settings=more)
    except ModelSetupError:
        if not dry_run:
            raise
    # What is wrong but for the key is said as it would be without a dry run.
    chat = resolve_model(
        model, base_url=base_url, api_key="none", timeout=timeout, settings=more
    )
    error_console().print(f"No key for {model} was found; asking needs one.", markup=False)
    return chat


def names_of(method: str, model: str) -> list[str]:
    """Return the models that `--model` names: several only for a judge made of judges."""
    from langchain_judges.methods.registry import COMBINATIONS

    if method not in COMBINATIONS:
        return [model]
    return [name.strip() for name in model.split(",") if name.strip()]


def kind_of(method: str, options: Mapping[str, Any] | None = None) -> str:
    """Return what a method judges with these options: `pair` or `item`.

    Raises:
        OptionError: There is no such method.
    """
    from langchain_judges.methods.registry import kind_of_rows

    return kind_of_rows(method, options or {})


def open_memory(folder: Path) -> Any:
    """Return the memory that a folder holds; it is made if it is missing."""
    from langchain_judges.memory.failures import FailureMemory

    return FailureMemory(path=folder)


def filled_memory(folder: Path) -> Any:
    """Return the memory that a folder holds.

    Raises:
        OptionError: The folder is missing: a misspelt one must not pass for an empty memory.
    """
    if not folder.exists():
        raise OptionError(f"there is no memory at {folder}; `langchain-judges audit` makes one")
    return open_memory(folder)
