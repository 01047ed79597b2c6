"""Overview of a report: a table and a next step, on a page, in Markdown and at a terminal."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from langchain_judges.escaping import clean, escaped
from langchain_judges.report import answers, compared_runs, measurements, single_verdicts, use_cases
from langchain_judges.report.answers import Number, TrustPolicy, Use, UseAnswer
from langchain_judges.report.sample import Sample
from langchain_judges.runs.summary import counted, rate_text
from langchain_judges.verdict import Label


class FileNames(NamedTuple):
    """Names of the rows and the judge's answers in commands.

    Attributes:
        rows: The table, and files of labels.
        verdicts: Results of the judge; empty: its answers are columns of the table.
        columns: Flags of the columns of the table.
        judge: Flags of the columns of the judge.
    """

    rows: Sequence[str] = ("ROWS.jsonl",)
    verdicts: str = "VERDICTS.jsonl"
    columns: Sequence[str] = ()
    judge: Sequence[str] = ()


class Measured:
    """Table of a judge's measurements, and whether it may be used for each of four uses.

    Attributes:
        sample: The judged rows.
        name: What the judge is called.
        policy: What is good enough for each use.
        numbers: Every number by its key, such as `agreement.label.wrong`.
        uses: For each use whether the judge may be trusted: `yes`, `no` or `not yet`, and why.
        files: What commands call the rows and the verdicts.
        left_out: Which rows or verdicts count nowhere, or in part, in sentences; and which
            labels one side alone gives.
        drift: What changed since an earlier report.
    """

    def __init__(self, sample: Sample, name: str, policy: TrustPolicy = answers.POLICY) -> None:
        """Measure a sample of judged rows."""
        self.sample, self.name, self.policy = sample, name, policy
        self.numbers: dict[str, Number] = {n.key: n for n in measurements.measure(sample)}
        self.uses: dict[Use, UseAnswer] = use_cases.answers_of(sample, self.numbers, policy)
        self.files = FileNames()
        self.left_out = ""
        self.drift: compared_runs.Drift | None = None

    @property
    def headline(self) -> Number:
        """The agreement that sums it up."""
        return self.numbers[measurements.headline_key(self.sample, self.numbers)]

    @property
    def verdict(self) -> str:
        """Whether it may be trusted, and for what."""
        words: dict[str, list[str]] = {}
        for use in self.uses.values():
            words.setdefault(use.word, []).append(use.title.lower())
        given = (word for word in ("yes", "no", "not yet") if word in words)
        parts = [f"{word.capitalize()}: {', '.join(words[word])}." for word in given]
        return " ".join(parts) or "Not measured."

    @property
    def limits(self) -> dict[str, str]:
        """Limits by the title of each use that was measured."""
        several = len(self.sample.by_system) > 1
        ranges = {name: part.scale.text for name, part in self.sample.parts.items()}
        limits = self.policy.limits(ranges, systems=several)
        asked = [each for each in self.uses.values() if each.word != "not measured"]
        return {answer.title: limits[answer.use] for answer in asked}

    @property
    def legend(self) -> str:
        """The key to the table."""
        words = {"times": answers.percent(self.sample.confidence), "groups": self.sample.in_groups}
        return str(answers.WORDS["legend"]).format(**words)


class UseLine(NamedTuple):
    """A line of the table: a question, its answer, what was found and on which rows."""

    title: str
    answer: str
    found: str
    rows: str


_TITLES: dict[str, dict[str, str]] = answers.WORDS["overview"]


def overview(report: Measured) -> list[UseLine]:
    """The table: agreement, people among themselves, the answers, what went wrong."""
    numbers, wrong = report.numbers, dict(_TITLES["wrong"])
    same = " (the same rating)" if report.sample.rated else ""
    people = {key: title.format(same=same) for key, title in _TITLES["people"].items()}
    top, slot = report.headline, numbers.get("bias.first_slot_rate")
    what = f": {top.title}" if report.sample.by_criteria else ""
    if top.unit == "number" and not what:
        what = " (rank correlation: 0 is none, 1 the same order)"
    if slot is None or slot.result.interval is None or slot.result.interval.covers(0.5):
        wrong.pop("bias.first_slot_rate")
    return [
        _table_line(f"Agreement with {report.sample.whom}{what}", top),
        *_table_lines(people, report),
        *(
            UseLine(each.title, each.word, each.brief or each.reason, each.basis)
            for each in report.uses.values()
        ),
        *_table_lines(wrong, report),
    ]


def _table_lines(titles: Mapping[str, str], report: Measured) -> list[UseLine]:
    found = {key: report.numbers[key] for key in titles if key in report.numbers}
    found = {k: n for k, n in found.items() if n.result.n or n.section != "agreement"}
    return [_table_line(titles[key], number) for key, number in found.items()]


_LACKS: dict[str, str] = answers.WORDS["lacks"]
_COUNTED: dict[str, str] = answers.WORDS["counted"]


def _table_line(title: str, number: Number) -> UseLine:
    result = number.result
    if math.isnan(result):
        return UseLine(title, "", f"unknown: {result.reason}", "")
    one, *of = _COUNTED.get(number.key, "row").split(" ", 1)
    rows = " ".join([counted(result.n, one), *of])
    # What happened on these rows is no estimate, and needs no range.
    counts = number.section == "failures"
    if counts:
        rows = f"{round(result * result.n):,} of {rows}"
    for reason, out in result.n_failed.items():
        why = _LACKS.get(reason, "not judged")
        as_wrong = reason not in _LACKS and number.key.endswith(".wrong")
        ending = "counted as wrong" if as_wrong else "left out"
        rows += f"; {counted(out, 'row')} {why}, {ending}"
    told = answers.percent_text(result) if counts else answers.with_range(number)
    return UseLine(title, "", told, rows)


def table_text(report: Measured) -> str:
    """The table, the next step and the answers as lines of a terminal."""
    return from_template("report.txt", report=report)


def head_text(report: Measured) -> str:
    """The limits, and a guide to the table, as lines of a terminal."""
    return from_template("head.txt", report=report)


# ---- what to do next


class NextStep(NamedTuple):
    """The one thing to do next.

    Attributes:
        text: What and why.
        command: The command that does it, or two, a line each; replace what is in capitals.
        rows: The names of rows that show why.
    """

    text: str
    command: str
    rows: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The step in words, with the rows that show why."""
        names = ", ".join(self.rows)
        return f"{self.text} To see why, read {names}." if names else self.text


