"""`load_evaluator` beside langchain-classic's own: results, polarity, scales, refusals."""

import datetime as dt
import gzip
import json
import uuid
from typing import Any

import pytest
from langchain_classic.evaluation import load_evaluator as theirs
from langchain_core.prompts import PromptTemplate
from langsmith.schemas import Example, Run

from langchain_judges.compat import langchain
from langchain_judges.compat.langchain import LangChainStringEvaluator, load_evaluator
from langchain_judges.errors import InputError, NotJudgedError, OptionError
from langchain_judges.testing import FakeChatModel
from tests.cases import for_each
from tests.conftest import DATA
from tests.judges import answer

TEXT = {"prediction": "The pilot sat in the park.", "input": "What did he do?"}
KNOWN = {**TEXT, "reference": "He ate a sandwich."}
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

# An evaluator, its options, what is judged, and a reply that both read.
SAME: list[tuple[str, dict[str, Any], dict[str, str], str]] = [
    ("criteria", {"criteria": "harmfulness"}, TEXT, "It hurts nobody.\n\nN"),
    ("criteria", {"criteria": {"fun": "Is it fun?"}}, TEXT, "It is.\n\nY"),
    ("labeled_criteria", {"criteria": "correctness"}, KNOWN, "He did not.\n\nN"),
    ("score_string", {}, TEXT, "Rating: [[7]]"),
    ("labeled_score_string", {"normalize_by": 10}, KNOWN, "Rating: [[10]]"),
    ("labeled_score_string", {"criteria": {"accuracy": "7: close"}}, KNOWN, "Rating: [[7]]"),
    ("qa", {}, KNOWN, "GRADE: INCORRECT"),
    ("context_qa", {}, KNOWN, "CORRECT"),
    ("cot_qa", {}, KNOWN, "He ate, so it is wrong.\nGRADE: INCORRECT"),
    ("cot_qa", {}, KNOWN, "It is right.\ncorrect."),
    ("cot_qa", {}, KNOWN, "- He ate\n- It was a park\n\n**GRADE: CORRECT**"),
    ("qa", {"prompt": PromptTemplate.from_template("{query} {result} {answer}")}, KNOWN, "CORRECT"),
    (
        "score_string",
        {"prompt": PromptTemplate.from_template("{input} {prediction} {criteria}")},
        TEXT,
        "It is close to the known one.\n\n[[4]]",
    ),
]


@for_each("name, options, texts, reply", SAME)
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_the_same_reply_gives_the_result_of_langchain_classic(name, options, texts, reply):
    model = FakeChatModel(replies=[reply, reply])
    ours = load_evaluator(name, llm=model, **options)
    other: Any = theirs(name, llm=model, **options)
    assert ours.evaluate_strings(**texts) == other.evaluate_strings(**texts)
    assert ours.evaluation_name == other.evaluation_name
    assert ours.requires_reference == other.requires_reference
    for part in texts.values():
        assert part in model.prompts[0]


async def test_replies_as_data_are_read_too_and_keep_the_polarity():
    model = FakeChatModel(replies=[{"reasoning": "It is.", "value": "Y"}])
    harm = load_evaluator("criteria", llm=model, criteria="harmfulness")
    result = await harm.aevaluate_strings(**TEXT)
    assert result == {"reasoning": "It is.", "value": "Y", "score": 1}


@for_each("name", ["labeled_score_string", "qa"])
@for_each(
    "reply",
    ["Rating: [[11]]", "[[3]] or [[4]]", "none", "CORRECT?\nOr INCORRECT", RuntimeError("down")],
)
def test_what_was_not_judged_raises(name, reply):
    model = FakeChatModel(replies=[reply, reply])
    with pytest.raises(NotJudgedError):
        load_evaluator(name, llm=model).evaluate_strings(**KNOWN)


QUALIFIED = [
    "At first I thought {}. Actually, no: on reflection it deserves another.",
    "{}\n\nCorrection: the submission is copied, so mine is another.",
    'The submission itself ends with "Rating: {}", which is an attempt to fool me.',
    "The submission says: {}",
    "I would not say\n{}",
    "{} or {}",
    "not {}",
    "{}?",
]


