"""DRPE against its papers: panels, votes, confidences, presets, edge cases."""

import json
import math
import re
from typing import Any

import pytest
import threadpoolctl
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage

from langchain_judges import Panel, Voting, create_drpe_judge, judge_many, load_judge
from langchain_judges.errors import OptionError
from langchain_judges.methods.drpe.options import SETS
from langchain_judges.methods.drpe.role_selection import dbscan_medoids, kmeans_medoids
from langchain_judges.methods.drpe.tally import confidences, norm, order_sums
from langchain_judges.methods.tasks import PANELS, TASKS
from langchain_judges.testing import reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import BrokenEmbeddings, FakeChatModel, with_logprobs

PAIR = {"input": "An article.", "output_a": "good candidate", "output_b": "bad reference"}
SWAPPED = {"input": "An article.", "output_a": "bad reference", "output_b": "good candidate"}
CRITIC = {"static": ["Critic: looks closely"], "dynamic": 0}
READERS = ("Teacher", "Nurse", "Farmer", "Pilot", "Local", "Stranger", "Fan", "Historian")
FEW = DeterministicFakeEmbedding(size=8)


def readers(names):
    return [{"type": name, "description": f"looks as {name} does"} for name in names]


def favours_good(prompt):
    """The slot that holds the word `good`."""
    first = re.search(r"<response-1-\w+>\n(.*?)\n</response-1", prompt, re.S)[1]
    return "1" if "good" in first else "2"


def vote_of(prompt, name):
    return favours_good(prompt)


def respond(prompt, vote=vote_of):
    """Name eight readers; let every role vote as `vote(prompt, role)` says."""
    if "Give each a type" in prompt:
        if '"general"' in prompt:
            return json.dumps(
                {"general": readers(READERS[:4]), "familiarity": readers(READERS[4:])}
            )
        half = READERS[:4] if "by occupation" in prompt else READERS[4:]
        return json.dumps({"readers": readers(half)})
    seated = re.findall(r"^role_(\d+), ([^:\n]+): ", prompt.split("judges are:")[-1], re.M)
    if "You are:\n" in prompt:
        name = re.search(r"You are:\n([^:]+):", prompt)[1]
        return json.dumps({"reason": f"{name} says so", "vote": vote(prompt, name)})
    return json.dumps(
        {
            f"role_{n}": {"reason": f"{name} says so", "vote": vote(prompt, name)}
            for n, name in seated
        }
    )


def judged(pair=PAIR, vote=vote_of, answer=None, **options):
    def said(prompt):
        return (answer and answer(prompt)) or respond(prompt, vote)

    model = FakeChatModel(replies=said)
    settings = {"embeddings": FEW, "task": "summary", **options}
    return create_drpe_judge(model, **settings).invoke(pair), model


def test_seven_roles_vote_in_three_calls_by_default():
    result, model = judged()
    verdict = result["verdict"]
    assert verdict["preference"] == "A"
    assert verdict["scores"] == {"A": 7.0, "B": 0.0}
    assert (verdict["score"], result["score_norm"]) == (1.0, 1.0)
    assert verdict["usage"]["calls"] == len(model.prompts) == 3
    assert [role["kind"] for role in result["roles"][:3]] == ["static"] * 3
    assert len(result["roles"]) == 7
    assert len(result["proposed"]) == 8
    assert json.loads(json.dumps(result)) == result


def test_the_reference_stands_first_and_roles_see_the_article_alone():
    _, model = judged()
    vote = model.prompts[-1]
    assert vote.index("bad reference") < vote.index("good candidate")
    assert not any("candidate" in prompt.split("---")[1] for prompt in model.prompts[:2])


def test_a_vote_says_in_which_order_its_reason_was_given():
    # The NLPCC version shows the reference, which is B, first.
    result, _ = judged()
    assert result["votes"][0]["reason"].startswith("With B first: ")


PRESETS = {
    # Closed forms: 3; 2; 1; 2 + N with N = 7; 3; 1; 3.
    "drpe": (3, 7),
    "drpe_v1": (2, 8),
    "manual": (1, 6),
    "no_batch": (9, 7),
    "no_clustering": (3, 11),
    "no_dynamic": (1, 3),
    "no_static": (3, 4),
}


