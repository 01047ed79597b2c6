"""`langchain-judges label`: people label rows at a terminal, those that tell most first."""

from __future__ import annotations

import json
import random
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from langchain_judges.cli.flags import Paths, RowFlags, unfolded
from langchain_judges.cli.key_questions import Answer, AnswerFile, Desk, line_of, read_key
from langchain_judges.cli.messages import error_console, refusals_as_exits, say
from langchain_judges.cli.row_files import (
    RowFile,
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    known_rows,
)
from langchain_judges.errors import InputError, OptionError
from langchain_judges.escaping import clean
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.runs.run_row import content_key
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import decision

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

SURE, UNJUDGED = "sure", "not judged"
UNSURE = 0.75
"""A verdict of less confidence is doubtful."""
FIRST = 50
"""Rows to label first, where nothing says how many would settle the question."""


def is_labelled(row: Mapping[str, object]) -> bool:
    """Return whether people said anything of a row."""
    names = ("label", "labels", "human_votes")
    return any(row.get(name) not in (None, "", {}, []) for name in names)


def doubt_of(verdict: Mapping[str, Any]) -> str:
    """Return why a verdict is doubtful; `SURE` where it is not."""
    confidence = verdict.get("confidence")
    if decision(verdict) is None:
        return UNJUDGED
    if verdict.get("flipped"):
        return "flipped"
    return "unsure" if confidence is not None and confidence < UNSURE else SURE


def doubts(
    rows: Sequence[Mapping[str, object]], runs: Sequence[Sequence[Mapping[str, object]]]
) -> list[str]:
    """Return why the verdicts on each row are doubtful; `""` for a row that has a label."""
    from langchain_judges.report.matched_rows import join

    answers: list[set[object]] = [set() for _ in rows]
    found: list[set[str]] = [set() for _ in rows]
    for run in runs:
        for judgment in join(run, rows).rows:
            answers[judgment.place].add(judgment.answer)
            found[judgment.place].add(doubt_of(judgment.verdict))
    return [
        "" if is_labelled(row) else _of_all(own, kinds)
        for row, own, kinds in zip(rows, answers, found, strict=True)
    ]


def _of_all(answers: set[object], kinds: set[str]) -> str:
    if None in answers or not answers:
        return UNJUDGED
    return "judges disagree" if len(answers) > 1 else min(kinds - {SURE}, default=SURE)


