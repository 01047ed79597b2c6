"""A judge as an evaluator of langchain-classic (`pip install 'langchain-judges[classic]'`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.errors import OptionError, needs
from langchain_judges.integrations.cases import config_for, item_for, pair_for, verdict_of
from langchain_judges.methods.describe import kind_of, marks_of
from langchain_judges.methods.registry import load_judge
from langchain_judges.rows.checks import check_text
from langchain_judges.rows.documents import context_in
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import Text
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, decision, score_of

with needs("classic", "An evaluator of langchain-classic"):
    from langchain_classic.evaluation import PairwiseStringEvaluator, StringEvaluator

_PASSED_ON = ("callbacks", "tags", "metadata")


class _JudgeEvaluator:
    """What langchain-classic asks of both kinds of evaluators.

    Args:
        judge: The judge.
        reference: Whether a reference is required. One is shown in any case, but
            langchain-classic warns about a reference that is not required.
    """

    requires_input = True

    def __init__(self, judge: Judge, *, reference: bool = False) -> None:
        """Create the evaluator, without a call to a model."""
        self.judge, self.kind = judge, kind_of(judge)
        self._reference = reference

    @property
    def requires_reference(self) -> bool:
        """Whether a reference is required."""
        return self._reference


class JudgeStringEvaluator(_JudgeEvaluator, StringEvaluator):
    """Judges a prediction: by itself, or, with a judge of pairs, against a reference.

    Returns `{"score", "value", "reasoning", "verdict"}`: the label, or how far the prediction
    is preferred to the reference. `score` and `value` are None if it could not be judged. The
    keyword `context` is the source that the prediction is checked against.
    """

    def __init__(self, judge: Judge, *, reference: bool = False) -> None:
        """Create the evaluator; a judge of pairs always requires a reference."""
        super().__init__(judge, reference=reference or kind_of(judge) == "pair")

    @property
    def evaluation_name(self) -> str:
        """The method."""
        return str(marks_of(self.judge)["method"])

    def _evaluate_strings(self, **fields: Any) -> dict[str, object]:
        return run(self._steps(**fields))

    async def _aevaluate_strings(self, **fields: Any) -> dict[str, object]:
        return await arun(self._steps(**fields))

    def _steps(
        self,
        *,
        prediction: Text,
        input: Text,
        reference: Any = None,
        context: object = None,
        **settings: Any,
    ) -> Steps[dict[str, object]]:
        source = context_in(context)
        if self.kind == "pair":
            case = pair_for(input, prediction, reference, source=source)
        else:
            case = item_for(self.judge, input, prediction, expected=reference, source=source)
        return (yield from _evaluation(self.judge, case, settings))


class JudgePairwiseEvaluator(_JudgeEvaluator, PairwiseStringEvaluator):
    """Compares two predictions with a judge of pairs.

    Returns `{"score", "value", "reasoning", "verdict"}`: how far the first is preferred, and
    `"A"`, `"B"` or None for a tie, as in langchain-classic. If the pair could not be judged,
    `score` is None too, and `reasoning` says why.

    Raises:
        OptionError: The judge labels one text.
    """

    def __init__(self, judge: Judge, *, reference: bool = False) -> None:
        """Create the evaluator of a judge of pairs."""
        super().__init__(judge, reference=reference)
        if self.kind != "pair":
            raise OptionError("`judge` must be a judge of pairs; this one labels one text")

    def _evaluate_string_pairs(self, **fields: Any) -> dict[str, object]:
        return run(self._steps(**fields))

    async def _aevaluate_string_pairs(self, **fields: Any) -> dict[str, object]:
        return await arun(self._steps(**fields))

    def _steps(
        self,
        *,
        prediction: str,
        prediction_b: str,
        input: str,
        reference: str | None = None,
        **settings: Any,
    ) -> Steps[dict[str, object]]:
        case = pair_for(input, prediction, prediction_b, reference=reference)
        result = yield from _evaluation(self.judge, case, settings)
        return {**result, "value": None if result["value"] == "tie" else result["value"]}


def load_classic_evaluator(
    name: str,
    *,
    llm: str | BaseChatModel,
    pairwise: bool | None = None,
    preset: str | None = None,
    **options: Any,
) -> JudgeStringEvaluator | JudgePairwiseEvaluator:
    """Create a judge by the name of its method, as an evaluator of langchain-classic.

    The `load_evaluator` of langchain-classic accepts only its own names.

    Args:
        name: A method, such as `"bsm"`.
        llm: The model, as `load_judge` takes it.
        pairwise: Compare two predictions (default for a judge of pairs), or judge one
            prediction.
        preset: One of the method's presets.
        **options: Keywords of the method's factory.

    Raises:
        OptionError: A name or an option is unknown, or `pairwise` was set for a judge of one
            text.
    """
    judge = load_judge(name, llm, preset=preset, **options)
    if pairwise is None:
        pairwise = kind_of(judge) == "pair"
    return JudgePairwiseEvaluator(judge) if pairwise else JudgeStringEvaluator(judge)


def _evaluation(
    judge: Judge, case: Mapping[str, object], settings: dict[str, Any]
) -> Steps[dict[str, object]]:
    case = plain_row(case)
    for field in case:
        check_text(case[field], field)
    passed_on = {name: settings[name] for name in _PASSED_ON if settings.get(name)}
    verdict = yield from verdict_of(judge, case, config_for(judge, **passed_on))
    return {
        "score": score_of(verdict),
        "value": decision(verdict),
        "reasoning": comment_of(verdict),
        "verdict": verdict,
    }
