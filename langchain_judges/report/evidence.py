"""The costliest disagreements between judge and people, with the judge's own evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from langchain_judges.lazy import packaged
from langchain_judges.report.joined_rows import JudgedRow, VerdictRow, judge_in
from langchain_judges.report.sample import Sample
from langchain_judges.rows.texts import transcript
from langchain_judges.verdict import POINTS

# Disagreements that a page shows.
CASES = 10
# Characters of a text that a page shows.
LONGEST_TEXT = 20_000

_TEXTS: Mapping[str, str] = packaged(__package__, "words.yaml")["texts"]
_COLUMNS: Mapping[str, str | None] = packaged(__package__, "words.yaml")["columns"]
_WENT_WRONG = (("step", "Step"), ("unit", "Of"), ("reason", "Reason"), ("detail", "Detail"))


@dataclass(frozen=True)
class TextTable:
    """Evidence as a table of texts."""

    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Disagreement:
    """A row on which judge and people disagree.

    Attributes:
        texts: What each text is called, and the text.
        cost: Distance of the score from people's answer, times the share of people who gave
            that answer; in [0, 1].
    """

    id: str
    category: str | None
    task: str
    texts: list[tuple[str, str]]
    people: str
    judge: str
    score: float | None
    cost: float
    rationale: str
    evidence: list[TextTable] = field(default_factory=list)


def costliest(sample: Sample) -> list[Disagreement]:
    """The worst disagreements: the judge is sure of a wrong answer, and people are unanimous.

    Rows that were not judged do not count as disagreements, but as failures.
    """
    # Of mistakes that cost the same each kind has its turn, for one may be common.
    seen = Counter[object]()
    turns: list[tuple[float, int, int, JudgedRow]] = []
    for row in sample.mistakes:
        kind = (_cost(row), row.answer, row.label)
        seen[kind] += 1
        turns.append((-_cost(row), seen[kind], len(turns), row))
    return [_disagreement(row) for *_, row in sorted(turns, key=itemgetter(0, 1, 2))[:CASES]]


def _score(row: JudgedRow) -> float | None:
    """The score of a verdict, if it is a number."""
    score = row.verdict.get("score")
    return float(score) if isinstance(score, int | float) else None


def _cost(row: JudgedRow) -> float:
    """Distance of the score from people's label, weighted by their agreement."""
    agreed = row.target.count(row.choices[0]) / len(row.target)
    score = _score(row)
    target: object = POINTS.get(row.label) if row.is_pair else row.label
    if score is None or not isinstance(target, int | float):
        return agreed
    return min(1.0, abs(score - target)) * agreed


def _disagreement(row: JudgedRow) -> Disagreement:
    labels, verdict = row.data_row, row.verdict
    people = " or ".join(map(str, row.choices))
    if row.votes:
        each = " each" if row.is_divided else ""
        people += f" ({row.votes.count(row.choices[0])} of {len(row.votes)} votes{each})"
    return Disagreement(
        id=row.name,
        category=row.category,
        task=readable_cell(labels.get("input") or ""),
        texts=[
            (name, readable_cell(labels[key])) for key, name in _TEXTS.items() if labels.get(key)
        ],
        people=people,
        judge=str(row.answer),
        score=_score(row),
        cost=_cost(row),
        rationale=str(verdict.get("rationale") or ""),
        evidence=evidence(row.row),
    )


def readable_cell(text: object) -> str:
    """A text, chat messages or a list of accepted answers as one text to show."""
    if isinstance(text, list) and text and not isinstance(text[0], Mapping):
        text = " / ".join(map(str, text))
    whole = transcript(text) if isinstance(text, str | list) else str(text)
    return whole if len(whole) <= LONGEST_TEXT else f"{whole[:LONGEST_TEXT]} …"


def own_evidence(row: VerdictRow) -> list[TextTable]:
    """The method's own findings: votes, tables, scores, orders."""
    method = judge_in(row).get("method")
    if method is None and row.keys() <= {"index", "id", "verdict"}:
        return []
    # Loaded on use: the methods take a second.
    from langchain_judges.methods.registry import result_tables

    held = {title: row[key] for key, title in result_tables(method).items() if row.get(key)}
    found = {title: rows for title, result in held.items() if (rows := _rows(result))}
    return [text_table(title, _columns(rows), rows) for title, rows in found.items()]


def _rows(result: Any) -> list[dict[str, Any]]:
    """A result as rows: a list of them, a table that has some, or parts by order."""
    if isinstance(result, Mapping):
        parts = {
            key: part or {} for key, part in result.items() if isinstance(part, Mapping | None)
        }
        return result.get("rows") or [{"order": key, **part} for key, part in parts.items()]
    return [dict(each) for each in result]


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The fields of rows and what a page calls them; parts of a field by a dot."""
    fields: dict[str, None] = {}
    for row in rows:
        for name, value in row.items():
            parts = [f"{name}.{part}" for part in value] if isinstance(value, Mapping) else [name]
            fields |= dict.fromkeys(parts)
    names = {each: _COLUMNS.get(each, each.replace("_", " ").capitalize()) for each in fields}
    return [(field, name) for field, name in names.items() if name]


def evidence(row: VerdictRow) -> list[TextTable]:
    """The evidence for a verdict: votes, tables, scores, orders, failures."""
    tables = own_evidence(row)
    verdict = row.get("verdict") or {}
    if verdict.get("recalled"):
        ids = [{"id": own} for own in verdict["recalled"]]
        tables.append(text_table("Remembered examples shown", (("id", "Example"),), ids))
    if verdict.get("failures"):
        tables.append(text_table("What went wrong", _WENT_WRONG, verdict["failures"]))
    return tables


def text_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]]
) -> TextTable:
    """Rows as a table of texts, without the columns that are empty.

    Args:
        title: What stands above it.
        columns: Each field, or a part of one by a dot, and what it is called.
        rows: The rows.
    """
    filled = [(key, name) for key, name in columns if any(_cell(row, key) for row in rows)]
    cells = [[_cell(row, key) for key, _ in filled] for row in rows]
    return TextTable(title, [name for _, name in filled], cells)


def _cell(row: Mapping[str, Any], key: str) -> str:
    value: object = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if key == "order" and value is not None:
        return {"AB": "A first", "BA": "B first"}.get(str(value), str(value))
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else readable_cell(str(value))
