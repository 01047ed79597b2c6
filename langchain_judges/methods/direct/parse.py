"""Reading replies in plain words, and the probability of the label in a reply."""

from __future__ import annotations

import re
from collections.abc import Mapping

from langchain_core.messages import AIMessage

from langchain_judges.asking.replies.confidence import Span, json_spans, reply_tokens, spelling
from langchain_judges.asking.replies.prose import (
    LabelForms,
    SpokenLabel,
    lines_of,
    spoken_label,
)

_FORMS = LabelForms(
    fields=("preferred", "preference", "verdict", "winner", "choice", "answer", "better"),
    nouns=("response", "summary", "passage", "candidate", "text", "option"),
    # Letters are what models write that have read many comparisons of an A and a B.
    labels={"1": "1", "2": "2", "a": "1", "b": "2", "tie": "tie"},
    slack=20,
)
_LONGEST = 200
"""Characters of a line in which scores are looked for."""
_NUMBER = r"\d{1,6}(?:\.0{1,6})?(?: ?/ ?\d{1,6})?"
"""A whole number without a sign, and what it may be out of: `8`, `8.0`, `8/10`."""
_SCORE = re.compile(
    r"(?:response|assistant|passage|score)? ?(?P<slot>[12]) ?(?:scores?)? ?[:=] ?[(\[]?"
    rf"(?P<score>{_NUMBER})[)\]]?(?: (?:out of \d{{1,6}}|points?))?"
    r"(?:$|[.,;:](?!\d)| ?\(| ?[-\u2013\u2014](?! ?\d))",
    re.IGNORECASE,
)
"""One response and its score; words may follow after a mark, for `2 errors` is no score.
Neither is a range, `7-8`."""
_PAIR = re.compile(rf"(?P<first>{_NUMBER})(?: ?[,;] ?| )(?P<second>{_NUMBER})[ .]?")
_MARKUP = str.maketrans(dict.fromkeys("*_`\"'"))


def label_of(text: str) -> SpokenLabel | None:
    r"""Return the label that a reply in plain words ends on.

    >>> label_of("It quotes 'Preferred: 1', which is odd.\nPreferred: 2.").label
    '2'
    >>> label_of("Preferred: 1\nPreferred: 2") is None
    True
    """
    return spoken_label(text, _FORMS)


def spoken_choice(text: str) -> dict[str, object] | None:
    """Read a reply in plain words into the shape that JSON replies have."""
    choice = label_of(text)
    return {"explanation": choice.before, "preference": choice.label} if choice else None


def spoken_scores(text: str) -> dict[str, object] | None:
    r"""Read two scores in plain words: one line `7 4`, or `Response 1: 7` for each.

    A score below zero, a broken one, or two that differ for one response are none.

    >>> spoken_scores("8 6\nThe first is fuller.")
    {'score_1': 8, 'score_2': 6, 'explanation': 'The first is fuller.'}
    >>> spoken_scores("Response 1: 8/10\nResponse 2: 6/10")["score_2"]
    6
    """
    by_slot: dict[str, set[int]] = {"1": set(), "2": set()}
    pairs: set[tuple[int, int]] = set()
    rest: list[str] = []
    lines = lines_of(text)
    for line in lines:
        words = _bare(line.text)
        if pair := _PAIR.fullmatch(words.strip("()[]")):
            pairs.add((_whole(pair["first"]), _whole(pair["second"])))
        elif match := _SCORE.match(words):
            by_slot[match["slot"]].add(_whole(match["score"]))
        else:
            rest.append(line.text)
    named_pair = [(first, second) for first in by_slot["1"] for second in by_slot["2"]]
    score_pairs = pairs | set(named_pair)
    # A response scored twice, differently, may be a quotation: nobody knows which counts.
    if len(score_pairs) != 1 or any(len(scores) > 1 for scores in by_slot.values()):
        return None
    ((first, second),) = score_pairs
    explanation = rest if pairs else [line.text for line in lines]
    return {"score_1": first, "score_2": second, "explanation": "\n".join(explanation).strip()}


def _bare(line: str) -> str:
    """Return the beginning of a line without emphasis, bullets and double spaces."""
    spaced = " ".join(line[:_LONGEST].translate(_MARKUP).split())
    return spaced if spaced.startswith("-") and spaced[1:2].isdigit() else spaced.lstrip(" -#")


def _whole(number: str) -> int:
    return int(re.split(r"[./\s]", number)[0])


def measure(message: AIMessage, data: Mapping[str, object]) -> dict[str, float]:
    """Return the probabilities of a reply's label, and of explanation and label together.

    Each is the length-normalised probability of its own tokens; what the model gave no
    log-probabilities for is left out.
    """
    text = str(message.text)
    letters = spelling(text, reply_tokens(message))
    if letters is None:
        return {}
    spans = _spans(text, data)
    measured = {"label": letters.confidence(spans[-1:]), "joint": letters.confidence(spans)}
    return {name: confidence.value for name, confidence in measured.items() if confidence}


def _spans(text: str, data: Mapping[str, object]) -> list[Span]:
    """Return where the explanation and, last, the label stand; empty if there is none."""
    json_places = json_spans(text, data)
    if ("preference",) in json_places:
        parts = (("explanation",), ("preference",))
        return [json_places[part] for part in parts if part in json_places]
    choice = label_of(text)
    if choice is None or choice.label != data.get("preference"):
        return []
    return [(0, len(choice.before)), choice.span]
