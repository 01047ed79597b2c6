"""Results in an object store: here fsspec's store in memory."""

from pathlib import Path
from typing import Any

import pytest

from langchain_judges import judge_many
from langchain_judges.errors import OptionError, OutputError
from langchain_judges.runs import shards
from langchain_judges.runs.shards import Remote, merge
from langchain_judges.runs.tables import TableOut
from tests.fakes import FakeChatModel
from tests.judges import of_method

fsspec = pytest.importorskip("fsspec", reason="the extra `hub` is not installed")
ROWS = [
    {"input": "Name a fruit.", "output_a": f"good {n}", "output_b": "pear", "id": f"r{n}"}
    for n in range(10)
]
OUT = "memory://bucket/out"


@pytest.fixture(autouse=True)
def store():
    store = fsspec.filesystem("memory")
    yield store
    if store.exists("/bucket"):
        store.rm("/bucket", recursive=True)


def run(model=None, rows=ROWS, **options):
    judge = of_method("relative", model, orders="none")
    return list(judge_many(judge, rows, progress=False, **{"records": OUT, **options}))


def test_shards_in_a_store_resume_and_join(store, tmp_path):
    first = run(shard="1/2")
    run(shard="2/2")
    model = FakeChatModel()
    assert run(model, shard="1/2") == first
    assert not model.prompts
    assert merge(OUT, tmp_path / "all.jsonl").rows == 10
    merge(OUT, f"{OUT}/all.csv")
    assert len(store.cat("/bucket/out/all.csv").splitlines()) == 11


def test_one_file_in_a_store_is_resumed_too(store):
    run(records="memory://bucket/verdicts.jsonl", rows=ROWS[:4])
    model = FakeChatModel()
    assert len(run(model, records="memory://bucket/verdicts.jsonl")) == 10
    assert len(model.prompts) == 6
    assert store.cat("/bucket/verdicts.jsonl").count(b"\n") == 10


def test_a_shard_that_is_begun_again_withdraws_its_receipt(store, tmp_path):
    run(shard="1/1")
    judge = of_method("relative", orders="none")
    options: dict[str, Any] = {"records": OUT, "shard": "1/1", "max_concurrency": 1}
    with judge_many(
        judge, [*ROWS, {**ROWS[0], "id": "new"}], progress=False, **options
    ) as stopped:
        next(stopped)
    with pytest.raises(OutputError, match="not finished: 1/1"):
        merge(OUT, tmp_path / "all.jsonl")


def test_a_copy_is_due_once_a_period(store):
    now = [0.0]
    place = Remote(OUT, clock=lambda: now[0])
    (place.folder / "part").touch()
    place.push_when_due("part")
    assert not store.exists("/bucket/out/part")
    now[0] = shards.PERIOD
    place.push_when_due("part")
    place.close()
    assert store.exists("/bucket/out/part")
    assert not place.folder.exists()


def test_what_cannot_be_copied_stays_here_and_is_named(store, monkeypatch):
    put = type(store).put_file

    def refuse_rows(self, here, *more, **options):
        if Path(here).stat().st_size:
            raise OSError("no space")
        put(self, here, *more, **options)

    monkeypatch.setattr(type(store), "put_file", refuse_rows)
    with pytest.raises(OutputError, match="no space") as refused:
        run(records="memory://bucket/verdicts.jsonl")
    here = str(refused.value).rpartition("The file is ")[2]
    assert Path(here).read_bytes().count(b"\n") == 10


def test_a_table_that_cannot_be_written_costs_no_copy(store, tmp_path, monkeypatch):
    close = TableOut.close

    def refuse(self, **how):
        close(self, **how)
        raise OutputError("no space for a table")

    monkeypatch.setattr(TableOut, "close", refuse)
    with pytest.raises(OutputError, match="no space for a table"):
        run(out=tmp_path / "out.csv", records="memory://bucket/verdicts.jsonl")
    assert store.cat("/bucket/verdicts.jsonl").count(b"\n") == 10


def test_a_store_that_takes_nothing_is_found_before_a_call(store, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("read only")

    monkeypatch.setattr(type(store), "put_file", refuse)
    model = FakeChatModel()
    with pytest.raises(OutputError, match="read only"):
        run(model)
    assert not model.prompts


def test_a_store_that_nothing_here_speaks_is_refused_before_a_call():
    model = FakeChatModel()
    with pytest.raises(OptionError, match="nosuch://bucket cannot be used"):
        run(model, records="nosuch://bucket/verdicts.jsonl")
    assert not model.prompts
