"""The rows of a table that a command reads: understood, checked, the bad ones named."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

import typer

from langchain_judges.cli.flags import RowFlags
from langchain_judges.cli.judge_flags import PAIRS, SINGLE_TEXTS, JudgeFlags, set_options
from langchain_judges.cli.messages import MISUSED, WORDS, say, warn
from langchain_judges.datasets import knows
from langchain_judges.datasets import names as set_names
from langchain_judges.datasets import rows as set_rows
from langchain_judges.errors import InputError, OptionError
from langchain_judges.escaping import InertConsole
from langchain_judges.rows import checks, texts
from langchain_judges.rows.checks import FIELDS
from langchain_judges.rows.columns import NEEDED, Columns, check_columns, columns_in
from langchain_judges.rows.documents import CONTEXTS
from langchain_judges.rows.files import no_table
from langchain_judges.rows.spreadsheets import SheetRecord, cell_name, sheet_in
from langchain_judges.runs import row_reader, sources, tables

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.methods.rubric.options import LabelOptions

# Raises `InputError` for a bad row.
RowCheck = Callable[[object], object]


# Where a command is told to read what of a run, by the option that says so in Python.
PLACES = {"input": "input", "output": "output", "source": "context"}


@dataclass
class RowFile:
    """The rows of a table or a public set; iterate over it for the good ones.

    Args:
        path: The table, or the name or folder of the set.
        source: Its records, with the check of a row.
        columns: Columns by field, as flags named them.
        takes: Kind of rows that the judge takes, if they are read for it.

    Attributes:
        number: How many rows are good, found by `count`.
        size: Bytes of all texts of the good rows.
        bad: The bad rows: number from 1, and what is wrong, with the cell of a sheet.
        ids: How many rows, good or bad, have an id of their own.
    """

    path: Path
    source: sources.Source
    columns: Columns | None = None
    takes: str | None = None
    number: int = 0
    size: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    ids: Counter[str] = field(default_factory=Counter)

    def count(self) -> None:
        """Read everything once."""
        for _, _, row in self._good(self.bad):
            self.number += 1
            self.size += texts.bytes_of(texts.texts_read(row))

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the good rows, read as they are wanted."""
        return (row for _, _, row in self._good())

    def at(self, places: Container[int]) -> dict[int, dict[str, object]]:
        """The good rows at some places among all records."""
        return {place: row for place, _, row in self._good() if place in places}

    def __length_hint__(self) -> int:
        """Number of rows, for the progress of runs."""
        return self.number

    def whole(self) -> sources.Source:
        """All records, bad ones among them, as a run takes them."""
        return replace(self.source, size=self.number + len(self.bad))

    def tell_row(
        self, number: int | None, console: InertConsole, judge: JudgeGraph, most: int | None = None
    ) -> None:
        """Print how a row is understood, and what a judge is asked about it.

        Args:
            number: Which of all, counted from 1; None: the first good one.
            console: Where.
            judge: The judge.
            most: Characters of that; None for all.

        Raises:
            InputError: There is no such row, or it is bad.
        """
        rows = (each for each in self._good() if number in (None, each[0] + 1))
        if (found := next(rows, None)) is None:
            most = self.number + len(self.bad)
            why = dict(self.bad).get(number or 0, f"the last one is row {most:,}")
            raise InputError(f"{self.path}, row {number}: {why}")
        place, record, row = found
        # Of a pair it may name a data set, and no judge is shown it.
        fields = (FIELDS - {"source"} if "output_a" in row else FIELDS) | {*judge.fields_named}
        lines = [f"Row {place + 1} is understood as:", *self.understood(record, row, fields)]
        for line in [*lines, *_cut_for_terminal(judge.show(row), place + 1, most)]:
            console.print(line)

    def tell_warnings(self, judge: JudgeGraph) -> None:
        """Print what a run warns of: annotations that are no labels, columns that nobody reads."""
        records = row_reader.Records(self.whole(), self.columns, self.takes)
        reader = row_reader.RowReader(records, {}, None, judge=judge, numbers_repeats=False)
        while reader.next():
            pass

    def understood(
        self, record: Mapping[str, object], row: Mapping[str, object], fields: Set[str]
    ) -> list[str]:
        """Reading of a row: each of some fields, its column and its text."""
        columns = {"input": "input", **self._columns_of(record)}  # it may be asked in the work
        if "output_a" in row.keys() - columns.keys():
            pair = [f"{columns[name]}, by a coin" for name in ("chosen", "rejected")]
            sides = pair if row["label"] == "A" else pair[::-1]
            columns |= {"output_a": sides[0], "output_b": sides[1], "label": columns["chosen"]}
        lines = []
        for name in (name for name in row if name in fields and name in columns):
            read = ", ".join(columns_in({name: columns[name]}))
            own = name if read in (name, "") else f"{name} (column {read})"
            text = row[name] if isinstance(row[name], str) else json.dumps(row[name], default=str)
            lines.append(f"  {own}: {shorten(str(text), 60, placeholder=' …')}")
        used = {*columns_in({name: columns[name] for name in columns if name in fields})}
        used |= {*CONTEXTS} if row.get("source") and "source" in fields else set()
        if unused := [name for name in record if name not in used]:
            lines.append(f"  not shown to the judge: {', '.join(unused)}")
        return lines

    def _columns_of(self, record: Mapping[str, object]) -> Columns:
        """The columns of a record by field; those that are no field by their names."""
        form = row_reader.Records(self.source, self.columns, self.takes).form_of(record)
        return {name: name for name in record} | dict(form.columns or {})

    def _good(
        self, bad: list[tuple[int, str]] | None = None
    ) -> Iterator[tuple[int, Mapping[str, object], dict[str, object]]]:
        """Yield the good rows, each behind its place and record; note the bad in `bad`."""
        records = row_reader.Records(self.source, self.columns, self.takes)
        own: Any = (self.columns or {}).get("id", "id")
        for index, record in enumerate(self.source.records):
            known = record.own if isinstance(record, sources.BadRecord) else record
            id = known.get(own) if isinstance(known, Mapping) and bad is not None else None
            self.ids.update([str(id)] if id not in (None, "") else [])
            try:
                row = records.row(record, index)
            except row_reader.UnreadableTable as exc:
                raise InputError(f"{self.path}: {exc}") from exc
            except InputError as exc:
                if bad is not None:
                    bad.append((index + 1, f"{exc}{self._cell(record, str(exc))}"))
            else:
                yield index, cast("Mapping[str, object]", record), row

    def _cell(self, record: object, problem: str) -> str:
        """Name of the cell that a problem is about, to append."""
        named = re.match(r"(?:the field )?`([\w.]+)`", problem)
        if not named or not isinstance(record, SheetRecord):
            return ""
        [column, *others] = columns_in({"": self._columns_of(record).get(named[1], named[1])})
        names = list(record)
        if others or column not in names:
            return ""
        return f"{_CELL}{cell_name(names.index(column), record.row)})"


