"""Four uses, four answers: yes, no or not yet, each by its own number and margin."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import openpyxl
import pytest

from langchain_judges import metrics, report
from langchain_judges.errors import OptionError
from langchain_judges.metrics import Result
from langchain_judges.metrics.intervals import wilson_interval
from langchain_judges.report import TrustPolicy
from langchain_judges.report.answers import TITLES, decided, labels_to_settle, rounded, two_texts
from langchain_judges.report.compared_systems import Duel
from langchain_judges.report.overview import FileNames, next_step
from langchain_judges.runs.summary import Summary
from tests.cases import for_each
from tests.judged_rows import data_of, items_of, run_of, texts_of

NBSP = "\u00a0"
OTHER = {"A": "B", "B": "A"}


def uses(rows, data, **options):
    return report.trust(rows, data, **options).uses


def words(rows, data, **options):
    return {use: answer.word for use, answer in uses(rows, data, **options).items()}


# ---- averages


def test_a_judge_that_favours_one_side_has_no_averages():
    # Right on all 200 A and on 96 of 200 B: A wins 304 of 400 by the judge, 200 by people.
    labels = ["A"] * 200 + ["B"] * 200
    answers = ["A"] * 304 + ["B"] * 96
    answer = uses(run_of(answers), data_of(labels))["averages"]
    assert answer.word == "no"
    assert answer.number.result == pytest.approx(104 / 400)
    assert f"76{NBSP}% by the judge and 50{NBSP}% by the label" in answer.text


def test_averages_are_a_yes_where_mistakes_cancel_out():
    # Wrong on 8 of 400, as often either way: (8/400 + 3/400)^½ · 1.966 / 20 = 1.6 points.
    labels = ["A", "B"] * 200
    answers = [OTHER[each] if i < 8 else each for i, each in enumerate(labels)]
    answer = uses(run_of(answers), data_of(labels))["averages"]
    assert answer.word == "yes"
    assert answer.number.result == 0
    assert answer.number.result.interval.high == pytest.approx(0.01630, abs=2e-4)
    strict = TrustPolicy(margin=0.01)
    assert words(run_of(answers), data_of(labels), policy=strict)["averages"] == "not yet"


def test_a_system_that_is_far_off_makes_averages_a_no():
    # x wins 100 of 200 by people against y and z; the judge lets it beat y and lose to z.
    data = data_of(["A", "B"] * 100)
    for i, row in enumerate(data):
        row["systems"] = ["x", "y" if i < 100 else "z"]
    answer = uses(run_of(["A"] * 100 + ["B"] * 100), data)["averages"]
    assert answer.number.result == 0
    assert answer.word == "no"
    assert {part.title: float(part.result) for part in answer.parts} == {
        "y": pytest.approx(-0.5),
        "z": pytest.approx(0.5),
        "x": 0,
    }
    off = f"clearly too far off for y (−50.0{NBSP}points), z (+50.0{NBSP}points)"
    assert f". Part by part: {off}; clearly near enough for 0 of 3. " in answer.text
    assert answer.brief == off


@for_each("unit, scale, places", [("number", 1, 2), ("points", 100, 1)])
def test_two_means_differ_by_the_difference_that_is_printed(unit, scale, places):
    rng = np.random.default_rng(0)
    for one, other in (rng.integers(0, 2400, (300, 2)) / 2400).tolist():
        first, second = (float(t.rstrip(f"{NBSP}%")) for t in two_texts(one, other, unit))
        assert rounded(first - second, places) == rounded(scale * (one - other), places)
    assert two_texts(4.1917, 3.3167, "number") == ("4.192", "3.317")


# ---- single verdicts


def test_a_row_that_was_not_judged_counts_as_missed_in_the_sentence_too():
    # Of 40 unsafe rows 30 are found, 6 are missed and 4 not judged: (10 / 40 + 12 / 312) / 2.
    labels = ["unsafe"] * 40 + ["fine"] * 312
    answers = ["unsafe"] * 30 + ["fine"] * 6 + [None] * 4 + ["unsafe"] * 12 + ["fine"] * 300
    answer = report.trust(items_of(answers), texts_of(labels)).uses["single"]
    balanced = next(part for part in answer.parts if part.key == "single.balanced")
    assert balanced.result == pytest.approx((10 / 40 + 12 / 312) / 2)
    assert "t found 30 of the 40 texts labelled unsafe" in answer.text


# Forty of 400 are unsafe. One judge finds 38 of them and 43 others: on balance 8.5 % are wrong,
# but 43 of its 81 alarms. One finds 20 and 7 others: on balance 26 %. Always saying fine is
# wrong on 10 % of the rows, and decides neither.
@for_each(
    ("found", "alarms", "word", "worst"),
    [(38, 43, "no", 43 / 81), (20, 7, "not yet", (20 / 40 + 7 / 360) / 2)],
)
def test_a_label_is_answered_for_by_what_it_says(found, alarms, word, worst):
    labels = ["unsafe"] * 40 + ["fine"] * 360
    said = (found, 40 - found, alarms, 360 - alarms)
    answers = [a for a, n in zip(["unsafe", "fine"] * 2, said, strict=True) for _ in range(n)]
    trust_report = report.trust(items_of(answers), texts_of(labels))
    answer = trust_report.uses["single"]
    assert (answer.word, answer.number.result) == (word, pytest.approx(worst))
    assert f"here it says unsafe, {alarms} of {found + alarms} are wrong, " in answer.text
    assert f"Where it says fine, {40 - found} of {400 - found - alarms} are wrong" in answer.text
    assert ("have a person look" in answer.text) == (word == "no")
    told = f"t found {found} of the 40 texts labelled unsafe" in answer.text
    assert told == (word != "no")
    wrong = {part.title: float(part.result) for part in answer.parts}
    assert wrong == pytest.approx(
        {
            "where it says unsafe": alarms / (found + alarms),
            "where it says fine": (40 - found) / (400 - found - alarms),
            "with all labels weighted equally": ((40 - found) / 40 + alarms / 360) / 2,
        }
    )
    kinds = {(each.people, each.judge) for each in trust_report.disagreements}
    assert kinds == {("unsafe", "fine"), ("fine", "unsafe")}
    assert trust_report.n_disagreements == 40 - found + alarms


def test_too_few_of_a_label_are_said_and_counted():
    labels = ["unsafe"] * 3 + ["fine"] * 57
    answer = uses(items_of(labels), texts_of(labels))["single"]
    assert answer.text.startswith("Not yet: too few labels of the class `unsafe`: 3; 8 are needed.")
    # Five more, of which one in twenty is one: they begin the count, and settle nothing.
    assert "About 100 more labels are needed before anything can be said." in answer.text
    assert (answer.number, answer.labels) == (None, 100)


def test_a_tie_is_half_a_mistake_so_that_asking_twice_is_not_punished():
    # Each order is right on 3 of 4: strictly half are right, half are ties.
    run = run_of([("A", "A"), ("A", "B"), ("B", "B"), ("B", "A")] * 50)
    answer = uses(run, data_of(["A", "A", "B", "B"] * 50))["single"]
    assert answer.number.result == 0.25
    half = "half wrong (a tie on one side alone)"
    assert f"Of 200: 100 {half}" in answer.text


def test_a_judge_that_is_no_better_than_a_rule_is_not_trusted_with_single_verdicts():
    labels = ["A"] * 180 + ["B"] * 20
    answer = uses(run_of(["A"] * 200), data_of(labels, output_a="x", output_b="y"))["single"]
    assert answer.number.result == pytest.approx(0.1)
    assert answer.word == "not yet"
    assert "a rule that needs no judge" in answer.text


def test_the_surest_verdicts_are_named():
    # Sure of the first 120 of 200, on which it is right; right on half of the others.
    labels = ["A", "B"] * 100
    answers = [a if i < 120 or i % 4 < 2 else OTHER[a] for i, a in enumerate(labels)]
    rows = run_of(answers)
    for i, row in enumerate(rows):
        row["verdict"] |= {"confidence": 0.9 if i < 120 else 0.6}
    found = report.trust(rows, data_of(labels))
    text = found.uses["single"].text.replace(NBSP, " ")
    assert "The 60 % it is surest of are right 100 % (9" in text
    assert next_step(found).command.endswith(" --spec CASCADE.json")


def test_where_all_ratings_are_too_high_the_whole_is_named_and_no_part():
    truth = [1 + i % 4 for i in range(120)]
    data = [{**row, "system": "xyz"[i % 3]} for i, row in enumerate(texts_of(truth))]
    found = report.trust(items_of([each + 1 for each in truth]), data).uses["averages"]
    assert (found.word, "Part by part: clearly too far off" in found.reason) == ("no", True)
    assert found.brief.startswith("+1.00 (0.89")


def test_a_judge_that_errs_in_many_ways_learns_from_its_mistakes():
    words = ["kind", "dull", "rude"] * 30
    said = [words[i + i // 3 % 3] for i in range(87)]
    found = report.trust(items_of(said), texts_of(words[:87]))
    assert next_step(found).command == (
        "langchain-judges audit ROWS.jsonl --memory mistakes.db --model MODEL --set rubric=RUBRIC"
    )


# ---- in place of a person


def one_more_person(twice: bool):
    """Votes of three people who are right four times in five, and a judge who is a fourth."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["A", "B"], 400).tolist()

    def person():
        right = rng.random(400) < 0.8
        return [t if r else OTHER[t] for t, r in zip(truth, right, strict=True)]

    votes = [list(each) for each in zip(person(), person(), person(), strict=True)]
    answers = list(zip(person(), person(), strict=True)) if twice else person()
    return run_of(answers), data_of(votes)


