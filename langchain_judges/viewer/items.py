"""Contents of the page: rows, verdicts, people's answers and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_judges import lazy, verdict
from langchain_judges.errors import InputError, OutputError
from langchain_judges.report.evidence import TextTable, text_table
from langchain_judges.report.joined_rows import JudgedRow, VerdictRow, join, judges_of
from langchain_judges.report.joined_rows import read_verdicts as read_run
from langchain_judges.report.labelling import SURE, UNSURE, doubt_of, row_identity
from langchain_judges.rows.checks import ANNOTATIONS, kind_in, kind_of_result
from langchain_judges.rows.columns import Columns
from langchain_judges.rows.files import json_in, read_table
from langchain_judges.rows.texts import READ
from langchain_judges.runs import row_reader, run_files, run_row, sources, table_form
from langchain_judges.runs.tables import records_of

Cells = Mapping[str, Any]
_OWN = ("id", *READ, *ANNOTATIONS, "media", "family")
_WORDS: Mapping[str, Any] = lazy.packaged(__package__, "words.yaml")


@dataclass(frozen=True)
class Report:
    """A report as the page shows it: sentences and tables."""

    title: str
    lines: Sequence[str]
    tables: Sequence[TextTable] = ()


@dataclass
class Collection:
    """Rows, and what is known about each, by its place.

    Attributes:
        rows: What is judged, and what people had said about it.
        judges: By judge, its result for each place.
        reports: What was measured.
        problems: What could not be read, as sentences.
        files: Where each judge's verdicts were read from.
    """

    rows: list[Any] = field(default_factory=list)
    judges: dict[str, dict[int, JudgedRow]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    def tags(self, place: int, people: Sequence[Cells] = ()) -> list[str]:
        """Filters of a row: doubts, disagreements, verdicts.

        Args:
            place: Of the row.
            people: What people answered on the page.
        """
        row = self.rows[place]
        tags = {str(row.get("doubt") or SURE): None}
        own = {name: run[place] for name, run in self.judges.items() if place in run}
        answers = {str(each.answer) for each in own.values() if each.answer is not None}
        for each in own.values():
            confidence = each.verdict.get("confidence")
            unsure = confidence is not None and confidence < UNSURE
            facts = {"failed": verdict.failures_in(each.verdict), "low confidence": unsure}
            own_tags = [name for name, so in facts.items() if so]
            tags |= dict.fromkeys([doubt_of(each.verdict), *own_tags])
            by_name = {"judge": each.answer, **each.by_criterion}
            tags |= {f"{n}: {v}": None for n, v in by_name.items() if v is not None}
        given = [row.get("label"), *(row.get("human_votes") or ())]
        given += [each.get("label") for each in people]
        said = {str(label) for label in given if label not in (None, "")}
        differ = {
            "judges differ": len(answers) > 1,
            "people differ": len(said) > 1,
            "judge against people": bool(said) and bool(answers - said),
        }
        tags |= {name: None for name, is_so in differ.items() if is_so}
        return [tag for tag in tags if tag not in (SURE, "unsure")]

    def requests(self, name: str, each: JudgedRow) -> list[Any]:
        """The requests and replies that a judge's run kept of a row; none while it goes on."""
        with suppress(OutputError):
            if name in self.files:
                return run_files.requests_of(self.files[name], str(each.row.get("key")))
        return []

    def verdicts(self) -> dict[str, dict[int, Cells]]:
        """By judge its verdict on each place."""
        return {
            name: {place: each.verdict for place, each in run.items()}
            for name, run in self.judges.items()
        }


def read_collection(paths: Iterable[Path], columns: Columns | None = None) -> Collection:
    """Read rows, results, reports, audits and comparisons; a folder is read whole.

    Raises:
        InputError: A file is missing, damaged or of an unknown kind.
    """
    found, runs = Collection(), dict[str, Sequence[VerdictRow]]()
    for path in paths:
        inside = [each for end in ("*.json", "*.jsonl") for each in sorted(path.glob(end))]
        for each in inside if path.is_dir() else [path]:
            start = len(found.rows)
            for name, run in _read_file(found, each, columns).items():
                own = f"{name} ({each.name})" if name in runs else name
                runs[own], found.files[own] = run, each
            _name_alike(found.rows, start)
    return collected(found, runs)


