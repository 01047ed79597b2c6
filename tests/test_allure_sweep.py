"""Figures and plots of ALLURE's sweep, on hand-made rows."""

from typing import Any

import pytest
from allure_sweep.ablation import ablated, error_change
from allure_sweep.ablation_plots import changes, roc_ablation
from allure_sweep.roc import roc


def row(label, score=None, source="logprobs"):
    return {"verdict": {"label": label, "score": score, "confidence_source": source}}


TRUTH = [1, 1, 0, 0]
ROWS = [row(1, 0.9), row(0, 0.4), row(1, 0.6), row(0, 0.1)]


def test_a_curve_has_a_point_for_each_probability():
    # From the highest threshold: .9 is a 1, .6 a 0, .4 a 1, .1 a 0. Three of the four pairs of
    # a 1 and a 0 are in order.
    curve = roc([ROWS], TRUTH)
    assert curve["points"] == [[0, 0], [0, 0.5], [0.5, 0.5], [0.5, 1], [1, 1]]
    assert (curve["source"], curve["area"]) == ("probabilities", 0.75)


def test_one_run_without_probabilities_leaves_the_labels_alone():
    hard = [row(1, 1.0, "none"), row(1, 1.0, "none"), row(1, 1.0, "none"), row(0, 0.0, "none")]
    # Two draws pooled: of four 1s three were hit, of four 0s two gave an alarm.
    curve = roc([ROWS, hard], TRUTH)
    assert curve["points"] == [[0, 0], [0.5, 0.75], [1, 1]]
    assert (curve["source"], curve["area"]) == ("labels", 0.625)


def test_there_is_no_curve_of_one_label():
    assert roc([[row(1, 0.9), row(None), row(0, 0.1)]], [1, 0, 1])["area"] is None


def test_changed_labels_and_errors_are_counted_by_direction():
    truth = [1, 1, 0, 0, 1, 0]
    whole = [1, 1, 0, 0, 1, None]
    labels = [1, 0, 1, 1, None, 1]
    counts = ablated(labels, whole, truth)
    # Wrong are the second (a miss) and the third, fourth and last (alarms).
    assert (counts["errors"], counts["false_positives"], counts["false_negatives"]) == (4, 3, 1)
    # The fifth was judged with all examples alone, the last without the mode alone.
    assert counts["labels_changed"] == 5
    assert (counts["changed_to_1"], counts["changed_to_0"]) == (2, 1)


@pytest.fixture
def results():
    arms = [
        {"run": "all", "left_out": None},
        {"run": "without-keywords", "left_out": "keywords"},
    ]
    counts = [(0, 0, 1, 2), (3, 4, 5, 6)]
    names = ("changed_to_1", "changed_to_0", "false_positives", "false_negatives")
    curve = {"name": "all", "runs": ["all"], **roc([ROWS], TRUTH)}
    return {
        "items": {"held_out": 20},
        "ablation": [
            arm | dict(zip(names, row, strict=True))
            for arm, row in zip(arms, counts, strict=True)
        ],
        "roc": {"sizes": [], "ablation": [curve]},
    }


def test_bars_show_changes_on_the_left_and_errors_by_kind_on_the_right(results):
    axes: Any = changes(results).axes
    left, right = axes
    assert [bar.get_width() for bar in left.patches] == [0, 3, 0, 4]
    assert [bar.get_width() for bar in right.patches] == [1, 5, 2, 6]
    assert [bar.get_x() for bar in right.patches] == [0, 0, 1, 5]


def test_a_drawn_curve_is_that_of_the_rows(results):
    (axes,) = roc_ablation(results).axes
    line: Any = axes.lines[1]
    assert list(line.get_xdata()) == [0, 0, 0.5, 0.5, 1]
    assert line.get_label() == "all (0.750)"


def test_errors_without_a_mode_are_said_as_a_change_in_percent():
    # The paper's 504 answers: 19 errors with all examples, 62 and 23 without a mode.
    for errors, percent in ((62, 226.3), (23, 21.1)):
        labels = [0] * errors + [1] * (504 - errors)
        assert error_change(labels, [1] * 504, full=19) == pytest.approx(percent, abs=0.05)
    assert error_change([0], [1], full=0) is None
