"""Branch-Solve-Merge against its paper: call counts, settings, edge cases, properties."""

import json
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.prompts import ChatPromptTemplate

from langchain_judges import create_bsm_judge
from langchain_judges.errors import OptionError
from tests.cases import for_each
from tests.fakes import FakeChatModel, goods, judged_by, turns

PAIR = {"input": "Why?", "output_a": "good good", "output_b": "bad"}
SWAPPED = {"input": "Why?", "output_a": "bad", "output_b": "good good"}


def scripted(replies=None, **also):
    """A model that answers `replies(prompt)`, or as `judged_by(goods)` where None."""
    default = judged_by(goods)
    return FakeChatModel(replies=lambda p: (replies and replies(p)) or default(p), **also)


def is_solve(prompt):
    return '"score_1"' in prompt


def judged(pair=PAIR, replies=None, **options):
    model = scripted(replies)
    return create_bsm_judge(model, **options).invoke(pair), model


def test_a_pair_is_judged_as_algorithm_1_says():
    # Five criteria, A scores 3 and B scores 1 in both orders: totals 2*5*3 and 2*5*1,
    # margin (3 - 1) / (2 * 4) = 0.25.
    result, model = judged()
    verdict = result["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["scores"] == {"A": 30.0, "B": 10.0}
    assert verdict["score"] == 0.75
    assert verdict["flipped"] is False
    assert verdict["failures"] == []
    assert verdict["usage"]["calls"] == len(model.prompts) == 11
    assert verdict["usage"]["input_tokens"] == 77
    assert {step: u["calls"] for step, u in verdict["usage"]["by_step"].items()} == {
        "branch": 1,
        "solve": 10,
    }


COUNTS = [
    ({}, 11),
    ({"max_criteria": 2}, 5),
    ({"reuse_plan": False}, 12),
    ({"merge": "model"}, 13),
    ({"samples": 5}, 51),
    ({"orders": "none"}, 6),
    ({"reference_model": FakeChatModel()}, 12),
    ({"criteria": ["Depth"], "merge": "model", "samples": 3}, 8),
]


@for_each(("options", "calls"), COUNTS)
def test_calls_equal_the_closed_forms(options, calls):
    result, model = judged(**options)
    reference = options.get("reference_model")
    call_count = len(model.prompts) + (len(reference.prompts) if reference else 0)
    assert call_count == result["verdict"]["usage"]["calls"] == calls
    assert create_bsm_judge(model, **options).config["metadata"]["calls"] == calls
    if reference:
        reference.prompts.clear()


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    a=st.integers(0, 4),
    b=st.integers(0, 4),
    orders=st.sampled_from(["strict", "lenient", "score_mean", "none"]),
    merge=st.sampled_from(["sum", "model"]),
)
def test_the_score_says_whom_the_verdict_prefers(a, b, orders, merge):
    pair = {"input": "q", "output_a": "x" + " good" * a, "output_b": "y" + " good" * b}
    verdict = judged(pair, orders=orders, merge=merge, max_criteria=2)[0]["verdict"]
    assert verdict["preference"] == ("A" if a > b else "B" if b > a else "tie")
    assert (verdict["score"] > 0.5, verdict["score"] < 0.5) == (a > b, a < b)


