"""What a run decides, in a sentence, against an independent calculation."""

from __future__ import annotations

import json
import math
import random
import re
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from langchain_judges import create_relative_judge, create_rubric_judge, judge_many, load_judge
from langchain_judges.errors import JudgeError
from langchain_judges.methods import create_jury
from langchain_judges.metrics import rate
from langchain_judges.report.compared_systems import Duel
from langchain_judges.report.terminal import summary_table
from langchain_judges.runs.summary import Summary, conclusion, is_unsettled
from langchain_judges.testing import FakeChatModel
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.judged_rows import answered


def pairs(a: int, b: int, ties: int = 0) -> Summary:
    return answered(Summary(), {"A": a, "B": b, "tie": ties})


def wilson(count: Any, of: Any) -> tuple[Any, Any]:
    """Wilson 1927, as the roots of (p − π)² = z² π (1 − π) / n."""
    z, p = NormalDist().inv_cdf(0.975), count / of
    a, b, c = 1 + z * z / of, -(2 * p + z * z / of), p * p
    root = np.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_names_and_reasons_in_a_summary_are_text_and_no_markup():
    row = {"id": "[x](y)", "preference": "A", "score": 0.9, "rationale": "<b>\x1b[31m it `rm`"}
    summary = answered(answered(Summary(), {"A": 2}, "c|d"), {"B": 1}, "e")
    text = Duel(["<img src=x>", "a|b"], summary, [row]).markdown()
    assert not re.search(r"<img|<b>|\x1b|(?<!\\)[\[`]", text)
    assert r"a\|b" in text
    assert r"c\|d" in text


def test_the_summary_of_a_pull_request_shows_a_judge_that_contradicts_itself():
    summary = pairs(0, 0, 24)
    summary.flips, summary.both_orders = 24, 24
    text = Duel(["v1", "v2"], summary).markdown()
    assert "24 ties, flips on 24" in text
    assert "|" not in text  # no pair has a winner, so that there is no table


def test_a_pull_request_shows_each_category_and_the_clearest_pairs_of_each_system():
    summary = answered(answered(Summary(), {"A": 2, "B": 1}, "x"), {"B": 2}, "y")
    duel = Duel(["v1", "v2"], summary)
    for n, score in enumerate((0.4, 0.1, 0.3)):
        verdict = {"preference": "B", "score": score, "rationale": f"because\n{n}"}
        duel.add({"index": n, "id": f"q{n}", "verdict": verdict})
    lines = duel.markdown().split("\n")
    assert [line[:14] for line in lines[4:7]] == [
        "| all | 3 of 5",
        "| x | 1 of 3 (",
        "| y | 2 of 2 (",
    ]
    assert lines[-4:] == ["- q1: because 1", "- q2: because 2", "- q0: because 0", ""]


@for_each(
    "counts, parts",
    [
        ((16, 24), ["v2 is better", "24 of 40 (60 %, 45–74 %)", ": not settled", " more pairs"]),
        ((4, 26), ["v2 is better", "26 of 30 (87 %, 70–95 %)", ": settled."]),
        ((0, 0, 5), ["5 pairs", "ties", "nothing is decided"]),
        ((0, 0, 1), ["one pair", "a tie", "nothing is decided"]),
        ((7, 7, 2), ["7 to 7", "2 ties", ": not settled"]),
    ],
)
def test_the_sentence_names_the_better_system_its_rate_and_what_would_settle_it(counts, parts):
    (sentence,) = conclusion(pairs(*counts), ["v1", "v2"])
    assert [part for part in parts if part not in sentence] == []


def prefers(word):
    """A judge that prefers the text with a word, wherever it stands."""

    def reply(prompt):
        first, second = (prompt.find(f"{each} of") for each in (word, "rest"))
        return json.dumps({"preference": "1" if first < second else "2", "explanation": "x"})

    return create_relative_judge(FakeChatModel(replies=reply))


