"""A judge as plain JSON: read from a file, or made of what flags name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_judges.cli.judges import chat_model, filled_memory, names_of
from langchain_judges.cli.options import SECONDS
from langchain_judges.cli.settings import (
    check_settable,
    set_options,
    setting,
    settings_as_flags,
)
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from langchain_judges.methods.outline import Outline


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
    from langchain_judges.methods.specs import read_spec

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


@dataclass(frozen=True)
class NamedJudge:
    """The judge that a file or flags name; nothing of it is made yet."""

    spec: Mapping[str, Any]
    """As `build` takes it."""
    memory: Path | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of its method."""
        return dict(self.spec.get("options") or {})

    @property
    def rows_like(self) -> tuple[str, str | None, dict[str, Any]]:
        """Method, preset and options by which rows are read; of judges its first member's."""
        from langchain_judges.methods.registry import leaf_of

        return leaf_of(self.spec)

    def outline(self, errors: Console | None = None) -> Outline:
        """Return what it takes and asks, and check its options.

        Args:
            errors: Of a dry run: its models are checked, and a missing key is mentioned here.

        Raises:
            OptionError: An option is not allowed.
            ModelSetupError: A model is not known.
        """
        from langchain_judges.methods.outline import outline

        with settings_as_flags(self.options):
            planned = outline(self._with_memory())
        if errors is None:
            return planned
        for name in {each.model["name"]: each.model for each in planned.asked}.values():
            check_model(name, errors)
        return planned

    def build(self, wrap: Callable[[Any], Any] | None = None) -> Any:
        """Return the judge.

        Args:
            wrap: Takes its chat model and returns the one to ask.

        Raises:
            OptionError: An option is not allowed, or a judge of several models is wrapped.
            ModelSetupError: A model cannot be made.
        """
        from langchain_judges.asking.models import model_of_spec, resolve_model
        from langchain_judges.methods.outline import outline
        from langchain_judges.methods.registry import build, load_judge

        with settings_as_flags(self.options):
            named = self._with_memory()
            outline(named)  # a wrong option is refused before a missing key is
            if wrap is None:
                return build(named)
            model = self.spec.get("model")
            if isinstance(model, list):
                raise several_models(self.spec["method"], len(model))
            is_spec = isinstance(model, Mapping)
            chat = model_of_spec(cast("Any", model)) if is_spec else resolve_model(model or "")
            options = named.get("options") or {}
            return load_judge(
                self.spec["method"], wrap(chat), preset=self.spec.get("preset"), **options
            )

    def _with_memory(self) -> dict[str, Any]:
        if self.memory is None:
            return dict(self.spec)
        return {
            **self.spec,
            "options": {**self.options, "memory": filled_memory(self.memory)},
        }


def named_judge(  # noqa: PLR0913 - one parameter for each flag
    spec: Path | None,
    method: str,
    model: str | None,
    preset: str | None,
    option: list[str] | None,
    base_url: str | None,
    timeout: float,
    settings: list[str] | None = None,
    memory: Path | None = None,
) -> NamedJudge:
    """Return the judge that a file or flags name.

    Raises:
        OptionError: Both name one or none does, or `--set` names no option.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    flags: dict[str, Any] = {"--model": model, "--preset": preset, "--set": option}
    flags |= {"--base-url": base_url, "--model-set": settings, "--memory": memory}
    described = described_by(spec, flags)
    if described is not None:
        return NamedJudge(described)
    options = set_options(option or [])
    check_settable(METHODS | COMBINATIONS, method, options)
    named = model_spec(method, model, base_url, timeout, settings)
    own = {"preset": preset} if preset else {}
    return NamedJudge({"method": method, "model": named, "options": options, **own}, memory)


def several_models(method: str, number: int) -> OptionError:
    """Return the refusal of a batch for a judge of several models."""
    return OptionError(f"--batch is for one model; {method!r} has {number}")


def check_model(spec: Mapping[str, Any], errors: Console) -> None:
    """Check that a model could be made, as far as that takes no key.

    OpenAI's models with only a name are not made: their library takes longer to load than all
    else that a dry run needs.

    Raises:
        ModelSetupError: The model is not known, or a package is missing.
    """
    from langchain_judges.asking.models import own_address

    name, own = spec["name"], spec["name"].removeprefix("openai:")
    is_openai = own and ":" not in own and (own != name or own.startswith("gpt-"))
    address = spec.get("base_url") or (own_address() if is_openai else None)
    is_plain = is_openai or str(address).startswith(("http://", "https://"))
    if not is_plain or not own or spec.get("settings") or "api_key_env" in spec:
        more = [f"{key}={json.dumps(value)}" for key, value in spec.get("settings", {}).items()]
        chat_model(name, address, spec.get("timeout", SECONDS), more, dry_run=True)
    elif not address and not os.environ.get("OPENAI_API_KEY"):
        errors.print(f"No key for {name} was found; asking needs one.", markup=False)
