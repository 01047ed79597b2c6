"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from langchain_judges.cli import messages, row_files
from langchain_judges.cli.flags import Paths, QuestionFlags, RowFlags, unfolded
from langchain_judges.cli.terminal import Terminal, read_key
from langchain_judges.errors import InputError
from langchain_judges.report import labelling
from langchain_judges.rows.files import write_text
from langchain_judges.runs.summary import Summary, counted, is_unsettled
from langchain_judges.verdict import UNANSWERED, decision, reason_of

# Rows to label now, unless --max-rows says how many.
_ROWS_SHOWN_AT_ONCE = 20


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
    if not (places := labelling.chosen(kinds, number)):
        return
    rows, path = at(set(places)), beside.with_suffix(".label.jsonl")
    first = [{**rows[place], "doubt": kinds[place]} for place in places if place in rows]
    write_text(path, "".join(map(labelling.label_line, first)))
    said = {"path": path, "quoted": shlex.quote(str(path)), "number": len(first)}
    messages.say(messages.WORDS["to_label"].format(rows=counted(len(first), "row"), **said))


class FirstToLabel:
    """Finds the rows to label first while a run goes on, a few bytes for each row."""

    def __init__(self, rows: row_files.RowFile, beside: Path | None) -> None:
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
        unanswered = decision(verdict) is None and reason_of(verdict) in UNANSWERED
        known = result.get("label") is not None
        self.kinds.append("" if known or unanswered else labelling.doubt_of(verdict))

    def tell(self, summary: Summary) -> None:
        """Write the rows if a run of pairs settles nothing, or its labels are doubtful."""
        wanted = summary.labels and {*self.kinds} - {"", labelling.SURE}
        if (is_unsettled(summary) or wanted) and self.beside:
            write_first(self.rows.at, self.kinds, labelling.FIRST, self.beside)


@dataclass(frozen=True)
class LabelFlags(QuestionFlags):
    """Choice of rows, and the questions about them.

    Attributes:
        verdicts: Results of a judge: doubtful rows come first; repeatable.
    """

    verdicts: Paths = None


@unfolded
def label(
    data: str, out: Annotated[Path, typer.Option("--out", "-o")], asked: LabelFlags, table: RowFlags
) -> None:
    """Label rows at a terminal; each answer is in the file before the next row is shown.

    The texts of a pair are in random positions, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts each label has its key), x means that
    you cannot tell, n adds a note, s skips, u takes back the last answer, q stops. Criteria are
    asked one after the other. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.

    Args:
        data: Rows to label: a table or a known set.
        out: Labelled rows, JSONL; may exist already.

    Examples:
        langchain-judges label rows.jsonl -o labels.jsonl --max-rows 50
        langchain-judges label rows.csv --labels rude,polite -o labels.jsonl
    """
    # Loaded here, as in every command: help needs nothing of it.
    from langchain_judges.report import read_verdicts
    from langchain_judges.viewer.desks import open_labels
    from langchain_judges.viewer.items import Collection, collected

    paths, by = asked.verdicts or [], asked.name
    row_files.check_file("--out", out)
    row_files.check_not_read([Path(data), *paths], [out])
    runs = {f"{path}: {name}": run for path in paths for name, run in read_verdicts(path).items()}
    whole = replace(table, max_rows=None)
    known = row_files.known_rows(Path(data), whole, _check_shown, [*runs.values()])
    found = collected(Collection(list(row_files.checked_rows(known, "row"))), runs)
    for problem in found.problems:
        messages.warn(problem)
    desk = open_labels(found, out, *asked.questions)
    with closing(desk.file):
        kinds = ["" if desk.is_done(n, by) else kind for n, kind in enumerate(desk.doubts())]
        places = labelling.to_label(found.rows, kinds, table.max_rows or _ROWS_SHOWN_AT_ONCE)
        questions = [
            (place, each["name"])
            for place in places
            for each in desk.questions(place)
            if each["name"] not in desk.answered(place, by)
        ]
        Terminal(messages.error_console(), read_key, desk, by).go_through(questions)
        _tell_labelled(desk.file, len({n for n, name in questions if name in desk.answered(n, by)}))


def _tell_labelled(file: labelling.LabelFile, now: int) -> None:
    """Print how much was labelled, how often each label was given and where people differ."""
    counts = Counter[str]()
    for row in file.answers.values():
        by_name = {"": row.get("label"), **(row.get("labels") or {})}
        counts.update(f"{n} {v}:".strip() for n, v in by_name.items() if v is not None)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    messages.say(f"{now} labelled now, {len(file.answers)} in {file.path}: {shares or 'no label'}.")
    differ = [line for line in file.answers.values() if file.difference(line)]
    for line in differ[:3]:
        messages.say(f"{line.get('id')}: {file.difference(line)}")
    if len(differ) > 3:
        messages.say(f"People differ on {counted(len(differ) - 3, 'more row')}.")


def _check_shown(row: object) -> None:
    row_files.check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        held = ", ".join(map(repr, fields))
        raise InputError(messages.WORDS["nothing_to_label"].format(fields=held))