# Begins the place of a problem in a sheet.
_CELL = " (cell "


def _cut_for_terminal(text: str, row: int, most: int | None) -> list[str]:
    cut = f"… {len(text):,} characters in all: --show-prompt {row} prints them"
    return ["A judge is asked:", text[:most], *([cut] if most and len(text) > most else [])]


def checked_rows(file: RowFile, work: str = "pair to judge", *, kept: bool = False) -> RowFile:
    """Read the rows once, and name the bad ones; stop where none is good.

    Args:
        file: The rows.
        work: What a row is.
        kept: Whether the bad ones are rows of the result; else they are left out.
    """
    file.count()
    problems = dict[str, list[int]]()
    for number, problem in file.bad:
        problems.setdefault(problem.partition(_CELL)[0], []).append(number)
    told = dict(file.bad)
    for first, *others in [*problems.values()][:_MOST_NAMED]:
        problem, like = told[first], f" and {len(others):,} more" if others else ""
        own = problem.startswith(str(file.path))
        say(problem if own else f"{file.path}, row {first}{like}: {problem}")
    if unnamed := sum(map(len, [*problems.values()][_MOST_NAMED:])):
        say(f"… and {unnamed:,} more bad rows")
    if not file.number:
        what = "no usable row; nothing was asked" if file.bad else f"no {work}"
        say(f"{file.path} has {what}.", "red")
        is_read = problems and all(problem.startswith("`label") for problem in problems)
        if sources.first_object(file.source.records) and not is_read:
            say(WORDS["no_row"] if file.takes else "Name columns by --column FIELD=COLUMN.")
        raise typer.Exit(MISUSED)
    for id_, rows in file.ids.most_common(_MOST_NAMED):
        if rows > 1:
            warn(f"{file.path}: {rows:,} rows have the id {id_!r}; ids should differ")
    if file.bad:
        place = "are in the results with their reason" if kept else "are left out"
        warn(f"{len(file.bad):,} of {file.number + len(file.bad):,} rows are bad and {place}.")
    return file


