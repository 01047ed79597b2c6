"""Reading replies in plain words, and the probability of the label in a reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.confidence import Span, json_spans, reply_tokens, span_confidence

_FIELD = re.compile(
    r"^[\W_]*(?:(?:my|the|final|overall)\s+)*"
    r"(?:preferred|preference|verdict|winner|choice|answer|better)\b[^:\n]{0,20}:"
    r"(?P<said>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_LABEL = re.compile(
    r"[\W_]*(?:the\s+)?(?:response|summary|passage|candidate|text|option)?[\s#*_\"'\[(]*"
    r"(?P<label>1|2|A|B|tie)[\W_]*",
    re.IGNORECASE,
)
_SLOTS = {"a": "1", "b": "2"}
"""What models call the responses that have read many comparisons of an A and a B."""
_NUMBER = r"\d+(?:\.0+)?(?:\s*/\s*\d+)?"
"""A whole number without a sign, and what it may be out of: `8`, `8.0`, `8/10`."""
_SCORE = re.compile(
    r"(?:response|assistant|passage|score)?[\W_]*(?P<slot>[12])[\W_]*(?:score\w*)?[\W_]*[:=]"
    rf"[\s*_`\"'(\[]*(?P<score>{_NUMBER})(?:\s*(?:out of \d+|points?))?"
    r"[*_`\"')\]]*(?:$|[.,;:](?!\d)|\s*\(|\s*[-\u2013\u2014](?!\s*\d))",
    re.IGNORECASE,
)
"""One response and its score; words may follow after a mark, for `2 errors` is no score.
Neither is a range, `7-8`."""
_PAIR = re.compile(
    rf"^[\s*_`(\[]*(?P<first>{_NUMBER})[\s,;]+(?P<second>{_NUMBER})[^\w-]*$", re.MULTILINE
)


class Said(NamedTuple):
    """A label in plain words, and where it and what precedes it stand in the reply."""

    label: str
    explanation: str
    span: Span


def said_choice(text: str) -> Said | None:
    r"""Return the label that a reply in plain words ends on.

    The last line that names the preference counts, else the last line, if it is a label
    and nothing else. A line that names both labels, or anything else, is none.

    >>> said_choice("It quotes 'Preferred: 1', which is odd.\nPreferred: 2.").label
    '2'
    >>> said_choice("Preferred: 1 and 2") is None
    True
    """
    fields = list(_FIELD.finditer(text))
    if fields:
        start, end = fields[-1].span("said")
        head = fields[-1].start()
    else:
        stripped = text.rstrip()
        start = head = stripped.rfind("\n") + 1
        end = len(stripped)
    found = _LABEL.fullmatch(text, start, end)
    if not found:
        return None
    label = found["label"].lower()
    return Said(_SLOTS.get(label, label), text[:head].strip(), found.span("label"))


def spoken_choice(text: str) -> dict[str, Any] | None:
    """Read a reply in plain words into the shape that JSON replies have."""
    said = said_choice(text)
    return {"explanation": said.explanation, "preference": said.label} if said else None


def spoken_scores(text: str) -> dict[str, Any] | None:
    r"""Read two scores in plain words: one line `7 4`, or `Response 1: 7` for each.

    A score below zero, a broken one, or two that differ for one response are none.

    >>> spoken_scores("8 6\nThe first is fuller.")
    {'score_1': 8, 'score_2': 6, 'explanation': 'The first is fuller.'}
    >>> spoken_scores("Response 1: 8/10\nResponse 2: 6/10")["score_2"]
    6
    """
    if bare := _PAIR.search(text):
        first, second = _whole(bare["first"]), _whole(bare["second"])
        rest = text[bare.end() :]
    else:
        found: dict[str, int] = {}
        for line in text.splitlines():
            if named := _SCORE.match(line.strip(" *-")):
                score = _whole(named["score"])
                if found.setdefault(named["slot"], score) != score:
                    return None
        if found.keys() != {"1", "2"}:
            return None
        first, second, rest = found["1"], found["2"], text
    return {"score_1": first, "score_2": second, "explanation": rest.strip()}


def _whole(number: str) -> int:
    return int(re.split(r"[./\s]", number)[0])


def measure(message: AIMessage, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the probabilities of a reply's label, and of explanation and label together.

    Each is the length-normalised probability of its own tokens; what the model gave no
    log-probabilities for is left out.
    """
    tokens, text = reply_tokens(message), message.text
    spans = _spans(text, data)
    found = {
        "label": span_confidence(text, tokens, spans[-1:]),
        "joint": span_confidence(text, tokens, spans),
    }
    return {name: known.value for name, known in found.items() if known}


def _spans(text: str, data: Mapping[str, Any]) -> list[Span]:
    """Return where the explanation and, last, the label stand; empty if there is none."""
    written = json_spans(text, data)
    if ("preference",) in written:
        return [
            written[(part,)] for part in ("explanation", "preference") if (part,) in written
        ]
    said = said_choice(text)
    return [(0, len(said.explanation)), said.span] if said else []