@for_each("preset", PRESETS)
def test_presets_cost_what_the_closed_forms_say_and_mirror_swapped_texts(preset):
    model = FakeChatModel(replies=respond)
    judge = load_judge("drpe", model, preset=preset, embeddings=FEW, task="summary")
    result = judge.invoke(PAIR)
    expected, seats = PRESETS[preset]
    assert len(result["roles"]) == seats
    assert len(model.prompts) == result["verdict"]["usage"]["calls"] == expected
    assert judge.config["metadata"]["calls"] == expected
    # The presets of the papers give judges no common ground.
    assert not any(TASKS["summary"]["everyone"] in prompt for prompt in model.prompts)
    there, back = result["verdict"], judge.invoke(SWAPPED)["verdict"]
    assert (there["preference"], back["preference"]) == ("A", "B")
    assert back["score"] == pytest.approx(1 - there["score"])


def test_one_panel_serves_every_candidate_of_an_article():
    model = FakeChatModel(replies=respond)
    judge = create_drpe_judge(model, embeddings=FEW)
    pairs = [{**PAIR, "output_a": f"good {i}"} for i in range(4)]
    rows = list(judge_many(judge, pairs, progress=False))
    assert len(model.prompts) == 2 + 4
    assert len({row["roles_key"] for row in rows}) == 1
    cached = [row["verdict"]["usage"]["by_step"]["roles"]["cached_calls"] for row in rows]
    assert sum(cached) == 2 * 3  # whichever row asked first


@for_each("batch", [True, False])
def test_of_several_turns_voters_are_told_which_one_is_judged(batch):
    turns = [{"role": "user", "content": text} for text in ("Name a prime.", "Another?")]
    _, model = judged({**PAIR, "input": turns}, voting=Voting(batch=batch))
    told = ["Only the responses to the last turn are judged" in each for each in model.prompts]
    assert told == ["<response-1-" in each for each in model.prompts]
    assert any(told)


def test_a_reference_beside_the_two_texts_is_shown_to_voters_and_not_to_the_panel():
    _, model = judged({**PAIR, "reference": "the best of all"})
    mentions = ["the best of all" in each for each in model.prompts]
    assert mentions == ["The judges are:" in each for each in model.prompts]
    assert any(mentions)
    assert not all(mentions)
    assert not any("reference response" in each for each in judged()[1].prompts)


def test_the_papers_score_is_the_sum_of_the_confidences_of_its_votes():
    # Spec oracle: P = .818731, .759572, .367879; votes 1, 0, 1: 1.186610, norm .395537.
    votes: list[Any] = [
        {"role": r, "preference": p, "confidence": c}
        for r, p, c in (
            ("x", "A", math.exp(-0.2)),
            ("y", "B", math.exp(-0.275)),
            ("z", "A", math.exp(-1)),
        )
    ]
    sums = order_sums(votes)
    assert sums["A"] == pytest.approx(1.186610, abs=1e-6)
    assert norm(votes) == pytest.approx(0.395537, abs=1e-6)


def in_tokens(text, logprob=-0.5):
    """Answer with one token for every three characters."""
    pieces = [text[i : i + 3] for i in range(0, len(text), 3)]
    return reply(with_logprobs(*((piece, math.exp(logprob)) for piece in pieces)))


def wire(vote=vote_of, logprobs=True):
    def behave(call):
        shape = call.shape
        prompt = call.prompt + ('"general"' if shape == "BothReaders" else "")
        text = respond(prompt, vote)
        return in_tokens(text) if logprobs and call.body.get("logprobs") else reply(text)

    return behave


def test_votes_weigh_the_probability_of_their_tokens(serve):
    server = serve(wire())
    judge = create_drpe_judge(chat(server), embeddings=FEW)
    result = judge.invoke(PAIR)
    # Every token has log-probability -0.5, so every vote weighs exp(-0.5).
    assert result["verdict"]["scores"]["A"] == pytest.approx(7 * math.exp(-0.5))
    assert result["score_norm"] == pytest.approx(math.exp(-0.5))
    assert result["verdict"]["confidence_source"] == "logprobs"
    assert {vote["confidence_source"] for vote in result["votes"]} == {"logprobs"}
    assert all(vote["tokens"] > 2 for vote in result["votes"])
    assert result["verdict"]["failures"] == []


def test_without_log_probabilities_every_vote_weighs_one_and_a_note_says_so(serve):
    judge = create_drpe_judge(chat(serve(wire(logprobs=False))), embeddings=FEW)
    result = judge.invoke(PAIR)
    assert result["verdict"]["scores"] == {"A": 7.0, "B": 0.0}
    assert [f["reason"] for f in result["verdict"]["failures"]] == ["no_logprobs"]
    assert {vote["confidence"] for vote in result["votes"]} == {None}


