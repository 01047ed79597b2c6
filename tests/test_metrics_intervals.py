"""Intervals of rates and means, paired tests, many comparisons."""

from __future__ import annotations

import copy
import inspect
import json
import math
from typing import Any, get_type_hints

import numpy as np
import pytest
import scipy

from benchmarks.coverage import MEASURES, SETTINGS, STANDARD, covered
from langchain_judges import metrics
from langchain_judges.errors import InputError, OptionError
from langchain_judges.metrics import (
    Interval,
    Result,
    concordance,
    mean,
    paired_difference,
    rate,
    recall,
)
from langchain_judges.metrics.intervals import jackknife_spread, wilson_interval
from tests.cases import for_each


def test_wilson_gives_the_figures_worked_out_beforehand() -> None:
    low, high = wilson_interval(8, 10)
    assert (low, high) == pytest.approx((0.490162, 0.943318), abs=5e-7)
    assert wilson_interval(8, 10, 0.9).low > low
    assert wilson_interval(0, 10).covers(0)
    assert wilson_interval(10, 10).covers(1)
    # Newcombe 1998, table I.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_a_result_is_copied_and_written_with_all_that_it_holds() -> None:
    failed = {"timeout": 2, "refusal": 0}
    result = Result(0.5, n=4, n_failed=failed, interval=Interval(0.1234567, 0.9), se=0.25)
    copied = copy.deepcopy(result)
    assert (copied, copied.to_dict()) == (result, result.to_dict())
    assert copied.to_dict()["n_failed"] == {"timeout": 2}
    parts = "n=4, interval=(0.123457, 0.9), se=0.25, n_failed={'timeout': 2}"
    assert repr(result) == f"Result(0.5, {parts})"
    assert str(result) == "0.5"


@for_each(
    "measure", [metrics.accuracy, metrics.cohen_kappa, metrics.balanced_accuracy, metrics.correlate]
)
def test_what_could_not_be_judged_is_counted_where_nothing_was(measure) -> None:
    assert sum(measure([None, None], [1, 0]).n_failed.values()) == 2
    chances = metrics.confidence_calibration([None, None], [1, 0])
    assert (sum(chances.ece.n_failed.values()), sum(chances.n_failed.values())) == (2, 2)


def options() -> list[tuple[Any, str, object]]:
    """Each option of a statistic that is a word or a share, with a value that it cannot be."""
    exported = (getattr(metrics, name) for name in dir(metrics))
    functions = [each for each in exported if inspect.isfunction(each)]
    found: list[tuple[Any, str, object]] = []
    for each in functions:
        hints, taken = get_type_hints(each), inspect.signature(each).parameters
        words = [name for name in taken if "Literal" in str(hints[name])]
        shares = [name for name in ("confidence", "alpha", "delta", "power") if name in taken]
        found += [(each, name, "no such word") for name in words]
        found += [(each, name, 2.0) for name in shares]
    return found


@for_each("function, name, value", options())
def test_an_option_of_a_statistic_is_refused_by_its_name(function, name, value) -> None:
    needed = [each for each in inspect.signature(function).parameters.values()
              if each.default is each.empty and each.kind is not each.VAR_KEYWORD]  # fmt: skip
    own = {"labels_needed": [0.1, 0.2], "selective_cascade": [[([0], [0.5])], [0]]}
    given: Any = own.get(function.__name__, [[0.0, 1.0, 1.0]] * len(needed))
    with pytest.raises(OptionError, match=f"`{name}` must"):
        function(*given, **{name: value})


def test_wilson_of_nothing_is_nan_and_of_too_much_an_error() -> None:
    assert all(math.isnan(end) for end in wilson_interval(0, 0))
    with pytest.raises(InputError, match="between 0 and `n`"):
        wilson_interval(11, 10)
    with pytest.raises(OptionError, match="between 0 and 1"):
        wilson_interval(1, 10, confidence=95)


def test_a_rate_counts_what_failed_and_leaves_it_out() -> None:
    result = rate([True, False, None, True, math.nan])
    assert result == pytest.approx(2 / 3)
    assert (result.n, result.n_failed) == (3, {"not_judged": 2})
    assert result.interval == wilson_interval(2, 3)
    nothing = rate([])
    assert (nothing.to_dict()["value"], nothing.reason) == (None, "no items")
    # One group tells nothing of how groups differ; its residuals add up to rounding dust.
    one = rate([1, 1, 0], groups=["q"] * 3)
    assert (one.se, one.interval) == (None, Interval(0.0, 1.0))
    # An item without a group is a group of its own.
    values = [1, 0, 1, 1, 0, 1]
    alone = rate(values, groups=range(6)).interval
    assert rate(values, groups=[None, math.nan, None, "x", "y", None]).interval == alone


def test_a_paired_difference_is_surer_than_two_samples() -> None:
    rng = np.random.default_rng(3)
    hard = rng.normal(size=200)
    first, second = (hard + 0.2 * rng.normal(size=200) for _ in range(2))
    result = paired_difference(first + 0.1, second)
    assert result == pytest.approx((first + 0.1 - second).mean())
    a, b = (float(mean(values).se) for values in (first, second))
    correlated = a**2 + b**2 - 2 * a * b * np.corrcoef(first, second)[0, 1]
    assert result.se == pytest.approx(math.sqrt(correlated))
    assert result.se < 0.3 * math.hypot(a, b)


