"""The loop: what is proposed, decided, remembered and measured; killed and resumed."""

import json
from collections import Counter
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from langchain_judges import (
    FailureMemory,
    create_allure_audit,
    create_allure_judge,
    create_bsm_judge,
    create_bsm_writer,
    metrics,
)
from langchain_judges.asking.steps import run
from langchain_judges.asking.store import ThreadReplies
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.example import MEANINGS
from langchain_judges.methods.allure.auditors import resolve_auditor
from langchain_judges.methods.allure.holdout import (
    balanced_accuracy,
    cases_of,
    fall_risk,
    measure,
    split_by_group,
)
from langchain_judges.methods.allure.modes import read_modes
from langchain_judges.methods.allure.state import AuditOptions
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import ListMemory, example
from tests.planners import as_labelled, fooled, fooled_model, planning
from tests.test_memory import Letters


def loop(memory, model=None, **options):
    judge = create_allure_judge(model or fooled_model(), memory=memory, recall="all")
    return create_allure_audit(judge, memory, **{"auditor": as_labelled, **options})


def worth(memory, items):
    judge = create_allure_judge(fooled_model(), memory=memory, recall="all")
    labels = [judge.invoke(item)["verdict"]["label"] for item in items]
    return balanced_accuracy(
        [(None, item["label"], label) for item, label in zip(items, labels, strict=True)]
    )


def test_the_loop_finds_audits_and_remembers_mistakes_until_none_are_left():
    memory, model = ListMemory(), fooled_model()
    result = loop(memory, model).invoke({"items": planning(3)})
    first, second = result["history"]
    assert (first["evaluated"], first["proposed"], first["accepted"]) == (6, 3, 3)
    # The leak guard hides a group's own example; those of the others warn the judge.
    assert (second["evaluated"], second["doubted"], second["remembered"]) == (6, 0, 0)
    assert result["stopped"] == "nothing_new"
    assert len(memory) == 3
    assert result["examples"] == list(memory.examples)
    entry = next(iter(memory.examples.values()))
    assert entry | {"id": "", "auditor": ""} == {
        "id": "",
        "family": "maps",
        "input": "Which path leads through house 0?",
        "output": "Answer: 50, 20, 1",
        "expected": "1, 20, 50",
        "wrong": 1,
        "corrected": 0,
        "mode": "keywords",
        "mode_meaning": MEANINGS["keywords"],
        "source": "0w",
        "group": "house 0",
        "round": 1,
        "auditor": "",
        "note": "",
    }
    # T calls for each of two rounds.
    assert len(model.prompts) == 12 == sum(r["usage"]["calls"] for r in result["history"])
    assert first["pool"]["accuracy"] == 0.5
    assert second["pool"]["accuracy"] == 1.0


async def test_sync_and_async_agree():
    def result_of(outcome):
        return {key: outcome[key] for key in ("history", "decisions", "verdicts")}

    now = loop(ListMemory()).invoke({"items": planning(2)})
    later = await loop(ListMemory()).ainvoke({"items": planning(2)})
    assert result_of(now) == result_of(later)


def test_the_judge_is_told_what_a_mode_of_ones_own_means():
    memory, model = ListMemory(), fooled_model()
    modes = ["turned: The rooms stand the other way round."]
    audit = loop(
        memory, model, modes=modes, auditor=lambda _: {"answer": "mode", "mode": "turned"}
    )
    audit.invoke({"items": planning(2)})
    lesson = "It was misled by turned: The rooms stand the other way round."
    assert lesson in model.prompts[-1]


def test_remembering_helps_on_held_out_items_and_forgetting_undoes_it():
    held_out = planning(5, first=10)
    memory = ListMemory()
    assert worth(memory, held_out) == 0.5
    unrelated = memory.remember(
        [example("9", 1, family="maps", mode="gibberish"), example("7", 0, family="other")]
    )
    assert worth(memory, held_out) == 0.5
    learnt = loop(memory).invoke({"items": planning(3)})["examples"]
    assert worth(memory, held_out) == 1.0
    memory.forget([*learnt, *unrelated])
    assert worth(memory, held_out) == 0.5


