"""The same rows judged again later: did the judge change?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.metrics import Result
from langchain_judges.metrics.result import Findings
from langchain_judges.report.conclusions import (
    TITLES,
    Number,
    Use,
    UseAnswer,
    value_text,
    with_range,
)
from langchain_judges.report.judged_columns import Sample
from langchain_judges.rows.files import json_in
from langchain_judges.verdict import Label


@dataclass(frozen=True)
class Drift(Findings):
    """A report beside an earlier one, on the rows that both have.

    Attributes:
        since: When the earlier report was made.
        change: Agreement now − agreement then, in [−1, 1], paired by row.
        changed: The share of rows on which the judge says something else now.
        words: By use its answer then and now, where that is another one.
    """

    since: str
    change: Result
    changed: Result
    words: dict[Use, tuple[str, str]]

    @property
    def sentence(self) -> str:
        """What changed for each use, and how often the judge is right now beside then."""
        since = f"Since {self.since}" if self.since else "Since the baseline"
        uses = [f"{TITLES[use]}: {a} → {b}" for use, (a, b) in self.words.items()]
        answers = "; ".join(uses) or "the same answer for every use"
        change = Number("", "", self.change, "points")
        other = f"another answer on {value_text(Number('', '', self.changed), 0)}"
        word = "worse" if self.worse else "not shown to be worse"
        return (
            f"{since}: {answers}. Right on the same {self.change.n:,} rows "
            f"{with_range(change)}, {other}: {word}."
        )

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the change is below 0."""
        return self.change.interval is not None and self.change.interval.high < 0

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data."""
        return {**super().to_dict(), "worse": self.worse, "sentence": self.sentence}


class RowAnswer(TypedDict):
    """A judge's answer to a row.

    Attributes:
        row: The name of the row's texts, the same in another run.
        right: How far it was right.
    """

    row: str
    answer: Label | None
    right: float | None


def row_answers(sample: Sample) -> list[RowAnswer]:
    """Return each row's answer under a name that the same texts have in another run."""
    names = Counter[str]()
    answers: list[RowAnswer] = []
    for row, right in zip(sample.rows, sample.rights, strict=True):
        content = row.row.get("content") or {}
        name = ".".join(content[field] for field in sorted(content)) or str(row.place)
        names[name] += 1
        own = name if names[name] == 1 else f"{name}#{names[name]}"
        answers.append({"row": own, "answer": row.answer, "right": right})
    return answers


def drift(sample: Sample, uses: Mapping[Use, UseAnswer], earlier: Mapping[str, Any]) -> Drift:
    """Compare the rows of now with an earlier report, one by one.

    Args:
        sample: The judged rows.
        uses: The answers of now.
        earlier: What `to_dict` or the JSON of a report gives.

    Raises:
        InputError: It is no such report, or has no row of this one.
    """
    _check_report(earlier, "the baseline")
    before = {each["row"]: each for each in earlier["answers"]}
    then = {each["use"]: each["answer"] for each in earlier["uses"]}
    pairs = [
        (i, now, before[now["row"]])
        for i, now in enumerate(row_answers(sample))
        if now["row"] in before
    ]
    if not pairs:
        raise InputError("no row of the baseline is in this run")
    settings = sample.settings_of(i for i, *_ in pairs)
    rights = [[each["right"] for each in side] for side in list(zip(*pairs, strict=True))[1:]]
    moved = [float(new["answer"] != old["answer"]) for _, new, old in pairs]
    return Drift(
        since=earlier["provenance"].get("date", ""),
        change=metrics.paired_difference(*rights, **settings),
        changed=metrics.rate(moved, **settings),
        words={
            use: (then[use], now.word)
            for use, now in uses.items()
            if then.get(use, now.word) != now.word
        },
    )


def read_baseline(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a report that was written as JSON.

    Raises:
        InputError: There is no such file, or it is not a report.
    """
    try:
        earlier = json_in(Path(path))
    except (OSError, ValueError) as exc:
        raise InputError(f"the baseline {path} cannot be read: {exc}") from exc
    _check_report(earlier, f"the baseline {path}")
    return dict(earlier)


def _check_report(earlier: object, name: str) -> None:
    parts = {"answers": list, "uses": list, "provenance": Mapping}
    if not isinstance(earlier, Mapping) or not all(
        isinstance(earlier.get(part), kind) for part, kind in parts.items()
    ):
        raise InputError(f"{name} is not a report: create one with `trust --json`")
