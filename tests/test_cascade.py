"""A cascade: who is asked, who decides, and how its thresholds are found."""

import json
import random
import re
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from langchain_judges import create_rubric_judge, judge_many, load_judge
from langchain_judges.cli import app
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods import create_cascade
from langchain_judges.metrics import certainty
from langchain_judges.runs import calibrate_cascade
from langchain_judges.verdict import even_verdict
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import PAIR, answer_call
from tests.test_jury import failing, juror


def sure(name, preference, confidence):
    return juror(name, preference, confidence=confidence)


UNASKED = failing(AssertionError("asked"))


def test_a_judge_that_is_sure_decides_and_the_next_is_asked_where_it_is_not():
    unsure = create_cascade([sure("cheap", "A", 0.7), sure("dear", "B", 0.1)], thresholds=0.8)
    assert unsure.invoke(PAIR)["stage"] == "dear"
    result = create_cascade([sure("cheap", "A", 0.9), UNASKED], thresholds=0.8).invoke(PAIR)
    assert (result["stage"], result["verdict"]["preference"]) == ("cheap", "A")
    assert "cheap (1 of 2). cheap" in result["verdict"]["rationale"]
    assert [each["certainty"] for each in result["stages"]] == [0.9]


def test_a_flip_and_a_failure_are_no_certainty():
    flipped = juror("flipped", "tie", flipped=True)
    result = create_cascade([flipped, failing(TimeoutError()), juror("dear", "B")]).invoke(PAIR)
    assert [each["certainty"] for each in result["stages"]] == [0.0, None, None]
    assert result["stage"] == "dear"
    assert result["verdict"]["failures"][0]["unit"] == "broken"


def test_a_judge_without_a_threshold_is_not_asked_for_it_never_decides():
    result = create_cascade([UNASKED, sure("dear", "B", 0.6)], thresholds=[None]).invoke(PAIR)
    assert (result["stage"], result["verdict"]["failures"]) == ("dear", [])
    assert [each["member"] for each in result["stages"]] == ["dear"]


def test_the_last_judge_may_abstain():
    judges = [sure("cheap", "A", 0.7), sure("dear", "B", 0.6)]
    result = create_cascade(judges, thresholds=[0.8, 0.8]).invoke(PAIR)
    assert (result["stage"], result["verdict"]["preference"]) == (None, None)
    (failure,) = result["verdict"]["failures"]
    assert (failure["reason"], failure["detail"]) == ("unsure", "cheap 0.70; dear 0.60")


@for_each(
    ("verdict", "expected"),
    [
        ({"preference": "A", "confidence": 0.7, "flipped": True, "score": 0.5}, 0.7),
        ({"preference": "tie", "confidence": None, "flipped": True, "score": 0.5}, 0),
        ({"preference": "B", "confidence": None, "flipped": False, "score": 0.25}, 1.0),
        ({"preference": "B", "confidence": None, "flipped": None, "score": 0.0}, None),
        ({"preference": "B", "flipped": False, "score": 0.25, "scores": {"A": 1}}, None),
        ({"label": 1, "confidence": None, "score": 0.9}, None),
        ({"preference": None, "confidence": 0.9}, None),
        ({"verdict": {"preference": "A", "confidence": 0.6}}, 0.6),
    ],
)
def test_certainty_is_read_off_any_verdict(verdict, expected):
    assert certainty(verdict) == (expected if expected is None else pytest.approx(expected))
    if "scores" in verdict:  # a lead counts only where thresholds were calibrated
        assert certainty(verdict, calibrated=True) == 0.5


def test_a_cheap_judge_that_says_nothing_of_its_certainty_is_never_the_last_word():
    cheap = FakeChatModel(replies=lambda _: {"explanation": "heads", "label": "1"})
    strong = FakeChatModel(replies=lambda _: {"explanation": "tails", "label": "0"})
    judges = [create_rubric_judge(model, rubric="Is it true?") for model in (cheap, strong)]
    cascade = create_cascade(judges, thresholds=[0.99])
    rows = [{"id": str(n), "input": f"Coin {n}?", "output": "Heads."} for n in range(20)]
    run = judge_many(cascade, rows, progress=False)
    for row in run:
        assert row["verdict"]["label"] == 0
        assert [stage["certainty"] for stage in row["stages"]] == [None, None]
    assert len(strong.prompts) == 20


def rows_with_labels(count):
    draw = random.Random(1)
    return [{**PAIR, "id": f"{n}", "label": draw.choice("AB")} for n in range(count)]


def skilled(name, rows):
    """A judge that is always right where it is sure, and half the time elsewhere."""
    truth = {row["id"]: row["label"] for row in rows}
    draw = random.Random(name)
    chance = {key: draw.random() for key in truth}

    def judge(row):
        confidence = chance[row["id"]]
        right = confidence > 0.5 or int(confidence * 1000) % 2
        other = {"A": "B", "B": "A"}[truth[row["id"]]]
        preference = truth[row["id"]] if right else other
        return {"verdict": {**even_verdict(), "preference": preference, "confidence": confidence}}

    return RunnableLambda(judge).with_config(metadata={"takes": "pair", "method": name})


