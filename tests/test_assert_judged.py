"""`assert_judged`: what passes, what is asked again, what a failing test says."""

import re

import pytest

from langchain_judges import create_relative_judge, create_rubric_judge
from langchain_judges.errors import OptionError
from langchain_judges.runs import assert_judged
from tests.cases import for_each
from tests.fakes import FakeChatModel


def item(name, **more):
    return {"id": name, "input": f"Where is {name}?", "output": "Here.", **more}


def says(labels):
    """A judge that gives each row's labels one after the other, and its model."""
    rest = {name: list(each) for name, each in labels.items()}

    def answer(prompt):
        name = re.search(r"Where is (\w+)\?", prompt)[1]
        return {"explanation": f"about {name}", "label": rest[name].pop(0)}

    model = FakeChatModel(replies=answer)
    return create_rubric_judge(model, rubric="Is it polite?", best=1), model


def test_only_a_row_that_failed_is_asked_again():
    judge, model = says({"a": ["1"], "b": ["0", "1"]})
    results = assert_judged(judge, [item("a"), item("b")])
    assert [row["verdict"]["label"] for row in results] == [1, 1]
    assert len(model.prompts) == 3


@for_each("best, rows", [(1, [item("a")]), (None, [item("a", label=1)])])
def test_a_judge_whose_good_label_is_said_or_not_asked_for_passes_in_silence(best, rows):
    model = FakeChatModel(replies=lambda _: {"explanation": "e", "label": "1"})
    assert_judged(create_rubric_judge(model, rubric="Rude?", best=best), rows)


def test_a_test_that_takes_a_yes_for_good_says_so():
    model = FakeChatModel(replies=lambda _: {"explanation": "Rude!", "label": "1"})
    judge = create_rubric_judge(model, rubric=[{"name": "Rude", "description": "Is it rude?"}])
    with pytest.warns(UserWarning, match=r"Of 'Rude', 1 \(yes\) counts as good: .*`best=0`"):
        assert_judged(judge, [item("a"), item("b", label=1)])
    faults = create_rubric_judge(model, rubric="Is it rude?", best=0)
    with pytest.raises(AssertionError, match=r"score 0\.00"):
        assert_judged(faults, [item("a")])


def test_a_failing_test_names_the_rows_and_why():
    judge, _ = says({"a": ["1"], "b": ["0", "0"]})
    with pytest.raises(AssertionError) as info:
        assert_judged(judge, [item("a"), item("b")])
    counted, row = str(info.value).split("\n")
    assert (counted[:6], row) == ("1 of 2", "- b: 0 (score 0.00). about b")


def test_without_a_label_the_middle_of_the_scale_passes():
    replies = [{"explanation": "so so", "label": label} for label in ("3", "2")]
    judge = create_rubric_judge(FakeChatModel(replies=replies), rubric="helpfulness")
    assert_judged(judge, [item("a")], tries=1)
    with pytest.raises(AssertionError, match=r"a: 2 \(score 0.25\)"):
        assert_judged(judge, [item("a")], tries=1)


def test_a_pair_without_a_label_passes_unless_b_is_better():
    def prefers(good):
        return lambda prompt: {
            "explanation": "why",
            "preference": "1" if prompt.index(good) < prompt.index("other") else "2",
        }

    pair = {"input": "Why?", "output_a": "mine", "output_b": "other"}
    assert_judged(create_relative_judge(FakeChatModel(replies=prefers("mine"))), [pair])
    worse = {"input": "Why?", "output_a": "other", "output_b": "mine"}
    with pytest.raises(AssertionError, match="row 1: B"):
        assert_judged(create_relative_judge(FakeChatModel(replies=prefers("mine"))), [worse])


def test_a_row_that_was_not_judged_fails():
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: "?"), rubric="Is it polite?")
    with pytest.raises(AssertionError, match="a: not judged"):
        assert_judged(judge, [item("a")], passes=lambda row: True)


def test_no_rows_are_no_passing_test():
    with pytest.raises(OptionError, match="at least one row"):
        assert_judged(says({})[0], [])
