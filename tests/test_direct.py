"""The baselines against their papers: calls, order rules, tie rules, samples, edge cases."""

import json
import math
import re

import pytest

from langchain_judges import (
    create_absolute_judge,
    create_cot_judge,
    create_direct_judge,
    create_llm_score_judge,
    create_plan_solve_judge,
    create_relative_judge,
    create_self_consistency_judge,
    load_judge,
)
from langchain_judges.asking.reply_text import SLOT_FORMS, spoken_label
from langchain_judges.errors import OptionError
from langchain_judges.methods.direct.tally import CHOICE
from langchain_judges.methods.tasks import WORKED
from langchain_judges.testing import reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, with_logprobs
from tests.model_server import plan

PAIR = {"input": "Why?", "output_a": "good good", "output_b": "bad"}
SWAPPED = {**PAIR, "output_a": "bad", "output_b": "good good"}


def slots(prompt):
    """The two texts as the prompt shows them; remembered ones come after them."""
    fenced = r"<((?:response|passage)-[12]-\w+)>\n(.*?)\n</\1>"
    return [text for _, text in re.findall(fenced, prompt, re.S)][:2]


def favours_good(prompt):
    """The slot of the text with more of the word `good`, or a tie."""
    first, second = (text.count("good") for text in slots(prompt))
    return "1" if first > second else "2" if second > first else "tie"


def respond(prompt, choose=favours_good):
    """Plan two criteria; choose or score as `choose(prompt)` says."""
    if '"criteria"' in prompt:
        return plan("Depth", "Tone")
    choice = choose(prompt)
    first, second = {"1": (4, 2), "2": (2, 4)}.get(choice, (3, 3))
    if '"criterion_1"' in prompt:
        line = {"score_1": first, "score_2": second}
        return json.dumps({"criterion_1": line, "criterion_2": line, "explanation": "sums"})
    if '"score_1"' in prompt:
        return json.dumps({"score_1": first, "score_2": second, "explanation": "scored"})
    return json.dumps({"explanation": "compared", "preference": choice})


def asked(factory, pair=PAIR, choose=favours_good, **options):
    model = FakeChatModel(replies=lambda prompt: respond(prompt, choose))
    return factory(model, **options).invoke(pair), model


# The papers' call counts for one pair: SC² eight samples, BSM five in each of two orders.
CALLS = {
    "relative": 2,
    "absolute": 2,
    "direct": 1,
    "cot": 1,
    "cot_sc": 8,
    "relative_sc": 10,
    "plan_solve": 3,
    "llm_score": 1,
}
BOTH_ORDERS = {"relative", "absolute", "relative_sc", "plan_solve"}


