"""Rows of a run and of its data, for the tests of reports."""

from __future__ import annotations

from typing import Any

from langchain_judges.runs.summary import Summary
from langchain_judges.verdict import no_usage


def verdict(preference: str | None, **more: object) -> dict:
    score = {"A": 1.0, "tie": 0.5, "B": 0.0, None: None}[preference]
    failures = [{"step": "s", "unit": "", "reason": "refusal", "detail": "no"}]
    return {
        "preference": preference,
        "score": score,
        "scores": None,
        "confidence": None,
        "confidence_source": "none",
        "flipped": None,
        "rationale": "because",
        "failures": [] if preference else failures,
        "usage": no_usage(),
        **more,
    }


def run_of(answers: list, **more: object) -> list[dict]:
    """Rows of a run; an answer of two letters is that of both orders."""
    rows = []
    for index, answer in enumerate(answers):
        row = {"index": index, "id": f"r{index}", "key": str(index), **more}
        if isinstance(answer, tuple):
            same = answer[0] == answer[1]
            row["by_order"] = dict(
                zip(("AB", "BA"), ({"preference": a} for a in answer), strict=True)
            )
            row["verdict"] = verdict(answer[0] if same else "tie", flipped=not same)
        else:
            row["verdict"] = verdict(answer)
        rows.append(row)
    return rows


def data_of(labels: list, **more: object) -> list[dict]:
    return [
        {
            "id": f"r{i}",
            "input": f"Question {i}",
            "output_a": "a" * (10 + 3 * (i % 7)),
            "output_b": "b" * (10 + 5 * (i % 4)),
            **({"human_votes": label} if isinstance(label, list) else {"label": label}),
            **more,
        }
        for i, label in enumerate(labels)
    ]


def items_of(answers: list, **more: object) -> list[dict]:
    """Rows of a run of a judge of single texts; None is a failed judgment."""
    rows = run_of([None if answer is None else "A" for answer in answers], **more)
    for row, answer in zip(rows, answers, strict=True):
        fields = {k: v for k, v in row["verdict"].items() if k not in ("preference", "flipped")}
        row["verdict"] = {**fields, "label": answer, "score": answer, "recalled": []}
    return rows


def texts_of(labels: list, **more: object) -> list[dict]:
    return [
        {"id": f"r{i}", "input": "q", "output": f"text {i}", "label": label, **more}
        for i, label in enumerate(labels)
    ]


def answered(summary: Summary, counts: dict[str, int], category: str = "", **row: Any) -> Summary:
    """The summary with more rows by answer."""
    group = row.get("group")
    for answer, number in counts.items():
        summary.preferences[answer] += number
        summary.answers[answer, "", category, "" if group is None else str(group)] += number
    return summary
