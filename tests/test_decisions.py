"""Decision models: the real client class against a server that speaks its API."""

import json
import warnings
from typing import Any

import pytest

from langchain_judges import (
    create_bsm_judge,
    create_cascade,
    create_rubric_judge,
    judge_many,
)
from langchain_judges.runs import calibrate_cascade
from tests.batch_server import Handler, listening, send
from tests.fakes import FakeChatModel
from tests.judges import ITEM, PAIR

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langchain_openai.decisions import OpenAIDecisions


class Decides(Handler):
    """Answers every question by a function from its name and the input to probabilities."""

    server: Any

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append((self.path, body))
        answers = []
        for question in body["questions"]:
            chances = self.server.chances(question, body["input"])
            if chances is None:
                answers.append({"type": "refusal", "name": question["name"]})
                continue
            listed = [{"value": value, "probability": p} for value, p in chances.items()]
            best = max(chances, key=chances.get)
            answer = {"type": "choice", "choice": best, "probabilities": listed}
            answers.append({**answer, "name": question["name"], "confidence": 0.5})
        usage = {"input_tokens": 100, "output_tokens": 1}
        reply = {"model": body["model"], "answers": answers, "usage": usage}
        send(self, reply)


@pytest.fixture
def decides():
    def start(chances: Any) -> tuple[Any, Any]:
        server.chances, server.bodies = chances, []
        address = f"http://127.0.0.1:{server.server_port}/v1"
        settings: Any = {"api_key": "sk-secret", "base_url": address}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return OpenAIDecisions(model="gpt-6-luna", **settings), server

    server: Any
    with listening(Decides) as server:
        yield start


def likely(question: Any, _: str) -> dict[str, float]:
    first, *others = [choice["value"] for choice in question["choices"]]
    return {first: 0.2, **dict.fromkeys(others, 0.8 / len(others))}


def test_a_label_comes_with_its_probability_and_without_a_reason(decides):
    model, server = decides(likely)
    verdict = create_rubric_judge(model, rubric="Is it polite?").invoke(ITEM)["verdict"]
    assert (verdict["label"], verdict["confidence_source"]) == (1, "logprobs")
    assert verdict["confidence"] == pytest.approx(0.8)
    assert verdict["rationale"] == "A decision model gives no reason."
    assert (verdict["usage"]["calls"], verdict["usage"]["input_tokens"]) == (1, 100)
    ((path, body),) = server.bodies
    assert (path, body["model"]) == ("/v1/decisions", "gpt-6-luna")
    assert "Is it polite?" in body["input"]
    (question,) = body["questions"]
    assert (question["type"], question["name"]) == ("choice", "label")
    assert [choice["value"] for choice in question["choices"]] == ["0", "1"]


def test_several_criteria_are_asked_in_one_request(decides):
    model, server = decides(likely)
    rubric: Any = ["Tone: Is it polite?", {"name": "Length", "scale": (1, 3)}]
    result = create_rubric_judge(model, rubric=rubric).invoke(ITEM)
    assert [each["confidence"] for each in result["subscores"]] == pytest.approx([0.8, 0.4])
    ((_, body),) = server.bodies
    names = [question["name"] for question in body["questions"]]
    assert names == ["criterion_1.label", "criterion_2.label"]


def clear(question: Any, text: str) -> dict[str, float]:
    """Be sure and right of clear rows; of the others unsure, and right half the time."""
    if "clear" in text:
        return {"0": 0.05, "1": 0.95}
    return {"0": 0.55, "1": 0.45} if "odd" in text else {"0": 0.45, "1": 0.55}


def test_a_decision_model_first_keeps_the_agreement_for_fewer_dollars(decides, tmp_path):
    model, server = decides(clear)
    strong = FakeChatModel(replies=lambda _: {"explanation": "x", "label": "1"})
    then = create_rubric_judge(strong, rubric="Is it polite?", name="strong")
    create: Any = create_cascade
    cascade = create(first=model, then=then, agreement=0.9)
    assert "Is it polite?" in str(cascade.members[0].judge.options)
    outputs = ["clear 1", "clear 2", "unsure odd", "unsure"]
    rows = [
        {"id": f"{n}", "input": f"Case {n}?", "output": outputs[n % 4], "label": 1}
        for n in range(80)
    ]
    prices = tmp_path / "prices.json"
    dear = {"input": 1000, "output": 1000}
    models = {"gpt-6-luna": {"input": 1, "output": 0}, "FakeChatModel": dear}
    prices.write_text(json.dumps({"date": "2026-11-01", "models": models}))
    calibrated: Any = calibrate_cascade(cascade, rows, prices=prices, progress=False)
    found = calibrated.options.calibration
    first, _ = calibrated.options.thresholds
    assert 0.55 < first <= 0.95
    assert (found["coverage"], found["risk"], found["shares"]) == (1, 0, [0.5, 0.5])
    # 100 tokens at a dollar a million, of every row; and the strong judge on every other.
    own = 100 / 1_000_000
    assert found["dollars"] == pytest.approx(own + found["dollars_last"] / 2)
    asked = len(server.bodies)
    run = judge_many(calibrated, rows[:20], progress=False, prices=prices)
    list(run)
    assert len(server.bodies) - asked == 20
    assert run.summary.stages == {"strong": 10, calibrated.members[0].name: 10}
    assert run.summary.cost / 20 == pytest.approx(found["dollars"])


def test_a_refusal_is_a_failure_and_an_open_question_an_error(decides):
    model, _ = decides(lambda *_: None)
    verdict = create_rubric_judge(model, rubric="Is it polite?").invoke(ITEM)["verdict"]
    assert verdict["label"] is None
    assert [failure["reason"] for failure in verdict["failures"]] == ["refusal"]
    verdict = create_bsm_judge(model).invoke(PAIR)["verdict"]
    assert verdict["preference"] is None
    assert "answers closed questions only, not 'criteria'" in verdict["failures"][0]["detail"]
