"""The rows of a run, each matched with the row of the data that it judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, cast

from langchain_judges.errors import InputError
from langchain_judges.metrics.agreement import majority_vote
from langchain_judges.orders import Order
from langchain_judges.report.answers import REFUSED, WORDS
from langchain_judges.rows import checks, files
from langchain_judges.rows.columns import Columns
from langchain_judges.rows.texts import readable
from langchain_judges.runs import results, tables
from langchain_judges.runs.row_reader import Records
from langchain_judges.runs.run_row import content_key, judged_row
from langchain_judges.runs.sources import TABLES, source_of
from langchain_judges.verdict import POINTS, Label, Preference, decision

NUMBERS_ALONE = "write numbers alone, of one scale, and leave a cell empty without a label"
VerdictRows = list[dict[str, Any]]


def rows_in(value: object, what: str) -> list[Mapping[str, Any]]:
    """Rows as a list; a DataFrame or an Arrow table is its rows.

    Raises:
        InputError: They are a file name, a single row, or not rows.
    """
    if type(value).__module__.partition(".")[0] in (*TABLES, "datasets"):
        value = source_of(value).records
    named = isinstance(value, str | PathLike | Mapping) or not isinstance(value, Iterable)
    rows = [value] if named else list(cast("Iterable[object]", value))
    if bad := [row for row in rows if named or not isinstance(row, Mapping)]:
        raise InputError(REFUSED["no_rows"].format(what=what, got=str(bad[0])[:40]))
    return cast("list[Mapping[str, Any]]", rows)


def judge_in(row: VerdictRow) -> Mapping[str, Any]:
    """Description of the judge of a row, if it has one: its method, model, mark, labels."""
    judge = row.get("judge")
    return judge if isinstance(judge, Mapping) else {}


def judges_of(verdicts: Iterable[VerdictRow]) -> dict[str, VerdictRows]:
    """Split rows by judge; each is named by its model and method."""
    by_mark: dict[str, VerdictRows] = {}
    names: dict[str, str] = {}
    for row in verdicts:
        judge = judge_in(row)
        mark = str(judge.get("mark", ""))
        by_mark.setdefault(mark, []).append(row if type(row) is dict else dict(row))
        parts = [str(judge[part]) for part in ("model", "method") if judge.get(part)]
        names.setdefault(mark, " · ".join(parts) or "judge")
    alike = Counter(names.values())
    return {
        names[mark] if alike[names[mark]] == 1 else f"{names[mark]} ({mark[:6]})": rows
        for mark, rows in by_mark.items()
    }


def read_verdicts(path: str | PathLike[str]) -> dict[str, VerdictRows]:
    """Read the records of a run, or those behind its table, as rows by judge.

    Raises:
        InputError: The file is missing, damaged or empty.
    """
    records = tables.records_of(Path(path))
    if records.suffix == ".jsonl" and records.is_file() and (line := results.changed_line(records)):
        raise InputError(REFUSED["changed"].format(records=records, line=line))
    judges = judges_of(files.read_table(records))
    if not judges:
        raise InputError(f"{path} has no verdict")
    return judges


# A row of a run: its verdict, and the method's own results under names of its own.
VerdictRow = Mapping[str, Any]


@dataclass(frozen=True)
class JudgedRow:
    """A row of a run, and the row of the data that it judged.

    Attributes:
        data_row: The data's row, or what the run kept of it.
        place: What the same row has in another run: its place in the data, or its id.
    """

    row: VerdictRow
    data_row: Mapping[str, Any]
    place: Any

    @property
    def name(self) -> str:
        """Its id, or its number in the data from 1."""
        place = self.place + 1 if isinstance(self.place, int) else self.place
        return str(place if self.row.get("id") is None else self.row["id"])

    @cached_property
    def verdict(self) -> VerdictRow:
        """The judge's answer."""
        return self.row.get("verdict") or {}

    @cached_property
    def answer(self) -> Label | None:
        """The preferred text or the label; None: not judged."""
        answer: Label | None = decision(self.verdict)
        return answer

    @cached_property
    def votes(self) -> list[Label]:
        """The answers that people gave."""
        return [vote for vote in self.by_person if vote is not None]

    @property
    def by_person(self) -> list[Label | None]:
        """Each person's answer in the same place; None where one gave none."""
        return self.data_row.get("human_votes") or []

    @property
    def label(self) -> Label | None:
        """People's answer: the row's label, or else the majority of their votes.

        Equal counts are a tie of a pair; a single text they leave without a majority.
        """
        return self.choices[0] if len(self.choices) == 1 else None

    @cached_property
    def modes(self) -> list[Label]:
        """The label, or else each answer that most people give."""
        counts = Counter(self.target)
        return [answer for answer, count in counts.items() if count == max(counts.values())]

    @cached_property
    def choices(self) -> list[Label]:
        """Right answer: of a pair one, of a single text each that most people give."""
        return ["tie"] if self.is_pair and len(self.modes) > 1 else self.modes

    @property
    def is_pair(self) -> bool:
        """Whether two texts were compared."""
        return checks.kind_of_verdict(self.verdict) == "pair"

    @property
    def is_divided(self) -> bool:
        """Whether people's votes on a single text have no majority, and no label settles it."""
        return len(self.choices) > 1

    @property
    def is_settled(self) -> bool:
        """Whether a label, and not the votes beside it, is people's answer."""
        return bool(self.votes) and self.target is not self.votes

    @cached_property
    def target(self) -> list[Label]:
        """Reference for the judge: the label, or else each vote."""
        label = self.data_row.get("label")
        return self.votes if label is None else [label]

    @property
    def by_votes_alone(self) -> JudgedRow:
        """The row without a label beside votes."""
        return replace(self, data_row={**self.data_row, "label": None}) if self.votes else self

    @property
    def by_criterion(self) -> dict[str, Label | None]:
        """The judge's answer by criterion."""
        parts = self.row.get("subscores") or []
        return {own["criterion"]: own["label"] for own in parts if {"criterion", "label"} <= {*own}}

    @property
    def labels(self) -> Mapping[str, Label | list[Label]]:
        """People's answer by criterion, or each person's."""
        return self.data_row.get("labels") or {}

    @property
    def category(self) -> str | None:
        """The kind of task."""
        category = self.data_row.get("category", self.data_row.get("family"))
        return None if category is None else str(category)

    @cached_property
    def lengths(self) -> tuple[int, int] | None:
        """Characters of the two judged texts; None if one of them is not known."""
        a, b = (self.data_row.get(name) for name in ("output_a", "output_b"))
        return (len(readable(a)), len(readable(b))) if a and b else None

    @cached_property
    def by_order(self) -> dict[Order, Any]:
        """The preference in each order that was asked, by identity."""
        if by_order := self.row.get("by_order"):
            return {order: (each or {}).get("preference") for order, each in by_order.items()}
        votes: dict[Order, list[Preference | None]] = {}
        for ballot in next(filter(_are_ballots, self.row.values()), ()):
            votes.setdefault(ballot["order"], []).append(ballot["preference"])
        return {order: majority_vote(own) for order, own in votes.items()}

    @property
    def has_orders(self) -> bool:
        """Whether both orders were asked and the preference in each is known."""
        return {"AB", "BA"} <= self.by_order.keys()


