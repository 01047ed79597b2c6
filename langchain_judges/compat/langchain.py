"""langchain-classic's `load_evaluator`, and the `LangChainStringEvaluator` LangSmith dropped.

Criteria, scores from 1 to 10 and pairs, each with and without a reference, and answers checked
against a known one. Trajectories and evaluators without a judge, such as distances, stay in
langchain-classic.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langsmith.evaluation import EvaluationResult, RunEvaluator
from langsmith.schemas import Example, Run

from langchain_judges.asking.effects import Effect, gather, run
from langchain_judges.compat.prompted import WORDS, OwnPromptJudge
from langchain_judges.errors import InputError, NotJudgedError, OptionError
from langchain_judges.methods.direct.judge import create_relative_judge
from langchain_judges.verdict import POINTS, comment_of

_QUESTIONS: Mapping[str, str] = WORDS["questions"]
_USUAL_CRITERIA = ("helpfulness", "relevance", "correctness", "depth")
# What `[[B]]` names where the texts were shown in the other order; C: neither is better.
_SWAPPED = {"A": "B", "B": "A", "C": "C"}
_GRADES = {"Y": 1, "N": 0, "CORRECT": 1, "INCORRECT": 0}
_TITLES: Mapping[str, str] = WORDS["titles"]


def load_evaluator(
    evaluator: str,
    *,
    llm: Any = None,
    criteria: Any = None,
    prompt: Runnable[Any, Any] | None = None,
    normalize_by: float | None = None,
) -> ClassicEvaluator:
    """Load an evaluator by its name in langchain-classic.

    Args:
        evaluator: `"criteria"`, `"score_string"` or `"pairwise_string"`, or one of them with
            the prefix `"labeled_"`, which needs a reference, as do `"qa"`, `"context_qa"` and
            `"cot_qa"`.
        llm: The model.
        criteria: A name, a mapping of names to questions, or a list of them.
        prompt: A template of `input`, `output` (or `prediction`), `criteria` and `reference`,
            for pairs of `prediction` and `prediction_b`, asked in both orders for A, B or C;
            for `qa` and the like, of `query`, `result`, and `answer` or `context`.
        normalize_by: Scores are divided by this number.

    Raises:
        OptionError: The evaluator or one of its criteria is not known.
    """
    name = str(getattr(evaluator, "value", evaluator))
    kind, is_pair = name.removeprefix("labeled_"), name.endswith("pairwise_string")
    if kind not in _FORMS or (kind in _TITLES and kind != name):
        raise OptionError(WORDS["unknown"].format(known=[*_FORMS], name=name))
    if llm is None:
        raise OptionError("`llm` must be a chat model or a model's name")
    own = WORDS["material"] + (WORDS["reference"] if kind != name else "") + WORDS[kind]
    labeled = "{reference}" in own
    asked = _resolved(criteria, ("helpfulness",) if kind == "criteria" else _USUAL_CRITERIA)
    if kind == "criteria" and (unknown := [each for each, text in asked.items() if not text]):
        raise OptionError(f"`criteria` must be among {sorted(_QUESTIONS)}, got {unknown[0]!r}")
    if is_pair and prompt is None:
        judge = create_relative_judge(llm, criteria=asked)
        return ClassicEvaluator(name, "pairwise_string", labeled, partial(_prefer, judge))
    lines = "\n".join(f"{each}: {text}" if text else each for each, text in asked.items())
    field, values = _FORMS[kind]
    of_score = {"type": "integer" if field == "score" else "string", "enum": values}
    fields = {"reasoning": {"type": "string"}, field: of_score}
    form = {"title": kind, "properties": fields, "required": [*fields]}
    filled: Any = own.replace("{criteria}", lines.replace("{", "{{").replace("}", "}}"))
    if prompt is not None:
        filled = prompt.partial(criteria=lines)  # type: ignore[attr-defined]
    asks = OwnPromptJudge(filled, judge=llm, output_schema=form, parse=partial(_read_last, kind))
    named = {**_TITLES, "criteria": "-".join(asked), "pairwise_string": name}
    title = named.get(kind, f"{kind}:{'-'.join(asked)}")
    evaluate = partial(_choose, asks) if is_pair else partial(_score, asks, kind, normalize_by)
    return ClassicEvaluator(title, kind, labeled, evaluate)


def _resolved(criteria: Any, usual: tuple[str, ...]) -> dict[str, str]:
    """Each criterion with its question; empty where its name is enough.

    Raises:
        OptionError: There are none.
    """
    if criteria is None:
        criteria = list(usual)
    if isinstance(criteria, list | tuple):
        return {k: v for each in criteria for k, v in _resolved(each, usual).items()}
    if isinstance(criteria, Mapping) and criteria:
        return {str(name): str(text) for name, text in criteria.items()}
    name = getattr(criteria, "value", criteria)
    if not isinstance(name, str) or not name:
        raise OptionError(f"`criteria` must be a name or a mapping, got {criteria!r}")
    return {name: _QUESTIONS.get(name, "")}


# By kind: what a reply says beside its reasoning.
_FORMS: Mapping[str, tuple[str, list[Any]]] = {
    "criteria": ("value", ["Y", "N"]),
    "score_string": ("score", [*range(1, 11)]),
    "pairwise_string": ("value", [*_SWAPPED]),
    **dict.fromkeys(_TITLES, ("value", ["CORRECT", "INCORRECT"])),
}
_MARK, _LINE, _DENIED = map(re.compile, WORDS["values"])


def _read_last(kind: str, text: str) -> dict[str, Any] | None:
    """Read a reply that ends in its only mark, such as `[[7]]`, or in a line of a value alone.

    What other words follow may be a quotation, or be taken back.
    """
    field, values = _FORMS[kind]
    found = (_MARK if kind.endswith("string") else _LINE).fullmatch(text.strip())
    reasoning = (found[1] or "").strip() if found else ""
    said = [value for value in values if found and str(value) == found[2].upper()]
    if not said or "[[" in reasoning or _DENIED.search(reasoning):
        return None
    return {"reasoning": reasoning if kind == "criteria" else text, field: said[0]}


# From `input`, `output`, `other` and `reference` to a result.
_Evaluate = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]


async def _score(
    asks: OwnPromptJudge, kind: str, normalize_by: float | None, fields: dict[str, Any]
) -> dict[str, Any]:
    given, output, known = fields["input"], fields["output"], fields["reference"]
    of_qa = {"query": given, "result": output, "answer": known, "context": known}
    said = await asks.ask(kind, {**fields, **of_qa, "prediction": output})
    if "value" in said:
        return {**said, "score": _GRADES[said["value"]]}
    return {**said, "score": said["score"] / normalize_by} if normalize_by else dict(said)


async def _choose(asks: OwnPromptJudge, fields: dict[str, Any]) -> dict[str, Any]:
    order = fields["output"], fields["other"]
    shown = [{"prediction": one, "prediction_b": two} for one, two in (order, order[::-1])]
    said = await gather([asks.ask("pairwise_string", {**fields, **each}) for each in shown])
    first, second = said[0]["value"], _SWAPPED[said[1]["value"]]
    if first == second:
        value, why = None if first == "C" else first, said[0]["reasoning"]
    else:
        reasons = "\n\nIn the other order: ".join(each["reasoning"] for each in said)
        value, why = None, f"The orders disagree. {reasons}"
    return {"reasoning": why, "value": value, "score": POINTS[value or "tie"]}


async def _prefer(judge: Runnable[Any, Any], fields: dict[str, Any]) -> dict[str, Any]:
    texts = {"output_a": fields["output"], "output_b": fields["other"]}
    pair = {"input": fields["input"], "reference": fields.get("reference"), **texts}
    judged = await Effect.of(judge, "invoke", pair)
    preference, why = judged["verdict"]["preference"], comment_of(judged["verdict"])
    if preference is None:
        raise NotJudgedError(why)
    value = None if preference == "tie" else preference
    return {"reasoning": why, "value": value, "score": POINTS[preference]}


class ClassicEvaluator:
    """An evaluator with langchain-classic's methods; create it with `load_evaluator`.

    For one text the result is `{"reasoning", "value", "score"}`, scores without `value`; for
    two, `value` is `"A"`, `"B"` or None for a tie. A row not judged raises `NotJudgedError`.
    """

    requires_input = True

    def __init__(self, name: str, kind: str, labeled: bool, evaluate: _Evaluate) -> None:
        """Keep the function that evaluates."""
        self.evaluation_name, self.requires_reference = name, labeled
        self._kind = kind
        self._evaluate = RunnableLambda(lambda row: run(evaluate(row)), afunc=evaluate, name=kind)

    def evaluate_strings(self, **fields: Any) -> dict[str, Any]:
        """Judge `prediction` for `input`, given `reference`."""
        return self._evaluate.invoke(*self._given(fields))

    async def aevaluate_strings(self, **fields: Any) -> dict[str, Any]:
        """Judge `prediction` for `input`, given `reference`."""
        return await self._evaluate.ainvoke(*self._given(fields))

    evaluate_string_pairs, aevaluate_string_pairs = evaluate_strings, aevaluate_strings

    def _given(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], RunnableConfig]:
        """Row to judge, and its tracing.

        Raises:
            InputError: A field is missing.
        """
        needed = ["prediction", "input", *(["reference"] if self.requires_reference else [])]
        needed += ["prediction_b"] if self._kind == "pairwise_string" else []
        if lacking := [name for name in needed if fields.get(name) is None]:
            raise InputError(f"`{lacking[0]}` is required by {self.evaluation_name!r}")
        if fields.get("reference") is not None and not self.requires_reference:
            warnings.warn("the reference is not shown: load the 'labeled_' form", stacklevel=3)
        reference = fields.get("reference") if self.requires_reference else None
        texts = {"output": fields["prediction"], "other": fields.get("prediction_b")}
        shown = {"input": fields["input"], "reference": reference, **texts}
        config: Any = {k: fields[k] for k in ("callbacks", "tags", "metadata") if fields.get(k)}
        return shown, config


class LangChainStringEvaluator(RunEvaluator):
    """An evaluator of `load_evaluator` for LangSmith's `evaluate`.

    Args:
        evaluator: Its name, or the evaluator itself.
        config: What `load_evaluator` takes.
        prepare_data: Maps a run and its example to `prediction`, `reference` and `input`;
            by default, each is the only value there is.
    """

    def __init__(
        self,
        evaluator: str | ClassicEvaluator,
        *,
        config: Mapping[str, Any] | None = None,
        prepare_data: Callable[[Run, Example | None], Mapping[str, Any]] | None = None,
    ) -> None:
        """Load the evaluator."""
        if not isinstance(evaluator, ClassicEvaluator):
            evaluator = load_evaluator(evaluator, **(config or {}))
        self.evaluator = evaluator
        self._prepare = prepare_data or self._only_values

    def as_run_evaluator(self) -> RunEvaluator:
        """This evaluator, which already takes runs."""
        return self

    def evaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult:
        """Judge a run's output."""
        return self._feedback(self.evaluator.evaluate_strings(**self._prepare(run, example)))

    async def aevaluate_run(
        self, run: Run, example: Example | None = None, evaluator_run_id: UUID | None = None
    ) -> EvaluationResult:
        """Judge a run's output."""
        return self._feedback(await self.evaluator.aevaluate_strings(**self._prepare(run, example)))

    def _feedback(self, result: Mapping[str, Any]) -> EvaluationResult:
        named = {"score": result["score"], "value": result.get("value")}
        key = self.evaluator.evaluation_name
        return EvaluationResult(key=key, comment=result["reasoning"], **named)

    def _only_values(self, run: Run, example: Example | None) -> dict[str, Any]:
        fields = {"prediction": run.outputs, "input": example.inputs if example else run.inputs}
        if self.evaluator.requires_reference:
            fields["reference"] = example.outputs if example else None
        return {name: _only_criterion(name, values) for name, values in fields.items()}


def _only_criterion(name: str, values: Mapping[str, Any] | None) -> Any:
    if not values or len(values) != 1:
        raise InputError(WORDS["several"].format(name=name, names=sorted(values or {})))
    return next(iter(values.values()))
