"""What is shown of remembered examples: their texts, and the lesson of each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from langchain_judges.memory.example import MEANINGS, Example, meaning_of, texts_of
from langchain_judges.orders import Order, in_slots
from langchain_judges.rows.fences import fence
from langchain_judges.verdict import Label

BLOCK = """

People checked these earlier judgments. Learn from them what to look for; how they came out \
says nothing about this case.
{examples}"""
"""Added where there are examples."""
EXAMPLE = """<example-{fence}>
{parts}
{lesson}
</example-{fence}>"""
PART = """<example-{name}-{fence}>
{text}
</example-{name}-{fence}>"""
WRONG = "Right: {corrected}. A judge said {wrong}."
MISLED = " It was misled by {mode}."
CONFIRMED = "Right: {corrected}, as a judge said."
RIGHT = "Right: {corrected}."

WORDING = hashlib.sha256(
    "\x00".join(
        (BLOCK, EXAMPLE, PART, WRONG, MISLED, CONFIRMED, RIGHT, *MEANINGS.values())
    ).encode()
).hexdigest()
"""Hash of the wording, which a judge's verdicts depend on."""


def length_of(example: Example) -> int:
    """Return how many characters an example takes in a prompt, but for its tags."""
    return sum(map(len, _passages(example)))


def block(
    examples: Sequence[Example], *, order: Order | None = None, noun: str = "response"
) -> str:
    """Render examples for a prompt; empty without examples.

    The tags of an example follow from the example alone, so that it looks the same in every
    prompt that shows it.

    Args:
        examples: The recalled examples.
        order: For pairs, the order in which the call shows the texts.
        noun: What the prompt calls a judged text.
    """
    if not examples:
        return ""
    return BLOCK.format(examples="\n".join(_shown(each, order, noun) for each in examples))


def _passages(example: Example) -> list[str]:
    """Return every text of an example that a prompt shows."""
    texts = texts_of(example)
    passages = [texts.task, *texts.outputs, texts.expected, example["note"] or ""]
    passages += [str(example["wrong"]), str(example["corrected"]), str(example["mode"] or "")]
    return [text for text in (*passages, _meaning(example)) if text]


def _shown(example: Example, order: Order | None, noun: str) -> str:
    token = fence(*_passages(example))
    parts = "\n".join(
        PART.format(name=name, fence=token, text=text)
        for name, text in _parts(example, order, noun)
        if text
    )
    return EXAMPLE.format(fence=token, parts=parts, lesson=_lesson(example, order, noun))


def _parts(example: Example, order: Order | None, noun: str) -> list[tuple[str, str]]:
    """Return the texts of an example with their names; the auditor's reason comes last."""
    texts = texts_of(example)
    known = "expected-answer" if len(texts.outputs) == 1 else "reference"
    parts = [("request", texts.task), (known, texts.expected)]
    if order is not None and len(texts.outputs) == 2:
        slots = in_slots(order, *texts.outputs)
        parts += [(f"{noun}-{i + 1}", text) for i, text in enumerate(slots)]
    else:
        parts += [(noun, text) for text in texts.outputs]
    return [*parts, ("why", example["note"] or "")]


def _lesson(example: Example, order: Order | None, noun: str) -> str:
    corrected, wrong = (
        _label_words(example[side], order, noun) for side in ("corrected", "wrong")
    )
    if example["wrong"] is None:
        return RIGHT.format(corrected=corrected)
    if example["wrong"] == example["corrected"]:
        return CONFIRMED.format(corrected=corrected)
    lesson = WRONG.format(wrong=wrong, corrected=corrected)
    if not example["mode"]:
        return lesson
    meaning = _meaning(example).rstrip(".")
    return lesson + MISLED.format(
        mode=f"{example['mode']}: {meaning}" if meaning else example["mode"]
    )


def _meaning(example: Example) -> str:
    """Return what an example's failure mode means; empty where nobody said it."""
    return meaning_of(example["mode"], example.get("mode_meaning")) if example["mode"] else ""


def _label_words(label: Label | None, order: Order | None, noun: str) -> str:
    """Return a label in the prompt's words: a preference names the slot of the text."""
    if order is None or label not in ("A", "B"):
        return f"{label}"
    return f"{noun} {1 if in_slots(order, 'A', 'B')[0] == label else 2} is better"
