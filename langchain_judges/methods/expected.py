"""Expected scores: the mean of a score's distribution, from the tokens offered for it.

The score that a model writes is the most probable one; the mean over all scores that it
might have written, sum of k p(k), says more: two texts that both get a 4 may be a 3.6 and a
4.3. Source: Liu et al. 2023 (G-Eval), section 2.2. The same probabilities say how sure it is
that one text scores higher than the other, if scores are drawn independently (ours).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product

from langchain_core.messages import AIMessage

from langchain_judges.asking.replies.confidence import Span, json_spans, placed_tokens
from langchain_judges.orders import prefer
from langchain_judges.verdict import Failure, Preference

ALTERNATIVES = 20
"""Tokens whose probability is asked for; a provider may allow fewer."""

Chances = dict[str, float]
"""The probability of each score; scores are texts, for JSON has no other keys."""


def score_chances(
    message: AIMessage, data: Mapping[str, object], scale: tuple[int, int]
) -> dict[str, list[Chances]]:
    """Return the probabilities of both scores of each criterion that a reply scores.

    Args:
        message: The reply, with the log-probabilities of its tokens.
        data: What was read from it.
        scale: The lowest and the highest score.

    Returns:
        `{"": [first, second]}` of one criterion, `{"criterion_1": …}` of several; a
        criterion is left out where the tokens do not say how probable other scores were. The
        probabilities of a score sum to 1.
    """
    spans = json_spans(message.text, data)
    parts = [name for name in data if name.startswith("criterion_")] or [""]
    chances: dict[str, list[Chances]] = {}
    for part in parts:
        paths = [(*([part] if part else []), f"score_{slot}") for slot in (1, 2)]
        scores = [_offered(message, spans[path], scale) for path in paths if path in spans]
        if len(scores) == 2 and all(scores):
            chances[part] = scores
    return chances


def no_expectation(step: str, unit: str) -> Failure:
    """Return the failure of a reply whose scores have no alternatives to average over."""
    return {
        "step": step,
        "unit": unit,
        "reason": "no_logprobs",
        "detail": "the provider reports no probabilities of other scores; the score counts "
        "as it was given",
    }


def expected(chances: Mapping[str, float]) -> float:
    """Return the mean score, sum of k p(k).

    >>> expected({"4": 0.5, "5": 0.5})
    4.5
    """
    return math.fsum(int(score) * chance for score, chance in chances.items())


def lead_chance(
    parts: Iterable[tuple[Mapping[str, float], Mapping[str, float], float]],
    preference: Preference,
) -> float:
    """Return how probable it is that the summed scores prefer what is preferred.

    Args:
        parts: Of each pair of scores: the chances of A's, those of B's, and its weight.
        preference: The text that is preferred, or a tie.

    >>> lead_chance([({"4": 0.5, "2": 0.5}, {"3": 1.0}, 1.0)], "A")
    0.5
    """
    leads = sum_chances(
        {weight * lead: chance for lead, chance in _leads(chances_a, chances_b).items()}
        for chances_a, chances_b, weight in parts
    )
    return math.fsum(
        chance for lead, chance in leads.items() if prefer({"A": lead, "B": 0.0}) == preference
    )


def sum_chances(
    parts: Iterable[Mapping[float, float]], least: float = 0.0
) -> dict[float, float]:
    """Return the probability of each sum of numbers that are drawn independently.

    Args:
        parts: Of each number, the probability of each of its values.
        least: Sums of the first numbers that are less probable are left out, so that numbers
            without common sums stay few.

    >>> sum_chances([{0: 0.5, 1: 0.5}, {0: 0.5, 1: 0.5}])
    {0.0: 0.25, 1.0: 0.5, 2.0: 0.25}
    """
    sums = {0.0: 1.0}
    for part in parts:
        longer: dict[float, float] = {}
        for (before, chance), (value, share) in product(sums.items(), part.items()):
            to = round(before + value, 6)
            longer[to] = longer.get(to, 0.0) + chance * share
        sums = {total: chance for total, chance in longer.items() if chance >= least}
    return sums


def _leads(chances_a: Mapping[str, float], chances_b: Mapping[str, float]) -> dict[int, float]:
    leads: dict[int, float] = {}
    for (a, chance_a), (b, chance_b) in product(chances_a.items(), chances_b.items()):
        lead = int(a) - int(b)
        leads[lead] = leads.get(lead, 0.0) + chance_a * chance_b
    return leads


def _offered(message: AIMessage, span: Span, scale: tuple[int, int]) -> Chances:
    """Return the probabilities of the scores that were offered for a number; empty: unknown."""
    written = message.text[slice(*span)]
    # The token must be the number, and nothing but that.
    offers = [
        placed.token.get("top_logprobs") or []
        for placed in placed_tokens(message)
        if placed.end == span[1] and placed.text.strip(' "') == written
    ]
    mass: dict[int, float] = {}
    for choice in offers[0] if offers else []:
        score, logprob = str(choice.get("token", "")).strip(' "'), choice.get("logprob")
        if score.isdecimal() and isinstance(logprob, int | float):
            number = int(score)
            if scale[0] <= number <= scale[1]:
                mass[number] = mass.get(number, 0.0) + math.exp(logprob)
    reported = int(written) if written.isdecimal() else None
    # A server that forces the format may report what the model would rather have said.
    if reported not in mass:
        return {}
    total = math.fsum(mass.values())
    return {str(number): part / total for number, part in mass.items()}
