"""Recorded verdicts reproduce the figures that their sources print, to the last digit."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Literal

import pytest

from langchain_judges import datasets as sets
from langchain_judges import judge_many
from langchain_judges.errors import OptionError
from langchain_judges.metrics import accuracy, cohen_kappa, order_accuracy, order_agreement
from langchain_judges.metrics.agreement import OrdersRule
from langchain_judges.runs.rows import judged_row
from tests.cases import for_each
from tests.test_datasets import folder


def by_setting(records) -> dict[tuple[str, str], dict[str, dict[str, str | None]]]:
    """Return preferences by judge and setting, id and order."""
    results: dict = defaultdict(lambda: defaultdict(dict))
    for record in records:
        own = results[record["judge"], record["setting"]]
        own[record["id"]][record["order"]] = record["preference"]
    return results


def orders(by_id: dict) -> tuple[list, list]:
    return [each["AB"] for each in by_id.values()], [each["BA"] for each in by_id.values()]


@pytest.fixture(scope="module")
def llmbar() -> tuple[dict, dict, dict]:
    path = folder("llmbar")
    rows = {row["id"]: row for row in sets.load("llmbar", path)}
    result: dict = defaultdict(dict)
    for (judge, setting), by_id in by_setting(sets.recorded("llmbar", path)).items():
        for key, preferences in by_id.items():
            result[f"{rows[key]['category']}|{judge}|{setting}"][key] = preferences
    expected = json.loads((path / "expected.json").read_text())
    return result, expected, {key: row["label"] for key, row in rows.items()}


@pytest.mark.figures
def test_llmbar_accuracy_is_that_of_the_source_in_every_setting(llmbar) -> None:
    result, expected, labels = llmbar
    for setting, by_id in result.items():
        truth = [labels[key] for key in by_id]
        rules: list[tuple[OrdersRule, str]] = [
            ("mean_of_orders", "accuracy_mean_of_orders"),
            ("both_right", "accuracy_both_orders"),
        ]
        for rule, figure in rules:
            ours = 100 * order_accuracy(*orders(by_id), truth, rule)
            assert ours == pytest.approx(expected[setting][figure], abs=1e-9)


# The source lets two replies that nobody could read agree; 29 settings differ by that alone.
@pytest.mark.figures
def test_llmbar_order_agreement_is_that_of_the_source_and_less_where_nothing_was_read(
    llmbar,
) -> None:
    result, expected, _ = llmbar
    differ = 0
    for setting, by_id in result.items():
        first, second = orders(by_id)
        ours = order_agreement(first, second)
        theirs = expected[setting]["order_agreement"]
        assert 100 * ours.with_unread == pytest.approx(theirs, abs=1e-9)
        unread = sum(a is b is None for a, b in zip(first, second, strict=True))
        assert ours.with_unread - ours == pytest.approx(unread / ours.n)
        differ += unread > 0
    assert differ == 29


# Princeton's statistics of its processed MT-Bench: accuracy, agreement of the orders. PaLM2's
# 73.5 counts 7 pairs as agreeing of which no reply could be read; without them it is 70.0.
MT_BENCH = {
    "GPT-4": (81.0, 87.0, 87.0),
    "ChatGPT": (71.25, 57.5, 57.5),
    "LLaMA2": (72.0, 67.0, 67.0),
    "PaLM2": (70.25, 73.5, 70.0),
}


@pytest.mark.figures
@pytest.mark.parametrize("judge", sorted(MT_BENCH))
def test_mtbench_human200_has_its_published_accuracy_and_agreement(judge: str) -> None:
    path = folder("mtbench_human200")
    labels = {row["id"]: row["label"] for row in sets.load("mtbench_human200", path)}
    records = sets.recorded("mtbench_human200", path, judge=judge, setting="Vanilla_NoRules")
    by_id = by_setting(records)[judge, "Vanilla_NoRules"]
    first, second = orders(by_id)
    right = order_accuracy(first, second, [labels[key] for key in by_id], "mean_of_orders")
    ours = order_agreement(first, second)
    result = (100 * right, 100 * ours.with_unread, 100 * ours)
    assert result == pytest.approx(MT_BENCH[judge], abs=1e-9)


# A pair without two readable verdicts is not consistent.
STRICT = {"gpt-4-0613": 81.54, "gpt-3.5-turbo-1106": 69.04, "gemini-pro": 57.04}
# The source divides by the readable verdicts and calls one without a partner consistent.
LENIENT = {"gpt-4-0613": 81.54, "gpt-3.5-turbo-1106": 69.59, "gemini-pro": 57.47}


@pytest.mark.figures
@pytest.mark.parametrize("judge", sorted(STRICT))
def test_the_position_bias_study_has_its_consistent_rates(judge: str) -> None:
    path = folder("mtbench_position_bias")
    records = sets.recorded("mtbench_position_bias", path, judge=judge, setting="full")
    first, second = orders(by_setting(records)[judge, "full"])
    pairs = list(zip(first, second, strict=True))
    strict = order_agreement(first, second)
    alone = sum((a is None) != (b is None) for a, b in pairs)
    unread = sum((a is None) + (b is None) for a, b in pairs)
    verdicts = 2 * len(pairs)
    assert verdicts == 4800
    assert round(100 * strict, 2) == STRICT[judge]
    assert round(100 * (strict * verdicts + alone) / (verdicts - unread), 2) == LENIENT[judge]


# The paper: 0.85, 0.88, 0.86.
@pytest.mark.figures
def test_pandalm_annotators_agree_as_published() -> None:
    rows = sets.load("pandalm", folder("pandalm"))
    people = list(zip(*(row["human_votes"] for row in rows), strict=True))
    kappas = [round(cohen_kappa(people[a], people[b]), 3) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert kappas == [0.852, 0.879, 0.862]


@pytest.mark.figures
@pytest.mark.parametrize(
    ("judge", "right", "unread"), [("gpt-3.5-turbo", 69.8, 25), ("pandalm-7b", 66.8, 0)]
)
def test_pandalm_judges_have_their_accuracy(judge: str, right: float, unread: int) -> None:
    path = folder("pandalm")
    rows = sets.load("pandalm", path)
    replayed = list(sets.replay(sets.recorded("pandalm", path, judge=judge), rows))
    results = accuracy(replayed, [row["label"] for row in replayed])
    assert (round(100 * results, 1), results.n) == (right, 999)
    # The metric knows why a judgment failed from the replayed verdict.
    assert results.n_failed == ({"unparsable": unread} if unread else {})


# The README of the set defines both ways of matching and gives these counts.
@pytest.mark.figures
@pytest.mark.parametrize(
    ("how", "accepted", "rejected"), [("normalised", 3687, 96), ("exact", 7327, 9)]
)
def test_cogeval_grades_and_keys_disagree_as_counted(
    how: Literal["normalised", "exact"], accepted: int, rejected: int
) -> None:
    counts: Counter = Counter()
    for grade in sets.recorded("cogeval", folder("cogeval")):
        counts[grade["label"], sets.answer_matches(grade["raw"], grade["expected"], how)] += 1
    assert counts.total() == 59338
    assert (counts[1, False], counts[0, True]) == (accepted, rejected)


# ---- replay


def record(order: str, preference: str | None, key: str = "1", **changes: object) -> dict:
    row_fields = {
        "id": key,
        "judge": "j",
        "setting": "s",
        "order": order,
        "preference": preference,
    }
    return {**row_fields, "raw": f"said {preference}", **changes}


@for_each(
    ("rule", "first", "second", "preference", "score", "flipped"),
    [
        ("strict", "A", "A", "A", 1.0, False),
        ("strict", "A", "B", "tie", 0.5, True),
        ("strict", "A", "tie", "tie", 0.5, True),
        ("strict", "B", "B", "B", 0.0, False),
        ("lenient", "A", "tie", "A", 0.75, True),
        ("score_mean", "B", "tie", "B", 0.25, True),
        ("none", "B", "A", "B", 0.0, None),
    ],
)
def test_two_orders_become_one_verdict(rule, first, second, preference, score, flipped) -> None:
    (row,) = sets.replay([record("AB", first), record("BA", second)], orders=rule)
    verdict = row["verdict"]
    assert (verdict["preference"], verdict["score"], verdict["flipped"]) == (
        preference,
        score,
        flipped,
    )
    assert row["by_order"]["AB"] == {"preference": first}
    assert verdict["rationale"] == f"said {first}"


@for_each("unread", [("AB",), ("BA",), ("AB", "BA")])
def test_an_unread_order_is_not_judged(unread: tuple[str, ...]) -> None:
    records = [record(o, None if o in unread else "A") for o in ("AB", "BA")]
    (row,) = sets.replay(records)
    assert not judged_row(row)
    assert [f["reason"] for f in row["verdict"]["failures"]] == ["unparsable"] * len(unread)


def test_judges_are_kept_apart_and_rows_carry_what_is_known() -> None:
    records = [record("AB", "A"), record("AB", "B", judge="k"), record("AB", "A", key="2")]
    fields = {"id": "1", "label": "A", "group": "g", "human_votes": ["A"], "input": "not kept"}
    rows = list(sets.replay(records, [fields]))
    names = [(row["judge"]["model"], row["id"], row["index"]) for row in rows]
    assert names == [("j", "1", 0), ("j", "2", 1), ("k", "1", 0)]
    assert (rows[0]["label"], rows[0]["group"], rows[0]["human_votes"]) == ("A", "g", ["A"])
    assert "input" not in rows[0]
    assert len({row["key"] for row in rows}) == 3


PAIR = {"input": "Q", "output_a": "x", "output_b": "y"}


def test_a_recorded_judge_runs_as_every_judge_does(tmp_path) -> None:
    judge = sets.recorded_judge([record("AB", "A"), record("BA", "A"), record("AB", "B", "2")])
    fields = {"label": "A", "turn": 2, "human_votes": ["A", "tie"]}
    pairs = [{**PAIR, **fields, "id": key} for key in ("1", "2", "3")]
    out = tmp_path / "verdicts.jsonl"
    rows = list(judge_many(judge, pairs, records=out, progress=False))
    replayed = list(sets.replay([record("AB", "A"), record("BA", "A"), record("AB", "B", "2")]))
    assert [row["verdict"] for row in rows[:2]] == [row["verdict"] for row in replayed]
    assert rows[0].keys() == {*replayed[0].keys(), *fields, "content", "kind", "judged"}
    assert rows[0]["human_votes"] == ["A", "tie"]
    assert rows[2]["verdict"]["failures"][0]["reason"] == "missing"
    again = judge_many(judge, pairs, records=out, progress=False)
    assert len(list(again)) == 3
    assert again.summary.resumed == 2


def test_a_recorded_judge_is_one_judge() -> None:
    with pytest.raises(OptionError, match="one judge in one setting"):
        sets.recorded_judge([record("AB", "A"), record("AB", "A", judge="k")])
    with pytest.raises(OptionError, match="one judge in one setting"):
        sets.recorded_judge([])