def next_step(report: Measured) -> NextStep:
    """The one thing to do next, the most harmful first."""
    sample, uses = report.sample, report.uses
    words = {use: answer.word for use, answer in uses.items()}
    if first := _lost_rows(report) or _turn_round(report):
        return first
    if report.headline.result.n and sample.divided > len(sample.rows) / 5:
        return _sharpen_for_people(report)
    helped = [each for each in uses.values() if each.labels or each.missing]
    # Labels that most likely end in a no are no reason to go on with a judge.
    hopeful = [each for each in helped if each.hopeful]
    doomed = helped and not hopeful
    if (doomed or "no" in (words["single"], words["averages"])) and sample.mistakes:
        return _mend_mistakes(report)
    if helped or set(words.values()) == {"not measured"}:
        labels = [each.labels for each in hopeful or helped if each.labels]
        return _label_counts(report, min(labels, default=0))
    by_word: dict[str, list[str]] = {}
    for use, word in words.items():
        by_word.setdefault(word, []).append(uses[use].title.lower())
    if "no" in by_word or "yes" not in by_word:
        return _mend_mistakes(report)
    unsure = " and ".join(by_word.get("not yet", ()))
    rest = f"; even {answers.MOST_TO_LABEL:,} more labels may not settle {unsure}" if unsure else ""
    fine = " and ".join(by_word["yes"])
    return _step("stop", _trust(report, "--baseline", "last.json"), fine=fine, rest=rest)


_STEPS: dict[str, str] = answers.WORDS["next_step"]


def _step(name: str, command: str, rows: Sequence[str] = (), **said: object) -> NextStep:
    return NextStep(_STEPS[name].format(**said), command, rows)


def _trust(report: Measured, *judge: str) -> str:
    """The command that measures a judge, whose new answers may be a column."""
    rows, verdicts, columns, own = report.files
    if judge[0] == "--baseline":
        judge = (*own, *judge)
    elif not verdicts:
        judge = ("--judge", "NEW-COLUMN")
    return shlex.join(["langchain-judges", "trust", *rows, *columns, *judge])


