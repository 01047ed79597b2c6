"""The failure memory: what it keeps, forgets, recalls and holds back."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_judges import FailureMemory, create_allure_judge, create_bsm_judge, judge_many
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.document_file import DocumentFile
from langchain_judges.memory.example import check_examples
from langchain_judges.memory.faiss_store import FaissStore
from langchain_judges.memory.recall import Recall, read_recall
from langchain_judges.memory.selection import same
from langchain_judges.memory.versions import MemorySnapshot
from langchain_judges.methods import create_jury
from langchain_judges.runs.row_reader import seen_fields
from langchain_judges.testing import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import PAIR
from tests.memories import Letters, memory_of

COOKBOOK = Path(__file__).parents[1] / "cookbook" / "data"


STORES = {
    "faiss": lambda path: {"path": path},
    "langchain": lambda path: {"store": InMemoryVectorStore(Letters())},
}


@pytest.fixture(params=STORES)
def make_memory(request, tmp_path):
    return lambda name: FailureMemory(
        embeddings=Letters(), **STORES[request.param](tmp_path / name)
    )


@pytest.fixture
def memory(make_memory):
    return make_memory("m")


PAIRED = {"output_a": "It is apple.", "output_b": "It is bread."}


def example(n=0, **fields):
    words = ["apple", "bread", "cider", "dough", "elder", "fudge", "grape", "honey"]
    word = words[n % len(words)]
    return {
        "family": "food",
        "input": f"Name number {n} of the foods on the list.",
        "output": f"It is {word} {n}.",
        "expected": word,
        "wrong": 1 - n % 2,
        "corrected": n % 2,
        "mode": 1 + n % 3,
        "mode_meaning": None,
        "scale": [0, 1],
        "source": f"item {n}",
        "group": f"group {n // 2}",
        "round": 1 + n // 4,
        "auditor": "Ann" if n < 4 else "Bo",
        "note": None,
        **fields,
    }


def ids(examples):
    return [each["id"] for each in examples]


ITEM = {"input": "Which food is this?", "output": "It is apple pie.", "family": "food"}
HOWS = ["all", "uniform:9", "knn:9", "near:9"]


# -- remember, forget


def test_what_is_remembered_comes_back_whole_and_once(memory):
    first = memory.remember([example(1), example(3, note="ünïcode\u2028"), example(1)])
    version = memory.version
    assert memory.recall(ITEM, "all")[1] == {
        **example(3, note="ünïcode\u2028"), "id": first[1], "version": 1,
    }  # fmt: skip
    assert memory.remember([example(1)]) == [first[0]]
    assert (first[0], len(memory), memory.version) == (first[2], 2, version)


def test_a_second_correction_is_a_new_version_of_the_example(memory):
    [name] = memory.remember([example(1)])
    before = memory.version, memory.examples()
    assert memory.remember([example(1, corrected=0, wrong=None, round=2)]) == [name]
    [entry] = memory.examples()
    assert (entry["version"], entry["corrected"], len(memory)) == (2, 0, 1)
    assert memory.version != before[0]
    # Without the later correction the earlier one is back.
    assert memory.forget(round=2) == 1
    assert (memory.version, memory.examples()) == before


def test_a_second_auditor_who_agrees_keeps_the_example_when_the_first_is_forgotten(memory):
    memory.remember([example(1)])
    memory.remember([example(1, auditor="Cy")])
    memory.remember([example(1)])
    assert [(e["auditor"], e["version"]) for e in memory.examples()] == [("Cy", 1)]
    assert memory.forget(auditor="Ann") == 1
    assert [e["auditor"] for e in memory.examples()] == ["Cy"]


@pytest.mark.parametrize(
    ("selection", "rest"),
    [
        ({"source": "item 2"}, [0, 1, 3, 4, 5]),
        ({"auditor": "Bo"}, [0, 1, 2, 3]),
        ({"round": 1, "source": "item 2"}, [0, 1, 3, 4, 5]),
    ],
)
def test_forgotten_is_as_if_it_had_never_been_there(make_memory, selection, rest):
    memory, never = make_memory("m"), make_memory("n")
    memory.remember([example(n) for n in range(6)])
    assert memory.forget(**selection) == 6 - len(rest)
    never.remember([example(n) for n in rest])
    assert memory.version == never.version
    assert memory.examples() == never.examples()
    for how in ("all", "knn:3", "near:3", "uniform:2"):
        assert ids(memory.recall(ITEM, how)) == ids(never.recall(ITEM, how))


def test_by_id_one_or_several_are_forgotten_and_ids_of_ones_own_are_kept(memory):
    names = memory.remember([example(0, id="mine"), *(example(n) for n in (1, 2, 3))])
    assert memory.remember([example(0)]) == ["mine"] == names[:1]
    assert memory.forget("mine") == 1
    assert memory.forget([names[1], names[1], "unknown"]) == 1
    assert ids(memory.examples()) == names[2:]
    with pytest.raises(OptionError, match="needs `ids`"):
        memory.forget()


def test_no_file_keeps_what_was_forgotten_nor_after_a_kill_in_the_middle(tmp_path, monkeypatch):
    def holds(words):
        return any(words in file.read_bytes() for file in tmp_path.iterdir())

    memory = FailureMemory(embeddings=Letters(), path=tmp_path / "m")
    memory.remember([example(0, output="A secret."), example(1)])
    with monkeypatch.context() as patch:
        patch.setattr(DocumentFile, "erase", lambda self: None)  # killed before it could
        memory.forget(source="item 0")
    assert holds(b"A secret")
    assert memory.forget(source="item 0") == 0
    assert not holds(b"A secret")
    assert holds(b"bread 1")


@given(st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_snapshot_that_followed_changes_is_the_one_of_what_is_left(removals):
    base = MemorySnapshot()
    corrected = [example(n, round=k) for k in (1, 2, 3) for n in range(4)]
    _, records = base.records_for(check_examples(corrected), "m", "now")
    snapshot, rest = base.with_changes(records), {record.key: record for record in records}
    for numbers in removals:
        keys = {records[n].key for n in numbers}
        snapshot = snapshot.with_changes((), keys)
        rest = {key: record for key, record in rest.items() if key not in keys}
        new = MemorySnapshot(rest.values())
        assert list(snapshot.records) == list(rest) == list(new.records)
        both = ([own.example for own in each.versions.values()] for each in (snapshot, new))
        assert next(both) == next(both)
        assert snapshot.ids == new.ids


@for_each(
    ("bad", "says"),
    [
        ({"output": {"output_a": "x"}}, "needs `output`"),
        ({"corrected": [1]}, "`corrected` must be a label"),
        ({"right": 1}, r"no \['right'\]; it takes .*'output_a', 'output_b', 'reference'"),
        ({"corrected": float("nan")}, "must be a label"),
        ({"mode": object()}, "plain JSON"),
        ({"output": PAIRED, "wrong": None, "corrected": "1"}, "`corrected` must be A, B or tie"),
        ({"output": PAIRED, "wrong": 2}, "`wrong` must be A, B or tie"),
        ({"output": PAIRED, "wrong": True}, "`wrong` must be A, B or tie"),
        ({"scale": 5}, "`scale` must be a list of labels"),
        ({"scale": "[0, 1]"}, "`scale` must be a list of labels"),
    ],
)
def test_what_is_no_example_is_refused_and_nothing_is_kept(memory, bad, says):
    with pytest.raises(InputError, match=says):
        memory.remember([example(1), example(2, **bad)])
    assert len(memory) == 0


def test_the_labels_of_a_pair_are_read_as_those_of_a_row_are(memory):
    said = {"wrong": "model_b", "corrected": "A>B"}
    memory.remember([example(1, output=PAIRED, **said)])
    assert [(e["wrong"], e["corrected"]) for e in memory.examples()] == [("B", "A")]


def test_a_corrected_row_of_data_is_remembered_without_what_people_know_of_it(memory):
    votes = {"turn": 2, "human_votes": ["A", "tie"], "systems": ["x", "y"], "group": "sea"}
    for line in (COOKBOOK / "pairs.jsonl").read_text().splitlines()[:3]:
        pair = {**json.loads(line), **votes}
        memory.remember([{**pair, "source": pair["id"], "wrong": "B", "corrected": "A"}])
        entry = memory.examples()[-1]
        assert entry["output"] == {side: pair[side] for side in ("output_a", "output_b")}
        assert (entry["source"], entry["group"]) == (pair["id"], "sea")
        assert not {"label", "category", *votes} & set(entry) - {"group"}


def test_export_and_import_carry_every_version(memory, tmp_path):
    for corrections in ({}, {"corrected": 5, "round": 3}, {"round": 4}):
        memory.remember([example(1, **corrections), example(2)])
    assert memory.export(tmp_path / "out.jsonl") == 4
    other = FailureMemory(embeddings=Letters())
    assert other.import_(tmp_path / "out.jsonl") == 4
    assert (other.version, other.examples()) == (memory.version, memory.examples())
    assert other.import_(tmp_path / "out.jsonl") == 0
    (tmp_path / "bad.jsonl").write_text(json.dumps(example(3)) + "\n{}\n")
    with pytest.raises(InputError, match=r"record 2: .*`output`"):
        other.import_(tmp_path / "bad.jsonl")
    assert len(other) == 2


@for_each(
    "name", ["out.jsonl", "out.json", "out.txt", "out", "out.CSV", "a.xlsx#b", "out.jsonl.gz"]
)
def test_an_export_of_any_name_can_be_imported(name, tmp_path):
    memory, other = memory_of(), FailureMemory(embeddings=Letters())
    memory.remember([example(1), example(2, output="\ud800 \u2028")])
    count = memory.export(tmp_path / name)
    assert other.import_(tmp_path / name) == count
    assert other.examples() == memory.examples()


def test_examples_of_a_memory_that_knew_no_scales_have_none():
    store = InMemoryVectorStore(Letters())
    memory = FailureMemory(embeddings=Letters(), store=store)
    memory.remember([example(1), example(2)])
    for stored in store.store.values():
        known = json.loads(stored["metadata"]["example"])
        del known["scale"]
        stored["metadata"]["example"] = json.dumps(known, sort_keys=True)
    older = FailureMemory(embeddings=Letters(), store=store)
    assert [each["scale"] for each in older.examples()] == [[], []]
    item = {"family": "food", "input": "q", "output": "a", "expected": "b"}
    assert len(older.recall(item)) == 2
    older.remember([example(1, corrected=5)])
    assert len(older) == 2
    judge = create_allure_judge(FakeChatModel(replies=[fitting_reply]), memory=older)
    verdict = judge.invoke(item)["verdict"]
    assert verdict["recalled"]


# -- recall


def test_knn_takes_the_nearest_of_the_family_first_in_a_crowd_of_others(memory):
    memory.remember([example(n, family="crowd") for n in range(150)])
    memory.remember([example(n) for n in range(8)])
    memory.remember([example(0, family="tools", output="It is apple pie!")])
    found = memory.recall({**ITEM, "expected": "apple"}, "knn:2")
    assert [e["family"] for e in found] == ["food", "food"]
    assert found[0]["output"] == "It is apple 0."
    anywhere = memory.recall({**ITEM, "expected": "apple"}, Recall("knn", 1, any_family=True))
    assert anywhere[0]["family"] == "tools"
    assert memory.recall({**ITEM, "family": "none"}, "knn:2") == []


def test_near_takes_the_nearest_of_each_label_in_turn_and_is_the_default(memory):
    memory.remember([example(n, corrected=int(n > 5)) for n in range(8)])
    nearest = memory.recall(ITEM, "knn:8")
    found = memory.recall(ITEM, "near:4")
    assert sorted(e["corrected"] for e in found) == [0, 0, 1, 1]
    of_zero = [e["id"] for e in nearest if not e["corrected"]][:2]
    assert ids(found) == [e["id"] for e in nearest if e["corrected"] or e["id"] in of_zero]
    assert ids(memory.recall(ITEM)) == ids(memory.recall(ITEM, "near:8"))


def test_uniform_is_seeded_and_grows_without_changing(memory):
    memory.remember([example(n) for n in range(8)])
    few, many = (ids(memory.recall(ITEM, Recall("uniform", m, seed=1))) for m in (3, 6))
    assert len(few) == 3
    assert [name for name in many if name in few] == few
    assert few == ids(memory.recall({**ITEM, "output": "other"}, Recall("uniform", 3, seed=1)))
    others = {tuple(ids(memory.recall(ITEM, Recall("uniform", 3, seed=s)))) for s in range(9)}
    assert len(others) > 1


@for_each("how", HOWS)
@for_each(
    "item",
    [
        {"id": "item 3"},
        {"group": "group 1"},
        {"output": "  it is DOUGH 3"},
        {"id": "other", "group": "other"},
    ],
    ids=["by id", "by group", "by words", "by content under another id"],
)
def test_an_item_never_sees_itself_or_its_group(memory, how, item):
    memory.remember([example(n) for n in range(6)])
    fields = {name: example(3)[name] for name in ("family", "input", "output")}
    results = memory.recall({**fields, **item}, how)
    assert "item 3" not in [e["source"] for e in results]
    assert len(results) == (4 if item.get("group") == "group 1" else 5)
    assert len(results.barred) == 6 - len(results)
    assert not results.leaked
    loud = memory.recall({**fields, **item}, how, allow_leak=True)
    assert loud.allow_leak
    assert "item 3" in [e["source"] for e in loud if e["id"] in loud.leaked]


def test_an_item_with_a_source_is_known_by_it(memory):
    # The example of such an item holds the source behind the task.
    cats = "The cat sat on the mat and then went home to eat its fish."
    dogs = "Dogs dig deep holes by day and guard old doors until dawn."
    task, response = "Is the summary consistent?", "Somebody sat somewhere."
    rows = [(cats, response), (dogs, "A few words."), (cats, "It.")]
    memory.remember(
        {"input": f"{task}\n\n{source}", "output": text, "corrected": 0, "source": f"{n}"}
        for n, (source, text) in enumerate(rows)
    )
    item = {"input": task, "source": cats, "output": response}
    for how in ("knn:1", "all"):
        assert [e["source"] for e in memory.recall(item, how)] == ["1"]
    assert len(memory.recall({**item, "source": dogs}, "all")) == 2


@for_each(
    ("task", "shown"),
    [
        ("  name NUMBER 0 of the foods,  on the list", 2),
        ("Name number 7 of the foods on the list.", 3),
    ],
)
def test_an_item_never_sees_an_example_of_its_own_task(memory, task, shown):
    memory.remember([example(n, group="sheet 3") for n in range(3)])
    item = {**ITEM, "input": task, "output": "Something else."}
    for how in HOWS:
        assert len(memory.recall(item, how)) == shown, how
    opened = memory.recall(item, "all", allow_leak=True)
    assert (len(opened), len(opened.leaked)) == (3, 3 - shown)


def test_a_question_that_a_whole_family_shares_is_no_task(memory):
    same_task = {"input": "Is the reply polite?", "group": None}
    memory.remember([example(n, **same_task) for n in range(2)])
    item = {**ITEM, "input": "Is the reply polite?"}
    assert len(memory.recall(item, "all")) == 0
    memory.remember([example(2, **same_task)])
    assert len(memory.recall(item, "all")) == len(memory.recall(item, "near:8")) == 3


def test_names_are_compared_as_texts(memory):
    memory.remember([example(1, family=3, source="7", group="4")])
    item = {"input": "Why?", "output": "So.", "family": 3}
    assert len(memory.recall(item)) == len(memory.recall({**item, "family": ""})) == 1
    assert not memory.recall({**item, "id": 7})
    assert not memory.recall({**item, "group": 4})


def test_a_long_text_with_a_few_changed_words_is_the_same_text():
    text = " ".join(f"word{i}" for i in range(100))
    assert same(text, text.replace("word50 ", "changed "))
    assert not same(text, text.replace("word5", "changed"))
    assert not same("1 2 3", "1 2 4")
    assert not same("?", "!")


def test_a_pair_is_known_in_either_order(memory):
    pair = {"input": "Why?", "output_a": "Because it is so.", "output_b": "Nobody knows."}
    memory.remember([{**pair, "reference": "God.", "wrong": "A", "corrected": "B"}])
    turned = {**pair, "output_a": pair["output_b"], "output_b": pair["output_a"]}
    assert memory.recall(pair, "all") == memory.recall(turned, "knn:1") == []
    [entry] = memory.recall({**pair, "input": "Why not?", "output_a": "It was."}, "all")
    assert entry["output"] == {name: pair[name] for name in ("output_a", "output_b")}
    assert entry["expected"] == "God."
    # A judge of single texts learns nothing from pairs.
    assert memory.recall({"input": "Why not?", "output": "It was."}, "all") == []


def test_an_empty_memory_embeds_nothing(monkeypatch):
    monkeypatch.setattr(Letters, "embed_query", None)
    memory = FailureMemory(embeddings=Letters())
    for how in HOWS:
        assert memory.recall(ITEM, how) == []
    assert memory


def test_async_does_what_sync_does_and_it_is_an_example_selector_of_langchain(memory):
    async def work():
        names = await memory.aremember([example(n) for n in range(5)])
        assert await memory.aadd_example(example(5))
        for how in HOWS:
            assert await memory.arecall(ITEM, how) == memory.recall(ITEM, how)
        assert await memory.aselect_examples(ITEM) == memory.select_examples(ITEM)
        assert await memory.aforget(names[0]) == 1
        await memory.arefresh()
        return len(memory)

    assert isinstance(memory, BaseExampleSelector)
    assert asyncio.run(work()) == 5


@for_each("bad", ["some", "uniform", "knn:0", "knn:x", 8])
def test_an_unknown_choice_is_refused(bad):
    with pytest.raises(OptionError):
        read_recall(bad)


# -- what is on trial


def test_a_memory_on_trial_recalls_as_if_it_held_the_examples(make_memory):
    memory, full = make_memory("m"), make_memory("n")
    memory.remember([example(n) for n in range(4)])
    full.remember([example(n) for n in range(4)])
    new = [example(5), example(6), example(2, corrected=7, note="again")]
    full.remember(new)
    before = memory.version, memory.examples()
    for how in HOWS:
        with memory.trial(new):
            assert memory.recall(ITEM, how) == full.recall(ITEM, how), how
            assert (memory.version, len(memory)) == (full.version, 6)
        assert (memory.version, memory.examples()) == before
        assert memory.recall(ITEM, how) != full.recall(ITEM, how), how


def test_a_trial_is_seen_by_the_work_inside_of_it_alone(memory):
    async def inside():
        with memory.trial([example(1)]):
            memory.remember([example(2)])
            return await asyncio.gather(asyncio.to_thread(len, memory), memory.arecall(ITEM))

    async def work():
        task = asyncio.create_task(inside())
        assert len(memory) == 0
        count, recalled = await task
        return count, len(recalled), [e["source"] for e in memory.examples()]

    # What is remembered in a trial stays.
    assert asyncio.run(work()) == (1, 1, ["item 2"])


# -- sharing


def test_a_foreign_store_keeps_all_there_is_and_other_documents_too(tmp_path):
    store = InMemoryVectorStore(Letters())
    store.add_texts(["apple"], [{"memory": "no example"}])
    first = FailureMemory(store)
    names = first.remember([example(n) for n in range(3)])
    again = FailureMemory(store)
    assert (ids(again.examples()), again.version) == (names, first.version)
    other = FailureMemory(store, name="others")
    other.remember([example(9)])
    again.remember([example(4)])
    first.refresh()
    assert (len(first), len(other)) == (4, 1)
    with pytest.raises(OptionError, match="`path`"):
        FailureMemory(store, path=tmp_path)


@pytest.mark.parametrize("by_vector", [True, False])
def test_a_crowded_store_is_searched_until_the_memory_is_exhausted(monkeypatch, by_vector):
    class Store(InMemoryVectorStore):
        if not by_vector:
            similarity_search_by_vector = VectorStore.similarity_search_by_vector

    embedded, asked = Letters.embed_query, []

    def counted(self, text):
        asked.append(text)
        return embedded(self, text)

    monkeypatch.setattr(Letters, "embed_query", counted)
    store = Store(Letters())
    FailureMemory(store, name="b").remember([example(n) for n in range(200)])
    memory = FailureMemory(store, name="a")
    memory.remember([example(n, output="It is apple pie!!") for n in (900, 901)])
    asked.clear()
    assert len(memory.recall({**ITEM, "output": "It is an apple pie."}, "knn:30")) == 2
    assert len(asked) == 1
    far = {**ITEM, "output": "Zzz, a fudge."}
    asked.clear()
    assert len(memory.recall(far, "knn:30")) == 2
    assert (len(asked) == 1) == by_vector


@pytest.mark.parametrize("store", [InMemoryVectorStore, FaissStore])
def test_two_memories_in_a_store_keep_the_same_example_each(store):
    shared = store(Letters())
    first, second = (FailureMemory(shared, name=name) for name in "ab")
    names = [each.remember([example(n) for n in range(3)]) for each in (first, second)]
    assert names[0] == names[1]
    assert (second.version, second.forget(names[1][0])) == (first.version, 1)
    assert [len(FailureMemory(shared, name=name)) for name in "ab"] == [3, 2]


def test_another_memory_on_the_same_file_is_seen(tmp_path):
    memory, other = (FailureMemory(embeddings=Letters(), path=tmp_path / "m") for _ in "ab")
    memory.remember([example(0)])
    before = memory.version
    other.remember([example(1)])
    assert len(memory) == 2
    assert memory.version != before


# -- a memory that changes during a run


def recalled(judge, kind, meanwhile=lambda: None):
    """Do something in the midst of a run, and return its mark and each row's examples."""
    from tests.test_runs import collect  # which imports what imports this

    items = [{**ITEM, "expected": "cake", "id": str(n)} for n in range(6)]
    rows, _ = collect(judge(meanwhile), items, kind, max_concurrency=1)
    reports = [row["recalled"] for row in rows]
    return rows[0]["judge"]["mark"], [(each["version"], each["ids"]) for each in reports]


