"""Desks, which take people's answers: labels of rows, decisions on an audit's proposals."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.lazy import packaged
from langchain_judges.report import labelling
from langchain_judges.report.labelling import AnswerFile, LabelAnswer, LabelFile, Questionnaire
from langchain_judges.rows.checks import kind_of_row
from langchain_judges.viewer.items import Cells, Collection

CANNOT_SAY = "x"
_WORDS: Mapping[str, Any] = packaged(__package__, "words.yaml")
# By key what it says of a pair, of a label that no check doubts, and of any other proposal.
_PAIR, _DRAWN, _DECISIONS = (_WORDS[name] for name in ("pair", "drawn", "decisions"))


class LabelDesk:
    """Labels of rows, in the file that `trust`, `audit` and `compare` read."""

    modes: Sequence[str] = ()

    def __init__(self, found: Collection, file: LabelFile, asked: Questionnaire) -> None:
        """Open the desk.

        Args:
            found: The rows and verdicts.
            file: Where labels go.
            asked: What is asked of a row.
        """
        self.found, self.file, self.asked = found, file, asked
        # By person the places of their answers, each with the labels before it.
        self.before: dict[str, list[tuple[int, dict[str, Any]]]] = {}

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each row, by its identity."""
        return {labelling.row_identity(row): place for place, row in enumerate(self.found.rows)}

    def doubts(self) -> list[str]:
        """Doubt about each row; empty for a row that has a label."""
        return labelling.doubts(self.found.rows, self.found.verdicts().values())

    def order(self) -> list[int]:
        """Places of the rows: at first half of them doubtful; labelled ones come last."""
        kinds = self.doubts()
        first = labelling.to_label(self.found.rows, kinds, labelling.FIRST)
        known = {*first}
        rest = [place for place, _ in enumerate(kinds) if place not in known]
        return first + sorted(rest, key=lambda place: kinds[place] in ("", labelling.SURE))

    def _asked(self, place: int) -> list[labelling.LabelQuestion]:
        return self.asked.of(self.found.rows[place])

    def questions(self, place: int) -> list[dict[str, Any]]:
        """The whole and the criteria, with the labels of each."""
        is_pair = kind_of_row(self.found.rows[place]) == "pair"
        asked = []
        for each in self._asked(place):
            keys = {k: _PAIR[k] if is_pair else str(v) for k, v in each.choices.items()}
            asked.append({"name": each.name, "keys": {**keys, CANNOT_SAY: "cannot say"}})
        return asked

    def is_done(self, place: int, by: str) -> bool:
        """Whether a person has answered all questions about a row."""
        names = {each.name for each in self._asked(place)}
        return names <= {*self.file.answered(self.found.rows[place], by)}

    def answered(self, place: int, by: str) -> dict[str, str]:
        """The keys of a person's labels."""
        labels = self.file.answered(self.found.rows[place], by)
        keys = {}
        for each in self._asked(place):
            by_label = {str(label): key for key, label in each.choices.items()}
            if each.name in labels:
                keys[each.name] = by_label.get(str(labels[each.name]), CANNOT_SAY)
        return keys

    def say(self, place: int, by: str, name: str, key: str, mode: str) -> None:
        """Save a label.

        Raises:
            InputError: There is no such question or key.
        """
        choices = {each.name: each.choices for each in self._asked(place)}.get(name)
        if choices is None or key not in {*choices, CANNOT_SAY}:
            raise InputError(f"{name or 'the question'} has no answer {key!r}")
        row = self.found.rows[place]
        self.before.setdefault(by, []).append((place, self.file.answered(row, by)))
        self.file.say(row, by, name, choices.get(key))

    def undo(self, by: str) -> int:
        """Undo a person's last answer, restoring the one before it.

        Returns:
            The place of the row.

        Raises:
            InputError: There is none.
        """
        place, labels = _last(self.before.get(by, []))
        self.file.relabel(self.found.rows[place], by, labels)
        return place

    def note(self, place: int, by: str, text: str) -> None:
        """Save a note along with the labels."""
        row = self.found.rows[place]
        self.file.keep(row, {**self.file.said(row, by), "note": text})

    def noted(self, place: int, by: str) -> str:
        """Note of a person on a row."""
        return str(self.file.said(self.found.rows[place], by).get("note", ""))

    def is_told(self, place: int, by: str) -> bool:
        """Whether a judge or another person has said something about a row."""
        judged = any(place in run for run in self.found.judges.values())
        others = any(each["by"] != by for each in self.people(place))
        return judged or others or labelling.is_labelled(self.found.rows[place])

    def open(self, place: int, by: str) -> None:
        """Record that a person opened the verdicts before answering."""
        row = self.found.rows[place]
        if self.is_told(place, by) and not self.is_done(place, by):
            self.file.keep(row, {**self.file.said(row, by), "opened": True})

    def people(self, place: int) -> Sequence[LabelAnswer]:
        """Answer of each person on a row."""
        return self.file.people(self.found.rows[place])

    def mode(self, place: int) -> str:
        """A label has none."""
        return ""

    def difference(self, place: int) -> str:
        """Sentence on a row about which people differ."""
        return self.file.difference(self.found.rows[place])

    def touched(self) -> Iterator[int]:
        """Places of the labelled rows that are on the page."""
        return (self.places[mark] for mark in self.file.answers if mark in self.places)

    def standing(self) -> tuple[list[str], str]:
        """Agreement and the next command, once enough is labelled: earlier they would bias."""
        rows = {place: self.found.rows[place] for place in self.touched()}
        if len(rows) < min(labelling.FIRST, len(self.found.rows)):
            return [], ""
        counts = labelling.agreements(self.file, rows, self.found.verdicts())
        verbs = {who: "agree" if who == "people" else "agrees" for who in counts}
        told = [f"{who} {verbs[who]} on {k} of {n}" for who, (k, n) in counts.items()]
        files = dict.fromkeys(map(str, self.found.files.values()))
        source = [part for path in files for part in ("--verdicts", path)]
        command = ["langchain-judges", "trust", str(self.file.path)]
        rubric = ["--set", "rubric=RUBRIC"] if any("output" in r for r in rows.values()) else []
        return told, shlex.join([*command, *(source or ["--model", "MODEL", *rubric])])


