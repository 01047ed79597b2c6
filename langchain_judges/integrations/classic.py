"""A judge as an evaluator of langchain-classic (`pip install 'langchain-judges[classic]'`)."""

from __future__ import annotations

from typing import Any

from langchain_judges.asking.effects import run
from langchain_judges.errors import needs
from langchain_judges.integrations.framework_cases import item_for, outcome_of, pair_for
from langchain_judges.methods.describe import kind_of, marks_of
from langchain_judges.rows.checks import check_text
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.lookup import context_in
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, decision, score_of

with needs("classic", "An evaluator of langchain-classic"):
    from langchain_classic.evaluation import PairwiseStringEvaluator, StringEvaluator

_PASSED_ON = ("callbacks", "tags", "metadata")


def as_classic_evaluator(
    judge: Judge, *, reference: bool = False
) -> StringEvaluator | PairwiseStringEvaluator:
    """Make a judge an evaluator of langchain-classic, of one prediction or of two.

    It returns `{"score", "value", "reasoning", "verdict"}`: the label, or how far the first
    prediction is preferred, with `"A"`, `"B"` or None for a tie as the value. What could not be
    judged has neither score nor value, and `reasoning` says why. Of one prediction the keyword
    `context` is the source that it is checked against.

    Args:
        judge: A judge of one text or of pairs.
        reference: Whether a reference is required. One is shown in any case, but
            langchain-classic warns about a reference that is not required.

    Raises:
        OptionError: `judge` takes neither a pair nor an item.
    """
    pairs = kind_of(judge) == "pair"
    return (_OfPairs if pairs else _OfTexts)(judge, reference=reference)


class _JudgeEvaluator:
    requires_input = True

    def __init__(self, judge: Judge, *, reference: bool) -> None:
        self.judge, self._reference = judge, reference

    @property
    def requires_reference(self) -> bool:
        return self._reference

    @property
    def evaluation_name(self) -> str:
        return str(marks_of(self.judge)["method"])

    def _case(self, *, input: Any, prediction: Any, **fields: Any) -> dict[str, object]:
        reference = fields.get("reference")
        if kind_of(self.judge) == "pair":
            return pair_for(input, prediction, fields["prediction_b"], reference=reference)
        source = context_in(fields.get("context"))
        return item_for(self.judge, input, prediction, expected=reference, source=source)

    async def _steps(self, **fields: Any) -> dict[str, object]:
        case = plain_row(self._case(**fields))
        for field in case:
            check_text(case[field], field)
        passed_on = {name: fields[name] for name in _PASSED_ON if fields.get(name)}
        verdict = (await outcome_of(self.judge, case, **passed_on))["verdict"]
        value = decision(verdict)
        return {
            "score": score_of(verdict),
            "value": None if value == "tie" else value,
            "reasoning": comment_of(verdict),
            "verdict": verdict,
        }

    def _now(self, **fields: Any) -> dict[str, object]:
        return run(self._steps(**fields))

    async def _later(self, **fields: Any) -> dict[str, object]:
        return await self._steps(**fields)


class _OfTexts(_JudgeEvaluator, StringEvaluator):
    _evaluate_strings = _JudgeEvaluator._now
    _aevaluate_strings = _JudgeEvaluator._later


class _OfPairs(_JudgeEvaluator, PairwiseStringEvaluator):
    _evaluate_string_pairs = _JudgeEvaluator._now
    _aevaluate_string_pairs = _JudgeEvaluator._later
