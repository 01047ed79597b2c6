"""The model and the judge that flags or a file name: checked, what they will ask, made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from langchain_judges.cli.flags import PlanFlags, Settings
from langchain_judges.cli.messages import WORDS, say, warn
from langchain_judges.errors import ModelSetupError, OptionError
from langchain_judges.options import unknown_option
from langchain_judges.runs.summary import counted

if TYPE_CHECKING:
    from langchain_judges.asking.models import ModelSpec
    from langchain_judges.methods.registry import CallEstimate, Methods

# Options that only Python can set.
NOT_ON_A_SHELL = {
    *("cache", "checkpointer", "embeddings", "memory"),
    *("method", "model", "name", "store"),
}


def set_options(settings: Sequence[str] | None, parts: Sequence[str] = ()) -> dict[str, Any]:
    """The options that `--set` gave to a method, without those of parts as `PART.NAME`.

    Raises:
        OptionError: They make no sense on a shell.
    """
    given = [each for each in settings or () if each.partition(".")[0] not in parts]
    options = dict(map(setting, given))
    if beyond := NOT_ON_A_SHELL & {name.rpartition(".")[2] for name in options}:
        raise OptionError(f"--set takes no {sorted(beyond)!r}: these are for Python")
    return options


def options_of_part(part: str, settings: Sequence[str] | None) -> dict[str, Any]:
    """The options that `--set PART.NAME=VALUE` gave to a part of a command's work."""
    head = f"{part}."
    own = (each for each in settings or () if each.startswith(head))
    return dict(setting(each.removeprefix(head)) for each in own)


