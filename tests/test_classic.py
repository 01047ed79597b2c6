"""Judges as evaluators of langchain-classic, by its own public methods."""

import pytest

from langchain_judges import integrations
from tests.judges import broken, bsm, labels

PAIR = {"prediction": "good good", "prediction_b": "bad", "input": "Why?"}
KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


async def evaluated(evaluator, kind, name, **fields):
    if kind == "sync":
        return getattr(evaluator, f"evaluate_{name}")(**fields)
    return await getattr(evaluator, f"aevaluate_{name}")(**fields)


@KINDS
async def test_pairs_are_scored_by_how_far_the_first_is_preferred(kind):
    from langchain_classic.evaluation import PairwiseStringEvaluator

    evaluator = integrations.as_classic_evaluator(bsm())
    assert isinstance(evaluator, PairwiseStringEvaluator)
    result = await evaluated(evaluator, kind, "string_pairs", **PAIR)
    assert (result["score"], result["value"]) == (0.75, "A")
    assert result["reasoning"].startswith("A is better.")
    lost = await evaluated(
        integrations.as_classic_evaluator(broken()), kind, "string_pairs", **PAIR
    )
    assert (lost["score"], lost["value"]) == (None, None)
    assert "unparsable" in lost["reasoning"]


@KINDS
async def test_one_prediction_is_judged_against_a_source_or_a_reference(kind):
    from langchain_classic.evaluation import StringEvaluator

    evaluator = integrations.as_classic_evaluator(labels())
    assert isinstance(evaluator, StringEvaluator)
    assert evaluator.evaluation_name == "labels"
    fields = {"prediction": "good", "input": "Why?"}
    result = await evaluated(evaluator, kind, "strings", **fields, context="a text")
    assert (result["score"], result["reasoning"]) == (pytest.approx(0.9), "against a text")
    evaluator = integrations.as_classic_evaluator(labels(), reference=True)
    result = await evaluated(evaluator, kind, "strings", **fields, reference="known")
    assert result["reasoning"] == "against known"
    with pytest.raises(ValueError, match="requires a reference"):
        await evaluated(evaluator, kind, "strings", **fields)