def chosen(kinds: Sequence[str], number: int) -> list[int]:
    """Return the places of the rows to label: half of them doubtful, and doubtful ones first.

    Within the doubtful rows and within the others chance decides, so that the labels of either
    part stand for all of it.

    Args:
        kinds: Of each row its doubt; empty: it has a label, or is none to label.
        number: How many rows.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    doubtful = [place for place, kind in enumerate(kinds) if kind not in ("", SURE)]
    others = [place for place, kind in enumerate(kinds) if kind == SURE]
    most = max(number // 2, number - len(others))
    first = draw.sample(doubtful, min(most, len(doubtful)))
    return first + draw.sample(others, min(number - len(first), len(others)))


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
        f"Label first: {counted(len(first), 'row')} in {path}, doubtful ones ahead: "
        f"langchain-judges label {shlex.quote(str(path))} -o labels.jsonl --budget {len(first)}"
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
        from langchain_judges.runs.shards import url_of
        from langchain_judges.runs.summary import is_open

        wanted = summary.labels and {*self.kinds} - {"", SURE}
        if (is_open(summary) or wanted) and self.beside and not url_of(self.beside):
            write_first(self.rows.at, self.kinds, FIRST, self.beside)


def _mark(row: Mapping[str, object]) -> str:
    return json.dumps([row.get("id"), content_key(row)], sort_keys=True)


class LabelDesk(Desk[Mapping[str, Any]]):
    """Where rows meet a person."""

    digits = "01"
    """Labels of single texts."""

    def answer(self, question: Mapping[str, Any], key: str) -> Answer | None:
        """Return the labelled row."""
        label: object = None
        if kind_of_row(question) == "item":
            label = int(key) if key in self.digits else None
        else:
            label = dict(zip("12t", [*sides(question), "tie"], strict=True)).get(key)
        return None if label is None else {**question, "label": label}

    def screen(self, question: Mapping[str, Any], place: str) -> RenderableType:
        """Return the task and the text, or the texts without their names."""
        row = question
        names = ("reference", "expected", "source")
        parts: list[RenderableType] = [_panel("task", row.get("input"))]
        parts += [_panel(name, row[name]) for name in names if row.get(name)]
        if kind_of_row(row) == "pair":
            texts = [row[f"output_{side.lower()}"] for side in sides(row)]
            panels = [_panel(str(number), text) for number, text in enumerate(texts, 1)]
            wide = self.console.width >= 100
            parts += [Columns(panels, equal=True, expand=True)] if wide else panels
            keys = "1 or 2 better · t tie"
        else:
            parts.append(_panel("text", row.get("output")))
            keys = " ".join(self.digits) + " label"
        parts.append(Text(f"{place} · {keys} · s skip · u undo · q stop", style="dim"))
        return Group(*parts)


def sides(row: Mapping[str, object]) -> str:
    """Return which text of a pair stands first, by chance and the same on every run."""
    return random.Random(_mark(row)).choice(("AB", "BA"))  # noqa: S311 - no secret


def _panel(title: str, text: object) -> Panel:
    from langchain_judges.report.evidence import shown

    return Panel(Text(clean(shown(text or ""))), title=Text(title), title_align="left")


@dataclass(frozen=True)
class LabelFlags:
    """Which rows are shown, how many, and what a person may answer.

    Attributes:
        verdicts: Results of a judge: doubtful rows come first; repeat it for several judges.
        budget: How many rows to label now.
        labels: Labels of single texts, one digit each, such as 01 or 12345.
    """

    verdicts: Paths = None
    budget: Annotated[int, typer.Option(min=1)] = 20
    labels: str = "01"


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

    The texts of a pair stand in either place by chance, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts a digit is the label), s skips,
    u takes the last answer back, q stops. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.

    Examples:
        langchain-judges label rows.jsonl -o labels.jsonl --budget 50
        langchain-judges label rows.csv --verdicts verdicts.csv -o labels.jsonl
    """
    from langchain_judges.report.matched_rows import read_verdicts

    paths, labels = labelling.verdicts or [], labelling.labels
    with refusals_as_exits():
        if not labels.isdigit() or len(set(labels)) != len(labels):
            raise OptionError(f"--labels must be different digits, got {labels!r}")
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        runs = [run for path in paths for run in read_verdicts(path).values()]
        rows = list(checked_rows(known_rows(Path(data), _check_shown, table, runs), "row"))
        answers = AnswerFile(out, "label")
        known = {_mark(row) for row in answers.answers}
        kinds = [
            "" if _mark(row) in known else kind
            for row, kind in zip(rows, doubts(rows, runs), strict=True)
        ]
    places = chosen(kinds, labelling.budget)
    if all(row.get("doubt") for row in rows):  # written by a run, in the order to label them
        places = [place for place, kind in enumerate(kinds) if kind]
        places = places[: labelling.budget]
    desk = LabelDesk(error_console(), read_key, answers)
    desk.digits = labels
    added = len(places) - desk.go_through([rows[place] for place in places])
    counts = Counter(str(row["label"]) for row in answers.answers)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    say(f"{added} labelled now, {counts.total()} in {out}: {shares}.")


def _check_shown(row: object) -> None:
    check_known_of(row)
    fields = cast("dict[str, object]", row).keys()
    if "output" not in fields and not {"output_a", "output_b"} <= fields:
        raise InputError(
            "there is no `output`, or `output_a` and `output_b`, to label; the fields are "
            f"{', '.join(map(repr, fields))}; name the column, as in --column output=COLUMN"
        )
