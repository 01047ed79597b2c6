"""Checks that doubt a judge's labels, by expected answers, by people's labels, or by a rule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.methods.allure import answers
from langchain_judges.methods.declaration import WORDS
from langchain_judges.rows import checks, texts
from langchain_judges.verdict import Label


def pattern_of(expression: str) -> re.Pattern[str]:
    """A regular expression that ignores case.

    Raises:
        OptionError: It cannot be compiled.
    """
    try:
        return re.compile(expression, re.IGNORECASE)
    except re.error as exc:
        raise OptionError(f"{expression!r} is not a regular expression: {exc}") from exc


# Says whether a response is an expected answer; None: it cannot say.
TextComparison = Callable[[str, str], bool | None]


class Doubt(NamedTuple):
    """Why a label looks wrong, and which one would look right.

    Attributes:
        label: The label that the check would have given.
        why: One line for the person who audits.
    """

    label: Label
    why: str


# Takes an item, the judge's label, and the labels that it may give, worst first.
CheckRule = Callable[[Mapping[str, Any], Label, Sequence[Label]], Doubt | None]


@dataclass(frozen=True)
class Check:
    """A rule that doubts labels; made by the functions of `label_checks.py`.

    Attributes:
        name: Its name in reports.
        doubt: Why a label looks wrong for an item; None if it does not, or nobody can say.
        needs: The fields of an item without all of which it says nothing; empty: it is a
            function of the caller's.
    """

    name: str
    doubt: CheckRule
    needs: tuple[str, ...] = ()

    def require(self, items: Sequence[Mapping[str, Any]], labels: Sequence[Label]) -> None:
        """Refuse items that the check cannot judge, before anything is paid.

        Raises:
            InputError: None of them has a field that it needs, or a person's label is not on
                the judge's scale.
        """
        if not self.needs:
            return
        if all(item.get(name) is None for item in items for name in self.needs):
            fields = " or ".join(f"`{name}`" for name in self.needs)
            raise InputError(f"the check {self.name!r} reads {fields}, which no item has")
        for item in items:
            try:
                self.doubt(item, labels[0], labels)
            except InputError as exc:
                raise InputError(f"{item['id']}: {exc}") from exc


# A check, the name of one, or a function from item and label; see `checks.resolve_check`.
CheckLike = Check | str | Callable[[Mapping[str, Any], Label], Any]


def is_on_scale(truth: object, labels: Sequence[Label]) -> bool:
    """Whether a person's label is one of a judge's, or a number between two of them."""
    if isinstance(truth, bool):
        return False
    numbers = [each for each in labels if isinstance(each, int | float)]
    if truth in labels or not isinstance(truth, int | float) or not numbers:
        return truth in labels
    return min(numbers) <= truth <= max(numbers)


def nearest(truth: Label, labels: Sequence[Label], said: Label | None) -> Label:
    """The one of a judge's labels that a person's label is, or is nearest to.

    Args:
        truth: The person's label.
        labels: All that the judge may give.
        said: What it gave, which is right where no other is nearer.

    Raises:
        InputError: It is not on their scale.
    """
    if not is_on_scale(truth, labels):
        raise InputError(WORDS["off_scale"].format(list(labels), truth))
    if truth in labels:
        return truth
    numbers = [each for each in labels if isinstance(each, int | float)]
    away = {each: round(abs(each - float(truth)), 9) for each in numbers}
    return min(numbers, key=lambda each: (away[each], each != said))


def require_labels(
    items: Sequence[Mapping[str, Any]], labels: Sequence[Label], part: str = ""
) -> None:
    """Refuse labels of people that are not on a judge's scale, before anything is paid.

    Args:
        items: Each with an id.
        labels: The judge's labels.
        part: What they are items of, where each needs its true label.
    """
    for item in items:
        label = item.get("label")
        if (label is not None or part) and not is_on_scale(label, labels):
            who = f"an item of {part} needs its true label: " if part else ""
            raise InputError(WORDS["other_label"].format(item["id"], who, list(labels), label))


def by_match(name: str, match: TextComparison) -> Check:
    """A check that matches the response against any of the expected answers."""
    why = f"the response {{}} an expected answer ({name})"
    return custom(lambda item, _: matches(match, item), name, why, ("expected",))


def matches(match: TextComparison, item: Mapping[str, Any]) -> bool | None:
    """Whether a response matches any of an item's expected answers.

    Returns:
        None where there is no expected answer, or the match says nothing of any of them.
    """
    response = texts.readable(item.get("output") or "")
    results = [match(response, answer) for answer in checks.expected_answers(item)]
    return any(results) or (False if False in results else None)


def exact() -> Check:
    """The check that requires the exact text of an expected answer."""
    return by_match("exact", lambda response, expected: response == expected)


def normalised_sequence(ignore: Collection[str] = ()) -> Check:
    """The check that compares the words after the last "answer:", in order.

    It has no opinion where the words are the same and their signs are not.

    Args:
        ignore: Words left out on both sides, in lower case, such as articles.
    """
    return by_match("normalised_sequence", partial(answers.same_words, left_out={*ignore}))


def word_set(ignore: Collection[str] = ()) -> Check:
    """The check that compares the words after the last "answer:", in any order.

    Args:
        ignore: As for `normalised_sequence`.
    """
    return by_match("set", partial(answers.same_words, left_out={*ignore}, shape=set))


def numeric(tolerance: float = 1e-9) -> Check:
    """The check that compares the last number of both texts.

    It has no opinion where the expected answer has no number, or one that cannot be read for
    sure, such as 3/4, nor where both have known units that differ.

    Args:
        tolerance: Largest difference, as a share of the larger number.
    """
    return by_match("numeric", partial(answers.same_number, tolerance=tolerance))


def pattern(expression: str | None = None) -> Check:
    """The check that searches the response for a regular expression.

    Args:
        expression: What a right response contains; None: the expected answer is itself the
            expression.

    Raises:
        OptionError: The expression cannot be compiled.
    """
    if expression is None:
        return by_match("pattern", lambda text, answer: bool(pattern_of(answer).search(text)))
    regex = pattern_of(expression)
    why = f"the response {{}} {expression!r}"
    return custom(
        lambda item, _: bool(regex.search(texts.readable(item["output"]))), "pattern", why
    )


def annotated(field: str = "label", *, threshold: float | None = None) -> Check:
    """The check that compares the judge's label with a person's.

    A label is doubted where another of the judge's is nearer to the person's, which is proposed.

    Args:
        field: Where an item carries the person's label; items without it are passed over.
        threshold: Turns the person's grade into the worst label below it and the best from
            it on; ALLURE's second experiment sets expert consistency below 2.5 to 0.
    """

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        annotation = item.get(field)
        is_nan = isinstance(annotation, float) and math.isnan(annotation)
        if is_nan or not isinstance(annotation, int | float | str):
            return None
        if threshold is not None:
            proposed = labels[0] if _grade(annotation, field) < threshold else labels[-1]
        else:
            proposed = nearest(annotation, labels, label)
        why = f"a person says {annotation}, the judge {label}"
        return None if proposed == label else Doubt(proposed, why)

    return Check("annotated", rule, (field,))


def answer_or_label() -> Check:
    """The check by the expected answer, and by a person's label where there is none."""
    by_answer, by_people = normalised_sequence(), annotated()

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        check = by_answer if checks.expected_answers(item) else by_people
        return check.doubt(item, label, labels)

    return Check("answer_or_label", rule, ("expected", "label"))