GOOD = [{"prompt": f"q{n}", "chosen": f"best of {n}", "rejected": f"rest of {n}"} for n in range(9)]
NAMED = [{**row, "systems": ["zeta", "eta"]} for row in GOOD]
DEALT = [
    {"input": f"q{n}", "systems": names, **{f"output_{k}": f"{t} of {n}" for k, t in texts}}
    for n in range(9)
    for by in [{"zeta": "best", "eta": "rest"}]
    for names in [sorted(by, reverse=bool(n % 2))]
    for texts in [zip("ab", map(by.get, names), strict=True)]
]


@for_each("rows, best", [(GOOD, "chosen"), (NAMED, "zeta"), (DEALT, "zeta")])
def test_a_system_wins_whichever_slots_its_texts_stand_in(rows, best):
    run = judge_many(prefers("best"), rows)
    slots = {row["verdict"]["preference"] for row in run}
    assert slots == {"A", "B"}
    assert run.decision()[0].startswith(f"{best} is better in 9 of 9")
    assert not is_unsettled(run.summary)
    table = judge_many(prefers("best"), rows).to_pandas()
    assert {*table["preference"]} == {best}
    assert ((table["score"] == 1) == (table["score_of"] == best)).all()
    lines = zip(*(column.cells for column in summary_table(run.summary).columns), strict=True)
    assert [best, "9"] in [[*map(str, cells[:2])] for cells in lines]


def test_nothing_is_decided_between_more_than_two_systems():
    rows = [{**row, "systems": [f"s{n % 3}", "s3"]} for n, row in enumerate(DEALT)]
    run = judge_many(prefers("best"), rows)
    assert len([*run]) == 9
    assert run.decision() == [
        "4 systems stand as A and B, others from row to row: nothing is decided between two of "
        "them."
    ]


@for_each("systems", [["x", "x"], ["x", None], ["x"], "x", ["", "x"]])
def test_names_that_do_not_tell_two_systems_apart_name_no_winner(systems):
    rows = [{**row, "systems": systems} for row in GOOD]
    run = judge_many(prefers("best"), rows)
    table = run.to_pandas()
    assert {*table["preference"]} == {"A", "B"}
    assert "score_of" not in table
    assert run.decision()[0].split()[0] in ("A", "B")


def test_a_label_beside_a_preferred_text_is_told_to_be_left_out():
    row = {**GOOD[0], "label": "B", "human_votes": ["B", "B"]}
    [result] = judge_many(prefers("best"), [row])
    assert result["label"] == result["verdict"]["preference"]
    assert "human_votes" not in result
    assert [each["unit"] for each in result["verdict"]["failures"]] == ["label", "human_votes"]


def test_a_position_that_one_order_leaves_open_settles_nothing():
    first = FakeChatModel(replies=lambda _: '{"preference": "1", "explanation": "x"}')
    rows = [{"input": f"q{n}", "output_a": "x", "output_b": "y"} for n in range(36)]
    for kinds in (["direct"], ["cot", "cot", "relative"]):
        members = [load_judge(kind, first) for kind in kinds]
        run = judge_many(create_jury(members) if members[1:] else members[0], rows)
        assert {row["verdict"]["preference"] for row in run} == {"A"}
        assert is_unsettled(run.summary)
        (sentence,) = run.decision()
        assert "not settled" in sentence
        assert "--set orders=strict" in sentence


def test_pairs_in_both_orders_settle_beside_some_in_one():
    # Were all of 4 won by position, 26 of 30 remain: Wilson's interval begins at 70 %.
    for alone, settled in ((4, True), (15, False)):
        summary = answered(Summary(one_order=alone), {"A": 30})
        assert is_unsettled(summary) != settled


@for_each(
    "counts, asked_on",
    [((16, 24), True), ((4, 26), False), ((7, 7), True), ((0, 0, 5), True), ((0, 0), False)],
)
def test_pairs_that_settle_nothing_are_offered_for_labelling_also_where_all_are_ties(
    counts, asked_on
):
    assert is_unsettled(pairs(*counts)) == asked_on


