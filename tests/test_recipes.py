"""Pages that need LangSmith or many runs: their code and commands run as they stand."""

import shlex
from typing import Any, cast

import pytest
from langsmith import Client
from langsmith.utils import get_env_var
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.testing import FakeModelServer, reply
from tests.langsmith_server import LangSmithServer
from tests.model_server import good, pairs
from tests.processes import wait_until
from tests.test_docs import ROOT, blocks

pytestmark = pytest.mark.system  # they wait for servers and for a limit a minute
PAGES = ROOT / "docs"
OUTPUTS = [{"answer": "It comes today."}, {"answer": "Tomorrow."}]
QUESTIONS = ["Where is my parcel?", "When do you open?"]


def behave(call):
    if call.shape == "Labelled":
        return reply('{"label": "4", "explanation": "It answers."}')
    return good(call)


@pytest.fixture
def model(monkeypatch, tmp_path):
    """Serve a model where OpenAI's client looks for one."""
    monkeypatch.chdir(tmp_path)
    with FakeModelServer(behave) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.fixture
def langsmith(monkeypatch):
    """Serve LangSmith where its client looks for it, with a dataset of two questions."""
    with LangSmithServer() as server:
        monkeypatch.setenv("LANGSMITH_API_KEY", "none")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        cast("Any", get_env_var).cache_clear()
        client = Client()
        support = client.create_dataset("support questions")
        rows = [{"inputs": {"question": question}} for question in QUESTIONS]
        client.create_examples(dataset_id=support.id, examples=rows)
        yield server
    cast("Any", get_env_var).cache_clear()


def runs_of(langsmith):
    return list(langsmith.read().runs.values())


def test_the_page_on_langsmith_gives_feedback_and_compares_experiments(model, langsmith):
    scoring, comparing, *_ = blocks(PAGES / "langsmith.md", "python")
    first: dict = {}
    second: dict = {}
    exec(scoring, first)
    exec(scoring.replace("It comes today.", "Tomorrow."), second)
    names = [each["results"].experiment_name for each in (first, second)]
    wait_until(lambda: sum(run.get("outputs") in OUTPUTS for run in runs_of(langsmith)) == 4)
    exec(comparing.replace("experiment-1", names[0]).replace("experiment-2", names[1]), {})
    prompts = [call.prompt for call in model.calls]
    for question in QUESTIONS:
        own = [prompt for prompt in prompts if question in prompt]
        assert len(own) == 2 + 2  # each output is scored, and both are compared in both orders
        assert sum("It comes today." in prompt for prompt in own) == 3

    def scores(key):
        return [each["score"] for each in langsmith.read().feedback if each["key"] == key]

    # The client sends in its own time: of each output its score, and whether it is preferred.
    wait_until(lambda: len(scores("helpfulness")) == len(scores("preference")) == 4)
    assert set(scores("helpfulness")) == {0.75}
    assert set(scores("preference")) == {0.5}


def test_the_page_on_many_machines_judges_and_merges(model):
    import pandas

    pandas.DataFrame(pairs(6)).to_parquet("rows.parquet")
    text = next(b for b in blocks(PAGES / "many-rows.md", "sh") if "merge" in b)
    judge, merge = text.replace("\\\n", " ").splitlines()
    for number in range(1, 17):
        command(judge.replace("3/16", f"{number}/16"))
    assert len(model.calls) == 12
    command(merge)
    verdicts = pandas.read_parquet("verdicts.parquet")
    assert list(verdicts["id"]) == [row["id"] for row in pairs(6)]
    assert set(verdicts["preference"]) == {"tie"}  # the model always names the first text


def command(line):
    """Run a line of a page in this process, and return what it prints."""
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    return result.output
