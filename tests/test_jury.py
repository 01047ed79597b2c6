"""A jury: what it makes of its members' verdicts, and what it says of their failures."""

import itertools
import json
import random
from statistics import fmean
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.retry import RunnableRetry
from typer.testing import CliRunner

from langchain_judges import create_relative_judge, create_rubric_judge, load_judge
from langchain_judges.asking.question import Account
from langchain_judges.cli import app
from langchain_judges.errors import ModelAccessError, OptionError
from langchain_judges.methods import create_cascade, create_jury
from langchain_judges.methods.jury import Ballots, verdict_of
from langchain_judges.runs import budget
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.verdict import even_verdict
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import ITEM, PAIR, labels, of_method


def juror(name, preference, score=None, **more):
    """A judge with one verdict on every pair."""
    score = {"A": 1.0, "B": 0.0, "tie": 0.5}.get(preference) if score is None else score
    verdict = {**even_verdict(), "preference": preference, "score": score, "rationale": name}
    return RunnableLambda(lambda _: {"verdict": {**verdict, **more}}).with_config(
        metadata={"takes": "pair", "method": name}
    )


def jury_of(*preferences, **options):
    return create_jury([juror(f"j{n}", each) for n, each in enumerate(preferences)], **options)


def failing(exception):
    def judge(_):
        raise exception

    return RunnableLambda(judge).with_config(metadata={"takes": "pair", "method": "broken"})


@for_each(
    ("votes", "preference", "score", "confidence"),
    [
        ("AAB", "A", 2 / 3, 2 / 3),
        (["tie", "tie", "A"], "tie", 0.5, 2 / 3),
        ("AAAB", "A", 3 / 4, 3 / 4),
    ],
)
def test_more_than_half_of_the_members_decide(votes, preference, score, confidence):
    verdict = jury_of(*votes).invoke(PAIR)["verdict"]
    assert (verdict["preference"], verdict["confidence"]) == (preference, confidence)
    assert verdict["score"] == pytest.approx(score)


@for_each("votes", [["A", "B"], ["A", "tie"], ["A", "A", "B", None], ["A", "B", "tie"]])
def test_without_a_majority_of_all_members_nothing_is_decided(votes):
    verdict = jury_of(*votes).invoke(PAIR)["verdict"]
    assert (verdict["preference"], verdict["score"], verdict["confidence"]) == (None, None, None)
    reasons = [(each["step"], each["reason"]) for each in verdict["failures"]]
    abstained = [("judge", "cannot_assess")] * votes.count(None)
    assert reasons == [*abstained, ("merge", "no_majority")]
    assert "members: A: j0" in verdict["rationale"]


def labeller(name, label, labels):
    verdict = {"label": label, "score": None, "confidence": None, "failures": []}
    return RunnableLambda(lambda _: {"verdict": {**verdict, "rationale": name}}).with_config(
        metadata={"takes": "item", "method": name, "options": {"labels": labels}}
    )


def decided(members, **options):
    verdict = create_jury(members, **options).invoke(ITEM)["verdict"]
    return [verdict[key] for key in ("label", "score", "confidence", "rationale")]


@pytest.mark.whole
@pytest.mark.parametrize(
    # A rule that minds the order in one of 60 juries escapes 250 of them once in 65 times.
    ("juries", "orders"),
    [(20, 3), pytest.param(250, 4, marks=pytest.mark.figures)],
)
def test_a_verdict_does_not_depend_on_the_order_of_the_members(juries, orders):
    draw = random.Random(7)
    undecided = 0
    for _ in range(juries):
        size, combine = draw.randint(2, 5), draw.choice(["majority", "mean", "median"])
        said = [draw.choice([0, 1, 2, None]) for _ in range(size)]
        weights = {f"j{n}": draw.choice([0.1, 0.2, 0.7]) for n in range(size)}
        options = {} if combine == "median" or size % 2 else {"weights": weights}
        members = [labeller(f"j{n}", each, [0, 1, 2]) for n, each in enumerate(said)]
        verdicts = []
        for _ in range(orders):
            draw.shuffle(members)
            verdicts.append(decided(members, combine=combine, **options))
        assert verdicts == verdicts[:1] * orders
        undecided += verdicts[0][0] is None
    assert 0.1 < undecided / juries < 0.9


