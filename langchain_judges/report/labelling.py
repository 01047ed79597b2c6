"""Labelling: which rows to ask about first, the questions, the file of answers."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.checks import kind_of_row, number_in, votes_in
from langchain_judges.rows.files import whole_file, writing
from langchain_judges.runs.results import ResultsInUse, claim, write_whole
from langchain_judges.runs.run_row import content_key
from langchain_judges.verdict import Label, decision

SURE, UNJUDGED = "sure", "not judged"
# A verdict of less confidence is doubtful.
UNSURE = 0.75
# Rows to label first, where nothing says how many would settle the question.
FIRST = 50
# The name of the question about all of a row; other names are criteria.
WHOLE_ROW = ""
# Keys of labels, in their order: digits, then letters that are no command anywhere.
KEYS = "1234567890bcefghilpyz"

LabelAnswer = dict[str, Any]


def is_labelled(row: Mapping[str, object]) -> bool:
    """Whether people labelled a row."""
    names = ("label", "labels", "human_votes")
    return any(row.get(name) not in (None, "", {}, []) for name in names)


def doubt_of(verdict: Mapping[str, Any]) -> str:
    """Why a verdict is doubtful; `SURE` where it is not."""
    confidence = verdict.get("confidence")
    if decision(verdict) is None:
        return UNJUDGED
    if verdict.get("flipped"):
        return "flipped"
    return "unsure" if confidence is not None and confidence < UNSURE else SURE


def doubts(
    rows: Sequence[Mapping[str, object]], judged: Iterable[Mapping[int, Mapping[str, Any]]]
) -> list[str]:
    """Why the verdicts on each row are doubtful; `""` for a row that has a label.

    Args:
        rows: The rows.
        judged: Each judge's verdicts, by the place of the row.
    """
    runs = list(judged)
    return [
        _doubt_among(row, [run[place] for run in runs if place in run])
        for place, row in enumerate(rows)
    ]


def _doubt_among(row: Mapping[str, object], verdicts: Sequence[Mapping[str, Any]]) -> str:
    if is_labelled(row):
        return ""
    answers = {decision(verdict) for verdict in verdicts}
    if not answers or None in answers:
        return UNJUDGED
    kinds = {doubt_of(verdict) for verdict in verdicts}
    return "judges disagree" if len(answers) > 1 else min(kinds - {SURE}, default=SURE)


def chosen(kinds: Sequence[str], number: int) -> list[int]:
    """Places of the rows to label: half of them doubtful, and doubtful ones first.

    Within the doubtful rows and within the others chance decides, so that the labels of either
    part stand for all of it.

    Args:
        kinds: The doubt about each row; empty: it has a label, or needs none.
        number: How many rows.
    """
    draw = random.Random(0)  # noqa: S311 - no secret
    doubtful = [place for place, kind in enumerate(kinds) if kind not in ("", SURE)]
    others = [place for place, kind in enumerate(kinds) if kind == SURE]
    first = draw.sample(doubtful, min(max(number // 2, number - len(others)), len(doubtful)))
    return first + draw.sample(others, min(number - len(first), len(others)))


def to_label(rows: Sequence[Mapping[str, object]], kinds: Sequence[str], number: int) -> list[int]:
    """Places of the rows to label, as `chosen`; rows that a run wrote for it in their order."""
    if all(row.get("doubt") for row in rows):
        return [place for place, kind in enumerate(kinds) if kind][:number]
    return chosen(kinds, number)


def row_identity(row: Mapping[str, object]) -> str:
    """Identity of a row: its id and its texts."""
    return json.dumps([row.get("id"), content_key(row)], sort_keys=True)


def sides(row: Mapping[str, object]) -> str:
    """Position of a pair's texts: random, and the same on every run."""
    return random.Random(row_identity(row)).choice(("AB", "BA"))  # noqa: S311 - no secret