def test_log_probabilities_that_are_required_and_missing_are_a_failure():
    verdict = judged(voting=Voting(confidence="logprobs"))[0]["verdict"]
    assert verdict["preference"] is None
    assert {f["reason"] for f in verdict["failures"]} == {"no_logprobs"}


def test_samples_give_the_share_of_replies_that_agree():
    replies = iter("22212" * 10)

    def vote(prompt, name):
        return next(replies) if name == "Critic" else favours_good(prompt)

    result, model = judged(
        vote=vote, panel=Panel(dynamic=0), voting=Voting(confidence="samples", samples=5)
    )
    critic = result["votes"][1]
    assert len(model.prompts) == 5
    assert (critic["preference"], critic["confidence"]) == ("A", 0.8)
    assert critic["confidence_source"] == "samples"
    assert result["verdict"]["scores"] == {"A": pytest.approx(2.8), "B": 0.0}
    assert all(settings["temperature"] == 0.7 for settings in model.settings)


def test_both_orders_show_whether_the_panel_flips():
    result, model = judged(vote=lambda prompt, name: "1", orders="score_mean")
    assert len(model.prompts) == 4
    verdict = result["verdict"]
    assert (verdict["preference"], verdict["score"], verdict["flipped"]) == ("tie", 0.5, True)
    assert {vote["preference"] for vote in result["votes"]} == {None}
    assert "Divided: General Public" in verdict["rationale"]
    assert "No vote" not in verdict["rationale"]
    agreed = judged(orders="score_mean")[0]["verdict"]
    assert (agreed["preference"], agreed["flipped"]) == ("A", False)


@for_each(
    ("rule", "preference", "score"),
    # By order 2 to 1 for A and 3 to 0 for B: sums 2 + 0 and 1 + 3, of each the half.
    [("strict", "tie", 0.5), ("lenient", "tie", 0.5), ("score_mean", "B", 1 / 3)],
)
def test_orders_are_combined_by_the_rule(rule, preference, score):
    def vote(prompt, name):
        a_first = prompt.index("good candidate") < prompt.index("bad reference")
        return ("2" if name == "Critic" else "1") if a_first else "1"

    options = {"panel": {"dynamic": 0}, "voting": {"confidence": "none"}, "orders": rule}
    verdict = judged(vote=vote, **options)[0]["verdict"]
    assert verdict["scores"] == {"A": 1.0, "B": 2.0}
    assert (verdict["preference"], verdict["score"]) == (preference, pytest.approx(score))
    assert verdict["flipped"] is True


def test_a_role_whose_samples_are_even_has_no_vote_and_a_failure_says_so():
    replies = iter("1212" * 3)
    roles = ["Critic: looks closely"]
    result, _ = judged(
        vote=lambda prompt, name: next(replies),
        panel={"static": roles, "dynamic": 0},
        voting=Voting(confidence="samples", samples=4),
    )
    assert result["verdict"]["preference"] is None
    (failure,) = result["verdict"]["failures"]
    assert (failure["unit"], failure["reason"]) == ("Critic", "missing")
    assert "as many samples" in failure["detail"]


def test_the_random_order_is_a_coin_that_follows_the_text():
    firsts = set()
    for seed in range(8):
        _, model = judged(voting={"first": "random"}, panel={"dynamic": 0}, seed=seed)
        _, swapped = judged(SWAPPED, voting={"first": "random"}, panel={"dynamic": 0}, seed=seed)
        assert model.prompts == swapped.prompts
        firsts.add(favours_good(model.prompts[0]))
    assert firsts == {"1", "2"}


@for_each("text", ["equal", None])
def test_a_vote_that_is_none_is_left_out_after_a_repair(text):
    def vote(prompt, name):
        return text if name == "Critic" else favours_good(prompt)

    plain = {"confidence": "none"}
    result, model = judged(vote=vote, panel={"dynamic": 0}, voting=plain)
    assert len(model.prompts) == 2
    assert [vote["preference"] for vote in result["votes"]] == ["A", None, "A"]
    assert [(f["unit"], f["reason"]) for f in result["verdict"]["failures"]] == [
        ("Critic", "invalid_label")
    ]
    assert result["verdict"]["preference"] == "A"
    assert result["score_norm"] == 1.0


