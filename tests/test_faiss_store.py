"""The vector store: LangChain's tests, what lasts, and what is refused."""

import asyncio
import os
import random
import sqlite3

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from langchain_judges import FaissStore
from langchain_judges.asking.embeddings import identity_of
from langchain_judges.errors import InputError, OptionError, OutputError
from tests.cases import for_each
from tests.processes import start

WORDS = DeterministicFakeEmbedding(size=16)


class TestInAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        return FaissStore(self.get_embeddings(), path=tmp_path / "store")


class Plane(Embeddings):
    """Texts are angles in degrees; their vectors lie on a circle."""

    def embed_query(self, text):
        angle = np.deg2rad(float(text))
        return [3 * float(np.cos(angle)), 3 * float(np.sin(angle))]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


def filled(**options):
    store = FaissStore(Plane(), **options)
    store.add_texts(
        ["0", "10", "20", "90"],
        [{"kind": "a"}, {"kind": "b", "n": 1}, {"kind": "a", "tags": ["x", "y"]}, {"n": None}],
        ids=["p", "q", "r", "s"],
    )
    return store


def ids(documents):
    return [document.id for document in documents]


def test_scores_are_cosines_best_first():
    hits = filled().similarity_search_with_score("0", k=2)
    assert ids(d for d, _ in hits) == ["p", "q"]
    assert [s for _, s in hits] == pytest.approx([1, np.cos(np.deg2rad(10))])


@for_each(
    ("where", "result"),
    [
        ({"kind": "a"}, ["p", "r"]),
        ({"kind": "b", "n": 1}, ["q"]),
        ({"tags": ["x", "y"]}, ["r"]),
        ({"n": None}, ["s"]),
        ({"none": 1}, []),
    ],
)
def test_a_filter_keeps_what_it_says(where, result):
    store = filled()
    assert ids(store.similarity_search("0", k=4, filter=where)) == result
    assert ids(asyncio.run(store.asimilarity_search("0", k=4, filter=where))) == result


def test_a_filter_of_another_dialect_is_refused():
    with pytest.raises(InputError, match="for 'n', got"):
        filled().similarity_search("0", filter={"n": {"$gt": 3}})


def test_deletions_and_replacements_leave_the_rest_in_place():
    store = FaissStore(Plane())
    store.add_texts([str(n) for n in range(90)], [{"odd": n % 2} for n in range(90)])
    kept = [str(n) for n in range(90) if n % 3]
    found = store.similarity_search("0", k=90)
    store.delete([d.id for d in found if d.page_content not in kept])
    store.add_texts(["45"], [{"odd": 1}], ids=["new"])
    store.add_texts(["46"], [{"odd": 0}], ids=["new"])
    near = store.similarity_search("46", k=3, filter={"odd": 0})
    assert [d.page_content for d in near] == ["46", "46", "44"]
    assert len(store) == len(kept) + 1


# -- one file, several processes


def all_bytes(folder):
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))


@pytest.mark.parametrize("seed", [1, 4])
def test_deleted_texts_leave_every_file_at_once(tmp_path, seed):
    store = FaissStore(WORDS, path=tmp_path / "m")
    texts = [f"secret {n} " + "word " * (7 * n % 300) for n in range(400)]
    store.add_texts(texts, [{"text": text} for text in texts], ids=texts)
    chance = random.Random(seed)
    gone = chance.sample(texts, 300)
    for start_at in range(0, 300, 30):
        store.delete(gone[start_at : start_at + 30])
        store.add_texts([f"new {start_at}"])
    data = all_bytes(tmp_path)
    left = [text for text in gone if text.split(" word")[0].strip().encode() + b" " in data]
    assert left == []
    assert all(store.get_by_ids([text]) for text in texts if text not in gone)


def test_a_store_sees_what_another_has_written(tmp_path):
    one, two = filled(path=tmp_path / "m"), FaissStore(Plane(), path=tmp_path / "m")
    one.delete(["p"])
    assert ids(two.similarity_search("0", k=1, filter={"kind": "a"})) == ["r"]
    two.add_texts(["1"], [{"kind": "a"}], ids=["t"])
    assert ids(one.similarity_search("0", k=1, filter={"kind": "a"})) == ["t"]