def test_a_verdicts_reason_is_of_an_order_that_agrees_and_says_of_which():
    def merged(prompt):
        if "<findings" in prompt:
            said = ("tie", "tasan") if "response 1 scored 3" in prompt else ("2", "vastaus 2")
            return json.dumps({"explanation": said[1], "preference": said[0]})
        return None

    verdict = judged(replies=merged, merge="model", orders="lenient")[0]["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["rationale"].endswith(" With B first: vastaus 2")


def half_tied(prompt):
    """Prefer A when it stands first, and nobody when B does."""
    if not is_solve(prompt):
        return None
    first = prompt.index("good good") < prompt.index("bad")
    return json.dumps({"score_1": 4 if first else 2, "score_2": 2, "explanation": ""})


@for_each(
    ("merge", "rule", "preference", "score"),
    # Margins: (4 - 2) / 8 = 0.25 in one order and 0 in the other, 0.125 on the mean; a model's
    # win counts 0.5, its tie 0.
    [
        ("sum", "strict", "tie", 0.5),
        ("sum", "lenient", "A", 0.625),
        ("model", "strict", "tie", 0.5),
        ("model", "lenient", "A", 0.75),
    ],
)
def test_a_win_and_a_tie_are_combined_by_the_rule(merge, rule, preference, score):
    verdict = judged(replies=half_tied, orders=rule, merge=merge)[0]["verdict"]
    assert (verdict["preference"], verdict["score"]) == (preference, score)
    assert verdict["flipped"] is True


def failing(*units):
    """Answer nonsense for the solve prompts of some criteria in one order of the texts."""

    def respond(prompt):
        for name, order in units:
            here = f"The criterion: {name}:" in prompt
            a_first = prompt.find("good good") < prompt.find("bad")
            if is_solve(prompt) and here and a_first == (order == "AB"):
                return "no idea"
        return None

    return respond


def test_a_criterion_that_fails_in_one_order_is_left_out_of_both():
    # Four criteria are left: totals 2*4*3 and 2*4*1.
    result, _ = judged(replies=failing(("Depth", "BA")))
    verdict = result["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["scores"] == {"A": 24.0, "B": 8.0}
    assert [(f["unit"], f["reason"]) for f in verdict["failures"]] == [
        ("Depth (B first)", "unparsable")
    ]


def test_without_a_quorum_nobody_is_preferred():
    broken = failing(*product(["Depth", "Tone", "Clarity"], ["AB"]))
    verdict = judged(replies=broken)[0]["verdict"]
    assert verdict["preference"] is None
    assert verdict["score"] is None
    assert len(verdict["failures"]) == 3
    assert "2 of 5 criteria" in verdict["rationale"]
    assert judged(replies=broken, min_valid=2)[0]["verdict"]["preference"] == "A"


def planned(*names):
    criteria = [{"name": name, "description": "d"} for name in names]
    return lambda p: json.dumps({"criteria": criteria}) if "really differ" in p else None


@for_each("plan", [lambda p: "no" if "really differ" in p else None, planned(" * ", "--")])
def test_a_failed_plan_is_not_judged_and_says_so(plan):
    verdict = judged(replies=plan)[0]["verdict"]
    assert verdict["preference"] is None
    assert [(f["step"], f["reason"]) for f in verdict["failures"]] == [("branch", "unparsable")]
    assert verdict["usage"]["calls"] == 2


def test_a_long_plan_is_cut_and_criteria_of_one_name_are_merged():
    respond = planned("Depth", "depth ", "**Tone**", "a\nb", "Wit", "Style", "More")
    result, _ = judged(replies=respond, max_criteria=4)
    assert [c["name"] for c in result["criteria"]] == ["Depth", "Tone", "a b", "Wit"]


def test_the_plan_is_made_from_the_request_alone():
    _, model = judged({**PAIR, "reference": "the truth"})
    plan = model.prompts[0]
    assert "Why?" in plan
    assert not any(text in plan for text in ("good good", "bad", "the truth"))
    assert all("the truth" in prompt for prompt in model.prompts[1:])


def test_a_reference_is_written_once_for_each_question():
    writer = FakeChatModel()
    judge = create_bsm_judge(scripted(), reference_model=writer)
    other = {**PAIR, "output_b": "worse"}
    first, second = judge.invoke(PAIR)["verdict"], judge.invoke(other)["verdict"]
    assert len(writer.prompts) == 1
    assert first["usage"]["by_step"]["reference"]["calls"] == 1
    assert second["usage"]["by_step"]["reference"]["calls"] == 0
    assert second["usage"]["by_step"]["reference"]["cached_calls"] == 1
    judge.invoke({**PAIR, "input": "How?", "reference": "given"})
    assert len(writer.prompts) == 1


def test_without_a_reference_nothing_is_judged_and_the_next_row_asks_for_it_again():
    replies = iter(["no", "no", '{"answer": "because"}'])
    writer = FakeChatModel(replies=lambda _: next(replies))
    judge = create_bsm_judge(scripted(), reference_model=writer)
    verdict = judge.invoke(PAIR)["verdict"]
    assert (verdict["preference"], verdict["failures"][0]["step"]) == (None, "reference")
    assert judge.invoke(PAIR)["verdict"]["preference"] == "A"


def test_plans_of_two_orders_drop_a_failed_criterion_that_they_share_in_both():
    broken = failing(("Depth", "BA"))
    plan = planned("Depth", "Wit", "Tone")
    result, _ = judged(replies=lambda p: plan(p) or broken(p), reuse_plan=False)
    assert result["verdict"]["scores"] == {"A": 12.0, "B": 4.0}


TURNS = {
    "input": turns("user", "One?", "Two?"),
    "output_a": turns("assistant", "early A", "good A"),
    "output_b": turns("assistant", "early B", "late B"),
}


def test_of_several_turns_the_last_is_judged_and_earlier_answers_are_hidden():
    result, model = judged(TURNS)
    assert result["verdict"]["preference"] == "A"
    told = "the earlier turns are context. The responses to the earlier turns are not shown."
    assert all(told in prompt for prompt in model.prompts)
    assert not any("early A" in prompt or "early B" in prompt for prompt in model.prompts)


def test_a_failed_merge_by_a_model_is_not_judged():
    def no_merge(prompt):
        return "no" if "Each finding scores" in prompt else None

    verdict = judged(replies=no_merge, merge="model")[0]["verdict"]
    assert verdict["preference"] is None
    assert {f["step"] for f in verdict["failures"]} == {"merge"}
    why = "Not judged: no label (A first, B first): unparsable."
    assert verdict["rationale"] == why


def test_the_scale_bounds_the_scores():
    assert judged(scale=(1, 10))[0]["verdict"]["score"] == pytest.approx(0.5 + 2 / 18)
    verdict = judged(scale=(1, 2))[0]["verdict"]
    assert {f["reason"] for f in verdict["failures"]} == {"invalid_label"}


@for_each(
    ("options", "message"),
    [
        ({"scale": (5, 1)}, r"`scale` must be two whole numbers \(low, high\), got \(5, 1\)"),
        ({"criteria": ["Depth", "depth: x"]}, "distinct names"),
        ({"min_valid": 6}, "`min_valid` must be at most 5, got 6"),
        (
            {"prompts": {"branch": ChatPromptTemplate.from_template("{output_a}")}},
            r"the prompt 'branch' may use .* got \['output_a'\] too",
        ),
    ],
)
def test_options_are_checked_with_the_rule_and_the_value(options, message):
    with pytest.raises(OptionError, match=message):
        create_bsm_judge(FakeChatModel(), **options)


def test_rows_of_one_request_share_its_plan():
    model = scripted()
    judge = create_bsm_judge(model)
    usages = [judge.invoke(pair)["verdict"]["usage"] for pair in (PAIR, SWAPPED)]
    plans = [usage["by_step"]["branch"] for usage in usages]
    assert [(plan["calls"], plan["cached_calls"]) for plan in plans] == [(1, 0), (0, 1)]
    assert len(model.prompts) == sum(usage["calls"] for usage in usages)


def test_a_merging_model_reads_each_criterion_of_its_own_order_once():
    plans = iter([("Depth", "of A first"), ("Depth", "of B first")])

    def respond(prompt):
        if "really differ" in prompt:
            name, about = next(plans)
            return json.dumps({"criteria": [{"name": name, "description": about}]})
        return None

    _, model = judged(replies=respond, merge="model", reuse_plan=False)
    merges = [prompt for prompt in model.prompts if "<findings-" in prompt]
    assert len(merges) == 2
    assert all(prompt.count("Depth: ") == 1 for prompt in merges)
    assert sum("of B first" in prompt for prompt in merges) == 1


def test_a_merging_model_reads_reasons_that_agree_with_the_scores_whatever_names_they_use():
    def respond(prompt):
        if is_solve(prompt):
            first = prompt.index("good good") < prompt.index("bad")
            better, worse = "AB" if first else "BA"
            said = f"Response {better} is right, response {worse} is not."
            return json.dumps(
                {"score_1": 5 if first else 1, "score_2": 1 if first else 5, "explanation": said}
            )
        return None

    result, model = judged(replies=respond, merge="model", criteria=["Truth"])
    findings = [p for p in model.prompts if "<findings-" in p]
    said = ["scored 1. Response 1 is right", "scored 5. Response 2 is right"]
    assert [text in prompt for text, prompt in zip(said, findings, strict=True)] == [True, True]
    assert {each["explanation"][:19] for each in result["subscores"]} == {"Response A is right"}