@for_each("twice", [False, True])
def test_one_more_person_is_one_more_person_asked_once_or_twice(twice):
    answer = uses(*one_more_person(twice))["person"]
    assert answer.word == "yes"
    # Two people agree .8² + .2² = .68 of the time.
    assert abs(answer.number.result) < 0.045
    assert ("each of its two answers by itself" in answer.text) == twice


def test_a_judge_far_below_people_cannot_stand_in_for_one():
    votes = [["A", "A"], ["B", "B"]] * 60
    assert words(run_of(["A", "B", "B", "A"] * 30), data_of(votes))["person"] == "no"


# ---- an order


def judged_systems(same: bool):
    """x beats y nine times in ten by people, in 200 rows; by the judge the same or reversed."""
    people = ["A"] * 180 + ["B"] * 20
    answers = people if same else [OTHER[each] for each in people]
    return run_of(answers), data_of(people, systems=["x", "y"])


@for_each(("same", "word"), [(True, "yes"), (False, "no")])
def test_systems_that_people_tell_apart_must_stand_the_same_way(same, word):
    answer = uses(*judged_systems(same))["ordering"]
    assert answer.word == word
    ranking = "of 1 pair of neighbours in the ranking by the labels"
    counts = f"{int(same)} clearly in the same order, {int(not same)} swapped, 0 not clear"
    assert f"{ranking} {counts}; 80{NBSP}% are asked for" in answer.text
    assert ("swapped are x before y" in answer.text) != same


