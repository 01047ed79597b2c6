"""Annotation queues: a judge learns from labelled runs."""

import json
import uuid
from typing import Any

import pytest
from langsmith import Client
from typer.testing import CliRunner

from langchain_judges import FailureMemory, create_allure_judge, create_rubric_judge
from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.integrations import feedback_rows
from langchain_judges.integrations.langsmith_runs import (
    experiment_rows,
    labelled_runs,
    runs_in_queue,
)
from langchain_judges.integrations.watch import watch_project
from langchain_judges.testing import reply
from langchain_judges.verdict import NOTES, Notes
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.langsmith_server import LangSmithServer
from tests.test_cli_audit import behave
from tests.test_watch import PROJECT, production


@pytest.fixture
def server():
    with LangSmithServer() as server:
        server._new_session(None, None, {"name": PROJECT})
        yield server


@pytest.fixture
def client(server, monkeypatch):
    client = Client(api_url=server.url, api_key="x", info=server.info, auto_batch_tracing=False)
    monkeypatch.setattr("langsmith.Client", lambda: client)
    return client


def says(server, run, key, value=None, *, who="app", **more):
    """Give a run feedback, as a person does in a queue."""
    source = {"type": who, "user_name": "Ann"}
    own = {"id": str(uuid.uuid4()), "run_id": str(run), "key": key, "value": value}
    server.feedback.append({**own, "score": None, "feedback_source": source, **more})


# -- labels of doubtful runs

RUDE, POLITE = "Go away.", "Good morning."
RUBRIC = "Is the reply polite?"


def unsure(prompt):
    """Call all replies polite with little confidence, until an example shows better."""
    warned = "Mind the tone." in prompt and RUDE in prompt.split("\n---\n")[-1]
    return {"label": "0" if warned else "1", "explanation": "so"}


def watched(client, server, *outputs):
    """Watch a project with a judge that is unsure of everything; return the ids of its runs."""
    ids = production(server, *outputs)
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: "no label"), rubric=RUBRIC)
    assert watch_project(client, judge, PROJECT, queue="doubtful").queued == len(outputs)
    return ids


@pytest.mark.whole
def test_doubtful_runs_that_people_label_teach_the_judge(client, server, serve, tmp_path):
    ids = watched(client, server, RUDE, POLITE, RUDE, POLITE)
    for run, label in zip(ids[:3], (0, 1, 0), strict=True):
        says(server, run, "polite", label, comment="" if label else "Mind the tone.")
    memory = tmp_path / "memory"

    def command(*more):
        arguments = ["audit", "langsmith:doubtful", "--model", "fake", "--memory", memory]
        arguments += ["--base-url", server_of_model.url, "--set", f"rubric={RUBRIC}", *more]
        return CliRunner().invoke(app, [str(each) for each in arguments])

    def answer(call):
        return reply(
            json.dumps(unsure("\n---\n".join(str(m["content"]) for m in call.body["messages"])))
        )

    server_of_model = serve(answer)
    planned = command("--dry-run")
    assert "3 items by allure" in " ".join(planned.stderr.split()), planned.output
    assert f"left out: 1; {ids[3]}: nobody" in " ".join(planned.stderr.split())
    result = command()
    assert result.exit_code == 0, result.output
    examples = FailureMemory(path=memory).examples()
    mistakes = [e for e in examples if e["wrong"] != e["corrected"]]
    assert sorted(e["source"] for e in mistakes) == sorted([ids[0], ids[2]])
    assert {(e["output"], e["auditor"], e["note"]) for e in mistakes} == {
        (RUDE, "Ann", "Mind the tone.")
    }
    # The audit ends when its judge, shown the examples, makes no mistake any more.
    assert "taught nothing new" in result.stdout
    judge = create_allure_judge(
        FakeChatModel(replies=unsure), rubric=RUBRIC, memory=FailureMemory(path=memory)
    )
    again = judge.invoke({"input": "And you?", "output": RUDE})
    assert again["verdict"]["label"] == 0


