"""Datasets, experiments and traces: LangSmith's own client, and a LangSmith on loopback."""

import asyncio
import logging
import os
import re
import socket
import subprocess
import sys
from typing import Any, cast

import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith import Client
from langsmith.evaluation import evaluate_comparative
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_env_var

from langchain_judges import as_comparative_evaluator, as_evaluator
from langchain_judges.testing import fitting_reply
from tests.fakes import FakeChatModel
from tests.judges import PAIR, broken, bsm, of_method
from tests.langsmith_server import LangSmithServer
from tests.processes import wait_until
from tests.test_docs import ROOT

# LangSmith's client warns of its own ways: of a parameter in beta, of what it sends
# for a whole experiment.
pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore:'upload_runs' parameter is in beta"),
    pytest.mark.filterwarnings("ignore:The following arguments are no longer used"),
]

ROWS = [("Why?", "good good", "A"), ("How?", "worse", "A"), ("When?", "same", "tie")]


@pytest.fixture
def server():
    with LangSmithServer() as server:
        yield server


@pytest.fixture
def client(server):
    client = Client(api_url=server.url, api_key="secret-key")
    yield client
    client.cleanup()


@pytest.fixture
def dataset(client):
    new_dataset = client.create_dataset("questions")
    client.create_examples(
        dataset_id=new_dataset.id,
        examples=[
            {"inputs": {"question": q}, "reference_outputs": {"answer": "same", "label": label}}
            for q, _, label in ROWS
        ],
    )
    return new_dataset.name


def answer(inputs):
    return {"answer": {q: a for q, a, _ in ROWS}[inputs["question"]]}


async def aanswer(inputs):
    return answer(inputs)


def settle(client, server):
    wait_for_all_tracers()
    client.flush()
    return server.read()


def by_question(server, key):
    """The uploaded feedback with `key` by the question of its run."""
    scores_by_question = {}
    for feedback in server.feedback:
        if feedback["key"] == key and feedback.get("run_id"):
            scores_by_question[server.runs[feedback["run_id"]]["inputs"]["question"]] = feedback
    return scores_by_question


# "worse" and "same" hold no `good`: one against one, so every criterion is even.
SCORES = {"Why?": 0.75, "How?": 0.5, "When?": 0.5}


def experiment(client, dataset, evaluators, kind="evaluate", **options):
    """Run an experiment in the named way and return its rows."""
    target = answer if kind == "evaluate" else aanswer

    async def later():
        experiment_result = await client.aevaluate(
            target, data=dataset, evaluators=evaluators, **options
        )
        return experiment_result.experiment_name, [row async for row in experiment_result]

    if kind == "aevaluate":
        return asyncio.run(later())
    experiment_result = client.evaluate(target, data=dataset, evaluators=evaluators, **options)
    return experiment_result.experiment_name, list(experiment_result)


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
def test_every_row_is_judged_and_what_is_uploaded_is_what_was_said(client, server, dataset, kind):
    _, rows = experiment(client, dataset, [as_evaluator(bsm())], kind)
    settle(client, server)
    uploaded = by_question(server, "bsm")
    assert {q: f["score"] for q, f in uploaded.items()} == SCORES
    for row in rows:
        (local,) = row["evaluation_results"]["results"]
        upload = uploaded[row["example"].inputs["question"]]
        assert (upload["score"], upload["value"]) == (local.score, local.value)
        assert upload["comment"] == local.comment
        [note] = upload["extra"]["failures"]
        assert note["detail"].startswith("leaves out 'label'")
        source = upload["feedback_source"]
        assert source["metadata"]["prompt_version"] == local.evaluator_info["prompt_version"]
        # The feedback leads to the judge's own run, with its tree below it.
        judged = server.runs[source["metadata"]["__run"]["run_id"]]
        assert (judged["name"], judged["session_name"]) == ("bsm", "evaluators")
        assert judged["extra"]["metadata"]["target_run_id"] == upload["run_id"]
        names = {child["name"] for child in server.children(judged)}
        # The third answer is its reference: a tie, which is decided before anything is asked.
        is_tie = local.comment.startswith("The two")
        [solve] = [each for each in server.children(judged) if each["name"] == "solve"]
        assert names >= {"branch", "solve"}
        assert is_tie == (not server.children(solve))


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
def test_two_evaluators_of_one_key_are_an_error_that_names_both(
    client, server, dataset, kind, caplog
):
    evaluators = [as_evaluator(bsm()), as_evaluator(of_method("relative"), key="bsm")]
    with caplog.at_level(logging.CRITICAL, logger="langsmith"):
        _, rows = experiment(client, dataset, evaluators, kind)
    results = [row["evaluation_results"]["results"] for row in rows]
    assert all(second.score is None for _, second in results)
    assert "'bsm' and 'relative'" in results[0][1].comment
    # The next experiment, with another evaluator of that key, is none of its business.
    _, again = experiment(client, dataset, [as_evaluator(bsm())], kind)
    assert all(row["evaluation_results"]["results"][0].score is not None for row in again)


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
def test_two_rubrics_of_one_data_set_have_two_columns(client, server, dataset, kind):
    rubrics = [of_method("rubric", rubric=[name]) for name in ("Tone", "Depth")]
    experiment(client, dataset, [as_evaluator(judge) for judge in rubrics], kind)
    settle(client, server)
    for name in ("Tone", "Depth"):
        feedback = by_question(server, name)
        assert len(feedback) == 3
        assert all(0 <= each["score"] <= 1 for each in feedback.values())


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
def test_attachments_are_loaded_for_a_target_that_takes_none(client, server, dataset, kind):
    server.attached = {"weather.txt": "It rains."}
    model = FakeChatModel(replies=fitting_reply)
    experiment(client, dataset, [as_evaluator(of_method("rubric", model, rubric="Fit?"))], kind)
    assert ['Attached, weather.txt:\n"It rains."' in each for each in model.prompts] == [True] * 3


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
def test_rows_that_could_not_be_judged_are_uploaded_without_a_score(client, server, dataset, kind):
    evaluators = [as_evaluator(broken(), key="b"), as_evaluator(bsm(), key="k", output="x")]
    experiment(client, dataset, evaluators, kind)
    settle(client, server)
    unparsable, unread = by_question(server, "b"), by_question(server, "k")
    assert len(unparsable) == len(unread) == 3
    assert unparsable["Why?"].get("score") is None
    assert unparsable["Why?"]["extra"]["reason"] == "unparsable"
    assert unread["Why?"].get("score") is None
    assert "got the key 'answer'" in unread["Why?"]["comment"]