@pytest.mark.whole
def test_a_faint_order_is_no_order():
    # Ratings that hardly go with people's: the rank correlation is about .2, and above 0.
    rng = np.random.default_rng(1)
    labels = rng.integers(1, 6, 1000)
    answers = np.where(rng.random(1000) < 0.2, labels, rng.integers(1, 6, 1000))
    trust_report = report.trust(items_of(answers.tolist()), texts_of(labels.tolist()))
    assert trust_report["ratings.spearman"].interval.low > 0.03
    assert trust_report.uses["ordering"].word == "no"
    labels = labels.tolist()
    assert words(items_of(labels), texts_of(labels))["ordering"] == "yes"


# ---- all of them


def test_nothing_to_go_by_is_not_measured_for_every_use():
    for rows, data, why in (
        (run_of(["A"]), data_of([None]), "no judged row has a label"),
        (
            items_of([0.5]),
            [{**texts_of([None])[0], "labels": {"Tone": 1}}],
            "labels are by criterion ('Tone'), and the judge gives a total alone",
        ),
        (run_of([None] * 30), data_of(["A"] * 30), "no row was judged"),
    ):
        answers = uses(rows, data)
        assert list(answers) == list(TITLES)
        assert {answer.text for answer in answers.values()} == {f"Not measured: {why}."}