def test_sentences_are_those_of_an_independent_calculation_on_random_tables():
    draw, chance = random.Random(7), np.random.default_rng(7)
    for _ in range(70):
        a, b, ties = draw.randrange(60), draw.randrange(60), draw.randrange(20)
        if a == b:
            continue
        (sentence,) = conclusion(pairs(a, b, ties), ["x", "y"])
        wins, of = max(a, b), a + b
        low, high = wilson(wins, of)
        shown = f"{100 * wins / of:.0f} %, {100 * low:.0f}–{100 * high:.0f} %"
        assert sentence.startswith(f"{'x' if a > b else 'y'} is better in {wins} of {of} ({shown})")
        assert (": settled" in sentence) == (low > 0.5)
        if found := re.search(r"about ([\d,]+) more", sentence):
            more, rates = int(found[1].replace(",", "")), [wins, of - wins, ties]
            draws = chance.multinomial(more, [n / (of + ties) for n in rates], 4_000)
            won, lost = wins + draws[:, 0], of - wins + draws[:, 1]
            share, each = np.mean(wilson(won, won + lost)[0] > 0.5), 1 / math.sqrt(more)
            # With few pairs more, one of them moves the share a lot.
            assert 0.8 - 0.03 < share < 0.8 + 0.03 + each / 4, sentence


def test_each_label_has_its_rate():
    summary = answered(Summary(labels=60), {"0": 10, "1": 50})
    low, high = conclusion(summary)[0].split("; ")
    assert low.endswith("0 in 10 of 60 (17 %, 9–28 %)")
    assert high.startswith("1 in 50 of 60 (83 %, 72–91 %)")


def test_rows_of_one_group_count_together():
    best = [{**GOOD[n % 4], "prompt": f"q{n}", "group": f"g{n % 4}"} for n in range(100)]
    for row in best[::4]:
        row["chosen"], row["rejected"] = row["rejected"], row["chosen"]
    run = judge_many(prefers("best"), best)
    assert len([*run]) == 100
    (sentence,) = run.decision()
    assert "75 of 100 (75 %" in sentence
    assert "not settled, as pairs of one `group`" in sentence
    assert is_unsettled(run.summary)
    apart = judge_many(prefers("best"), [{**row, "group": n} for n, row in enumerate(best)])
    assert len([*apart]) == 100
    assert apart.decision() == ["chosen is better in 75 of 100 (75 %, 66–82 %): settled."]


def test_intervals_of_runs_are_those_of_the_metric_whatever_rows_share():
    draw = random.Random(3)
    for number in range(36):
        lean, summary = [draw.random() for _ in range(draw.randrange(2, 12))], Summary()
        places = [draw.randrange(len(lean)) for _ in range(draw.randrange(20, 80))]
        sides = [draw.choices("AB", [lean[place], 1 - lean[place]])[0] for place in places]
        for side, place in zip(sides, places, strict=True):
            answered(summary, {side: 1}, group=place if number % 3 else None)
        groups = places if number % 3 else None
        low, high = rate([side == "A" for side in sides], groups=groups).interval or (0, 1)
        assert summary.share("A").interval == pytest.approx((low, high))
        assert is_unsettled(summary) == (max(low, 1 - high) <= 0.5)


def test_totals_of_several_criteria_have_a_mean():
    summary = Summary()
    for total in (0.0, 0.875):
        verdict = {"label": total, "score": total, "failures": [], "usage": no_usage()}
        row: Any = {"verdict": verdict, "judged": True, "subscores": [{}, {}]}
        summary.add(row)
    assert "2 rows is 0.44" in conclusion(summary)[0]


def test_a_run_of_which_nothing_was_read_decides_nothing():
    run = judge_many(create_rubric_judge(FakeChatModel(replies=[]), rubric="Polite?"), [])
    with pytest.raises(JudgeError, match="judged nothing"):
        run.decision()
    assert list(run) == run.decision() == []
