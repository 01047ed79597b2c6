"""An audited mistake, and the texts by which it is compared with what is to be judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from typing_extensions import TypedDict

from langchain_judges.rows.messages import plain_row
from langchain_judges.rows.texts import judged, transcript, with_source

Label = str | int | float
_ATOMS = (str, int, float, type(None))


class Example(TypedDict):
    """An audited mistake of a judge, and what it should have said."""

    id: str
    family: str
    """What it is an example of; a judge recalls within the family of its item."""
    input: str | list[dict[str, Any]]
    output: str | list[dict[str, Any]] | dict[str, Any]
    """The judged text; for a pair `{"output_a", "output_b"}`."""
    expected: str | list[str] | None
    wrong: Label | None
    """What the judge said; for a pair `"A"`, `"B"` or `"tie"`."""
    corrected: Label
    mode: Label | None
    """The failure mode, as the auditor named it."""
    source: str | None
    """The id of the item it comes from."""
    group: str | None
    """The group of that item; no item of it is shown the example."""
    round: int | None
    auditor: str | None
    note: str | None
    version: int
    """1, and one more for each time it was corrected again."""


def copied(example: Example) -> Example:
    """Return an example that can be changed without harm."""
    copy = {
        name: value if isinstance(value, _ATOMS) else json.loads(json.dumps(value))
        for name, value in example.items()
    }
    return cast("Example", copy)


class Texts(NamedTuple):
    """What an item or an example says."""

    task: str
    outputs: tuple[str, ...]
    """The response; both of them, in a fixed order, for a pair."""
    expected: str

    def joined(self) -> str:
        """Return the text whose embedding stands for it; what differs most comes first."""
        return "\n\n".join(part for part in (*self.outputs, self.expected, self.task) if part)


def texts_of(item: Mapping[str, Any]) -> Texts:
    """Return the texts of an item, a pair or an example."""
    task = item.get("input") or ""
    output = item.get("output")
    if output is None and "output_a" in item:
        output = item
    if isinstance(output, Mapping):
        outputs = tuple(judged(output[side]) for side in ("output_a", "output_b"))
    else:
        outputs = (judged(output),) if output else ()
    expected = item.get("expected") or item.get("reference") or ""
    answer = expected if isinstance(expected, str) else "\n".join(map(str, expected))
    if not (task or outputs or answer):
        answer = "\n".join(value for value in item.values() if isinstance(value, str))
    return Texts(transcript(task) if task else "", outputs, answer)


def outputs_of(example: Mapping[str, Any]) -> int:
    """Return how many texts an example judges: 2 for a pair, else 1."""
    return 2 if isinstance(example["output"], Mapping) else 1


def asked_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as examples are made of it, so that the two can be compared.

    The source that a single text is judged by stands behind the task; what names the item
    is a text, or None.
    """
    plain = plain_row(item)
    for name in ("id", "group", "family"):
        value = plain.get(name)
        plain[name] = None if value in (None, "") else str(value)
    # An example's `source` is the id of the item that it comes from, and no text.
    source = plain.get("source") if "output" in plain and "corrected" not in plain else None
    if isinstance(source, str):
        plain["input"] = with_source(plain.get("input") or "", source).strip()
    return plain