def _grade(label: Label, field: str) -> float:
    try:
        return float(label)
    except ValueError as exc:
        raise InputError(f"`{field}` must be a number for a threshold, got {label!r}") from exc


def custom(
    function: Callable[[Mapping[str, Any], Label], Any],
    name: str = "",
    why: str = "",
    needs: tuple[str, ...] = (),
) -> Check:
    """A check made of a function from item and label.

    The function returns True where the response is right, so that the best label is due, False
    where it is wrong, and the worst is, None where it cannot say; or the right label itself (a
    number or a text); or a `Doubt`.

    Args:
        function: The function.
        name: Of the check; default the function's.
        why: The reason of a doubt, with `{}` for "matches" or "does not match".
        needs: The fields of an item that the function reads.
    """
    name = name or getattr(function, "__name__", type(function).__name__)
    why = why or f"the response {{}} what {name} wants"

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        result = function(item, label)
        if result is None or isinstance(result, Doubt):
            return result
        if not isinstance(result, bool):
            return None if result == label else Doubt(result, f"{name} says {result}")
        due, outcome = (labels[-1], "matches") if result else (labels[0], "does not match")
        return None if label == due else Doubt(due, why.replace("{}", outcome))

    return Check(name, rule, needs)


# Every check that needs nothing but its name.
CHECKS: dict[str, Callable[[], Check]] = {
    **{"answer_or_label": answer_or_label, "annotated": annotated, "exact": exact},
    **{"normalised_sequence": normalised_sequence, "numeric": numeric},
    **{"pattern": pattern, "set": word_set},
}


def resolve_check(check: CheckLike) -> Check:
    """Check by its name or function.

    Raises:
        OptionError: It is none of them.
    """
    if isinstance(check, Check):
        return check
    if isinstance(check, str) and check in CHECKS:
        return CHECKS[check]()
    if callable(check):
        return custom(check)
    hint = f"; {did_you_mean(str(check), CHECKS)}".rstrip("; ")
    rule = f"must be one of {sorted(CHECKS)!r} or a function"
    raise OptionError(f"`check` {rule}, got {check!r}{hint}")
