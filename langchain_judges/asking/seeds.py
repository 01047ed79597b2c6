"""The seeds of sampled calls."""

from __future__ import annotations

_SPREAD = 1000
"""Distance of the seeds of two judges, so that their samples are not the same ones."""


def sample_seed(seed: int, number: int) -> int:
    """Return the seed of one sample of a judge; of each sample, and each judge, another."""
    return _SPREAD * seed + number
