"""Files that are read back: damage is named, and what is somebody else's is left as it is."""

import gzip
import json
import resource
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import openpyxl
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from typer.testing import CliRunner

from langchain_judges import FailureMemory, FaissStore, create_relative_judge, judge_many
from langchain_judges.cli import app
from langchain_judges.errors import InputError, JudgeError, OptionError, OutputError
from langchain_judges.report.labelling import LabelFile
from langchain_judges.rows.files import read_table
from langchain_judges.runs.shards import merge_shards
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.memories import Letters

ROWS = [{"id": str(n), "input": f"q{n}", "output_a": "a", "output_b": "b"} for n in range(4)]
REPLY = '{"explanation": "x", "preference": "1"}'


def judge(**options):
    return create_relative_judge(FakeChatModel(replies=lambda prompt: REPLY), **options)


def judged(**where):
    return list(judge_many(judge(), ROWS, progress=False, **where))


def sharded(folder):
    for number in (1, 2):
        judged(records=folder / "parts", shard=f"{number}/2")
    return merge_shards(folder / "parts", folder / "all.jsonl")


def remembered(path):
    memory = FailureMemory(embeddings=Letters(), path=path)
    memory.remember([{"input": "q", "output": "a", "expected": "b", "wrong": 1, "corrected": 0}])
    return len(memory.examples())


WAYS = {
    "a table": lambda folder: judged(out=folder / "o.csv"),
    "records": lambda folder: judged(records=folder / "r.jsonl"),
    "shards": sharded,
    "a memory": lambda folder: remembered(folder / "m.db"),
}


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    places = st.integers(0, len(whole) - 1)

    def flipped(at: int, bit: int) -> bytes:
        return whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]

    def swapped(at: int, to: int) -> bytes:
        page = whole[at : at + 4096]
        return (whole[:to] + page + whole[to + len(page) :])[: len(whole)]

    return st.one_of(
        places.map(lambda at: whole[:at]),
        st.builds(flipped, places, st.integers(0, 7)),
        st.builds(lambda at, size: whole[:at] + bytes(size) + whole[at + size :], places, places),
        st.builds(swapped, places, places),
        st.sampled_from([b"[]", b"null", b"[" * 10_000, b'{"rows": "x"}\n', b"\xff\xfe"]),
    )


def damage(
    way: str, whole: Path, answer: object, copies: Iterator[Path], data: st.DataObject
) -> str:
    """Damage one file of a folder and read it again; return what is wrong with that."""
    files = [each.relative_to(whole) for each in sorted(whole.rglob("*")) if each.is_file()]
    file, copy = data.draw(st.sampled_from(files)), next(copies)
    shutil.copytree(whole, copy)
    contents = {each: (whole / each).read_bytes() for each in files}
    others = st.sampled_from([*contents.values()])
    (copy / file).write_bytes(data.draw(st.one_of(damaged(contents[file]), others)))
    try:
        again = WAYS[way](copy)
    except JudgeError as exc:
        return "" if str(copy) in str(exc) else f"{file}: {exc}"
    finally:
        shutil.rmtree(copy)
    return "" if again == answer else f"{file}: {again!r}"


