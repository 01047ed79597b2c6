"""Answers of judges and of people in LangSmith's feedback, told apart and in one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from langsmith import Client
from langsmith.schemas import Feedback, Run

from langchain_judges.errors import InputError
from langchain_judges.integrations.eval_cases import WORDS
from langchain_judges.rows.checks import number_in

# Runs whose feedback is looked up in one request.
_TOGETHER = 100
# Where a correction has its label.
_CORRECTED = ("label", "preference", "value", "score")


class Grade(NamedTuple):
    """An answer as a label, a score or both, with the ends of the scale, where it is registered."""

    label: Any
    score: Any
    ends: Any


class Graded(NamedTuple):
    """A feedback with the judge's answer, people's, or both where they corrected it."""

    feedback: Feedback
    judge: Grade | None
    people: Grade | None


def is_of_judge(feedback: Feedback) -> bool:
    """Whether a judge gave a feedback, which people may have corrected."""
    return getattr(feedback.feedback_source, "type", None) in ("model", "auto_eval")


def is_of_another(feedback: Feedback, mark: str) -> bool:
    """Whether feedback has the mark of another judge."""
    told = getattr(feedback.feedback_source, "metadata", None) or {}
    return bool(told.get("mark", mark) != mark)


def is_of_provider(feedback: Feedback) -> bool:
    """Whether a judge gave a feedback without an answer, as its model could not be asked."""
    reason = (feedback.extra or {}).get("reason")
    return feedback.score is None and reason in ("provider_error", "timeout", "internal_error")


def feedback_on(client: Client, ids: Sequence[Any], key: str | None = None) -> list[Feedback]:
    """The feedback on runs, under one key or under all."""
    parts = (ids[start : start + _TOGETHER] for start in range(0, len(ids), _TOGETHER))
    keys = [key] if key else None
    return [own for part in parts for own in client.list_feedback(run_ids=part, feedback_key=keys)]


def graded(client: Client, runs: Iterable[Run]) -> dict[Any, list[Graded]]:
    """The feedback on each run by its id, read by the registered scale of its key."""
    every = feedback_on(client, [run.id for run in runs])
    keys = sorted({each.key for each in every})
    found = client.list_feedback_configs(feedback_key=keys) if keys else ()
    scales: dict[str, Any] = {each.feedback_key: each.feedback_config for each in found}
    by_run: dict[Any, list[Graded]] = {run.id: [] for run in runs}
    for each in every:
        by_run[each.run_id].append(_read(each, scales.get(each.key) or {}))
    return by_run


def _read(feedback: Feedback, scale: Mapping[str, Any]) -> Graded:
    label, score, categories = feedback.value, feedback.score, scale.get("categories") or ()
    if label is None and score is not None:  # the number of a category stands for its label
        label = next((own.get("label") for own in categories if own.get("value") == score), None)
    numbers = [own.get("value") for own in categories] or [scale.get("min"), scale.get("max")]
    known = {end for end in numbers if end is not None}
    ends = (min(known), max(known)) if len(known) > 1 else None
    said = Grade(_number(label), None if score is None else float(score), ends)
    corrected = _correction_in(feedback, ends)
    if corrected or is_of_judge(feedback):
        return Graded(feedback, said, corrected)
    return Graded(feedback, None, None if said[:2] == (None, None) else said)


def _correction_in(feedback: Feedback, ends: object) -> Grade | None:
    """The answer to which people corrected another; a score alone is on the other's scale."""
    given: Any = feedback.correction
    given = given if isinstance(given, Mapping) else {"value": given}
    names = [name for name in _CORRECTED if name in given] or [*given][: len(given) == 1]
    label = given[names[0]] if names else None
    if names == ["score"] and isinstance(label, int | float):
        return Grade(None, float(label), ends)
    return Grade(_number(label), None, None) if isinstance(label, str | int | float) else None


def _number(value: Any) -> Any:
    number = number_in(value)
    is_whole = isinstance(number, bool | float) and float(number).is_integer()
    return int(number) if is_whole else number


_Column = dict[Any, Grade]


def answer_columns(given: Iterable[Sequence[Graded]]) -> dict[str, dict[Any, object]]:
    """The latest answers by key and by run, in one form where judges' stand beside people's.

    They are labels, if all have labels of a kind; else scores, from 0 to 1 where registered
    scales differ. People's answers under a judge's key are in `KEY.people`, beside it alone.

    Raises:
        InputError: It is not known which of both a number of people is.
    """
    columns, judges = _columns(given)
    labelled, shared = set[str](), set[str]()
    for name in judges:
        group = {name, *({f"{name}.people"} & columns.keys() or columns.keys() - judges)}
        said = [[g for g in columns[own].values() if g[:2] != (None, None)] for own in group]
        kinds = [{isinstance(each.label, str) for each in own} for own in said]
        is_whole = all(each.label is not None for own in said for each in own)
        ends = {each.ends for own in said for each in own if each.score is not None}
        if len(group) > 1 and is_whole and set.intersection(*kinds):
            labelled |= group
        elif len(ends) > 1 and None not in ends:
            shared |= group
        else:
            for own in group - {name}:
                _check_clear(own, columns[own], columns[name])
    return {
        name: {run: _cell(each, name in labelled, name in shared) for run, each in own.items()}
        for name, own in columns.items()
    }


def _columns(given: Iterable[Sequence[Graded]]) -> tuple[dict[str, _Column], set[str]]:
    """The latest answers by key and by run, and which keys are judges'."""
    every = sorted(chain(*given), key=lambda each: each.feedback.created_at)
    judges = {each.feedback.key for each in every if each.judge}
    columns: dict[str, _Column] = {}
    for feedback, judge, people in every:
        run, key = feedback.run_id, feedback.key
        if judge:
            own = columns.setdefault(key, {})
            own[run] = own.get(run, judge) if people else judge
        if people:
            columns.setdefault(f"{key}.people" if key in judges else key, {})[run] = people
    for own in columns.values():
        alone = {run: each for run, each in own.items() if each.label is None}
        # Of scores beyond 0 to 1 each is a label.
        if any(not 0 <= (each.score or 0) <= 1 for each in alone.values()):
            own |= {run: each._replace(label=each.score) for run, each in alone.items()}
    return columns, judges


def _check_clear(name: str, people: _Column, judge: _Column) -> None:
    places = {g.label: g.score for g in judge.values() if isinstance(g.label, int | float)}
    scored = [each for each in people.values() if each.score is not None]
    alone = {each.score for each in scored if each.ends is None}
    is_either = alone <= places.keys() and any(places[score] != score for score in alone)
    bare = {type(each.label) for each in people.values() if each.score is None}
    if is_either or (scored and bare & {int, float}):
        raise InputError(WORDS["label_or_score"].format(name=name))


def _cell(grade: Grade, is_labelled: bool, is_shared: bool) -> object:
    if is_labelled or grade.score is None:
        return grade.label
    low, high = (is_shared and grade.ends) or (0, 1)
    return (grade.score - low) / (high - low)
