"""The loop with the memory that people use: files, embeddings and a guard of its own."""

import json
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from typer.testing import CliRunner

from langchain_judges import FailureMemory, create_allure_audit, create_allure_judge
from langchain_judges.cli import app
from langchain_judges.methods.allure.holdout import balanced_accuracy
from tests.cases import for_each
from tests.planners import as_labelled, fooled_model, planning
from tests.test_cli_audit import behave


def opened(path=None):
    return FailureMemory(embeddings=DeterministicFakeEmbedding(size=8), path=path)


def worth(memory, items, **options):
    judge = create_allure_judge(fooled_model(), memory=memory, **options)
    verdicts = [judge.invoke(item)["verdict"] for item in items]
    return balanced_accuracy(
        [(None, i["label"], v["label"]) for i, v in zip(items, verdicts, strict=True)]
    )


@for_each("how", ["all", "knn:2", "uniform:1", "near:2"])
def test_the_judge_learns_held_out_from_each_choice_and_unlearns(how):
    memory, held_out = opened(), planning(4, first=10)
    judge = create_allure_judge(fooled_model(), memory=memory, recall=how)
    before = worth(memory, held_out, recall=how)
    result = create_allure_audit(judge, memory, auditor=as_labelled).invoke(
        {"items": planning(3)}
    )
    assert (before, worth(memory, held_out, recall=how)) == (0.5, 1.0)
    assert memory.forget(result["examples"]) == len(result["examples"]) == 3
    assert worth(memory, held_out, recall=how) == 0.5


def test_an_unrelated_family_and_another_mode_teach_nothing():
    memory, held_out = opened(), planning(4, first=10)
    mistake = {"output": "9", "corrected": 0, "wrong": 1}
    memory.remember(
        [
            {**mistake, "family": "other", "mode": "keywords"},
            {**mistake, "family": "maps", "mode": "gibberish"},
        ]
    )
    assert worth(memory, held_out) == 0.5


async def test_sync_and_async_agree():
    outcomes = []
    for call in ("invoke", "ainvoke"):
        memory = opened()
        judge = create_allure_judge(fooled_model(), memory=memory)
        audit = create_allure_audit(judge, memory, auditor=as_labelled, dev=0.4)
        results = getattr(audit, call)({"items": planning(5)})
        outcomes.append(results if call == "invoke" else await results)
    assert outcomes[0]["history"] == outcomes[1]["history"]
    assert outcomes[0]["history"][0]["dev"]["balanced_accuracy"] == 1.0


def test_it_survives_a_restart_with_the_memory_on_disk(tmp_path):
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    calls = 0
    for step in range(2):
        memory, model = opened(tmp_path / "memory"), fooled_model()
        judge = create_allure_judge(model, memory=memory)
        with SqliteSaver.from_conn_string(str(tmp_path / "audit.sqlite")) as saver:
            audit = create_allure_audit(judge, memory, checkpointer=saver)
            fields: Any = {"items": planning(2)}
            if step:
                fields = Command(resume={"0w": "accept", "1w": "accept"})
            result = audit.invoke(fields, config)
        calls += len(model.prompts)
    assert result["stopped"] == "nothing_new"
    assert calls == 8
    assert len(opened(tmp_path / "memory")) == 2


def test_what_the_memory_held_before_a_failed_trial_stays():
    memory = opened()
    judge = create_allure_judge(fooled_model(), memory=memory)
    audit = create_allure_audit(judge, memory, auditor=as_labelled, dev=0.5, risk=0)
    first = audit.invoke({"items": planning(6)})
    ids = set(first["examples"])
    again = audit.invoke({"items": planning(6)})
    assert ids
    assert {example["id"] for example in memory.examples()} == ids
    assert again["waiting"] == []


def test_the_command_keeps_the_memory_in_its_file(serve, tmp_path, letter_encoder):
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in planning(3)))
    server = serve(behave)
    shared = ["--model", "fake", "--base-url", server.url, "--memory", tmp_path / "memory"]

    def command(name, *more, keys=""):
        arguments = [str(each) for each in (name, path, *shared, *more)]
        return CliRunner().invoke(app, arguments, input=keys)

    stopped = command("audit", keys="aq")
    assert "2 of 3 proposals are unanswered" in stopped.stderr, stopped.output
    result = command("audit", keys="aa")
    assert result.exit_code == 0, result.output
    assert len(FailureMemory(path=tmp_path / "memory")) == 3
    judged = command("judge", "--method", "allure", "--show")
    assert judged.exit_code == 0, judged.output
    assert "0w: label 0" in judged.stdout
    assert "shown 2 remembered examples" in judged.stdout