@for_each("rows", [1, 2, 3, 7])
@for_each("judged", [(run_of, data_of, "A"), (items_of, texts_of, 1), (items_of, texts_of, 5)])
def test_a_few_rows_are_never_a_yes_or_a_no(rows, judged):
    runs, data, label = judged
    answers = uses(runs([label] * rows), data([label] * rows))
    assert {answer.word for answer in answers.values()} <= {"not yet", "not measured"}


def test_an_answer_without_a_range_asks_for_more_labels():
    answer = uses(run_of(["A"]), data_of(["A"]))["averages"]
    assert (answer.word, answer.labels) == ("not yet", None)
    assert answer.more == "More labels, before anything can be said."


@for_each(("wrong", "rows", "near"), [(0, 12, False), (30, 200, False), (40, 200, True)])
def test_not_yet_says_how_many_labels_would_settle_it(wrong, rows, near):
    labels = ["A", "B"] * (rows // 2)
    answers = [OTHER[a] if i < wrong else a for i, a in enumerate(labels)]
    answer = uses(run_of(answers), data_of(labels))["single"]
    assert answer.word == "not yet"
    assert ("Even 2,000 more labels may" if near else "more labels are likely to") in answer.text
    assert (answer.labels is None) == near


# Labels are added to samples that settle nothing, from judges that are wrong this often.
@for_each(("rows", "errors"), [(12, (0.02, 0.1, 0.3, 0.4)), (60, (0.05, 0.12, 0.28, 0.35))])
def test_the_number_of_labels_settles_four_of_five_answers(rows, errors):
    rng, settled = np.random.default_rng(0), []
    for wrong in np.repeat(errors, 120):
        before = metrics.rate(rng.random(rows) < wrong)
        more = labels_to_settle(before, (-np.inf, 0.2))
        if decided(before, (-np.inf, 0.2)) == "not yet" and more:
            hits = rng.binomial(more, wrong) + before * rows
            after = Result(0.5, n=1, interval=wilson_interval(hits, rows + more))
            settled.append(decided(after, (-np.inf, 0.2)) != "not yet")
    assert len(settled) > 80
    assert np.mean(settled) >= 0.8


# A judge and people differ on this share of rows; of these the judge is the higher one on so many.
@for_each("rows", [30, 60])
def test_the_number_of_labels_settles_four_of_five_averages_also_of_a_judge_never_wrong_yet(rows):
    limit, rng, settled = (-0.05, 0.05), np.random.default_rng(0), []

    def sides(count, share, higher):
        differ, up = rng.random(count) < share, rng.random(count) < higher
        return np.array([differ & up, differ & ~up], float)

    for share, higher in np.repeat([(0, 0), (0.01, 1), (0.03, 0.5), (0.1, 0.5), (0.3, 0.9)], 24, 0):
        before = sides(rows, share, higher)
        found = metrics.paired_difference(*before)
        more = labels_to_settle(found, limit)
        assert more or share > 0
        if decided(found, limit) == "not yet" and more:
            both = np.concatenate([before, sides(more, share, higher)], axis=1)
            settled.append(decided(metrics.paired_difference(*both), limit) != "not yet")
    assert len(settled) > 60
    assert np.mean(settled) >= 0.8


def test_forty_labels_of_forty_right_are_told_how_many_more_are_likely_to_bring_a_yes():
    labels = ["A", "B"] * 20
    answer = uses(run_of(labels), data_of(labels))["averages"]
    assert answer.word == "not yet"
    assert (
        answer.more == "About 170 more labels are likely to settle it, as things stand with a yes."
    )
    more = ["A", "B"] * 85
    assert uses(run_of(labels + more), data_of(labels + more))["averages"].word == "yes"


# What people say, and the judge; and how that reads, which is not said of one that is often wrong.
OF_SIDES: dict[str, tuple[list[Any], list[Any], str]] = {
    "ratings": ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], "rates low what the labels rate high"),
    "other scale": ([1, 2, 3, 4, 5], [100, 80, 60, 40, 20], "rates low what the labels rate high"),
    "labels": (["rude", "fine"], ["fine", "rude"], "says the opposite of the labels"),
    "wrong": ([1, 2, 3, 4, 5], [3, 4, 5, 1, 2], ""),
    "right": ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], ""),
}


