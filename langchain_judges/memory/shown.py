"""Examples as a judge shows them: how many, in which words, and its report of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypeGuard

from typing_extensions import TypedDict

from langchain_judges.asking.effects import Effect
from langchain_judges.memory.example import CALLED, MEANINGS, WORDS, Example, query_of, texts_of
from langchain_judges.memory.recall import Recall, Recalled
from langchain_judges.orders import NOUNS, Order, in_slots, naming
from langchain_judges.rows.checks import typed_like
from langchain_judges.rows.fences import fence
from langchain_judges.rows.media import MEDIA_MARK
from langchain_judges.verdict import Failure, Label, Pair

if TYPE_CHECKING:
    from langchain_judges.memory.failure_memory import FailureMemory

    Memory = FailureMemory
else:

    class Memory:
        """Stands for `FailureMemory`, which judges without a memory need not load."""


# Default for the characters of examples that are shown, where not all are wanted.
BUDGET = 24_000
# Characters per token, by a cautious guess.
_CHARACTERS = 3
# Tokens of a model's context reserved for instructions and the reply.
_RESERVED = 1500

_SIDE, _PLACE = (re.compile(CALLED[name]) for name in ("sides", "places"))

# Hash of the wording, which a judge's verdicts depend on.
WORDING = hashlib.sha256(json.dumps([WORDS, MEANINGS]).encode()).hexdigest()


def length_of(example: Example) -> int:
    """Characters that an example takes in a prompt, but for its tags."""
    return sum(map(len, _passages(example)))


def has_labels(example: Example, labels: Sequence[Label]) -> bool:
    """Whether an example has labels of a judge, and the judge's scale where its own is known."""
    said = {typed_like(labels, example[name]) for name in ("wrong", "corrected")} - {None}
    scale = [typed_like(labels, label) for label in example["scale"] or labels]
    return said <= {*labels} and scale == [*labels]


def block(
    examples: Sequence[Example],
    *,
    order: Order | None = None,
    noun: str = "response",
    head: str = WORDS["block"],
) -> str:
    """Render examples for a prompt; empty without examples.

    The tags of an example follow from the example alone, so that it looks the same in every
    prompt that shows it.

    Args:
        examples: The recalled examples.
        order: For pairs, the order in which the call shows the texts.
        noun: What the prompt calls a judged text.
        head: Text around them.
    """
    if not examples:
        return ""
    return head.format(examples="\n".join(_shown(each, order, noun) for each in examples))


def _passages(example: Example) -> list[str]:
    """Every text of an example that a prompt shows."""
    texts = texts_of(example)
    passages = [texts.task, *texts.outputs, texts.expected, example["note"] or ""]
    passages += [str(example["wrong"]), str(example["corrected"]), str(example["mode"] or "")]
    return [text for text in (*passages, _meaning(example)) if text]


def _shown(example: Example, order: Order | None, noun: str) -> str:
    token = fence(*_passages(example))
    note, mode, told = _by_slots(example, order, noun)
    parts = "\n".join(
        WORDS["part"].format(name=name, fence=token, text=text)
        for name, text in [*_parts(example, order, noun), ("why", note)]
        if text
    )
    lesson = told + _lesson(example, order, noun, mode)
    return WORDS["example"].format(fence=token, parts=parts, lesson=lesson)


def _parts(example: Example, order: Order | None, noun: str) -> list[tuple[str, str]]:
    """The texts of an example with their names."""
    texts = texts_of(example)
    known = "expected-answer" if len(texts.outputs) == 1 else "reference"
    parts = [("request", texts.task), (known, texts.expected)]
    if order is not None and len(texts.outputs) == 2:
        slots = in_slots(order, *texts.outputs)
        parts += [(f"{noun}-{i + 1}", text) for i, text in enumerate(slots)]
        return parts
    return [*parts, *((noun, text) for text in texts.outputs)]


def _lesson(example: Example, order: Order | None, noun: str, mode: str) -> str:
    corrected, wrong = (_words(example[side], order, noun) for side in ("corrected", "wrong"))
    if example["wrong"] is None:
        return WORDS["right"].format(corrected=corrected)
    if example["wrong"] == example["corrected"]:
        return WORDS["confirmed"].format(corrected=corrected)
    lesson = WORDS["wrong"].format(wrong=wrong, corrected=corrected)
    return lesson + WORDS["misled"].format(mode=mode.rstrip(".")) if mode else lesson


def _by_slots(example: Example, order: Order | None, noun: str) -> tuple[str, str, str]:
    """Words of people on an example, by the slots of an order: why, what misled, which is which.

    For people the first text of a pair is A. Their words are turned where a noun with a letter or
    a number stands for a text, and nothing else does. Otherwise all of them stay, and a sentence
    says which is which: they may call the texts so in any language.
    """
    note, mode = example["note"] or "", str(example["mode"] or "")
    said = [note, example.get("mode_meaning") or "", mode if mode not in MEANINGS else ""]
    mode = ": ".join(filter(None, (mode, _meaning(example))))
    if order is None or not any(said):
        return note, mode, ""
    rest = [naming(words, dict.fromkeys("A1B2", "_"), NOUNS) for words in said]
    a, b = in_slots(order, "1", "2")
    if rest == said or any(_SIDE.search(words) or _PLACE.search(words) for words in rest):
        return note, mode, WORDS["places"].format(noun=noun, a=a, b=b)
    names = {"A": a, "1": a, "B": b, "2": b}
    return naming(note, names, NOUNS), naming(mode, names, NOUNS), ""


