"""What a command will ask, said before anything is asked: calls, tokens, dollars."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import typer
from rich.console import Console

from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.judges import json_hint
from langchain_judges.cli.messages import MISUSED
from langchain_judges.datasets import names as set_names
from langchain_judges.datasets.row_file import PairsFile, PairsSet, ValueCheck, open_rows
from langchain_judges.errors import InputError, LongRowWarning, OptionError, did_you_mean
from langchain_judges.rows.checks import check_item, check_pair
from langchain_judges.rows.files import nearest_file, read_table
from langchain_judges.rows.labels import check_annotations
from langchain_judges.runs.columns import FIELDS, understood
from langchain_judges.runs.sources import Source, source_of

if TYPE_CHECKING:
    from langchain_judges.methods.describe import Outline
    from langchain_judges.runs.prices import Prices as PriceList


class Amount(NamedTuple):
    """The rows that are to be judged."""

    rows: Iterable[Mapping[str, object]]
    number: int
    size: int
    """Bytes of all of their texts."""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]]) -> Amount:
        """Return how much some rows are."""
        from langchain_judges.asking.tokens import bytes_of
        from langchain_judges.rows.texts import texts_read

        return cls(rows, len(rows), sum(bytes_of(texts_read(row)) for row in rows))


def tell_calls(
    method: str, kind: str, calls: int, rows: int, errors: Console, *, is_local: bool
) -> None:
    """Say how many calls the rows take at most, and what a small local model is worth."""
    errors.print(
        f"{rows:,} {kind if rows == 1 else kind + 's'} by {method}: at most "
        f"{rows * calls:,} calls ({calls} for each {kind}), excluding retries."
    )
    if is_local:
        errors.print(
            "A small local model shows how the method works; its verdicts are poor. "
            "Name a larger model for verdicts to rely on.",
            style="yellow",
        )


def _tell_estimate(
    judge: Outline,
    amount: Amount,
    prices: PriceList | None,
    errors: Console,
    *,
    batch: bool,
) -> None:
    """Say about how many tokens the rows take, and dollars where prices are known."""
    from langchain_judges.runs.prices import estimate

    tier = "batch" if batch else None
    rows, number, size = amount
    cost = estimate(judge, rows, n=number, size=size, prices=prices, tier=tier)
    text = f"About {cost.input_tokens:,} input and {cost.output_tokens:,} output tokens"
    if prices:
        price = "no price is known in" if cost.dollars is None else f"${cost.dollars:,.2f} by"
        text += f", {price} {prices.source}"
    errors.print(f"{text}; {cost.counted}.", markup=False)


def tell_dry_run(
    judge: Outline,
    amount: Amount,
    prices: Path | None,
    errors: Console,
    *,
    batch: bool = False,
) -> None:
    """Say what a run over some rows will ask and may cost."""
    each, local = judge.calls, judge.is_local
    tell_calls(judge.method, judge.kind, each, amount.number, errors, is_local=local)
    _tell_estimate(judge, amount, price_list(prices), errors, batch=batch)


def price_list(path: Path | None) -> PriceList | None:
    """Return the prices that a file or the name of a table gives."""
    if path is None:
        return None
    from langchain_judges.runs.prices import Prices

    return Prices.read(str(path))


def longest_of(rows: Iterable[Mapping[str, object]]) -> int:
    """Return the bytes of the longest of some rows."""
    from langchain_judges.asking.tokens import bytes_of
    from langchain_judges.rows.texts import texts_read

    return max((bytes_of(texts_read(row)) for row in rows), default=0)


def warn_of_size(longest: int, errors: Console) -> None:
    """Warn where a row is so long that many models refuse it; the run does not repeat it.

    Args:
        longest: Bytes of the longest row.
        errors: Where to say it.
    """
    from langchain_judges.runs.rows import long_row

    # Here it is one sentence about all rows, before the first is sent.
    warnings.simplefilter("ignore", LongRowWarning)
    if text := long_row(longest):
        errors.print(text, style="yellow")


_MISSING = re.compile(r"^the field `(\w+)` is missing or null; the fields are (.*)$")
_USUAL = {
    "input": ("question", "prompt", "query", "instruction", "task", "request"),
    "output": ("answer", "response", "prediction", "completion", "reply", "text"),
    "output_a": ("a", "answer_a", "response_a", "text_a", "chosen", "output_1"),
    "output_b": ("b", "answer_b", "response_b", "text_b", "rejected", "output_2"),
    "source": ("context", "contexts", "document", "documents"),
    "expected": ("reference", "ground_truth", "expected_output", "target"),
}
"""Usual names of columns, by the field that they stand for."""
_NOTHING = "there is nothing to judge by"
_GIVE = {
    "(`source`)": "Name the column of the source, as in --column source=contexts.",
    "(`expected`)": "Name the column of the reference, as in --column expected=answer.",
    "`rubric`)": "Say what to judge by, as in --set rubric='Is the reply polite?' or "
    "--set rubric=helpfulness; to the members of a jury or cascade as in "
    '--set methods=\'[{"method": "rubric", "options": {"rubric": "helpfulness"}}]\'.',
}
"""What to add to the command where rows lack what they are judged by, by what they lack."""


def row_hint(problems: Sequence[str]) -> str:
    """Return what to add to the command if every bad row lacks the same, or nothing."""
    first = problems[0] if len(set(problems)) == 1 else ""
    if first.startswith(_NOTHING):
        return next((words for end, words in _GIVE.items() if first.endswith(end)), "")
    if not (match := _MISSING.match(first)):
        return ""
    field, columns = match[1], re.findall(r"'([^']*)'", match[2])
    if field in ("output_a", "output_b") and "output" in columns:
        return "These rows are single texts: name a method for them, such as --method rubric."
    if field == "output" and "output_a" in columns:
        return "These rows are pairs: name a method for them, such as --method bsm."
    by_lower = {column.lower(): column for column in columns}
    usual = (by_lower[name] for name in _USUAL.get(field, ()) if name in by_lower)
    return f"Name its column, as in --column {field}={next(usual, 'COLUMN')}."


@dataclass(frozen=True)
class CheckedRows:
    """The good rows of a file, read as they are wanted."""

    file: PairsFile
    number: int

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the rows."""
        return iter(self.file)

    def __length_hint__(self) -> int:
        """Return how many there are: runs show how far they are."""
        return self.number

    @property
    def amount(self) -> Amount:
        """How much they are, for an estimate."""
        return Amount(self.file, self.number, self.file.size)