def _are_ballots(items: object) -> bool:
    """Whether a list contains the preference of each order."""
    fields = {"order", "preference"}
    ballots = items if isinstance(items, list) else []
    return bool(ballots) and all(isinstance(i, Mapping) and fields <= i.keys() for i in ballots)


def preference_points(answers: Sequence[object]) -> float | None:
    """Mean preference for A, in [0, 1]; None without answers or without sides."""
    if not answers or any(answer not in POINTS for answer in answers):
        return None
    return sum(POINTS[answer] for answer in answers) / len(answers)


@dataclass(frozen=True)
class Joined:
    """The rows of a run matched with the data that they judged, and how many have no match.

    Attributes:
        rows: Each judged row of the data.
        stale: Verdicts on an older text of a row that is in the data.
        unknown: Verdicts on rows that are not in the data.
        unasked: Rows not judged because a budget was spent, which is not the judge's mistake.
        earlier: Verdicts that a later verdict on the same row replaced.
        absent: Rows of the data without a verdict.
    """

    rows: list[JudgedRow]
    stale: int = 0
    unknown: int = 0
    unasked: int = 0
    earlier: int = 0
    absent: int = 0

    @property
    def left_out(self) -> str:
        """Sentence about verdicts that are not counted; empty if there are none."""
        counts = {which: getattr(self, name) for name, which in WORDS["left_out"].items()}
        parts = [f"{count:,} {which}" for which, count in counts.items() if count]
        return f"Verdicts left out: {' and '.join(parts)}." if parts else ""

    def usable(self) -> tuple[list[JudgedRow], list[str]]:
        """The rows, with labels as the judge's, and the problems of rows that are left out.

        Labels that are the majority of the votes beside them on every row say nothing new.

        Raises:
            InputError: A row has a problem, and the judge's labels are not known, or no row is
                without one.
        """
        answers = {row.verdict.get("label") for row in self.rows} - {None}
        known = next((own for row in self.rows if (own := judge_in(row.row).get("labels"))), ())
        of_each: Mapping[str, Any] = known if isinstance(known, Mapping) else {}
        labels = [*dict.fromkeys([*(() if of_each else known), *answers])]
        names = {name.casefold(): name for row in self.rows for name in row.by_criterion}
        by_name = of_each or dict.fromkeys(names.values(), labels)
        read_rows, problems = list[JudgedRow](), list[str]()
        for row in self.rows:
            facts = dict(row.data_row)
            try:
                for field in {"label", "human_votes"} & facts.keys():
                    facts[field] = _read(facts[field], labels)
                people = {names.get(name.casefold(), name): own for name, own in row.labels.items()}
                facts["labels"] = {n: _read(own, by_name.get(n, ())) for n, own in people.items()}
                checks.check_annotations(facts, of_each or (labels if known else ()))
                read_rows.append(replace(row, data_row=facts))
            except InputError as exc:
                problems.append(f"row {row.name}: {exc}")
        if problems and not (known and read_rows):
            raise InputError(problems[0])
        by_votes = [row.by_votes_alone for row in read_rows]
        repeated = all(a.label == b.label for a, b in zip(read_rows, by_votes, strict=True))
        return by_votes if repeated else read_rows, problems