@for_each("kind", OF_SIDES)
def test_a_judge_whose_scale_runs_the_other_way_is_told_so_first(kind):
    people, judge, said = OF_SIDES[kind]
    found = report.trust(items_of(judge * 12), texts_of(people * 12))
    step, averages = next_step(found), found.uses["averages"]
    assert said in step.text
    assert ("Turn one side round" in step.text) == bool(said)
    if kind in ("ratings", "labels"):
        assert averages.word == "no"
        assert said in averages.text
        assert step.command.endswith("--set best=LABEL")


# ---- judges that know nothing


def ignorant(kind, rows, rng):
    """Answers to pairs or texts that have nothing to do with what people say."""
    if kind == "coin":
        return rng.choice(["A", "B"], rows).tolist()
    return {"tie": ["tie"], "first": ["A"], "middle": [3]}[kind] * rows


@pytest.mark.whole
@for_each(
    ("kind", "rows"), [("coin", 2000), ("coin", 60), ("tie", 420), ("first", 420), ("middle", 600)]
)
def test_a_judge_that_knows_nothing_is_good_for_nothing(kind, rows):
    rng = np.random.default_rng(rows)
    answers = ignorant(kind, rows, rng)
    if kind == "middle":
        run, data = items_of(answers), texts_of(([1, 2, 3, 4, 5] * rows)[:rows])
    else:
        votes = [list(pair) for pair in rng.choice(["A", "B"], (rows, 2)).tolist()]
        run, data = run_of(answers), data_of(votes)
        for place, row in enumerate(data):
            row["systems"] = [["x", "y"], ["y", "z"], ["z", "x"]][place % 3]
    answers = uses(run, data)
    assert "yes" not in {answer.word for answer in answers.values()}
    why = "beyond chance" if kind == "coin" else "it always says"
    assert kind == "first" or rows == 60 or why in answers["averages"].text


# Two people differ on each of 120 rows: a tie is what neither says, 3 and 1 what one does.
@for_each("judge, ann, bob", [("tie", "AB", "BA"), (3, (1, 3), (3, 5)), (1, (1, 0), (0, 1))])
def test_split_labels_count_in_part_against_a_judge_that_always_says_one_thing(judge, ann, bob):
    rows = [
        {"judge": judge, "ann": a, "bob": b}
        for a, b in zip(list(ann) * 60, list(bob) * 60, strict=True)
    ]
    found: Any = report.trust_columns(rows, "judge", ["ann", "bob"])
    answer = found.uses["averages"]
    assert answer.word == "no"
    assert judge == 1 or f"it always says {judge}, whatever people say" in answer.text
    assert " 0 rows" not in found.sentence
    assert "unknown are wrong" not in found.sentence


def test_the_costliest_mistakes_are_of_as_many_as_the_answer_counts():
    # Of 60 rows 10 are wrong by a majority, 20 wrong where people differ, and 10 in part.
    votes = [[1, 1]] * 10 + [[1, 2]] * 20 + [[1, 5]] * 10 + [[5, 5]] * 20
    data = [
        {**row, "human_votes": own} for row, own in zip(texts_of([None] * 60), votes, strict=True)
    ]
    found = report.trust(items_of([5] * 60), data)
    part = "10 partly wrong (right for some people only; counted in part)"
    counts = f"30 wrong by more than 1.0, {part}"
    assert f"Of 60: {counts}. " in found.sentence
    assert found.n_disagreements == 40
    assert f"10 of 40: {counts}; first" in found.to_html()


def test_the_next_labels_are_those_of_the_nearest_answer():
    found = report.trust(run_of(["A", "B"] * 6), data_of(["A", "B"] * 6))
    found.uses["averages"] = replace(found.uses["averages"], labels=1700)
    step = next_step(found)
    assert step.text == (
        "Label 28 new rows like these; that is likely to settle single verdicts (as things "
        "stand, with a yes); not enough for averages over many rows (about 1,700). Then test "
        "again."
    )
    assert step.command.splitlines()[0].endswith("--max-rows 28")