def test_the_median_is_the_middle_of_labels_that_are_numbers():
    members = [labeller(f"j{n}", label, [1, 2, 5]) for n, label in enumerate((5, 1, 2))]
    assert decided(members, combine="median")[0] == 2
    assert decided(members[:2], combine="median", min_valid=1)[0] == 1
    with pytest.raises(OptionError, match="that are numbers"):
        jury_of("A", "B", combine="median")


def test_one_garbled_member_leaves_two_that_differ_undecided_in_either_order():
    members = [labeller(f"j{n}", label, [0, 1]) for n, label in enumerate((1, None, 0))]
    assert decided(members[::-1]) == decided(members) == [None, None, None, decided(members)[3]]


def test_a_mean_or_weights_may_outvote_a_majority():
    weighted = jury_of("A", "B", "B", weights={"j2": 1, "j1": 1, "j0": 3})
    assert weighted.invoke(PAIR)["verdict"]["confidence"] == 3 / 5
    # (0.9 + 0.4 + 0.4) / 3 = 0.567: A, against the majority.
    members = [juror("x", "A", 0.9), juror("y", "B", 0.4), juror("z", "B", 0.4)]
    verdict = create_jury(members, combine="mean").invoke(PAIR)["verdict"]
    assert (verdict["preference"], verdict["confidence"]) == ("A", 1 / 3)
    assert verdict["score"] == pytest.approx(1.7 / 3)


def test_a_member_that_fails_is_reported_and_not_fatal():
    members = [failing(TimeoutError("slow")), juror("x", "B"), juror("y", "B")]
    result = create_jury(members).invoke(PAIR)
    assert result["verdict"]["preference"] == "B"
    (failure,) = result["verdict"]["failures"]
    assert (failure["unit"], failure["reason"]) == ("broken", "timeout")
    assert result["verdict"]["rationale"] == "B: x, y; not judged: broken. x"


def test_without_a_quorum_nothing_is_decided():
    members = [failing(ConnectionError("x")), juror("y", "B")]
    assert create_jury(members).invoke(PAIR)["verdict"]["preference"] is None
    alone = create_jury(members, min_valid=1, combine="mean").invoke(PAIR)
    assert alone["verdict"]["preference"] == "B"


def test_a_refused_key_ends_the_run_and_a_refused_prompt_costs_its_member():
    members = [juror("x", "A"), juror("y", "A")]
    refused = create_jury([*members, failing(ModelAccessError("no", 403))]).invoke(PAIR)
    assert refused["verdict"]["failures"][0]["unit"] == "broken"
    with pytest.raises(ModelAccessError):
        create_jury([*members, failing(ModelAccessError("no", 401))]).invoke(PAIR)


def test_a_single_model_judges_by_several_methods_and_calls_add_up_by_member():
    model = FakeChatModel(replies=of_method("relative").model.replies)
    jury = create_jury(model, methods=["relative", "direct"])
    verdict = jury.invoke(PAIR)["verdict"]
    assert verdict["preference"] == "A"
    steps = verdict["usage"]["by_step"]
    assert {name: cost["calls"] for name, cost in steps.items()} == {
        "relative: judge": 2,
        "direct: judge": 1,
    }
    assert verdict["usage"]["calls"] == len(model.prompts) == jury.config["metadata"]["calls"]


def test_single_texts_are_labelled_by_the_majority():
    jury = create_jury([labels(), labels(0), labels()])
    verdict = jury.invoke(ITEM)["verdict"]
    assert (verdict["label"], verdict["score"]) == (1, pytest.approx(1.0))
    assert judge_label(create_jury([labels(), labels()], combine="mean")) == 1