def setting(text: str) -> tuple[str, Any]:
    """The name and value of an option given as NAME=VALUE, the value as JSON or a text.

    Raises:
        OptionError: It begins as JSON does and is none.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    try:
        return name.strip(), json.loads(value)
    except ValueError as exc:
        if value.strip().startswith(("[", "{", '"')):
            begun = "a value that begins with [, { or a quote must be JSON"
            raise OptionError(f"--set {name}: {begun} ({exc}), got {value}") from exc
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


@dataclass(frozen=True)
class ModelFlags:
    """The model that a command asks.

    Attributes:
        model: local, local:/path.gguf or a name such as openai:gpt-5-mini; for a jury several,
            separated by commas.
        base_url: Address of an OpenAI-compatible server.
        option: An option of the method: NAME=VALUE, with VALUE as JSON, such as
            criteria='["Accuracy", "Tone"]'. langchain-judges show METHOD lists them. A setting
            of the model begins with model., such as model.timeout=900 (seconds).
    """

    model: str
    base_url: str | None = None
    option: Settings = None

    def spec_of(self, name: str) -> ModelSpec:
        """A model by its name and these flags; a key stays in the environment."""
        settings = options_of_part("model", self.option)
        spec: ModelSpec = {"name": name}
        if "timeout" in settings:
            spec["timeout"] = settings.pop("timeout")
        if self.base_url:
            spec["base_url"] = self.base_url
        if settings:
            spec["settings"] = settings
        return spec


def keyless(model: Any) -> Any:
    """A model of a spec, or each of several, made without a key where there is none."""
    from langchain_judges.asking.models import model_of_spec

    if isinstance(model, list):
        return [keyless(each) for each in model]
    if "name" not in model:
        return model
    try:
        return model_of_spec(model)
    except ModelSetupError:
        # Errors that are not about the key are raised again.
        return model_of_spec(model | {"settings": {**model.get("settings", {}), "api_key": "none"}})


def check_model(spec: ModelSpec) -> None:
    """Check that a model could be made, and say where its key is missing.

    Raises:
        ModelSetupError: The model is not known, or a package is missing.
    """
    from langchain_judges.asking.models import model_of_spec

    try:
        model_of_spec(spec)
    except ModelSetupError:
        keyless(spec)
        say(f"No key for {spec['name']} was found; asking needs one.")


def tell_plan(
    plan: CallEstimate,
    rows: int,
    size: int,
    run: PlanFlags,
    spec: Mapping[str, Any] | None = None,
    row: Mapping[str, Any] | None = None,
) -> None:
    """Print what a judge will ask about some rows; for a dry run also the cost.

    Args:
        plan: What is known of the judge.
        rows: How many there are.
        size: Bytes of all of their texts.
        run: Whether it is a dry run, and the prices.
        spec: The judge, whose requests for a row a dry run counts.
        row: The row.

    Raises:
        OptionError: There are no such prices.
    """
    calls = counted(rows * plan.calls, "call")
    say(WORDS["plan"].format(plan=plan, rows=counted(rows, plan.kind), calls=calls))
    if plan.is_local:
        warn(WORDS["local_model"])
    if not run.dry_run:
        return
    from langchain_judges.methods.registry import load_judge
    from langchain_judges.runs.prices import CallTokens, Prices, estimate

    if plan.more:
        say(WORDS["searched"].format(plan=plan))
    for model in {each.model["name"]: each.model for each in plan.asked}.values():
        check_model(model)
    known, each = Prices.read(run.prices) if run.prices else None, CallTokens()
    if spec and row:
        judge = load_judge({**spec, "model": keyless(spec["model"])})
        each = CallTokens.of(judge.show(row), row, plan.calls)
    cost = estimate(plan, n=rows, size=size, prices=known, each=each)
    cached = f" ({cost.cached_tokens / cost.input_tokens:.0%} from the provider's cache)"
    text = f"About {cost.input_tokens:,} input{cached if cost.cached_tokens else ''} and "
    text += f"{cost.output_tokens:,} output tokens"
    if known:
        price = "no price is known in" if cost.dollars is None else f"${cost.dollars:,.2f} by"
        text += f", {price} {known.source}"
    say(f"{text}; it may be off by half or double.")


# The methods that judge rows where none is named: the cheapest of each kind.
PAIRS, SINGLE_TEXTS = "relative", "rubric"


@dataclass(frozen=True)
class JudgeFlags(ModelFlags):
    """The judge that a command runs: what makes it, or a spec of it.

    Attributes:
        method: The judging method; langchain-judges show lists them. Default: rubric for single
            texts, relative for pairs.
        preset: A preset of the method; langchain-judges show METHOD lists them.
        spec: A judge as JSON, in place of method, model and options.
        memory: File of a memory of audited mistakes.
        tools: Python file whose LangChain tools the judge may call before it judges.
    """

    model: str | None = None  # type: ignore[assignment]  # a spec may be in its place
    method: str | None = None
    preset: str | None = None
    spec: Path | None = None
    memory: Path | None = None
    tools: Path | None = None
    parts: ClassVar[Sequence[str]] = ("model",)


def tools_in(path: Path) -> list[Any]:
    """The LangChain tools that a file of Python defines, which is run for it.

    Raises:
        OptionError: It cannot be run, or defines none.
    """
    import runpy

    from langchain_core.tools import BaseTool

    try:
        names = runpy.run_path(str(path))
    except (OSError, ImportError, SyntaxError) as exc:
        raise OptionError(f"--tools: {path} cannot be run: {exc}") from exc
    if not (tools := [each for each in names.values() if isinstance(each, BaseTool)]):
        raise OptionError(f"--tools: {path} defines no LangChain tool, as `@tool` makes one")
    return tools


def judge_spec(flags: JudgeFlags) -> dict[str, Any]:
    """The judge that flags or a file name, as `load_judge` takes it; nothing is made.

    Raises:
        OptionError: Both name one or none does, the file holds no JSON object, `--set` names
            no option, or there is no such memory: a misspelt one must not pass for an empty
            one.
    """
    from langchain_judges.methods.declaration import read_spec
    from langchain_judges.methods.registry import COMBINATIONS, METHODS

    if flags.spec is not None:
        own = (flags.model, flags.preset, flags.option)
        if any((*own, flags.memory, flags.tools, flags.base_url)):
            raise OptionError("--spec says what the judge is: name no other part of it")
        return read_spec(flags.spec)
    if not flags.model:
        raise OptionError("name a model by --model, or a judge by --spec")
    options, path = set_options(flags.option, flags.parts), flags.memory
    method = flags.method or PAIRS
    if flags.tools:
        options["tools"] = tools_in(flags.tools)
    check_settable(METHODS | COMBINATIONS, method, options)
    if path and not path.exists():
        raise OptionError(f"there is no memory at {path}; `langchain-judges audit` makes one")
    names = [name.strip() for name in flags.model.split(",") if name.strip()]
    if method not in COMBINATIONS:
        if len(names) > 1 and not flags.model.startswith("local"):
            several = " and ".join(COMBINATIONS)
            raise OptionError(f"{method} asks one model, got {names!r}; {several} take several")
        names = [flags.model]
    models = [flags.spec_of(name) for name in names]
    model = models if method in COMBINATIONS else models[0]
    if path:
        from langchain_judges.memory.failure_memory import FailureMemory

        options["memory"] = FailureMemory(path=path)
    preset = {"preset": flags.preset} if flags.preset else {}
    return {"method": method, "model": model, "options": options, **preset}