def which_is_which(words: str, order: Order | None, noun: str) -> str:
    """A sentence on the slots of A and B, for words that may call the texts so; else empty."""
    if order is None or not _SIDE.search(words):
        return ""
    a, b = in_slots(order, "1", "2")
    stop = "" if re.search(r"[.!?…。][\"')\]]*\s*$", words) else "."
    return stop + WORDS["sides"].format(noun=noun, a=a, b=b)


def _meaning(example: Example) -> str:
    """Meaning of a failure mode: as its example says, else as the paper's five do."""
    if not example["mode"]:
        return ""
    return (example.get("mode_meaning") or MEANINGS.get(str(example["mode"]), "")).strip()


def _words(label: Label | None, order: Order | None, noun: str) -> str:
    """A label in the prompt's words: a preference names the slot of the text."""
    if order is None or label not in ("A", "B"):
        return f"{label}"
    return f"{noun} {1 if in_slots(order, 'A', 'B')[0] == label else 2} is better"


def is_memory(value: object) -> TypeGuard[Memory]:
    """Whether an object is a `Memory`, by its methods; its version may be slow."""
    needed = ("recall", "arecall", "remember", "aremember", "trial", "pin")
    return all(callable(getattr(type(value), name, None)) for name in needed)


class RememberedPair(Pair):
    """A pair with the fields that decide what is asked and recalled; no model sees them."""

    family: NotRequired[str]
    group: NotRequired[str]
    task_kind: NotRequired[str | None]


class RecallReport(TypedDict):
    """Report of a judge about its examples, in addition to the verdict.

    Attributes:
        ids: Ids of the examples shown, in order.
        left_out: Number of recalled examples that are not shown: there was no room, or they
            have another scale or media.
        leaked: Ids of shown examples that are the item itself or of its group
            (`allow_leak=True`).
        allow_leak: Whether such examples were allowed.
        version: Version of the memory.
    """

    ids: list[str]
    left_out: int
    leaked: list[str]
    allow_leak: bool
    version: str


@dataclass(frozen=True)
class Recaller:
    """A judge's memory, and how the judge recalls from it.

    Attributes:
        context: Tokens of the model's context, if known.
    """

    memory: Memory
    how: Recall
    allow_leak: bool
    context: int | None = None

    def fingerprint(self) -> dict[str, object]:
        """The settings of the memory that belong to the judge's mark.

        The memory's content is not among them, because it changes.
        """
        return {
            "recall": asdict(self.how),
            "allow_leak": self.allow_leak,
            "wording": WORDING[:12],
            "budget": self._budget,
        }

    @property
    def _budget(self) -> int | None:
        most = None if self.how.kind == "all" else BUDGET
        return most if self.memory.budget is None else self.memory.budget

    async def recall(self, item: Mapping[str, object]) -> Recalled:
        """Recall examples for an item, whether they fit or not."""
        query = {name: value for name, value in item.items() if value is not None}
        recalled: Recalled = await Effect.of(
            self.memory, "recall", query, self.how, allow_leak=self.allow_leak
        )
        return recalled

    def fitting(
        self,
        examples: Sequence[Example],
        item: Mapping[str, Any],
        length: Callable[[Example], int] = length_of,
    ) -> list[Example]:
        """The examples that fit: the first of a choice, or the newest if it is `all`.

        They stand in the order in which they are shown: the nearest last, next to the item.

        Args:
            examples: Those that can be shown, in the order in which they were chosen.
            item: What is judged, beside which they stand.
            length: The characters that an example takes.
        """
        room = float("inf") if self._budget is None else self._budget
        if self.context:
            own = texts_of(query_of(item))
            size = sum(map(len, (own.task, *own.outputs, own.expected)))
            room = min(room, _CHARACTERS * (self.context - _RESERVED) - size)
        # Of images and other media prompts show the names alone.
        examples = [e for e in examples if not any(map(MEDIA_MARK.search, _passages(e)))]
        newest = self.how.kind == "all"
        chosen: list[Example] = []
        for example in reversed(examples) if newest else examples:
            room -= length(example) if room < float("inf") else 0
            if room < 0:
                break
            chosen.append(example)
        return chosen[::-1] if newest or self.how.kind in {"near", "knn"} else chosen

    def report(self, recalled: Recalled, examples: Sequence[Example]) -> RecallReport:
        """The report on what was recalled, of which some examples are shown."""
        ids = [example["id"] for example in examples]
        return {
            "ids": ids,
            "left_out": len(recalled) - len(examples),
            "leaked": [name for name in recalled.leaked if name in ids],
            "allow_leak": self.allow_leak,
            "version": recalled.version or self.memory.version,
        }


def cut_failures(report: RecallReport) -> list[Failure]:
    """A failure for examples that are not shown, so that the cut is visible."""
    if not report["left_out"]:
        return []
    count = len(report["ids"]) + report["left_out"]
    cut = f"{report['left_out']} of {count} recalled examples are left out"
    detail = f"{cut}: there is no room, or they have another scale or images"
    return [{"step": "recall", "unit": "examples", "reason": "input_cut", "detail": detail}]
