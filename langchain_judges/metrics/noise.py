"""A slope beyond quality where quality is known by labels that are sometimes wrong.

A text that is longer than its rival is often better too. Where a label is wrong, its length
still tells which is better, so that a judge without any bias who sees more than the label says
seems to follow length. Here the better text is not the label's but unknown, and the label is
right with a given chance, whatever the length.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from langchain_judges.metrics.arguments import Floats, Ints
from langchain_judges.metrics.intervals import student_quantile
from langchain_judges.metrics.result import Interval

STEP = 1e-4


def _log_likelihood(
    beta: Floats, points: Floats, lead: Floats, label: Floats, a: float
) -> Floats:
    """Return the log-likelihood of each item; β is (θ, φ, γ), and (α0, α1) of quality."""
    theta, phi, gamma, base, slope = beta
    parts = []
    for better in (1.0, -1.0):
        odds = theta + phi * lead + gamma * better
        quality = -np.logaddexp(0.0, -better * (base + slope * lead))
        answer = -points * np.logaddexp(0.0, -odds) - (1 - points) * np.logaddexp(0.0, odds)
        right = np.where(label == 0, 0.5, np.where(label == better, a, 1 - a))
        parts.append(quality + answer + np.log(np.maximum(right, 1e-12)))
    return np.asarray(np.logaddexp(*parts))


def noisy_slope_interval(
    points: Floats,
    lead: Floats,
    label: Floats,
    label_accuracy: float,
    *,
    groups: Ints,
    confidence: float,
) -> Interval | None:
    """Return the interval of φ in logit P(A) = θ + φ · lead + γ · quality.

    Args:
        points: How far the judge prefers A, in [0, 1].
        lead: The feature's lead of A.
        label: What people say: +1 for A, −1 for B, 0 for a tie, which says nothing.
        label_accuracy: How often a label names the better text, above ½.
        groups: The number of each item's group.
        confidence: The level of the interval, robust to groups.

    Returns:
        The interval, None where the likelihood has no clear maximum.

    Source: misclassified covariates by maximum likelihood as in Carroll et al. 2006,
    Measurement Error in Nonlinear Models, chapter 15.
    """
    items = (points, lead, label, label_accuracy)
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    fit = scipy.optimize.minimize(
        lambda beta: -_log_likelihood(beta, *items).mean() + 1e-6 * beta @ beta, start
    )
    beta = np.asarray(fit.x)
    if not np.isfinite(beta).all() or np.abs(beta[:2]).max() > 20:
        return None
    steps = STEP * np.eye(len(beta))

    def scores(at: Floats) -> Floats:
        pairs = (
            (_log_likelihood(at + s, *items), _log_likelihood(at - s, *items)) for s in steps
        )
        return np.stack([(up - down) / (2 * STEP) for up, down in pairs], axis=1)

    bend = np.stack(
        [(scores(beta + s).sum(0) - scores(beta - s).sum(0)) / (2 * STEP) for s in steps]
    )
    # A quality that the judge follows without fail has no curvature left; φ still has.
    inverse = np.linalg.pinv(-(bend + bend.T) / 2 + 1e-6 * np.eye(len(beta)))
    units = int(groups.max()) + 1
    summed = np.zeros((units, len(beta)))
    np.add.at(summed, groups, scores(beta))
    variance = float((inverse @ (summed.T @ summed) @ inverse)[1, 1]) * units / (units - 1)
    if not variance > 0:
        return None
    half = math.sqrt(variance) * student_quantile(confidence, units - 1)
    return Interval.around(float(beta[1]), half)