def _name_alike(rows: list[Any], start: int) -> None:
    """Name the rows of a file, from `start` on, as the one row before that has their texts."""
    texts = [frozenset(run_row.content_key(row).items()) for row in rows]
    times = [Counter(texts[:start]), Counter(texts[start:])]
    names = {text: row.get("id") for text, row in zip(texts, rows[:start], strict=False)}
    for place, text in enumerate(texts[start:], start):
        if [each[text] for each in times] == [1, 1]:
            rows[place] = {**rows[place], "id": names[text]}


def collected(found: Collection, runs: Mapping[str, Sequence[VerdictRow]]) -> Collection:
    """Match runs with the rows that they judged; without rows, with what the run kept."""
    by_mark: dict[str, Cells] = {}
    for row in found.rows:  # a later file may know more of a row
        by_mark[row_identity(row)] = {**by_mark.get(row_identity(row), {}), **row}
    found.rows = list(by_mark.values())
    if not found.rows:
        for name, run in runs.items():
            kept = {each.place: each for each in join(run, None).rows}
            found.rows += [_kept(each) for each in kept.values()] if not found.rows else []
            found.problems.append(f"Texts are not in the results of {name}: name the rows too.")
    for name, run in runs.items():
        try:
            joined = join(run, found.rows)
        except InputError as exc:
            found.problems.append(f"{name}: {exc}")
            continue
        found.judges[name] = {each.place: each for each in joined.rows}
        if joined.left_out:
            found.problems.append(f"{name}: {joined.left_out}")
    if not found.rows and not found.reports:
        told, rest = " ".join(found.problems[:3]), len(found.problems) - 3
        more = f" And {rest} more." if rest > 0 else ""
        raise InputError(f"there is nothing to show. {told}{more}".strip())
    return found


def _kept(each: JudgedRow) -> Cells:
    row = {"id": each.row.get("id", each.place), **each.data_row}
    if kind_in(row):
        return row
    return {**row, **({"output": None} if kind_of_result(each.row) == "item" else {})}


def _read_file(
    found: Collection, path: Path, columns: Columns | None
) -> Mapping[str, Sequence[VerdictRow]]:
    """Add what a file holds; return the runs in it, by judge."""
    if path.suffix == ".json":
        data = None
        with suppress(OSError, ValueError):  # reading it as a table says what is wrong
            data = json_in(path)
        if isinstance(data, Mapping):
            _add_report(found, data, path)
            return {}
    if records_of(path) != path:
        runs = read_run(path)
        results = [each for run in runs.values() for each in run]
        by_place = {each.get("index"): each for each in results}
        by_content = {frozenset((each.get("content") or {}).items()): each for each in results}
        columns = columns or _judged_columns(path, by_place.get(0) or {})
        for place, row in _rows_in(found, path, columns):
            digests = (by_place.get(place) or {}).get("content") or {}
            own = {n: v for n, v in row.items() if n in _OWN and n not in ANNOTATIONS}
            own |= {n: _as_judged(own[n], digest) for n, digest in digests.items() if n in own}
            # A sheet may have been sorted since.
            known = by_content.get(frozenset(run_row.content_key(own).items())) or {}
            found.rows.append(
                own | {n: known[n] for n in ("id", *ANNOTATIONS) if known.get(n) is not None}
            )
        return {n: run for n, run in runs.items() if all("verdict" in each for each in run)}
    first = next(islice(read_table(path), 1), {})
    is_run = isinstance(first.get("verdict"), Mapping)
    if not is_run or kind_in(first):
        found.rows += [row for _, row in _rows_in(found, path, columns)]
    if not is_run:
        return {}
    return read_run(path) if "key" in first else judges_of(read_table(path))


def _judged_columns(path: Path, result: Cells) -> Columns | None:
    """The columns of a table that hold the texts which the first result judged."""
    first: Cells = next(iter(read_table(path)), {})
    wanted: Cells = result.get("content") or {}
    found = {
        field: column
        for column, cell in first.items()
        for field, digest in wanted.items()
        if _is_of(_as_judged(cell, digest), digest)
    }
    return found if len(found) == len(wanted) > 1 else None