WRITER = """
import sys
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_judges import FaissStore
store = FaissStore(DeterministicFakeEmbedding(size=16), path=sys.argv[1])
for i in range(int(sys.argv[3])):
    name = f"{sys.argv[2]}{i}."
    store.add_texts([name], [{"who": sys.argv[2]}], ids=[name])
    print("+", name, flush=True)
    if i % 5 == 4:
        store.delete([f"{sys.argv[2]}{i - 1}."])
        print("-", f"{sys.argv[2]}{i - 1}.", flush=True)
"""


def writer(path, who, count=10**6):
    return start("-c", WRITER, path, who, count)


def acknowledged(lines):
    """The rows said to be there, and those said to be gone."""
    said = [line.split() for line in lines if len(line.split()) == 2]
    gone = {name for sign, name in said if sign == "-"}
    return {name for sign, name in said if sign == "+"} - gone, gone


@pytest.mark.system
def test_kills_of_two_writers_lose_nothing_that_was_acknowledged(tmp_path):
    chance = random.Random(0)
    path = tmp_path / "m"
    there, gone = set[str](), set[str]()
    for attempt in range(4):
        both = [writer(path, f"{who}{attempt}-") for who in "vw"]
        lines = []
        for process in both:
            lines += [process.stdout.readline() for _ in range(chance.randrange(12, 40))]
        for process in both:
            process.kill()
            lines += process.communicate()[0].splitlines()
        more, less = acknowledged(lines)
        there, gone = there | more, gone | less
    store = FaissStore(WORDS, path=path)
    missing = [name for name in there if not store.get_by_ids([name])]
    # A deletion may have been done when the kill came, and not yet been acknowledged.
    assert all(int(name.split("-")[1][:-1]) % 5 == 3 for name in missing)
    assert len(missing) <= 8
    assert store.get_by_ids(list(gone)) == []
    store.delete([])
    data = all_bytes(tmp_path)
    assert [name for name in gone if name.encode() in data] == []


@pytest.mark.system
def test_writers_of_two_processes_take_turns(tmp_path):
    both = [writer(tmp_path / "m", who, count=30) for who in "vw"]
    lines = [line for p in both for line in p.communicate()[0].splitlines()]
    found = FaissStore(WORDS, path=tmp_path / "m").similarity_search("x", k=100)
    assert {*ids(found)} == acknowledged(lines)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_forked_process_opens_the_file_anew(tmp_path):
    store = filled(path=tmp_path / "m")
    child = os.fork()
    if not child:
        store.add_texts(["45"], ids=["child"])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ids(store.similarity_search("45", k=1)) == ["child"]
    store.add_texts(["44"], ids=["parent"])
    assert len(FaissStore(Plane(), path=tmp_path / "m")) == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_deletion_waits_for_a_process_that_empties_the_log(tmp_path, monkeypatch):
    import fcntl

    store = filled(path=tmp_path / "m")
    locked, gate = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(gate[1])  # where the test fails, its end is the child's
        shared = os.open(tmp_path / "m-shm", os.O_RDWR)
        fcntl.lockf(shared, fcntl.LOCK_EX, 1, 121)  # what SQLite holds while it does so
        os.write(locked[1], b".")
        os.read(gate[0], 1)
        os._exit(0)
    os.read(locked[0], 1)
    waits = []

    def end(seconds):
        waits.append(seconds)
        os.write(gate[1], b".")
        os.waitpid(child, 0)

    monkeypatch.setattr("langchain_judges.memory.document_file.time.sleep", end)
    store.delete(["p"])
    assert len(waits) == 1
    assert len(store) == 3


# -- what is not ours, and what is damaged


@for_each("path", ["", " ", "a\0b", "s3://bucket/memory", "file:///tmp/m", 3, b"m"])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(OptionError, match="`path` must be"):
        FaissStore(Plane(), path=path)


