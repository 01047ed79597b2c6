"""What enters a memory: tried where nobody else sees it, on all of dev that it can reach."""

import json
from operator import eq
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from langchain_judges import FailureMemory, create_allure_audit, create_allure_judge
from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import all_
from langchain_judges.methods.allure.admission import Admission, Reach
from langchain_judges.methods.allure.state import AuditOptions
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import ListMemory
from tests.planners import fooled, planning


def misled(prompt):
    """Judge well, until an example with a harmful note is shown."""
    question = "It was misled by keywords.\n---\n" + prompt.split("\n---\n")[-1]
    label = int(json.loads(fooled(question))["label"])
    return json.dumps({"label": str(label ^ ("harmful" in prompt)), "explanation": "so"})


def memory_in(path=None):
    return FailureMemory(embeddings=DeterministicFakeEmbedding(size=8), path=path)


def audited(memory, items, dev, *, harmful=(), recall="all", model=None, **options):
    """Audit items all of which are doubted; the notes of some do harm."""

    def auditor(proposal):
        return {"answer": "accept", "note": "harmful" if proposal["id"] in harmful else "fine"}

    model = model or FakeChatModel(replies=misled)
    judge = create_allure_judge(model, memory=memory, recall=recall)
    settings = {"max_rounds": 1, "check": lambda item, label: 1 - label, **options}
    audit = create_allure_audit(judge, memory, auditor=auditor, dev=dev, **settings)
    return audit.invoke({"items": items})


def sources(waiting):
    return [(each["example"]["source"], each["why"]) for each in waiting]


def test_one_harmful_example_of_seven_costs_few_trials_and_waits_alone():
    memory = ListMemory()
    items = planning(4)[:7]
    result = audited(memory, items, planning(2, first=10), harmful={"0r"})
    # 7 refused, 4 refused, 2 refused, 1 refused; then 1, 2 and 3 admitted, and 1 tried again.
    assert [len(trial["sources"]) for trial in result["trials"]] == [7, 4, 2, 1, 1, 2, 3, 1]
    assert sources(result["waiting"]) == [("0r", "fell")]
    assert [e["source"] for e in memory.examples.values()] == [i["id"] for i in items[1:]]
    assert (result["history"][0]["remembered"], result["history"][0]["waiting"]) == (6, 1)


def test_what_waits_is_admitted_when_the_memory_no_longer_makes_it_harm():
    def healed(prompt):
        cured = "0w" in prompt
        return misled(prompt.replace("harmful", "cured") if cured else prompt)

    def auditor(proposal):
        note = {"0r": "harmful", "0w": "0w"}[proposal["id"]]
        return {"answer": "accept", "note": note}

    memory = ListMemory()
    judge = create_allure_judge(FakeChatModel(replies=healed), memory=memory, recall="all")
    audit = create_allure_audit(
        judge, memory, check=lambda item, label: 1 - label, auditor=auditor,
        dev=planning(2, first=10), admit="example", max_rounds=1,
    )  # fmt: skip
    result = audit.invoke({"items": planning(1)})
    tried = [(trial["sources"], trial["admitted"]) for trial in result["trials"]]
    assert tried == [(["0r"], False), (["0w"], True), (["0r"], True)]
    assert result["waiting"] == []


def test_examples_shown_across_families_are_measured_across_them():
    memory = memory_in()
    dev = [*planning(1, first=10), *planning(2, first=20, family="other")]
    harmful = {"0r", "0w"}
    across = all_(any_family=True)
    result = audited(memory, planning(1), dev, harmful=harmful, recall=across)
    assert {trial["admitted"] for trial in result["trials"]} == {False}
    assert (len(memory), result["history"][0]["dev"]["balanced_accuracy"]) == (0, 1.0)
    # Six items of dev for each of three trials: both together, and each alone.
    tried = result["history"][0]["usage"]["calls"] - len(planning(1)) - len(dev)
    assert tried == 3 * 6


def test_a_refused_correction_leaves_what_was_there():
    memory = memory_in()
    item = {**planning(1)[0], "label": 0}
    audited(memory, [item], planning(2, first=10))
    before = memory.version, memory.examples()
    result = audited(memory, [item], planning(2, first=10), harmful={"0r"})
    assert sources(result["waiting"]) == [("0r", "fell")]
    assert before[1]
    assert (memory.version, memory.examples()) == before


def test_a_family_that_nobody_measures_waits_and_is_named():
    memory = memory_in()
    items = [*planning(1), *planning(1, first=5, family="other")]
    result = audited(memory, items, planning(2, first=10))
    assert sources(result["waiting"]) == [("5r", "unmeasured"), ("5w", "unmeasured")]
    assert {example["family"] for example in memory.examples()} == {"maps"}
    assert result["history"][0]["unmeasured"] == ["other"]


def test_a_family_that_nobody_measures_may_be_admitted_and_is_marked():
    memory = memory_in()
    items = planning(1, first=5, family="other")
    result = audited(memory, items, planning(2, first=10), unmeasured="admit")
    [trial] = result["trials"]
    assert (trial["admitted"], trial["risk"], trial["unmeasured"]) == (True, None, ["other"])
    assert len(memory) == len(trial["examples"]) == 2
    assert result["history"][0]["unmeasured"] == ["other"]
    with pytest.raises(OptionError, match="`unmeasured`"):
        audited(memory, items, None, unmeasured="maybe")


@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
async def test_nobody_else_sees_what_is_on_trial(tmp_path, call):
    memory, log = memory_in(tmp_path / "m"), []

    def watched(prompt):
        if "harmful" in prompt:
            log.append(len(memory_in(tmp_path / "m")))
        return misled(prompt)

    judge = create_allure_judge(FakeChatModel(replies=watched), memory=memory, recall="all")
    audit = create_allure_audit(
        judge, memory, check=lambda item, label: 1 - label, max_rounds=1,
        auditor=lambda _: {"answer": "accept", "note": "harmful"}, dev=planning(2, first=10),
    )  # fmt: skip
    result = getattr(audit, call)({"items": planning(1)})
    result = result if call == "invoke" else await result
    # Four items of dev, shown both examples together and then each.
    assert log == [0] * 12
    assert len(result["waiting"]) == 2


def test_without_dev_all_that_was_accepted_is_remembered():
    memory = memory_in()
    result = audited(memory, planning(1), None, harmful={"0r"})
    assert (len(memory), result["trials"], result["waiting"]) == (2, [], [])


def verdicts_of(labels):
    usage = no_usage()
    blank = {"score": None, "rationale": "", "usage": usage}
    return {f"d{n}": {**blank, "label": label} for n, label in enumerate(labels)}


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
    options: Any = AuditOptions(risk=1.0)
    memory: Any = ListMemory()
    admission = Admission(memory, Reach(everywhere=True), (0, 1), options)
    truths = [0, 0, *[1] * 20]
    dev = [{"id": f"d{n}", "label": truth} for n, truth in enumerate(truths)]
    state: Any = {
        **{"batch": [{"family": "", "source": "s"}], "dev": dev, "round": 1},
        **{"dev_verdicts": verdicts_of(before), "trial_verdicts": verdicts_of(after)},
        **{"trials": [], "spent": []},
    }
    trial, _ = admission._judge(state)
    right = [sum(map(eq, labels, truths)) / 22 for labels in (before, after)]
    assert [trial["accuracy_before"], trial["accuracy_after"]] == right
    assert trial["admitted"] is admitted