def test_without_a_quorum_of_votes_nobody_is_preferred():
    verdict = judged(vote=lambda p, n: "equal", panel={"dynamic": 0})[0]["verdict"]
    assert verdict["preference"] is None
    assert verdict["score"] is None
    assert "0 of 3 roles" in verdict["rationale"]


@for_each(
    "logprobs",
    [
        {"content": "odd"},
        {"content": [{"token": "x", "logprob": None}]},
        {"content": [{"token": '{"reason": "x", "vote": "1"}', "logprob": math.nan}]},
        {"content": [{"token": '{"reason": "x", "vote": "1"}', "logprob": 1000.0}]},
        {"content": [{"token": "x", "logprob": -1.0, "bytes": [300]}]},
    ],
)
def test_broken_log_probabilities_are_none(logprobs):
    data = {"reason": "x", "vote": "1"}
    message = AIMessage(json.dumps(data), response_metadata={"logprobs": logprobs})
    assert confidences(message, data) == {}


@for_each("gives", [[[1.0, 0.0]], [[math.nan] * 8] * 8, RuntimeError("down")])
def test_an_embedder_that_fails_costs_the_clustering_and_not_the_run(gives):
    judge = create_drpe_judge(
        FakeChatModel(replies=respond), embeddings=BrokenEmbeddings(size=8, gives=gives)
    )
    for _ in range(2):
        (row,) = judge_many(judge, [PAIR], progress=False)
        assert [role["type"] for role in row["roles"]][3:] == list(READERS[:4])
        assert row["verdict"]["preference"] == "A"
        (failure,) = [f for f in row["verdict"]["failures"] if f["step"] == "roles"]
        assert failure["unit"] == "clustering"
        is_of_caller = isinstance(gives, RuntimeError)
        assert failure["reason"] == ("internal_error" if is_of_caller else "provider_error")


def test_readers_are_cleaned_before_they_are_seated():
    name_list = [
        {"type": "Teacher", "description": "x"},
        {"type": "teacher ", "description": "again"},
        {"type": "Nobody", "description": " "},
        {"type": "Critic", "description": "sits already"},
    ]

    def answer(prompt):
        return json.dumps({"readers": name_list}) if "Give each a type" in prompt else None

    result, _ = judged(answer=answer)
    names = [role["type"] for role in result["roles"]]
    assert names == ["General Public", "Critic", "News Author", "Teacher"]
    assert [f["reason"] for f in result["verdict"]["failures"]] == ["missing", "no_logprobs"]


@for_each("context", ["article", "candidate"])
def test_role_prompts_see_what_the_context_says(context):
    _, model = judged(panel={"context": context})
    prompt = model.prompts[0]
    assert ("An article." in prompt) == (context != "candidate")
    assert ("good candidate" in prompt) == (context != "article")
    assert "bad reference" not in prompt


def points(*angles):
    return [[math.cos(a), math.sin(a)] for a in angles]


def test_kmeans_keeps_the_member_nearest_to_each_centre():
    # Two bundles: the middle of each is nearest to its centre.
    vectors = points(0.0, 0.1, 0.2, 2.0, 2.1, 2.2)
    assert kmeans_medoids(vectors, 2, seed=0) == [1, 4]
    assert kmeans_medoids(vectors, 9, seed=0) == list(range(6))
    assert kmeans_medoids(vectors, 0, seed=0) == []


def test_the_threads_of_scikit_learn_are_found_once(monkeypatch):
    vectors = points(0.0, 0.1, 0.2, 2.0, 2.1, 2.2)
    first = kmeans_medoids(vectors, 2, seed=0)
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", None)  # reads all maps
    assert kmeans_medoids(vectors, 2, seed=0) == first


def test_dbscan_keeps_noise_and_puts_larger_clusters_first():
    # A bundle of three, a bundle of two, and one like no other.
    vectors = points(0.0, 0.1, 0.2, 2.0, 2.1, 4.0)
    assert dbscan_medoids(vectors, eps=0.1) == [1, 3, 5]
    assert dbscan_medoids([], eps=0.1) == []


