"""Which rows people should label first: by what a judge was unsure of."""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.cli.messages import error_console
from langchain_judges.cli.rows import RowFile
from langchain_judges.runs.decision import counted
from langchain_judges.verdict import decision

if TYPE_CHECKING:
    from langchain_judges.runs.summary import Summary

SURE = "sure"
UNSURE = 0.75
"""A verdict of less confidence is doubtful."""
FIRST = 50
"""Rows to label first, where nothing says how many would settle the question."""


def points(label: object) -> float | None:
    """Return a label as a number: how far it prefers A, or the label of a single text."""
    if label is None or label == "":
        return None
    if isinstance(label, int | float):
        return float(label)
    # Loaded on use, as all statistics here: they cost more than the other commands together.
    from langchain_judges.report.rows import preference_points

    return preference_points([label])


def doubt_of(verdict: Mapping[str, Any]) -> str:
    """Return why a verdict is doubtful; `SURE` where it is not."""
    confidence = verdict.get("confidence")
    if decision(verdict) is None:
        return "not judged"
    if verdict.get("flipped"):
        return "flipped"
    return "unsure" if confidence is not None and confidence < UNSURE else SURE


def doubts(
    rows: Sequence[Mapping[str, object]], runs: Sequence[Sequence[Mapping[str, object]]]
) -> tuple[list[float | None], list[tuple[str, str]]]:
    """Return the first judge's number for each row, and a stratum by category and doubt."""
    from langchain_judges.report.rows import join

    answers: list[list[object]] = [[] for _ in rows]
    found: list[set[str]] = [set() for _ in rows]
    first: list[float | None] = [None] * len(rows)
    for number, run in enumerate(runs):
        for judgment in join(run, rows).rows:
            answers[judgment.place].append(judgment.answer)
            found[judgment.place].add(doubt_of(judgment.verdict))
            if number == 0:
                first[judgment.place] = points(judgment.answer)
    strata = []
    for row, own, kinds in zip(rows, answers, found, strict=True):
        doubt = SURE
        if None in own or not own:
            doubt = "not judged"
        elif len(set(own)) > 1:
            doubt = "judges disagree"
        elif others := kinds - {SURE}:
            doubt = min(others)
        strata.append((str(row.get("category") or ""), doubt))
    return first, strata


def chosen(kinds: Sequence[str], number: int) -> list[int]:
    """Return the places of the rows to label: half of them doubtful, and doubtful ones first.

    Within the doubtful rows and within the others chance decides, so that what is estimated
    from the labels, each part by its size, is right.

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


def write_first(path: Path, rows: Iterable[Mapping[str, object]]) -> str:
    """Write rows as a file that `label` opens; return what to do with it."""
    lines = [json.dumps(row, default=str) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return (
        f"Label first: {counted(len(lines), 'row')} in {path}, doubtful ones ahead: "
        f"langchain-judges label {path} -o labels.jsonl --budget {len(lines)}"
    )


@dataclass
class FirstToLabel:
    """Finds the rows to label first while a run goes on, a few bytes for each row.

    Args:
        rows: The rows of the run.
        beside: What the run writes; None: the rows are written nowhere.
    """

    rows: RowFile
    beside: Path | None
    kinds: list[str] = field(default_factory=list)
    """The kinds of doubt."""
    codes: array[int] = field(default_factory=lambda: array("B"))
    """The kind of each row."""

    def add(self, result: Mapping[str, Any]) -> None:
        """Note a result; results come in the order of the rows."""
        verdict = result.get("verdict") or {}
        failures = {failure["reason"] for failure in verdict.get("failures") or []}
        nothing = result.get("label") is not None or failures & {"invalid_input"}
        kind = "" if nothing else doubt_of(verdict)
        if kind not in self.kinds:
            self.kinds.append(kind)
        self.codes.append(self.kinds.index(kind))

    def write(self) -> str:
        """Write the rows; return what to do with them, or nothing."""
        kinds = [self.kinds[code] for code in self.codes]
        places = chosen(kinds, FIRST)
        if self.beside is None or not places:
            return ""
        found = self.rows.at(set(places))
        path = self.beside.with_suffix(".label.jsonl")
        return write_first(
            path, ({**found[i], "doubt": kinds[i]} for i in places if i in found)
        )


def tell_first(first: FirstToLabel, summary: Summary) -> None:
    """Write the rows to label first where a run of pairs settles nothing, and say so."""
    from langchain_judges.runs.decision import is_open

    if is_open(summary) and (text := first.write()):
        error_console().print(text, markup=False)
