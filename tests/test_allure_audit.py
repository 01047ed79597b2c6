"""The loop: what is proposed, decided, remembered and measured; stopped and resumed."""

import json
import math
from typing import Any

import pandas as pd
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from langchain_judges import create_allure_audit, create_allure_judge, create_bsm_judge
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure.label_checks import annotated
from langchain_judges.methods.graph import StepNode
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import ids_in, memory_of
from tests.planners import as_labelled, fooled_model, planning

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}


def loop(memory, model=None, **options):
    judge = create_allure_judge(model or fooled_model(), memory=memory, recall="all")
    settings = {"auditor": as_labelled, "right_share": 0, **options}
    return create_allure_audit(judge, memory, **settings)


# -- learning


@pytest.mark.whole
def test_the_loop_finds_audits_and_remembers_mistakes_until_none_are_left():
    memory, model = memory_of(), fooled_model()
    result = loop(memory, model).invoke({"items": planning(3)})
    first, second = result["history"]
    assert (first["evaluated"], first["proposed"], first["accepted"]) == (6, 3, 3)
    # The leak guard hides a group's own example; those of the others warn the judge.
    assert (second["evaluated"], second["doubted"], second["remembered"]) == (6, 0, 0)
    assert result["stopped"] == "nothing_new"
    assert result["examples"] == ids_in(memory)
    entry = memory.examples()[0]
    assert {**entry, "id": "", "auditor": ""} == {
        "id": "",
        "version": 1,
        "family": "maps",
        "input": "Which path leads through house 0?",
        "output": "Answer: 50, 20, 1",
        "expected": "1, 20, 50",
        "wrong": 1,
        "corrected": 0,
        "mode": None,
        "mode_meaning": None,
        "scale": [0, 1],
        "source": "0w",
        "group": "house 0",
        "round": 1,
        "auditor": "",
        "note": "",
    }
    # T calls for each of two rounds.
    assert len(model.prompts) == 12 == sum(r["usage"]["calls"] for r in result["history"])
    assert (first["pool"]["accuracy"], second["pool"]["accuracy"]) == (0.5, 1.0)


async def test_sync_and_async_agree_with_the_memory_that_people_use():
    outcomes = []
    for call in ("invoke", "ainvoke"):
        results = getattr(loop(memory_of(), dev=0.4), call)({"items": planning(5)})
        outcomes.append(results if call == "invoke" else await results)
    for key in ("history", "decisions", "verdicts"):
        assert outcomes[0][key] == outcomes[1][key]
    assert outcomes[0]["history"][0]["dev"]["balanced_accuracy"] == 1.0


# -- answers


@pytest.mark.parametrize(
    ("answer", "entries", "counted"),
    [
        ("accept", {"corrected": 0, "mode": None}, "accepted"),
        ({"answer": "mode", "mode": "order"}, {"corrected": 0, "mode": "order"}, "accepted"),
        ("reject", None, "rejected"),
        ("check_wrong", None, "check_wrong"),
        # Editing the label back to the judge's says that the check was wrong.
        ({"answer": "label", "label": 1}, None, "check_wrong"),
    ],
)  # fmt: skip
def test_each_answer_is_kept_apart(answer, entries, counted):
    memory = memory_of()
    result = loop(memory, auditor=lambda _: answer).invoke({"items": planning(1)})
    first, counts = result["history"][0], ("accepted", "rejected", "check_wrong")
    assert [first[name] for name in counts] == [int(name == counted) for name in counts]
    examples = memory.examples()
    assert (examples == []) if entries is None else entries.items() <= examples[0].items()
    # Nothing decided is asked again.
    assert len(result["decisions"]) == 1


@for_each("answer", ["maybe", {"answer": "label"}, {"answer": "label", "label": 7}])
def test_an_answer_that_is_none_is_refused(answer):
    with pytest.raises(InputError, match=r"0w: `(answer|label)`"):
        loop(memory_of(), auditor=lambda _: answer).invoke({"items": planning(1)})


def test_people_get_all_proposals_of_a_round_at_once_and_answer_in_parts(tmp_path):
    memory, model = memory_of(path=tmp_path / "memory"), fooled_model()
    saver = str(tmp_path / "audit.sqlite")

    def step(given):
        # Each step is a process of its own: nothing but the files is left of the one before.
        with SqliteSaver.from_conn_string(saver) as checkpointer:
            audit = loop(memory, model, auditor="human", checkpointer=checkpointer)
            return audit.invoke(given, THREAD)

    asked = step({"items": planning(2)})["__interrupt__"][0].value
    assert [p["id"] for p in asked["proposals"]] == ["0w", "1w"]
    assert {m["name"] for m in asked["modes"]} >= {"keywords", "parroting"}
    partly = {"0w": "accept", "nobody": "accept"}
    still = step(Command(resume=partly))["__interrupt__"][0].value
    assert [p["id"] for p in still["proposals"]] == ["1w"]
    assert ["'nobody'" in each for each in still["problems"]] == [True]
    assert len(memory) == 0
    result = step(Command(resume={"1w": "accept"}))
    assert [(d["answer"], d["auditor"]) for d in result["decisions"]] == [("accept", "human")] * 2
    assert result["stopped"] == "nothing_new"
    assert len(memory_of(path=tmp_path / "memory")) == 2
    # Four items in each of two rounds: no step paid for what another had paid.
    assert len(model.prompts) == 8


