"""What a report says first: one table and one next step, the same wherever it is shown."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from langchain_judges.report.conclusions import (
    Number,
    TrustPolicy,
    Use,
    UseAnswer,
    percent_text,
    with_range,
)
from langchain_judges.report.judged_columns import Sample
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import Label

MOST_TO_ASK = 2_000
"""More labels than these settle less than a better judge would."""


class Reported(Protocol):
    """What the table and the next step need of a report: see `TrustReport`."""

    name: str
    sample: Sample
    policy: TrustPolicy
    numbers: dict[str, Number]
    uses: dict[Use, UseAnswer]
    files: tuple[str, str]

    @property
    def headline(self) -> Number:
        """The agreement that sums it up."""
        ...


class Line(NamedTuple):
    """A line of the table: a question, its answer, what was found and on which rows."""

    title: str
    answer: str
    found: str
    rows: str


class NextStep(NamedTuple):
    """The one thing to do next.

    Attributes:
        text: What and why.
        command: The command that does it; capitals stand for what is yours.
        rows: The names of rows that show why.
    """

    text: str
    command: str
    rows: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The step in words, with the rows that show why."""
        names = ", ".join(self.rows)
        return f"{self.text} Look at {names}." if names else self.text


def overview(report: Reported) -> list[Line]:
    """Return the table: agreement, people among themselves, the answers, what went wrong."""
    numbers, sample = report.numbers, report.sample
    titles = {
        "agreement.people": "People among themselves",
        "agreement.alpha": "People beyond chance (Krippendorff's α)",
    }
    wrong = {
        "bias.flips": "Flips when the texts swap places",
        "failures.ties": "Ties",
        "failures.failed": "Not judged",
    }
    whom = f"Agreement with {sample.whom}"
    return [
        _line(whom, report.headline),
        *(_line(title, numbers[key]) for key, title in titles.items() if key in numbers),
        *(
            Line(each.title, each.word, each.brief or each.reason, each.basis)
            for each in report.uses.values()
        ),
        *(_line(title, numbers[key]) for key, title in wrong.items() if key in numbers),
    ]


def _line(title: str, number: Number) -> Line:
    result = number.result
    if math.isnan(result):
        return Line(title, "", f"unknown: {result.reason}", "")
    out = sum(result.n_failed.values())
    left = f", {out:,} out" if out else ""
    return Line(title, "", with_range(number), f"n = {result.n:,}{left}")


def table_text(report: Reported) -> str:
    """Return the table and the next step as lines of a terminal."""
    lines = overview(report)
    wide = [max(len(line[place]) for line in lines) for place in (0, 1)]
    rows = [
        f"{line.title:{wide[0]}}  {line.answer:{wide[1]}}  {line.found}  [{line.rows}]"
        for line in lines
    ]
    step = next_step(report)
    return "\n".join([f"{report.name}", *rows, f"Next: {step.sentence}", f"  {step.command}"])


# ---- what to do next


def next_step(report: Reported) -> NextStep:
    """Return the one thing to do next, the most harmful first."""
    sample, uses = report.sample, report.uses
    words = {use: answer.word for use, answer in uses.items()}
    if mend := _failures(report):
        return mend
    if report.headline.result.n and sample.divided > len(sample.rows) / 5:
        return _sharpen_for_people(report)
    labels = [each.labels for each in uses.values() if each.labels]
    if "no" in (words["single"], words["averages"]) and sample.mistakes:
        return _mend_mistakes(report)
    if "not yet" in words.values() and max(labels, default=0) <= MOST_TO_ASK:
        return _label(report, max(labels, default=0))
    if "not yet" in words.values():
        return _mend_mistakes(report)
    if "no" in words.values():
        return _mend_mistakes(report)
    if set(words.values()) == {"not measured"}:
        return _label(report, 0)
    fine = [uses[use].title.lower() for use, word in words.items() if word == "yes"]
    return NextStep(
        f"Stop here: it is right enough for {' and '.join(fine)}. Measure again when its model "
        "or prompt changes.",
        _trust(report, "--baseline", "last.json"),
    )


