"""Checks: rules that find labels of a judge that look wrong.

A check proposes, and a person decides. ALLURE's own is a match between the response and the
expected answer (Hasanbeig et al. 2023, section 3); on the paper's data most of what a plain
match finds is a full stop, a capital letter or a noun too many, and not a mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from langchain_judges.errors import InputError, OptionError, did_you_mean
from langchain_judges.methods.allure.audit.answers import (
    NOUNS,
    answer_words,
    compiled,
    last_number,
    squeezed,
)
from langchain_judges.methods.allure.audit.check import (
    Check,
    CheckLike,
    Doubt,
    by_match,
    by_right,
    doubt_of,
    nearest,
)
from langchain_judges.rows.texts import judged
from langchain_judges.verdict import Label


def exact() -> Check:
    """Return the check that wants the very text of an expected answer."""
    return by_match("exact", lambda response, expected: response == expected)


def normalised() -> Check:
    """Return the check that overlooks spaces, full stops, case and a leading "answer:"."""
    return by_match("normalised", lambda a, b: squeezed(a) == squeezed(b))


def normalised_sequence(ignore: Collection[str] = NOUNS) -> Check:
    """Return the check that compares the words after the last "answer:", in order.

    The default for text against text.

    Args:
        ignore: Words left out on both sides, in lower case.
    """
    left_out = frozenset(ignore)
    return by_match(
        "normalised_sequence",
        lambda a, b: answer_words(a, left_out) == answer_words(b, left_out),
    )


def word_set(ignore: Collection[str] = NOUNS) -> Check:
    """Return the check that compares the words after the last "answer:", in any order."""
    left_out = frozenset(ignore)
    return by_match(
        "set", lambda a, b: set(answer_words(a, left_out)) == set(answer_words(b, left_out))
    )


def numeric(tolerance: float = 1e-9) -> Check:
    """Return the check that compares the last number of both texts.

    It says nothing where the expected answer has no number.

    Args:
        tolerance: Largest difference, as a share of the larger number.
    """

    def same(response: str, expected: str) -> bool | None:
        target, number = last_number(expected), last_number(response)
        if target is None:
            return None
        return number is not None and math.isclose(
            number, target, rel_tol=tolerance, abs_tol=tolerance
        )

    return by_match("numeric", same)


def pattern(expression: str | None = None, *, extract: bool = False) -> Check:
    """Return the check that searches the response for a regular expression.

    Args:
        expression: What a right response contains; None: the expected answer is itself the
            expression.
        extract: The first group of `expression` (or its whole match) is the answer, to be
            compared with the expected one as `normalised_sequence` does.

    Raises:
        OptionError: The expression cannot be compiled, or is missing with `extract`.
    """
    if extract and expression is None:
        raise OptionError("`extract=True` needs an `expression` that finds the answer")
    regex = compiled(expression) if expression is not None else None

    def match(response: str, expected: str) -> bool | None:
        search = regex or compiled(expected)
        hits = list(search.finditer(response))
        if not extract:
            return bool(hits)
        if not hits:
            return False
        answer = hits[-1][1] if search.groups else hits[-1][0]
        return answer_words(answer or "", NOUNS) == answer_words(expected, NOUNS)

    if extract or regex is None:
        return by_match("pattern", match)
    why = f"the response {{}} {expression!r}"

    return by_right("pattern", lambda item: bool(regex.search(judged(item["output"]))), why)


def annotated(
    field: str = "label",
    *,
    min_deviation: float = 1.0,
    threshold: float | None = None,
) -> Check:
    """Return the check that compares the judge's label with a person's.

    Numbers are doubted where they lie `min_deviation` or more apart, other labels where they
    differ. The label proposed instead is the judge's own label nearest to the person's.

    Args:
        field: Where an item carries the person's label; items without it are passed over.
        min_deviation: Least difference of two grades that is worth a person's time.
        threshold: Turns the person's grade into the worst label below it and the best from
            it on; ALLURE's second experiment sets expert consistency below 2.5 to 0.

    Raises:
        OptionError: `min_deviation` is not positive.
    """
    if not min_deviation > 0:
        raise OptionError(f"`min_deviation` must be positive, got {min_deviation!r}")

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        annotation = item.get(field)
        if (
            annotation is None
            or isinstance(annotation, bool)
            or not isinstance(annotation, int | float | str)
        ):
            return None
        if isinstance(annotation, float) and math.isnan(annotation):
            return None
        truth: Label = annotation
        if threshold is not None:
            truth = labels[0] if _grade(annotation, field) < threshold else labels[-1]
        both = [each for each in (truth, label) if isinstance(each, int | float)]
        if len(both) == 2 and abs(both[0] - both[1]) < min_deviation:
            return None
        proposed = nearest(truth, labels)
        if proposed == label:
            return None
        return Doubt(proposed, f"a person says {annotation}, the judge {label}")

    return Check("annotated", rule, field)


def _grade(label: Label, field: str) -> float:
    try:
        return float(label)
    except ValueError as exc:
        raise InputError(f"`{field}` must be a number for a threshold, got {label!r}") from exc


def custom(function: Callable[[Mapping[str, Any], Label], Any]) -> Check:
    """Return a check made of a function from item and label.

    The function returns True where the response is right, False where it is wrong, None
    where it cannot say; or the right label itself (a number or a text); or a `Doubt`.
    """
    name = getattr(function, "__name__", type(function).__name__)

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        result = function(item, label)
        if result is None or isinstance(result, Doubt):
            return result
        if isinstance(result, bool):
            return doubt_of(result, label, labels, f"the response {{}} what {name} wants")
        return None if result == label else Doubt(result, f"{name} says {result}")

    return Check(name, rule)


CHECKS: dict[str, Callable[[], Check]] = {
    "annotated": annotated,
    "exact": exact,
    "normalised": normalised,
    "normalised_sequence": normalised_sequence,
    "numeric": numeric,
    "pattern": pattern,
    "set": word_set,
}
"""Every check that needs nothing but its name."""


def resolve_check(check: CheckLike) -> Check:
    """Return the check that a name or a function stands for.

    Raises:
        OptionError: It is none of them.
    """
    if isinstance(check, Check):
        return check
    if isinstance(check, str) and check in CHECKS:
        return CHECKS[check]()
    if callable(check):
        return custom(check)
    nearest = did_you_mean(str(check), CHECKS)
    raise OptionError(
        f"`check` must be one of {sorted(CHECKS)!r} or a function, got {check!r}"
        f"{nearest and f'; {nearest}'.rstrip()}"
    )
