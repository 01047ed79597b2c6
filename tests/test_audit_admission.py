"""What enters a memory: tried where nobody else sees it, on all of dev that it can reach."""

import json
from operator import eq
from typing import Any

import pytest

from langchain_judges import create_allure_audit, create_allure_judge, metrics
from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import all_
from langchain_judges.methods.allure.held_out import (
    balanced_accuracy,
    fall_risk,
    measure,
    split_by_group,
)
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import memory_of
from tests.planners import fooled, planning


def misled(prompt):
    """Judge well, until an example with a harmful note is shown."""
    question = "It was misled by keywords.\n---\n" + prompt.split("\n---\n")[-1]
    label = int(json.loads(fooled(question))["label"])
    return json.dumps({"label": str(label ^ ("harmful" in prompt)), "explanation": "so"})


def audit_of(memory, dev, notes, *, recall="all", replies=misled):
    """Return an audit that doubts all items; the notes of some do harm."""

    def auditor(proposal):
        return {"answer": "accept", "note": notes.get(proposal["id"], "fine")}

    judge = create_allure_judge(FakeChatModel(replies=replies), memory=memory, recall=recall)
    return create_allure_audit(
        judge, memory, check=lambda item, label: 1 - label, auditor=auditor, dev=dev,
        max_rounds=1,
    )  # fmt: skip


def audited(memory, items, dev, *, harmful=(), **options):
    notes = dict.fromkeys(harmful, "harmful")
    return audit_of(memory, dev, notes, **options).invoke({"items": items})


def sources(waiting):
    return [(each["example"]["source"], each["why"]) for each in waiting]


def test_one_harmful_example_of_seven_costs_few_trials_and_waits_alone():
    memory = memory_of()
    items = planning(4)[:7]
    result = audited(memory, items, planning(2, first=10), harmful={"0r"})
    # 7 refused, 4 refused, 2 refused, 1 refused; then 1, 2 and 3 admitted, and 1 tried again.
    assert [len(trial["sources"]) for trial in result["trials"]] == [7, 4, 2, 1, 1, 2, 3, 1]
    assert sources(result["waiting"]) == [("0r", "fell")]
    assert [e["source"] for e in memory.examples()] == [i["id"] for i in items[1:]]
    assert (result["history"][0]["remembered"], result["history"][0]["waiting"]) == (6, 1)
    first = result["trials"][0]
    assert (first["before"], first["after"], first["risk"]) == (1.0, 0.0, 1.0)
    assert result["history"][0]["dev"]["balanced_accuracy"] == 1.0


def test_examples_shown_across_families_are_measured_across_them():
    memory = memory_of()
    dev = [*planning(1, first=10), *planning(2, first=20, family="other")]
    across = all_(any_family=True)
    result = audited(memory, planning(1), dev, harmful={"0r", "0w"}, recall=across)
    assert {trial["admitted"] for trial in result["trials"]} == {False}
    assert (len(memory), result["history"][0]["dev"]["balanced_accuracy"]) == (0, 1.0)
    # Six items of dev for each of three trials: both gather, and each alone.
    tried = result["history"][0]["usage"]["calls"] - len(planning(1)) - len(dev)
    assert tried == 3 * 6


def test_a_family_that_nobody_measures_waits_and_is_named():
    memory = memory_of()
    items = [*planning(1), *planning(1, first=5, family="other")]
    result = audited(memory, items, planning(2, first=10))
    assert sources(result["waiting"]) == [("5r", "unmeasured"), ("5w", "unmeasured")]
    assert {example["family"] for example in memory.examples()} == {"maps"}
    assert result["history"][0]["unmeasured"] == ["other"]


async def test_nobody_else_sees_what_is_on_trial(tmp_path):
    memory, log = memory_of(path=tmp_path / "m"), []

    def watched(prompt):
        if "harmful" in prompt:
            log.append(len(memory_of(path=tmp_path / "m")))
        return misled(prompt)

    notes = {"0r": "harmful", "0w": "harmful"}
    audit = audit_of(memory, planning(2, first=10), notes, replies=watched)
    result = await audit.ainvoke({"items": planning(1)})
    # Four items of dev, shown both examples together and then each.
    assert log == [0] * 12
    assert len(result["waiting"]) == 2


def test_without_dev_all_that_was_accepted_is_remembered():
    memory = memory_of()
    result = audited(memory, planning(1), None, harmful={"0r"})
    assert (len(memory), result["trials"], result["waiting"]) == (2, [], [])


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
    measured = measure(cases)
    assert measured["balanced_accuracy"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (measured["accuracy"], measured["majority"]) == (0.6, 0.6)
    assert measured["not_judged"] == 1
    assert balanced_accuracy([(n, n % 2, 1) for n in range(8)]) == 0.5
    many: Any = [(n % 6, n % 2, n % 3 % 2 if n % 7 else None) for n in range(40)]
    groups, labels, answers = zip(*many, strict=True)
    result = metrics.balanced_accuracy(answers, labels, "wrong", groups=groups)
    ours = measure(many)
    assert ours["balanced_accuracy"] == pytest.approx(result.value)
    assert (ours["low"], ours["high"]) == pytest.approx(tuple(result.interval))


def test_the_risk_of_a_fall_is_paired():
    good: Any = [(n, n % 2, n % 2) for n in range(20)]
    worse: Any = [(n, n % 2, 0) for n in range(20)]
    assert fall_risk(good, good) == fall_risk(worse, good) == 0
    assert fall_risk(good, worse) > 0.99
    # One of twenty groups fell: it is in a resample with 1 - 0.95 ** 20 = 0.64.
    assert fall_risk(good, [*good[:-1], (19, 1, 0)]) == pytest.approx(0.64, abs=0.04)


def test_a_split_keeps_groups_whole():
    items = planning(10)
    pool, dev = split_by_group(items, 0.3, seed=3)
    assert len(dev) == 6
    assert not {item["group"] for item in pool} & {item["group"] for item in dev}
    assert split_by_group(items, 0.3, seed=3) == (pool, dev) != split_by_group(items, 0.3)
    with pytest.raises(OptionError, match="two groups"):
        split_by_group(planning(1), 0.5)