def checked_rows(
    file: PairsFile, skip_bad: bool, errors: Console, work: str = "pair to judge"
) -> CheckedRows:
    """Return the good rows; list the bad ones, and stop unless they are to be left out."""
    if not isinstance(file, PairsSet):
        _check_path(file.path, errors)
    rows = file.count()
    _name_bad(file, errors)
    if file.bad and not skip_bad:
        hint = row_hint([problem for _, problem in file.bad])
        text = (
            f"{len(file.bad)} of {rows + len(file.bad)} rows are bad; nothing was asked. "
            "Fix them, or skip them with --skip-bad."
        )
        _stop(text, errors, hint)
    if not rows:
        _stop(f"{file.path} has no {work}.", errors)
    if file.bad:
        errors.print(f"Bad rows left out: {len(file.bad):,}.")
    if file.repeated:
        errors.print(
            f"Rows with the id of an earlier row: {file.repeated:,}; each counts as a row.",
            style="yellow",
        )
    return CheckedRows(file, rows)


def _check_path(path: Path, errors: Console) -> None:
    if not path.exists():
        nearest = nearest_file(path, set_names()) or "."
        text = f"There is no file {path}, and no public data set has this name{nearest}"
        _stop(text, errors)
    if not path.is_file():
        text = f"{path} is neither a file nor a folder named after a public data set."
        _stop(text, errors)


def _stop(text: str, errors: Console, hint: str = "") -> NoReturn:
    errors.print(text, style="red", markup=False)
    if hint:
        errors.print(hint, markup=False)
    raise typer.Exit(MISUSED)


def _name_bad(file: PairsFile, errors: Console) -> None:
    if len(file.bad) > 1 and len({problem for _, problem in file.bad}) == 1:
        (first, problem), more = file.bad[0], len(file.bad) - 1
        line = f"{file.path}, {file.noun} {first} and {more:,} more: {problem}"
        errors.print(line, markup=False)
        return
    for number, problem in file.bad[:20]:
        errors.print(f"{file.path}, {file.noun} {number}: {problem}", markup=False)
    if len(file.bad) > 20:
        errors.print(f"… and {len(file.bad) - 20} more bad lines")


def rows_of(path: Path, check: ValueCheck, flags: RowFlags) -> PairsFile:
    """Return the rows of a table or set that the flags choose, yet unread."""
    return open_rows(path, flags.limit, check, named_columns(flags.column))