@pytest.mark.whole
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_file_of_a_run_is_read_as_it_was_or_named(way, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    answer = WAYS[way](whole)

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def survives(data):
        assert damage(way, whole, answer, iter([tmp_path / "copy"]), data) == ""

    survives()


def table_of(path):
    """Two rows as bytes of a table of some form."""
    rows: list[dict] = [{"input": "é", "output": 1}, {"input": "b", "output": None}]
    if path.name.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for cells in (["input", "output"], *(each.values() for each in rows)):
            book.active.append([*cells])
        book.save(path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        lines = {"json": json.dumps(rows), "jsonl": "\n".join(map(json.dumps, rows))}
        text = lines.get(path.name.split(".")[1], "input,output\né,1\n").encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path.read_bytes()


@pytest.mark.whole
@for_each("name", ["a.xlsx", "a.json", "a.jsonl", "a.csv", "a.jsonl.gz", "a.parquet"])
def test_a_damaged_table_is_read_or_named(name, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / name
    whole = table_of(path)

    @settings(max_examples=60, deadline=None, database=None)
    @given(damaged(whole) | st.just(b"[" * 100_000))
    def read(content):
        path.write_bytes(content)
        with suppress(InputError):
            assert isinstance(list(read_table(path)), list)

    read()


def test_a_quote_that_is_not_closed_in_its_row_is_told_by_its_line(tmp_path):
    path, rows = tmp_path / "r.csv", [f"{n},q,An answer\n" for n in range(9)]
    rows[1], table = '1,q,"An answer\n', "id,input,output\n"
    path.write_text(table + "".join(rows))
    for last in ("", '7,q,"Fine"\n'):
        path.write_text(table + "".join(rows[:6]) + last)
        with pytest.raises(InputError, match=r"r.csv, line 3: .* never closed"):
            list(read_table(path))


@for_each(
    "cell",
    ['"He said \\"hi\\""', '"He said "hi""', '"He said \\"hi, you\\", twice"', '"Yes" he said'],
)
@for_each("separator", [",", "\t"])
def test_a_quote_that_is_not_doubled_is_told_and_not_lost(cell, separator, tmp_path):
    path = tmp_path / "r.csv"
    rows = [["id", "input"], ["1", '"Fine, ""you"" are\nhere\\"'], ["2", cell]]
    path.write_text("\n".join(map(separator.join, rows)))
    with pytest.raises(InputError, match=r"r.csv, line 4: .* not written twice"):
        list(read_table(path))
    path.write_text("\n".join(map(separator.join, rows[:2])))
    assert [row["input"] for row in read_table(path)] == ['Fine, "you" are\nhere\\']


THEIRS = {
    "a row without its end": b'{"index": 0, "text": "my own data"}',
    "rows": b'{"index": 0, "text": "my own data"}\n{"index": 1, "text": "more"}\n',
    "half a row": b'{"index": 0, "te',
    "rows with keys": b'{"index": 0, "key": "mine", "kind": "pair"}\n',
    "half a row with a key": b'{"index": 0, "key": "',
    "empty lines": b"\n\n",
    "zeros": b"\0" * 4096,
    "a text": b"Dear diary",
    "a list": b"[1, 2]",
    "bytes": b"\x89PNG\r\n\x1a\n",
}


@for_each("content", THEIRS.values(), ids=THEIRS)
def test_a_file_of_the_user_is_refused_and_stays_as_it_is(content, tmp_path_factory):
    for where in ("records", "out"):
        file = tmp_path_factory.mktemp("theirs") / "mine.jsonl"
        file.write_bytes(content)
        with pytest.raises(OutputError, match=r"mine\.jsonl"):
            judged(**{where: file})
        assert file.read_bytes() == content
        assert [each.name for each in file.parent.iterdir() if each.is_file()] == [file.name]


def of_somebody(path):
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE replies (scope TEXT, key TEXT, value TEXT, checksum INTEGER);"
            "INSERT INTO replies VALUES ('a', 'b', 'mine', 1)"
        )


@for_each("make", [lambda path: path.write_text("Dear diary"), of_somebody])
def test_no_file_of_the_user_becomes_one_of_replies(make, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("theirs")
    for name in ("s.replies", "named"):
        make(folder / name)
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    monkeypatch.setenv("JUDGES_REPLIES", str(folder / "named"))
    with SqliteSaver.from_conn_string(str(folder / "s")) as saver:
        for keeper in (saver, InMemorySaver()):
            with pytest.raises(OutputError, match="file of replies"):
                judge(checkpointer=keeper).invoke(ROWS[0], {"configurable": {"thread_id": "t"}})
    after = {each.name: each.read_bytes() for each in folder.iterdir() if each.name in before}
    assert after == before


def test_what_a_run_or_a_memory_keeps_is_for_its_owner_alone(tmp_path):
    remembered(tmp_path / "m.db")
    judged(records=tmp_path / "r.jsonl")
    with SqliteSaver.from_conn_string(str(tmp_path / "s")) as saver:
        judge(checkpointer=saver).invoke(ROWS[0], {"configurable": {"thread_id": "t"}})
    run = judge_many(judge(), ROWS, out=tmp_path / "o.csv", progress=False)
    next(run)  # its draft and its replies are there
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    del modes["s"]  # LangGraph's own
    assert set(modes.values()) == {0o600, 0o700}


@pytest.fixture
def full_disk() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@for_each("name", ["o.csv", "o.jsonl", "o.tsv"])
def test_a_full_disk_is_named(name, full_disk, tmp_path_factory):
    out = tmp_path_factory.mktemp("full") / name
    rows = [{**row, "input": f"{row['input']} {'long ' * 4000}"} for row in ROWS]
    with pytest.raises(OutputError, match="written"):
        list(judge_many(judge(), rows, out=out, progress=False))


def test_an_answer_of_which_half_fits_on_the_disk_is_none(full_disk, tmp_path):
    rows = [{"id": n, "output": "long " * size} for n, size in enumerate((4_000, 4_000, 1))]
    out, kept = tmp_path / "labels.jsonl", []
    with closing(LabelFile(out)) as file:
        for row in rows:
            with suppress(OutputError):
                file.say(row, "", "", 1)
                kept.append(row["id"])
    with closing(LabelFile(out)) as again:
        assert [each["id"] for each in again.answers.values()] == kept == [0, 2]


@for_each("command", [("view", "ROWS", "--export"), ("label", "ROWS", "--out")])
def test_a_command_whose_output_does_not_fit_says_so_in_a_sentence(command, tmp_path_factory):
    rows = tmp_path_factory.mktemp("full") / "rows.jsonl"
    rows.write_text(json.dumps({**ROWS[0], "output": "x"}) + "\n")
    words = [str(rows) if each == "ROWS" else each for each in command]
    ended = CliRunner().invoke(app, [*words, "/dev/full"], input="1")
    assert ended.exit_code == 2
    assert ended.stderr.endswith("/dev/full cannot be written: No space left on device\n")


@for_each("path", [":memory:", "file:x?mode=memory", "file:m.db", "s3://a/b"])
def test_a_memory_that_would_be_lost_is_refused(path):
    for kind in (FailureMemory, FaissStore):
        with pytest.raises(OptionError, match="path"):
            kind(path=path)


def test_a_question_mark_in_a_name_is_part_of_it(tmp_path):
    assert remembered(tmp_path / "m?mode=memory") == 1
    assert (tmp_path / "m?mode=memory").stat().st_size > 0
