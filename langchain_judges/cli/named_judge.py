"""The judge that a command runs: named by flags or a file, then planned or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_judges.cli.chat_models import check_model
from langchain_judges.cli.settings import (
    check_settable,
    set_options,
    setting,
    settings_as_flags,
)
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_judges.asking.models import ModelSpec
    from langchain_judges.cli.flag_groups import JudgeFlags
    from langchain_judges.memory.failure_memory import FailureMemory
    from langchain_judges.methods.describe import Outline
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.rows.checks import Kind


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

    @property
    def kind(self) -> Kind:
        """What it judges: pairs or single texts."""
        from langchain_judges.methods.registry import method_of

        return method_of(self.rows_like[0]).takes

    def outline(self, errors: Console | None = None) -> Outline:
        """Return what it takes and asks, and check its options.

        Args:
            errors: Of a dry run: its models are checked, and a missing key is mentioned here.

        Raises:
            OptionError: An option is not allowed.
            ModelSetupError: A model is not known.
        """
        from langchain_judges.methods.describe import outline

        with settings_as_flags(self.options):
            planned = outline(self._with_memory())
        if errors is None:
            return planned
        for model in {each.model["name"]: each.model for each in planned.asked}.values():
            check_model(model, errors)
        return planned

    def build(self, wrap: Callable[[BaseChatModel], BaseChatModel] | None = None) -> JudgeGraph:
        """Return the judge.

        Args:
            wrap: Takes its chat model and returns the one to ask.

        Raises:
            OptionError: An option is not allowed, or a judge of several models is wrapped.
            ModelSetupError: A model cannot be made.
        """
        from langchain_judges.asking.models import model_of_spec, resolve_model
        from langchain_judges.methods.describe import outline
        from langchain_judges.methods.registry import build

        with settings_as_flags(self.options):
            named = self._with_memory()
            outline(named)  # a wrong option is refused before a missing key is
            if wrap is None:
                return build(named)
            model = named["model"]
            if isinstance(model, list):
                raise several_models(named["method"], len(model))
            is_spec = isinstance(model, Mapping)
            chat = model_of_spec(cast("ModelSpec", model)) if is_spec else resolve_model(model)
            return build({**named, "model": wrap(chat)})

    def _with_memory(self) -> dict[str, Any]:
        if self.memory is None:
            return dict(self.spec)
        options = {**self.options, "memory": filled_memory(self.memory)}
        return {**self.spec, "options": options}


def named_judge(flags: JudgeFlags) -> NamedJudge:
    """Return the judge that flags or a file name.

    Raises:
        OptionError: Both name one or none does, the file holds no JSON object, or `--set`
            names no option.
    """
    from langchain_judges.methods.options import read_spec
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    if flags.spec is not None:
        if both := [name for name, value in _parts(flags).items() if value]:
            raise OptionError(f"--spec says what the judge is; leave {', '.join(both)} out")
        return NamedJudge(read_spec(flags.spec))
    if not flags.model:
        raise OptionError("name a model by --model, or a judge by --spec")
    options = set_options(flags.option or [])
    check_settable(METHODS | COMBINATIONS, flags.method, options)
    spec = {"method": flags.method, "model": model_spec(flags), "options": options}
    own = {"preset": flags.preset} if flags.preset else {}
    return NamedJudge({**spec, **own}, flags.memory)


def _parts(flags: JudgeFlags) -> dict[str, object]:
    """Return what a spec says in place of flags, by flag."""
    return {
        "--model": flags.model,
        "--preset": flags.preset,
        "--set": flags.option,
        "--base-url": flags.base_url,
        "--model-set": flags.model_set,
        "--memory": flags.memory,
    }


def model_spec(flags: JudgeFlags) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the model that flags name as a spec has it; of a judge made of judges a list.

    A key stays in the environment.
    """
    from langchain_judges.methods.registry import COMBINATIONS

    values = {
        "base_url": flags.base_url,
        "timeout": flags.timeout,
        "settings": dict(setting(each, "--model-set") for each in flags.model_set or ()),
    }
    shared = {name: value for name, value in values.items() if value}
    model = flags.model or ""
    if flags.method not in COMBINATIONS:
        return {"name": model, **shared}
    return [{"name": name.strip(), **shared} for name in model.split(",") if name.strip()]


def several_models(method: str, number: int) -> OptionError:
    """Return the refusal of a batch for a judge of several models."""
    return OptionError(f"--batch is for one model; {method!r} has {number}")


def open_memory(folder: Path) -> FailureMemory:
    """Return the memory that a folder holds; it is made if it is missing."""
    from langchain_judges.memory.failure_memory import FailureMemory

    return FailureMemory(path=folder)


def filled_memory(folder: Path) -> FailureMemory:
    """Return the memory that a folder holds.

    Raises:
        OptionError: The folder is missing: a misspelt one must not pass for an empty memory.
    """
    if not folder.exists():
        raise OptionError(f"there is no memory at {folder}; `langchain-judges audit` makes one")
    return open_memory(folder)
