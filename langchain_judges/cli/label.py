"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from langchain_judges.cli.flags import Labels, Paths, RowFlags, by_criterion, unfolded
from langchain_judges.cli.messages import error_console, refusals_as_exits, say
from langchain_judges.cli.row_files import (
    RowFile,
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    known_rows,
)
from langchain_judges.errors import InputError
from langchain_judges.report.labelling import (
    FIRST,
    SURE,
    LabelFile,
    Questionnaire,
    chosen,
    doubt_of,
    doubts,
    line_of,
)
from langchain_judges.runs.summary import counted
from langchain_judges.viewer.desks import LabelDesk
from langchain_judges.viewer.items import Collection
from langchain_judges.viewer.terminal import Terminal, read_key

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

# Rows to label now, unless --max-rows says how many.
_AT_ONCE = 20


def write_first(
    at: Callable[[set[int]], Mapping[int, Mapping[str, object]]],
    kinds: Sequence[str],
    number: int,
    beside: Path,
) -> None:
    """Write the rows to label first as a file that `label` opens, and say what to do with it.

    Args:
        at: Returns the rows at some places; some may not be there.
        kinds: Of each row its doubt.
        number: How many rows.
        beside: A file of the run or the report.
    """
    if not (places := chosen(kinds, number)):
        return
    rows, path = at(set(places)), beside.with_suffix(".label.jsonl")
    first = [{**rows[place], "doubt": kinds[place]} for place in places if place in rows]
    path.write_text("".join(map(line_of, first)), encoding="utf-8")
    say(
        f"Worth labelling: {counted(len(first), 'row')} in {path}, doubtful ones first: "
        f"langchain-judges label {shlex.quote(str(path))} -o labels.jsonl "
        f"--max-rows {len(first)}"
    )


class FirstToLabel:
    """Finds the rows to label first while a run goes on, a few bytes for each row."""

    def __init__(self, rows: RowFile, beside: Path | None) -> None:
        """Know no row's doubt yet.

        Args:
            rows: The rows of the run.
            beside: What the run writes; None: the rows are written nowhere.
        """
        self.rows, self.beside = rows, beside
        self.kinds: list[str] = []

    def add(self, result: Mapping[str, Any]) -> None:
        """Note a result; results come in the order of the rows."""
        verdict = result.get("verdict") or {}
        failures = {failure["reason"] for failure in verdict.get("failures") or []}
        nothing = result.get("label") is not None or failures & {"invalid_input", "over_budget"}
        self.kinds.append("" if nothing else doubt_of(verdict))

    def tell(self, summary: Summary) -> None:
        """Write the rows if a run of pairs settles nothing, or its labels are doubtful."""
        from langchain_judges.runs.summary import is_open

        wanted = summary.labels and {*self.kinds} - {"", SURE}
        if (is_open(summary) or wanted) and self.beside:
            write_first(self.rows.at, self.kinds, FIRST, self.beside)


@dataclass(frozen=True)
class LabelFlags:
    """Choice of rows, and the answers that a person may give.

    Attributes:
        verdicts: Results of a judge: doubtful rows come first; repeatable.
        labels: Labels of single texts: digits such as 12345, or words, as in rude,polite;
            default 01. With a criterion, as in tone=rude,polite or tone=, rows are labelled by
            criterion; repeatable.
        name: Your name: the answers of several people are kept apart.
    """

    verdicts: Paths = None
    labels: Labels = None
    name: str = ""


@unfolded
def label(
    data: Annotated[str, typer.Argument(help="Rows to label: a table or a known set.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Labelled rows, JSONL; added to if it is there.")
    ],
    labelling: LabelFlags,
    table: RowFlags,
) -> None:
    """Label rows at a terminal; each answer is in the file before the next row is shown.

    The texts of a pair are in random positions, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts each label has its key), x says that
    it cannot be said, n notes why, s skips, u takes the last answer back, q stops. Criteria are
    asked one after the other. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.

    Examples:
        langchain-judges label rows.jsonl -o labels.jsonl --max-rows 50
        langchain-judges label rows.csv --labels rude,polite -o labels.jsonl
    """
    from langchain_judges.report.joined_rows import read_verdicts

    paths, by = labelling.verdicts or [], labelling.name
    with refusals_as_exits():
        whole_labels, criteria = by_criterion(labelling.labels)
        asked = Questionnaire.read(whole_labels or "01", criteria)
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        runs = [run for path in paths for run in read_verdicts(path).values()]
        whole = replace(table, max_rows=None)
        rows = list(checked_rows(known_rows(Path(data), _check_shown, whole, runs), "row"))
        with closing(LabelFile(out)) as file:
            most = table.max_rows or _AT_ONCE
            places = _places(file, rows, doubts(rows, runs), asked, labelling.name, most)
            questions = [
                (place, each.name)
                for place in places
                for each in asked.of(rows[place])
                if each.name not in file.answered(rows[place], by)
            ]
            desk = LabelDesk(Collection(rows), file, asked)
            Terminal(error_console(), read_key, desk, by).go_through(questions)
            now = {n for n, name in questions if name in file.answered(rows[n], by)}
            _tell(file, len(now))


def _places(
    file: LabelFile,
    rows: Sequence[Mapping[str, Any]],
    kinds: Sequence[str],
    asked: Questionnaire,
    by: str,
    most: int,
) -> list[int]:
    """Return the places of the rows that a person labels now."""
    kinds = [
        "" if {each.name for each in asked.of(row)} <= {*file.answered(row, by)} else kind
        for row, kind in zip(rows, kinds, strict=True)
    ]
    if all(row.get("doubt") for row in rows):  # written by a run, in the order to label them
        places = [place for place, kind in enumerate(kinds) if kind]
        return places[:most]
    return chosen(kinds, most)


def _tell(file: LabelFile, now: int) -> None:
    """Print how many rows were labelled, and how often each label was given."""
    counts = Counter[str]()
    for row in file.answers.values():
        by_name = {"": row.get("label"), **(row.get("labels") or {})}
        counts.update(f"{n} {v}:".strip() for n, v in by_name.items() if v is not None)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    say(f"{now} labelled now, {len(file.answers)} in {file.path}: {shares or 'no label'}.")


def _check_shown(row: object) -> None:
    check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        raise InputError(
            "there is no `output`, or `output_a` and `output_b`, to label; the fields are "
            f"{', '.join(map(repr, fields))}; name the column, as in --column output=COLUMN"
        )
