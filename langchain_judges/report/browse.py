"""All rows of a report as data that its page searches, filters and sorts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from langchain_judges.report.content import ReportContent
from langchain_judges.report.evidence import cost_of, differs, evidence, shown, texts_of
from langchain_judges.report.judged_row import JudgedRow

LONGEST = 6_000
"""Characters of one text in the list of all rows."""
MOST_CHARACTERS = 60_000_000
"""Characters of all texts of a page, costliest rows first; rows beyond have no texts."""


def script() -> str:
    """Return the page's own script, the only one that it runs."""
    return (files("langchain_judges.report") / "templates" / "rows.js").read_text("utf-8")


def script_hash() -> str:
    """Return the name of the script in the page's policy."""
    digest = hashlib.sha256(script().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def packed_rows(reports: Sequence[ReportContent]) -> Markup:
    """Return all rows, compressed, as letters that no markup can hide in."""
    places: dict[Hashable, list[JudgedRow | None]] = {}
    for number, report in enumerate(reports):
        for row in report.sample.rows:
            own = places.setdefault(row.place, [None] * len(reports))
            own[number] = row
    numbered = list(enumerate(places.values()))
    numbered.sort(key=lambda pair: -max(_cost(row) for row in pair[1]))
    room = MOST_CHARACTERS
    rows: list[dict[str, Any]] = []
    for number, judgments in numbered:
        entry = _row(number, judgments, with_texts=room > 0)
        room -= sum(len(text) for _, text in entry["texts"]) + len(entry["task"])
        rows.append(entry)
    rows.sort(key=lambda entry: int(entry["number"]))
    sample = reports[0].sample
    data = {
        "judges": [report.name for report in reports],
        "people": "label" if sample.by_label else "people",
        "rows": rows,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
    return Markup(base64.b64encode(packed).decode())  # noqa: S704 - letters of base64


def _cost(row: JudgedRow | None) -> float:
    return 0.0 if row is None or not differs(row) else cost_of(row)


def _row(
    number: int, judgments: Sequence[JudgedRow | None], *, with_texts: bool
) -> dict[str, Any]:
    first = next(row for row in judgments if row is not None)
    own = first.row.get("id")
    texts = [(name, _cut(text)) for name, text in texts_of(first)] if with_texts else []
    task = _cut(shown(first.data_row.get("input") or "")) if with_texts else ""
    return {
        "number": number,
        "id": str(first.place if own is None else own),
        "category": first.category,
        "task": task,
        "texts": texts,
        "label": None if first.label is None else str(first.label),
        "votes": [str(vote) for vote in first.votes],
        "judges": [None if row is None else _judgment(row) for row in judgments],
    }


def _judgment(row: JudgedRow) -> dict[str, object]:
    score = row.verdict.get("score")
    orders = [row.in_order("AB"), row.in_order("BA")] if row.has_orders else None
    return {
        "answer": None if row.answer is None else str(row.answer),
        "score": float(score) if isinstance(score, int | float) else None,
        "flipped": bool(row.verdict.get("flipped")),
        "orders": orders,
        "cost": round(_cost(row), 4),
        "reason": _cut(str(row.verdict.get("rationale") or "")),
        "evidence": [asdict(table) for table in evidence(row.row)],
    }


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