class ProposalDesk:
    """Decisions on the proposals of an audit, in the file from which the audit resumes."""

    def __init__(self, request: Mapping[str, Any], file: AnswerFile) -> None:
        """Open the desk.

        Args:
            request: What the audit asks.
            file: Where answers go.
        """
        self.proposals: list[dict[str, Any]] = list(request["proposals"])
        self.found = Collection([_told(each) for each in self.proposals])
        self.file = file
        self.notes = {id: each.get("note", "") for id, each in file.answers.items()}
        self.modes = [str(mode["name"]) for mode in request["modes"]]
        self.choices: dict[str, LabelAnswer] = {
            key: {"answer": word} for key, (word, _) in _DECISIONS.items()
        }
        for key, label in labelling.keys_of(request["labels"]).items():
            self.choices[key] = {"answer": "label", "label": label}
        # Decisions, each with what was decided before it; those of an earlier hour too.
        self.before: list[tuple[int, LabelAnswer | None]] = [(n, None) for n in self.touched()]

    def order(self) -> list[int]:
        """The proposals in the order of the audit."""
        return list(range(len(self.proposals)))

    def questions(self, place: int) -> list[dict[str, Any]]:
        """Accept, change, or reject."""
        proposal = self.proposals[place]
        drawn = proposal["proposed"] == proposal["label"]
        words = _DRAWN if drawn else {key: text for key, (_, text) in _DECISIONS.items()}
        given = ((key, own["label"]) for key, own in self.choices.items() if "label" in own)
        labels = {key: f"the label is {label}" for key, label in given}
        return [{"name": "", "keys": words | labels}]

    def _answer(self, place: int) -> LabelAnswer:
        id = str(self.proposals[place]["id"])
        return self.file.answers.get(id) or {"id": id, "note": self.notes.get(id, "")}

    def is_done(self, place: int, by: str) -> bool:
        """Whether a proposal is decided."""
        return bool(self.answered(place, by))

    def mode(self, place: int) -> str:
        """Failure mode of a decision."""
        return str(self._answer(place).get("mode", ""))

    def difference(self, place: int) -> str:
        """One decides for all."""
        return ""

    def answered(self, place: int, by: str) -> dict[str, str]:
        """The key of the decision."""
        answer = self._answer(place)
        if answer.get("answer") == "mode":
            return {"": "a"}
        keys = [key for key, own in self.choices.items() if own.items() <= answer.items()]
        return {"": keys[0]} if keys else {}

    def say(self, place: int, by: str, name: str, key: str, mode: str) -> None:
        """Save a decision, with the person's own failure mode if there is one.

        Raises:
            InputError: There is no such key.
        """
        if key not in self.choices:
            raise InputError(f"there is no answer {key!r}")
        id = str(self.proposals[place]["id"])
        answer = {"id": id, "note": self.notes.get(id, ""), **self.choices[key]}
        answer |= {"auditor": by} if by else {}
        if mode and key not in "rw":
            answer |= {"mode": mode, **({"answer": "mode"} if key == "a" else {})}
        self.before.append((place, self.file.answers.get(id)))
        self.file.put(answer)

    def undo(self, by: str) -> int:
        """Undo the last decision, restoring the one before it.

        Returns:
            The place of the proposal.

        Raises:
            InputError: There is none.
        """
        place, answer = _last(self.before)
        if answer is None:
            self.file.drop(str(self.proposals[place]["id"]))
        else:
            self.file.put({**answer, "note": self.notes.get(answer["id"], "")})
        return place

    def note(self, place: int, by: str, text: str) -> None:
        """Save a note on a decision, once there is one."""
        answer = self._answer(place)
        self.notes[answer["id"]] = text
        if "answer" in answer:
            self.file.put({**answer, "note": text})

    def noted(self, place: int, by: str) -> str:
        """Note on a proposal."""
        return str(self.notes.get(str(self.proposals[place]["id"]), ""))

    def is_told(self, place: int, by: str) -> bool:
        """False: the decision is about the verdict, so nothing is hidden."""
        return False

    def open(self, place: int, by: str) -> None:
        """Nothing is hidden."""

    def people(self, place: int) -> Sequence[LabelAnswer]:
        """Decisions show in the keys."""
        return []

    def touched(self) -> Iterator[int]:
        """Places of the proposals that are decided."""
        return (n for n, _ in enumerate(self.proposals) if self.is_done(n, ""))

    def standing(self) -> tuple[list[str], str]:
        """Next step once all proposals are decided; nothing before."""
        left = len(self.proposals) - len(list(self.touched()))
        done = "All are decided: press Enter in the terminal, and the audit goes on."
        return ([] if left else [done]), ""


