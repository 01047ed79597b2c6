"""Labels and other annotations of a row, and how they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import kind_in

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
_TYPES: Mapping[type, type] = {str: str, int: float, float: float}

SIDES = ("A", "B", "tie")
"""What a label of a pair may be."""

LABELS: Mapping[str, str] = {
    "a": "A",
    "model_a": "A",
    "output_a": "A",
    "a>b": "A",
    "b": "B",
    "model_b": "B",
    "output_b": "B",
    "b>a": "B",
    "tie": "tie",
    "a=b": "tie",
    "c": "tie",
    "tie (inconsistent)": "tie",
    "tie (bothbad)": "tie",
}
"""How labels of pairs are read if no map of labels is given; case does not matter."""


ANNOTATIONS = (
    "label",
    "labels",
    "group",
    "category",
    "systems",
    "turn",
    "human_votes",
)
"""Fields of a row that no judge sees: what people know of it."""


def read_label(value: object, labels: Mapping[Any, str] | None = None) -> Any:
    """Return a label, or a list of votes, as the package spells them.

    Args:
        value: The row's label; an empty cell stays empty.
        labels: Spelling → label; None for `LABELS`, which leaves other spellings unchanged.

    Raises:
        InputError: `labels` does not have this spelling.
    """
    if value in (None, ""):
        return value
    if isinstance(value, list):
        return [read_label(vote, labels) for vote in value if vote not in (None, "")]
    if labels is None:
        return LABELS.get(value.strip().lower(), value) if isinstance(value, str) else value
    if isinstance(value, str | int | float) and value in labels:
        return labels[value]
    # A CSV cell is always text, also where the labels are numbers.
    as_text = {str(spelling): label for spelling, label in labels.items()}
    if str(value) in as_text:
        return as_text[str(value)]
    raise InputError(f"`labels` has no {value!r}; it has {list(labels)!r}")


def typed_like(labels: Iterable[object], label: object) -> Any:
    """Return a label as the number or the text that a judge's labels are.

    A cell of CSV has no type: its "1" may be the judge's 1, and a 1 its "1".

    Args:
        labels: Labels that the judge gave.
        label: What people gave; left as it is where the judge's labels are of several types.

    >>> typed_like([0, 1], "1"), typed_like(["1", "2"], 1), typed_like([0, 1], "polite")
    (1, '1', 'polite')
    """
    kinds = {_TYPES.get(type(each)) for each in labels}
    if kinds == {str} and _TYPES.get(type(label)) is float:
        return str(label)
    if kinds == {float} and isinstance(label, str) and _NUMBER.fullmatch(label):
        return json.loads(label)
    return label


def check_annotations(row: Mapping[str, Any]) -> None:
    """Check the annotations of a row: labels, votes, group and category.

    Raises:
        InputError: One of them cannot be counted, or a pair's label is not one of `SIDES`.
    """
    check_countable(row)
    if kind_in(row) != "pair":
        return
    votes = row.get("human_votes") or []
    for field, labels in (("label", [row.get("label")]), ("human_votes", votes)):
        for label in labels:
            if label not in (None, "", *SIDES):
                raise InputError(
                    f"`{field}` must be A, B or tie, or a usual spelling of them such as "
                    f"model_a or A>B, got {label!r}"
                )


def check_countable(row: Mapping[str, Any]) -> None:
    """Check that labels, votes, group and category are texts or numbers.

    Raises:
        InputError: One of them is something else.
    """
    for field in ("group", "category", "label"):
        _check_one(row.get(field), field)
    labels = row.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        raise InputError(
            "`labels` must name a label for each criterion, such as "
            f'{{"accuracy": 4}}, got {str(labels)[:40]!r}'
        )
    for name, label in (labels or {}).items():
        _check_one(label, f"labels.{name}")
    votes = row.get("human_votes")
    if votes is not None and not isinstance(votes, list):
        raise InputError(f"`human_votes` must be a list of labels, got {str(votes)[:40]!r}")
    for vote in votes or []:
        _check_one(vote, "human_votes")


def _check_one(value: object, field: str) -> None:
    if value is not None and not isinstance(value, str | int | float):
        raise InputError(f"`{field}` must be a text or a number, got {str(value)[:40]!r}")