def _is_of(text: object, digest: str) -> bool:
    return run_row.content_key({"input": text}) == {"input": digest}


def _as_judged(cell: object, digest: str) -> object:
    r"""A cell as it was judged: a sheet has a quote before what is like a formula, and `\n`."""
    texts = [cell, cell.removeprefix("'")] if isinstance(cell, str) else []
    texts += [str(each).replace("\n", "\r\n") for each in texts]
    return next((each for each in texts if _is_of(each, digest)), cell)


def _rows_in(found: Collection, path: Path, columns: Columns | None) -> Iterable[tuple[int, Cells]]:
    """Yield the rows of a table by their place; note those that cannot be read."""
    source = sources.source_of(path)
    kind = row_reader.kind_of_columns(source.records, columns)
    records = row_reader.Records(source, columns, kind)
    textless: list[int] = []
    for place, record in enumerate(source.records):
        try:
            row = records.row(record, place)
        except row_reader.UnreadableTable as exc:
            found.problems.append(f"{path}: {exc}")
            return
        except InputError as exc:
            found.problems.append(f"{path}, row {place + 1}: {exc}")
            continue
        row.pop("verdict", None)
        if isinstance(row.get("text"), str) and not kind_in(row.keys() - {"concepts"}):
            # What a writer wrote, by what it was asked.
            row = {"id": row.get("id"), "input": row.get("concepts"), "output": row["text"]}
        if kind_in(row) in ("pair", "item"):
            yield place, row
        else:
            textless.append(place + 1)
    if textless:
        said = {"row": textless[0], "number": len(textless), "names": ", ".join(map(repr, record))}
        found.problems.append(_WORDS["textless"].format(path=path, **said))


def _add_report(found: Collection, data: Cells, path: Path) -> None:
    """Add a report of trust, a comparison or the result of an audit.

    Raises:
        InputError: It is none of these.
    """
    judges = data.get("judges") or ([data] if "numbers" in data else [])
    if not judges and "decisions" not in data:
        raise InputError(f"{path} is not a table, report, audit or comparison; it has {list(data)}")
    for each in [data, *judges] if "judges" in data else [data]:
        title = " on ".join(filter(None, [each.get("judge"), each.get("data")])) or path.name
        lines = str(each.get("sentence") or f"Stopped: {each.get('stopped')}.").split("\n")
        tables = [
            text_table(name.capitalize(), [(c, c.replace("_", " ")) for c in columns], rows)
            for name, columns in _WORDS["tables"].items()
            if (rows := each.get(name))
        ]
        found.reports.append(Report(title, [*lines, *each.get("notes", ())], tables))
        found.rows += _disagreements(each)


def _disagreements(data: Cells) -> list[Cells]:
    """The rows of a report on which judge and people differ, with the texts that it kept."""
    return [
        {
            "id": each["id"],
            "input": each["task"],
            **{_WORDS["fields"].get(name, name.lower()): text for name, text in each["texts"]},
            "reported": _WORDS["reported"].format(name=data.get("judge"), **each),
        }
        for each in data.get("disagreements") or ()
    ]


def of_run(run: Any, rows: Iterable[Cells] | None = None) -> Collection:
    """Contents of a report, or of a run's rows with those of the data."""
    if hasattr(run, "to_dict") and hasattr(run, "shown"):
        found = Collection()
        _add_report(found, run.to_dict(), Path("report"))
        reports = run.shown()[0]
        sample = reports[0].sample.rows
        found.rows = [{"id": each.row.get("id"), **each.data_row} for each in sample]
        places = {each.place: number for number, each in enumerate(sample)}
        for each in reports:
            judged = {places[r.place]: r for r in each.sample.rows if r.place in places}
            found.judges[each.name] = judged
        return found
    results: list[Cells] = list(run)
    is_judged = any("verdict" in row for row in results)
    if rows is None:
        have_texts = all(kind_in(row) and "input" in row for row in results)
        rows = results if have_texts or not is_judged else []
    form = table_form.TableForm()
    found = Collection([form.row(row, place) for place, row in enumerate(rows)])
    return collected(found, judges_of(results) if is_judged else {})