@for_each("method", CALLS)
async def test_calls_and_orders_are_those_of_the_papers(method):
    model = FakeChatModel(replies=respond)
    judge = load_judge(method, model)
    result = judge.invoke(PAIR)
    verdict = result["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["score"] == 1.0
    assert len(model.prompts) == verdict["usage"]["calls"] == CALLS[method]
    assert judge.config["metadata"]["calls"] == CALLS[method]
    assert verdict["flipped"] is (False if method in BOTH_ORDERS else None)
    assert judge.config["metadata"]["method"] == method
    assert json.loads(json.dumps(result)) == result
    later = load_judge(method, FakeChatModel(replies=respond))
    assert await later.ainvoke(PAIR) == result


def test_mean_scores_weigh_how_far_the_orders_lead():
    # A first: 9 to 2 for A; B first: 5 to 4 for B. In all 13 to 7 for A.
    def answer(prompt):
        first = slots(prompt)[0] == PAIR["output_a"]
        a, b = (9, 2) if first else (4, 5)
        one, two = (a, b) if first else (b, a)
        return json.dumps({"score_1": one, "score_2": two, "explanation": "x"})

    model = FakeChatModel(replies=answer)
    strict = create_absolute_judge(model).invoke(PAIR)["verdict"]
    assert (strict["preference"], strict["flipped"]) == ("tie", True)
    assert strict["scores"] == {"A": 13.0, "B": 7.0}
    mean = create_absolute_judge(model, orders="score_mean").invoke(PAIR)["verdict"]
    assert mean["preference"] == "A"
    assert mean["score"] > 0.5


def test_samples_are_voted_on_and_carry_distinct_seeds():
    replies = iter("11121221")
    result, model = asked(create_self_consistency_judge, choose=lambda p: next(replies))
    verdict = result["verdict"]
    assert (verdict["preference"], verdict["score"]) == ("A", 5 / 8)
    assert (verdict["confidence"], verdict["confidence_source"]) == (5 / 8, "samples")
    assert verdict["scores"] == {"A": 5.0, "B": 3.0}
    assert [ballot["sample"] for ballot in result["ballots"]] == list(range(8))
    assert {settings["temperature"] for settings in model.settings} == {0.7}
    assert len({settings["seed"] for settings in model.settings}) == 8
    _, other = asked(create_self_consistency_judge, seed=1)
    seeds = {settings["seed"] for settings in model.settings}
    assert not seeds & {settings["seed"] for settings in other.settings}


def test_even_samples_of_one_order_are_decided_by_a_seeded_coin():
    def toss(pair, seed):
        replies = iter("1122")
        method, options = create_self_consistency_judge, {"samples": 4, "seed": seed}
        result, _ = asked(method, pair, lambda prompt: next(replies), **options)
        return result["verdict"]

    sides = [toss(PAIR, seed)["preference"] for seed in range(6)]
    assert set(sides) == {"A", "B"}
    assert [toss(PAIR, seed)["preference"] for seed in range(6)] == sides
    # The coin falls on a text and not on a place.
    mirrored = [toss(SWAPPED, seed)["preference"] for seed in range(6)]
    assert mirrored == ["A" if side == "B" else "B" for side in sides]
    verdict = toss(PAIR, 0)
    assert "a seeded coin decided" in verdict["rationale"]
    assert verdict["confidence"] == 0.5
    assert (verdict["score"] > 0.5) == (verdict["preference"] == "A")


@for_each(
    ("first", "second", "preference"),
    [
        # Labels by slot, five with A first and five with B first.
        ("11122", "22211", "A"),
        ("11122", "11122", "tie"),  # A, then B
        ("1122t", "22211", "tie"),  # no plurality, then A
        ("11t22", "11t22", "tie"),
    ],
)
def test_each_order_has_its_own_plurality(first, second, preference):
    queues = {"good good": iter(first), "bad": iter(second)}

    def choose(prompt):
        reply_text = next(queues[slots(prompt)[0]])
        return "tie" if reply_text == "t" else reply_text

    result, _ = asked(create_self_consistency_judge, choose=choose, prompt="relative")
    assert result["verdict"]["preference"] == preference


def test_a_quorum_of_samples_stands_for_all_and_less_does_not():
    def some(valid):
        replies = iter(["1"] * valid + ["neither"] * (8 - valid))
        method = create_self_consistency_judge
        result, _ = asked(method, choose=lambda prompt: next(replies), repairs=0)
        return result["verdict"]

    stands = some(5)
    assert (stands["preference"], stands["score"]) == ("A", 1.0)
    assert len(stands["failures"]) == 3
    assert all(failure["unit"].startswith("sample ") for failure in stands["failures"])
    fails = some(4)
    assert fails["preference"] is None
    assert "4 of 8 samples" in fails["rationale"]


@for_each(
    ("text", "label"),
    [
        ("Preferred: 2.", "2"),
        ("Because.\nPreferred: 2.", None),
        ("**Preferred:** Response 1", "1"),
        ("Verdict: **B**", "2"),
        ("**B**", None),
        ("Preferred: 1 or 2", None),
        ("Preferred: 1\nPreferred: unsure", None),
        ("", None),
    ],
)
def test_labels_in_plain_words(text, label):
    choice = spoken_label(text, SLOT_FORMS)
    assert (choice.label if choice else None) == label
    if choice:
        assert text[slice(*choice.span)].lower() in {label, "a", "b"}


def test_a_criterion_that_one_order_lacks_is_left_out_of_both():
    def answer(prompt):
        if "really differ" in prompt:
            return plan("Depth", "Tone", "Order")
        lines = {f"criterion_{n}": {"score_1": 3, "score_2": 3} for n in (1, 2, 3)}
        if slots(prompt)[0] == PAIR["output_a"]:
            lines["criterion_1"] = {"score_1": 5, "score_2": 1}
            lines["criterion_2"] = {"score_1": 4, "score_2": 3}
        else:
            lines["criterion_1"] = {"score_1": 9, "score_2": 9}
            lines["criterion_2"] = {"score_1": 2, "score_2": 3}
        return json.dumps({**lines, "explanation": "x"})

    model = FakeChatModel(replies=answer)
    result = create_plan_solve_judge(model).invoke(PAIR)
    verdict = result["verdict"]
    # Tone and Order remain: 4 + 3 to 3 + 3 with A first, 3 + 3 to 2 + 3 with B first.
    assert verdict["scores"] == {"A": 13.0, "B": 11.0}
    assert verdict["preference"] == "A"
    assert {f["unit"] for f in verdict["failures"]} >= {"Depth, B first"}
    assert [c["name"] for c in result["criteria"]] == ["Depth", "Tone", "Order"]
    assert len(result["subscores"]) == 5


@for_each("shots", [0, 5])
def test_worked_examples_come_first_and_as_many_as_asked(shots):
    _, model = asked(create_cot_judge, shots=shots)
    head = model.prompts[0].split("<request-")[0]
    assert len(re.findall(r"^Example \d", head, re.M)) == shots
    assert len(re.findall(r'"preference": "[12]"', head)) == shots


@for_each(
    ("factory", "options", "text"),
    [
        (create_cot_judge, {"shots": 6}, "`shots` must be between 0 and 5"),
        (create_cot_judge, {"examples": WORKED[:2]}, "as far as `shots` says"),
        (create_cot_judge, {"examples": [{**WORKED[0], "id": 7}], "shots": 1}, "got 'id' in [{"),
        (create_cot_judge, {"examples": [{"input": "x"}], "shots": 1}, "must be a list of worked"),
        (create_direct_judge, {"aspects": ["a", "A"]}, "distinct"),
        (create_self_consistency_judge, {"prompt": "bsm"}, "'cot', 'relative', got 'bsm'"),
        (create_self_consistency_judge, {"samples": 3, "min_valid": 4}, "at most 3"),
    ],
)
def test_wrong_options_are_named_with_their_rule(factory, options, text):
    with pytest.raises(OptionError, match=re.escape(text)):
        factory(FakeChatModel(), **options)


def in_tokens(call):
    """Answer with a token of -0.2 for the label and of -0.5 for each other character."""
    assert call.body["logprobs"]
    text = json.dumps({"explanation": "why", "preference": favours_good(call.prompt)})
    at = text.rindex('"', 0, text.rindex('"')) + 1
    surety = [math.exp(-0.2 if i == at else -0.5) for i in range(len(text))]
    return reply(with_logprobs(*zip(text, surety, strict=True)))


def test_the_score_is_the_probability_of_the_label(serve):
    direct = create_direct_judge(chat(serve(in_tokens)))
    verdict = direct.invoke(PAIR)["verdict"]
    assert verdict["score"] == verdict["confidence"] == pytest.approx(math.exp(-0.2))
    assert verdict["confidence_source"] == "logprobs"
    assert direct.invoke(SWAPPED)["verdict"]["score"] == pytest.approx(1 - math.exp(-0.2))
    relative = create_relative_judge(chat(serve(in_tokens))).invoke(PAIR)["verdict"]
    assert relative["score"] == pytest.approx(math.exp(-0.2))


def test_llm_score_is_the_confidence_of_a_choice_for_the_candidate(serve):
    judge = create_llm_score_judge(chat(serve(in_tokens)))
    result = judge.invoke(PAIR)
    # Three letters of the reason at -0.5 and the label at -0.2: the mean is -0.425.
    assert result["llm_score"] == pytest.approx(math.exp(-0.425))
    assert result["verdict"]["scores"] == {"A": pytest.approx(math.exp(-0.425)), "B": 0.0}
    assert result["verdict"]["score"] == pytest.approx(math.exp(-0.2))
    assert result["verdict"]["failures"] == []
    outcome = judge.invoke(SWAPPED)
    assert (outcome["llm_score"], outcome["verdict"]["preference"]) == (0.0, "B")


def test_a_remark_on_one_aspect_is_no_verdict():
    remark = "Better for readers who like more detail: 1\nOn the whole the second one is right."
    assert CHOICE.parse(remark) is None
    assert CHOICE.parse("Better: 1") == {"explanation": "", "preference": "1"}


@for_each("create", [create_relative_judge, create_absolute_judge])
def test_criteria_of_the_callers_own_are_all_that_counts(create):
    model = FakeChatModel(replies=respond)
    create(model, criteria={"Tone": "polite?", "Length": ""}).invoke(PAIR)
    for prompt in model.prompts:
        assert ":\n- Tone: polite?\n- Length\n" in prompt
        assert "by these criteria" in prompt
        assert not re.search("right beats wrong|wrong final answer", prompt)
    with pytest.raises(OptionError, match="criteria"):
        create(model, criteria="Tone")