def test_a_leak_flatters_and_the_guard_bites():
    item = planning(1)[1]
    own = example(
        item["output"],
        0,
        family="maps",
        mode="keywords",
        group=item["group"],
        expected=item["expected"],
    )
    memory = ListMemory(own)
    guarded = create_allure_judge(fooled_model(), memory=memory)
    leaking = create_allure_judge(fooled_model(), memory=memory, allow_leak=True)
    assert guarded.invoke(item)["verdict"]["label"] == 1
    assert leaking.invoke(item)["verdict"]["label"] == 0
    audit = create_allure_audit(leaking, memory, auditor=as_labelled)
    assert audit.invoke({"items": planning(1)})["leak_allowed"]
    assert not loop(ListMemory()).invoke({"items": planning(1)})["leak_allowed"]


@pytest.mark.parametrize(
    ("answer", "entries", "counted"),
    [
        ("accept", {"corrected": 0, "mode": "keywords"}, "accepted"),
        ({"answer": "mode", "mode": "order"}, {"corrected": 0, "mode": "order"}, "accepted"),
        ({"answer": "label", "label": "0"}, {"corrected": 0}, "accepted"),
        ({"answer": "accept", "note": "Mind it."}, {"note": "Mind it."}, "accepted"),
        ("reject", None, "rejected"),
        ("the check was wrong", None, "check_wrong"),
        # Editing the label back to the judge's says that the check was wrong.
        ({"answer": "label", "label": 1}, None, "check_wrong"),
    ],
)  # fmt: skip
def test_each_answer_is_kept_apart(answer, entries, counted):
    memory = ListMemory()
    result = loop(memory, auditor=lambda _: answer).invoke({"items": planning(1)})
    first = result["history"][0]
    assert {name: first[name] for name in ("accepted", "rejected", "check_wrong")} == {
        **dict.fromkeys(("accepted", "rejected", "check_wrong"), 0),
        counted: 1,
    }
    examples = list(memory.examples.values())
    assert (examples == []) if entries is None else entries.items() <= examples[0].items()
    # Nothing decided is asked again.
    assert len(result["decisions"]) == 1


@for_each("answer", ["maybe", {"answer": "label"}, {"answer": "label", "label": 7}])
def test_an_answer_that_is_none_is_refused(answer):
    with pytest.raises(InputError, match=r"0w: `(answer|label)`"):
        loop(ListMemory(), auditor=lambda _: answer).invoke({"items": planning(1)})


