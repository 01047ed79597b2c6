"""What Branch-Solve-Merge has beyond its paper: weights, batches, expected scores."""

import json
import math
import re

import pytest
from langchain_core.messages import AIMessage

from langchain_judges import create_absolute_judge, create_bsm_judge
from langchain_judges.errors import OptionError
from langchain_judges.methods.expected import expected, lead_chance, score_chances
from tests.cases import for_each
from tests.fakes import FakeChatModel

PAIR = {"input": "Why?", "output_a": "good good", "output_b": "bad"}


def scoring(table):
    """Return a model that scores A and B by criterion, or by criterion and order."""

    def line(name, prompt):
        a_first = prompt.find("good good") < prompt.find("bad")
        key = (name, "AB" if a_first else "BA")
        a, b = table[key] if key in table else table[name]
        first, second = (a, b) if a_first else (b, a)
        return {"score_1": first, "score_2": second, "explanation": name}

    def respond(prompt):
        if names := re.findall(r"^\d\. (\w+)", prompt, re.MULTILINE):
            lines = {f"criterion_{n}": line(each, prompt) for n, each in enumerate(names, 1)}
            return json.dumps(lines)
        return json.dumps(line(re.search(r"The criterion: (\w+)", prompt)[1], prompt))

    return FakeChatModel(replies=respond)


def run(table, criteria=None, pair=PAIR, **options):
    model = scoring(table)
    names = criteria or [name for name in table if isinstance(name, str)]
    return create_bsm_judge(model, criteria=names, **options).invoke(pair), model


def test_weights_decide_where_the_plain_sum_says_otherwise():
    # Sums 2 + 4 = 6 to 3 + 2 = 5; weighted 3*2 + 4 = 10 to 3*3 + 2 = 11 in each order.
    # Margin (3 * -1/8 + 1 * 2/8) / 4 = -1/32.
    table = {"Truth": (2, 3), "Tone": (4, 2)}
    plan = [{"name": "Tone"}, {"name": "Truth", "weight": 3}]
    assert run(table, plan)[0]["verdict"]["preference"] == "A"
    result, _ = run(table, plan, merge="weighted")
    assert result["verdict"]["preference"] == "B"
    assert result["verdict"]["scores"] == {"A": 20.0, "B": 22.0}
    assert result["verdict"]["score"] == 0.5 - 1 / 32
    assert [criterion["name"] for criterion in result["criteria"]] == ["Truth", "Tone"]


def test_a_plan_that_is_weighted_is_asked_for_weights():
    criteria = [{"name": "Truth", "description": "d", "weight": 7}]
    scores = {"score_1": 1, "score_2": 1, "explanation": ""}
    model = FakeChatModel(
        replies=lambda p: json.dumps({"criteria": criteria} if "List at most" in p else scores)
    )
    result = create_bsm_judge(model, merge="weighted").invoke(PAIR)
    assert result["criteria"][0]["weight"] == 7
    assert "Its weight says" in model.prompts[0]


@for_each("weight", [0, -1, True, "much", float("nan")])
def test_a_weight_is_a_number_above_zero(weight):
    with pytest.raises(OptionError, match="`criteria` must be a list"):
        create_bsm_judge(FakeChatModel(), criteria=[{"name": "Tone", "weight": weight}])


FIVE = ("Truth", "Depth", "Clarity", "Tone", "Length")


@for_each(("size", "calls"), [(1, 10), (2, 6), (3, 4), (5, 2)])
def test_several_criteria_in_one_call_give_the_same_scores(size, calls):
    table = {name: (1 + n, 5 - n) for n, name in enumerate(FIVE)}
    one, _ = run(table)
    result, model = run(table, batch_criteria=size)
    judge = create_bsm_judge(model, criteria=list(FIVE), batch_criteria=size)
    assert len(model.prompts) == judge.config["metadata"]["calls"] == calls
    key = lambda line: (line["criterion"], line["order"])  # noqa: E731
    assert sorted(result["subscores"], key=key) == sorted(one["subscores"], key=key)
    assert result["verdict"]["scores"] == one["verdict"]["scores"]


def tokens_of(text, offered):
    """Return a token for each character, with probabilities where they are given."""
    return [
        {
            "token": character,
            "logprob": 0.0,
            "top_logprobs": [
                {"token": token, "logprob": logprob} for token, logprob in offered.get(at, ())
            ],
        }
        for at, character in enumerate(text)
    ]


def message(text, offered):
    tokens = tokens_of(text, offered)
    return AIMessage(text, response_metadata={"logprobs": {"content": tokens}})


HALF = -0.6931471805599453
QUARTER = 2 * HALF
REPLY = '{"score_1": 4, "score_2": 2, "explanation": ""}'
OFFERED = {
    # 4 and 5 at a half each: 4.5. Of 2 (a half), 1 (a quarter) and 9, which is no score:
    # (2 * 1/2 + 1 * 1/4) / (3/4) = 5/3.
    REPLY.index("4"): [("4", HALF), ("5", HALF)],
    REPLY.index(" 2") + 1: [("2", HALF), ("1", QUARTER), ("9", QUARTER)],
}