_MOST_NAMED = 20


def open_rows(path: Path, check: RowCheck, flags: RowFlags, takes: str | None = None) -> RowFile:
    """The rows of a table or set that the flags choose, yet unread.

    Args:
        path: The table or set.
        check: Raises `InputError` for a bad row.
        flags: Which rows.
        takes: `"pair"` or `"item"`, where columns are to be found by their usual names.

    Raises:
        InputError: There is no such table or set.
        OptionError: A flag names no field of a row, or columns of a set.
    """
    columns = named_columns(flags.column)
    if knows(path):
        if columns:
            raise OptionError(f"--column is for a table; {path} is a known set")
        source = sources.Source(list(set_rows(path)), is_table=False)
    elif not (file := sheet_in(path)[0]).is_file():
        raise InputError(f"No public data set has this name, and {no_table(file, set_names())}")
    else:
        source = sources.source_of(path)
    return RowFile(path, replace(source.first(flags.max_rows), check=check), columns, takes)


def known_rows(
    path: Path, flags: RowFlags, check: RowCheck, runs: Iterable[Sequence[Mapping[str, Any]]] = ()
) -> RowFile:
    """Rows that no judge is named for, with columns understood as a judge's, yet unread.

    Args:
        path: The table or set.
        flags: Which rows.
        check: Raises `InputError` for a bad row.
        runs: Verdicts on them, which say what they are; without any, pairs are tried first.
    """
    kinds = [checks.kind_of_result(run[0]) for run in runs if run][:1] or ["pair", "item"]
    file = open_rows(path, check, flags)
    file.takes = row_reader.kind_of_columns(
        file.source.records, file.columns, [kind for kind in kinds if kind != "task"]
    )
    return file


def with_method(judge: JudgeFlags, path: Path, flags: RowFlags) -> JudgeFlags:
    """The judge with the method that its rows need, where no flag names one; that is said."""
    if judge.method or judge.spec or not judge.model:
        return judge
    file = open_rows(path, check_known_of, flags)
    kind = row_reader.kind_of_columns(file.source.records, file.columns)
    named = {"output", "output_a", "output_b"} & {*(file.columns or {})}
    is_item = "output" in named or _is_set_for(judge, SINGLE_TEXTS, PAIRS)
    for_texts = kind == "item" or (kind is None and is_item)
    method, what = (SINGLE_TEXTS, "single texts") if for_texts else (PAIRS, "pairs")
    if kind:
        say(f"{path} has {what}, so the method is {method}; --method chooses another.")
    elif sources.first_object(file.source.records) and not named:
        say(WORDS["unknown_columns"].format(path=path))
    return replace(judge, method=method)


def _is_set_for(judge: JudgeFlags, method: str, other: str) -> bool:
    """Whether one method has the preset and the options of the flags, and another has not."""
    from langchain_judges.methods.registry import METHODS

    given = {*set_options(judge.option, judge.parts)}
    fit = [
        given <= {*METHODS[each].defaults()} and judge.preset in (None, *METHODS[each].presets)
        for each in (method, other)
    ]
    return fit == [True, False]


def judge_rows(path: Path, flags: RowFlags, spec: Mapping[str, Any]) -> RowFile:
    """The rows that a judge takes, pairs or items, yet unread.

    Args:
        path: The table or set.
        flags: Which rows.
        spec: The judge; of judges its first member says what they take.
    """
    from langchain_judges.methods.registry import leaf_of, method_of

    return open_rows(path, check_of(spec), flags, method_of(leaf_of(spec)[0]).takes)


