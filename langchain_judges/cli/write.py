"""`langchain-judges write`: write a text for every list of concepts in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langchain_judges.cli.judges import chat_model
from langchain_judges.cli.messages import address_of, error_console, refusals_as_exits
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Concurrency,
    DryRun,
    KeepFailed,
    Limit,
    MaxCalls,
    MaxTokens,
    Model,
    Preset,
    Results,
    Settings,
    SkipBad,
    Strict,
    Timeout,
)
from langchain_judges.cli.row_files import Sized, checked
from langchain_judges.cli.running import run_to_the_end
from langchain_judges.cli.settings import check_settable, set_options, settings_as_flags
from langchain_judges.cli.specs import check_model
from langchain_judges.datasets.row_file import PairsFile
from langchain_judges.rows.checks import check_task


def write(  # noqa: PLR0913 - one parameter for each option
    tasks: Annotated[Path, typer.Argument(help="JSONL file with concepts, instruction.")],
    model: Model,
    method: Annotated[str, typer.Option(help="bsm, or direct for the baselines.")] = "bsm",
    out: Results = None,
    preset: Preset = None,
    option: Settings = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    limit: Limit = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print every text; the default without --out.")
    ] = False,
    dry_run: DryRun = False,
    skip_bad: SkipBad = False,
    keep_failed: KeepFailed = False,
    strict: Strict = False,
) -> None:
    """Write a text that uses every concept of a list, for every list of a file.

    The same command resumes where it stopped. Exit codes: 0 done, 1 no text written, or
    failures under --strict, 2 wrong use or refused, 3 budget spent, 130 Ctrl-C.
    """
    from langchain_judges.methods.registry import options_of
    from langchain_judges.writing.registry import WRITERS, load_writer

    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address):
        settings = set_options(option or [])
        check_settable(WRITERS, method, settings)
        file = PairsFile(tasks, limit, check_task)
        rows = checked(file, skip_bad, errors, "list of concepts")
        with settings_as_flags(settings):
            calls = options_of(WRITERS, method, preset, settings).calls()
        _tell_texts(method, calls, rows, errors, is_local=model.partition(":")[0] == "local")
        if dry_run:
            check_model({"name": model, "base_url": base_url, "timeout": timeout}, errors)
            return
        with settings_as_flags(settings):
            chat = chat_model(model, base_url, timeout)
            writer = load_writer(method, chat, preset=preset, **settings)
        options = {
            "out": out,
            "max_concurrency": concurrency,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "keep_failed": keep_failed,
        }
        run_to_the_end(writer, Sized(file, rows), options, show or not out, strict, address)


def _tell_texts(method: str, calls: int, rows: int, errors: Console, *, is_local: bool) -> None:
    """Say how many calls the texts take at most, and what a small local model is worth."""
    texts = "text" if rows == 1 else "texts"
    errors.print(
        f"{rows:,} {texts} by {method}: at most {rows * calls:,} calls "
        f"({calls} for each text), excluding retries."
    )
    if is_local:
        errors.print(
            "A small local model shows how the method works; its texts are poor. "
            "Name a larger model for texts to read.",
            style="yellow",
        )
