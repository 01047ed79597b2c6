"""Expected scores: the mean of a score's distribution, from the tokens offered for it.

The score that a model writes is the most probable one; the mean over all scores that it
might have written, sum of k p(k), says more: two texts that both get a 4 may be a 3.6 and a
4.3. Source: Liu et al. 2023 (G-Eval), section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from langchain_core.messages import AIMessage

from langchain_judges.asking.confidence import json_spans, reply_tokens

ALTERNATIVES = 20
"""Tokens whose probability is asked for; a provider may allow fewer."""


def expected_scores(
    message: AIMessage, data: Mapping[str, Any], scale: tuple[int, int]
) -> dict[str, list[float]]:
    """Return both expected scores of each criterion that a reply scores.

    Args:
        message: The reply, with the log-probabilities of its tokens.
        data: What was read from it.
        scale: The lowest and the highest score.

    Returns:
        `{"": [first, second]}` of one criterion, `{"criterion_1": …}` of several; a
        criterion is left out where the tokens do not say how probable other scores were.
    """
    spans = json_spans(message.text, data)
    parts = [name for name in data if name.startswith("criterion_")] or [""]
    scores: dict[str, list[float]] = {}
    for part in parts:
        paths = [(*([part] if part else []), f"score_{slot}") for slot in (1, 2)]
        means = [
            _mean(reply_tokens(message), message.text, spans[path], scale)
            for path in paths
            if path in spans
        ]
        defined = [mean for mean in means if mean is not None]
        if len(defined) == 2:
            scores[part] = defined
    return scores


def _mean(
    tokens: Sequence[Any], text: str, span: tuple[int, int], scale: tuple[int, int]
) -> float | None:
    """Return the sum of k p(k) over the scores that were offered for a number of a reply."""
    token = _token_of(tokens, text, span)
    mass: dict[int, float] = {}
    for choice in (token or {}).get("top_logprobs") or []:
        score, logprob = str(choice.get("token", "")).strip(' "'), choice.get("logprob")
        if score.isdecimal() and isinstance(logprob, int | float):
            number = int(score)
            if scale[0] <= number <= scale[1]:
                mass[number] = mass.get(number, 0.0) + math.exp(logprob)
    reported = int(text[slice(*span)]) if text[slice(*span)].isdecimal() else None
    # A server that forces the format may report what the model would rather have said.
    if reported not in mass:
        return None
    total = math.fsum(mass.values())
    return math.fsum(number * part for number, part in mass.items()) / total


def _token_of(
    tokens: Sequence[Any], text: str, span: tuple[int, int]
) -> Mapping[str, Any] | None:
    """Return the token that is the number at `span`, and nothing but that; None if none is."""
    pieces = [token.get("token") if isinstance(token, Mapping) else None for token in tokens]
    if not pieces or not all(isinstance(piece, str) for piece in pieces):
        return None
    offset = "".join(map(str, pieces)).find(text)
    if offset < 0:
        return None
    ends = list(accumulate(len(str(piece)) for piece in pieces))
    for token, piece, end in zip(tokens, pieces, ends, strict=True):
        if end == offset + span[1] and str(piece).strip(' "') == text[slice(*span)]:
            return dict(token)
    return None