def label_options_in(spec: Mapping[str, Any]) -> LabelOptions | None:
    """The options of a judge that labels texts; None of any other.

    Raises:
        OptionError: There is no such method or preset: rows that another takes must
            not seem bad.
    """
    from langchain_judges.methods.registry import leaf_of, method_of, named
    from langchain_judges.methods.rubric.options import LabelOptions

    method, preset, options = leaf_of(spec)
    form = method_of(method)
    own = named(form.presets, preset, f"preset of {method!r}") if preset else {}
    checked = form(**{**own, **options}) if form.takes != "pair" else None
    # What the members of a jury need of a row, each says itself.
    return checked if isinstance(checked, LabelOptions) else None


def check_of(spec: Mapping[str, Any], *, labelled: bool = True) -> RowCheck:
    """The check of a row by what its judge will need of it.

    It reads the label of an item as one of the judge's.

    Args:
        spec: The judge.
        labelled: Whether what people know of a row must be usable; a run warns of what is not.

    Raises:
        OptionError: As for `label_options_in`.
    """
    from langchain_judges.methods.registry import leaf_of, method_of

    options = label_options_in(spec)
    if method_of(leaf_of(spec)[0]).takes == "pair":
        return check_labelled_pair if labelled else checks.check_pair
    labels = options.human_labels if options else ()

    def check_labelled_item(item: Any) -> None:
        judged = options.given(item) if options else item
        checks.check_item(judged)
        if options:
            options.check(judged)
            if lack := options.lacking(judged):
                raise InputError(lack)
        if labelled:
            checks.check_annotations(item, (options.parts if options else {}) or labels)
        if item.get("label") is not None:
            item["label"] = checks.typed_like(labels, item["label"])

    return check_labelled_item


def check_labelled_pair(row: object) -> None:
    """Check a pair and what people know of it.

    Raises:
        InputError: A field cannot be used.
    """
    checks.check_pair(row)
    checks.check_annotations(cast("dict[str, object]", row))


def check_known_of(row: object) -> None:
    """Check what people know of a row whose verdict is there already.

    Raises:
        InputError: It is no object, or a label cannot be used.
    """
    if not isinstance(row, dict):
        raise InputError(f"a row must be an object, got {type(row).__name__}")
    checks.check_annotations(row)


def named_columns(
    columns: Sequence[str] | None, fields: Sequence[str] = ()
) -> dict[str, Any] | None:
    """The columns that `--column` named, by field; None if it named none.

    Args:
        columns: FIELD=COLUMN, each; a field that is there twice has several.
        fields: The fields that there are; none: those of a row, which are checked with it.

    Raises:
        OptionError: A value has another form, or names no field.
    """
    named: dict[str, list[str]] = {}
    for each in columns or ():
        field, equals, column = (part.strip() for part in each.partition("="))
        is_named = column or (equals and not fields and field not in NEEDED)  # by none: not read
        if not is_named or (fields and field not in {*fields} - {*named}):
            takes = f"FIELD=COLUMN, such as {(*fields, 'input')[0]}=question"
            raise OptionError(f"--column takes {takes}, got {each!r}")
        named.setdefault(field, []).extend([column] if column else [])
    found = {field: own[0] if len(own) == 1 else own for field, own in named.items()}
    check_columns(found)
    return found or None


def check_not_read(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Check that a command writes over nothing that it reads.

    Raises:
        OptionError: It would.
    """
    own = {path.resolve() for path in read if path}
    for path in written:
        if path and path.resolve() in own:
            raise OptionError(f"{path} is read by this command; name another file to write")


def check_file(flag: str, path: Path, forms: Iterable[str] = (), *, made: bool = False) -> None:
    """Check, before anything is paid for, that a file can be written in the end.

    Args:
        flag: What names it.
        path: The file.
        forms: What its name may end in; none: anything.
        made: Whether its folder will be made.

    Raises:
        OptionError: It is a folder, in no folder or of no such form.
    """
    if forms and path.suffix not in forms:
        names = ", ".join(filter(None, sorted(forms)))
        raise OptionError(f"{flag} must end in {names}, got {path.name!r}")
    if path.is_dir():
        raise OptionError(f"{flag} must name a file, and {path} is a folder")
    if not made and not path.parent.is_dir():
        raise OptionError(f"{flag} must name a file in a folder; there is no {path.parent}")


def check_table(path: Path | None) -> None:
    """Check the file of a table of results, as `check_file` does."""
    if path:
        check_file("--out", path, tables.FORMS, made=True)
