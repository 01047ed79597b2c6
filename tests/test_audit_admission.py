"""What enters a memory: tried where nobody else sees it, on all of dev that it can reach."""

import json
from operator import eq
from typing import Any

import pytest

from benchmarks.audit_worlds import audited as audited_world
from langchain_judges import create_allure_audit, create_allure_judge, metrics
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure.held_out import (
    balanced_share,
    chance_of_rise,
    split_by_group,
    worth_of,
)
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import memory_of
from tests.planners import WARNING, fooled, planning


def misled(prompt):
    """Judge well, until an example with a harmful note is shown."""
    question = f"{WARNING}\n---\n" + prompt.split("\n---\n")[-1]
    label = int(json.loads(fooled(question))["label"])
    return json.dumps({"label": str(label ^ ("harmful" in prompt)), "explanation": "so"})


def turned(prompt):
    """Judge by words alone, and say the opposite where a harmful note is shown."""
    label = int(json.loads(fooled(prompt))["label"]) ^ ("harmful" in prompt)
    return json.dumps({"label": str(label), "explanation": "so"})


def audit_of(memory, dev, notes, *, recall="all", replies=misled, **options):
    """An audit that doubts all items; the notes of some do harm."""

    def auditor(proposal):
        return {"answer": "accept", "note": notes.get(proposal["id"], "fine")}

    judge = create_allure_judge(FakeChatModel(replies=replies), memory=memory, recall=recall)
    return create_allure_audit(
        judge, memory, check=lambda item, label: 1 - label, auditor=auditor, dev=dev,
        max_rounds=1, **options,
    )  # fmt: skip


def audited(memory, items, dev, *, harmful=(), **options):
    notes = dict.fromkeys(harmful, "harmful")
    return audit_of(memory, dev, notes, **options).invoke({"items": items})


def sources(waiting):
    return [(each["example"]["source"], each["why"]) for each in waiting]


@pytest.mark.whole
def test_one_harmful_example_of_seven_waits_alone_and_the_rest_is_tried_again():
    memory = memory_of()
    items = planning(4)[:7]
    dev = planning(6, first=10)
    result = audited(memory, items, dev, harmful={"0r"}, replies=only_marked)
    # The six rise by what the harmful one does not break; left out it is found.
    assert [len(trial["sources"]) for trial in result["trials"]] == [7, 6]
    assert [trial["admitted"] for trial in result["trials"]] == [False, True]
    assert sources(result["waiting"]) == [("0r", "harms")]
    assert [e["source"] for e in memory.examples()] == [i["id"] for i in items[1:]]
    assert (result["history"][0]["remembered"], result["history"][0]["waiting"]) == (6, 1)


def only_marked(prompt):
    """Judge well once warned; a harmful note turns the label of one item, in house 11."""
    label = json.loads(fooled(prompt))["label"]
    turned = "harmful" in prompt and "house 11?" in prompt.split("</request")[-2]
    return json.dumps({"label": str(int(label) ^ turned), "explanation": "so"})


@pytest.mark.whole
def test_an_example_does_no_harm_by_as_much_as_a_judge_that_wavers_changes():
    def wavers(prompt):
        """Judge well once warned; a harmful note spoils two houses and mends one."""
        label = int(json.loads(fooled(prompt))["label"])
        house = prompt.split("</request")[-2].rpartition("house ")[2].split("?")[0]
        wrong = house in ("11", "12") if "harmful" in prompt else house == "13"
        return json.dumps({"label": str(label ^ wrong), "explanation": "so"})

    memory, dev = memory_of(), planning(14, first=10)
    result = audited(memory, planning(4)[:7], dev, harmful={"0r"}, replies=wavers)
    # Two houses better and one worse without it: by coins that is 4 of 8.
    assert (len(result["trials"]), result["waiting"], len(memory)) == (1, [], 7)