@for_each(
    ("labels", "given", "label"),
    [
        ((0, 1), {"value": 1}, 1),
        ((0, 1), {"score": 1.0}, 1),
        (("rude", "fine", "polite"), {"score": 0.5}, "fine"),
        ((1, 2, 3, 4, 5), {"score": 3.0}, 3),
        # A judge's own feedback that a person corrected.
        ((0, 1), {"value": 1, "who": "model", "correction": {"value": 0}}, 0),
        # 1 may be the worst of five labels, or the top of a scale.
        ((1, 2, 3, 4, 5), {"score": 1.0}, "a label or a place"),
        ((0, 1), {"value": 1, "who": "model"}, "nobody has labelled it"),
        # The score of a correction is a place, as the score of feedback is.
        ((1, 2, 3, 4, 5), {"who": "model", "correction": {"score": 0.75}}, 4),
        ((0, 1), {"value": {"a": 1}}, "not a label"),
        # Of a correction the one thing it has, by any name, and of several none.
        ((0, 1), {"value": 1, "who": "model", "correction": {"mine": 0}}, 0),
        ((0, 1), {"value": 1, "who": "model", "correction": {"x": 0, "y": 1}}, "nobody has"),
    ],
)
def test_what_people_say_of_a_run_is_read_as_a_label(client, server, labels, given, label):
    server.feedback.clear()
    [run] = production(server, POLITE)
    client.create_annotation_queue(name=run)
    server.queued.append((run, run))
    says(server, run, "polite", **given)
    judge = create_allure_judge(FakeChatModel(), rubric=RUBRIC, labels=labels)
    items, left_out = labelled_runs(client, run, judge)
    if left_out:
        assert label in left_out[0][1]
    else:
        [item] = items
        assert (item["id"], item["input"], item["label"]) == (run, "Why 0?", label)


def test_feedback_under_several_names_has_to_be_chosen(client, server):
    [run] = watched(client, server, POLITE)
    says(server, run, "polite", 1)
    says(server, run, "useful", 0)
    judge = create_allure_judge(FakeChatModel(), rubric=RUBRIC)
    with pytest.raises(InputError, match="polite, useful"):
        labelled_runs(client, "doubtful", judge)
    [item] = labelled_runs(client, "doubtful", judge, key="useful").items
    assert item["label"] == 0
    # What people say of a run that is in no queue is no label here.
    [other] = production(server, RUDE)
    says(server, other, "tone", 0)
    assert labelled_runs(client, "doubtful", judge, key="useful").left_out == []
    with pytest.raises(InputError, match="polite, useful;"):
        labelled_runs(client, "doubtful", judge)
    with pytest.raises(InputError, match="no annotation queue 'doubtfull'"):
        labelled_runs(client, "doubtfull", judge)


def test_what_a_judge_said_stays_where_people_corrected_all_of_it(client, server):
    server.feedback.clear()
    [run] = production(server, POLITE)
    client.create_annotation_queue(name="corrected")
    server.queued.append(("corrected", run))
    says(server, run, "polite", 1, who="model", correction={"value": 0})
    says(server, run, "mine", "kind")
    [row] = feedback_rows(client, queue="corrected")
    assert {"id", "input", "output"} < row.keys()
    assert (row["polite"], row["polite.people"]) == (1, 0)
    # Of what no judge said the key is people's own.
    assert (row["mine"], "mine.people" in row) == ("kind", False)


def test_the_latest_feedback_on_each_run_of_a_project_is_a_column_of_its_row(client, server):
    one, two = production(server, POLITE, None)
    for day, value in ((2, 0), (1, 1)):
        says(server, one, "tone", value, created_at=f"2026-01-0{day}T00:00:00+00:00")
    says(server, two, "tone", "poor", who="model", score=0.5)
    says(server, two, "tone", 1, created_at="2026-01-01T00:00:00+00:00")
    [project] = server.sessions
    inputs = [str({"question": f"Why {n}?"}) for n in "01"]
    for name in (PROJECT, project):
        assert feedback_rows(client, name) == [
            {"id": one, "input": inputs[0], "output": str({"answer": POLITE})} | {"tone.people": 0},
            {"id": two, "input": inputs[1], "output": "It failed: Timeout"}
            | {"tone": 0.5, "tone.people": 1},
        ]
    server.runs.clear()
    assert feedback_rows(client, PROJECT) == []