@dataclass(frozen=True)
class LabelQuestion:
    """A question about a row.

    Attributes:
        name: The criterion, or `WHOLE_ROW`.
        choices: The label that each key gives.
    """

    name: str
    choices: Mapping[str, Label]


@dataclass(frozen=True)
class Questionnaire:
    """The questions about each row.

    Attributes:
        labels: Labels of single texts.
        criteria: By criterion its labels of single texts; empty: as `labels`.
        is_named: Whether a person named `labels`.
    """

    labels: Sequence[Label] = (0, 1)
    criteria: Mapping[str, Sequence[Label]] = field(default_factory=dict)
    is_named: bool = True

    @classmethod
    def read(cls, labels: str, criteria: Sequence[str], *, is_named: bool) -> Questionnaire:
        """The questions as they are named at the command line.

        Args:
            labels: Digits such as `01`, or words, as in `rude,polite`.
            criteria: Each `NAME` or `NAME=LABELS`.
            is_named: Whether a person named the labels.

        Raises:
            OptionError: Labels are equal, or fewer than two.
        """
        named = (each.partition("=") for each in criteria)
        by_name = {name.strip(): own.strip() for name, _, own in named}
        if WHOLE_ROW in by_name:
            raise OptionError(f"a criterion needs a name, got {list(criteria)!r}")
        own_labels = {name: _labels_in(own) if own else () for name, own in by_name.items()}
        return cls(_labels_in(labels), own_labels, is_named)

    def sentence(self, rows: Sequence[Mapping[str, object]]) -> str:
        """The questions about the rows, and how to name other labels than those by default."""
        by_kind, said = {kind_of_row(row): row for row in rows}, list[str]()
        if "pair" in by_kind:
            said.append(f"Pairs are compared {', then '.join(['as a whole', *self.criteria])}.")
        if item := by_kind.get("item"):
            asked = ((each.name, map(str, each.choices.values())) for each in self.of(item))
            items = "; ".join(f"{name and f'by {name} '}{', '.join(own)}" for name, own in asked)
            is_usual = not self.is_named and not all(self.criteria.values() or [()])
            said.append(f"Labels of single texts: {items}{'; --labels names others' * is_usual}.")
        return " ".join(said)

    def of(self, row: Mapping[str, object]) -> list[LabelQuestion]:
        """The questions about a row.

        A pair is asked as a whole first; a single text only where there is no criterion.
        """
        if kind_of_row(row) == "pair":
            keys = dict(zip("12t", [*sides(row), "tie"], strict=True))
            return [LabelQuestion(name, keys) for name in (WHOLE_ROW, *self.criteria)]
        asked = self.criteria or {WHOLE_ROW: self.labels}
        return [LabelQuestion(name, keys_of(own or self.labels)) for name, own in asked.items()]


def _labels_in(text: str) -> list[Label]:
    parts = [each.strip() for each in text.split(",")] if "," in text else list(text.strip())
    found: list[Label] = [number_in(each) for each in parts]
    if len(found) < 2 or len({*map(str, found)}) < len(found) or "" in found:
        rule = "two or more different labels, digits such as 01 or words such as rude,polite"
        raise OptionError(f"`labels` must be {rule}, got {text!r}")
    if "," not in text and not text.strip().isdigit():
        raise OptionError(f"`labels` that are words have commas between them, got {text!r}")
    return found


def keys_of(labels: Sequence[Label]) -> dict[str, Label]:
    """The labels by their keys: the digits that they are, else `KEYS`, else their numbers."""
    digits = [str(label) for label in labels]
    if any(len(digit) > 1 or not digit.isdigit() for digit in digits):
        digits = [*KEYS[: len(labels)], *map(str, range(len(KEYS) + 1, len(labels) + 1))]
    return dict(zip(digits, labels, strict=True))