@pytest.mark.figures
def test_thresholds_are_found_on_labelled_rows_and_keep_their_promise():
    rows = rows_with_labels(240)
    cascade: Any = create_cascade([skilled("cheap", rows), skilled("dear", rows)])
    calibrated: Any = calibrate_cascade(cascade, rows, agreement=0.9, progress=False)
    first, _ = calibrated.options.thresholds
    # Right wherever the confidence is above 0.5: with 90 % asked, somewhat below that.
    assert 0.3 < first < 0.55
    calibration = calibrated.options.calibration
    assert calibration["rows"] == 240
    run = judge_many(calibrated, rows, progress=False)
    judged = [row for row in run if row["judged"]]
    right = sum(row["verdict"]["preference"] == row["label"] for row in judged)
    assert right / len(judged) >= 0.9
    assert len(judged) / 240 == pytest.approx(calibration["coverage"])
    assert run.summary.stages["cheap"] > run.summary.stages["dear"] > 0


def test_a_table_is_calibrated_on_by_its_usual_columns(tmp_path):
    table = tmp_path / "rows.csv"
    names, cells = ["question", "answer_a", "answer_b", "label"], ["Why?", "a", "b", "a"]
    table.write_text("".join(",".join(line) + "\n" for line in [names] + 100 * [cells]))
    cascade: Any = create_cascade([sure("cheap", "A", 0.6), sure("dear", "A", 0.2)])
    calibrated: Any = calibrate_cascade(cascade, table, progress=False)
    assert calibrated.options.thresholds == [0.6, None]
    table.write_text("question,answer_a,answer_b,label\nWhy?,a,b,A,more\n")
    with pytest.raises(InputError, match="more cells than columns"):
        calibrate_cascade(cascade, table, progress=False)


@pytest.mark.whole
def test_what_cannot_be_calibrated_is_said():
    rows = [{**PAIR, "id": f"{n}", "label": "A"} for n in range(100)]
    cascade: Any = create_cascade([sure("cheap", "A", 0.6), sure("dear", "A", 0.2)])
    frame = pytest.importorskip("pandas", reason="needs pandas").DataFrame(rows)
    calibrated: Any = calibrate_cascade(cascade, frame, progress=False)
    assert calibrated.options.thresholds == [0.6, None]  # all are decided by then
    wrong: Any = create_cascade([sure("cheap", "B", 0.6), sure("dear", "B", 0.2)])
    with pytest.raises(OptionError, match="cascade reaches"):
        calibrate_cascade(wrong, rows, progress=False)
    with pytest.raises(InputError, match="`label`"):
        calibrate_cascade(cascade, [{**PAIR, "id": "0"}], progress=False)
    with pytest.raises(OptionError, match="a cascade, got"):
        calibrate_cascade(UNASKED, rows)


@pytest.mark.whole
def test_the_command_runs_a_calibrated_cascade_from_its_spec(tmp_path, serve):
    server = serve(answer_call)
    data, saved = tmp_path / "in.jsonl", tmp_path / "cascade.json"
    rows = [{**PAIR, "input": f"Why {n}?", "label": "A"} for n in range(30)]
    data.write_text("\n".join(map(json.dumps, rows)))
    model = {"name": "fake", "base_url": server.url}
    spec = {"method": "cascade", "model": model, "options": {"methods": ["relative", "direct"]}}
    cascade: Any = load_judge(spec)
    calibrated: Any = calibrate_cascade(cascade, rows, agreement=0.85, progress=False)
    # 30 of 30 right: the upper bound of the error at 0.05 is 1 - 0.05^(1/30) = 9.5 %.
    assert calibrated.options.thresholds == [1, None]
    assert calibrated.options.calibration["shares"][0] == 1
    saved.write_text(json.dumps(calibrated.spec))
    calls = len(server.calls)
    judged = CliRunner().invoke(app, ["judge", str(data), "--spec", str(saved), "--max-rows", "2"])
    assert judged.exit_code == 0, judged.output
    assert len(server.calls) - calls == 4


@pytest.mark.whole
def test_the_best_agreement_that_can_be_promised_is_said():
    rows = [{**PAIR, "id": f"{n}", "label": "AB"[n % 4 == 0]} for n in range(120)]
    cascade: Any = create_cascade([sure("cheap", "A", 0.6), sure("dear", "A", 0.2)])
    promise = r"the best that can be promised is (6|7)\d%"
    with pytest.raises(OptionError, match=promise) as error:
        calibrate_cascade(cascade, rows, agreement=0.9, progress=False)
    best = int(re.search(r"is (\d+)%", str(error.value))[1]) / 100
    assert calibrate_cascade(cascade, rows, agreement=best, progress=False)


@pytest.mark.figures
def test_an_agreement_is_a_wish_that_calibration_must_reach():
    rows = rows_with_labels(240)
    cascade: Any = create_cascade([skilled("cheap", rows), skilled("dear", rows)])
    calibrated: Any = calibrate_cascade(cascade, rows, agreement=0.85, progress=False)
    found = calibrated.options.calibration
    assert found["agreement"] == 0.85
    run = list(judge_many(calibrated, rows, progress=False))
    judged = [row for row in run if row["judged"]]
    wrong = sum(row["verdict"]["preference"] != row["label"] for row in judged)
    assert found["coverage"] == pytest.approx(len(judged) / 240)
    assert found["risk"] == pytest.approx(wrong / len(judged), abs=1e-4)
    assert 0 < found["risk"] < 0.15


@for_each(
    ("given", "message"),
    [
        ({"members": ["openai:a"], "thresholds": [0.5, 2]}, "`thresholds` must be a number"),
        ({"members": [UNASKED], "thresholds": [0.1] * 2}, "`thresholds` must be"),
    ],
)
def test_thresholds_are_checked(given, message):
    create: Any = create_cascade
    with pytest.raises(OptionError, match=message):
        create(**given)