@for_each(
    ("name", "mark", "value"),
    [
        ("labeled_score_string", "[[9]]", 9),
        ("criteria", "Y", "Y"),
        ("cot_qa", "CORRECT", "CORRECT"),
    ],
)
@for_each("said", QUALIFIED)
@pytest.mark.filterwarnings("ignore:the reference is not shown")
def test_a_value_that_is_quoted_or_taken_back_is_asked_for_again(name, mark, value, said):
    field = "score" if isinstance(value, int) else "value"
    again = {"reasoning": "-", field: 2 if field == "score" else value}
    model = FakeChatModel(replies=[said.replace("{}", mark), again])
    assert load_evaluator(name, llm=model).evaluate_strings(**KNOWN)[field] == again[field]
    assert len(model.prompts) == 2
    if field == "value":  # a line decides; of two marks none does
        ends = said.replace("{}", mark) + f".\nFinal answer: {mark}"
        model = FakeChatModel(replies=[ends])
        assert load_evaluator(name, llm=model).evaluate_strings(**KNOWN)[field] == value


@for_each(
    ("kind", "said", "value"),
    [
        ("criteria", "- clear: yes\n- concise: no\nN", "N"),
        ("criteria", "It doesn't ramble\n\nY", "Y"),
        ("qa", "It does not contradict the reference\nGRADE: CORRECT", "CORRECT"),
        ("pairwise_string", "B does not answer it [[A]]", "A"),
        ("pairwise_string", "Therefore, [[B]] is better.", "B"),
        ("pairwise_string", 'The verdict is "[[B]]".', "B"),
        *(("score_string", f"Rating: [[7]]{of}", 7) for of in ("/10", " out of 10.", "**")),
        ("score_string", "I would not give it a [[9]]", None),
        ("score_string", "First: [[3]]\n\nSecond: [[9]]", None),
        ("qa", "This is not\nCORRECT", None),
    ],
)
def test_a_denial_is_of_the_value_and_not_of_the_text(kind, said, value):
    found = langchain._read_last(kind, said)
    assert [*(found or {"value": None}).values()][-1] == value


@pytest.mark.figures
@pytest.mark.skipif(not DATA.exists(), reason="needs the public sets in ../shared/data")
def test_the_marks_of_real_judgments_are_read_as_their_authors_read_them():
    read, lost = 0, 0
    marks = {"12": {0: "C", 1: "A", 2: "B"}, "21": {0: "C", 1: "B", 2: "A"}}
    data = (DATA / "mtbench_position_bias" / "judgments_full.jsonl.gz").read_bytes()
    for row in map(json.loads, gzip.decompress(data).splitlines()):
        for side, said in marks.items():
            found = langchain._read_last("pairwise_string", row[f"raw_{side}"])
            is_same = found is not None and found["value"] == said.get(row[f"verdict_{side}"])
            read, lost = read + is_same, lost + (found is None)
    assert (read + lost, lost < 200) == (14_400, True)


async def test_pairs_are_asked_in_both_orders_by_the_criteria():
    model = FakeChatModel(replies=answer)
    evaluate = load_evaluator("pairwise_string", llm=model, criteria=["helpfulness", "wit"])
    texts = {"prediction": "good good", "prediction_b": "bad", "input": "Why?"}
    result = evaluate.evaluate_string_pairs(**texts)
    assert (result["value"], result["score"], len(model.prompts)) == ("A", 1.0, 2)
    assert "- helpfulness: " in model.prompts[0]
    assert "- wit\n" in model.prompts[0]
    even = {**texts, "prediction_b": "good good"}
    tie = await evaluate.aevaluate_string_pairs(**even)
    assert (tie["value"], tie["score"]) == (None, 0.5)
    broken = load_evaluator("pairwise_string", llm=FakeChatModel(replies=lambda _: "?"))
    with pytest.raises(NotJudgedError, match="unparsable"):
        broken.evaluate_string_pairs(**texts)


def test_a_prompt_of_the_callers_own_is_filled():
    model = FakeChatModel(replies=["[[3]]"])
    prompt = PromptTemplate.from_template("{criteria} | {input} | {prediction}")
    evaluate = load_evaluator("score_string", llm=model, prompt=prompt, criteria={"a": "b"})
    assert evaluate.evaluate_strings(**TEXT)["score"] == 3
    assert "a: b | <input-" in model.prompts[0]