@pytest.mark.parametrize(("how", "kind"), [("all", "sync"), ("near:3", "async")])
def test_all_rows_of_a_run_see_the_memory_as_it_was_when_the_run_began(memory, how, kind):
    memory.remember([example(n) for n in range(3)])

    def judge(meanwhile):
        asked = itertools.count()

        def change_once():
            if next(asked) == 2:
                meanwhile()

        model = FakeChatModel(
            replies=lambda _: change_once() or '{"explanation": "so", "label": "1"}'
        )
        return create_allure_judge(model, memory=memory, recall=how)

    def change():
        memory.remember([example(8, group="other", source="other")])
        memory.forget([memory.examples()[0]["id"]])
        memory.remember([example(1, corrected=0, auditor="Cy")])

    before = recalled(judge, kind)
    assert len({*map(str, before[1])}) == 1
    changed = recalled(judge, kind, change)
    assert changed == before
    after = recalled(judge, kind)
    assert after[0] != before[0]
    assert after[1] != before[1]


def test_a_jury_holds_the_memory_of_each_member(tmp_path):
    memories = [FailureMemory(embeddings=Letters(), path=tmp_path / name) for name in "ab"]
    for number, memory in enumerate(memories):
        memory.remember([example(number)])
    good = '{"explanation": "so", "label": "1"}'
    members = [
        create_allure_judge(FakeChatModel(replies=lambda _: good), memory=each) for each in memories
    ]
    names = []
    for number in (2, 3, None):
        run = judge_many(create_jury(members), [{**ITEM, "expected": "cake"}], progress=False)
        if number:
            memories[number - 2].remember([example(number)])
        names.append(next(run)["judge"]["mark"])
    assert len({*names}) == 3
    assert "group" in seen_fields(create_jury(members))[0]  # by which examples are barred


def test_a_memory_is_asked_by_the_row_alone_and_by_nothing_of_a_judgment(monkeypatch):
    asked: list[Mapping[str, object]] = []
    recall = FailureMemory.recall

    def noted(self, item, *more, **named):
        asked.append(item)
        return recall(self, item, *more, **named)

    monkeypatch.setattr(FailureMemory, "recall", noted)
    row: Any = {**PAIR, "id": "7", "group": "g", "reference": "Because."}
    texts = {"output": {"output_a": "a", "output_b": "b"}}
    memory = memory_of(example(**texts, wrong="A", corrected="B"))
    judge = create_bsm_judge(FakeChatModel(replies=fitting_reply), memory=memory)
    judge.invoke({**row, "family": None, "noise": "x"})
    assert asked == [row]


@for_each("examples", [pd.DataFrame([{"input": "x"}]), {"input": "x"}, "text", None, 3])
def test_examples_in_no_list_are_refused_with_the_form_that_is_taken(examples):
    with pytest.raises(InputError, match=f"must be a list, .* got {type(examples).__name__}"):
        check_examples(examples)
