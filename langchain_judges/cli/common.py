"""What commands share: reading rows, building judges, running them until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

import typer
from rich.console import Console

from langchain_judges.cli.hints import hint
from langchain_judges.datasets.row_file import Check, PairsFile, PairsSet, open_rows
from langchain_judges.errors import InputError, JudgeError, ModelSetupError, OptionError
from langchain_judges.options import unknown_option
from langchain_judges.rows.console import InertConsole
from langchain_judges.rows.labels import check_annotations
from langchain_judges.rows.texts import check_item, check_pair

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.methods.registry import Methods
    from langchain_judges.runs.summary import Summary

_UNREACHED = re.compile("connect|time(d )?out", re.I)
NOT_ON_A_SHELL = {
    "cache",
    "checkpointer",
    "embeddings",
    "memory",
    "method",
    "model",
    "name",
    "prompts",
    "store",
}
"""Options that only Python can set."""
FAILED, MISUSED, SPENT, UNDER_BAR, INTERRUPTED = 1, 2, 3, 4, 130
"""Exit codes: nothing was judged, or failures under `--strict`; wrong use; a spent budget;
Ctrl-C."""


def error_console() -> Console:
    """Return where commands say what they do and what is wrong."""
    return InertConsole(stderr=True, highlight=False, soft_wrap=True)


def table_console() -> Console:
    """Return where tables of many columns go; a file or a pipe has no edge to fit into."""
    edge = sys.stdout.isatty() or "COLUMNS" in os.environ
    return InertConsole(highlight=False, width=None if edge else 240)


def checked(
    file: PairsFile, skip_bad: bool, errors: Console, work: str = "pair to judge"
) -> int:
    """Return how many good rows there are; stop, or list them, where there are bad ones."""
    there = isinstance(file, PairsSet)
    if not there and not file.path.exists():
        problem = f"There is no file {file.path}, and no public data set has this name."
        errors.print(problem, style="red", markup=False)
        raise typer.Exit(MISUSED)
    if not there and not file.path.is_file():
        problem = f"{file.path} is neither a file nor a folder named after a public data set."
        errors.print(problem, style="red", markup=False)
        raise typer.Exit(MISUSED)
    rows = file.count()
    _name_bad(file, "row" if there else "line", errors)
    if file.bad and not skip_bad:
        errors.print(
            f"{len(file.bad)} of {rows + len(file.bad)} rows are bad; nothing was asked. "
            "Fix them, or skip them with --skip-bad.",
            style="red",
        )
        if words := hint([problem for _, problem in file.bad]):
            errors.print(words, markup=False)
        raise typer.Exit(MISUSED)
    if not rows:
        errors.print(f"{file.path} has no {work}.", style="red", markup=False)
        raise typer.Exit(MISUSED)
    if file.bad:
        errors.print(f"Bad rows left out: {len(file.bad):,}.")
    if file.repeated:
        errors.print(
            f"Rows with the id of an earlier row: {file.repeated:,}; each counts as a row.",
            style="yellow",
        )
    return rows


def _name_bad(file: PairsFile, what: str, errors: Console) -> None:
    if len(file.bad) > 1 and len({problem for _, problem in file.bad}) == 1:
        (first, problem), more = file.bad[0], len(file.bad) - 1
        line = f"{file.path}, {what} {first} and {more:,} more: {problem}"
        errors.print(line, markup=False)
        return
    for number, problem in file.bad[:20]:
        errors.print(f"{file.path}, {what} {number}: {problem}", markup=False)
    if len(file.bad) > 20:
        errors.print(f"… and {len(file.bad) - 20} more bad lines")


def build_judge(
    method: str,
    chat: Any,
    preset: str | None,
    options: Mapping[str, Any],
    **more: Any,
) -> Any:
    """Create the judge that a command asks for; `more` are options that `--set` cannot set."""
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, load_judge

    check_settable(METHODS | COMBINATIONS, method, options)
    with settings_named(options):
        return load_judge(method, chat, preset=preset, **options, **more)


@contextlib.contextmanager
def settings_named(options: Mapping[str, Any]) -> Iterator[None]:
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
    # What is wrong but for the key is said as it would be without a dry run.
    chat = resolve_model(
        model, base_url=base_url, api_key="none", timeout=timeout, settings=more
    )
    error_console().print(f"No key for {model} was found; asking needs one.", markup=False)
    return chat


def models_of(method: str, model: str, *args: Any, **more: Any) -> Any:
    """Return the model that a command names; of a judge made of judges, a list of them."""
    from langchain_judges.methods.registry import COMBINATIONS

    models = [chat_model(name, *args, **more) for name in names_of(method, model)]
    return models if method in COMBINATIONS else models[0]


def names_of(method: str, model: str) -> list[str]:
    """Return the models that `--model` names: several only for a judge made of judges."""
    from langchain_judges.methods.registry import COMBINATIONS

    if method not in COMBINATIONS:
        return [model]
    return [name.strip() for name in model.split(",") if name.strip()]


def set_options(settings: list[str]) -> dict[str, Any]:
    """Return the options that `--set` gave; some make no sense on a shell."""
    options = dict(setting(each) for each in settings)
    if beyond := NOT_ON_A_SHELL & {name.rpartition(".")[2] for name in options}:
        raise OptionError(f"--set takes no {sorted(beyond)!r}: these are for Python")
    return options


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


def rows_of(
    path: Path,
    method: str,
    limit: int | None,
    columns: Sequence[str] | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> PairsFile:
    """Return the rows that a method judges, pairs or items, yet unread."""
    check = check_of(method, preset, settings or {})
    return open_rows(path, limit, check, named_columns(columns))


def kind_of(method: str, options: Mapping[str, Any] | None = None) -> str:
    """Return what a method judges with these options: `pair` or `item`.

    Raises:
        OptionError: There is no such method.
    """
    from langchain_judges.methods.registry import kind_of_rows

    return kind_of_rows(method, options or {})


def check_of(method: str, preset: str | None, options: Mapping[str, Any]) -> Check:
    """Return the check of a row by what its judge will need of it.

    It reads the label of an item as one of the judge's.

    Raises:
        OptionError: There is no such method: rows that another one takes must not seem bad.
    """
    from langchain_judges.methods.registry import kind_of_rows, method_of
    from langchain_judges.methods.rubric.options import LabelOptions

    method_options = method_of(method)
    if kind_of_rows(method, options) == "pair":
        return check_labelled_pair
    chosen = {**method_options.presets.get(preset or "", {}), **options}
    if isinstance(labels := chosen.get("labels"), str):
        hint = json_hint("labels", labels)
        raise OptionError(f"`--set labels` must be a list, got {labels!r}{hint}")
    own = method_options(**chosen)
    # What the members of a jury need of a row, each says itself.
    labelled = own if isinstance(own, LabelOptions) else None
    by_text = {str(label): label for label in labelled.known_labels} if labelled else {}

    def check_labelled_item(row: object) -> None:
        check_item(row)
        item = cast("dict[str, Any]", row)
        if labelled:
            labelled.check(item)
        check_annotations(item)
        label = item.get("label")
        if isinstance(label, str) and label and by_text and label not in by_text:
            raise InputError(f"`label` must be one of {', '.join(by_text)}, got {label!r}")
        if label is not None:
            # A cell of CSV has no type: 1 may be the judge's "1", and "1" its 1.
            item["label"] = by_text.get(str(label), label)

    return check_labelled_item


def check_labelled_pair(row: object) -> None:
    """Check a pair and what people know of it.

    Raises:
        InputError: A field cannot be used.
    """
    check_pair(row)
    check_annotations(cast("dict[str, Any]", row))


def named_columns(columns: Sequence[str] | None) -> dict[str, str] | None:
    """Return the columns that `--column` named, by field; None if it named none."""
    named: dict[str, str] = {}
    for each in columns or ():
        field, equals, column = each.partition("=")
        if not equals:
            raise OptionError(f"--column takes FIELD=COLUMN, got {each!r}")
        named[field.strip()] = column
    return named or None


def open_memory(folder: Path) -> Any:
    """Return the memory that a folder holds; it is made if it is missing."""
    from langchain_judges.memory.failures import FailureMemory

    return FailureMemory(path=folder)


def filled_memory(folder: Path) -> Any:
    """Return the memory that a folder holds.

    Raises:
        OptionError: The folder is missing: a misspelt one must not pass for an empty memory.
    """
    if not folder.exists():
        raise OptionError(f"there is no memory at {folder}; `langchain-judges audit` makes one")
    return open_memory(folder)


def tell_refusal(exc: JudgeError, errors: Console, address: str = "") -> None:
    """Print why a command was refused, and which server could not be reached."""
    at = f" ({address})" if address and _UNREACHED.search(str(exc)) else ""
    errors.print(f"{exc}{at}", style="red", markup=False)


def tell_undone(
    undone: int, rows: int, causes: Counter[str], errors: Console, address: str = ""
) -> None:
    """Print how many rows were not judged, and the commonest reason."""
    if not undone:
        return
    cause, times = causes.most_common(1)[0] if causes else ("unknown", undone)
    at = f" ({address})" if address and _UNREACHED.search(cause) else ""
    errors.print(
        f"{undone:,} of {rows:,} rows could not be judged; {times:,} by {cause}{at}",
        style="yellow",
        markup=False,
    )


def tell_stopped(errors: Console, *, saved: bool = True) -> None:
    """Print what becomes of a run that Ctrl-C ended."""
    promise = (
        "the same command resumes where it stopped" if saved else "without -o nothing is saved"
    )
    errors.print(f"Stopped; {promise}.")


def end_stopped(errors: Console, *, saved: bool = True) -> NoReturn:
    """End the process at once: a reply may be minutes away, and threads cannot be ended."""
    tell_stopped(errors, saved=saved)
    sys.stdout.flush()
    os._exit(INTERRUPTED)


def kept_apart(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Check that a command writes over nothing that it reads.

    Raises:
        OptionError: It would.
    """
    own = {path.resolve() for path in read if path}
    for path in written:
        if path and path.resolve() in own:
            raise OptionError(f"{path} is read by this command; name another file to write")


