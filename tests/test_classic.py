"""Judges as evaluators of langchain-classic, by its own public methods."""

import pytest
from langchain_classic.evaluation import PairwiseStringEvaluator, StringEvaluator

from langchain_judges.errors import OptionError
from langchain_judges.integrations.classic import (
    JudgePairwiseEvaluator,
    JudgeStringEvaluator,
    load_classic_evaluator,
)
from tests.fakes import FakeChatModel
from tests.judges import broken, bsm, labels

PAIR = {"prediction": "good good", "prediction_b": "bad", "input": "Why?"}
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


async def pairwise(evaluator, kind, **fields):
    if kind == "sync":
        return evaluator.evaluate_string_pairs(**fields)
    return await evaluator.aevaluate_string_pairs(**fields)


async def single(evaluator, kind, **fields):
    if kind == "sync":
        return evaluator.evaluate_strings(**fields)
    return await evaluator.aevaluate_strings(**fields)


@KINDS
async def test_pairs_are_scored_by_how_far_the_first_is_preferred(kind):
    evaluator = JudgePairwiseEvaluator(bsm())
    assert isinstance(evaluator, PairwiseStringEvaluator)
    result = await pairwise(evaluator, kind, **PAIR)
    assert (result["score"], result["value"]) == (0.75, "A")
    assert result["reasoning"].startswith("A is better.")


@KINDS
async def test_what_was_not_judged_has_no_score_and_says_why(kind):
    result = await pairwise(JudgePairwiseEvaluator(broken()), kind, **PAIR)
    assert (result["score"], result["value"]) == (None, None)
    assert "unparsable" in result["reasoning"]


@KINDS
async def test_a_prediction_is_compared_with_its_reference(kind):
    evaluator = JudgeStringEvaluator(bsm())
    assert isinstance(evaluator, StringEvaluator)
    assert (evaluator.evaluation_name, evaluator.requires_reference) == ("bsm", True)
    fields = {"prediction": "good good", "input": "Why?"}
    result = await single(evaluator, kind, **fields, reference="bad")
    assert (result["score"], result["value"]) == (0.75, "A")
    with pytest.raises(ValueError, match="requires a reference"):
        await single(evaluator, kind, **fields)


@KINDS
async def test_a_judge_of_one_text_needs_no_reference(kind):
    evaluator = JudgeStringEvaluator(labels())
    result = await single(evaluator, kind, prediction="good", input="Why?", context="a text")
    assert (result["score"], result["reasoning"]) == (pytest.approx(0.9), "against a text")
    evaluator = JudgeStringEvaluator(labels(), reference=True)
    result = await single(evaluator, kind, prediction="x", input="Why?", reference="known")
    assert (result["score"], result["reasoning"]) == (pytest.approx(0.1), "against known")


def test_evaluators_are_loaded_by_name():
    evaluator = load_classic_evaluator("bsm", llm=FakeChatModel(), criteria=["Depth"])
    assert isinstance(evaluator, JudgePairwiseEvaluator)
    assert evaluator.evaluate_string_pairs(**PAIR)["verdict"]["usage"]["calls"] == 2
    single = load_classic_evaluator("bsm", llm=FakeChatModel(), pairwise=False)
    assert isinstance(single, JudgeStringEvaluator)
    with pytest.raises(OptionError, match="there is no method"):
        load_classic_evaluator("criteria", llm=FakeChatModel())
    with pytest.raises(OptionError):
        JudgePairwiseEvaluator(labels())
