"""From preference calls to a verdict, and what people read about how it came."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.parse import FORCED, label_weight
from langchain_judges.methods.sc2.replies import Comparisons, ComparisonTable, PreferenceReply
from langchain_judges.orders import Order, combine, disagree, prefer
from langchain_judges.verdict import (
    PREFERENCE_WORDS,
    ConfidenceSource,
    Failure,
    Preference,
    Usage,
    Verdict,
    not_judged,
)


def decide(
    options: SC2,
    choices: Sequence[PreferenceReply],
    failures: Sequence[Failure],
    usage: Usage,
    how: str,
    coin: Preference,
) -> Verdict:
    """Combine the preference calls of all orders into the verdict.

    Args:
        options: Which orders were asked, and how often.
        choices: What the calls said.
        failures: Everything that went wrong on the way.
        usage: What it cost.
        how: How the table was found, for the rationale.
        coin: The side that samples count for which are split evenly.
    """
    # Probabilities and plain points are never averaged together.
    probable = all(choice["probability"] is not None for choice in choices)
    chances: dict[Order, float] = {}
    for order in options.order_list:
        own_choices = [choice for choice in choices if choice["order"] == order]
        if len(own_choices) <= options.preference_samples // 2:
            return not_judged(failures, usage, _no_preference(failures, how))
        chances[order] = fmean(chance_of_a(choice, probable) for choice in own_choices)
    preferences = [_side(chance, coin) for chance in chances.values()]
    score = fmean(chances.values())
    if options.order_rule == "score_mean":
        preference = prefer({"A": round(score, 9), "B": round(1 - score, 9)})
    else:
        preference = combine(options.order_rule, preferences)
    if preference == "tie":
        score = 0.5
    elif round(score, 9) == 0.5:
        score = FORCED if preference == "A" else 1 - FORCED
    confidence, source = _confidence(choices, preference, probable)
    return {
        "preference": preference,
        "score": score,
        "scores": {"A": score, "B": 1 - score},
        "confidence": confidence,
        "confidence_source": source,
        "flipped": disagree(preferences),
        "rationale": _rationale(preference, preferences, choices, how),
        "failures": list(failures),
        "usage": usage,
    }


def chance_of_a(choice: PreferenceReply, probable: bool) -> float:
    """Return the probability that A is preferred: the label's, or else 1 and 0."""
    chance = label_weight(choice["probability"] if probable else None)
    return chance if choice["preference"] == "A" else 1 - chance


def _side(chance: float, coin: Preference) -> Preference:
    if round(chance, 9) == 0.5:
        return coin
    return "A" if chance > 0.5 else "B"


def _confidence(
    choices: Sequence[PreferenceReply], preference: Preference, probable: bool
) -> tuple[float | None, ConfidenceSource]:
    """Return how sure the judge is of what it prefers; of a tie nobody was asked."""
    agreeing = [choice for choice in choices if choice["preference"] == preference]
    if not agreeing:
        return None, "none"
    probabilities = [c["probability"] for c in agreeing if c["probability"] is not None]
    if probable and probabilities:
        return fmean(probabilities), "logprobs"
    if not probable and len(choices) > 2:
        return len(agreeing) / len(choices), "samples"
    return None, "none"


def _no_preference(failures: Sequence[Failure], how: str) -> str:
    reasons = [f["reason"] for f in failures if f["step"] == "preference"]
    why = ", ".join(dict.fromkeys(reasons)) or "no preference"
    return f"Not judged: {why}. {how}".strip()


def _rationale(
    preference: Preference,
    preferences: Sequence[Preference],
    choices: Sequence[PreferenceReply],
    how: str,
) -> str:
    parts = [f"{PREFERENCE_WORDS[preference]}."]
    if len(set(preferences)) > 1:
        parts.append(f"The orders disagree: {preferences[0]} (A first), {preferences[1]}.")
    parts.append(how)
    choice = next((c for c in choices if c["preference"] == preference), choices[0])
    words = " ".join(choice["comparison"].split())
    parts.append(words if len(words) <= 300 else words[:299] + "…")
    return " ".join(part for part in parts if part)


def search_sentence(
    table: ComparisonTable | None, sampled: int, comparisons: Comparisons | None
) -> str:
    """Say in a sentence which table decided and what it took to find it."""
    if table is None or comparisons is None:
        return "There is no table: the texts were compared directly."
    calls, saved = comparisons["spent"], comparisons["saved"]
    name = f"Table {table['number']} of {sampled}" if table["number"] else "The best rows"
    if comparisons["mode"] == "random":
        return f"{name}, drawn at random."
    if not comparisons["rounds"]:
        return f"{name}."
    parts = [f"{calls} comparison{'s' * (calls != 1)}"]
    if saved:
        parts.append(f"{saved} saved by the table check")
    if left := comparisons["not_asked"]:
        parts.append(f"{left} not asked, for they could not change which table wins")
    if circles := comparisons["cyclic_triples"]:
        parts.append(f"{circles} circle{'s' * (circles != 1)}")
    return f"{name} won: {', '.join(parts)}."
