"""The simulated judge behind the table of `batch_criteria`: its halo is the one it is given."""

import json

from tests.benchmarks.batch_criteria import Simulated, judged, same


def scores(halo, criteria):
    prompt = f"task 1 alpha omega {criteria}"
    data = json.loads(Simulated(halo, 0)(prompt))
    parts = [data] if "score_1" in data else data.values()
    return [(part["score_1"], part["score_2"]) for part in parts]


def test_without_a_halo_a_criterion_scores_the_same_alone_and_beside_others():
    together = scores(0.0, "Point 1 Point 2 Point 3")
    assert together == [scores(0.0, f"Point {n}")[0] for n in (1, 2, 3)]
    assert len(set(together)) > 1


def test_a_whole_halo_gives_every_criterion_the_scores_of_the_first():
    assert len(set(scores(1.0, "Point 1 Point 2 Point 3"))) == 1


def test_five_criteria_take_six_calls_in_twos_and_the_same_verdict_without_a_halo():
    alone, twos = judged(2, 1, 0.0), judged(2, 2, 0.0)
    assert (alone.calls, twos.calls, same(alone, twos)) == (10, 6, 1.0)
    assert twos.tokens < alone.tokens
