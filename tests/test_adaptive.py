"""Stopping early: the same verdict for fewer calls, and what is said of what was not asked."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import (
    create_drpe_judge,
    create_self_consistency_judge,
)
from langchain_judges.errors import OptionError
from langchain_judges.methods.early_stop import outcomes, plurality
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


@given(st.lists(st.sampled_from(["A", "B", "tie"]), min_size=1, max_size=6), st.integers(0, 6))
def test_the_verdict_of_all_votes_is_among_those_that_are_possible_early(votes, asked):
    labels: Any = ["A", "B", "tie"]
    counts, rest = Counter(votes[:asked]), len(votes[asked:])
    assert plurality(Counter(dict.fromkeys(labels, 0)) + Counter(votes)) in outcomes(
        counts, rest, labels
    )


def test_five_of_eight_that_agree_are_enough():
    result, calls = sampling({"AB": "AAAAA"}, adaptive=True)
    assert calls == 5
    assert result["verdict"]["preference"] == "A"
    assert result["verdict"]["confidence"] == 1


def test_samples_that_stop_early_are_streamed_one_by_one_on_every_run_of_a_thread():
    model = FakeChatModel(replies=lambda _: '{"explanation": "why", "preference": "1"}')
    judge = create_self_consistency_judge(model, adaptive=True, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for run in (1, 2):
        events: Any = list(judge.stream(PAIR, config, stream_mode="custom"))
        assert [event["kind"] for event in events].count("vote") == 5
        assert len(model.prompts) == 5 * run
        assert len(judge.get_state(config).values["ballots"]) == 5


@for_each(
    ("votes", "options"),
    [
        ({"AB": "AABBB"}, {"samples": 5}),
        ({"AB": "ABABA"}, {"samples": 5}),
        ({"AB": "ABA", "BA": "AAB"}, {"samples": 3, "prompt": "relative"}),
        (
            {"AB": ("tie", "A", "A"), "BA": ("tie", "B", "tie")},
            {"samples": 3, "prompt": "relative"},
        ),
        (
            {"AB": ("tie", "A", "tie"), "BA": "BAB"},
            {"samples": 3, "prompt": "relative", "orders": "lenient"},
        ),
    ],
)
def test_stopping_exactly_never_changes_a_preference(votes, options):
    whole, calls = sampling(votes, **options)
    early, fewer = sampling(votes, adaptive=True, **options)
    assert early["verdict"]["preference"] == whole["verdict"]["preference"]
    assert fewer <= calls


def test_the_mean_score_is_not_settled_by_votes():
    with pytest.raises(OptionError, match="not `orders='score_mean'`"):
        create_self_consistency_judge(FakeChatModel(), adaptive=True, orders="score_mean")


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
    ("votes", "calls"),
    # Four of seven lead by 4 and three are left; of four to one two are left.
    [("AAAAxxx", 4), ("BBBBxxx", 4), ("AABAAxx", 5)],
)
def test_roles_stop_voting_once_the_others_change_nothing(votes, calls):
    result, call_count = voting(votes, voting={"adaptive": True})
    assert (call_count, len(result["votes"])) == (calls, calls)
    assert result["verdict"]["preference"] == votes[0]
    assert result["not_asked"] == [f"Role{n}" for n in range(calls + 1, 8)]
    assert "Not asked" in result["verdict"]["rationale"]


@for_each("orders", ["none", "score_mean", "strict", "lenient"])
def test_roles_that_stop_exactly_never_change_a_preference(orders):
    for votes in ("ABABABB", "AAABBBB"):
        whole, calls = voting(votes, orders=orders)
        early, fewer = voting(votes, orders=orders, voting={"adaptive": True})
        assert early["verdict"]["preference"] == whole["verdict"]["preference"]
        assert fewer <= calls
