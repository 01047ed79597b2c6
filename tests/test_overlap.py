"""Overlap with references: known values, and the figures of SummEval."""

import pytest

from cookbook.study.overlap import OVERLAPS, overlap

SAME = "the cat sat on the mat"
MODELS = {"bertscore", "moverscore"}
"""The measures that ask a local model."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.real] * (name in MODELS)) for name in sorted(OVERLAPS)],
)
def test_the_same_text_scores_highest_and_another_least(name):
    candidates = [SAME, "the cat is on a mat", "quarterly profits fell sharply"]
    same, near, far = overlap(name, candidates, [[SAME]] * 3)
    assert same == pytest.approx(1.0, abs=0.01)
    assert same > near > far >= 0


def test_known_values():
    # 5 of 6 words each way; longest common subsequence of 5; 3 of 5 bigrams.
    pair = (["the cat sat on a mat"], [[SAME]])
    assert overlap("rouge1", *pair) == [pytest.approx(5 / 6)]
    assert overlap("rougeL", *pair) == [pytest.approx(5 / 6)]
    assert overlap("rouge2", *pair) == [pytest.approx(3 / 5)]