# Scales from the worst label to the best; of several criteria there is a total.
SCALES: tuple[list[Any], ...] = (
    [0, 1],
    [1, 0],
    [1, 2, 3, 4, 5],
    [0, 1, 2],
    ["bad", "good"],
    ["good", "bad"],
    [],
)


def on_scale(name, scale):
    if scale:
        options = {"rubric": "Is it kind?", "labels": sorted(scale), "best": scale[-1]}
    else:
        options = {"rubric": ["kind", "short"]}
    return create_rubric_judge(FakeChatModel(replies=fitting_reply), name=name, **options)


@for_each("create", [create_jury, create_cascade])
@for_each(("one", "other"), itertools.combinations(SCALES, 2))
def test_members_that_label_on_several_scales_are_refused(create, one, other):
    for pair in ([one, other], [other, one]):
        with pytest.raises(OptionError, match="all members must have the same `labels`"):
            create([on_scale(f"j{n}", scale) for n, scale in enumerate(pair)])
    jury = create_jury([on_scale("a", one), on_scale("b", one)])
    assert create([jury, on_scale("c", one)])
    with pytest.raises(OptionError, match="all members must have the same `labels`"):
        create([jury, on_scale("c", other)])


@for_each(
    ("scale", "said", "expected"),
    [
        ([1, 0], (0, 0), {"majority": (0, 1), "mean": (0, 1), "median": (0, 1)}),
        ([5, 4, 3, 2, 1], (2, 2, 3), {"majority": (2, 2 / 3), "mean": (2, 2 / 3)}),
        (["toxic", "clean"], ("toxic", "toxic", "clean"), {"majority": ("toxic", 1 / 3)}),
        ([0, 1], (7, 7), {"majority": (7, None), "mean": (7, None)}),
        ([0, 1], (0.5, 0.7), {"mean": (0.6, 0.6), "median": (0.5, 0.6)}),
        ([0, 1], ("yes", "yes", "no"), {"mean": ("yes", None), "median": ("yes", None)}),
        ([1], (1, 1), {"majority": (1, 0), "mean": (1, 0)}),
    ],
)
def test_the_score_of_a_jury_is_where_its_members_labels_stand(scale, said, expected):
    members = [labeller(f"j{n}", own, scale) for n, own in enumerate(said)]
    for combine, (label, score) in expected.items():
        assert decided(members, combine=combine)[:2] == [label, score and pytest.approx(score)]


@for_each(
    ("said", "combine", "label", "score"),
    [
        ((4, 5), "mean", 4, 0.875),
        ((5, 2, 4), "median", 4, 2 / 3),
        (("none", "some", "all"), "median", "some", 0.5),
        (("none", "all"), "mean", "some", 0.5),
    ],
)
def test_a_jury_judges_a_row_by_the_scale_of_its_own_rubric(said, combine, label, score):
    words = ["none", "some", "all"]
    labels = {"labels": words, "best": "all"} if label in words else {"scale": [1, 5]}
    replies = [json.dumps({"label": str(each), "explanation": "so"}) for each in said]
    jury = create_jury(
        [
            create_rubric_judge(FakeChatModel(replies=[each]), rubric="Is it kind?", name=f"j{n}")
            for n, each in enumerate(replies)
        ],
        combine=combine,
    )
    row = {**ITEM, "rubric": [{"name": "Facts", "description": "Are they right?", **labels}]}
    verdict = jury.invoke(row)["verdict"]
    assert (verdict["label"], verdict["score"]) == (label, pytest.approx(score))


@for_each(
    ("combine", "totals", "label"),
    [("mean", (0.25, 0.5), 0.375), ("median", (0.25, 0.5, 0.75), 0.5), ("majority", (0.5,), 0.5)],
)
def test_a_jury_of_totals_gives_a_total(combine, totals, label):
    said = [{"member": str(n), "label": own, "score": own} for n, own in enumerate(totals)]
    opinions: Any = [{**each, "rationale": ""} for each in said]
    ballots = Ballots(opinions, {each["member"]: 1.0 for each in said}, combine, min_valid=1)
    verdict = verdict_of(ballots, "item", (), Account())
    assert (verdict["label"], verdict["score"]) == (label, pytest.approx(fmean(totals)))