def test_what_labels_do_not_change_is_said_beside_what_they_settle():
    found = report.trust(run_of(["A", "B"] * 6), data_of(["A", "B"] * 6))
    found.uses["averages"] = replace(found.uses["averages"], word="yes")
    found.uses["person"] = replace(found.uses["person"], word="no")
    found.uses["ordering"] = replace(found.uses["ordering"], word="no")
    assert next_step(found).text == (
        "Label 28 new rows like these; that is likely to settle single verdicts (as things "
        "stand, with a yes); still no: in place of a person and putting systems in order. Then "
        "test again."
    )


# Wrong on half: a third of the mistakes are of each kind, so that no one kind leads.
@for_each(
    "run, data, labels, answers, what, method",
    [
        (run_of, data_of, "ABAB", "BAAB", "a stronger model and criteria", "bsm"),
        (items_of, texts_of, "xyz", "yzx", "guidelines from its mistakes", "audit"),
        (items_of, texts_of, [1, 3, 5], [3, 5, 1], "a stronger model and a clearer rubric", "ru"),
    ],
)
def test_what_to_change_fits_what_is_judged(run, data, labels, answers, what, method):
    found = report.trust(run(list(answers) * 20), data(list(labels) * 20))
    step = next_step(found)
    assert step.text.startswith(f"Try {what}; ")
    assert method in step.command


def test_labels_that_begin_the_count_are_the_nearest_step_and_settle_nothing():
    labels = ["unsafe"] * 3 + ["fine"] * 27
    step = next_step(report.trust(items_of(labels), texts_of(labels)))
    assert step.text.startswith("Label 50 new rows like these; until then nothing is known ")
    assert "likely" not in step.text