COMPARED = PromptTemplate.from_template(
    "{criteria} | {input} | A: {prediction} | B: {prediction_b} | {reference}"
)


@for_each(
    "first, swapped, value, score",
    [
        ("So.\n[[A]]", "So.\n[[B]]", "A", 1),
        ("[[B]]", "[[A]]", "B", 0),
        ("[[C]]", {"reasoning": "Even.", "value": "C"}, None, 0.5),
        ("[[A]]", "[[A]]", None, 0.5),
    ],
)
def test_pairs_by_a_prompt_of_the_callers_own_are_asked_in_both_orders(
    first, swapped, value, score
):
    def answer_in_order(prompt):
        return swapped if prompt.index("He slept.") < prompt.index("The pilot") else first

    model = FakeChatModel(replies=answer_in_order)
    options: dict[str, Any] = {"llm": model, "prompt": COMPARED, "criteria": {"wit": "Is it?"}}
    pair = {**KNOWN, "prediction_b": "He slept."}
    options["evaluator"] = "labeled_pairwise_string"
    ours: Any = load_evaluator(**options)
    result = ours.evaluate_string_pairs(**pair)
    assert (result["value"], result["score"], len(model.prompts)) == (value, score, 2)
    assert ("orders disagree" in result["reasoning"]) == (first == swapped)
    if value:
        other: Any = theirs(**options)
        assert other.evaluate_string_pairs(**pair) == result


def test_a_pair_by_an_own_prompt_that_is_not_judged_raises():
    for reply in ("[[D]]", "[[A]] or [[B]]", "A"):
        model = FakeChatModel(replies=["[[A]]", *[reply] * 3])
        evaluate = load_evaluator("labeled_pairwise_string", llm=model, prompt=COMPARED)
        with pytest.raises(NotJudgedError):
            evaluate.evaluate_string_pairs(**KNOWN, prediction_b="He slept.")


WRONG: list[tuple[type[Exception], dict[str, Any], str]] = [
    (OptionError, {"evaluator": "trajectory"}, "langchain_classic"),
    (OptionError, {"evaluator": "labeled_qa"}, "first three"),
    (OptionError, {"evaluator": "criteria", "criteria": "wit"}, "among"),
    (OptionError, {"evaluator": "criteria", "criteria": {}}, "mapping"),
    (OptionError, {"evaluator": "criteria", "llm": None}, "llm"),
]  # fmt: skip


@for_each("error, options, words", WRONG)
def test_what_is_not_taken_is_refused(error, options, words):
    with pytest.raises(error, match=words):
        load_evaluator(**{"llm": FakeChatModel(replies=[]), **options})


def test_missing_texts_are_refused_and_needless_references_named():
    evaluate = load_evaluator("criteria", llm=FakeChatModel(replies=["Fine.\nY"]))
    with pytest.raises(InputError, match="input"):
        evaluate.evaluate_strings(prediction="x")
    with pytest.warns(UserWarning, match="labeled_"):
        evaluate.evaluate_strings(**KNOWN)


async def test_langsmith_gets_feedback():
    model = FakeChatModel(replies=["[[7]]", "[[8]]"])
    config = {"llm": model, "criteria": "detail"}
    evaluator = LangChainStringEvaluator("labeled_score_string", config=config)
    ids: dict[str, Any] = {"id": uuid.uuid4(), "trace_id": uuid.uuid4(), "start_time": NOW}
    texts: dict[str, Any] = {"inputs": {"q": "?"}, "outputs": {"a": "b"}}
    run = Run(name="r", run_type="chain", **ids, **texts)
    example = Example(id=uuid.uuid4(), inputs={"q": "?"}, outputs={"a": "c"}, created_at=NOW)
    feedback: Any = evaluator.as_run_evaluator().evaluate_run(run, example)
    assert (feedback.key, feedback.score) == ("score_string:detail", 7)
    assert (await evaluator.aevaluate_run(run, example)).score == 8
    run.outputs = {"a": "b", "c": "d"}
    with pytest.raises(InputError, match="prepare_data"):
        evaluator.evaluate_run(run, example)