def judge_label(jury, row=ITEM):
    return jury.invoke(row)["verdict"]["label"]


def test_a_jury_is_built_again_from_its_spec(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    jury = create_jury(["openai:a", "openai:b"], methods=["cot"], instructions="Be kind.")
    nested = create_jury([jury, create_relative_judge("openai:c")], min_valid=1)
    again = load_judge(nested.spec)
    assert again.spec == nested.spec
    assert again.config["metadata"] == nested.config["metadata"]
    assert nested.spec["model"][0]["model"][1]["options"] == {"instructions": "Be kind."}


@for_each(
    ("members", "options", "message"),
    [
        ([], {}, "at least one member"),
        ([juror("x", "A"), labels()], {}, "all members must judge the same"),
        ([juror("x", "A")], {"instructions": "x"}, "`instructions` cannot change a ready judge"),
        ([labels()], {"combine": "median", "weights": [1]}, "`weights` go with"),
        ([juror("x", "A")], {"weights": [1, 2]}, "one for each of"),
        ([juror("x", "A")], {"weights": [0]}, "`weights` must be"),
        ([juror("x", "A")], {"min_valid": 2}, "`min_valid` must be at most 1"),
        ([FakeChatModel()] * 3, {"methods": ["cot", "bsm"]}, "`methods` must be one for all"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(members, options, message):
    with pytest.raises(OptionError, match=message):
        create_jury(members, **options)


def test_a_run_is_priced_member_by_member(tmp_path):
    path, prices = tmp_path / "in.jsonl", tmp_path / "prices.json"
    path.write_text(json.dumps(PAIR))
    # Two calls of about 304 + 150 tokens for each model: 2 * (304 + 150) * (1 + 10) / 1000.
    each = {name: {"input": n * 1000, "output": n * 1000} for name, n in (("a", 1), ("b", 10))}
    prices.write_text(json.dumps({"date": "2026-11-01", "models": each}))
    words = ["judge", str(path), "--method", "jury", "--model", "a,b", "--base-url", "http://x"]
    result = CliRunner().invoke(app, [*words, "--dry-run", "--prices", str(prices)])
    assert "$9.99 by prices.json" in result.stderr


@for_each("make", [create_jury, create_cascade])
@for_each(
    "wrapped",
    [
        lambda judge: judge.with_config(budget(max_calls=1)),
        lambda judge: judge.with_retry().with_config(budget(max_calls=1)),
        lambda judge: RunnableRetry(bound=judge.with_retry().with_config(budget(max_calls=1))),
    ],
)
def test_a_member_with_a_budget_of_its_own_is_refused_before_any_reply_is_paid(make, wrapped):
    judges = [create_relative_judge(FakeChatModel(), name=name) for name in "ab"]
    assert len(make(judges).members) == 2
    with pytest.raises(OptionError, match="give it to the whole judge"):
        make([judges[0], wrapped(judges[1])])


@for_each("is_of_row", [False, True])
def test_totals_over_several_criteria_have_a_mean_unless_a_majority_is_asked_for(is_of_row):
    rubric: Any = ["Is it kind?", "Is it short?"]
    row = {**ITEM, "rubric": rubric} if is_of_row else ITEM
    labels = [
        f'{{"criterion_1": {{"label": "1"}}, "criterion_2": {{"label": "{n}"}}}}' for n in "110"
    ]
    judges = [
        create_rubric_judge(
            FakeChatModel(replies=[said] * 2),
            rubric="Is it good?" if is_of_row else rubric,
            explain="none",
            name=f"j{n}",
        )
        for n, said in enumerate(labels)
    ]
    # Totals 1, 1 and 0.5.
    assert judge_label(create_jury(judges), row) == pytest.approx(2.5 / 3)
    assert judge_label(create_jury(judges, combine="majority"), row) == 1
