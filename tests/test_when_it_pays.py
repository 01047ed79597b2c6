"""The simulated judges behind the picture of which method pays: they err as they are told."""

import pytest

from benchmarks.when_it_pays import OPTIONS, World, measure, theory


def test_a_judge_that_never_errs_is_right_by_every_method_at_its_own_cost():
    measures = measure(1.0, World(), 2)
    assert {name: share for name, (share, _) in measures.items()} == dict.fromkeys(OPTIONS, 1.0)
    assert theory(1.0) == dict.fromkeys(OPTIONS, 1.0)
    # The first judge of the cascade is sure.
    calls = {"cot": 1, "relative": 2, "cot_sc": 9, "drpe": 7, "bsm": 10, "cascade": 2}
    assert {name: calls for name, (_, calls) in measures.items()} == calls


def test_a_judge_that_follows_the_place_alone_is_right_by_chance_or_ties():
    measures = measure(1.0, World(bias=1.0), 2)
    shares = {name: share for name, (share, _) in measures.items()}
    # One order: A stands first, and is better in every second pair. Both orders: a tie.
    assert shares == {**dict.fromkeys(("cot", "cot_sc", "drpe"), 0.5), "relative": 0.0} | {
        "bsm": 0.0,
        "cascade": 0.0,
    }


def test_theory_counts_majorities():
    # Of five looks at 0.7 at least three are right: 0.83692; both orders: 0.70043.
    assert theory(0.7)["bsm"] == pytest.approx(0.70043, abs=1e-5)
    assert theory(0.7)["cascade"] == pytest.approx(0.49 + 0.42 * 0.70043, abs=1e-5)