def _last(answers: list[tuple[int, Any]]) -> tuple[int, Any]:
    if not answers:
        raise InputError("there is nothing to take back")
    return answers.pop()


def _told(proposal: Cells) -> Cells:
    """The item of a proposal, with what the judge and the check say of it."""
    sure = "" if proposal.get("score") is None else f" (score {proposal['score']:.2f})"
    why = _WORDS["proposal"].format(sure=sure, **proposal)
    item = {name: value for name, value in proposal["item"].items() if name != "label"}
    return {**item, "id": proposal["id"], "proposed": why}


# Where answers go: both say what is asked of a row, what was answered and how far it is.
Desk = LabelDesk | ProposalDesk


def labels_of(found: Collection) -> str:
    """The labels that judges and people gave single texts, as `--labels` takes them."""
    items = [n for n, row in enumerate(found.rows) if kind_of_row(row) == "item"]
    given = [found.rows[n].get("label") for n in items]
    given += [run[n].answer for run in found.judges.values() for n in items if n in run]
    labels = sorted({str(label) for label in given if label not in (None, "")})
    return ",".join(labels) if 2 <= len(labels) <= len(labelling.KEYS) else "01"


def open_labels(
    found: Collection, path: Path, labels: str | None, criteria: Sequence[str]
) -> LabelDesk:
    """Open the desk at which rows are labelled.

    Raises:
        OptionError: Labels cannot be told apart.
        OutputError: Somebody else is writing to the file.
    """
    asked = Questionnaire.read(labels or labels_of(found), criteria, is_named=bool(labels))
    return LabelDesk(found, LabelFile(path), asked)
