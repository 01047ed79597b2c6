"""Audited mistakes as a judge of one text is shown them: as earlier turns."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from langchain_judges.memory.example import Example
from langchain_judges.methods.items import SOURCE, material
from langchain_judges.methods.rubric.label_options import ExampleOrder, LabelOptions
from langchain_judges.rows.texts import transcript
from langchain_judges.verdict import Failure, Item, Label


class ShownExample(Example):
    """An example with its task and source apart, as its item has them."""

    source_text: str


def usable(examples: Sequence[Example], labels: Sequence[Label]) -> list[Example]:
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
        return random.Random(seed).sample(examples, len(examples))  # noqa: S311 - no secret
    if order == "modes":
        blocks = list(dict.fromkeys(example.get("mode") for example in examples))
        return sorted(examples, key=lambda example: blocks.index(example.get("mode")))
    return examples


def reply_to(example: Example) -> str:
    """Return the label that a judge should have replied to an example."""
    return json.dumps({"label": str(example["corrected"])}, ensure_ascii=False)


def case(
    record: Item | Example | ShownExample, options: LabelOptions, also: Sequence[str] = ()
) -> dict[str, str]:
    """Return an item, or an example, as a prompt shows it.

    Args:
        record: The item or example.
        options: Say whether its task is shown.
        also: Further texts that the same fence encloses.
    """
    parts = material(record, also)
    if options.shows_task:
        return parts
    source = record.get("source_text" if "corrected" in record else "source")
    if not source and options.needs_source:
        source = transcript(record["input"])
    source_part = SOURCE.format(fence=parts["fence"], source=source) if source else ""
    return {**parts, "source": source_part}


def shaped_as(item: Item, example: Example) -> Example | ShownExample:
    """Return an example with its task and source apart, as the item has them.

    A memory keeps the source of an item behind its task.
    """
    source = item.get("source")
    task, example_task = transcript(item["input"]), transcript(example["input"])
    beginning = f"{task}\n\n"
    if not source or source == task or not example_task.startswith(beginning):
        return example
    return {**example, "input": task, "source_text": example_task.removeprefix(beginning)}


def left_out(recalled: int, fitting: int, count: int) -> list[Failure]:
    """Return a note of the examples that were recalled and are not shown.

    Args:
        recalled: How many were recalled.
        fitting: How many of them carry a label of the judge and are not contradicted.
        count: How many are shown.
    """
    if count == recalled:
        return []
    why = [f"{recalled - count} of {recalled} examples are not shown"]
    if unfit := recalled - fitting:
        why.append(f"{unfit} carry another kind of label, or are contradicted")
    if fitting > count:
        why.append(f"{fitting - count} do not fit the context")
    detail = "; ".join(why)
    return [Failure(step="recall", unit="examples", reason="input_cut", detail=detail)]


def _content(example: Example) -> str:
    fields = [example.get(field) for field in ("input", "output", "expected")]
    return json.dumps(fields, sort_keys=True, default=str)