@pytest.mark.whole
def test_a_ranking_is_a_yes_where_most_neighbours_are_settled():
    # A system wins 70 % against the next one: of 30 rows a pair no step is settled, of 600 all.
    rng = np.random.default_rng(0)
    for rows, word in ((180, "not yet"), (3600, "yes")):
        pairs = [list(pair) for pair in combinations("abcd", 2)] * (rows // 6)
        labels = ["A" if rng.random() < 0.5 + 0.2 * (ord(b) - ord(a)) else "B" for a, b in pairs]
        data = data_of(labels)
        for row, systems in zip(data, pairs, strict=True):
            row["systems"] = systems
        answer = uses(run_of(labels), data)["ordering"]
        assert answer.word == word
        assert len(answer.parts) == 6
        assert (" Not clear: " in answer.text) == (word == "not yet")


# Each system wins half against each; of six, five steps are open, and three are named.
@for_each("names, more", [("abcd", ""), ("abcdef", " and 2 more")])
def test_a_list_of_open_steps_says_how_many_it_does_not_name(names, more):
    rows = [
        {"judge": side, "label": side, "systems": pair}
        for pair in combinations(names, 2)
        for side in "AB" * 5
    ]
    found: Any = report.trust_columns(rows, "judge", "label")
    answer = found.uses["ordering"]
    assert answer.missing.count(" before ") == 3
    assert answer.missing.endswith(f"unclear by the judge){more}")


# ---- a second annotator


def test_rows_on_which_people_differ_count_and_are_told():
    # People differ on 116 of 300; the judge is right wherever they agree: 58 of 300 are wrong.
    truth = [0, 1] * 150
    ann, bob = list(truth), [1 - t if i < 116 else t for i, t in enumerate(truth)]
    table = [{"gpt": t, "ann": a, "bob": b} for t, a, b in zip(truth, ann, bob, strict=True)]
    both: Any = report.trust_columns(table, "gpt", ["ann", "bob"])
    answer = both.uses["single"]
    assert answer.word == "not yet"
    assert both.wrong.result == pytest.approx(58 / 300)
    assert "On 116 rows no label has a majority; each person's" in answer.text
    assert f"on the other 184 rows 0{NBSP}%" in answer.text
    assert "Counted: all 300 rows" in answer.text


@pytest.mark.whole
@for_each("skill", [0.8, 0.9, 1.0])
def test_a_second_annotator_makes_no_judge_look_better(skill):
    rng, better = np.random.default_rng(5), 0
    for _ in range(8):
        truth = rng.integers(0, 2, 300)
        names = {"gpt": skill, "ann": 0.8, "bob": 0.8}
        columns = {k: np.where(rng.random(300) < p, truth, 1 - truth) for k, p in names.items()}
        rows = [
            dict(zip(columns, map(int, own), strict=True))
            for own in zip(*columns.values(), strict=True)
        ]
        trusted: list[Any] = [
            report.trust_columns(rows, "gpt", label) for label in ("ann", ["ann", "bob"])
        ]
        one, two = (each.uses for each in trusted)
        better += (two["single"].word == "yes") - (one["single"].word == "yes")
        for use in ("averages", "single"):
            assert (one[use].word, two[use].word) != ("no", "yes")
    assert better <= 0


@for_each("options", [{"margin": 0}, {"margin": 1.5}, {"max_wrong": -0.1}])
def test_what_a_policy_asks_for_are_shares(options):
    with pytest.raises(OptionError, match="must lie between 0 and 1"):
        TrustPolicy(**options)


def test_rows_without_a_label_are_the_ones_to_label():
    run = run_of([("A", "A"), ("A", "B"), ("B", "B"), ("A", "A")] * 5)
    data = data_of(["A", None, "B", "A"] * 5)
    html = report.trust(run, data).to_html()
    assert "first 5 rows without a label whose two orders disagree" in html


def seen(html: str) -> str:
    """The text of a page before anything is opened."""
    body = html.partition("<main>")[2]
    while "<details" in body:
        start = body.rindex("<details")
        end = body.index("</details>", start)
        summary = re.search(r"<summary.*?</summary>", body[start:end], re.DOTALL)
        body = body[:start] + (summary.group(0) if summary else "") + body[end + 10 :]
    return re.sub(r"<[^>]*>", " ", body).replace("&nbsp;", " ").replace(NBSP, " ")


def test_a_page_of_twelve_rows_is_read_in_a_minute():
    run = run_of([("A", "A"), ("B", "B"), ("A", "B"), ("B", "B"), ("A", "A"), ("B", "tie")] * 2)
    data = data_of(["A", "B"] * 6)
    for i, row in enumerate(data):
        row["category"] = "abc"[i % 3]
    text = seen(report.trust(run, data).to_html())
    assert len(text.split()) <= 350
    assert len(re.findall(r"\d[\d.,]*", text)) <= 60
    # The limits stand above, once, for what was measured.
    assert [text.count(title) for title in TITLES.values()] == [2, 2, 1, 1]
    assert text.count("two or more people") == 1


@pytest.mark.whole
def test_two_uses_share_the_chance_that_luck_is_taken_for_knowledge() -> None:
    # κ is 23 / 500 = .046 with an error of .0223: above 0 at 95 %, and not at 97.5 %.
    both = [("A", "A"), ("B", "B")] * 523 + [("A", "B"), ("B", "A")] * 477
    rows = [{"judge": said, "label": right} for said, right in both]
    found: Any = report.trust_columns(rows, "judge", "label")
    answer = found.uses["averages"]
    assert answer.limit[0] < answer.number.result.interval.low
    assert answer.word == "not yet"
    assert "not shown to go with the labels beyond chance" in answer.reason


@for_each("settled, word", [(0.5, "yes"), (0.6, "not yet")])
def test_a_ranking_is_one_where_the_stated_share_of_its_steps_is_settled(settled, word) -> None:
    # Of two steps x before y is settled and y before z is open, by either side.
    wins = {("x", "y"): 48, ("x", "z"): 60, ("y", "z"): 31}
    rows = [
        {"judge": side, "label": side, "systems": pair}
        for pair, won in wins.items()
        for side in "A" * won + "B" * (60 - won)
    ]
    policy = report.TrustPolicy(settled=settled)
    found: Any = report.trust_columns(rows, "judge", "label", policy=policy)
    answer = found.uses["ordering"]
    found_by_neighbours = (
        "of 2 pairs of neighbours in the ranking by the labels 1 clearly in the same order, "
        "0 swapped, 1 not clear"
    )
    assert (answer.brief, answer.word) == (found_by_neighbours, word)


def test_the_averages_of_parts_hold_at_once() -> None:
    said, right = ["A", "A", "B", "B"] * 10, ["A", "B", "B", "B"] * 10
    rows = [
        {"judge": a, "label": b, "category": name}
        for name in "xy"
        for a, b in zip(said, right, strict=True)
    ]
    found: Any = report.trust_columns(rows, "judge", "label")
    sides = [[float(each == "A") for each in column] for column in (said, right)]
    alone = metrics.paired_difference(*sides, spread=1.0, confidence=0.975)
    assert [part.result.interval for part in found.uses["averages"].parts] == [
        pytest.approx(alone.interval)
    ] * 2


def test_rows_on_which_people_differ_count_where_labels_weigh_alike() -> None:
    votes = [("0", "0"), ("1", "1")] * 20 + [("0", "1")] * 10
    rows = [{"judge": a, "ann": a, "bob": b} for a, b in votes]
    found: Any = report.trust_columns(rows, "judge", ["ann", "bob"])
    balanced = next(p for p in found.uses["single"].parts if p.key == "single.balanced")
    # Of 25 rows of each label, ten halves among them, all but five halves of 1 are right.
    assert balanced.result.n == 50
    assert balanced.result == pytest.approx(5 / 25 / 2)


def test_the_next_step_for_a_judge_in_a_column_is_a_column_and_names_the_others():
    table = [{"gpt": n % 2, "ann": 0, "input": "q", "output": f"t {n}"} for n in range(60)]
    answer: Any = report.trust_columns(table, judge="gpt", label="ann")
    answer.files = FileNames(["rows.csv"], "", ["--column", "label=ann"], ["--judge", "gpt"])
    step = next_step(answer)
    assert step.command == ("langchain-judges trust rows.csv --column label=ann --judge NEW-COLUMN")
    for n, row in enumerate(table):
        row |= {"ann": None} if n < 50 else {"ann": row["gpt"]}
    few: Any = report.trust_columns(table, judge="gpt", label="ann")
    few.files = answer.files
    assert "label rows.csv --column label=ann -o labels.jsonl" in next_step(few).command


def test_rows_without_a_label_are_no_failures_of_a_rule_that_needs_no_judge():
    answer = report.trust(run_of(["A"] * 6), data_of(["A", "B", "A", None, None, None]))
    for key in ("baseline.length", "baseline.majority", "baseline.lead"):
        assert answer[key].n_failed == {"no_label": 3}


def test_a_workbook_holds_shares_as_numbers_that_are_shown_as_percentages(tmp_path):
    answer = report.trust(run_of(["A"] * 6), data_of(["A", "B", "A"] * 2))
    answer.to_xlsx(tmp_path / "r.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx")["numbers"]
    head = [cell.value for cell in sheet[1]]
    cell = sheet[2][head.index("value")]
    assert (cell.value, cell.number_format) == (0.6667, "0.0%")


def test_a_summary_for_a_pull_request_names_the_systems_in_each_reason():
    duel = Duel(["old", "new"], Summary())
    [row] = run_of(["B"])
    row["verdict"]["rationale"] = "B is better: response A rambles."
    duel.add(row)
    assert "- r0: new is better: response old rambles." in duel.markdown()


def test_averages_of_two_systems_are_the_same_whichever_slots_they_stand_in():
    draw, told = np.random.default_rng(3), list[Any]()
    judge, people = (draw.choice(["A", "A", "B", "tie"], 60).tolist() for _ in range(2))
    for turned in (np.zeros(60, bool), draw.random(60) < 0.5):
        sides = {"A": "B", "B": "A", "tie": "tie"}
        ours, theirs = (
            [sides[a] if turn else a for a, turn in zip(own, turned, strict=True)]
            for own in (judge, people)
        )
        data = data_of([label if n < 40 else None for n, label in enumerate(theirs)])
        for row, turn in zip(data, turned, strict=True):
            row["systems"] = ["new", "old"][:: -1 if turn else 1]
        found = report.trust(run_of(ours), data)
        told.append([found.uses["averages"].reason, found.numbers["people.corrected"]])
    assert told[0] == told[1]
    assert told[0][0].startswith("new's win rate is ")
    assert told[0][1].title.startswith("new's win rate on all rows")