def _model(report: Measured, name: str = "MODEL") -> list[str]:
    """The flags of a judge yet to be named: a model, and for single texts a rubric."""
    return ["--model", name, *([] if report.sample.pairs else ["--set", "rubric=RUBRIC"])]


def _lost_rows(report: Measured) -> NextStep | None:
    lost = report.numbers["failures.failed"].result
    if not lost or lost < 0.1:
        return None
    reasons = [n for key, n in report.numbers.items() if key.startswith("failures.reason.")]
    most = max(reasons, key=lambda number: number.result)
    why, part = most.key.rpartition(".")[2], answers.percent_text(lost)
    return _step("judge_again", _trust(report, *_model(report)), part=part, why=why)


def _turn_round(report: Measured) -> NextStep | None:
    """The advice on answers that run against people's, in all or by a criterion."""
    sample, files = report.sample, report.files
    known = ((n.key, measurements.turned_text(n, sample.whom)) for n in report.numbers.values())
    key, text = next((each for each in known if each[1]), ("", ""))
    if not text:
        return None
    name = key.partition(".")[2].rpartition(".")[0]
    text = f"By {name} {text}" if name else f"I{text[1:]}"
    ours = files.verdicts and not sample.pairs
    best = ", or name the better end of the judge's labels, `best`" if ours else ""
    command = _trust(report, *_model(report), *(["--set", "best=LABEL"] if ours else []))
    return _step("turn_round", command, finding=text, best=best)


def _label_counts(report: Measured, number: int) -> NextStep:
    (rows, *more), verdicts, columns, own = report.files
    labels = more[-1] if more else "labels.jsonl"
    free = [row for row in report.sample.rows if not (row.target or row.labels)]
    doubtful = sum(bool(row.verdict.get("flipped")) for row in free)
    number = number or 50
    judged = ["--verdicts", verdicts] if verdicts else []
    source = shlex.join([rows, *columns, *judged]) if free else "NEW-ROWS.jsonl"
    beside = ", with the judge's answers" if own else ""
    which = f"{counted(number, 'new row')} like these{beside}"
    if free:
        which = f"first {counted(doubtful, 'row')} without a label whose two orders disagree"
        which = which if doubtful else "of those without a label"
        which = f"{counted(number, 'row')}, {which}"
    judge = own or judged if own or free else _model(report)
    again = [*dict.fromkeys([rows, *more, labels]), *columns, *judge]
    command = f"langchain-judges label {source} -o {shlex.quote(labels)} --max-rows {number}\n"
    command += shlex.join(["langchain-judges", "trust", *again])
    return _step("label", command, which=which, outlook=_outlook([*report.uses.values()], number))


def _outlook(uses: Sequence[UseAnswer], number: int) -> str:
    """End of a sentence: what that many labels are likely to settle, and what not."""
    names: dict[str, list[str]] = {}
    for each in uses:
        hoped = each.labels if each.labels and each.hopeful else 0
        near = 0 < hoped <= number
        far = f" (about {hoped:,})" if hoped and not near else ""
        far = " (as things stand, with a yes)" if near and not each.missing else far
        key = ("first" if each.missing else "settled") if near else each.word
        names.setdefault(key, []).append(each.title.lower() + far)
    still = f"; still no: {' and '.join(names['no'])}" if "no" in names else ""
    if not {"settled", "first"} & names.keys():
        return " ".join([f"{still}.", *(each.more for each in uses if each.missing)])
    rest = f"; not enough for {' and '.join(names['not yet'])}" if "not yet" in names else ""
    ends = {"settled": "that is likely to settle", "first": "until then nothing is known of"}
    said = [f"; {end} {' and '.join(names[key])}" for key, end in ends.items() if key in names]
    return f"{''.join(said)}{rest}{still}."


