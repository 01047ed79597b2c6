"""Results in S3, over its protocol: shards by the command, resumed and joined."""

import json

import pytest
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.errors import OutputError
from langchain_judges.runs.merge import merge
from langchain_judges.runs.remote import Remote
from langchain_judges.testing import FakeModelServer
from tests.fakes import FakeChatModel
from tests.judges import answer_call
from tests.s3_server import S3Server
from tests.test_remote import ROWS, run

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server():
    # One for all tests: fsspec keeps a store's client for the whole process.
    with S3Server() as server, pytest.MonkeyPatch.context() as environment:
        for name, value in {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "a-key",
            "AWS_SECRET_ACCESS_KEY": "a-secret",
            "AWS_REGION": "us-east-1",
        }.items():
            environment.setenv(name, value)
        yield server


@pytest.fixture
def s3(server):
    server.objects.clear()
    return server


def test_shards_in_s3_resume_and_join_by_the_command(s3, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def command(*words):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output

    with FakeModelServer(answer_call) as server:
        judge = ["judge", str(rows), "--method", "relative", "--model", "m", "--base-url"]
        judge += [server.url, "-o", "s3://bucket/out/"]
        for shard in ("1/2", "2/2", "1/2"):
            command(*judge, "--shard", shard)
        assert len(server.calls) == 20  # ten rows in two orders; what was done is resumed
    command("merge", "s3://bucket/out/", "-o", "s3://bucket/verdicts.csv")
    assert s3.objects["verdicts.csv"].count(b"\n") == 11
    parts = [f"out/part-0000{n}-of-00002.{end}" for n in "12" for end in ("done.json", "jsonl")]
    assert s3.objects.keys() >= {*parts, "verdicts.csv"}


def test_a_shard_that_was_killed_resumes_from_its_last_copy(s3, tmp_path):
    run(out="s3://bucket/out", shard="1/1")
    part = "out/part-00001-of-00001.jsonl"
    del s3.objects["out/part-00001-of-00001.done.json"]
    s3.objects[part] = b"".join(s3.objects[part].splitlines(keepends=True)[:6])
    with pytest.raises(OutputError, match="not finished: 1/1"):
        merge("s3://bucket/out", tmp_path / "all.jsonl")
    model = FakeChatModel()
    run(model, out="s3://bucket/out", shard="1/1")
    assert len(model.prompts) == 4
    assert merge("s3://bucket/out", tmp_path / "all.jsonl").rows == 10


def test_a_bucket_that_is_missing_is_neither_made_nor_found_after_the_calls(s3):
    model = FakeChatModel()
    with pytest.raises(OutputError, match="s3://buckte/out"):
        run(model, out="s3://buckte/out", shard="1/1")
    assert not model.prompts


def test_an_object_of_several_parts_is_whole(s3):
    place = Remote("s3://bucket/out")
    content = bytes(range(256)) * 50_000  # 12.8 MB
    (place.folder / "part").write_bytes(content)
    place.push("part")
    assert s3.objects["out/part"] == content
    assert place.fetch("part").read_bytes() == content
    place.close()
