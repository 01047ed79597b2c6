"""Shared by judges by criteria: state, beginning, shapes of replies, and verdicts of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum, prod
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage
from pydantic import BaseModel, BeforeValidator
from typing_extensions import TypedDict

from langchain_judges import verdict
from langchain_judges.asking import reading, reply_text
from langchain_judges.asking.effects import Update
from langchain_judges.asking.question import Account
from langchain_judges.methods.items import ItemState, ItemSteps, label_verdict
from langchain_judges.methods.lookups import LookupState
from langchain_judges.methods.rubric.criteria import Criterion, Explain, as_numbers
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.verdict import ConfidenceSource, Item, Label, LabelVerdict, Notes


class CriterionScore(TypedDict):
    """The finding by one criterion.

    Attributes:
        label: None: not judged, see the verdict's failures.
        best: The label whose score is 1.
        score: From 0, its lowest label, to 1, the highest; words are evenly spaced.
        holds: Whether the text meets the criterion, by its label.
    """

    criterion: str
    label: Label | None
    best: Label
    score: float | None
    weight: float
    holds: bool | None
    required: bool
    reason: str
    confidence: float | None
    confidence_source: ConfidenceSource


class RubricState(ItemState, LookupState, total=False):
    """State of the graph; every value is plain JSON.

    Attributes:
        subscores: In the order of the criteria.
    """

    subscores: list[CriterionScore]


class RubricSteps(ItemSteps):
    """The steps of a judge by a rubric; each way of judging adds its own."""

    options: LabelOptions

    def check(self, item: Item) -> None:
        """Check that an item brings what its rubric needs."""
        self.options.check(item)

    def lacking(self, item: Item) -> str:
        """The lack of what the rubric of an item is about; empty: none."""
        return self.options.lacking(item)

    def begin(self, state: ItemState, account: Account) -> Update:
        """Check the item, and note where its own rubric names a scale that is not its labels."""
        update = super().begin(state, account)
        if state.get("rubric") and not update.get("verdict"):
            notes = Notes()
            for each in self.options.rubric_of(state).criteria:
                if each.doubt:
                    notes.add("rubric", each.doubt)
            account.fail(notes)
        return update


def label_shape(labels: Sequence[Label], explain: Explain) -> type[BaseModel]:
    """The shape of a reply: one of the labels as a text, and the reason.

    A label that is itself a number may be written as one: `1` and `1.0` are the same.
    """
    return _label_shape(tuple(map(str, labels)), not isinstance(labels[0], str), explain)


# Every reply to one judge has the same shape, and pydantic takes a millisecond to build it.
@lru_cache(256)
def _label_shape(names: tuple[str, ...], are_numbers: bool, explain: Explain) -> type[BaseModel]:
    by_number = dict(zip(as_numbers(names), names, strict=True)) if are_numbers else {}

    def as_name(value: object) -> object:
        if type(value) in {int, float}:
            return by_number.get(value, value)
        if not isinstance(value, str) or value in names:
            return value
        fitting = [name for name in names if name.casefold() == value.strip().casefold()]
        return fitting[0] if len(fitting) == 1 else value

    choice: Any = Annotated[Literal[names], BeforeValidator(as_name)]
    reason = {"explanation": str} if explain == "first" else {}
    return reading.shape_of("Labelled", {**reason, "label": choice})


def units_of(criteria: Sequence[Criterion]) -> list[str]:
    """The name of each criterion in a reply; empty if it is the only one."""
    several = len(criteria) > 1
    return [f"criterion_{number}" if several else "" for number in range(1, len(criteria) + 1)]


def distinct_lines(texts: Iterable[str]) -> list[str]:
    """The texts on a line each, the first of those that differ in case alone."""
    by_form: dict[str, str] = {}
    for line in filter(None, (" ".join(text.split()) for text in texts)):
        by_form.setdefault(line.casefold(), line)
    return list(by_form.values())


def parse_label(text: str, labels: Sequence[Label]) -> dict[str, str] | None:
    """Read a label in plain words."""
    label = _spoken(text, labels)
    return label and {"label": label.label, "explanation": text.strip()}


def _spoken(text: str, labels: Sequence[Label]) -> reply_text.SpokenLabel | None:
    """The label in the fields of a reply, or that is all of it."""
    by_form = {str(label).casefold(): str(label) for label in labels}
    forms = reply_text.LabelForms(("label", "verdict", "score", "grade"), (), by_form)
    return reply_text.spoken_label(text, forms)


def parts_probabilities(
    message: AIMessage, data: Mapping[str, Any], labels: Mapping[str, Sequence[Label]]
) -> dict[str, dict[str, float] | None]:
    """The probabilities of the labels of each part, by the tokens that begin them.

    The probabilities of the alternatives that begin a label are summed and made to add up to
    one over all labels, as no other reply is allowed. Without alternatives
    the label's own probability counts, and with two labels the other has what is left. What
    begins several labels, as `1` does where each digit is a token, is known of the reply's own
    label by the tokens behind it.

    Args:
        message: The reply.
        data: What was read from it.
        labels: The labels of each part, by the part's name; empty: the reply itself.

    Returns:
        By part the probability of each label; empty where the reply has no token
        log-probabilities, they do not spell it, or they say nothing of the labels: a server
        that forces the format may report the probabilities of what the model would rather have
        said. None where labels begin alike, and which one is meant is not known.
    """
    found: dict[str, dict[str, float] | None] = {unit: {} for unit in labels}
    if not (letters := reply_text.Spelling.of(message)):
        return found  # before its labels are searched for
    spans = reply_text.json_spans(letters.text)
    for unit, names in labels.items():
        part = data.get(unit) if unit else data
        # Of a reply that is saved in part.
        reported = str(part.get("label")) if isinstance(part, Mapping) else ""
        at = _start_of(letters.text, spans, reported, unit) if reported in map(str, names) else -1
        if at >= 0 and (token := letters.token_at(at)):
            # With what stands behind the label, which shows that it ends.
            whole = letters.confidence([(at, at + len(reported) + 1)])
            own = whole.value**whole.tokens if whole else 0.0
            found[unit] = _probabilities(token, reported, list(map(str, names)), own)
    return found


def _probabilities(
    token: reply_text.Token, reported: str, names: Sequence[str], own: float
) -> dict[str, float] | None:
    """The probability of each label by the token that begins the one that was reported.

    Args:
        token: The token.
        reported: The label.
        names: All labels.
        own: The probability of all tokens of the label.
    """
    mass, alike, offered = dict.fromkeys(names, 0.0), 0.0, token.offered
    begun = [(_begun(written, token.before), math.exp(logprob)) for written, logprob in offered]
    for text, chance in begun if len(begun) > 1 else ():
        fitting = _fitting(text, names, [other for other, _ in begun])
        is_one = len(fitting) == 1
        known = chance if is_one else min(own, chance) if reported in fitting else 0.0
        mass[fitting[0] if is_one else reported] += known
        alike += chance - known if fitting else 0.0
    # As little as a hundredth changes nothing.
    if alike > 0.01 * (total := math.fsum(mass.values())):
        return None
    if mass[reported]:
        return {name: part / total for name, part in mass.items()}
    probability = math.exp(token.logprob)
    if len(offered) > 1 or probability < 1 / len(names):
        return {}
    return {name: 1 - probability for name in names if len(names) == 2} | {reported: probability}


def _start_of(
    text: str, spans: Mapping[tuple[str | int, ...], reply_text.TextSpan], reported: str, unit: str
) -> int:
    """Position of a label in the reply; -1: unknown."""
    if span := spans.get((unit, "label") if unit else ("label",)):
        return span[0] if text[slice(*span)].strip().casefold() == reported.casefold() else -1
    label = None if unit else _spoken(text, [reported])
    return label.span[0] if label else -1


def _begun(token: str, before: str) -> str:
    """The part of a label that a token writes."""
    written = token[len(before) :].lstrip(' "').casefold() if token.startswith(before) else ""
    return re.split(r"[^\w.+-]", written, maxsplit=1)[0]


def _fitting(text: str, names: Sequence[str], offered: Iterable[str]) -> list[str]:
    """The labels that a text begins, or one that it is and others are told from by more."""
    fitting = [name for name in names if text and name.casefold().startswith(text)]
    if text not in map(str.casefold, names):
        return fitting
    more = tuple(each for each in offered if each.startswith(text) and each != text)
    return [name for name in fitting if not name.casefold().startswith(more)]


def subscore(
    criterion: Criterion, answer: Mapping[str, object] | None, probabilities: Mapping[str, float]
) -> CriterionScore:
    """The finding by one criterion.

    Args:
        criterion: The criterion.
        answer: The label and the reason; None: it was not judged. A label that is not
            the criterion's says that it cannot be assessed.
        probabilities: Of the labels, where the model gave any: the score is then their mean
            (arXiv:2503.03064). Those of a judge that may abstain hold the probability of that
            too: it lowers the confidence, and the score is the mean of the other labels.
    """
    label = None
    if answer is not None:
        label = {str(each): each for each in criterion.names}.get(str(answer["label"]))
    confidence = probabilities.get(str(label))
    score = None if label is None else criterion.position(label)
    known = _of_labels(criterion, probabilities)
    if label is not None and len(known) == len(criterion.names):
        score = fsum(criterion.position(each) * known[str(each)] for each in criterion.names)
    return {
        "criterion": criterion.name,
        "label": label,
        "best": criterion.names[-1],
        "score": score,
        "weight": criterion.weight,
        "holds": None if label is None else criterion.holds(label),
        "required": criterion.required,
        "reason": str((answer or {}).get("explanation") or "").strip(),
        "confidence": confidence,
        "confidence_source": "none" if confidence is None else "logprobs",
    }


def _of_labels(criterion: Criterion, probabilities: Mapping[str, float]) -> dict[str, float]:
    """The probabilities of the criterion's labels, given that it has one of them."""
    known = {str(name): probabilities.get(str(name)) for name in criterion.names}
    listed = {name: chance for name, chance in known.items() if chance is not None}
    if len(listed) == len(probabilities):
        return dict(probabilities)
    total = fsum(listed.values())
    return {name: chance / total for name, chance in listed.items()} if total else {}


