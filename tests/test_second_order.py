"""The second order where the first is unsure: what is sent, and what a result says of it."""

import json
import re
from typing import Any

import pytest

from langchain_judges import (
    create_absolute_judge,
    create_bsm_judge,
    create_cot_judge,
    create_drpe_judge,
    create_llm_score_judge,
    create_plan_solve_judge,
    create_relative_judge,
    create_sc2_judge,
    create_self_consistency_judge,
    judge_many,
)
from langchain_judges.errors import OptionError
from langchain_judges.methods.second_order import first_of
from langchain_judges.testing import with_logprobs
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.test_direct import PAIR, SWAPPED, favours_good, respond, slots
from tests.test_drpe import respond as panel_reply

ROW: Any = PAIR
FIRST = first_of(ROW)
SHOWN_FIRST = PAIR["output_a" if FIRST == "AB" else "output_b"]


def labelled(
    probability, factory=create_relative_judge, pair=PAIR, choose=favours_good, **options
):
    """Return the result and the model of a judge whose labels have this probability."""

    def say(prompt):
        label = choose(prompt)
        start = ('{"explanation": "because", "preference": "', 1)
        return with_logprobs(start, (label, probability), ('"}', 1))

    model = FakeChatModel(replies=say)
    return factory(model, **{"second_order": 0.9, **options}).invoke(pair), model


def test_a_sure_first_order_is_the_only_one_that_is_sent():
    result, model = labelled(0.95)
    assert len(model.prompts) == 1
    assert slots(model.prompts[0])[0] == SHOWN_FIRST
    verdict = result["verdict"]
    assert (verdict["preference"], verdict["flipped"]) == ("A", None)
    assert verdict["score"] == verdict["confidence"] == pytest.approx(0.95)
    assert result["first_order"] == {
        "order": FIRST,
        "certainty": pytest.approx(0.95),
        "second_asked": False,
    }
    assert "alone: 0.95 sure, and 0.9 is enough." in verdict["rationale"]


def test_an_unsure_first_order_is_followed_by_the_other_and_both_decide():
    # P(A) is 0.6 in each order, 0.95 where nothing waits.
    result, model = labelled(0.6)
    shown = [slots(prompt)[0] for prompt in model.prompts]
    assert shown[0] == SHOWN_FIRST
    assert set(shown) == {"good good", "bad"}
    assert result["verdict"]["score"] == pytest.approx(0.6)
    assert result["verdict"]["flipped"] is False
    assert result["first_order"]["second_asked"]
    assert "alone" not in result["verdict"]["rationale"]


def test_an_unsure_judge_of_places_is_found_out():
    result, _ = labelled(0.6, choose=lambda _: "1")
    assert (result["verdict"]["preference"], result["verdict"]["flipped"]) == ("tie", True)


def test_swapping_the_texts_mirrors_a_verdict_by_one_order():
    first, second = (labelled(0.95, pair=pair)[0] for pair in (PAIR, SWAPPED))
    assert second["verdict"]["preference"] == "B"
    assert {first["first_order"]["order"], second["first_order"]["order"]} == {"AB", "BA"}


def test_each_order_is_first_for_about_half_of_the_pairs():
    pairs: list[Any] = [{**ROW, "input": str(n)} for n in range(200)]
    orders = [first_of(pair) for pair in pairs]
    assert 70 < orders.count("AB") < 130


@for_each("factory", [create_relative_judge, create_cot_judge])
def test_without_probabilities_both_orders_are_asked(factory):
    model = FakeChatModel(replies=respond)
    result = factory(model, orders="strict", second_order=0.9).invoke(PAIR)
    assert len(model.prompts) == 2
    assert result["first_order"]["certainty"] is None
    assert result["verdict"]["flipped"] is False


def test_a_first_order_without_a_verdict_is_not_followed():
    # One call and its repair; with one order missing there is no verdict whatever the other is.
    model = FakeChatModel(replies=lambda _: "I would rather not say.")
    result = create_relative_judge(model, second_order=0.9).invoke(PAIR)
    assert result["verdict"]["preference"] is None
    assert len(model.prompts) == 2
    assert len({slots(prompt)[0] for prompt in model.prompts}) == 1


@for_each(
    ("factory", "least", "calls"),
    # 4 to 2 is a lead of 2 of the 9 points from 1 to 10, and of 2 of 4 by two criteria.
    [
        (create_absolute_judge, 0.2, 1),
        (create_absolute_judge, 0.3, 2),
        (create_plan_solve_judge, 0.5, 2),
        (create_plan_solve_judge, 0.6, 3),
    ],
)
def test_of_scores_the_lead_on_the_scale_decides(factory, least, calls):
    model = FakeChatModel(replies=respond)
    result = factory(model, second_order=least).invoke(PAIR)
    assert len(model.prompts) == calls
    assert result["verdict"]["preference"] == "A"