def join(verdicts: Iterable[VerdictRow], data: object, columns: Columns | None = None) -> Joined:
    """Match each row of a run with the row of the data that it judged.

    Rows belong together by the texts that were judged, as the run keeps hashes of them; where
    either side has none, by their `id`; without ids, or with repeated ones, by their `index`.

    Args:
        verdicts: Rows of a run.
        data: The rows that were judged, read as a run reads them; None: what the run kept.
        columns: Columns of the data by field, as a person named them.

    Raises:
        InputError: There is no verdict, none is of a row that was asked, or none of a row in
            the data.
    """
    rows = rows_in(verdicts, "verdicts")
    if not rows:
        raise InputError("there are no verdicts to report on")
    if bad := next((row for row in rows if not isinstance(row.get("verdict"), Mapping)), None):
        raise InputError(f"a row without a verdict: {str(bad)[:80]}")
    kinds = set(map(checks.kind_of_result, rows))
    if len(kinds) > 1:
        raise InputError("verdicts on pairs and on single texts need separate reports")
    asked_rows = [row for row in rows if was_asked(row)]
    if not asked_rows:
        raise InputError("no row was asked: the budget was spent")
    table = None if data is None else _data_rows(data, columns, kinds.pop())
    return replace(_once(_joined(asked_rows, table)), unasked=len(rows) - len(asked_rows))


def _data_rows(data: object, columns: Columns | None, kind: str) -> list[dict[str, Any]]:
    """The rows of the data as a run reads them; one that cannot be read is empty."""
    records = Records(replace(source_of(data), textless=True), columns, kind)
    rows, problems = list[dict[str, Any]](), list[InputError]()
    for place, record in enumerate(records.source.records):
        try:
            rows.append(records.row(record, place))
        except InputError as exc:
            rows.append({})
            problems.append(exc)
    if problems and not any(rows):
        raise problems[0]
    return rows