def graded():
    """Evaluators whose feedback has a label, a scale, criteria or a failure."""
    lost = FakeChatModel(replies=lambda _: "?")
    options: dict[str, dict[str, Any]] = {
        "tone": {"judge": of_method("rubric", rubric="Tone?", labels=["0", "1"], best="1")},
        "worth": {"judge": of_method("rubric", rubric="Good?", labels=[0, 1, 5]), "scale": "raw"},
        "both": {"judge": of_method("rubric", FakeChatModel(replies=fitting_reply),
                                    rubric=["Fit", "Form"])},
        "pair": {"judge": bsm()},
        "lost": {"judge": of_method("rubric", lost, rubric="Kind?", repairs=0)},
    }  # fmt: skip
    return [as_evaluator(**own, key=key) for key, own in options.items()]


PLUGIN = """
import pytest
from langsmith import testing

from langchain_judges import as_comparative_evaluator
from langchain_judges.compat.openevals import create_llm_as_judge
from langchain_judges.integrations import trajectory_evaluator
from langchain_judges.testing import FakeChatModel
from tests.judges import bsm
from tests.test_langsmith import graded

@pytest.mark.langsmith
def test_it():
    testing.log_inputs({"question": "Why?"})
    for each in graded():
        known = {"answer": "same", "label": "A"}
        each(inputs="Why?", outputs="good good", reference_outputs=known)
    judge = FakeChatModel(replies=[{"reasoning": "fine", "score": True}])
    good = create_llm_as_judge(prompt="{outputs}", judge=judge, feedback_key="good")
    assert good(outputs="x")["score"]
    compare = as_comparative_evaluator(bsm(), key="better")
    assert compare(inputs="?", outputs=["good", "x"])
    assert trajectory_evaluator()(outputs=["a"], reference_outputs=["a"])["score"] == 1
"""


