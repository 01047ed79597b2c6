"""Each statistic with all its numbers, on judgments of every kind.

Where a number changes on purpose: `pytest tests/test_metrics_whole.py --snapshot-update`, then
read the difference: reports of the same rows will say something else than before.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from langchain_judges import metrics
from langchain_judges.errors import InputError
from langchain_judges.metrics.result import Findings
from tests.cases import for_each

DRAW = random.Random(7)
N = 80
GROUPS = [int((3 * place) ** 0.5) if place % 17 else None for place in range(N)]
WINNERS = [DRAW.choice(["A", "B", "B", "tie"]) for _ in range(N)]
FIRST, SECOND = (
    [DRAW.choice([label, label, label, "A", None]) for label in WINNERS] for _ in range(2)
)
VOTES = [
    [DRAW.choice([label, label, "A", "tie"]) for _ in range(place % 4)]
    for place, label in enumerate(WINNERS)
]
HITS = [DRAW.choice([1, 1, 0, 0.5, None]) for _ in range(N)]
RATINGS = [DRAW.choice([1, 2, 3, 3, 4, 5]) for _ in range(N)]
SCORES = [DRAW.choice([None, rating + DRAW.gauss(0, 1), rating]) for rating in RATINGS]
TRUTH = [int(rating > 2) for rating in RATINGS]
LABELS = [DRAW.choice([label, label, label, 1, 0, None]) for label in TRUTH]
CHANCES = [DRAW.choice([0.95, 0.9, 0.6, None]) for _ in range(N)]
LENGTHS = [[DRAW.randint(1, 4) for _ in range(N)] for _ in range(2)]
SYSTEMS = [DRAW.sample("xyz", 2) for _ in range(N)]
POINTS = [DRAW.choice([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [None, 0.0]]) for _ in range(N)]
EARNED = [DRAW.choice([own, own, [1.0, 0.0]]) for own in POINTS]
PEOPLE = {name: [DRAW.choice([label, label, 0, None]) for label in TRUTH] for name in "abc"}

# Columns of each statistic, and options with which it is taken too.
COLUMNS: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "accuracy": ([FIRST, WINNERS], [{"errors": "drop"}]),
    "order_agreement": ([FIRST, SECOND], [{"errors": "drop"}]),
    "order_accuracy": (
        [FIRST, SECOND, WINNERS],
        [{"rule": rule} for rule in ("mean_of_orders", "sign_of_sum", "strict")],
    ),
    "vote_agreement": ([FIRST, VOTES], [{"ties": "drop"}, {"errors": "drop"}]),
    "majority_agreement": ([FIRST, VOTES], [{"ties": "drop"}, {"errors": "drop"}]),
    "people_agreement": ([VOTES], [{"ties": "drop"}]),
    "people_beyond_chance": ([[own * 2 for own in VOTES]], []),
    "beside_people": ([FIRST, VOTES], [{"second": SECOND}]),
    "position_bias": ([FIRST, SECOND], []),
    "length_bias": ([FIRST, VOTES, *LENGTHS], []),
    "cohen_kappa": ([LABELS, TRUTH], []),
    "precision": ([LABELS, TRUTH], [{"positive": 0}]),
    "recall": ([LABELS, TRUTH], [{"positive": 0}]),
    "f1": ([LABELS, TRUTH], [{"positive": 0, "seed": 3}]),
    "balanced_accuracy": ([LABELS, TRUTH], [{"errors": "wrong"}]),
    "auc": ([SCORES, TRUTH], [{"positive": 0}]),
    "rate": ([HITS], []),
    "mean": ([SCORES], []),
    "paired_difference": ([SCORES, RATINGS[::-1]], [{"spread": 4.0}]),
    "concordance": ([SCORES, RATINGS], []),
    "correlate": ([SCORES, RATINGS], [{"kind": "spearman"}, {"kind": "kendall"}]),
    "ppi_mean": ([RATINGS, SCORES, [4, 2, None, 3, 5] * 30], [{"lam": 1}]),
    "system_order": ([SYSTEMS, POINTS, EARNED], []),
    "confidence_calibration": ([FIRST, WINNERS, CHANCES], []),
    "abstention_curve": ([FIRST, WINNERS, CHANCES], []),
}


def told(found: Any) -> Any:
    """All numbers of a result, of which five digits are told."""
    if isinstance(found, Findings | metrics.Result):
        return told(found.to_dict())
    if isinstance(found, dict):
        return {key: told(each) for key, each in found.items() if each not in (None, {})}
    if isinstance(found, list | tuple):
        return [told(each) for each in found]
    return float(f"{found:.5g}") + 0.0 if isinstance(found, float) else found


@for_each("name", COLUMNS)
def test_a_statistic_has_the_numbers_that_it_had(name, snapshot):
    columns, more = COLUMNS[name]
    function = getattr(metrics, name)
    each: list[dict[str, Any]] = [{}, {"confidence": 0.8}, {"groups": GROUPS}, *more]
    found = [f"{list(own)}: {told(function(*columns, **own))}" for own in each]
    assert found == snapshot(name=name)


@for_each("name", COLUMNS)
def test_of_few_items_or_groups_a_statistic_says_what_it_cannot_know(name, snapshot):
    columns, _ = COLUMNS[name]
    function = getattr(metrics, name)
    place = next(i for i in range(6, N) if None not in [own[i] for own in columns])
    few = [function(*(own[5 : 5 + size] for own in columns)) for size in (0, 1, 2, 3, 7, 8)]
    alike = [function(*(own[place : place + 1] * size for own in columns)) for size in (4, 40)]
    grouped = [function(*columns, groups=[i % size for i in range(N)]) for size in (1, 4, 5)]
    found = [str(told(each)) for each in [*few, *alike, *grouped]]
    assert found == snapshot(name=name)


@for_each("name", COLUMNS)
def test_items_that_stand_thrice_in_a_group_count_as_one(name, snapshot):
    thrice = [[each for each in own[20:50] for _ in "123"] for own in COLUMNS[name][0]]
    found = getattr(metrics, name)(*thrice, groups=[place // 3 for place in range(90)])
    assert str(told(found)) == snapshot(name=name)


@for_each("name", COLUMNS)
def test_items_that_nobody_labelled_and_groups_by_other_names_change_no_number(name):
    columns, _ = COLUMNS[name]
    function = getattr(metrics, name)
    longer = [[*column, None] for column in columns]
    named = [None if key is None else f"group {key}" for key in GROUPS]
    found = function(*columns, groups=GROUPS)
    assert told(function(*columns, groups=named)) == told(found)
    with pytest.raises(InputError, match="one "):
        function(*columns, groups=GROUPS[1:])
    if name in {"accuracy", "cohen_kappa", "auc", "concordance", "correlate", "recall"}:
        again = function(*longer, groups=[*named, "other"])
        assert (again, again.interval) == (found, found.interval)
        assert sum(again.n_failed.values()) == sum(found.n_failed.values()) + 1


def test_the_other_statistics_have_the_numbers_that_they_had(snapshot):
    nine = [place % 9 for place in range(N)]
    sure = [1 - place / 400 for place in range(200)]
    answers = ["A"] * 130 + ["B"] * 70
    cascade = [(answers, sure), (answers[::-1], sure[::-1])]
    twins = [["x", "x"], ["x", "y"]] * 9
    flat, halves, pairs = [1, 1, 2, 2], [1, 2, 1, 2], [0, 0, 1, 1]
    referee = [["A", "A"], ["B", "B", "A"]] * 10
    found = {
        "constant voters": metrics.effective_voters({"a": flat[:2], "b": halves[:2]}),
        "constant groups": metrics.correlate(flat, halves, level="group", groups=pairs),
        "referee": metrics.beside_people(["A", "B"] * 10, referee),
        "twins": metrics.system_order(twins, [[1, 0], [0, 1]] * 9, [[1, 0], [1, 0]] * 9),
        "confusion": metrics.confusion(FIRST, WINNERS, ["tie", "B", "A"]),
        "voters": metrics.effective_voters(PEOPLE),
        "voters' errors": metrics.effective_voters(PEOPLE, TRUTH),
        "alt_test": metrics.alt_test(LABELS, PEOPLE, 0.1),
        "threshold": metrics.selective_threshold(answers, sure, ["A"] * 200),
        "none": metrics.selective_threshold(FIRST, CHANCES, WINNERS, alpha=0.7, delta=0.3),
        "cascade": metrics.selective_cascade(cascade, ["A"] * 200),
        "labels": metrics.labels_needed(0.1, 0.3, 0.9, level=0.1, seed=2),
        "groups": metrics.correlate(SCORES, RATINGS, level="group", groups=nine),
        "systems": metrics.correlate(SCORES, RATINGS, level="system", groups=nine),
        "weighted": metrics.cohen_kappa(RATINGS, RATINGS[5:] + RATINGS[:5], weights="linear"),
    }
    assert {name: told(own) for name, own in found.items()} == snapshot