def test_a_tilde_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert filled(path="~/here/m").path == tmp_path / "here" / "m"
    monkeypatch.chdir(tmp_path)
    assert str(filled(path="~no.such.user/m").path) == "~no.such.user/m"


def test_a_folder_is_refused_and_nothing_beside_a_store_is_touched(tmp_path):
    names = ("documents-train.jsonl", "log-2026-11.jsonl", "index-wiki.faiss", ".notes.tmp")
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(OutputError, match="is a folder"):
        FaissStore(Plane(), path=tmp_path)
    filled(path=tmp_path / "m").delete(["p"])
    assert {file.name for file in tmp_path.iterdir()} == {*names, "m"}
    assert all((tmp_path / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
def test_a_file_where_the_log_would_stand_is_refused(tmp_path, ending):
    (tmp_path / f"m{ending}").write_text("mine")
    with pytest.raises(OutputError, match=f"m{ending} is in the way"):
        FaissStore(Plane(), path=tmp_path / "m")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["mine"]


def test_files_that_are_not_ours_are_refused_and_stay_as_they_are(tmp_path):
    theirs = sqlite3.connect(tmp_path / "theirs")
    theirs.execute("CREATE TABLE t (a)")
    theirs.close()
    (tmp_path / "text").write_text("mine")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    before = {n: (tmp_path / n).read_bytes() for n in ("theirs", "text", "empty")}
    for name in (*before, "pipe"):
        with pytest.raises(OutputError, match=f"{name} is not a store"):
            FaissStore(Plane(), path=tmp_path / name)
    assert {n: (tmp_path / n).read_bytes() for n in before} == before
    assert len(list(tmp_path.iterdir())) == 4


def test_a_cut_file_is_named(tmp_path):
    path = tmp_path / "m"
    FaissStore(WORDS, path=path).add_texts(["word " * 99] * 40)
    data = path.read_bytes()
    for size in (200, len(data) // 2, len(data) - 4096):
        path.write_bytes(data[:size])
        with pytest.raises(OutputError, match=r"m is damaged|cannot be read"):
            FaissStore(WORDS, path=path)


def test_a_file_whose_damaged_words_sqlite_cannot_name_is_damaged(tmp_path):
    filled(path=tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    assert b"CREATE TABLE " in data
    (tmp_path / "m").write_bytes(data.replace(b"CREATE TABLE ", b"CREATE TABL\xc6 "))
    with pytest.raises(OutputError, match="m is damaged"):
        FaissStore(Plane(), path=tmp_path / "m")


def test_a_changed_byte_is_named_or_harmless(tmp_path):
    path = tmp_path / "m"
    texts = [f"text {n} " * 90 for n in range(90)]
    FaissStore(WORDS, path=path).add_texts(texts, [{"n": n} for n in range(90)], ids=texts)
    data, chance, named, whole = path.read_bytes(), random.Random(5), 0, 0
    for _ in range(60):
        place = chance.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :])
        try:
            found = FaissStore(WORDS, path=path).get_by_ids(texts)
        except OutputError as exc:
            named += str(path) in str(exc)
            continue
        whole += [(d.page_content, d.metadata) for d in found] == [
            (text, {"n": n}) for n, text in enumerate(texts)
        ]
    assert (named + whole, named > 20) == (60, True)


def test_a_file_that_was_taken_away_or_replaced_is_named(tmp_path):
    store = filled(path=tmp_path / "m")
    filled(path=tmp_path / "n")
    (tmp_path / "n").replace(tmp_path / "m")
    for use in (lambda: len(store), lambda: store.add_texts(["3"])):
        with pytest.raises(OutputError, match="m was replaced"):
            use()
    (tmp_path / "m").unlink()
    with pytest.raises(OutputError, match="m cannot be used"):
        store.add_texts(["3"])


FULL = """
import resource, signal, sys
from tests.test_faiss_store import Plane, FaissStore, OutputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = FaissStore(Plane(), path=sys.argv[1])
store.add_texts(["1"], ids=["before"])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, -1))
try:
    for n in range(1000):
        store.add_texts(["2"], [{"long": "x" * 5000}], ids=[str(n)])
        print(n)
except OutputError as exc:
    print("named" if sys.argv[1] in str(exc) else exc)
print(len(store))
"""


@pytest.mark.system
def test_a_full_disk_is_named_and_takes_nothing_by_halves(tmp_path):
    out, _ = start("-c", FULL, tmp_path / "m").communicate()
    *numbers, said, count = out.split()
    assert said == "named"
    store = FaissStore(Plane(), path=tmp_path / "m")
    assert len(store) == int(count) == len(numbers) + 1 > 1
    store.add_texts(["3"], ids=["after"])
    assert ids(store.get_by_ids(["before", "after"])) == ["before", "after"]


def test_a_store_in_a_folder_that_cannot_be_written_is_read(tmp_path, monkeypatch):
    filled(path=tmp_path / "m")
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = all_bytes(tmp_path)
    store = FaissStore(Plane(), path=tmp_path / "m")
    assert len(store) == 4
    with pytest.raises(OutputError, match=r"m: .*readonly"):
        store.add_texts(["3"])
    assert all_bytes(tmp_path) == before


# -- whose vectors these are


class Mirrored(Plane):
    """As wide as `Plane`, and yet another model."""

    def embed_query(self, text):
        return super().embed_query(text)[::-1]


@pytest.mark.parametrize("other", [Mirrored(), WORDS])
def test_texts_are_not_embedded_by_another_model(tmp_path, other):
    filled(path=tmp_path / "m")
    store = FaissStore(other, path=tmp_path / "m")
    for use in (store.add_texts, lambda texts: store.similarity_search(texts[0])):
        with pytest.raises(InputError, match=r"from Plane\(\)"):
            use(["0"])
    assert len(store) == 4


class Named(Plane):
    def __init__(self, **fields):
        self.__dict__.update(fields)


@for_each(
    ("embedder", "identity"),
    [
        (WORDS, "DeterministicFakeEmbedding(size=16)"),
        (Named(model="m", dimensions=256), "Named(model='m', dimensions=256)"),
        (Named(model_name="/home/me/models/mini/"), "Named(model_name='mini')"),
        (Named(model="org/mini"), "Named(model='org/mini')"),
        (Named(underlying_embeddings=Plane()), "Plane()"),
    ],
)
def test_an_embedder_is_known_by_class_and_model(embedder, identity):
    assert identity_of(embedder) == identity


def test_vectors_of_another_width_or_without_a_length_are_refused():
    for vector, match in (([1.0, 0.0, 0.0], "have 2 numbers, got 3"), ([np.nan, 1], "finite")):
        with pytest.raises(InputError, match=match):
            filled().similarity_search_by_vector(vector)


class Ragged(Plane):
    """Notes how many texts come at a time; vectors of later parts have a number more."""

    def __init__(self, more=()):
        self.sizes, self.more = [], list(more)

    def embed_documents(self, texts):
        later = self.more if self.sizes else []
        self.sizes.append(len(texts))
        return [vector + later for vector in super().embed_documents(texts)]


def test_many_texts_are_embedded_in_parts_and_stored_together():
    store = FaissStore(embedder := Ragged())
    store.add_texts(["90", *["0"] * 2_100, "45"])
    assert (max(embedder.sizes), sum(embedder.sizes), len(store)) == (1_000, 2_102, 2_102)
    found = [d.page_content for d in store.similarity_search("90", k=2)]
    assert found == ["90", "45"]


def test_parts_whose_vectors_differ_in_width_are_refused_and_nothing_is_stored():
    store = FaissStore(Ragged(more=[1.0]))
    with pytest.raises(InputError, match="one length"):
        store.add_texts(["0"] * 1_001)
    assert len(store) == 0


def test_metadata_that_is_no_json_is_refused_before_anything_is_written(tmp_path):
    store = filled(path=tmp_path / "m")
    bad = [Document("1"), Document("2", metadata={"x": object()})]
    with pytest.raises(InputError, match="must be JSON"):
        store.add_documents(bad)
    assert len(FaissStore(Plane(), path=tmp_path / "m")) == 4
