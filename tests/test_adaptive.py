"""Stopping early: the same verdict for fewer calls, and what is said of what was not asked."""

import json
from itertools import product
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import (
    create_drpe_judge,
    create_self_consistency_judge,
)
from langchain_judges.errors import OptionError
from langchain_judges.methods.early_stop import outcomes
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.test_direct import PAIR, slots
from tests.test_drpe import PAIR as DRPE_PAIR
from tests.test_drpe import favours_good, respond


def sampling(script, prompt="cot", **options):
    """Return the judge's result where its samples say A, B and tie as in `said`, by order."""
    waiting = {order: iter(labels) for order, labels in script.items()}

    def respond(text):
        order = "AB" if "good" in slots(text)[0] else "BA"
        label = next(waiting[order])
        slot = {"tie": "tie", "A": "12"[order == "BA"], "B": "12"[order == "AB"]}[label]
        return json.dumps({"explanation": "because", "preference": slot})

    model = FakeChatModel(replies=respond)
    judge = create_self_consistency_judge(model, prompt=prompt, **options)
    return judge.invoke(PAIR), len(model.prompts)


@for_each(
    ("counts", "remaining", "labels", "ends"),
    [
        ({"A": 3}, 2, "AB", {"A"}),
        ({"A": 3}, 3, "AB", {"A", "tie"}),
        # One to one and one left: the tie label makes three labels with a vote each.
        ({"A": 1, "B": 1}, 1, ["A", "B", "tie"], {"A", "B", "tie"}),
        ({}, 0, "AB", {"tie"}),
    ],
)
def test_an_order_can_become_what_the_votes_that_are_left_make_of_it(
    counts, remaining, labels, ends
):
    assert outcomes(counts, remaining, labels) == ends


def test_five_of_eight_that_agree_are_enough():
    result, calls = sampling({"AB": "AAAAA"}, adaptive=True)
    assert calls == 5
    assert result["verdict"]["preference"] == "A"
    assert result["verdict"]["confidence"] == 1
    assert result["not_asked"] == ["sample 6", "sample 7", "sample 8"]
    assert "could not change the verdict: sample 6, sample 7" in result["verdict"]["rationale"]


def test_of_two_orders_only_the_open_one_is_asked_further():
    # Five samples each: three that agree settle an order, and strict needs both for a winner.
    said = {"AB": "AAA", "BA": "ABAA"}
    result, calls = sampling(said, prompt="relative", orders="strict", adaptive=True)
    assert (calls, result["verdict"]["preference"]) == (7, "A")
    assert result["not_asked"] == [
        "sample 4 (A first)",
        "sample 5 (A first)",
        "sample 5 (B first)",
    ]


def test_samples_that_stop_early_are_streamed_one_by_one_on_every_run_of_a_thread():
    model = FakeChatModel(replies=lambda _: '{"explanation": "why", "preference": "1"}')
    judge = create_self_consistency_judge(model, adaptive=True, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for run in (1, 2):
        events: Any = list(judge.stream(PAIR, config, stream_mode="custom"))
        assert [event["kind"] for event in events].count("vote") == 5
        assert len(model.prompts) == 5 * run
        assert len(judge.get_state(config).values["ballots"]) == 5


def test_without_adaptive_everything_is_asked():
    result, calls = sampling({"AB": "AAAAAAAA"})
    assert (calls, result["not_asked"]) == (8, [])


def test_stopping_exactly_never_changes_a_preference():
    # All sequences of five forced labels; the sixth to eighth sample do not exist.
    for labels in product("AB", repeat=5):
        whole, calls = sampling({"AB": labels}, samples=5)
        early, fewer = sampling({"AB": labels}, samples=5, adaptive=True)
        assert early["verdict"]["preference"] == whole["verdict"]["preference"]
        assert fewer <= calls


@for_each("orders", ["strict", "lenient"])
def test_stopping_exactly_never_changes_a_preference_of_two_orders(orders):
    others = ["AAB", ("tie", "B", "B")]
    for one, two in product(product(["A", "B", "tie"], repeat=3), others):
        votes = {"AB": one, "BA": two}
        options = {"prompt": "relative", "samples": 3, "orders": orders}
        whole, _ = sampling(votes, **options)
        early, _ = sampling(votes, adaptive=True, **options)
        assert early["verdict"]["preference"] == whole["verdict"]["preference"]


def test_the_mean_score_is_not_settled_by_votes():
    with pytest.raises(OptionError, match="not `orders='score_mean'`"):
        create_self_consistency_judge(FakeChatModel(), adaptive=True, orders="score_mean")


def test_stopping_early_is_a_yes_or_a_no():
    probability: Any = {"adaptive": 0.95}
    with pytest.raises(OptionError, match="`adaptive` must be"):
        create_self_consistency_judge(FakeChatModel(), **probability)


ROLES = [f"Role{n}: reads" for n in range(1, 8)]


def voting(votes, pair=DRPE_PAIR, **options):
    """Return a panel of seven where role n votes as letter n of `votes` says."""

    def vote(prompt, role):
        slot = favours_good(prompt)
        return slot if votes[int(role[4:]) - 1] == "A" else {"1": "2", "2": "1"}[slot]

    model = FakeChatModel(replies=lambda prompt: respond(prompt, vote))
    poll = {"batch": False, **options.pop("voting", {})}
    judge = create_drpe_judge(
        model, panel={"static": ROLES, "dynamic": 0}, voting=poll, **options
    )
    return judge.invoke(pair), len(model.prompts)


@for_each(
    ("votes", "adaptive", "calls"),
    # Four of seven lead by 4, three are left; three of seven: B needs all four that are
    # left, 1*2*3*4 / (5*6*7*8) = 1/70. Two against one are open either way.
    [("AAAAxxx", True, 4), ("BBBBxxx", True, 4), ("AABAAxx", True, 5)],
)
def test_roles_stop_voting_once_the_others_change_nothing(votes, adaptive, calls):
    result, call_count = voting(votes, voting={"adaptive": adaptive})
    assert (call_count, len(result["votes"])) == (calls, calls)
    assert result["verdict"]["preference"] == votes[0]
    assert result["not_asked"] == [f"Role{n}" for n in range(calls + 1, 8)]
    assert "Not asked" in result["verdict"]["rationale"]


@for_each("orders", ["none", "score_mean", "strict", "lenient"])
def test_roles_that_stop_exactly_never_change_a_preference(orders):
    for votes in ("AABBABA", "ABABABB", "BBABBAA", "AAABBBB"):
        whole, calls = voting(votes, orders=orders)
        early, fewer = voting(votes, orders=orders, voting={"adaptive": True})
        assert early["verdict"]["preference"] == whole["verdict"]["preference"]
        assert fewer <= calls


def test_a_panel_asked_at_once_cannot_stop_early():
    with pytest.raises(OptionError, match="`batch=False`"):
        create_drpe_judge(FakeChatModel(), voting={"adaptive": True})