@pytest.mark.whole
def test_the_limit_is_shared_by_all_trials_and_a_hopeless_dev_costs_nothing():
    memory = memory_of()
    items, harmful = planning(2), {"0r", "1r"}
    dev = planning(6, first=10)
    result = audited(memory, items, dev, harmful=harmful, replies=turned)
    limits = [trial["limit"] for trial in result["trials"]]
    assert limits == [0.25 / n for n in range(1, len(limits) + 1)]
    assert len(limits) > 3
    # On a dev without mistakes no trial could show a gain.
    right = [item for item in planning(6, first=10) if item["label"]]
    result = audited(memory_of(), planning(4), right)
    assert (result["trials"], {why for _, why in sources(result["waiting"])}) == (
        [], {"untried"}
    )  # fmt: skip


@pytest.mark.whole
def test_an_example_that_too_few_items_of_dev_were_shown_waits_families_or_not():
    memory = memory_of()
    items = [*planning(1), *planning(1, first=5, family="other")]
    dev = [*planning(4, first=10), planning(1, first=20, family="other")[0]]
    result = audited(memory, items, dev, replies=fooled)
    assert sources(result["waiting"]) == [("5r", "unmeasured"), ("5w", "unmeasured")]
    assert {example["family"] for example in memory.examples()} == {"maps"}
    # Nobody has a family here, and `near:1` shows all of dev one example alone.
    plain = [{**item, "family": None} for item in planning(6)]
    result = audited(memory_of(), plain[:2], plain[2:], recall="near:1", replies=fooled)
    assert {why for _, why in sources(result["waiting"])} >= {"unmeasured"}


@pytest.mark.whole
@for_each(("kind", "empty"), [("disturbing", True), ("helping", False)])
def test_a_memory_that_disturbs_at_random_is_refused_and_one_that_helps_gets_in(kind, empty):
    sizes = [len(audited_world(world, kind, 48)[0]) for world in range(2)]
    assert [not size for size in sizes] == [empty] * 2


@pytest.mark.whole
def test_what_an_audit_brought_is_measured_on_what_decided_nothing():
    test = planning(6, first=30)
    audit = audit_of(memory_of(), planning(3, first=10), {}, replies=fooled, test=test)
    gain = audit.invoke({"items": planning(2)})["gain"]
    assert (gain["before"]["balanced_accuracy"], gain["after"]["balanced_accuracy"]) == (0.5, 1)
    assert (gain["gain"], gain["problem"]) == (0.5, "")
    assert gain["low"] < 0.5 < gain["high"] <= 1  # few items, so that luck may be all of it
    audit = audit_of(memory_of(), None, {}, replies=misled, test=planning(2, first=30))
    assert "too few groups" in audit.invoke({"items": planning(2)})["gain"]["problem"]
    audit = audit_of(memory_of(), None, {}, replies=misled, test=planning(1))
    with pytest.raises(InputError, match="of test"):
        audit.invoke({"items": planning(2)})


async def test_nobody_else_sees_what_is_on_trial(tmp_path):
    memory, log = memory_of(path=tmp_path / "m"), []

    def watched(prompt):
        if "harmful" in prompt:
            log.append(len(memory_of(path=tmp_path / "m")))
        return turned(prompt)

    notes = {"0r": "harmful", "0w": "harmful"}
    audit = audit_of(memory, planning(2, first=10), notes, replies=watched)
    result = await audit.ainvoke({"items": planning(1)})
    # Four items of dev were shown both examples; their two mistakes could show no gain again.
    assert log == [0] * 4
    assert len(result["waiting"]) == 2


def test_without_dev_all_that_was_accepted_is_remembered():
    memory = memory_of()
    result = audited(memory, planning(1), None, harmful={"0r"})
    assert (len(memory), result["trials"], result["waiting"]) == (2, [], [])