def test_samples_that_agree_leave_out_the_samples_of_the_second_order():
    agreed = FakeChatModel(replies=respond)
    options: Any = {"prompt": "relative", "second_order": 0.8}
    result = create_self_consistency_judge(agreed, **options).invoke(PAIR)
    assert len(agreed.prompts) == 5
    assert result["verdict"]["confidence"] == 1
    seen = []

    def split(prompt):
        seen.append(prompt)
        return respond(prompt, lambda p: favours_good(p) if len(seen) % 5 > 1 else "tie")

    divided = FakeChatModel(replies=split)
    create_self_consistency_judge(divided, **options).invoke(PAIR)
    # Three of five agree in the first order.
    assert len(divided.prompts) == 10


def test_branch_solve_merge_solves_one_order_where_its_lead_is_clear():
    # Two criteria of 4 to 2: a lead of half of the scale.
    model = FakeChatModel(replies=respond)
    judge = create_bsm_judge(model, criteria=["Depth", "Tone"], second_order=0.5)
    result = judge.invoke(PAIR)
    assert len(model.prompts) == 2
    assert {line["order"] for line in result["subscores"]} == {FIRST} == set(result["by_order"])
    assert result["verdict"]["scores"] == {"A": 8, "B": 4}
    assert result["verdict"]["score"] == 0.75
    again = FakeChatModel(replies=respond)
    create_bsm_judge(again, criteria=["Depth", "Tone"], second_order=0.6).invoke(PAIR)
    assert len(again.prompts) == 4


@for_each(("dissenters", "calls"), [(0, 3), (1, 6)])
def test_a_panel_votes_once_where_it_is_united(dissenters, calls):
    # Two of three lead by a third of the votes.
    def vote(prompt, role):
        slot = "1" if prompt.find("good good") < prompt.find("bad") else "2"
        return {"1": "2", "2": "1"}[slot] if int(role[4:]) <= dissenters else slot

    model = FakeChatModel(replies=lambda prompt: panel_reply(prompt, vote))
    roles = [f"Role{n}: reads" for n in range(1, 4)]
    options: Any = {"voting": {"batch": False}, "orders": "strict", "second_order": 0.9}
    result = create_drpe_judge(model, roles=roles, **options).invoke(PAIR)
    assert len(model.prompts) == calls
    assert result["verdict"]["preference"] == "A"
    assert result["verdict"]["flipped"] is (None if calls == 3 else False)


@for_each(("probability", "calls"), [(0.95, 2), (0.6, 3)])
def test_sc2_asks_its_second_preference_where_the_first_is_unsure(probability, calls):
    cells = {"common": "a text", "only_1": "alpha", "only_2": "omega"}

    def say(prompt):
        if "set them side by side" in prompt:
            return json.dumps({"aspect_1": cells})
        label = favours_good(prompt)
        start = ('{"comparison": "c", "preferred": "', 1)
        return with_logprobs(start, (label, probability), ('"}', 1))

    model = FakeChatModel(replies=say)
    options: Any = {"aspects": ["depth"], "samples": 1, "orders": "strict", "second_order": 0.9}
    result = create_sc2_judge(model, **options).invoke(PAIR)
    assert len(model.prompts) == calls
    assert result["verdict"]["preference"] == "A"
    assert len(result["choices"]) == calls - 1


def test_the_score_without_roles_weighs_the_order_that_was_asked():
    result, model = labelled(0.95, create_llm_score_judge, orders="strict")
    assert len(model.prompts) == 1
    assert result["llm_score"] == result["verdict"]["scores"]["A"] > 0.9


def test_a_row_of_a_run_says_which_order_was_asked():
    model = FakeChatModel(replies=respond)
    judge = create_absolute_judge(model, second_order=0.2)
    (row,) = judge_many(judge, [PAIR], progress=False)
    assert row["first_order"]["order"] == FIRST
    assert not row["first_order"]["second_asked"]


def test_without_the_option_nothing_waits_and_nothing_is_said():
    model = FakeChatModel(replies=respond)
    assert "first_order" not in create_relative_judge(model).invoke(PAIR)
    assert len(model.prompts) == 2


@for_each(
    ("factory", "options", "text"),
    [
        (create_relative_judge, {"orders": "none"}, "not `orders='none'`"),
        (create_relative_judge, {"second_order": 1.5}, "`second_order` must be 'always'"),
        (create_bsm_judge, {"adaptive": True}, "does not go with `adaptive`"),
        (create_bsm_judge, {"merge": "model"}, "does not go with `merge='model'`"),
        (create_sc2_judge, {}, "not `orders='none'`"),
    ],
)
def test_a_first_order_that_cannot_decide_is_refused(factory, options, text):
    with pytest.raises(OptionError, match=re.escape(text)):
        factory(FakeChatModel(), **{"second_order": 0.9, **options})
