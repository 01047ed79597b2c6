"""From a reply to a label and its probability."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from langchain_judges.asking.replies.confidence import json_spans, placed_tokens
from langchain_judges.asking.replies.prose import (
    Line,
    Stated,
    agreed,
    fields,
    label_in,
    lines_of,
    lone_label,
)
from langchain_judges.verdict import Label

_FIELDS = ("label", "verdict", "score", "grade")
_SLACK = 20
_SENTENCE = {
    *("a", "i", "my", "so", "the", "this", "thus", "hence", "therefore", "think", "believe"),
    *("say", "conclude", "that", "final", "overall", "correct", "right", "response", "gets"),
    *_FIELDS,
}
"""Words of a sentence that gives a label, `I think the label is 1`, and of no other one."""
_LONGEST = 200


def spoken_label(text: str, labels: Sequence[Label]) -> dict[str, str] | None:
    """Read a label in plain words: the whole reply, a line `Label: 1`, or "The label is 1.".

    Every line that gives a label counts, and they must agree.
    """
    label = _label_in_words(text, labels)
    words = text.strip().strip("*_`\"'. ")
    return {"label": label.label, "explanation": words} if label else None


def _label_in_words(text: str, labels: Sequence[Label]) -> Stated | None:
    names = {str(label).casefold(): str(label) for label in labels}
    lines = lines_of(text)
    if len(lines) == 1 and (alone := lone_label(lines, 0, names)):
        return alone
    values = [*fields(lines, _FIELDS, _SLACK), *_sentences(lines)]
    return agreed([label_in(each, names) for each in sorted(values, key=lambda v: v.start)])


def _sentences(lines: Sequence[Line]) -> list[Line]:
    """Return what stands behind `is` in every line that is a sentence about the label."""
    values: list[Line] = []
    for line in lines:
        head, verb, value = line.text[:_LONGEST].rpartition(" is ")
        words = set(re.findall(r"\w+", head.casefold()))
        if verb and len(line.text) <= _LONGEST and words & {*_FIELDS} and words <= _SENTENCE:
            values.append(Line(value, line.start + len(head) + len(verb)))
    return values


def label_probabilities(
    message: AIMessage, data: Mapping[str, Any], labels: Sequence[Label], unit: str = ""
) -> dict[str, float]:
    """Return the probability of each label, by the tokens that begin the label.

    The probabilities of the alternatives that begin a label are summed and made to add up to
    one over all labels, for the rest is not among the allowed replies. Without alternatives
    the label's own probability counts, and with two labels the other has what is left.

    Args:
        message: The reply.
        data: What was read from it.
        labels: What could be said.
        unit: The part of the reply that holds the label; empty: the reply itself.

    Returns:
        `{"0": …, "1": …}`; empty where the reply has no token log-probabilities, they do not
        spell it, or they say nothing of the labels: a server that forces the format may
        report the probabilities of what the model would rather have said.
    """
    at = _start_of(message.text, data, unit)
    placed = next((each for each in placed_tokens(message) if each.end > at >= 0), None)
    if placed is None or not isinstance(placed.token.get("logprob"), int | float):
        return {}
    token, before = placed.token, placed.text[: at - placed.start]
    names = [str(label) for label in labels]
    mass = dict.fromkeys(names, 0.0)
    offered = token.get("top_logprobs") or []
    for choice in offered if len(offered) > 1 else ():
        name = _begins(str(choice.get("token", "")), before, names)
        if name is not None and isinstance(choice.get("logprob"), int | float):
            mass[name] += math.exp(choice["logprob"])
    reported = str((data[unit] if unit else data)["label"])
    if mass[reported]:
        total = math.fsum(mass.values())
        return {name: part / total for name, part in mass.items()}
    probability = math.exp(token["logprob"])
    if len(offered) > 1 or probability < 1 / len(names):
        return {}
    if len(names) > 2:
        return {reported: probability}
    return {name: probability if name == reported else 1 - probability for name in names}


def parts_probabilities(
    message: AIMessage, data: Mapping[str, Any], labels: Mapping[str, Sequence[Label]]
) -> dict[str, dict[str, float]]:
    """Return the probabilities of the labels of each part, as `label_probabilities` does.

    Args:
        message: The reply.
        data: What was read from it.
        labels: The labels of each part, by the part's name; empty: the reply itself.
    """
    return {
        part: label_probabilities(message, data, names, part) for part, names in labels.items()
    }


def _start_of(text: str, data: Mapping[str, Any], unit: str) -> int:
    """Return the character at which the label stands in the reply; -1: nobody knows."""
    span = json_spans(text, data).get((unit, "label") if unit else ("label",))
    if span or unit:
        return span[0] if span else -1
    label = _label_in_words(text, [data["label"]])
    return label.at if label else -1


def _begins(token: str, before: str, names: Sequence[str]) -> str | None:
    """Return the one label that a token begins, or that begins it; None if not just one."""
    if not token.startswith(before):
        return None
    part = re.match(r"[\w.+-]*", token[len(before) :].lstrip(' "'))
    beginning = part[0].casefold() if part else ""
    exact = [name for name in names if name.casefold() == beginning]
    fitting = exact or [
        name for name in names if beginning and name.casefold().startswith(beginning)
    ]
    return fitting[0] if len(fitting) == 1 else None
