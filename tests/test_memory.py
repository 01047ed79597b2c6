"""The failure memory: what it keeps, forgets, recalls and holds back."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_core.example_selectors import BaseExampleSelector
from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_judges import FailureMemory, FaissStore
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.document_file import DocumentFile
from langchain_judges.memory.guard import same
from langchain_judges.memory.recall import (
    all_,
    balanced,
    knn,
    leave_out,
    mmr,
    near,
    read_recall,
    uniform,
)
from tests.cases import for_each
from tests.processes import start

COOKBOOK = Path(__file__).parents[1] / "cookbook" / "data"


class Letters(Embeddings):
    """A text is how often it has each letter, so that common words make texts near."""

    def embed_query(self, text):
        low = text.casefold()
        return [0.01 + low.count(chr(97 + i)) for i in range(26)]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


STORES = {
    "faiss": lambda path: {"path": path},
    "faiss in memory": lambda path: {},
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


# -- remember, forget, history


def test_what_is_remembered_comes_back_whole(memory):
    [name] = memory.remember([example(3, note="ünïcode\u2028")])
    [entry] = memory.recall(ITEM, all_())
    assert entry == {**example(3, note="ünïcode\u2028"), "id": name, "version": 1}


def test_the_same_content_is_remembered_once(memory):
    first = memory.remember([example(1), example(2), example(1)])
    version = memory.version
    assert memory.remember([example(2)]) == [first[1]]
    assert (first[0], len(memory), memory.version) == (first[2], 2, version)


def test_a_second_correction_is_a_new_version_of_the_example(memory):
    [name] = memory.remember([example(1)])
    before = memory.version
    assert memory.remember([example(1, corrected=0, wrong=None, round=2)]) == [name]
    [entry] = memory.examples()
    assert (entry["version"], entry["corrected"], len(memory)) == (2, 0, 1)
    assert memory.version != before
    assert memory.remember([example(1)]) == [name]
    assert memory.examples()[0]["version"] == 3


def test_forgetting_the_later_correction_brings_the_earlier_one_back(memory):
    memory.remember([example(1)])
    before = memory.version, memory.examples(), memory.history()
    memory.remember([example(1, corrected=0, round=2, auditor="Bo")])
    assert memory.forget(round=2) == 1
    assert (memory.version, memory.examples(), memory.history()) == before


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
        ({"round": 1}, [4, 5]),
        ({"round": 1, "source": "item 2"}, [0, 1, 3, 4, 5]),
        ({"round": 9}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_forgotten_is_as_if_it_had_never_been_there(make_memory, selection, rest):
    memory, never = make_memory("m"), make_memory("n")
    memory.remember([example(n) for n in range(6)])
    assert memory.forget(**selection) == 6 - len(rest)
    never.remember([example(n) for n in rest])
    assert memory.version == never.version
    assert memory.examples() == never.examples()
    for how in ("all", "knn:3", "mmr:3", "uniform:2", "balanced:2", "leave_out:1"):
        assert ids(memory.recall(ITEM, how)) == ids(never.recall(ITEM, how))
    entries = [{k: v for k, v in entry.items() if k != "at"} for entry in memory.history()]
    assert entries == [{k: v for k, v in e.items() if k != "at"} for e in never.history()]


def test_by_id_one_or_several_are_forgotten(memory):
    names = memory.remember([example(n) for n in range(4)])
    assert memory.forget(names[0]) == 1
    assert memory.forget([names[1], names[1], "unknown"]) == 1
    assert ids(memory.examples()) == names[2:]
    with pytest.raises(OptionError, match="needs `ids`"):
        memory.forget()


def test_no_file_keeps_what_was_forgotten(tmp_path):
    memory = FailureMemory(embeddings=Letters(), path=tmp_path / "m")
    memory.remember([example(1, output="my secret"), example(2)])
    memory.forget(source="item 1")
    assert not any(b"my secret" in f.read_bytes() for f in tmp_path.iterdir())
    assert any(b"cider 2" in f.read_bytes() for f in tmp_path.iterdir())


def test_forgetting_again_cleans_up_after_a_kill_in_the_middle(tmp_path, monkeypatch):
    memory = FailureMemory(embeddings=Letters(), path=tmp_path / "m")
    memory.remember([example(0, output="A secret."), example(1)])
    with monkeypatch.context() as patch:
        patch.setattr(DocumentFile, "erase", lambda self: None)  # killed before it could
        memory.forget(source="item 0")
    assert any(b"A secret" in file.read_bytes() for file in tmp_path.iterdir())
    assert memory.forget(source="item 0") == 0
    assert not any(b"A secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_what_is_known_stays_while_it_is_read_again():
    log: list[int] = []

    class Slow(InMemoryVectorStore):
        def similarity_search(self, *args, **more):
            log.append(len(slow) if log else 0)
            return super().similarity_search(*args, **more)

    slow = FailureMemory(Slow(Letters()))
    slow.remember([example(0), example(1)])
    slow.refresh()
    assert log[-1] == 2


def test_history_says_when_what_came_and_by_whom(memory):
    first = memory.remember([example(0), example(1)])
    version = memory.version
    second = memory.remember([example(1, corrected=7, round=2, auditor="Bo"), example(6)])
    one, two = memory.history()
    assert (one["auditor"], one["added"], one["version"]) == ("Ann", first, version)
    assert (two["added"], two["corrected"]) == ([second[1]], [first[1]])
    assert (two["size"], two["version"]) == (3, memory.version)
    assert one["at"] <= two["at"]


def test_ids_of_the_callers_own_are_kept(memory):
    assert memory.remember([example(1, id="mine")]) == ["mine"]
    assert memory.remember([example(1)]) == ["mine"]
    assert memory.forget("mine") == 1


@for_each(
    ("bad", "says"),
    [
        ({"output": None}, "needs `output`"),
        ({"output": {"output_a": "x"}}, "needs `output`"),
        ({"corrected": None}, "`corrected` must be a label"),
        ({"corrected": [1]}, "`corrected` must be a label"),
        ({"round": "one"}, "`round` must be a whole number"),
        ({"right": 1}, r"no \['right'\]; it takes .*'output_a', 'output_b', 'reference'"),
        ({"note": object()}, "plain JSON"),
        ({"corrected": float("nan")}, "plain JSON"),
        ({"input": [3]}, "plain JSON"),
    ],
)
def test_what_is_no_example_is_refused_and_nothing_is_kept(memory, bad, says):
    with pytest.raises(InputError, match=says):
        memory.remember([example(1), example(2, **bad)])
    assert len(memory) == 0


def test_a_corrected_row_of_data_is_remembered_without_what_people_know_of_it(memory):
    votes = {"turn": 2, "human_votes": ["A", "tie"], "systems": ["x", "y"], "group": "sea"}
    for line in (COOKBOOK / "pairs.jsonl").read_text().splitlines():
        pair = {**json.loads(line), **votes}
        memory.remember([{**pair, "source": pair["id"], "wrong": "B", "corrected": "A"}])
        entry = memory.examples()[-1]
        assert entry["output"] == {side: pair[side] for side in ("output_a", "output_b")}
        assert (entry["source"], entry["group"]) == (pair["id"], "sea")
        assert not {"label", "category", *votes} & set(entry) - {"group"}


def test_export_and_import_carry_everything(memory, tmp_path):
    memory.remember([example(1), example(2)])
    memory.remember([example(1, corrected=5, round=3)])
    memory.remember([example(1, round=4)])
    assert memory.export(tmp_path / "out.jsonl") == 4
    other = FailureMemory(embeddings=Letters())
    assert other.import_(tmp_path / "out.jsonl") == 4
    assert (other.version, other.examples()) == (memory.version, memory.examples())
    assert other.history() == memory.history()
    assert other.import_(tmp_path / "out.jsonl") == 0
    other.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "out.jsonl").read_text()


def test_a_bad_line_of_an_import_is_named(tmp_path):
    memory = FailureMemory(embeddings=Letters())
    (tmp_path / "bad.jsonl").write_text(json.dumps(example(1)) + "\n{}\n")
    with pytest.raises(InputError, match="line 2: an example needs `output`"):
        memory.import_(tmp_path / "bad.jsonl")
    assert len(memory) == 0


# -- recall


def test_all_is_in_the_order_of_remembering(memory):
    names = memory.remember([example(n) for n in (5, 0, 3)])
    assert ids(memory.recall(ITEM, "all")) == names


def test_knn_takes_the_nearest_of_the_family_first(memory):
    memory.remember([example(n) for n in range(8)])
    memory.remember([example(0, family="tools", output="It is apple pie!")])
    near = memory.recall({**ITEM, "expected": "apple"}, knn(2))
    assert [e["family"] for e in near] == ["food", "food"]
    assert near[0]["output"] == "It is apple 0."
    anywhere = memory.recall({**ITEM, "expected": "apple"}, knn(1, any_family=True))
    assert anywhere[0]["family"] == "tools"
    assert memory.recall({**ITEM, "family": "none"}, knn(2)) == []


def test_knn_finds_the_family_in_a_crowd_of_others(memory):
    memory.remember([example(n, family="crowd") for n in range(150)])
    [name] = memory.remember([example(7)])
    assert ids(memory.recall(ITEM, "knn:1")) == [name]


def test_mmr_takes_unlike_examples(memory):
    alike = [example(0, input=f"{n} " * 9) for n in range(3)]
    memory.remember([*alike, example(3), example(4)])
    outputs = [e["output"] for e in memory.recall({**ITEM, "output": "apple"}, mmr(3))]
    assert len(set(outputs)) == 3


def test_near_takes_the_nearest_of_each_label_in_turn(memory):
    memory.remember([example(n, corrected=int(n > 5)) for n in range(8)])
    nearest = [e["id"] for e in memory.recall(ITEM, knn(8))]
    found = memory.recall(ITEM, near(4))
    assert sorted(e["corrected"] for e in found) == [0, 0, 1, 1]
    assert ids(found) == [name for name in nearest if name in ids(found)]
    of_zero = [e["id"] for e in memory.recall(ITEM, knn(8)) if not e["corrected"]]
    assert {e["id"] for e in found if not e["corrected"]} == set(of_zero[:2])
    assert ids(memory.recall(ITEM)) == ids(memory.recall(ITEM, "near:8"))


def test_uniform_is_seeded_and_grows_without_changing(memory):
    memory.remember([example(n) for n in range(8)])
    few, many = (ids(memory.recall(ITEM, uniform(m, seed=1))) for m in (3, 6))
    assert len(few) == 3
    assert [name for name in many if name in few] == few
    assert few == ids(memory.recall({**ITEM, "output": "other"}, uniform(3, seed=1)))
    others = {tuple(ids(memory.recall(ITEM, uniform(3, seed=s)))) for s in range(9)}
    assert len(others) > 1


def test_balanced_has_as_many_of_each_label(memory):
    memory.remember([example(n, corrected=int(n > 5)) for n in range(8)])
    labels = [e["corrected"] for e in memory.recall(ITEM, balanced(4))]
    assert sorted(labels) == [0, 0, 1, 1]


def test_leave_out_leaves_a_failure_mode_out(memory):
    memory.remember([example(n) for n in range(8)])
    assert {e["mode"] for e in memory.recall(ITEM, leave_out(2))} == {1, 3}
    near = memory.recall(ITEM, leave_out(1, knn(2)))
    assert len(near) == 2
    assert 1 not in {e["mode"] for e in near}
    assert ids(near) == ids(memory.recall(ITEM, "leave_out:1:knn:2"))


HOWS = ["all", "uniform:9", "balanced:9", "knn:9", "mmr:9", "leave_out:none:all"]


@for_each("how", HOWS)
@for_each(
    "item",
    [
        {"id": "item 3"},
        {"group": "group 1"},
        {},
        {"output": "  it is DOUGH 3"},
        {"id": "other", "group": "other"},
    ],
    ids=["by id", "by group", "by content", "by words", "by content under another id"],
)
def test_an_item_never_sees_itself_or_its_group(memory, how, item):
    memory.remember([example(n) for n in range(6)])
    fields = {name: example(3)[name] for name in ("family", "input", "output")}
    results = memory.recall({**fields, **item}, how)
    assert "item 3" not in [e["source"] for e in results]
    assert len(results) == (4 if "group" in item and item["group"] == "group 1" else 5)
    assert len(results.barred) == 6 - len(results)
    assert not results.leaked
    loud = memory.recall({**fields, **item}, how, allow_leak=True)
    assert "item 3" in [e["source"] for e in loud]
    assert loud.allow_leak
    assert "item 3" in [e["source"] for e in loud if e["id"] in loud.leaked]


def test_an_item_with_a_source_is_known_by_it(memory):
    # The example of such an item holds the source behind the task.
    cats = "The cat sat on the mat and then went home to eat its fish."
    dogs = "Dogs dig deep holes by day and guard old doors until dawn."
    task, response = "Is the summary consistent?", "Somebody sat somewhere."
    texts = [
        {"input": f"{task}\n\n{source}", "output": text, "corrected": 0, "source": f"{n}"}
        for n, (source, text) in enumerate(
            [(cats, response), (dogs, "A few words."), (cats, "It.")]
        )
    ]
    memory.remember(texts)
    item = {"input": task, "source": cats, "output": response}
    results = memory.recall(item, "knn:1")
    assert [e["source"] for e in results] == ["1"]
    assert [e["source"] for e in memory.recall(item, "all")] == ["1"]
    assert len(memory.recall({**item, "source": dogs}, "all")) == 2


@for_each(
    ("task", "shown"),
    [
        ("Name number 0 of the foods on the list.", 2),
        ("  name NUMBER 0 of the foods,  on the list", 2),
        ("Name number 7 of the foods on the list.", 3),
    ],
)
def test_an_item_never_sees_an_example_of_its_own_task(memory, task, shown):
    memory.remember([example(n, group="sheet 3") for n in range(3)])
    item = {**ITEM, "input": task, "output": "Something else."}
    for how in ("all", "uniform:9", "near:9"):
        recalled = memory.recall(item, how)
        assert len(recalled) == shown, how
    opened = memory.recall(item, "all", allow_leak=True)
    assert (len(opened), len(opened.leaked)) == (3, 3 - shown)
    memory.forget([e["id"] for e in memory.examples()])


def test_a_question_that_a_whole_family_shares_is_no_task(memory):
    same = {"input": "Is the reply polite?", "group": None}
    memory.remember([example(n, **same) for n in range(2)])
    item = {**ITEM, "input": "Is the reply polite?"}
    assert len(memory.recall(item, "all")) == 0
    memory.remember([example(2, **same)])
    assert len(memory.recall(item, "all")) == len(memory.recall(item, "near:8")) == 3


def test_names_are_compared_as_texts(memory):
    memory.remember([example(1, family=3, source="7", group="4")])
    item = {"input": "Why?", "output": "So.", "family": 3}
    assert len(memory.recall(item)) == 1
    assert len(memory.recall({**item, "family": ""})) == 1
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
    assert memory.examples()[0]["expected"] == "God."
    turned = {**pair, "output_a": pair["output_b"], "output_b": pair["output_a"]}
    assert memory.recall(pair, "all") == memory.recall(turned, "knn:1") == []
    other = {**pair, "input": "Why not?", "output_a": "It was always so."}
    [entry] = memory.recall(other, "all")
    assert memory.recall({"input": "Why?", "output": "It was always so."}, "all") == []
    assert entry["output"] == {name: pair[name] for name in ("output_a", "output_b")}


def test_an_empty_memory_embeds_nothing():
    class Deaf(Embeddings):
        def embed_documents(self, texts):
            raise AssertionError

        embed_query = embed_documents

    memory = FailureMemory(embeddings=Deaf())
    for how in HOWS:
        assert memory.recall(ITEM, how) == []
    assert memory


def test_it_is_an_example_selector_of_langchain(memory):
    assert isinstance(memory, BaseExampleSelector)
    memory.add_example(example(0))
    memory.add_example(example(5))
    prompt = FewShotPromptTemplate(
        example_selector=memory,
        example_prompt=PromptTemplate.from_template("{output} -> {corrected}"),
        suffix="{output}",
        input_variables=["output"],
    )
    assert prompt.format(output="fudge").startswith("It is fudge 5. -> 1")


def test_async_does_what_sync_does(memory):
    async def work():
        names = await memory.aremember([example(n) for n in range(5)])
        assert await memory.aadd_example(example(5))
        for how in HOWS:
            assert await memory.arecall(ITEM, how) == memory.recall(ITEM, how)
        assert await memory.aselect_examples(ITEM) == memory.select_examples(ITEM)
        assert await memory.aforget(names[0]) == 1
        await memory.arefresh()
        return len(memory)

    assert asyncio.run(work()) == 5


@for_each(
    ("text", "how"),
    [
        ("all", all_()),
        ("knn", knn(8)),
        ("knn:3", knn(3)),
        ("uniform:4", uniform(4)),
        ("leave_out:2:knn:8", leave_out(2, knn(8))),
        ("leave_out:lengthy", leave_out("lengthy")),
    ],
)
def test_a_choice_can_be_named(text, how):
    assert read_recall(text) == how
    json.dumps(how.as_json())


@for_each("bad", ["", "some", "uniform", "knn:0", "knn:x", "leave_out", 8, None])
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
        async with memory.trial([example(1)]):
            return await asyncio.gather(asyncio.to_thread(len, memory), memory.arecall(ITEM))

    async def work():
        task = asyncio.create_task(inside())
        assert len(memory) == 0
        count, recalled = await task
        return count, len(recalled), len(memory)

    assert asyncio.run(work()) == (1, 1, 0)


def test_nothing_of_a_trial_stands_in_the_file(tmp_path):
    path = tmp_path / "m"
    memory = FailureMemory(embeddings=Letters(), path=path)
    memory.remember([example(0)])
    with memory.trial([example(1)]):
        memory.recall(ITEM, "mmr:2")
        assert len(FailureMemory(embeddings=Letters(), path=path)) == 1
        assert memory.export(tmp_path / "out.jsonl") == 1
    (tmp_path / "out.jsonl").unlink()
    words = example(1)["output"].encode()
    assert not any(words in file.read_bytes() for file in tmp_path.iterdir())


def test_what_is_remembered_in_a_trial_stays(memory):
    with memory.trial([example(1)]):
        memory.remember([example(2)])
    assert [e["source"] for e in memory.examples()] == ["item 2"]


def test_an_item_is_embedded_once_whatever_the_choice():
    class Counted(Letters):
        count = 0

        def embed_query(self, text):
            self.count += 1
            return super().embed_query(text)

        def embed_documents(self, texts):
            return [Letters.embed_query(self, text) for text in texts]

    for store in (FaissStore, InMemoryVectorStore):
        embedder = Counted()
        memory = FailureMemory(store(embedder))
        memory.remember([example(n) for n in range(30)])
        # A memory on a foreign store has been read by a search, once.
        embedder.count = 0
        memory.recall({**ITEM, "family": None}, "mmr:4")
        memory.recall({**ITEM, "id": "item 1"}, "knn:25")
        assert embedder.count == 2


# -- sharing


def test_a_foreign_store_keeps_all_there_is_and_other_documents_too():
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
    assert len(first) == 4
    assert len(other) == 1


@pytest.mark.system
def test_another_process_is_seen(tmp_path):
    path = str(tmp_path / "m")
    memory = FailureMemory(embeddings=Letters(), path=path)
    memory.remember([example(0)])
    before = memory.version
    code = (
        "from tests.test_memory import *\n"
        f"FailureMemory(embeddings=Letters(), path={path!r}).remember([example(1)])"
    )
    other = start("-c", code)
    _, stderr = other.communicate()
    assert other.returncode == 0, stderr
    assert len(memory) == 2
    assert memory.version != before


def test_a_store_and_a_path_exclude_each_other(tmp_path):
    with pytest.raises(OptionError, match="`path`"):
        FailureMemory(InMemoryVectorStore(Letters()), path=tmp_path)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 3))))
def test_forgetting_a_round_is_never_having_had_it(steps):
    with_it, without = (FailureMemory(InMemoryVectorStore(Letters())) for _ in range(2))
    for n, label, number in steps:
        entry = example(n, corrected=label, round=number, auditor="Ann")
        with_it.remember([entry])
        if number != 2:
            without.remember([entry])
    if steps:
        with_it.forget(round=2)
    assert ids(with_it.examples()) == ids(without.examples())
    examples, never = ({e["id"]: e for e in m.examples()} for m in (with_it, without))
    assert {k: e["corrected"] for k, e in examples.items()} == {
        k: e["corrected"] for k, e in never.items()
    }
    assert re.fullmatch("[0-9a-f]{12}", with_it.version)