class AnswerFile:
    """Answers in a JSONL file, one line each, written by one program at a time.

    Args:
        path: The file, created with the first answer.
        key: Identifies an answer: a later one replaces an earlier one.

    Attributes:
        answers: What was answered, by its key.

    Raises:
        InputError: The file is damaged.
        OutputError: Another program is writing to it.
    """

    def __init__(self, path: Path, key: Callable[[LabelAnswer], str]) -> None:
        """Lock the file, and read earlier answers."""
        self.path, self.key = path, key
        self.answers: dict[str, LabelAnswer] = {}
        self._guard = path.with_name(f".{path.name}.lock")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock: int | None = os.open(self._guard, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            claim(self._lock, path)
            self._read()
        except ResultsInUse as exc:
            os.close(self._lock)
            used = f"Somebody else is writing answers to {path}"
            raise ResultsInUse(f"{used}; close it there, or name another file.") from exc
        except BaseException:
            self.close()
            raise

    def put(self, answer: LabelAnswer) -> None:
        """Write an answer; a process killed after this returns does not lose it.

        Raises:
            OutputError: The file cannot be written.
        """
        key = self.key(answer)
        answers = {**self.answers, key: answer}
        if key in self.answers or not self.path.exists():
            self._save(answers)
        else:
            with writing(self.path), self.path.open("ab") as file:
                write_whole(file.fileno(), label_line(answer).encode())
                os.fsync(file.fileno())
        self.answers = answers

    def drop(self, key: str) -> None:
        """Delete an answer."""
        if key in self.answers:
            answers = {name: each for name, each in self.answers.items() if name != key}
            self._save(answers)
            self.answers = answers

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._guard.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _read(self) -> None:
        # To read a device might never end.
        text = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                answer = json.loads(line)
                self.answers[self.key(answer)] = answer
            except (ValueError, TypeError, KeyError, AttributeError) as exc:
                if number < len(lines):  # else it is what a kill left of the last one
                    raise InputError(f"{self.path}, line {number}: not an answer") from exc
                self._save(self.answers)
        if text and text[-1] != "\n" and self.answers:
            self._save(self.answers)

    def _save(self, answers: Mapping[str, LabelAnswer]) -> None:
        with writing(self.path), whole_file(self.path) as draft, draft.open("wb") as file:
            file.writelines(label_line(each).encode() for each in answers.values())
            file.flush()
            os.fsync(file.fileno())


def label_line(row: Mapping[str, object]) -> str:
    """A row as a line of JSONL."""
    return json.dumps(row, default=str) + "\n"


class LabelFile(AnswerFile):
    """Labelled rows, with what each person answered under `answers`.

    A line is a row as `trust`, `audit` and `compare` read it: `label` or, of several people,
    `human_votes`, and `labels` by criterion. Earlier labels of the row count as
    one more person's. With each answer on a pair `first` names the text that was shown as 1.
    """

    def __init__(self, path: Path) -> None:
        """Lock the file, and read earlier labels."""
        super().__init__(path, row_identity)

    def people(self, row: Mapping[str, object]) -> list[LabelAnswer]:
        """Answer of each person about a row."""
        line = self.answers.get(row_identity(row))
        if line is None:
            return []
        own: LabelAnswer = {"by": ""}
        own.update({name: line[name] for name in ("label", "labels") if name in line})
        return list(line.get("answers") or [own])

    def said(self, row: Mapping[str, object], by: str) -> LabelAnswer:
        """Answer of one person about a row: `label`, `labels`, `note`, `opened`.

        A label of None means that it cannot be said.
        """
        return next((dict(each) for each in self.people(row) if each["by"] == by), {"by": by})

    def answered(self, row: Mapping[str, object], by: str) -> dict[str, Label | None]:
        """The labels that one person gave a row, by question."""
        said = self.said(row, by)
        whole = {WHOLE_ROW: said["label"]} if "label" in said else {}
        return {**whole, **(said.get("labels") or {})}

    def say(self, row: Mapping[str, object], by: str, name: str, label: Label | None) -> None:
        """Save a person's answer to a question about a row."""
        self.relabel(row, by, {**self.answered(row, by), name: label})

    def relabel(
        self, row: Mapping[str, object], by: str, labels: Mapping[str, Label | None]
    ) -> None:
        """Save all labels that a person gives a row, by question."""
        labels = dict(labels)
        said = {n: v for n, v in self.said(row, by).items() if n != "label"}
        whole = {"label": labels.pop(WHOLE_ROW)} if WHOLE_ROW in labels else {}
        self.keep(row, {**said, **whole, "labels": labels})

    def difference(self, row: Mapping[str, object]) -> str:
        """Sentence on a row about which people differ; empty where they do not."""
        line = self.answers.get(row_identity(row), {})
        votes = [*map(str, line.get("human_votes") or ())]
        if len({*votes}) < 2:
            return ""
        outcome = f"the label {line['label']}" if "label" in line else "no label"
        return f"People say {', '.join(votes)}; the row has {outcome}."

    def keep(self, row: Mapping[str, object], said: LabelAnswer) -> None:
        """Save all that a person answered about a row; nothing removes the person."""
        given = {n: v for n, v in said.items() if v not in ("", {}) and v is not False}
        by, _ = given.pop("by", ""), given.pop("first", "")
        people = [each for each in self.people(row) if each["by"] != by]
        if given:
            order = {"first": sides(row)[0]} if kind_of_row(row) == "pair" else {}
            people.append({"by": by, **order, **given})
        if people:
            self.put(_line(row, people))
        else:
            self.drop(row_identity(row))


def _line(row: Mapping[str, object], people: Sequence[LabelAnswer]) -> LabelAnswer:
    """A row with the labels that people gave it."""
    before: Any = row.get("human_votes") or [row.get("label")]
    votes = _given(before) + _given(each.get("label") for each in people)
    kept = {n: v for n, v in row.items() if n not in ("label", "labels", "human_votes", "doubt")}
    line: LabelAnswer = {**kept, "answers": list(people)}
    if (label := _majority(votes, kind_of_row(row))) is not None:
        line["label"] = label
    if len(votes) > 1:
        line["human_votes"] = votes
    by_name: dict[str, list[Label]] = {}
    for each in [{"labels": row.get("labels") or {}}, *people]:
        for name, given in (each.get("labels") or {}).items():
            by_name.setdefault(name, []).extend(_given(votes_in(given)))
    found = {name: _majority(given, kind_of_row(row)) for name, given in by_name.items()}
    labels = {name: given for name, given in found.items() if given is not None}
    return {**line, "labels": labels} if labels else line


def _given(labels: Iterable[Any]) -> list[Label]:
    return [label for label in labels if label not in (None, "")]


def _majority(votes: Sequence[Label], kind: str) -> Label | None:
    """The label of most people; None where no label has most of a single text."""
    counts = Counter(votes).most_common(2)
    if len(counts) == 2 and counts[0][1] == counts[1][1]:
        return "tie" if kind == "pair" else None
    return counts[0][0] if counts else None


def agreements(
    file: LabelFile,
    rows: Mapping[int, Mapping[str, object]],
    judges: Mapping[str, Mapping[int, Mapping[str, Any]]],
) -> dict[str, tuple[int, int]]:
    """On how many rows people agree with each other and with each judge, and of how many.

    Args:
        file: What people said.
        rows: The rows that people labelled, by their place.
        judges: By judge the verdict on each place.
    """
    counts: dict[str, list[bool]] = {name: [] for name in ("people", *judges)}
    for place, row in rows.items():
        labels = _given(each.get("label") for each in file.people(row))
        if len(labels) > 1:
            counts["people"].append(len({*labels}) == 1)
        label = _majority(labels, kind_of_row(row))
        for name, verdicts in judges.items() if label is not None else ():
            answer = decision(verdicts[place]) if place in verdicts else None
            if answer is not None:
                counts[name].append(str(answer) == str(label))
    return {name: (sum(own), len(own)) for name, own in counts.items() if own}