def test_the_expected_score_is_the_mean_over_what_was_offered():
    first, second = score_chances(message(REPLY, OFFERED), json.loads(REPLY), (1, 5))[""]
    assert first == {"4": pytest.approx(0.5), "5": pytest.approx(0.5)}
    assert second == {"2": pytest.approx(2 / 3), "1": pytest.approx(1 / 3)}
    assert [expected(first), expected(second)] == [pytest.approx(4.5), pytest.approx(5 / 3)]


def test_chances_of_several_criteria_stand_under_their_names():
    text = json.dumps({"criterion_1": json.loads(REPLY)})
    at = text.index("4"), text.index(": 2") + 2
    offered = {at[0]: [("4", 0.0)], at[1]: [("2", HALF), ("3", HALF)]}
    result = score_chances(message(text, offered), json.loads(text), (1, 5))
    assert result == {"criterion_1": [{"4": 1.0}, {"2": 0.5, "3": 0.5}]}


@for_each(
    ("preference", "chance"),
    # Leads by the first criterion 1 or -1 (a half each), by the second, which counts twice,
    # 0 (a half), 2 (a quarter) or -2 (a quarter): sums 1 and -1 (1/4 each), 3, 1, -1, -3
    # (1/8 each). Nothing sums to 0.
    [("A", 0.5), ("B", 0.5), ("tie", 0.0)],
)
def test_the_chance_of_a_lead_is_summed_over_all_scores(preference, chance):
    first = ({"4": 0.5, "2": 0.5}, {"3": 1.0}, 1.0)
    second = ({"3": 0.5, "2": 0.25, "4": 0.25}, {"3": 1.0}, 2.0)
    assert lead_chance([first, second], preference) == pytest.approx(chance)


CLOSE = {
    # A: 4 or 3, a half each. B: 2, three quarters, or 4, a quarter.
    REPLY.index("4"): [("4", HALF), ("3", HALF)],
    REPLY.index(" 2") + 1: [("2", math.log(0.75)), ("4", 2 * HALF)],
}


@for_each(
    ("factory", "options", "chance"),
    # A's 3 or 4 against B's 2 (3/4) or 4 (1/4): A leads where B has 2, 3/4. Over two criteria
    # leads are 2 and 1 (3/8 each), 0 and -1 (1/8 each): the sum is above 0 but for the first's
    # -1 with -1, 0, 1 (1/8 * 5/8), 0 with 0, -1 (1/8 * 2/8), 1 with -1 (3/8 * 1/8): 10/64.
    [
        (create_bsm_judge, {"criteria": ["Truth"]}, 0.75),
        (create_bsm_judge, {"criteria": ["Truth", "Tone"]}, 54 / 64),
        (create_absolute_judge, {"scale": (1, 5)}, 0.75),
    ],
)
def test_expected_scores_bring_a_confidence(factory, options, chance):
    model = FakeChatModel(replies=lambda _: message(REPLY, CLOSE))
    verdict = factory(model, orders="none", score="mean", **options).invoke(PAIR)["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["confidence"] == pytest.approx(chance)
    assert verdict["confidence_source"] == "logprobs"


def test_expected_scores_of_orders_that_disagree_have_no_confidence():
    model = FakeChatModel(replies=lambda _: message(REPLY, CLOSE))
    judge = create_bsm_judge(model, criteria=["Truth"], score="mean")
    verdict = judge.invoke(PAIR)["verdict"]
    assert (verdict["preference"], verdict["flipped"]) == ("tie", True)
    assert (verdict["confidence"], verdict["confidence_source"]) == (None, "none")


def test_without_the_probabilities_of_other_scores_the_given_score_counts():
    assert score_chances(message(REPLY, {}), json.loads(REPLY), (1, 5)) == {}
    result, _ = run({"Truth": (4, 2)}, score="mean")
    assert result["verdict"]["scores"] == {"A": 8.0, "B": 4.0}
    assert {f["reason"] for f in result["verdict"]["failures"]} == {"no_logprobs"}


def test_expected_scores_are_what_is_summed():
    model = FakeChatModel(replies=lambda _: message(REPLY, OFFERED))
    judge = create_bsm_judge(model, criteria=["Truth"], orders="none", score="mean")
    assert judge.invoke(PAIR)["verdict"]["scores"] == {"A": 4.5, "B": pytest.approx(5 / 3)}


def test_absolute_scores_may_be_expectations_too():
    model = FakeChatModel(replies=lambda _: message(REPLY, OFFERED))
    judge = create_absolute_judge(model, orders="none", score="mean", scale=(1, 5))
    assert judge.invoke(PAIR)["verdict"]["scores"] == {"A": 4.5, "B": pytest.approx(5 / 3)}
    plain = create_absolute_judge(
        FakeChatModel(replies=lambda _: REPLY), orders="none", score="mean"
    )
    verdict = plain.invoke(PAIR)["verdict"]
    assert verdict["scores"] == {"A": 4.0, "B": 2.0}
    assert [failure["reason"] for failure in verdict["failures"]] == ["no_logprobs"]