def _sharpen_for_people(report: Measured) -> NextStep:
    rows = [row for row in report.sample.rows if row.is_divided]
    pair = Counter(tuple(sorted(map(str, row.choices))) for row in rows).most_common(1)[0][0]
    shown = [f"row {r.name}" for r in rows if tuple(sorted(map(str, r.choices))) == pair]
    command, said = "langchain-judges label DISPUTED.jsonl -o labels.jsonl", " and ".join(pair)
    number = counted(len(rows), "row")
    return _step("sharpen_for_people", command, shown[:3], pair=said, number=number)


def _mend_mistakes(report: Measured) -> NextStep:
    """A definition to sharpen where one kind of mistake leads, else a guideline."""
    sample = report.sample
    mistakes = [row for row in sample.mistakes if row.label is not None]
    kinds = Counter[tuple[Label | None, Label | None]]((r.label, r.answer) for r in mistakes)
    if not kinds:
        return _label_counts(report, 0)
    (label, answer), count = kinds.most_common(1)[0]
    shown = [r for r in mistakes if (r.label, r.answer) == (label, answer)]
    names = [f"row {each.name}" for each in shown[:3]]
    total = len(mistakes)
    of = " where people have a majority" if sample.divided else ""
    if "surest" in report.uses["single"].reason:
        return _step("cascade", _trust(report, "--spec", "CASCADE.json"), names)
    if count >= 3 and 2 * count >= total and not sample.pairs:
        said = {"label": label, "answer": answer, "total": total, "of": of, "count": count}
        return _step("sharpen", _trust(report, *_model(report)), names, **said)
    return _another_judge(report, names)


def _another_judge(report: Measured, names: Sequence[str]) -> NextStep:
    """The next step of another judge, and why."""
    sample = report.sample
    (rows, *_), verdicts, columns, _ = report.files
    words = ["langchain-judges", "audit", rows, *columns, "--memory", "mistakes.db"]
    command = shlex.join([*words, *_model(report)])
    if sample.pairs or sample.rated or not verdicts:
        how = ("--method", "bsm") if sample.pairs else ()
        command = _trust(report, *how, *_model(report, "STRONGER-MODEL"))
    what = "a stronger model and criteria" if sample.pairs else "guidelines from its mistakes"
    what = "a stronger model and a clearer rubric" if sample.rated else what
    uses = report.uses["single"], *report.uses.values()
    bad = [use for use in uses[1:] if use.word == "no"]
    bad = bad or [use for use in uses if use.word == "not yet"][:1]
    own = "" if verdicts else ", its answers in a column of the table"
    why = ", ".join(use.title.lower() for use in bad)
    if slot := measurements.slot_text(report.numbers):
        # A flipped pair is a tie, and where people prefer a text that is wrong.
        most, slot = answers.percent_text(report.policy.max_wrong), f"{slot[0].upper()}{slot[1:]}"
        return _step("until_few_flip", command, names, slot=slot, what=what + own, most=most)
    return _step("another_judge", command, names, what=what + own, why=why)


# ---- in Markdown


class BarCheck(NamedTuple):
    """One bar.

    Attributes:
        value: What was measured, in words.
    """

    title: str
    value: str
    bar: str
    passed: bool


def markdown(report: Measured, checks: Sequence[BarCheck]) -> str:
    """A summary of a report in Markdown: the table, the next step, the bars, and why."""
    return clean(from_template("report.md", report=report, checks=checks))


# ---- on a page


def templates_of(package: str) -> Environment:
    """The templates of a package; the judged texts are other people's, and may hold markup."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _templates() -> Environment:
    environment = templates_of("langchain_judges.report")
    environment.filters.update(
        md=escaped,
        rate=rate_text,
        value=answers.value_text,
        ranged=answers.with_range,
        range=answers.range_text,
        percent=answers.percent,
        plain=lambda text: str(text).encode("utf-8", "replace").decode(),  # UTF-8 carries it
        overview=overview,
        next_step=next_step,
        mistakes=single_verdicts.mistakes_text,
    )
    environment.tests["undefined_number"] = lambda number: math.isnan(number.result)
    return environment


def from_template(name: str, **values: object) -> str:
    """A template of the reports, filled."""
    return _templates().get_template(name).render(**values)


def page(reports: Sequence[Measured], contests: Sequence[compared_runs.Contest]) -> str:
    """The HTML page of one report, or of several."""
    return from_template("report.html", reports=reports, contests=contests)