def judge_rows(
    path: Path, judge: tuple[str, str | None, Mapping[str, object]], flags: RowFlags
) -> PairsFile:
    """Return the rows that a judge takes, pairs or items, yet unread.

    Args:
        path: The table or set.
        judge: Its method, preset and options.
        flags: Which rows.
    """
    from langchain_judges.methods.registry import kind_of_rows

    check, columns = check_of(*judge), named_columns(flags.column)
    if path.is_file():
        method, _, options = judge
        columns = _usual_columns(path, columns, kind_of_rows(method, options))
    return open_rows(path, flags.limit, check, columns)


def _usual_columns(path: Path, columns: Any, takes: str) -> Any:
    """Return the columns that were named, and those with a usual name."""
    try:
        first = next(read_table(path), None)
        return columns if first is None else understood(list(first), columns, takes) or None
    except InputError:
        return columns


def raw_source(rows: CheckedRows) -> Source:
    """Return the records of a table as they came, as many as are to be judged."""
    file = rows.file
    if isinstance(file, PairsSet):
        return source_of(list(file))
    source = source_of(file.path)
    if file.limit is None:
        return replace(source, size=rows.number)
    return replace(source, records=islice(iter(source.records), file.limit), size=rows.number)


def check_of(method: str, preset: str | None, options: Mapping[str, object]) -> ValueCheck:
    """Return the check of a row by what its judge will need of it.

    It reads the label of an item as one of the judge's.

    Raises:
        OptionError: There is no such method or preset: rows that another takes must
            not seem bad.
    """
    from langchain_judges.methods.registry import kind_of_rows, method_of, named
    from langchain_judges.methods.rubric.options import LabelOptions

    method_options = method_of(method)
    if preset:
        named(method_options.presets, preset, f"preset of {method!r}")
    if kind_of_rows(method, options) == "pair":
        return check_labelled_pair
    chosen = {**method_options.presets.get(preset or "", {}), **options}
    if isinstance(labels := chosen.get("labels"), str):
        hint = json_hint("labels", labels)
        raise OptionError(f"`--set labels` must be a list, got {labels!r}{hint}")
    checked = method_options(**chosen)
    # What the members of a jury need of a row, each says itself.
    labelled = checked if isinstance(checked, LabelOptions) else None
    by_text = {str(label): label for label in labelled.human_labels} if labelled else {}

    def check_labelled_item(row: object) -> None:
        check_item(row)
        item = cast("dict[str, object]", row)
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
    check_annotations(cast("dict[str, object]", row))


def check_known_of(row: object) -> None:
    """Check what people know of a row whose verdict is there already.

    Raises:
        InputError: It is no object, or a label cannot be used.
    """
    if not isinstance(row, dict):
        raise InputError(f"a row must be an object, got {type(row).__name__}")
    check_annotations(row)


def named_columns(
    columns: Sequence[str] | None, fields: Iterable[str] = FIELDS
) -> dict[str, str] | None:
    """Return the columns that `--column` named, by field; None if it named none.

    Args:
        columns: FIELD=COLUMN, each.
        fields: The fields that there are, beside `label.CRITERION`.

    Raises:
        OptionError: A value has another form, or names no field.
    """
    named: dict[str, str] = {}
    for each in columns or ():
        field, equals, column = (part.strip() for part in each.partition("="))
        if not equals or not column:
            raise OptionError(
                f"--column takes FIELD=COLUMN, such as input=question, got {each!r}"
            )
        if field not in fields and not field.startswith("label."):
            names = sorted(fields)
            raise OptionError(
                f"--column names no field {field!r}; {did_you_mean(field, names)}it takes "
                f"{', '.join(names)}"
            )
        named[field] = column
    return named or None


def check_not_read(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Check that a command writes over nothing that it reads.

    Raises:
        OptionError: It would.
    """
    own = {path.resolve() for path in read if path}
    for path in written:
        if path and path.resolve() in own:
            raise OptionError(f"{path} is read by this command; name another file to write")


def check_file(flag: str, path: Path | None) -> None:
    """Check, before anything is paid for, that a file can be written in the end.

    Raises:
        OptionError: It is a folder, or in no folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise OptionError(f"{flag} must name a file, and {path} is a folder")
    if not path.parent.is_dir():
        raise OptionError(f"{flag} must name a file in a folder; there is no {path.parent}")