def address_of(model: str | None, base_url: str | None) -> str:
    """Return the address of a model's server as far as it was named, without any secret."""
    if base_url is None and str(model).startswith(("openai:", "gpt-")):
        base_url = os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
    if not base_url:
        return ""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def setting(text: str, option: str = "--set") -> tuple[str, Any]:
    """Return the name and value of an option given as NAME=VALUE, the value as JSON."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


class Sized:
    """Rows read as they are wanted, whose number is known."""

    def __init__(self, file: PairsFile, rows: int) -> None:
        """Promise that `file` yields so many rows."""
        self._file = file
        self._rows = rows

    def __iter__(self) -> Any:
        return iter(self._file)

    def __length_hint__(self) -> int:
        return self._rows


def run_to_the_end(
    worker: Any,
    rows: Any,
    options: dict[str, Any],
    show: bool,
    strict: bool,
    address: str = "",
) -> None:
    """Run a judge or writer over the rows and leave with the code that tells the end."""
    summary, interrupted = asyncio.run(run_rows(worker, rows, options, show))
    leave_with(summary, strict, address, interrupted=interrupted, saved=bool(options["out"]))


def leave_with(
    summary: Summary,
    strict: bool,
    address: str,
    *,
    interrupted: bool = False,
    saved: bool = True,
) -> None:
    """Tell what was not judged, and leave with the code that tells the end."""
    errors = error_console()
    undone = sum(summary.not_judged.values())
    tell_undone(undone, summary.rows, summary.causes, errors, address)
    if interrupted:
        tell_stopped(errors, saved=saved)
        raise typer.Exit(INTERRUPTED)
    if summary.not_judged["over_budget"]:
        raise typer.Exit(SPENT)
    if undone == summary.rows or (strict and summary.failures):
        raise typer.Exit(FAILED)


async def run_rows(
    judge: Any,
    pairs: Any,
    options: dict[str, Any],
    show: bool,
    collect: Callable[[dict[str, Any]], object] | None = None,
) -> tuple[Any, bool]:
    """Run the judge over the pairs; return the summary and whether Ctrl-C ended it.

    `collect` gets every row as it comes.
    """
    from langchain_judges.report.terminal import summary_table, text_panel, verdict_panel
    from langchain_judges.runs.many import ajudge_many

    console = InertConsole(highlight=False)
    run = ajudge_many(judge, pairs, **options)
    pressed: list[int] = []

    def interrupt() -> None:
        if pressed:
            # A reply may still be minutes away, and threads cannot be ended.
            os._exit(INTERRUPTED)
        pressed.append(1)
        InertConsole(stderr=True).print(
            "Stopping: calls in flight may finish. Press Ctrl-C again to stop at once."
        )
        run.stop()

    with contextlib.suppress(NotImplementedError):  # no such handlers on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    try:
        async for row in run:
            if show:
                console.print(text_panel(row) if row["kind"] == "task" else verdict_panel(row))
            if collect:
                collect(row)
    finally:
        if run.summary.rows:
            console.print(summary_table(run.summary))
    return run.summary, bool(pressed)