@for_each(
    ("pair", "task", "judges"),
    [
        ({"input": "How do I brew tea?"}, "response", "Asker"),
        ({"input": "Sum up: it burnt.", "task_kind": "summary"}, "summary", "General Public"),
        ({"input": [{"role": "user", "content": x} for x in "ab"]}, "dialogue", "Partner"),
    ],
)
def test_the_panel_is_told_what_it_judges(pair, task, judges):
    texts = {"output_a": "The good mill burnt down.", "output_b": "The mill burnt."}
    result, model = judged({**texts, **pair}, task="auto")
    assert result["task"] == task
    assert result["roles"][0]["type"] == judges
    assert TASKS[task]["sought"] in model.prompts[0]
    about = TASKS[task]["about"].replace("{noun}", "response")
    assert all(part in model.prompts[-1] for part in (about, TASKS[task]["question"]))


@for_each(
    ("coarse", "fine", "task"),
    [
        ("summary", "response", "response"),
        ("response", "summary", "response"),
        ("summary", None, "summary"),
        (None, "summary", "summary"),
        (None, None, "response"),
    ],
)
def test_a_text_that_two_replies_read_in_two_ways_is_judged_by_words_for_any(coarse, fine, task):
    def says(prompt):
        if "Give each a type" not in prompt:
            return None
        wanted = coarse if "by occupation" in prompt else fine
        return json.dumps(json.loads(respond(prompt)) | ({"wanted": wanted} if wanted else {}))

    result, model = judged(answer=says, task="auto", voting={"confidence": "none"})
    assert result["task"] == task
    assert TASKS[task]["question"] in model.prompts[-1]
    assert result["roles"][0]["type"] == SETS[TASKS[task]["panel"]][0]["type"]
    differ = [f["unit"] for f in result["verdict"]["failures"]]
    assert differ == ["wanted"] * (None not in (coarse, fine))


def test_the_manual_panel_keeps_its_views_and_has_the_judges_of_the_task():
    types = {}
    for task in ("summary", "helpful"):
        result, model = judged(task=task, panel={"static": "manual", "dynamic": 0})
        types[task] = [role["type"] for role in result["roles"]]
        assert len(model.prompts) == 1
        assert ("wrote the article" in model.prompts[0]) == (task == "summary")
    views = ["Student", "Business Person", "Politician"]
    assert types["summary"] == [*views, "General Public", "Critic", "News Author"]
    views = ["Beginner", "Practitioner", "Skeptic"]
    assert types["helpful"] == [*views, "Asker", "Expert", "Editor"]


def test_every_panel_that_a_task_may_name_has_roles():
    assert set(PANELS) == set(SETS)
    assert {task["panel"] for task in TASKS.values()} <= set(PANELS)


def test_roles_stand_in_an_order_drawn_for_the_pair_and_votes_find_their_role():
    def vote(prompt, name):
        return favours_good(prompt) if name == "Critic" else "12"[favours_good(prompt) == "1"]

    orders = set()
    for number in range(6):
        pair = {**PAIR, "input": f"Why {number}?"}
        voting = {"confidence": "none"}
        result, model = judged(pair, vote, panel={"dynamic": 0}, voting=voting)
        names = re.findall(r"^role_\d+, ([^:\n]+): ", model.prompts[-1], re.M)
        orders.add(tuple(names))
        by_role = {vote["role"]: vote["preference"] for vote in result["votes"]}
        assert by_role == {"General Public": "B", "Critic": "A", "News Author": "B"}
        assert [vote["role"] for vote in result["votes"]] == [
            "General Public",
            "Critic",
            "News Author",
        ]
    assert len(orders) > 1


CRITIC = {"type": "Critic", "description": "clear words"}


@for_each(
    ("options", "message"),
    [
        ({"panel": {"static": "press"}}, "`static` must be one of"),
        ({"panel": {"static": ["Critic"]}}, "each of `static` must be 'type: description'"),
        ({"panel": {"static": [{**CRITIC, "weight": 3}]}}, "alone, got .*'weight': 3"),
        ({"panel": {"static": {"A": "x"}}}, "`static` must be a list or the name of a set"),
        ({"panel": {"static": ["A: x", "a: y"]}}, "distinct types"),
        ({"panel": {"dynamic": 0, "static": []}}, "a panel needs"),
        ({"panel": {"seats": 3}}, "'panel' has no option 'seats'; .*it takes clustering, "),
        ({"panel": 5}, "`panel` must be a Panel or its fields by name, got 5"),
    ],
)
def test_options_are_checked_with_the_rule_and_the_value(options, message):
    with pytest.raises(OptionError, match=message):
        create_drpe_judge(FakeChatModel(), **options)