@pytest.mark.whole
@for_each(
    ("before", "after", "admitted"),
    [
        # Two zeros and twenty ones. Balanced accuracy: .75, then .725.
        ([0, 1, *[1] * 20], [0, 1, 0, *[1] * 19], False),
        # Balanced accuracy rises from .5 to .525 (1, then 21 of 40), plain accuracy falls.
        ([1, 1, *[1] * 20], [0, 0, *[0] * 18, 1, 1], False),
        ([0, 1, *[1] * 20], [0, 0, *[1] * 20], True),
    ],
)
def test_neither_accuracy_may_fall_whatever_the_risk(before, after, admitted):
    truths = [0, 0, *[1] * 20]
    dev = [
        {"id": f"d{n}", "input": f"Task {n}?", "output": f"Reply {n}.", "label": truth}
        for n, truth in enumerate(truths)
    ]
    labels = {f"Reply {n}.": pair for n, pair in enumerate(zip(before, after, strict=True))}

    def says(prompt):
        own = next((pair for text, pair in labels.items() if text in prompt), (1, 1))
        return json.dumps({"label": str(own["harm" in prompt]), "explanation": "so"})

    memory = memory_of()
    judge = create_allure_judge(
        FakeChatModel(replies=says), memory=memory, recall="all", rubric="Is it right?"
    )
    audit = create_allure_audit(
        judge, memory, check=lambda item, label: 1 - label, dev=dev, max_rounds=1, risk=1.0,
        auditor=lambda _: {"answer": "accept", "note": "harm"},
    )  # fmt: skip
    result = audit.invoke({"items": [{"id": "x", "input": "Another?", "output": "Other."}]})
    [trial] = result["trials"]
    right = [sum(map(eq, each, truths)) / 22 for each in (before, after)]
    assert [trial["accuracy_before"], trial["accuracy_after"]] == right
    assert (trial["admitted"], len(memory)) == (admitted, int(admitted))


# -- what is measured


def test_balanced_accuracy_is_the_mean_recall_as_the_metrics_say():
    # Recall of 1: 2/3, of 0: 1/2.
    cases = [("a", 1, 1), ("b", 1, 1), ("c", 1, None), ("d", 0, 0), ("e", 0, 1)]
    measured = worth_of(cases)
    assert measured["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (measured["accuracy"], measured["majority"]) == (0.6, 0.6)
    assert measured["not_judged"] == 1
    assert balanced_share([(n, n % 2, 1) for n in range(8)]) == 0.5
    many: Any = [(n % 6, n % 2, n % 3 % 2 if n % 7 else None) for n in range(40)]
    groups, labels, answers = zip(*many, strict=True)
    ours, balanced = worth_of(many), metrics.balanced_accuracy(answers, labels, "wrong")
    assert ours["balanced_accuracy"] == pytest.approx(balanced.value)
    result = metrics.accuracy(answers, labels, groups=groups)
    assert (ours["low"], ours["high"]) == pytest.approx(tuple(result.interval))


def test_the_chance_of_a_rise_is_that_of_a_sign_test_of_groups():
    before: Any = [(n, 1, int(n > 4)) for n in range(20)]
    better: Any = [(n, 1, 1) for n in range(20)]
    assert chance_of_rise(before, better) == 1 / 32
    assert chance_of_rise(before, before) == 1
    assert chance_of_rise(better, before) == 1
    # Three groups better, one worse: 4 + 1 of 16 throws of four coins.
    mixed: Any = [(n, 1, int(n in (0, 1, 2) or n > 5)) for n in range(20)]
    assert chance_of_rise(before, mixed) == 5 / 16
    # Five items of one group are one change.
    assert chance_of_rise([("g", *each[1:]) for each in before], mixed[:0] or [
        ("g", *each[1:]) for each in better
    ]) == 1 / 2  # fmt: skip


def test_a_split_keeps_groups_whole():
    items = planning(10)
    pool, dev = split_by_group(items, 0.3, seed=3)
    assert len(dev) == 6
    assert not {item["group"] for item in pool} & {item["group"] for item in dev}
    assert split_by_group(items, 0.3, seed=3) == (pool, dev) != split_by_group(items, 0.3)
    with pytest.raises(OptionError, match="two groups"):
        split_by_group(planning(1), 0.5)