def test_people_get_all_proposals_of_a_round_at_once():
    memory = ListMemory()
    audit = loop(memory, auditor="human", checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    waiting = audit.invoke({"items": planning(2)}, config)
    proposals = waiting["__interrupt__"][0].value
    assert [p["id"] for p in proposals["proposals"]] == ["0w", "1w"]
    assert {m["name"] for m in proposals["modes"]} >= {"keywords", "parroting"}
    assert len(memory) == 0
    partly = [{"id": "0w", "answer": "accept"}, {"id": "nobody", "answer": "accept"}]
    still = audit.invoke(Command(resume=partly), config)["__interrupt__"][0].value
    assert [p["id"] for p in still["proposals"]] == ["1w"]
    assert still["problems"] == ["'nobody' is none of the proposals"]
    result = audit.invoke(Command(resume={"1w": "reject"}), config)
    assert [d["answer"] for d in result["decisions"]][:2] == ["accept", "reject"]
    assert result["decisions"][0]["auditor"] == "human"


def test_a_restart_goes_on_where_it_was_and_pays_nothing_twice(tmp_path):
    memory, model = ListMemory(), fooled_model()
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    file = str(tmp_path / "audit.sqlite")
    with SqliteSaver.from_conn_string(file) as saver:
        audit = loop(memory, model, auditor="human", checkpointer=saver)
        audit.invoke({"items": planning(3)}, config)
    assert len(model.prompts) == 6
    with SqliteSaver.from_conn_string(file) as saver:
        audit = loop(memory, model, auditor="human", checkpointer=saver)
        pending = audit.get_state(config).interrupts[0].value["proposals"]
        answers = {p["id"]: as_labelled(p) for p in pending}
        result = audit.invoke(Command(resume=answers), config)
    assert result["stopped"] == "nothing_new"
    assert len(model.prompts) == 12


async def test_an_async_restart_pays_nothing_twice(tmp_path):
    memory, model = ListMemory(), fooled_model()
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    file = str(tmp_path / "audit.sqlite")
    for step in range(2):
        async with AsyncSqliteSaver.from_conn_string(file) as saver:
            audit = loop(memory, model, auditor="human", checkpointer=saver)
            step_input: Any = (
                Command(resume={"0w": "accept"}) if step else {"items": planning(1)}
            )
            await audit.ainvoke(step_input, config)
    assert len(model.prompts) == 4


class Killed(BaseException):
    """What ends a process, which no code catches."""


NODES = (
    "prepare", "evaluate", "check", "propose", "audit", "stage", "try", "admit", "measure",
)  # fmt: skip


def test_the_loop_has_these_nodes():
    assert set(loop(ListMemory()).nodes) == {"__start__", *NODES}


@pytest.fixture(scope="module")
def calm():
    """Return what the loop comes to when nothing kills it."""
    return loop(ListMemory(), dev=planning(3, first=10)).invoke({"items": planning(3)})


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_loop_goes_on_from_a_kill_at_each_node(node, when, calm, tmp_path, monkeypatch):
    from langchain_judges.asking.nodes import Node

    armed = [True]
    original = Node.invoke

    def dying(self, state, config=None, **rest):
        hit = armed and self._step(config) == node
        if hit and when == "before":
            armed.clear()
            raise Killed
        update = original(self, state, config, **rest)
        if hit:
            armed.clear()
            raise Killed
        return update

    memory, model = ListMemory(), fooled_model()
    config: RunnableConfig = {"configurable": {"thread_id": "t"}, "max_concurrency": 1}
    monkeypatch.setattr(Node, "invoke", dying)
    with SqliteSaver.from_conn_string(str(tmp_path / "audit.sqlite")) as saver:
        audit = loop(memory, model, dev=planning(3, first=10), checkpointer=saver)
        with pytest.raises(Killed):
            audit.invoke({"items": planning(3)}, config)
        result = audit.invoke(None, config)
    assert result["history"] == calm["history"]
    assert result["decisions"] == calm["decisions"]
    assert len(memory) == 3
    calls = sum(r["usage"]["calls"] for r in calm["history"])
    # The judge's own step is called `evaluate` too: killed between its reply and the journal.
    repeats = 1 if (when, node) == ("after", "evaluate") else 0
    assert len(model.prompts) == calls + repeats


def hurt(prompt):
    """Judge well, until an example is shown."""
    answer = json.loads(
        fooled("It was misled by keywords.\n---\n" + prompt.split("\n---\n")[-1])
    )
    wrong = "harmful" in prompt
    return json.dumps({**answer, "label": str(int(answer["label"]) ^ wrong)})


def test_examples_that_make_dev_fall_wait_and_say_so():
    memory = ListMemory()
    items = [{**item, "expected": "harmful"} for item in planning(2)]
    for item in items:
        item["label"] = 0
    dev = planning(4, first=10)
    model = FakeChatModel(replies=hurt)
    doubting = loop(
        memory,
        model,
        dev=dev,
        check=lambda item, label: 1 - label,
        auditor=lambda p: {"answer": "accept", "note": "harmful"},
    )
    result = doubting.invoke({"items": items})
    assert len(memory) == 0
    assert result["examples"] == []
    waiting = [(each["example"]["source"], each["why"]) for each in result["waiting"]]
    assert waiting == [("0r", "fell"), ("0w", "fell"), ("1r", "fell"), ("1w", "fell")]
    trial = result["trials"][0]
    assert (trial["before"], trial["after"], trial["admitted"]) == (1.0, 0.0, False)
    assert trial["risk"] == 1.0
    assert result["history"][0]["waiting"] == 4
    assert result["history"][0]["dev"]["balanced_accuracy"] == 1.0


def test_examples_are_admitted_one_by_one_on_request():
    memory = ListMemory()
    auditor = lambda p: {  # noqa: E731
        "answer": "accept",
        "note": "harmful" if p["id"] == "0w" else "",
    }
    respond = lambda prompt: hurt(prompt) if "harmful" in prompt else fooled(prompt)  # noqa: E731
    audit = loop(
        memory,
        FakeChatModel(replies=respond),
        dev=planning(3, first=10),
        admit="example",
        auditor=auditor,
    )
    result = audit.invoke({"items": planning(3)})
    # What was refused is tried again, once the memory has changed.
    tried = [(trial["sources"], trial["admitted"]) for trial in result["trials"]]
    assert tried == [(["0w"], False), (["1w"], True), (["2w"], True), (["0w"], False)]
    assert [each["example"]["source"] for each in result["waiting"]] == ["0w"]
    assert [e["source"] for e in memory.examples.values()] == ["1w", "2w"]
    assert result["history"][0]["dev_before"]["balanced_accuracy"] == 0.5
    assert result["history"][0]["dev"]["balanced_accuracy"] == 1.0


def test_dev_must_share_no_group_with_the_items():
    with pytest.raises(InputError, match="shares its id or group"):
        loop(ListMemory(), dev=planning(1)).invoke({"items": planning(2)})
    result = loop(ListMemory(), dev=planning(1), allow_leak=True).invoke({"items": planning(2)})
    assert result["leak_allowed"]


def test_a_share_is_held_out_by_group():
    result = loop(ListMemory(), dev=0.5).invoke({"items": planning(4)})
    judged, dev = set(result["verdicts"]), set(result["dev_verdicts"])
    assert len(judged) == len(dev) == 4
    assert not {own[0] for own in judged} & {own[0] for own in dev}


def test_without_a_gain_on_dev_the_loop_has_patience_and_then_stops():
    # Each round doubts the next item, and nothing that is remembered changes a label.
    items, counts = planning(5), Counter[str]()
    turn = {item["id"]: number for number, item in enumerate(items, 1)}
    model = FakeChatModel(replies=lambda _: '{"label": "0", "explanation": "no"}')

    def check(item, label):
        counts[item["id"]] += 1
        return 1 - label if counts[item["id"]] == turn[item["id"]] else None

    audit = loop(
        ListMemory(), model, check=check, dev=planning(2, first=10), auditor=lambda p: "accept"
    )
    result = audit.invoke({"items": items})
    assert result["stopped"] == "no_gain"
    assert len(result["history"]) == 2


def test_the_last_round_ends_the_loop():
    result = loop(ListMemory(), max_rounds=1).invoke({"items": planning(2)})
    assert (result["stopped"], len(result["history"])) == ("max_rounds", 1)


def test_only_families_that_learnt_something_are_judged_again():
    items = [*planning(2), *planning(2, first=5, family="other")]
    for item in items[4:]:
        item["label"] = 1 - item["label"]  # audited as a wrong check
    result = loop(ListMemory()).invoke({"items": items})
    assert [r["evaluated"] for r in result["history"]] == [8, 4]
    every = loop(ListMemory(), again="all").invoke({"items": items})
    assert [r["evaluated"] for r in every["history"]] == [8, 8]


def test_items_that_were_not_judged_are_counted_and_not_proposed():
    model = FakeChatModel(replies=lambda _: "no idea")
    result = loop(ListMemory(), model).invoke({"items": planning(1)})
    assert result["history"][0]["not_judged"] == 2
    assert result["decisions"] == []


def test_a_model_can_audit():
    def respond(prompt):
        assert "keywords: " in prompt
        return json.dumps({"reason": "the order", "answer": "accept", "mode": "keywords"})

    memory = ListMemory()
    result = loop(memory, auditor=FakeChatModel(replies=respond)).invoke({"items": planning(2)})
    assert [d["auditor"] for d in result["decisions"]] == ["FakeChatModel"] * 2
    assert [e["note"] for e in memory.examples.values()] == ["the order"] * 2
    # Four items, two audits, four items again.
    assert [r["usage"]["calls"] for r in result["history"]] == [6, 4]


async def test_an_auditing_function_may_be_async():
    async def wait_for(proposal):
        return as_labelled(proposal)

    result = await loop(ListMemory(), auditor=wait_for).ainvoke({"items": planning(2)})
    assert result["decisions"][0]["auditor"] == "wait_for"


def test_balanced_accuracy_is_the_mean_recall():
    # Recall of 1: 2/3, of 0: 1/2.
    cases = [("a", 1, 1), ("b", 1, 1), ("c", 1, None), ("d", 0, 0), ("e", 0, 1)]
    assert balanced_accuracy(cases) == pytest.approx((2 / 3 + 1 / 2) / 2)
    measured = measure(cases)
    assert (measured["accuracy"], measured["majority"]) == (0.6, 0.6)
    assert measured["not_judged"] == 1
    assert measured["low"] <= measured["balanced_accuracy"] <= measured["high"]


def test_an_audit_and_the_metrics_measure_a_judge_alike():
    cases = [(n % 6, n % 2, n % 3 % 2 if n % 7 else None) for n in range(40)]
    groups, labels, answers = zip(*cases, strict=True)
    result = metrics.balanced_accuracy(answers, labels, "wrong", groups=groups)
    measured = measure(cases)
    assert balanced_accuracy(cases) == pytest.approx(result.value)
    assert (measured["low"], measured["high"]) == pytest.approx(tuple(result.interval))


def test_a_judge_that_always_says_right_is_no_better_than_chance():
    items = planning(4)
    verdicts: Any = {item["id"]: {"label": 1} for item in items}
    measured = measure(cases_of(items, verdicts))
    assert (measured["accuracy"], measured["majority"]) == (0.5, 0.5)
    assert measured["balanced_accuracy"] == 0.5


def test_the_risk_of_a_fall_is_paired():
    good = [(n, n % 2, n % 2) for n in range(20)]
    worse = [(n, n % 2, 0) for n in range(20)]
    slightly = [*good[:-1], (19, 1, 0)]
    assert fall_risk(good, good) == 0
    assert fall_risk(good, worse) > 0.99
    assert fall_risk(worse, good) == 0
    # One of twenty groups fell: it is in a resample with 1 - 0.95 ** 20 = 0.64.
    assert fall_risk(good, slightly) == pytest.approx(0.64, abs=0.04)


def test_a_split_keeps_groups_whole():
    items = planning(10)
    pool, dev = split_by_group(items, 0.3, seed=3)
    assert len(dev) == 6
    assert not {item["group"] for item in pool} & {item["group"] for item in dev}
    assert split_by_group(items, 0.3, seed=3) == (pool, dev)
    assert split_by_group(items, 0.3, seed=4) != (pool, dev)
    with pytest.raises(OptionError, match="two groups"):
        split_by_group(planning(1), 0.5)
    with pytest.raises(OptionError, match="`share`"):
        split_by_group(items, 1.0)


@for_each(
    ("option", "value"),
    [
        ("max_rounds", 0),
        ("patience", True),
        ("risk", 2),
        ("admit", "all"),
        ("again", "some"),
        ("check", "nothing"),
        ("auditor", None),
        ("auditor", ""),
        ("modes", 5),
        ("modes", "order"),
        ("dev", 5),
        ("dev", "x"),
        ("truth", ""),
        ("allow_leak", "yes"),
        ("risk", True),
        ("seed", -1),
        ("checkpointer", "x"),
        ("store", "x"),
        ("labels", (1,)),
    ],
)
def test_an_option_that_is_not_allowed_is_named(option, value):
    with pytest.raises(OptionError, match=f"`{option}`"):
        loop(ListMemory(), **{option: value})


@for_each(("own", "problem"), [(ListMemory(), "another memory"), (None, "no memory")])
@for_each("wrapped", [False, True])
def test_a_judge_without_this_memory_would_learn_nothing(own, problem, wrapped):
    judge = create_allure_judge(fooled_model(), memory=own)
    with pytest.raises(OptionError, match=problem):
        create_allure_audit(judge.with_retry() if wrapped else judge, ListMemory())


@for_each(
    "judge",
    [
        FakeChatModel().bind(stop=["x"]),
        FakeChatModel().with_retry(),
        create_bsm_judge(FakeChatModel()),
        create_bsm_writer(FakeChatModel()),
        lambda item: item,
        None,
    ],
)
def test_what_judges_no_single_text_is_not_audited(judge):
    with pytest.raises(OptionError, match="`judge` must be a judge of one text"):
        create_allure_audit(judge, ListMemory())


@for_each("memory", [None, "m"])
def test_an_audit_needs_a_memory(memory):
    with pytest.raises(OptionError, match="`memory` must be a FailureMemory"):
        create_allure_audit(FakeChatModel(), memory)


def test_an_audit_makes_the_judge_of_a_model():
    memory, model = ListMemory(), fooled_model()
    audit = create_allure_audit(
        model,
        memory,
        auditor=as_labelled,
        instructions="Be quick.",
        temperature=0.5,
        cache=InMemoryCache(),
    )
    result = audit.invoke({"items": planning(3)})
    assert len(memory) == result["history"][0]["accepted"] == 3
    assert all("Be quick." in prompt for prompt in model.prompts)
    assert {settings["temperature"] for settings in model.settings} == {0.5}
    calls = len(model.prompts)
    assert calls
    memory.forget(list(memory.examples))
    audit.invoke({"items": planning(3)})
    assert len(model.prompts) == calls


def test_an_audit_gives_a_judge_that_it_makes_its_labels():
    audit = create_allure_audit(FakeChatModel(), ListMemory(), labels=("bad", "good"))
    assert audit.config["metadata"]["options"]["labels"] == ["bad", "good"]
    assert audit.config["metadata"]["model"]["evaluate"]["class"] == "FakeChatModel"


@for_each("option", [{"instructions": "x"}, {"temperature": 0.0}, {"cache": InMemoryCache()}])
def test_a_judge_that_is_given_takes_no_options_of_its_own(option):
    [name] = option
    with pytest.raises(OptionError, match=f"`{name}` goes with a model"):
        loop(ListMemory(), **option)


@for_each(
    ("items", "problem"),
    [
        ([], "at least one item"),
        ([{"input": "x"}], "item 0: .*`output`"),
        ([*planning(1), *planning(1)], "stands twice"),
    ],
)
def test_bad_items_are_named(items, problem):
    with pytest.raises(InputError, match=problem):
        loop(ListMemory()).invoke({"items": items})


def test_the_graph_is_this(snapshot):
    assert loop(ListMemory()).get_graph().draw_mermaid() == snapshot


@for_each("repairs", [0, 2])
def test_an_audit_that_makes_its_judge_passes_its_repairs_on(repairs):
    model = FakeChatModel(replies=lambda _: "no label")
    memory = ListMemory()
    audit = create_allure_audit(model, memory, repairs=repairs, max_rounds=1)
    item = {"id": "1", "input": "2 + 2?", "output": "4", "expected": "4"}
    audit.invoke({"items": [item]})
    assert len(model.prompts) == 1 + repairs


def ungrouped(houses):
    return [{k: v for k, v in item.items() if k != "group"} for item in planning(houses)]


def test_without_groups_a_task_stands_on_one_side_and_the_result_says_so():
    result = loop(ListMemory(), dev=0.5).invoke({"items": ungrouped(4)})
    tasks = {item["id"]: item["input"] for item in ungrouped(4)}
    pool, dev = ({tasks[n] for n in result[part]} for part in ("verdicts", "dev_verdicts"))
    assert min(len(pool), len(dev)) > 0
    assert not pool & dev
    assert result["grouped_by_task"] == 8
    assert loop(ListMemory(), dev=0.5).invoke({"items": planning(4)})["grouped_by_task"] == 0


def test_items_that_all_have_one_task_are_groups_of_their_own():
    items = [{**item, "input": "Is it polite?"} for item in ungrouped(4)]
    result = loop(ListMemory(), dev=0.5).invoke({"items": items})
    assert result["grouped_by_task"] == 0
    assert result["dev_verdicts"]


def test_an_example_of_the_same_task_is_not_recalled_without_groups_either():
    memory = FailureMemory(embeddings=Letters())
    audit = loop(memory)
    [first, *_] = audit.invoke({"items": ungrouped(2)})["examples"]
    entry = next(each for each in memory.examples() if each["id"] == first)
    same = {"input": entry["input"], "output": "Quite another answer: 9, 8, 7, 6"}
    assert first not in [each["id"] for each in memory.recall(same, "all")]
    other = {"input": "Which path leads through house 99?", "output": same["output"]}
    assert first in [each["id"] for each in memory.recall(other, "all")]


def audited_by_a_model(reason):
    """Return what a model is asked that audits a judge with a rubric and labels of its own."""
    respond = lambda prompt: {"label": "0", "explanation": reason}  # noqa: E731
    memory, model = ListMemory(), FakeChatModel(replies=respond)
    rubric = "Is the reply rude?"
    labels: dict[int | float | str, str] = {0: "it is polite", 1: "it is rude"}
    judge = create_allure_judge(model, rubric=rubric, labels=labels, memory=memory)
    content = {"reason": "No.", "answer": "check_wrong", "mode": "none"}
    auditor = FakeChatModel(replies=lambda _: content)
    doubt = lambda item, result: (1, "a rule says so")  # noqa: E731
    audit = create_allure_audit(judge, memory, check=doubt, auditor=auditor, max_rounds=1)
    audit.invoke({"items": [{"id": "a", "input": "Hello?", "output": "Go away."}]})
    return auditor.prompts[0]


def test_a_model_that_audits_is_told_by_what_the_judge_was_to_label():
    prompt = audited_by_a_model("It is short.")
    assert "Is the reply rude?" in prompt
    assert "Labels: 0: it is polite; 1: it is rude." in prompt
    assert "It is short." in prompt


def test_of_a_judge_without_a_reason_or_rubric_the_auditor_is_shown_neither():
    answer = {"reason": "No.", "answer": "check_wrong", "mode": "none"}
    auditor = FakeChatModel(replies=lambda _: answer)
    ask = resolve_auditor(
        auditor,
        AuditOptions(),
        labels=(0, 1),
        modes=read_modes(None),
        paid=ThreadReplies(None),
    )
    item = {"id": "a", "input": "Hello?", "output": "Go away.", "expected": "Hello!"}
    doubt: Any = {
        "id": "a",
        "round": 1,
        "item": item,
        "label": 1,
        "score": None,
        "rationale": "",
    }
    doubt |= {"proposed": 0, "why": "a rule says so", "check": "mine", "mode": None}
    run(ask([doubt]))
    assert "<judge-" not in auditor.prompts[0]
    assert "was to label by" not in auditor.prompts[0]


def test_a_check_that_could_say_nothing_of_any_item_is_refused():
    rude = {"id": "a", "input": "Hello?", "output": "Go away.", "rubric": "Is it polite?"}
    with pytest.raises(InputError, match="no item has; name 'annotated', which compares"):
        loop(ListMemory()).invoke({"items": [{**rude, "label": 0}]})
    with pytest.raises(InputError, match="reads `expected`, which no item has; name another"):
        loop(ListMemory()).invoke({"items": [rude]})
    with pytest.raises(InputError, match="'annotated' reads `label`, which no item has"):
        loop(ListMemory(), check="annotated").invoke({"items": [rude]})


def upheld_or_accepted(proposal):
    """Uphold the judge on house 0, whatever the check says; else follow the check."""
    return "check_wrong" if proposal["item"]["group"] == "house 0" else "accept"


def taught(share, *, houses=5, **options):
    memory = ListMemory()
    judge = create_allure_judge(fooled_model(), memory=memory)
    options = {"auditor": upheld_or_accepted, "max_rounds": 1, **options}
    audit = create_allure_audit(judge, memory, right_share=share, **options)
    result = audit.invoke({"items": planning(houses)})
    return result, list(memory.examples.values())


# Five wrong answers are doubted; one is upheld, so that four mistakes are remembered.
@pytest.mark.parametrize(("share", "right"), [(0, 0), (0.19, 0), (0.2, 1), (0.25, 1)])
def test_an_upheld_label_is_remembered_as_right_up_to_its_share(share, right):
    result, examples = taught(share)
    kinds = [each["wrong"] == each["corrected"] for each in examples]
    assert (kinds.count(False), kinds.count(True)) == (4, right)
    assert (result["history"][0]["right"], result["history"][0]["check_wrong"]) == (right, 1)


def test_undoubted_labels_are_drawn_where_the_auditor_is_asked_for_them():
    requests = []

    def auditor(proposal):
        requests.append((proposal["id"], proposal["label"] == proposal["proposed"]))
        return "accept"

    result, examples = taught(0.25, houses=6, auditor=auditor, draw_right=True)
    # Six doubts, and two right answers beside them: 2 of 8 are a quarter.
    assert [same for _, same in requests] == [False] * 6 + [True] * 2
    assert {
        each["source"][-1] for each in examples if each["wrong"] == 1 == each["corrected"]
    } == {"r"}
    assert {d["answer"] for d in result["decisions"]} == {"accept"}
    assert [each["mode"] for each in examples if each["corrected"] == 1] == [None, None]


def test_a_mistake_that_the_check_missed_is_learnt_from():
    def auditor(proposal):
        at_random = proposal["label"] == proposal["proposed"]
        return {"answer": "label", "label": 0} if at_random else "accept"

    _, examples = taught(0.25, houses=3, auditor=auditor, draw_right=True)
    assert [(each["wrong"], each["corrected"]) for each in examples] == [(1, 0)] * 4


def test_a_judge_reads_that_a_case_was_judged_right():
    memory = ListMemory(example("Answer: 1, 20, 50", 1, wrong=1, family="maps", expected="1"))
    model = fooled_model()
    create_allure_judge(model, memory=memory).invoke(planning(1, first=7)[0])
    assert "Right: 1, as a judge said." in model.prompts[0]


def test_no_task_stands_on_both_sides_of_a_split_half_of_which_has_groups():
    items = planning(10)
    rows = [
        {
            **item,
            "group": item["group"] if n % 2 else None,
            "input": f"{' ' * (n % 3)}{item['input']}",
        }
        for n, item in enumerate(items)
    ]
    for seed in range(20):
        result = loop(ListMemory(), auditor=as_labelled, dev=0.4, seed=seed).invoke(
            {"items": rows}
        )
        assert result["same_task_on_both_sides"] == 0
        assert result["dev_verdicts"]
        own = {row["id"]: row["input"].strip() for row in rows}
        tasks = [{own[id] for id in result[side]} for side in ("verdicts", "dev_verdicts")]
        assert tasks[0] & tasks[1] == set()


def test_dev_is_refused_whose_task_differs_by_spaces_alone():
    items = planning(4)
    dev = [{**items[0], "id": "new", "group": None, "input": items[0]["input"].upper() + "  "}]
    with pytest.raises(InputError, match="new of dev shares its id or group"):
        loop(ListMemory(), dev=dev).invoke(
            {"items": [{**item, "group": None} for item in items]}
        )
