"""Flags that belong together: which model, which judge, which rows, how far a run goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.chat_models import chat_model, check_model
from langchain_judges.cli.flags import (
    SECONDS,
    BaseUrl,
    Columns,
    Concurrency,
    DryRun,
    KeepFailed,
    MaxCalls,
    Method,
    Model,
    OptionalModel,
    Preset,
    Settings,
    Strict,
    Timeout,
    flag,
)
from langchain_judges.cli.messages import address_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_judges.asking.models import ModelSpec


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
        Path | None, typer.Option(help="Folder of a memory of audited mistakes.")
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
class RowFlags:
    """The rows of a table that a command takes."""

    column: Columns = None
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first rows only.")] = None
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")
    ] = False


@dataclass(frozen=True)
class RunFlags:
    """How far a run over many rows goes, and what its end is."""

    max_concurrency: Concurrency = None
    max_calls: MaxCalls = None
    max_tokens: Annotated[int | None, flag("max_tokens")] = None
    prices: Annotated[Path | None, flag("prices", "--prices")] = None
    dry_run: DryRun = False
    keep_failed: KeepFailed = False
    strict: Strict = False

    def options(self) -> dict[str, Any]:
        """Return what was set, as options of a run in Python."""
        options = {
            "max_concurrency": self.max_concurrency,
            "max_calls": self.max_calls,
            "max_tokens": self.max_tokens,
            "prices": self.prices and str(self.prices),
            "keep_failed": self.keep_failed,
        }
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True)
class DryRunFlags:
    """A dry run, of a command that reports no cost otherwise."""

    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices", help="Prices of tokens for --dry-run: a JSON file, or genai-prices."
        ),
    ] = None
    dry_run: DryRun = False
