"""A judge as plain JSON: its form, checked and read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, cast

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError


class JudgeSpec(TypedDict):
    """A judge as plain JSON, from which `build` makes it."""

    method: str
    model: Any
    """By name or as a `ModelSpec`; of a judge made of judges the specs of its members."""
    options: NotRequired[dict[str, Any]]
    preset: NotRequired[str | None]


def checked_spec(spec: Mapping[str, object]) -> JudgeSpec:
    """Return plain JSON that has the form of a judge; its options are not looked at.

    Raises:
        OptionError: A field is missing or unknown, or has the wrong type.
    """
    names = set(spec) if isinstance(spec, Mapping) else set()
    if not {"method", "model"} <= names or names - {"method", "model", "options", "preset"}:
        raise OptionError(
            'a spec is {"method", "model", "options", "preset"}, the first two required; '
            f"got {sorted(map(str, names)) or spec!r}"
        )
    options, preset = spec.get("options"), spec.get("preset")
    if not isinstance(options, Mapping | None) or not all(map(_is_text, options or ())):
        raise OptionError(f"the `options` of a spec must be an object, got {options!r}")
    if not _is_text(spec["method"]) or not isinstance(preset, str | None):
        wrong = preset if _is_text(spec["method"]) else spec["method"]
        raise OptionError(f"`method` and `preset` of a spec must be texts, got {wrong!r}")
    return cast("JudgeSpec", spec)


def read_spec(path: Path) -> dict[str, Any]:
    """Return the judge that a file describes, as `build` takes it.

    Raises:
        OptionError: The file cannot be read, or holds no spec.
    """
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise OptionError(f"{path} cannot be read as JSON: {exc}") from exc
    if not isinstance(spec, dict) or "method" not in spec:
        raise OptionError(f'{path} must hold {{"method", "model", "options"}}')
    return spec


def _is_text(value: object) -> bool:
    return isinstance(value, str)