def one_verdict(part: CriterionScore, account: Account) -> LabelVerdict:
    """The verdict of a rubric with one criterion: its label and its score."""
    if part["label"] is None:
        why = f"Cannot be assessed. {part['reason']}" if part["reason"] else ""
        return verdict.not_labelled(**account.booked, rationale=why)
    why = part["reason"] or f"Label {part['label']}, without a reason."
    return label_verdict(account, why, part["label"], part["score"], part["confidence"])


def total_verdict(
    criteria: Sequence[Criterion], subscores: Sequence[CriterionScore], least: int, account: Account
) -> LabelVerdict:
    """The verdict of a rubric with several criteria.

    Its label and its score are the weighted mean of the scores; 0 if a required criterion does
    not hold. Its confidence is the probability that all labels that decide it are right, if
    they are independent.

    Args:
        criteria: The criteria.
        subscores: What was found by each, in the same order.
        least: Fewest criteria that must be judged.
        account: Of the row.
    """
    broken = [each for each in subscores if each["required"] and each["holds"] is False]
    open_ = [each for each in subscores if each["required"] and each["label"] is None]
    found = zip(criteria, subscores, strict=True)
    valid = [(criterion, each) for criterion, each in found if each["score"] is not None]
    if not broken and (open_ or len(valid) < least):
        lost = f"{len(valid)} of {len(subscores)} criteria have a label, at least {least} must"
        if open_:
            lost = f"the required criterion {open_[0]['criterion']!r} has no label"
        why = verdict.why_not(account.failures, lost)
        return verdict.not_labelled(**account.booked, rationale=why)
    points = fsum(c.weight * (each["score"] or 0.0) for c, each in valid)
    total = 0.0 if broken else round(points / fsum(c.weight for c, _ in valid), 4)
    confidences = [each["confidence"] for each in broken or [each for _, each in valid]]
    known = [each for each in confidences if each is not None]
    confidence = prod(known) if len(known) == len(confidences) else None
    return label_verdict(account, _rationale(total, subscores, broken), total, total, confidence)


def _rationale(
    total: float, subscores: Sequence[CriterionScore], broken: Sequence[CriterionScore]
) -> str:
    if broken:
        names = ", ".join(each["criterion"] for each in broken)
        reason = broken[0]["reason"]
        return f"It fails what is required: {names}." + (f" {reason}" if reason else "")
    parts = [
        f"{each['criterion']}: {'not judged' if each['label'] is None else each['label']}"
        for each in subscores
    ]
    return f"Total {total:.2f} of 1. " + "; ".join(parts) + "."
