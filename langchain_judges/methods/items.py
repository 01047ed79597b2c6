"""Shared parts of judges of one text: state, beginning of a judgment, material of a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_judges.asking.effects import Update
from langchain_judges.asking.question import Account
from langchain_judges.asking.reading import Problem
from langchain_judges.errors import InputError
from langchain_judges.methods.context import RowSteps, StepState
from langchain_judges.methods.declaration import WORDS
from langchain_judges.rows import checks, fences
from langchain_judges.rows.texts import shown, shown_task
from langchain_judges.verdict import NOTES, Item, Label, LabelVerdict, no_usage, not_labelled

# What stands around the parts of an item.
ITEM_WORDS: Mapping[str, str] = WORDS["item"]


class ItemState(Item, StepState, total=False):
    """The state of every judge of one text; every value is plain JSON."""

    verdict: LabelVerdict | None


class ItemSteps(RowSteps[ItemState]):
    """The steps of a judge of one text; a method adds its own."""

    source = Item

    def check(self, item: Item) -> None:
        """Check that there is a standard to judge an item by.

        Raises:
            InputError: There is none.
        """
        if not (item.get("expected") or item.get("source") or item.get("rubric")):
            raise InputError(WORDS["no_standard"])

    def lacking(self, item: Item) -> str:
        """The missing part that keeps an item from being judged, in a sentence; else empty."""
        return ""

    def begin(self, state: ItemState, account: Account) -> Update:
        """Check the item, the standard to judge it by, and that the models take it."""
        checks.check_item(state)
        item = item_of(state)
        told = cast("Item", {**item, NOTES: state.get(NOTES)})
        self.check(told)
        if lack := self.lacking(told):
            failure = Problem("lacking", lack).failure("begin", "")
            return self.decided(not_labelled([failure], no_usage(), f"Not judged: {lack}."))
        if failures := self.context.unsupported_media(item):
            why = f"Not judged: {failures[0]['detail']}."
            return self.decided(not_labelled(failures, no_usage(), why))
        return self.first_state(item, account)

    def lookup_variables(self, state: ItemState) -> Mapping[str, object]:
        """The item as a prompt that looks things up shows it."""
        shown = ITEM_WORDS["whole"].format(**prompt_variables(item_of(state)))
        return {"material": shown, "judgment": "whether what the response says holds."}


def label_verdict(
    account: Account, why: str, label: Label, score: float | None, confidence: float | None = None
) -> LabelVerdict:
    """The verdict that gives one text a label.

    Args:
        account: Of the row.
        why: What decided, for people.
        label: The label.
        score: Its place from 0, the lowest label, to 1.
        confidence: By the probabilities of its tokens, where they are known.
    """
    return {
        **not_labelled(**account.booked, rationale=why),
        "label": label,
        "score": score,
        "confidence": confidence,
        "confidence_source": "none" if confidence is None else "logprobs",
    }


def item_of(state: Mapping[str, object]) -> Item:
    """The part of an item that a judge may see, without what people know of it."""
    names = (name for name in Item.__annotations__ if name in state and name != NOTES)
    return cast("Item", {name: state[name] for name in names})


def prompt_variables(item: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, str]:
    """One case as a prompt shows it, in fences with a token of its own.

    Args:
        item: An item, or a remembered example.
        also: Further texts that the same fence encloses.
    """
    task, response = shown_task(item["input"]), shown(item["output"])
    answers, source = checks.expected_answers(item), item.get("source") or ""
    # An example's `source` is the id of the item that it comes from, and no text.
    source = item.get("source_text") or "" if "corrected" in item else source
    token = fences.fence(task, response, *answers, source, *also)
    expected = ""
    if len(answers) == 1:
        expected = ITEM_WORDS["expected"].format(fence=token, expected=answers[0])
    elif answers:
        lines = "\n".join(f"- {answer}" for answer in answers)
        expected = ITEM_WORDS["any_of"].format(fence=token, expected=lines)
    source_text = ITEM_WORDS["source"].format(fence=token, source=source) if source else ""
    return {
        "fence": token,
        "task": task,
        "response": response,
        "expected": expected,
        "source": ITEM_WORDS["is_request"] if source and source == task else source_text,
    }