NODES = (
    *("prepare", "evaluate", "check", "propose", "audit", "admit", "measure", "test"),
    "conclude",
)


HELD_OUT = {"dev": planning(2, first=10), "test": planning(5, first=20)}


class Killed(BaseException):
    """The end of a process, which no code catches."""


@pytest.fixture(scope="module")
def calm():
    """The result of the loop when nothing kills it."""
    return loop(memory_of(), **HELD_OUT).invoke({"items": planning(2)})


@pytest.mark.whole
@pytest.mark.parametrize(
    ("when", "node"), [("before", "evaluate"), *(("after", node) for node in NODES)]
)
def test_the_loop_resumes_from_a_kill_at_each_node(node, when, calm, tmp_path, monkeypatch):
    armed = [True]
    original = StepNode.invoke

    def dying(self, state, config=None, **rest):
        hit = armed and type(self) is StepNode and self.name == node
        if hit and when == "before":
            armed.clear()
            raise Killed
        update = original(self, state, config, **rest)
        if hit:
            armed.clear()
            raise Killed
        return update

    memory, model = memory_of(), fooled_model()
    monkeypatch.setattr(StepNode, "invoke", dying)
    with SqliteSaver.from_conn_string(str(tmp_path / "audit.sqlite")) as saver:
        audit = loop(memory, model, **HELD_OUT, checkpointer=saver)
        assert set(audit.nodes) == {"__start__", *NODES}
        config: RunnableConfig = {**THREAD, "max_concurrency": 1}
        with pytest.raises(Killed):
            audit.invoke({"items": planning(2)}, config)
        result = audit.invoke(None, config)
    assert result["history"] == calm["history"]
    assert result["decisions"] == calm["decisions"]
    assert len(memory) == 2
    calls = sum(r["usage"]["calls"] for r in calm["history"])
    assert len(model.prompts) == calls


# -- held-out items


def test_dev_must_share_no_group_with_the_items():
    with pytest.raises(InputError, match="id or group"):
        loop(memory_of(), dev=planning(1)).invoke({"items": planning(2)})
    items = [{**item, "group": None} for item in planning(4)]
    task = items[0]["input"]
    # Nor a task that differs by case, spaces and punctuation alone.
    for same in (task.upper(), task.replace(" ", "  "), task.rstrip("?")):
        dev = [{**items[0], "id": "new", "input": same}]
        with pytest.raises(InputError, match="new of dev"):
            loop(memory_of(), dev=dev).invoke({"items": items})


@pytest.mark.whole
def test_no_task_stands_on_both_sides_of_a_split_half_of_which_has_groups():
    rows = [
        {
            **item,
            "group": item["group"] if n % 2 else None,
            "input": f"{' ' * (n % 3)}{item['input']}",
        }
        for n, item in enumerate(planning(5))
    ]
    own = {row["id"]: row["input"].strip() for row in rows}
    for seed in range(3):
        result = loop(memory_of(), dev=0.4, seed=seed).invoke({"items": rows})
        pool, dev = ({own[id] for id in result[p]} for p in ("verdicts", "dev_verdicts"))
        assert dev
        assert not pool & dev


def test_without_groups_a_question_that_all_items_share_is_no_group():
    standing = [{**item, "input": "Is it polite?", "group": None} for item in planning(4)]
    assert loop(memory_of(), dev=0.5).invoke({"items": standing})["dev_verdicts"]


# -- rounds


def test_the_loop_ends_with_its_last_round():
    short = loop(memory_of(), max_rounds=1).invoke({"items": planning(2)})
    assert (short["stopped"], len(short["history"])) == ("max_rounds", 1)


def test_only_families_that_learnt_something_are_judged_again():
    items = [*planning(2), *planning(2, first=5, family="other")]
    for item in items[4:]:
        item["label"] = 1 - item["label"]  # audited as a wrong check
    result = loop(memory_of()).invoke({"items": items})
    assert [r["evaluated"] for r in result["history"]] == [8, 4]


def test_items_that_were_not_judged_are_counted_and_not_proposed():
    model = FakeChatModel(replies=lambda _: "no idea")
    result = loop(memory_of(), model).invoke({"items": planning(1)})
    assert result["history"][0]["not_judged"] == 2
    assert result["decisions"] == []


