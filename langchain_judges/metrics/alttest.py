"""May a judge stand in for an annotator? The alternative annotator test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy

from langchain_judges.metrics.arguments import Floats, Judgment, Judgments
from langchain_judges.metrics.inputs import one_of, same_length, values_of
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Label

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Annotator(Findings):
    """How the judge does in one annotator's stead."""

    advantage: Result
    """Share of items on which the judge is at least as close to the others, ρ_j."""
    rival: float
    """The same share of the annotator."""
    p: float
    """One-sided p of the t-test that the judge falls short by ε or more."""
    rejected: bool
    """Whether that is rejected, after Benjamini & Yekutieli."""


@dataclass(frozen=True)
class AltTest(Findings):
    """May the judge stand in for an annotator?"""

    winning_rate: Result
    """ω: the share of annotators that the judge may replace."""
    advantage: Result
    """ρ: the mean probability that the judge is at least as good as an annotator."""
    passed: bool | None
    """ω ≥ 0.5; None if no annotator has enough items."""
    annotators: Mapping[Hashable, Annotator]
    n: int
    """Annotators that were tested."""
    n_failed: dict[str, int]


def alt_test(
    judge: Judgments,
    annotations: Mapping[Name, Sequence[Judgment]],
    epsilon: float = 0.2,
    *,
    score: str = "accuracy",
    level: float = 0.05,
    least_items: int = 30,
) -> AltTest:
    """Test whether the judge agrees with annotators as well as any of them does.

    Each annotator is left out in turn; on every item the judge and the annotator are scored
    against the rest.

    Args:
        judge: The judge's answer to each item, or verdicts or rows; None is left out.
        annotations: By annotator one answer for each item; None where there is none.
        epsilon: How much worse the judge may be, because it costs less: 0.2 against experts,
            0.15 against trained annotators, 0.1 against the crowd.
        score: `accuracy`: the share of the others that say the same; `rmse`: minus the root
            mean squared distance from the others, for numbers.
        level: q of Benjamini & Yekutieli over the annotators.
        least_items: Annotators with fewer items in common with others are not tested.

    Source: Calderon, Reichart & Dror 2025 (arXiv 2501.10970).
    """
    one_of("score", score, ("accuracy", "rmse"))
    answers, failed = values_of(judge)
    rows = {name: values_of(row)[0] for name, row in annotations.items()}
    same_length(judge=answers, **{str(name): row for name, row in rows.items()})
    contests = {name: _contests(name, answers, rows, score) for name in rows}
    least = max(2, least_items)
    tested = {name: pairs for name, pairs in contests.items() if len(pairs) >= least}
    failed["annotator_with_few_items"] = len(rows) - len(tested)
    failures = dict(+failed)
    if not tested:
        nobody = Result.undefined("no annotator has enough items", n_failed=failures)
        return AltTest(nobody, nobody, None, {}, 0, failures)
    p_values = [_shortfall_p(pairs[:, 0] - pairs[:, 1], epsilon) for pairs in tested.values()]
    adjusted = scipy.stats.false_discovery_control(p_values, method="by")
    rejected = (adjusted <= level).tolist()
    advantages: dict[Hashable, Annotator] = {
        name: Annotator(Result(float(own), n=len(pairs)), float(theirs), p, hit)
        for (name, pairs), p, hit in zip(tested.items(), p_values, rejected, strict=True)
        for own, theirs in [pairs.mean(axis=0)]
    }
    omega = sum(rejected) / len(rejected)
    rho = float(np.mean([float(a.advantage) for a in advantages.values()]))
    n = len(tested)
    wins, lead = (Result(each, n=n, n_failed=failures) for each in (omega, rho))
    return AltTest(wins, lead, omega >= 0.5, advantages, n, failures)


def _contests(
    name: Name,
    answers: Sequence[Label | None],
    rows: Mapping[Name, Sequence[Label | None]],
    score: str,
) -> Floats:
    """Return W^f and W^h (columns) of the items that judge, annotator and another answered."""
    pairs = []
    for index, (answer, own) in enumerate(zip(answers, rows[name], strict=True)):
        answers_of_all = ((who, row[index]) for who, row in rows.items())
        others = [each for who, each in answers_of_all if who != name and each is not None]
        if answer is None or own is None or not others:
            continue
        ours, theirs = (_closeness(each, others, score) for each in (answer, own))
        pairs.append((float(ours >= theirs), float(theirs >= ours)))
    return np.asarray(pairs)


def _closeness(answer: Label, others: Sequence[Label], score: str) -> float:
    if score == "accuracy":
        return sum(answer == other for other in others) / len(others)
    squares = [(float(answer) - float(other)) ** 2 for other in others]
    return -math.sqrt(sum(squares) / len(squares))


def _shortfall_p(lead: Floats, epsilon: float) -> float:
    """Return the one-sided p of mean(W^h − W^f) ≥ ε, by Student's t."""
    if np.ptp(lead) == 0:
        return 0.0 if -lead[0] < epsilon else 1.0
    return float(scipy.stats.ttest_1samp(-lead, epsilon, alternative="less").pvalue)
