"""The model and the judge that flags or a file name: checked, planned, made."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from langchain_judges.cli.flags import (
    SECONDS,
    BaseUrl,
    Method,
    Model,
    OptionalModel,
    Preset,
    Settings,
    Timeout,
)
from langchain_judges.cli.messages import address_of, error_console
from langchain_judges.errors import ModelSetupError, OptionError
from langchain_judges.options import unknown_option

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_judges.asking.models import ModelSpec
    from langchain_judges.memory.failure_memory import FailureMemory
    from langchain_judges.methods.describe import Outline
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.methods.registry import Methods
    from langchain_judges.rows.checks import Kind

NOT_ON_A_SHELL = {
    "cache",
    "checkpointer",
    "embeddings",
    "memory",
    "method",
    "model",
    "name",
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
    # Errors that are not about the key are raised as they are without a dry run.
    chat = resolve_model(
        model, base_url=base_url, api_key="none", timeout=timeout, settings=more
    )
    error_console().print(f"No key for {model} was found; asking needs one.", markup=False)
    return chat


def check_model(spec: ModelSpec, errors: Console) -> None:
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


@dataclass(frozen=True)
class ModelFlags:
    """The model that a command asks."""

    model: Model
    base_url: BaseUrl = None
    timeout: Timeout = SECONDS

    @property
    def address(self) -> str:
        """The address of its server, for messages."""
        return address_of(self.model, self.base_url)

    def chat(self, *, dry_run: bool = False) -> BaseChatModel:
        """Return the model; a dry run asks nothing, so it needs no key."""
        return chat_model(self.model, self.base_url, self.timeout, dry_run=dry_run)

    def check(self, errors: Console) -> None:
        """Check that the model could be made, as far as that takes no key."""
        model: ModelSpec = {"name": self.model, "timeout": self.timeout}
        if self.base_url:
            model["base_url"] = self.base_url
        check_model(model, errors)


@dataclass(frozen=True)
class JudgeFlags:
    """The judge that a command runs: what makes it, or a spec of it."""

    model: OptionalModel = None
    method: Method = "bsm"
    preset: Preset = None
    option: Settings = None
    spec: Annotated[
        Path | None,
        typer.Option(help="A judge as JSON: method, model, options; in place of these."),
    ] = None
    model_set: Annotated[
        list[str] | None,
        typer.Option(
            "--model-set",
            metavar="NAME=VALUE",
            help="A setting of the model: NAME=VALUE, such as reasoning_effort=low; repeat it "
            "for several.",
        ),
    ] = None
    memory: Annotated[
        Path | None, typer.Option(help="File of a memory of audited mistakes.")
    ] = None
    base_url: BaseUrl = None
    timeout: Timeout = SECONDS

    @property
    def address(self) -> str:
        """The address of its model's server, for messages."""
        return address_of(self.model, self.base_url)


@dataclass(frozen=True)
class ModelJudgeFlags(JudgeFlags):
    """A judge whose model must be named."""

    model: Model = field()  # without `field()` it would keep the default None


@dataclass(frozen=True)
class NamedJudge:
    """The judge that a file or flags name; nothing of it is made yet."""

    spec: Mapping[str, Any]
    """As `load_judge` takes it."""
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
        from langchain_judges.methods.registry import load_judge

        with settings_as_flags(self.options):
            named = self._with_memory()
            outline(named)  # a wrong option is refused before a missing key is
            if wrap is None:
                return load_judge(named)
            model = named["model"]
            if isinstance(model, list):
                raise several_models(named["method"], len(model))
            is_spec = isinstance(model, Mapping)
            chat = model_of_spec(cast("ModelSpec", model)) if is_spec else resolve_model(model)
            return load_judge({**named, "model": wrap(chat)})

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
    from langchain_judges.methods.declaration import read_spec
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


def open_memory(path: Path) -> FailureMemory:
    """Return the memory that a file holds; it is made if it is missing."""
    from langchain_judges.memory.failure_memory import FailureMemory

    return FailureMemory(path=path)


def filled_memory(path: Path) -> FailureMemory:
    """Return the memory that a file holds.

    Raises:
        OptionError: The file is missing: a misspelt one must not pass for an empty memory.
    """
    if not path.exists():
        raise OptionError(f"there is no memory at {path}; `langchain-judges audit` makes one")
    return open_memory(path)