def _trust(report: Reported, *more: str) -> str:
    return shlex.join(["langchain-judges", "trust", *report.files[:1], *more])


def _failures(report: Reported) -> NextStep | None:
    lost = report.numbers["failures.failed"].result
    if not lost or lost < 0.1:
        return None
    reasons = Counter(
        failure["reason"]
        for row in report.sample.rows
        if row.answer is None
        for failure in row.verdict.get("failures") or []
    )
    why = f", most by `{reasons.most_common(1)[0][0]}`" if reasons else ""
    return NextStep(
        f"Mend what is not judged, {percent_text(lost)} of rows{why}; then judge them again.",
        _trust(report, "--model", "MODEL"),
    )


def _label(report: Reported, number: int) -> NextStep:
    rows, verdicts = report.files
    free = [row for row in report.sample.rows if not row.target]
    doubtful = sum(bool(row.verdict.get("flipped")) for row in free)
    number = number or 50
    source = shlex.join([rows, "--verdicts", verdicts]) if free else "NEW-ROWS.jsonl"
    which = "new ones like these, the same for every question"
    if free:
        which = f"first {counted(doubtful, 'row')} without a label whose two orders disagree"
        which = which if doubtful else "of those without a label"
    missing = " ".join(each.more for each in report.uses.values() if each.missing)
    why = f" {missing}" if missing and not any(u.labels for u in report.uses.values()) else ""
    return NextStep(
        f"Label {counted(number, 'row')}, {which}.{why}",
        f"langchain-judges label {source} -o labels.jsonl --budget {number}",
    )


def _sharpen_for_people(report: Reported) -> NextStep:
    rows = [row for row in report.sample.rows if row.is_divided]
    pairs = Counter(tuple(sorted(map(str, row.choices))) for row in rows)
    pair = pairs.most_common(1)[0][0]
    shown = [str(row.place) for row in rows if tuple(sorted(map(str, row.choices))) == pair]
    return NextStep(
        f"Say what sets {' and '.join(pair)} apart, for people first: they differ on "
        f"{counted(len(rows), 'row')}, most often between these.",
        "langchain-judges label DISPUTED.jsonl -o labels.jsonl",
        [f"row {name}" for name in shown[:3]],
    )


def _mend_mistakes(report: Reported) -> NextStep:
    """Return a definition to sharpen where one kind of mistake leads, else a guideline."""
    sample = report.sample
    kinds = Counter[tuple[Label | None, Label | None]](
        (row.label, row.answer) for row in sample.mistakes
    )
    if not kinds:
        return _label(report, 0)
    (label, answer), count = kinds.most_common(1)[0]
    shown = [r for r in sample.mistakes if (r.label, r.answer) == (label, answer)][:3]
    names = [f"row {each.row.get('id') or each.place}" for each in shown]
    total = len(sample.mistakes)
    if "surest" in report.uses["single"].reason:
        return NextStep(
            "Let it decide only where it is sure, and ask a stronger judge or a person about "
            "the rest: a cascade.",
            _trust(report, "--spec", "CASCADE.json"),
            names,
        )
    if count >= 3 and 2 * count >= total and not sample.pairs:
        return NextStep(
            f"Say in the rubric what sets {label} and {answer} apart: of {total:,} mistakes "
            f"{count:,} are {answer} in place of {label}.",
            _trust(report, "--method", "rubric", "--model", "MODEL", "--set", "rubric=RUBRIC"),
            names,
        )
    rows = report.files[0]
    command = f"langchain-judges audit {shlex.quote(rows)} --memory mistakes.db --model MODEL"
    if sample.pairs:
        command = _trust(report, "--method", "bsm", "--model", "STRONGER-MODEL")
    what = "a stronger model or criteria" if sample.pairs else "guidelines from its mistakes"
    return NextStep(f"Change one thing: {what}; it is wrong on {total:,} rows.", command, names)