def test_the_test_of_a_difference_is_that_of_its_interval() -> None:
    # Nine items on which the first alone was right, three the second alone, of 36, and three
    # more of them: the mean is 6/36, its variance s²/36 + 3/36² with s² = (12 − 1) / 35.
    first = [1] * 20 + [1] * 9 + [0] * 3 + [0] * 4
    second = [1] * 20 + [0] * 9 + [1] * 3 + [0] * 4
    error = math.sqrt((12 - 36 / 36) / 35 / 36 + 3 / 36**2)
    result = paired_difference(first, second)
    assert result.p == pytest.approx(2 * scipy.stats.t.sf(6 / 36 / error, 35))
    assert (result.interval.low < 0) == (result.p > 0.05)
    at_p = paired_difference(first, second, confidence=1 - result.p)
    assert at_p.interval.low == pytest.approx(0, abs=1e-12)
    assert paired_difference([1, 0], [1, 0]).p == 1.0


def test_a_result_is_a_number_that_cannot_be_changed() -> None:
    result = rate([1, 0, 1, 1])
    assert isinstance(result, float)
    assert result == pytest.approx(0.75)
    assert f"{result:.1%}" == "75.0%"
    assert json.dumps([result]) == "[0.75]"
    assert result.to_dict()["interval"] == list(result.interval)
    with pytest.raises(AttributeError, match="cannot be changed"):
        result.n = 3
    with pytest.raises(TypeError):
        result.n_failed["x"] = 1  # type: ignore[index]  # what is refused


def test_equal_values_have_no_interval_and_say_why() -> None:
    result = mean([3.0] * 8)
    assert (result.interval, result.no_interval) == (None, "all values are equal")
    assert mean([1.0]).no_interval == "only one item or group"
    # Two judges who are right together may still differ on the next item.
    same = paired_difference([1, 0, 1, 1] * 5, [1, 0, 1, 1] * 5)
    assert same == 0.0
    assert same.interval == pytest.approx((-0.1813, 0.1813), abs=5e-4)  # √3 · 2.093 / 20


def most_alike(rng, rows, groups):
    """Ratings of which 88 % are the highest, by people and judge, alike within groups."""
    shared = rng.normal(size=(2, groups))[:, np.arange(rows) * groups // rows]
    x, y = (shared + rng.normal(size=(2, rows))) / 2**0.5
    cuts = scipy.special.ndtri([0.02, 0.05, 0.08, 0.12])
    return np.searchsorted(cuts, x), np.searchsorted(cuts, 0.6 * x + 0.8 * y)


# Means of 400,000 such ratings: 3.729, and 0.667 of the texts rated apart in people's order.
@pytest.mark.whole
@for_each(("rows", "groups", "printed"), [(20, 20, 0), (200, 5, 0), (200, 20, 50), (100, 100, 90)])
def test_ratings_of_mostly_one_value_have_a_range_that_holds_or_none(rows, groups, printed):
    rng = np.random.default_rng(rows + groups)
    hits: dict[str, list[bool]] = {"mean": [], "order": []}
    for _ in range(150):
        people, judge = most_alike(rng, rows, groups)
        keys = (np.arange(rows) * groups // rows).tolist()
        for name, result, truth in (
            ("mean", mean(people.tolist(), groups=keys), 3.729),
            ("order", concordance(judge.tolist(), people.tolist(), groups=keys), 0.667),
        ):
            hits[name] += [result.interval.covers(truth)] if result.interval else []
    for own in hits.values():
        assert len(own) >= printed
        assert not printed or np.mean(own) > 0.92 - 2.5 * 0.022


@for_each("few", [1, 2])
def test_of_one_or_two_items_of_a_class_no_range_is_told(few):
    labels = [1] * few + [0] * 20
    assert recall(labels, labels).no_interval == "too few items of a class"
    assert recall(labels, labels, 0).interval is not None


def test_the_order_of_texts_is_counted_whole_whatever_the_number_of_levels():
    rng = np.random.default_rng(3)
    people = rng.normal(size=300)
    judge = people + rng.normal(size=300)
    expected = (scipy.stats.kendalltau(people, judge).statistic + 1) / 2  # no ties
    assert concordance(judge.tolist(), people.tolist()) == pytest.approx(expected)
    doubled = np.repeat(judge, 2).tolist(), np.repeat(people, 2).tolist()
    groups = np.repeat(np.arange(300), 2).tolist()
    once, twice = concordance(judge, people), concordance(*doubled, groups=groups)
    # A text that is written down twice tells no more: the range stays.
    assert twice.interval == pytest.approx(once.interval, abs=0.01)


SMALL = ["n=10", "10%,n=20", "5%,n=50", "20x5", "perfect,n=20", "useless,n=20"]


@pytest.mark.figures
@pytest.mark.parametrize("measure", sorted(MEASURES))
@pytest.mark.parametrize("setting", SMALL)
def test_intervals_hold_the_truth_as_often_as_the_standard_says(measure, setting) -> None:
    at = next(each for each in SETTINGS if each.name == setting)
    share, none, _ = covered(measure, at, 150)
    # A share of .92 of 150 samples has a standard error of .022.
    assert none == 1 or share > STANDARD - 2.5 * 0.022


def test_one_half_wrong_item_in_few_groups_does_not_widen_a_range_to_half() -> None:
    groups = [place // 2 for place in range(20)]
    none, half = (rate([first] + [0] * 19, groups=groups).interval for first in (0, 0.5))
    # Of ten groups one holds it: no more than if both of its items were wrong.
    assert half.high <= wilson_interval(1, 10).high + 1e-12
    assert none.high < half.high
    turned = rate([0.5] + [1] * 19, groups=groups).interval
    assert turned.low == pytest.approx(1 - half.high)


def test_a_jackknife_needs_nine_of_ten_of_its_parts() -> None:
    parts = np.array([0.0, 1.0] * 9 + [math.nan] * 2)
    # Of 20 parts, those that there are vary by ¼.
    assert jackknife_spread(parts) == pytest.approx(math.sqrt(19 / 4))
    assert math.isnan(jackknife_spread(np.append(parts[1:], math.nan)))
