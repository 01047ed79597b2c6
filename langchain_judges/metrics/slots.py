"""A judge's position bias, removed from its probabilities without labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.metrics.arguments import Floats
from langchain_judges.metrics.cases import complete
from langchain_judges.metrics.inputs import as_list, same_length
from langchain_judges.metrics.intervals import rate
from langchain_judges.metrics.result import Findings, Result

_LEAST = 1e-6
"""Probabilities are kept this far from 0 and 1."""


@dataclass(frozen=True)
class SlotCalibration(Findings):
    """Probabilities of A without the position bias."""

    probabilities: list[float | None]
    """P(A) of each pair, the mean of both orders; None where an order is missing."""
    preferences: list[str | None]
    """`A`, `B` or `tie` by it."""
    flips_before: Result
    """The share of the pairs whose orders name different texts, as the judge said."""
    flips_after: Result
    """The same share by the calibrated probabilities."""
    raw: list[float]
    """Probabilities of the first place, as they were said, in ascending order."""
    calibrated: list[float]
    """What each of them is worth."""

    def of(self, probability: float) -> float:
        """Return what a probability of the first place is worth; between those seen, a line."""
        return float(np.interp(probability, self.raw, self.calibrated))


def calibrated_slots(
    first_ab: Iterable[float | None], first_ba: Iterable[float | None]
) -> SlotCalibration:
    """Remove a judge's position bias from its probabilities, without labels.

    If places did not matter, the probability of the first place would be spread evenly around
    one half over all pairs in both orders, for what one order gives to the first place the
    other gives to the second. So each probability is moved to the middle between its own
    log-odds and the negative log-odds of its mirror: of that probability which as many lie
    above as below it. The order of the probabilities stays, and a judge that does not lean is
    left as it is.

    Args:
        first_ab: The probability of the text that stands first, where that is A; None: missing.
        first_ba: The same where B stands first.

    Raises:
        InputError: A probability is not one, or no pair has both orders.

    Source: the aim of CalibraEval (Li et al. 2024, arXiv 2410.15393), a monotone function of
    the probabilities under which swapped orders agree; the closed form by quantiles is ours.
    """
    one, other = as_list(first_ab), as_list(first_ba)
    same_length(first_ab=one, first_ba=other)
    cases = complete(one, other)
    if not cases.n:
        raise InputError("no pair has the probabilities of both orders")
    pooled = np.stack(cases.floats(), axis=1)
    if pooled.min() < 0 or pooled.max() > 1:
        raise InputError("probabilities lie between 0 and 1")
    raw, calibrated = _curve(pooled.ravel())
    ab, ba = (np.interp(pooled[:, order], raw, calibrated) for order in (0, 1))
    means: list[float | None] = [None] * len(one)
    for place, value in zip(cases.indices, (ab + 1 - ba) / 2, strict=True):
        means[place] = float(value)
    return SlotCalibration(
        probabilities=means,
        preferences=[None if mean is None else _side(mean) for mean in means],
        flips_before=_flips(pooled[:, 0], pooled[:, 1]),
        flips_after=_flips(ab, ba),
        raw=raw.tolist(),
        calibrated=calibrated.tolist(),
    )


def _curve(pooled: Floats) -> tuple[Floats, Floats]:
    """Return each probability that was said, and what it is worth."""
    ordered = np.sort(np.clip(pooled, _LEAST, 1 - _LEAST))
    odds = np.log(ordered / (1 - ordered))
    middle = (odds - odds[::-1]) / 2
    raw, groups = np.unique(ordered, return_inverse=True)
    worth = np.bincount(groups, weights=middle) / np.bincount(groups)
    return raw, 1 / (1 + np.exp(-worth))


def _flips(first_ab: Floats, first_ba: Floats) -> Result:
    a_first, b_first = np.round(first_ab - 0.5, 9), np.round(first_ba - 0.5, 9)
    return rate([float(flip) for flip in np.sign(a_first) != -np.sign(b_first)])


def _side(probability: float) -> str:
    lead = round(probability - 0.5, 9)
    return "A" if lead > 0 else "B" if lead < 0 else "tie"


def slot_probabilities(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[list[float | None], list[float | None]]:
    """Return the probability of the first place in each order of rows that a run stored.

    Args:
        rows: Rows of a judge that asks for a label with log-probabilities (`ballots`, or
            `choices` of SC²), one reply in each order; what has none is None.
    """
    both: tuple[list[float | None], list[float | None]] = ([], [])
    for row in rows:
        replies = row.get("ballots") or row.get("choices") or ()
        chances = {each["order"]: _first_place(each) for each in replies}
        for column, order in zip(both, ("AB", "BA"), strict=True):
            column.append(chances.get(order))
    return both


def _first_place(reply: Mapping[str, Any]) -> float | None:
    chance, side = reply.get("probability"), reply.get("preference")
    if chance is None or side not in ("A", "B"):
        return None
    return float(chance) if side == reply["order"][0] else 1 - float(chance)