# -- auditors


def test_a_model_can_audit():
    def respond(prompt):
        assert "keywords: " in prompt
        return json.dumps({"reason": "the order", "answer": "accept", "mode": "keywords"})

    memory = memory_of()
    result = loop(memory, auditor=FakeChatModel(replies=respond)).invoke({"items": planning(2)})
    assert [d["auditor"] for d in result["decisions"]] == ["FakeChatModel"] * 2
    assert [e["note"] for e in memory.examples()] == ["the order"] * 2
    # Four items, two audits, four items again.
    assert [r["usage"]["calls"] for r in result["history"]] == [6, 4]


def test_a_model_that_audits_is_told_by_what_the_judge_was_to_label():
    model = FakeChatModel(replies=lambda _: {"label": "0", "explanation": "It is short."})
    labels: dict[int | float | str, str] = {0: "it is polite", 1: "it is rude"}
    memory, rubric = memory_of(), "Is the reply rude?"
    judge = create_allure_judge(model, rubric=rubric, labels=labels, memory=memory)
    doubt = lambda item, result: (1, "a rule says so")  # noqa: E731
    auditor = FakeChatModel(
        replies=lambda _: {"reason": "No.", "answer": "check_wrong", "mode": "none"}
    )
    audit = create_allure_audit(judge, memory, check=doubt, auditor=auditor, max_rounds=1)
    audit.invoke({"items": [{"id": "a", "input": "Hello?", "output": "Go away."}]})
    for part in ("Is the reply rude?", "0: it is polite; 1: it is rude.", "It is short."):
        assert part in auditor.prompts[0]


async def test_an_auditing_function_may_be_async():
    async def wait_for(proposal):
        return as_labelled(proposal)

    result = await loop(memory_of(), auditor=wait_for).ainvoke({"items": planning(2)})
    assert result["decisions"][0]["auditor"] == "wait_for"


# -- cases judged right


def upheld_or_accepted(proposal):
    """Uphold the judge on house 0, whatever the check says; else follow the check."""
    return "check_wrong" if proposal["item"]["group"] == "house 0" else "accept"


def taught(share, houses, auditor):
    memory = memory_of()
    audit = loop(memory, auditor=auditor, max_rounds=1, right_share=share)
    return audit.invoke({"items": planning(houses)}), memory.examples()


# Five wrong answers are doubted; one is upheld, so that four mistakes are remembered.
@for_each(("share", "right"), [(0, 0), (0.19, 0), (0.2, 1), (0.25, 1)])
def test_an_upheld_label_is_remembered_as_right_up_to_its_share(share, right):
    result, examples = taught(share, 5, upheld_or_accepted)
    kinds = [each["wrong"] == each["corrected"] for each in examples]
    assert (kinds.count(False), kinds.count(True)) == (4, right)
    assert (result["history"][0]["right"], result["history"][0]["check_wrong"]) == (right, 1)
    assert {each["source"] for each in examples if each["corrected"]} <= {"0w"}


def test_undoubted_labels_are_drawn_so_that_an_exact_check_leaves_right_cases_too():
    requests = []

    def auditor(proposal):
        requests.append((proposal["id"], proposal["label"] == proposal["proposed"]))
        return "accept"

    result, examples = taught(0.25, 6, auditor)
    # Six doubts, and two right answers beside them: 2 of 8 are a quarter.
    assert [same for _, same in requests] == [False] * 6 + [True] * 2
    right = [each for each in examples if each["wrong"] == 1 == each["corrected"]]
    assert [(each["source"][-1], each["mode"]) for each in right] == [("r", None)] * 2
    assert {d["answer"] for d in result["decisions"]} == {"accept"}


# -- what is refused


@for_each(
    ("option", "value"),
    [
        ("max_rounds", 0),
        ("check", "nothing"),
        ("auditor", ""),
        ("modes", "order"),
        ("dev", "x"),
        ("labels", (1,)),
    ],
)
def test_an_option_that_is_not_allowed_is_named(option, value):
    with pytest.raises(OptionError, match=f"`{option}`"):
        loop(memory_of(), **{option: value})


@for_each(("own", "problem"), [(memory_of(), "another memory"), (None, "no memory")])
@for_each("wrapped", [False, True])
def test_a_judge_without_this_memory_would_learn_nothing(own, problem, wrapped):
    judge = create_allure_judge(fooled_model(), memory=own)
    with pytest.raises(OptionError, match=problem):
        create_allure_audit(judge.with_retry() if wrapped else judge, memory_of())


def test_what_judges_no_single_text_is_not_audited():
    with pytest.raises(OptionError, match=r"only an ALLURE judge .* 'bsm'"):
        create_allure_audit(create_bsm_judge(FakeChatModel()), memory_of())
    with pytest.raises(OptionError, match="`memory` must be"):
        create_allure_audit(FakeChatModel(), "m")  # type: ignore[arg-type]