def test_a_test_of_langsmiths_plugin_logs_what_an_experiment_uploads(
    client, server, dataset, tmp_path
):
    experiment(client, dataset, graded())
    settle(client, server)
    keys = {each["key"] for each in server.feedback}
    uploaded = {key: by_question(server, key)["Why?"] for key in keys}
    assert uploaded.keys() == {"tone", "worth", "both", "Fit", "Form", "pair", "lost"}
    server.feedback.clear()
    (tmp_path / "test_it.py").write_text(PLUGIN)
    names = {"LANGSMITH_ENDPOINT": server.url, "LANGSMITH_API_KEY": "none"}
    on = dict.fromkeys(("LANGSMITH_TRACING", "LANGSMITH_TEST_TRACKING"), "true")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        env={**os.environ, **names, **on, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    server.read()
    logged = {each["key"]: each for each in server.feedback}
    for key, own in uploaded.items():
        for name in ("score", "value", "comment", "extra", "feedback_config"):
            assert logged[key].get(name) == own.get(name), (key, name)
        told, said = (each["feedback_source"] for each in (own, logged[key]))
        assert said["type"] == told["type"] == "model"
        run = said["metadata"].pop("__run", None)
        assert run["run_id"] in server.runs
        known = {n: v for n, v in told["metadata"].items() if n != "__run"}
        assert said["metadata"].items() >= known.items()
    scores = {key: logged[key]["score"] for key in ("good", "better", "trajectory_match")}
    assert scores == {"good": 1, "better": scores["better"], "trajectory_match": 1}
    assert logged["better"]["value"] == "A"
    assert logged["better"]["extra"]["usage"]["calls"] == 2


def test_experiments_are_compared_and_every_run_has_its_comment(client, server, dataset):
    first, _ = experiment(client, dataset, [], experiment_prefix="one")
    experiment_result = client.evaluate(
        lambda inputs: {"answer": "bad"}, data=dataset, evaluators=[]
    )
    settle(client, server)
    compared = evaluate_comparative(
        (first, experiment_result.experiment_name),
        evaluators=[as_comparative_evaluator(bsm())],
        client=client,
        randomize_order=True,
    )
    assert len(list(compared)) == 3
    uploads = [f for f in server.feedback if f["key"] == "preference"]
    assert len(uploads) == 6
    for feedback in uploads:
        run = server.runs[feedback["run_id"]]
        if run["inputs"]["question"] == "Why?":
            good = run["outputs"]["answer"] == "good good"
            assert feedback["score"] == (0.75 if good else 0.25)
        assert "better" in feedback["comment"] or "tie" in feedback["comment"]
        names = r"This run is [AB], compared with [0-9a-f-]+\. "
        assert re.match(names, feedback["comment"])
        assert feedback["comparative_experiment_id"]


# Only this recipe is quiet: `upload_runs=False` alone still sends what runs inside.
OFFLINE: dict[str, Any] = {
    "api_url": "http://127.0.0.1:9",
    "api_key": "none",
    "info": {},
    "tracing_sampling_rate": 0.0,
}


@pytest.mark.parametrize("kind", ["evaluate", "aevaluate"])
@pytest.mark.parametrize("traced", ["true", "false"])
def test_the_offline_recipe_opens_no_socket(client, dataset, monkeypatch, kind, traced):
    examples = list(client.list_examples(dataset_name=dataset))
    monkeypatch.setenv("LANGSMITH_TRACING", traced)
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    cast("Any", get_env_var).cache_clear()
    opened = []
    connect = socket.socket.connect

    def watched(self, address):
        if self.family != socket.AF_UNIX:
            opened.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    offline = Client(**OFFLINE)
    _, rows = experiment(offline, examples, [as_evaluator(bsm())], kind, upload_runs=False)
    wait_for_all_tracers()
    cast("Any", get_env_var).cache_clear()
    assert [r["evaluation_results"]["results"][0].score for r in rows] == list(SCORES.values())
    assert opened == []


TROUBLE: dict[str, dict[str, Any]] = {"hangs": {"hang": True}, "answers 500": {"status": 500}}


@pytest.mark.parametrize("how", TROUBLE)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_langsmith_in_trouble_neither_slows_nor_fails_a_judgment(how, kind, caplog):
    judge = bsm()
    with LangSmithServer(**TROUBLE[how]) as server, caplog.at_level(50, logger="langsmith"):
        client = Client(api_url=server.url, api_key="x", info=server.info)
        with tracing_context(enabled=True, client=client, project_name="P"):
            judge.invoke(PAIR)  # what is loaded once is not counted
            wait_until(lambda: any("/runs" in path for _, path in server.requests))
            for _ in range(5):
                result = judge.invoke(PAIR) if kind == "sync" else asyncio.run(judge.ainvoke(PAIR))
                assert result["verdict"]["preference"] == "A"
        server.recover()
        client.cleanup()
