"""The judge of one text by criteria of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Annotated, Any

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from pydantic import SkipValidation, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.base import JudgeGraph, check_quorum
from langchain_judges.methods.evidence import SUBSCORES, scores_by_criterion
from langchain_judges.methods.rubric.criteria import (
    ClientLabels,
    Labels,
    LabelsLike,
    RubricLike,
    read_rubric,
)
from langchain_judges.methods.rubric.options import LabelOptions, rubric_of_text
from langchain_judges.methods.rubric.ready import Rubric, check_name, load_rubric, ready_names
from langchain_judges.methods.rubric.replies import RubricResult, RubricState
from langchain_judges.methods.rubric.steps import LabelSteps, label_graph, label_setup
from langchain_judges.options import ClientMost, ForClient, Owner, Rule, factory


class RubricOptions(LabelOptions):
    """Create a judge of one text by criteria of your own, or by a ready rubric.

    All criteria are asked in one call, each answered by a reason and one of its labels.

    Returns:
        A compiled graph from `Item` to `{"verdict", "subscores"}`, with a memory `recalled`
        too. Each subscore is `{"criterion", "label", "score", "weight", "holds", "required",
        "reason", "confidence", "confidence_source"}`. With one criterion the verdict is its
        label and score; with several both are the total in [0, 1]: the mean of the scores by
        weight, 0 where a required criterion does not hold.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.

    Example:
        >>> from langchain_judges import create_rubric_judge
        >>> judge = create_rubric_judge("local", rubric=[
        ...     {"name": "Tone", "description": "Is the reply polite?", "weight": 2},
        ...     {"name": "Length", "scale": (1, 5), "anchors": {1: "rambles", 5: "brief"}},
        ... ])  # doctest: +SKIP
        >>> reply = {"input": "Where is my parcel?", "output": "It comes today."}
        >>> verdict = judge.invoke(reply)["verdict"]  # doctest: +SKIP
        >>> verdict["score"]  # doctest: +SKIP
        1.0
    """

    method = "rubric"
    summary = "Rubric: one text by criteria of your own, or by a ready rubric."
    presets = {name: {"rubric": name} for name in ready_names()}
    events = {"subscores": "subscore"}
    evidence = (SUBSCORES,)
    sketches = (scores_by_criterion,)

    rubric: Annotated[
        RubricLike | None,
        SkipValidation,
        Rule("a name, a text, a list or a mapping of criteria, or None"),
        ForClient(str | Sequence[str | Mapping[str, str]] | Mapping[str, str] | None),
    ] = None
    """What is judged: the name of a ready rubric, a text, a list of criteria (`"name"`,
    `"name: description"`, the fields of a `Criterion`), or a mapping of names to
    descriptions. Default: correctness where a row has `expected`, else groundedness."""
    file: Annotated[str | PathLike[str] | None, Owner(), Rule("a path, or None")] = None
    """A YAML or JSON file that holds the rubric."""
    labels: Annotated[Labels | None, ForClient(ClientLabels | None)] = None
    """Labels of criteria without their own, from lowest to highest, or each with what it
    means; of a ready rubric they replace its own. Default 0 and 1, no and yes."""
    each: bool = False
    """Ask each criterion in a call of its own, all at the same time."""
    min_valid: Annotated[int, Ge(1), ClientMost(100)] | None = None
    """Fewest criteria that must be judged for a verdict; default more than half."""

    @model_validator(mode="after")
    def _check(self) -> RubricOptions:
        if self.rubric is not None and self.file is not None:
            raise OptionError("give `rubric` or `file`, not both")
        if isinstance(self.rubric, str):
            check_name(self.rubric)
        check_quorum(self.min_valid, self._count)
        return self

    @cached_property
    def own_rubric(self) -> Rubric | None:
        """The rubric of the judge; None: by what a row brings."""
        if isinstance(self.rubric, str):
            return rubric_of_text(self.rubric, self.labels)
        if self.file is None and self.rubric is None:
            return None
        rubric = (
            load_rubric(self.file)
            if self.file is not None
            else Rubric(criteria=read_rubric(self.rubric))  # type: ignore[arg-type]
        )
        if self.labels is None:
            return rubric
        named = tuple(criterion.with_labels(self.labels) for criterion in rubric.criteria)
        return Rubric(**{**dict(rubric), "criteria": named})

    @property
    def own_labels(self) -> LabelsLike | None:
        """Labels of criteria without their own, and of ready rubrics."""
        return self.labels

    @property
    def _count(self) -> int:
        return len(self.own_rubric.criteria) if self.own_rubric else 1

    def calls(self) -> int:
        """Return the calls for one item, excluding repairs."""
        return self._count if self.each else 1

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        steps = LabelSteps(label_setup(self, model), self, self.each, self.min_valid)
        return label_graph(steps, RubricState, RubricResult, **self._marks())

    def _marks(self) -> dict[str, Any]:
        """Return what decides verdicts beside the options: what a name or a file says."""
        if self.own_rubric is None:
            return {}
        labels = self.known_labels or (0, 1)
        return {"criteria": self.own_rubric.as_json(), "labels": list(labels)}


create_rubric_judge = factory(RubricOptions, RubricOptions.build, "create_rubric_judge")
