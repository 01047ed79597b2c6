"""The rows of one judge, column by column, and what cannot be counted of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.escaping import shortened
from langchain_judges.metrics.inputs import IntervalOptions
from langchain_judges.metrics.intervals import LEAST_GROUPS
from langchain_judges.report.answers import REFUSED, WORDS
from langchain_judges.report.joined_rows import JudgedRow, judge_in, preference_points
from langchain_judges.report.rating_scale import RatingScale, is_few
from langchain_judges.rows.checks import SIDES, kind_in
from langchain_judges.rows.texts import CONVERSATION, NO_TASK
from langchain_judges.runs.run_row import content_key
from langchain_judges.runs.summary import counted
from langchain_judges.verdict import POINTS, Label, Preference, first_of

# An input that is missing, or says that there is none.
_NO_TASK = {None, *(content_key({"input": mark})["input"] for mark in (NO_TASK, CONVERSATION))}


class Sample:
    """The rows of one judge, column by column.

    Attributes:
        rows: Each row once.
        confidence: The level of the intervals.
        unread: How many rows of the table are unusable, and in no number.
        pairs: Whether the judge compares two texts.
        answers: What the judge said.
        verdicts: The answers; for a failed judgment its row, which has the reason.
        confidences: How sure the judge is of each answer.
        labels: What people say.
        votes: What each person said.
        targets: What the judge is compared with.
        choices: What is right: one label, or those between which people are divided.
        said: Each label of people.

    Raises:
        InputError: A label of a pair is other than A, B and tie.
    """

    def __init__(self, rows: Sequence[JudgedRow], confidence: float, unread: int = 0) -> None:
        """Read the columns."""
        self.rows, self.confidence, self.unread = rows, confidence, unread
        self.pairs = rows[0].is_pair
        self.answers = [row.answer for row in rows]
        self.verdicts = [row.row if row.answer is None else row.answer for row in rows]
        self.confidences = [row.verdict.get("confidence") for row in rows]
        self.labels = [row.label for row in rows]
        self.votes = [row.votes for row in rows]
        self.targets = [row.target for row in rows]
        self.choices = [row.choices for row in rows]
        self.said = {label for own in [*self.targets, *self.choices] for label in own}
        if self.pairs and (odd := sorted(map(repr, self.said - {*SIDES}))):
            raise InputError(REFUSED["no_sides"].format(got=odd[0]))

    @cached_property
    def systems(self) -> list[tuple[str | None, ...]]:
        """Who wrote A and who wrote B, or the one text; None where it is not known."""
        return [_systems(row.data_row, 2 if self.pairs else 1) for row in self.rows]

    @cached_property
    def by_system(self) -> dict[str, list[int]]:
        """The places of the rows with a text of each system."""
        return _places(self.systems)

    @cached_property
    def by_category(self) -> dict[str, list[int]]:
        """The places of the rows of each category."""
        return _places([(row.category,) for row in self.rows])

    @cached_property
    def clusters(self) -> list[tuple[str, Hashable]]:
        """The cluster of each row: its group, else its task, else its texts, or the row alone.

        The task is the input, or the source where fewer than five inputs differ. Of fewer than
        five tasks, such as one prompt for all texts, rows are a sample of what answers these.
        """
        tasks = {name: {own.get(name) for own in self.texts} for name in ("input", "source")}
        several = (name for name, own in tasks.items() if len(own - _NO_TASK) >= LEAST_GROUPS)
        first, keys = next(several, "texts"), list[tuple[str, Hashable]]()
        for place, (row, own) in enumerate(zip(self.rows, self.texts, strict=True)):
            name = "texts" if own.get(first) in _NO_TASK else first
            task = (name, own[name]) if name in own else ("row", place)
            group = row.data_row.get("group")
            keys.append(task if group is None else ("group", group))
        return keys

    @cached_property
    def texts(self) -> list[dict[str, str]]:
        """A hash of each text of a row, by field; `texts`: of all, if what is judged is known."""
        known = [dict(row.row.get("content") or content_key(row.data_row)) for row in self.rows]
        return [own | ({"texts": "".join(own.values())} if kind_in(own) else {}) for own in known]

    @cached_property
    def groups(self) -> list[int] | None:
        """The number of each row's cluster; None where each or none is alone."""
        numbers: dict[Hashable, int] = {}
        found = [numbers.setdefault(key, len(numbers)) for key in self.clusters]
        return found if 1 < len(numbers) < len(found) else None

    @cached_property
    def with_texts(self) -> list[int]:
        """Places of the rows whose two texts are known; numbers of length count these alone."""
        return [i for i, row in enumerate(self.rows) if row.lengths]

    @cached_property
    def rated(self) -> bool:
        """Whether labels are ratings of three steps or more, or of steps that the judge lacks.

        Beside labels 0 and 1 a judge says probabilities, or the steps of a long scale.
        """
        steps, said = self.said, [answer for answer in self.answers if answer is not None]
        if self.pairs or not are_numbers([*steps, *said, *self.own_labels]):
            return False
        # What is said here and there, and never by people, makes no other scale.
        known = {*said} & steps if is_few(said, {*said} - steps) else {*said}
        known |= {*self.own_labels}
        is_finer = steps == {0, 1} and not known <= {0, 1, 2, 3}
        return max(len(self.label_counts), len(steps | known) * bool(steps - known)) > 2 or is_finer

    @cached_property
    def criteria(self) -> list[str]:
        """The criteria by which both the judge and people labelled the texts."""
        if self.pairs:
            return []
        labelled = {name for row in self.rows for name in row.labels}
        names = dict.fromkeys(name for row in self.rows for name in row.by_criterion)
        return [name for name in names if name in labelled]

    @cached_property
    def by_criteria(self) -> bool:
        """Whether people labelled the criteria alone, and not the whole."""
        return bool(self.criteria) and not any(self.targets)

    @cached_property
    def parts(self) -> dict[str, Sample]:
        """The samples by criterion where people labelled those alone, else itself without a name.

        Each report on several criteria says of each what it says of one.
        """
        names = self.criteria if self.by_criteria else []
        return {name: self.by_criterion(name) for name in names} or {"": self}

    @cached_property
    def has_confidence(self) -> bool:
        """Whether the judge says how sure it is.

        The confidence of a total is in its labels: nobody is right by the very same mean.
        """
        return any(
            row.verdict.get("confidence") is not None and (self.pairs or len(row.by_criterion) < 2)
            for row in self.rows
        )

    @cached_property
    def by_label(self) -> bool:
        """Whether the judge is compared with labels alone, which may be an objective key."""
        return not any(row.votes and not row.is_settled for row in self.rows)

    @cached_property
    def by_votes(self) -> bool:
        """Whether the judge is compared with each vote, as people are with each other."""
        return any(len(own) > 1 for own in self.targets)

    @cached_property
    def asked_twice(self) -> bool:
        """Whether of some rows the answers in both orders are known."""
        return any(row.has_orders for row in self.rows)

    @property
    def settings(self) -> IntervalOptions:
        """The keywords of every metric."""
        return self.settings_of(range(len(self.rows)))

    def settings_of(self, places: Iterable[int]) -> IntervalOptions:
        """The keywords of a metric of some rows."""
        groups = self.groups and [self.groups[i] for i in places]
        return {"groups": groups, "confidence": self.confidence}

    @cached_property
    def divided(self) -> int:
        """Rows of single texts on which people differ, without a majority."""
        return sum(row.is_divided for row in self.rows)

    @cached_property
    def ratings(self) -> list[Any]:
        """People's rating of each text, the mean of theirs."""
        return [fmean(map(float, own)) if own else None for own in self.targets]

    @property
    def by_all(self) -> str:
        """The value of a row by people in words, where several answered one."""
        value = "the mean of their answers" if self.pairs or self.rated else "their majority"
        return f" ({value})" if self.by_votes else ""

    @cached_property
    def points(self) -> tuple[list[Any], list[Any], str, float]:
        """By row what judge and people count for, what is counted, and its range."""
        if self.pairs:
            judge = [preference_points([a] if a is not None else []) for a in self.answers]
            people = [preference_points(target) for target in self.targets]
            return judge, people, "Text A's win rate", 1.0
        if self.rated:
            return self.answers, self.ratings, "The mean rating", self.scale.width
        rare = self.rare_label
        ours = [None if value is None else float(value == rare) for value in self.answers]
        theirs = [own.count(rare) / len(own) if own else None for own in self.choices]
        return ours, theirs, f"The share of {rare}", 1.0

    @cached_property
    def winner(self) -> str | None:
        """Whose wins an average counts where all pairs are of the same two systems."""
        names = sorted(self.by_system)
        are_two = len(names) == 2 and all({*pair} == {*names} for pair in self.systems)
        return names[0] if self.pairs and are_two else None

    @cached_property
    def averaged(self) -> tuple[list[Any], list[Any], str, float]:
        """As `points`, with the wins of a system where it may stand in either slot."""
        if self.winner is None:
            return self.points
        ours, theirs = (self.points_of(self.winner, side) for side in self.points[:2])
        return ours, theirs, f"{self.winner}'s win rate", 1.0

    def points_of(self, name: str, side: Sequence[Any]) -> list[Any]:
        """The points of a system's own text in each row, from those of A."""
        return [
            None if points is None else points if pair[0] == name else 1 - points
            for points, pair in zip(side, self.systems, strict=True)
        ]

    @property
    def whom(self) -> str:
        """The other side of the comparison, in words; labels may be an objective key."""
        return "the labels" if self.by_label else "people"

    @property
    def lengths(self) -> tuple[list[int], list[int]]:
        """Characters of the texts A and of the texts B, of the rows with texts."""
        pairs = [row.lengths for row in self.rows if row.lengths]
        return [a for a, _ in pairs], [b for _, b in pairs]

    def in_orders(self) -> tuple[list[Preference | None], list[Preference | None]]:
        """Answers of the judge with A first and with B first."""
        a_first, b_first = ([row.by_order.get(o) for row in self.rows] for o in ("AB", "BA"))
        return a_first, b_first

    def part(self, places: Sequence[int]) -> Sample:
        """The sample of some of the rows."""
        return Sample([self.rows[i] for i in places], self.confidence)

    def by_criterion(self, name: str) -> Sample:
        """The sample with what was said by one criterion in the place of the whole."""
        rows = []
        for row in self.rows:
            label = row.by_criterion.get(name)
            score = label if are_numbers([label]) else None
            verdict = {**row.verdict, "label": label, "score": score, "confidence": None}
            facts = {**row.data_row, "label": None, "human_votes": None, "labels": None}
            said, own = row.labels.get(name), judge_in(row.row).get("labels")
            facts["human_votes" if isinstance(said, list) else "label"] = said
            own = own.get(name) if isinstance(own, Mapping) else own
            judge = {"labels": own, "criterion": name}
            judged = {**row.row, "verdict": verdict, "subscores": None, "judge": judge}
            rows.append(JudgedRow(judged, facts, row.place))
        return Sample(rows, self.confidence, self.unread)

    @cached_property
    def scale(self) -> RatingScale:
        """The scale of ratings; one without any if labels are none."""
        sides = (self.answers, self.targets, self.own_labels, self.whom)
        return RatingScale(*sides) if self.rated else RatingScale((), (), (), "")

    @cached_property
    def label_counts(self) -> dict[Label, float]:
        """On how many rows people give each label; a divided row is shared by its labels."""
        counts: dict[Label, float] = {}
        for own in self.choices:
            for label in own:
                counts[label] = counts.get(label, 0.0) + 1 / len(own)
        return counts

    @property
    def rare_label(self) -> Label:
        """The label that people give least often, the last of those that are equal."""
        counts = self.label_counts
        order = {label: (count, str(label) != "1", str(label)) for label, count in counts.items()}
        return min(order, key=order.__getitem__, default="")

    def missed(self, answers: Iterable[Label | None]) -> list[float | None]:
        """For each row how wrong an answer is, from 0 to 1; None without a label.

        A tie where people name a text, or a text where they call a tie, is half wrong; a rating
        is wrong if it is off by more than a quarter of their range. Where people are divided
        it is as wrong as it is on average for their answers. A missing answer is wrong. Of
        ratings on different scales that is not known.
        """
        return [
            (1.0 if answer is None else fmean(self._miss(answer, label) for label in own))
            if own and not self.scale.apart
            else None
            for answer, own in zip(answers, self.choices, strict=True)
        ]

    def _miss(self, answer: Label, label: Label) -> float:
        if self.pairs:
            return abs(POINTS[answer] - POINTS[label])
        if self.rated:
            return float(abs(float(answer) - float(label)) > self.scale.width / 4 + 1e-9)
        return float(answer != label)

    @cached_property
    def misses(self) -> list[float | None]:
        """Error of each verdict, on which every count of mistakes is based."""
        return self.missed(self.answers)

    @cached_property
    def rights(self) -> list[float | None]:
        """Correctness of each verdict."""
        return [None if miss is None else 1 - miss for miss in self.misses]

    @cached_property
    def mistakes(self) -> list[JudgedRow]:
        """The judged rows whose verdict is wrong, or wrong in part."""
        both = zip(self.rows, self.misses, strict=True)
        return [row for row, miss in both if miss and row.answer is not None]

    def basis(self, used: Sequence[bool]) -> str:
        """Count of the rows that count, and why others do not."""
        lost = sum(a is None and there for a, there in zip(self.answers, used, strict=True))
        wrong = f"; {lost:,} not judged, counted as wrong" if lost else ""
        rows = counted(len(used) + self.unread, "row")
        if all(used) and not self.unread:
            return f"{'all ' if len(used) > 1 else ''}{rows}{wrong}"
        reasons = Counter({"unusable": self.unread} if self.unread else {})
        for own, answer, there in zip(self.choices, self.answers, used, strict=True):
            if not there:
                why = "not judged" if answer is None else "without what it takes"
                reasons[why if own else "without a label"] += 1
        out = ", ".join(f"{count:,} {why}" for why, count in reasons.items())
        return f"{sum(used):,} of {rows}{wrong}; left out: {out}"

    @property
    def in_groups(self) -> str:
        """Sentence about groups, where ranges count them."""
        sizes = Counter(self.clusters)
        kinds = {kind for (kind, _), size in sizes.items() if size > 1}
        of = next((words for kind, words in WORDS["groups"].items() if kind in kinds), "")
        number = f"{len(sizes):,} groups of {of}"
        return f" The rows come in {number}, which the ranges allow for." if self.groups else ""

    @property
    def note(self) -> str:
        """Sentences about unusable rows, and about those without a group."""
        both = zip(self.clusters, self.texts, strict=True)
        loose = [own for (kind, _), own in both if kind != "group"]
        alike = Counter(own.get("texts") for own in loose)
        posed = [own for own in loose if own.get("input") not in _NO_TASK]
        inputs, sources = ({own.get(of) for own in posed} for of in ("input", "source"))
        # More for one input than there are inputs, or systems that may have found them.
        has_many = len(sources) > len(inputs) * max(len(inputs), len(self.by_system))
        own = {name for row in self.rows for name in row.by_criterion}
        others = [{*row.labels} - own for row in self.rows]
        names = ", ".join(sorted(set[str]().union(*others)))
        counts = {
            "of_no_criterion": sum(map(bool, others)),
            "unusable": self.unread,
            "without_group": len(loose) < len(self.rows) and len(loose),
            "settled": sum(row.is_settled for row in self.rows),
            "same_texts": sum(n for n in alike.values() if n > 1) if self.groups else 0,
            "few_inputs": 1 < len(inputs) < LEAST_GROUPS <= len(self.rows) and len(posed),
            "many_sources": len(inputs) >= LEAST_GROUPS and has_many and len(posed),
        }
        told = {WORDS["notes"][name].format(names=names): n for name, n in counts.items() if n}
        notes = [f"{what}: {count:,}." for what, count in told.items()]
        parts = [self, *map(self.by_criterion, self.criteria)]
        odd: dict[str, list[str]] = {}
        for part in parts:
            for kind, place, value in part.scale.notable:
                odd.setdefault(kind, []).append(f"{value:g} (row {part.rows[place].name})")
        notes += [f"{WORDS['notes'][kind]}: {first_of(own, 5)}." for kind, own in odd.items()]
        return " ".join(notes)

    @property
    def own_labels(self) -> Sequence[Label]:
        """The labels that a run names for its judge, or the ends of a total of its criteria."""
        own = judge_in(self.rows[0].row).get("labels")
        return [0, 1] if isinstance(own, Mapping) else own or []

    @property
    def unshared(self) -> str:
        """Sentence about labels of one side alone, such as a missing answer in words.

        Raises:
            InputError: The sides share none, and are not of one scale: of numbers, or of words
                where each side has one label, as where a judge is wrong on every row.
        """
        ours, theirs = {*self.answers} - {None}, {*self.label_counts}
        if self.pairs or not (ours and theirs):
            return ""
        sides: Any = {"the judge": ours - theirs, self.whom: theirs - ours}
        texts = {who: ", ".join(sorted(map(str, own))) for who, own in sides.items() if own}
        alone = ", by ".join(f"{who} alone: {shortened(texts[who], 60)}" for who in texts)
        said = [{isinstance(label, str) for label in own} for own in (ours, theirs)]
        numbers, one = said[0] == {False}, len(ours) == len(theirs) == 1
        if not {*ours, *self.own_labels} & theirs and (said[0] != said[1] or not (numbers or one)):
            raise InputError(REFUSED["none_in_common"].format(alone=alone))
        return f"Said by {alone}." if alone and not self.rated else ""


def _places(names: Iterable[Iterable[str | None]]) -> dict[str, list[int]]:
    """Rows in which each name occurs."""
    places: dict[str, list[int]] = {}
    for place, own in enumerate(names):
        for name in dict.fromkeys(own):
            if name is not None:
                places.setdefault(name, []).append(place)
    return places


def _systems(row: Mapping[str, Any], size: int) -> tuple[str | None, ...]:
    names = row.get("systems")
    if size == 1 and not isinstance(names, list | tuple):
        names = [row.get("system", names)]
    if not isinstance(names, list | tuple) or len(names) != size:
        return (None,) * size
    return tuple(None if name is None else str(name) for name in names)


def are_numbers(values: Iterable[object]) -> bool:
    """Whether every value that is there is a number."""
    there = (value for value in values if value is not None)
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in there)