def test_an_audit_makes_the_judge_of_a_model_and_passes_its_options_on():
    memory, model = memory_of(), fooled_model()
    own: dict[str, Any] = {"instructions": "Be quick.", "temperature": 0.5}
    own["cache"] = InMemoryCache()
    audit = create_allure_audit(model, memory, auditor=as_labelled, right_share=0, **own)
    result = audit.invoke({"items": planning(3)})
    assert len(memory) == result["history"][0]["accepted"] == 3
    assert all("Be quick." in prompt for prompt in model.prompts)
    assert {settings["temperature"] for settings in model.settings} == {0.5}
    calls = len(model.prompts)
    memory.forget(ids_in(memory))
    audit.invoke({"items": planning(3)})
    assert len(model.prompts) == calls
    # The same options beside a judge that is given are refused.
    for name, value in own.items():
        with pytest.raises(OptionError, match=f"`{name}` goes with a model"):
            loop(memory_of(), **{name: value})


BARE = {"id": "x", "input": "x", "output": "y", "source": "z"}


@for_each(
    ("items", "check", "problem"),
    [
        ([], None, "at least one item"),
        (pd.DataFrame([BARE]), None, r"`frame.to_dict\('records'\)`, got DataFrame"),
        (BARE, None, "at least one item.*, got dict"),
        (3, None, "at least one item.*, got int"),
        ([{"input": "x"}], None, "item 1: .*`output`"),
        ([*planning(1), *planning(1)], None, "occurs twice"),
        ([BARE], None, "reads `expected` or `label`, which no item has"),
        ([{**BARE, "label": 4}], None, r"x: a person's label must be .*\[0, 1\], .* got 4"),
        ([{**BARE, "label": "good"}], None, "x: a person's label must be .* got 'good'"),
    ],
)
def test_bad_items_are_named(items, check, problem):
    model = fooled_model()
    with pytest.raises(InputError, match=problem):
        loop(memory_of(), model, check=check).invoke({"items": items})
    assert model.prompts == []


def test_recorded_labels_of_any_runnable_are_audited_without_a_model():
    def said(item):
        return {"verdict": {"label": int(item["output"]), "rationale": "so"}}

    marks = [(5, 1.33), (5, 4.67), (2, 4.0), (4, 3.0)]
    items = [
        {"id": f"{n}", "input": f"Text {n}?", "output": f"{grade}", "expert": mark}
        for n, (grade, mark) in enumerate(marks)
    ]
    memory, check = memory_of(), annotated("expert")
    audit = create_allure_audit(
        RunnableLambda(said), memory, check=check, labels=(1, 2, 3, 4, 5), right_share=0,
        auditor=lambda proposal: "accept",
    )  # fmt: skip
    result = audit.invoke({"items": items})
    assert result["history"][0]["doubted"] == 3
    learned = [(e["source"], e["wrong"], e["corrected"]) for e in memory.examples()]
    assert learned == [("0", 5, 1), ("2", 2, 4), ("3", 4, 3)]


def test_people_s_labels_decide_with_their_reasons():
    memory = memory_of()
    people = {"auditor": "Ann", "note": "Mind the order."}
    items = [{**item, **people} for item in planning(3)]
    for item in items:
        del item["expected"]
        item["source"] = "a map"
    model = FakeChatModel(replies=lambda _: {"label": "1", "explanation": "yes"})
    result = loop(memory, model, auditor="labels", right_share=0.25).invoke({"items": items})
    kinds = [(e["wrong"], e["corrected"], e["auditor"]) for e in memory.examples()]
    assert kinds == [(1, 0, "Ann")] * 3 + [(1, 1, "Ann")]
    assert {e["note"] for e in memory.examples()} == {"Mind the order."}
    assert result["decisions"][0]["check"] == "answer_or_label"


@for_each("label", [3, True, math.inf])
def test_a_label_off_the_scale_is_refused_before_anything_is_paid(label):
    items = [*planning(3), {**planning(1)[0], "id": "x", "label": label}]
    model = fooled_model()
    with pytest.raises(InputError, match="x: `label`"):
        loop(memory_of(), model, auditor="labels").invoke({"items": items})
    assert model.prompts == []


def test_items_without_an_id_are_known_by_their_texts_in_every_list():
    def ids_of(items):
        bare = [{**item, "id": None} for item in items]
        return list(loop(memory_of(), max_rounds=1).invoke({"items": bare})["verdicts"])

    first, other = planning(2), planning(4)[4:]
    both = ids_of(first)
    assert ids_of([other[0], *first])[1:] == both  # wherever they stand
    assert not {*ids_of(other)} & {*both}
    twice = ids_of([first[0], first[0]])
    assert (twice[0], twice[1]) == (both[0], f"{both[0]} (2)")
