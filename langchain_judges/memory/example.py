"""An audited mistake, and the texts by which it is compared with an item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, cast

from typing_extensions import TypedDict

from langchain_judges.rows.kinds import kind_in, kind_of_example
from langchain_judges.rows.messages import plain_row
from langchain_judges.rows.texts import Text, judged, transcript, with_source
from langchain_judges.verdict import Label

_ATOMS = (str, int, float, type(None))


class ExampleFields(TypedDict):
    """An audited mistake of a judge, and the correct label, as one version is stored."""

    id: str
    family: str
    """The task family; a judge recalls within the family of its item."""
    input: Text
    output: Text | dict[str, Text]
    """The judged text; for a pair `{"output_a", "output_b"}`."""
    expected: str | list[str] | None
    wrong: Label | None
    """The judge's label; for a pair `"A"`, `"B"` or `"tie"`."""
    corrected: Label
    mode: Label | None
    """The failure mode, as the auditor named it."""
    mode_meaning: str | None
    """What the mode means, in one sentence; None: as one of the paper's five, if it is one."""
    source: str | None
    """The id of the item it comes from."""
    group: str | None
    """The group of that item; no item of the group recalls the example."""
    round: int | None
    auditor: str | None
    note: str | None


class NewExample(ExampleFields):
    """An example that is to be remembered."""

    at: NotRequired[str]
    """When it was first remembered; only of an exported one."""


class Example(ExampleFields):
    """An audited mistake of a judge in its last version."""

    version: int
    """1, plus 1 for each further correction."""


def copy_of(example: Example) -> Example:
    """Return a copy of an example that can be changed safely."""
    copy = {
        name: value if isinstance(value, _ATOMS) else json.loads(json.dumps(value))
        for name, value in example.items()
    }
    return cast("Example", copy)


class Texts(NamedTuple):
    """The texts of an item or an example."""

    task: str
    outputs: tuple[str, ...]
    """The response; both of them, in a fixed order, for a pair."""
    expected: str

    def joined(self) -> str:
        """Return the text to embed; the most distinctive part comes first."""
        return "\n\n".join(part for part in (*self.outputs, self.expected, self.task) if part)


def texts_of(item: Mapping[str, Any]) -> Texts:
    """Return the texts of an item, a pair or an example."""
    task = item.get("input") or ""
    output = item.get("output")
    if output is None and kind_in(item) == "pair":
        item = {**item, "output": item}
    if kind_of_example(item) == "pair":
        outputs = tuple(judged(item["output"][side]) for side in ("output_a", "output_b"))
    else:
        outputs = (judged(output),) if output else ()
    expected = item.get("expected") or item.get("reference") or ""
    answer = expected if isinstance(expected, str) else "\n".join(map(str, expected))
    if not (task or outputs or answer):
        answer = "\n".join(value for value in item.values() if isinstance(value, str))
    return Texts(transcript(task) if task else "", outputs, answer)


def outputs_of(example: Mapping[str, object]) -> int:
    """Return the number of texts that an example judges: 2 for a pair, else 1."""
    return 2 if kind_of_example(example) == "pair" else 1


def query_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item in the form of an example, so that the two can be compared.

    The source of a single text is appended to the task; id, group and family are texts or
    None.
    """
    plain = plain_row(item)
    for name in ("id", "group", "family"):
        value = plain.get(name)
        plain[name] = None if value in (None, "") else str(value)
    # An example's `source` is the id of the item that it comes from, not a text.
    is_item = kind_in(plain) == "item" and "corrected" not in plain
    source = plain.get("source") if is_item else None
    if isinstance(source, str):
        plain["input"] = with_source(plain.get("input") or "", source).strip()
    return plain
