"""The simulated judges behind the picture of which method pays: they err as they are told."""

import pytest

from benchmarks.when_it_pays import theory


def test_theory_counts_majorities():
    # Of five looks at 0.7 at least three are right: 0.83692; both orders: 0.70043.
    assert theory(0.7)["bsm"] == pytest.approx(0.70043, abs=1e-5)
    assert theory(0.7)["cascade"] == pytest.approx(0.49 + 0.42 * 0.70043, abs=1e-5)
