"""Audited mistakes as a judge of one text is shown them: as earlier turns."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.memory.example import Example
from langchain_judges.methods.rubric.options import ExampleOrder
from langchain_judges.methods.rubric.replies import Explain
from langchain_judges.verdict import Failure


def usable(examples: Sequence[Example], labels: Sequence[Any]) -> list[Example]:
    """Return the examples with one of some labels; of two that contradict, the later one."""
    names = {str(label) for label in labels}
    copies = list(examples)  # what is recalled is a sequence that copies
    latest: dict[str, Example] = {}
    for example in copies:
        text = isinstance(example.get("output"), str | list)
        if text and str(example.get("corrected")) in names:
            latest[_content(example)] = example
    return [each for each in copies if latest.get(_content(each)) is each]


def in_order(examples: list[Example], order: ExampleOrder, seed: int) -> list[Example]:
    """Return examples in the order in which they are shown."""
    if order == "shuffle":
        return random.Random(seed).sample(examples, len(examples))  # noqa: S311
    if order == "modes":
        blocks = list(dict.fromkeys(example.get("mode") for example in examples))
        return sorted(examples, key=lambda example: blocks.index(example.get("mode")))
    return examples


def reply_to(example: Mapping[str, Any], explain: Explain) -> str:
    """Return what a judge should have replied to an example."""
    label = {"label": str(example["corrected"])}
    reason = {"explanation": _lesson(example)}
    ordered = {"after": {**label, **reason}, "first": {**reason, **label}, "none": label}
    return json.dumps(ordered[explain], ensure_ascii=False)


def left_out(recalled: int, fitting: int, shown: int) -> list[Failure]:
    """Return a note of the examples that were recalled and are not shown.

    Args:
        recalled: How many were recalled.
        fitting: How many of them carry a label of the judge and are not contradicted.
        shown: How many are shown.
    """
    if shown == recalled:
        return []
    unfit = recalled - fitting
    why = [f"{recalled - shown} of {recalled} examples are not shown"]
    why += [f"{unfit} carry another kind of label, or are contradicted"] if unfit else []
    why += [f"{fitting - shown} do not fit the context"] if fitting > shown else []
    note: Failure = {
        "step": "recall",
        "unit": "examples",
        "reason": "input_cut",
        "detail": "; ".join(why),
    }
    return [note]


def _content(example: Mapping[str, Any]) -> str:
    fields = [example.get(field) for field in ("input", "output", "expected")]
    return json.dumps(fields, sort_keys=True, default=str)


def _lesson(example: Mapping[str, Any]) -> str:
    """Say in a sentence or two what the audit of an example found."""
    wrong, corrected = example.get("wrong"), example["corrected"]
    parts = [f"The label is {corrected}."]
    if wrong is not None and wrong != corrected:
        parts = [f"A judge gave {wrong} by mistake; the audited label is {corrected}."]
    if example.get("mode"):
        parts.append(f"What misled it: {example['mode']}.")
    if note := str(example.get("note") or "").strip():
        parts.append(note)
    return " ".join(parts)