def test_a_run_of_an_experiment_has_the_inputs_of_its_example_if_it_has_one(client, server):
    data = client.create_dataset("questions")
    example = client.create_example(inputs={"asked": "Who?"}, dataset_id=data.id)
    [project] = server.sessions.values()
    project |= {"reference_dataset_id": str(data.id), "extra": {"metadata": {}}}
    production(server, POLITE, reference_example_id=str(example.id))
    [alone] = production(server, None)
    [rows] = experiment_rows(client, PROJECT)
    [note] = Notes.of(rows[1])
    del rows[1][NOTES]
    assert note["detail"] == "is of a run that failed: Timeout"
    assert rows == [
        {"id": str(example.id), "input": {"asked": "Who?"}, "output": {"answer": POLITE}},
        {"id": alone, "input": {"question": "Why 0?"}, "output": None},
    ]


def test_inputs_outputs_and_reference_of_a_run_are_apart_and_its_repetitions_numbered(
    client, server
):
    data = client.create_dataset("texts")
    asked, known = {"text": "Hallo", "context": "German"}, {"text": "Hello", "label": "good"}
    example = client.create_example(inputs=asked, reference_outputs=known, dataset_id=data.id)
    [project] = server.sessions.values()
    project |= {"reference_dataset_id": str(data.id), "extra": {"metadata": {}}}
    of = {"reference_example_id": str(example.id)}
    production(server, POLITE, None, **of, outputs={"text": "Hi"})
    row = {"input": asked, "output": {"text": "Hi"}, "reference": {"text": "Hello"}}
    [[first, second]] = experiment_rows(client, PROJECT)
    assert "'label'" in str(first.pop(NOTES))
    assert first == {"id": str(example.id), **row, "source": "German"}
    assert second["id"] == f"{example.id}, repetition 2"


@for_each(
    "who, auditor",
    [
        ({"user_name": "Ann", "user_id": "7"}, "Ann"),
        ({"user_name": None, "user_id": "7"}, "7"),
        ({"user_name": None}, "langsmith"),
    ],
)
def test_the_last_that_people_said_is_the_label_and_who_said_it_is_kept(
    client, server, who, auditor
):
    server.feedback.clear()
    [run] = production(server, POLITE)
    client.create_annotation_queue(name=run)
    server.queued.append((run, run))
    source: Any = {"feedback_source": {"type": "app", **who}}
    for day, label in ((3, 1), (2, 0)):
        moment = f"2026-01-0{day}T00:00:00+00:00"
        says(server, run, "polite", label, modified_at=moment, **source)
    judge = create_allure_judge(FakeChatModel(), rubric=RUBRIC)
    [item] = labelled_runs(client, run, judge).items
    assert (item["label"], item["auditor"], "note" in item) == (1, auditor, False)


def test_the_runs_of_a_queue_are_found_in_every_project_however_old(client, server, monkeypatch):
    monkeypatch.setattr("langchain_judges.integrations.langsmith_runs._PAGE", 2)
    client.create_annotation_queue(name="q")
    ids = production(server, *[POLITE] * 5)
    other = server._new_session(None, None, {"name": "other"})["id"]
    server.runs[ids[0]] |= {"session_id": other, "start_time": "2025-01-01T00:00:00+00:00"}
    server.runs[ids[1]]["start_time"] = "2025-02-01T00:00:00+00:00"
    server.runs[ids[2]]["start_time"] = "2025-02-02T00:00:00"  # without a zone
    server.queued += [("q", each) for each in ids]
    runs = runs_in_queue(client, "q")
    assert [str(run.id) for run in runs] == sorted(ids)
    assert [str(run.session_id) for run in runs if str(run.id) == ids[0]] == [other]
    run = next(run for run in runs if str(run.id) == ids[2])
    assert (run.name, run.run_type, run.inputs) == ("app", "chain", {"question": "Why 2?"})


def test_langsmith_out_of_reach_is_one_sentence(serve, tmp_path, monkeypatch, letter_encoder):
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("LANGSMITH_API_KEY", "none")
    monkeypatch.setattr("langsmith.client.Client.request_with_retries", refused)
    arguments = ["audit", "langsmith:doubtful", "--model", "fake", "--memory", tmp_path / "m"]
    arguments += ["--base-url", serve(behave).url, "--set", "rubric=Polite?"]
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 2, result.output
    assert "(LangSmithConnectionError): no conn" in result.stderr


def refused(*_, **__):
    from langsmith.utils import LangSmithConnectionError

    raise LangSmithConnectionError("no connection")
