"""How many labels, which rows, what is likely true, and where a judge contradicts itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    dawid_skene,
    label_next,
    labels_needed,
    stratified_ppi_mean,
    style_controlled_strengths,
    transitivity,
)
from tests.cases import for_each


def test_smaller_leads_take_more_labels() -> None:
    few, many = labels_needed(0.1, 0.2), labels_needed(0.05, 0.2)
    # Connor 1987: (1.96 √d + .84 √(d − lead²))² / lead², with d = .2: 155 and 625.
    assert few == pytest.approx(155, rel=0.15)
    assert many == pytest.approx(625, rel=0.1)
    with pytest.raises(OptionError, match="at most `disagreement`"):
        labels_needed(0.3, 0.2)


def test_labels_go_where_the_judge_errs() -> None:
    # Ten labels in each half: right in the first, wrong every other time in the second.
    strata = ["easy"] * 100 + ["hard"] * 100
    labels = [1] * 10 + [None] * 90 + [1, 0] * 5 + [None] * 90
    selection = label_next([1] * 200, labels, strata, 40)
    assert len(selection) == len(set(selection)) == 40
    assert sum(place >= 100 for place in selection) > 30
    assert all(labels[place] is None for place in selection)
    assert label_next([1] * 200, labels, strata, 40) == selection
    with pytest.raises(InputError, match="every row is labelled"):
        label_next([1, 1], [1, 0], ["a", "a"], 1)
    assert label_next([1, 1, 1], [None] * 3, ["a", "b", "b"], 9) == [0, 1, 2]


@pytest.mark.figures
def test_the_estimate_stays_right_when_labels_are_chosen_so() -> None:
    rng, covered = np.random.default_rng(1), 0
    for trial in range(100):
        hard = rng.random(1000) < 0.4
        truth = (rng.random(1000) < np.where(hard, 0.3, 0.7)).astype(float)
        judged = np.where(rng.random(1000) < np.where(hard, 0.6, 0.95), truth, 1 - truth)
        labels: list = [None] * 1000
        for _ in range(2):
            for place in label_next(judged, labels, hard.tolist(), 60, seed=trial):
                labels[place] = truth[place]
        indices = [i for i, label in enumerate(labels) if label is not None]
        result = stratified_ppi_mean(
            truth[indices], judged[indices], hard[indices].tolist(), judged, hard.tolist()
        )
        covered += result.interval.covers(0.4 * 0.3 + 0.6 * 0.7)
    assert covered >= 88


def test_dawid_and_skene_find_the_truth_behind_a_bad_majority() -> None:
    # One rater of five is nearly always right, the others hardly better than chance.
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 3000)
    skills = [0.97, 0.6, 0.6, 0.6, 0.75]
    ratings = [np.where(rng.random(3000) < s, truth, 1 - truth).tolist() for s in skills]
    result = dawid_skene(ratings)
    majority = (np.mean(ratings, axis=0) > 0.5).astype(int)
    assert result.converged
    assert np.mean(np.asarray(result.labels) == truth) > np.mean(majority == truth) + 0.05
    assert result.accuracy[0] == pytest.approx(0.97, abs=0.04)
    assert result.accuracy[1] == pytest.approx(0.6, abs=0.04)


# 27 patterns of three raters' answers of three kinds, whatever the number of items.
def test_dawid_and_skene_give_items_with_the_same_ratings_the_same_chances() -> None:
    rng = np.random.default_rng(3)
    ratings = rng.choice(list("xyz"), size=(3, 5000)).tolist()
    result = dawid_skene(ratings)
    by_pattern: dict[tuple[str, ...], set[tuple[float, ...]]] = {}
    for pattern, chances in zip(zip(*ratings, strict=True), result.chances, strict=True):
        by_pattern.setdefault(pattern, set()).add(tuple(chances or ()))
    assert len(by_pattern) == 27
    assert all(len(chances) == 1 for chances in by_pattern.values())
    assert sum(result.shares) == pytest.approx(1.0)


def test_dawid_and_skene_leave_unrated_items_open() -> None:
    result = dawid_skene([["x", None, "y"], ["x", None, "y"], ["x", None, None]])
    assert result.labels == ["x", None, "y"]
    assert result.chances[1] is None
    assert sum(result.chances[0]) == pytest.approx(1.0)
    assert result.n == 2
    assert math.isnan(dawid_skene([["x"], [None]]).accuracy[1])
    assert dawid_skene([[None]]).labels == [None]


TRIPLE = [("x", "y"), ("y", "z"), ("z", "x")]


@for_each(
    ("verdicts", "ordered"),
    [
        ("A A A", 0.0),  # x > y > z > x
        ("A A B", 1.0),  # x > y > z and x > z
        ("tie tie tie", 1.0),
        ("tie tie B", 0.0),  # x = y = z, but x > z
        ("A tie B", 1.0),  # x > y = z and x > z
        ("A tie tie", 0.0),  # x > y = z = x
    ],
)
def test_verdicts_that_go_round_fit_no_order(verdicts, ordered) -> None:
    result = transitivity(verdicts.split(), TRIPLE, ["q"] * 3)
    assert (result, result.n) == (ordered, 1)


def test_only_texts_on_the_same_question_are_put_in_order() -> None:
    verdicts = ["A", "A", "A", None]
    assert transitivity(verdicts, [*TRIPLE, ("x", "y")], [1, 1, 2, 2]).reason is not None
    two = transitivity(["A", "A", "A", "A", "A", "B"], TRIPLE * 2, [1, 1, 1, 2, 2, 2])
    assert (two, two.n) == (0.5, 2)


def played_with_style(rng, games: int) -> tuple[list, list, list, list]:
    """Return verdicts, systems and texts: x is stronger, z only writes longer texts."""
    strengths = {"x": 0.8, "y": -0.4, "z": -0.4}
    pairs = [
        tuple(rng.choice(list(strengths), 2, replace=False).tolist()) for _ in range(games)
    ]
    texts = [
        ["w" * int(rng.integers(20, 60) * (3 if s == "z" else 1)) for s in pair]
        for pair in pairs
    ]
    leads = [(len(a) - len(b)) / (len(a) + len(b)) for a, b in texts]
    odds = [
        strengths[a] - strengths[b] + 2 * lead
        for (a, b), lead in zip(pairs, leads, strict=True)
    ]
    answers = np.where(
        rng.random(games) < 1 / (1 + np.exp(-np.asarray(odds))), "A", "B"
    ).tolist()
    return answers, pairs, [a for a, _ in texts], [b for _, b in texts]


def test_strength_is_told_from_length() -> None:
    answers, pairs, a, b = played_with_style(np.random.default_rng(3), 3000)
    results = style_controlled_strengths(
        answers, pairs, a, b, groups=[i // 3 for i in range(3000)]
    )
    assert next(iter(results.strengths)) == "x"
    for name, strength in {"x": 0.8, "y": -0.4, "z": -0.4}.items():
        assert results.strengths[name].interval.covers(strength)
    assert sum(results.strengths.values()) == pytest.approx(0.0, abs=1e-6)
    assert results.style["characters"].interval.low > 0.3
    assert results.first.interval.covers(0.0)


def test_pairs_of_unknown_systems_have_no_strength() -> None:
    answers, pairs, a, b = played_with_style(np.random.default_rng(4), 200)
    pairs[0] = (None, "x")
    results = style_controlled_strengths(answers, pairs, a, b)
    assert (results.n, results.n_failed) == (199, {"no_feature": 1})
    with pytest.raises(InputError, match="two systems"):
        style_controlled_strengths(["A"], [("x", "x")], ["t"], ["u"])