def _once(joined: Joined) -> Joined:
    """Count each row once: by its last verdict, or the last one that says something."""
    judgments: dict[Hashable, list[JudgedRow]] = {}
    for row in joined.rows:
        content = frozenset((row.row.get("content") or {}).items())
        # Ids may repeat where nothing tells the texts: then the number of the row does.
        judgments.setdefault((row.place, content or row.row.get("index")), []).append(row)
    rows = [
        next((row for row in reversed(own) if row.answer is not None), own[-1])
        for own in judgments.values()
    ]
    return replace(joined, rows=rows, earlier=len(joined.rows) - len(rows))


def was_asked(row: VerdictRow) -> bool:
    """Whether a row does not wait for a later run, because the budget was spent."""
    failures = (row.get("verdict") or {}).get("failures") or []
    return judged_row(row) or all(failure["reason"] != "over_budget" for failure in failures)


def _joined(rows: Sequence[VerdictRow], table: Sequence[Mapping[str, Any]] | None) -> Joined:
    if table is None:
        return Joined([JudgedRow(r, _facts_in(r), _id(r) or r.get("index")) for r in rows])
    places, judged = _Places(table), list[JudgedRow]()
    stale = unknown = 0
    for row in rows:
        place, older = places.of(row)
        if place is None or older:
            stale, unknown = stale + older, unknown + (place is None)
            continue
        judged.append(JudgedRow(row, {**_facts_in(row), **table[place]}, place))
    absent = len(table) - len({each.place for each in judged})
    outcome = Joined(judged, stale, unknown, absent=absent)
    if not judged:
        fields = checks.fields_of(table[0] if table else {})
        raise InputError(REFUSED["none_belongs"].format(left_out=outcome.left_out, fields=fields))
    return outcome


def _read(label: Any, labels: Collection[Label]) -> Any:
    """A label that people gave, or each of their votes, as the judge's; an empty one is none."""
    if isinstance(label, list):
        return [_read(each, labels) for each in label]
    typed = checks.typed_like(labels, label)
    if not isinstance(typed, str) or not typed.strip():
        return None if isinstance(typed, str) else typed
    if labels and not any(isinstance(each, str) for each in labels):
        raise InputError(REFUSED["no_number"].format(label, NUMBERS_ALONE))
    return typed


class _Places:
    """Position of a run's rows in the data."""

    def __init__(self, table: Sequence[Mapping[str, Any]]) -> None:
        self._table = table
        self._contents = [content_key(row) for row in table]
        self._by_content: dict[frozenset[tuple[str, str]], list[int]] = {}
        for place, content in enumerate(self._contents):
            self._by_content.setdefault(frozenset(content.items()), []).append(place)
        ids = Counter(_id(row) for row in table)
        self._by_id = {_id(row): i for i, row in enumerate(table) if ids[_id(row)] == 1}

    def of(self, row: VerdictRow) -> tuple[int | None, bool]:
        """The place of the row that was judged, and whether its texts were others.

        The place is None if it is not there. Equal texts are the same row, whatever its name.
        """
        place, content = self._named_place(row), row.get("content") or {}
        if alike := content and self._by_content.get(frozenset(content.items())):
            return (place if place in alike else alike[0]), False
        if place is None:
            return None, False
        now = self._contents[place]
        return place, any(now[field] != content[field] for field in now.keys() & content)

    def _named_place(self, row: VerdictRow) -> int | None:
        own, index = _id(row), row.get("index")
        if own is not None and own in self._by_id:
            return self._by_id[own]
        # A table's rows without ids are named by their number when they are read.
        if isinstance(index, int) and 0 <= index < len(self._table):
            number = str(index + 1) if self._contents[index] else None
            return index if own in (None, _id(self._table[index]) or number) else None
        return None


def _id(row: Mapping[str, object]) -> str | None:
    own = row.get("id")
    return None if own in (None, "") else str(own)


def _facts_in(row: VerdictRow) -> dict[str, Any]:
    texts = ("input", "output_a", "output_b", "output", "expected", "source", "reference")
    names = (*checks.ANNOTATIONS, "family", *texts)
    return {name: row[name] for name in names if row.get(name) is not None}
