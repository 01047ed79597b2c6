"""What a check is: a rule that says which labels look wrong, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import expected_answers
from langchain_judges.rows.texts import judged
from langchain_judges.verdict import Label

TextComparison = Callable[[str, str], bool | None]
"""Says whether a response is an expected answer; None: it cannot say."""


class Doubt(NamedTuple):
    """Why a label looks wrong, and which one would not."""

    label: Label
    """The label that the check would have given."""
    why: str
    """One line for the person who audits."""


CheckRule = Callable[[Mapping[str, Any], Label, Sequence[Label]], Doubt | None]
"""Takes an item, the judge's label, and the labels that it may give, worst first."""


@dataclass(frozen=True)
class Check:
    """A rule that doubts labels; made by the functions of `checks.py`."""

    name: str
    """Its name in reports."""
    rule: CheckRule
    needs: str | None = None
    """The field of an item without which it says nothing; None: it needs none."""

    def require(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Refuse items that the check cannot judge.

        Raises:
            InputError: None of them has the field that it needs.
        """
        if self.needs is None or any(item.get(self.needs) is not None for item in items):
            return
        labelled = any(item.get("label") is not None for item in items)
        other = "'annotated', which compares with people's labels" if labelled else "another"
        raise InputError(
            f"the check {self.name!r} reads `{self.needs}`, which no item has; name {other}"
        )

    def doubt(
        self, item: Mapping[str, Any], label: Label, labels: Sequence[Label] = (0, 1)
    ) -> Doubt | None:
        """Return why `label` looks wrong for `item`; None if it does not, or nobody can say.

        Args:
            item: An `Item`, with what people know of it.
            label: What the judge said.
            labels: What the judge may say: the first is the worst, the last the best.
        """
        return self.rule(item, label, labels)


CheckLike = Check | str | Callable[[Mapping[str, Any], Label], Any]
"""A check, the name of one, or a function from item and label; see `checks.resolve_check`."""


def nearest(label: Label, labels: Sequence[Label]) -> Label:
    """Return the one of `labels` that is nearest to a number, or the label itself."""
    numbers = [each for each in labels if isinstance(each, int | float)]
    if not isinstance(label, int | float) or label in labels or not numbers:
        return label
    return min(numbers, key=lambda each: abs(each - label))


def by_match(name: str, match: TextComparison) -> Check:
    """Return a check that matches the response against any of the expected answers."""
    why = f"the response {{}} an expected answer ({name})"
    return by_right(name, lambda item: matches(match, item), why, "expected")


def by_right(
    name: str,
    is_right: Callable[[Mapping[str, Any]], bool | None],
    why: str,
    needs: str | None = None,
) -> Check:
    """Return a check that wants the best label of right responses, the worst of others."""

    def rule(item: Mapping[str, Any], label: Label, labels: Sequence[Label]) -> Doubt | None:
        right = is_right(item)
        return None if right is None else doubt_of(right, label, labels, why)

    return Check(name, rule, needs)


def matches(match: TextComparison, item: Mapping[str, Any]) -> bool | None:
    """Say whether a response matches any of an item's expected answers.

    Returns:
        None where there is no expected answer, or the match says nothing of any of them.
    """
    answers = expected_answers(item)
    response = judged(item.get("output") or "")
    results = [match(response, answer) for answer in answers]
    if any(results):
        return True
    return False if False in results else None


def doubt_of(right: bool, label: Label, labels: Sequence[Label], why: str) -> Doubt | None:
    """Return the doubt in a label that is not the best for a right response, or the worst.

    Args:
        right: Whether the response is right.
        label: What the judge said.
        labels: What it may say, worst first.
        why: The reason, with `{}` for "matches" or "does not match".
    """
    due = labels[-1] if right else labels[0]
    outcome = "matches" if right else "does not match"
    return None if label == due else Doubt(due, why.replace("{}", outcome))
