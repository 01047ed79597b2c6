"""The model and the judge that flags or a file name: checked, what they will ask, made."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from langchain_judges.cli.flags import (
    SECONDS,
    BaseUrl,
    Method,
    Model,
    OptionalModel,
    PlanFlags,
    Preset,
    Settings,
    Timeout,
)
from langchain_judges.cli.messages import say, warn
from langchain_judges.errors import ModelSetupError, OptionError
from langchain_judges.options import unknown_option
from langchain_judges.runs.summary import counted

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

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


def set_options(settings: Sequence[str] | None) -> dict[str, object]:
    """Return the options that `--set` gave; some make no sense on a shell."""
    options = dict(setting(each) for each in settings or ())
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
    _say_keyless(model)
    return chat


def _say_keyless(model: str) -> None:
    say(f"No key for {model} was found; asking needs one.")


def check_model(spec: ModelSpec) -> None:
    """Check that a model could be made, as far as that takes no key.

    Models at an address, and OpenAI's, are not made: their library takes longer to load than
    all else that a dry run needs.

    Raises:
        ModelSetupError: The model is not known, or a package is missing.
    """
    from langchain_judges.asking.models import own_address

    name, address = spec["name"], spec.get("base_url")
    is_openai = name.startswith(("openai:", "gpt-"))
    if not is_openai and not str(address).startswith(("http://", "https://")):
        chat_model(name, address, spec.get("timeout", SECONDS), dry_run=True)
    elif is_openai and not (address or own_address() or os.environ.get("OPENAI_API_KEY")):
        _say_keyless(name)


def tell_calls(method: str, kind: str, calls: int, rows: int, *, is_local: bool) -> None:
    """Say how many calls the rows take at most, and what a small local model is worth."""
    say(
        f"{counted(rows, kind)} by {method}: at most {counted(rows * calls, 'call')} "
        f"({calls} for each {kind}), excluding retries."
    )
    if is_local:
        warn(
            "A small local model shows how the method works; its answers are poor. Name a "
            "larger model for answers to rely on."
        )


def tell_cost(
    judge: object, rows: int, size: int, prices: Path | None, *, batch: bool = False
) -> None:
    """Say about how many tokens some rows take, and dollars where prices are known.

    Args:
        judge: A judge, or what is known of it.
        rows: How many there are.
        size: Bytes of all of their texts.
        prices: The file of the prices, or the name of a table.
        batch: Whether calls become jobs.

    Raises:
        OptionError: There are no such prices.
    """
    from langchain_judges.runs.prices import Prices, estimate

    known = Prices.read(str(prices)) if prices else None
    tier = "batch" if batch else None
    cost = estimate(judge, n=rows, size=size, prices=known, tier=tier)
    cached = f" ({cost.cached_tokens / cost.input_tokens:.0%} from the provider's cache)"
    text = f"About {cost.input_tokens:,} input{cached if cost.cached_tokens else ''} and "
    text += f"{cost.output_tokens:,} output tokens"
    if known:
        price = "no price is known in" if cost.dollars is None else f"${cost.dollars:,.2f} by"
        text += f", {price} {known.source}"
    say(f"{text}; it may be off by half or double.")


def tell_plan(
    plan: Outline, rows: int, size: int, run: PlanFlags, *, batch: bool = False
) -> None:
    """Say what a judge will ask about some rows; of a dry run, what that may cost."""
    tell_calls(plan.method, plan.kind, plan.calls, rows, is_local=plan.is_local)
    if run.dry_run:
        for model in {each.model["name"]: each.model for each in plan.asked}.values():
            check_model(model)
        tell_cost(plan, rows, size, run.prices, batch=batch)


@dataclass(frozen=True)
class ModelFlags:
    """The model that a command asks."""

    model: Model
    base_url: BaseUrl = None
    timeout: Timeout = SECONDS

    def outline(self, method: str, calls: int) -> Outline:
        """Return a plan of so many calls of this model for each item."""
        from langchain_judges.methods.describe import Asked, Outline

        model: ModelSpec = {"name": self.model, "timeout": self.timeout}
        if self.base_url:
            model["base_url"] = self.base_url
        return Outline(method, "item", (Asked(calls, model),))

    def chat(self, *, dry_run: bool = False) -> BaseChatModel:
        """Return the model; a dry run asks nothing, so it needs no key."""
        return chat_model(self.model, self.base_url, self.timeout, dry_run=dry_run)


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


@dataclass(frozen=True)
class NamedJudge:
    """The judge that a file or flags name; nothing of it is made yet."""

    spec: Mapping[str, Any]
    """As `load_judge` takes it."""
    memory: FailureMemory | None = None

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

    @property
    def _whole(self) -> dict[str, Any]:
        if self.memory is None:
            return dict(self.spec)
        options = {**(self.spec.get("options") or {}), "memory": self.memory}
        return {**self.spec, "options": options}

    def outline(self) -> Outline:
        """Return what it takes and asks, and check its options.

        Raises:
            OptionError: An option is not allowed.
        """
        from langchain_judges.methods.describe import outline

        return outline(self._whole)

    def build(self, wrap: Callable[[BaseChatModel], BaseChatModel] | None = None) -> JudgeGraph:
        """Return the judge.

        Args:
            wrap: Takes its chat model and returns the one to ask.

        Raises:
            OptionError: An option is not allowed, or a judge of several models is wrapped.
            ModelSetupError: A model cannot be made.
        """
        from langchain_judges.asking.models import model_of_spec, resolve_model
        from langchain_judges.methods.registry import load_judge

        self.outline()  # a wrong option is refused before a missing key is
        model = self.spec["model"]
        if wrap is None:
            return load_judge(self._whole)
        if isinstance(model, list):
            raise several_models(self.spec["method"], len(model))
        is_spec = isinstance(model, Mapping)
        chat = model_of_spec(cast("ModelSpec", model)) if is_spec else resolve_model(model)
        return load_judge({**self._whole, "model": wrap(chat)})


def named_judge(flags: JudgeFlags) -> NamedJudge:
    """Return the judge that flags or a file name.

    Raises:
        OptionError: Both name one or none does, the file holds no JSON object, `--set` names
            no option, or there is no such memory.
    """
    from langchain_judges.methods.declaration import read_spec
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    if flags.spec is not None:
        own = (flags.model, flags.preset, flags.option, flags.model_set, flags.memory)
        if any(own) or flags.base_url:
            raise OptionError("--spec says what the judge is: name no other part of it")
        return NamedJudge(read_spec(flags.spec))
    if not flags.model:
        raise OptionError("name a model by --model, or a judge by --spec")
    options = set_options(flags.option)
    check_settable(METHODS | COMBINATIONS, flags.method, options)
    spec = {"method": flags.method, "model": _model_spec(flags), "options": options}
    preset = {"preset": flags.preset} if flags.preset else {}
    memory = filled_memory(flags.memory) if flags.memory else None
    return NamedJudge({**spec, **preset}, memory)


def _model_spec(flags: JudgeFlags) -> dict[str, Any] | list[dict[str, Any]]:
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
