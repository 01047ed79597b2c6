"""A judge as plain JSON: read from a file, or made of what flags name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_judges.cli.judges import names_of
from langchain_judges.cli.settings import check_settable, set_options, setting, settings_named
from langchain_judges.errors import OptionError


def described_by(path: Path | None, flags: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the judge that a file describes; None if flags describe it.

    Raises:
        OptionError: Both do or none does, or the file holds no JSON object.
    """
    if path is None:
        if not flags["--model"]:
            raise OptionError("name a model by --model, or a judge by --spec")
        return None
    if both := [flag for flag, value in flags.items() if value]:
        raise OptionError(f"--spec says what the judge is; leave {', '.join(both)} out")
    from langchain_judges.methods.registry import read_spec

    return read_spec(path)


def model_spec(
    method: str,
    model: str | None,
    base_url: str | None,
    timeout: float,
    settings: list[str] | None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the model that flags name as a spec has it; of a judge made of judges a list.

    A key stays in the environment.
    """
    from langchain_judges.methods.registry import COMBINATIONS

    named = {
        "base_url": base_url,
        "timeout": timeout,
        "settings": dict(setting(each, "--model-set") for each in settings or ()),
    }
    shared = {name: value for name, value in named.items() if value}
    names = names_of(method, model or "")
    specs = [{"name": each, **shared} for each in names]
    return specs if method in COMBINATIONS else specs[0]


def judge_of(  # noqa: PLR0913 - one parameter for each flag
    spec: Path | None,
    method: str,
    model: str | None,
    preset: str | None,
    option: list[str] | None,
    base_url: str | None,
    timeout: float,
    settings: list[str] | None,
) -> Any:
    """Return the judge that a file or flags describe; its own spec is plain JSON.

    Raises:
        OptionError: Both describe one or none does, or an option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, build

    flags: dict[str, Any] = {"--model": model, "--preset": preset, "--set": option}
    flags |= {"--base-url": base_url, "--model-set": settings}
    described = described_by(spec, flags)
    if described is not None:
        return build(described)
    options = set_options(option or [])
    check_settable(METHODS | COMBINATIONS, method, options)
    named = model_spec(method, model, base_url, timeout, settings)
    own = {"preset": preset} if preset else {}
    with settings_named(options):
        return build({"method": method, "model": named, "options": options, **own})
