"""Read a judge's pair or item from the arguments of an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langsmith.schemas import Run

from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import item_for, pair_for, wants_reference
from langchain_judges.integrations.child_runs import outputs_with_work
from langchain_judges.methods.describe import kind_of
from langchain_judges.rows.applications import (
    TextSource,
    check_sources,
    context_in,
    expected_in,
    reference_in,
    source_in,
    task_in,
    work_in,
)
from langchain_judges.runs.workload import Judge

BaselineSource = Mapping[str, object] | Callable[[Any], object]
"""Outputs to compare with, by the id of the example, or a function of the inputs."""


class TextSources(NamedTuple):
    """Where each text is found."""

    input: TextSource
    output: TextSource
    reference: TextSource
    context: TextSource


class EvaluatedRow(NamedTuple):
    """The fields of one evaluated row."""

    inputs: object
    outputs: object
    reference: object = None
    example: str | None = None
    """The id of the data set's example."""
    context: object = None
    called: bool = False
    """Whether the reference comes from a caller, and not from a data set."""


class CaseReader:
    """Reads pairs and items from inputs, outputs and references."""

    def __init__(
        self, judge: Judge, places: TextSources, baseline: BaselineSource | None
    ) -> None:
        """Set where each text is found; nothing is read yet."""
        self.judge, self.kind, self.places = judge, kind_of(judge), places
        check_sources(**places._asdict())
        if not (baseline is None or isinstance(baseline, Mapping) or callable(baseline)):
            raise OptionError(
                "`baseline` must be outputs by the id of the example, or a function of the "
                f"inputs, got {baseline!r}"
            )
        if baseline is not None and self.kind == "item":
            raise OptionError("`baseline` is for judges of pairs; this one labels one text")
        self.baseline = baseline

    def outputs(self, run: Run) -> object:
        """Return a run's outputs, with the tools it used unless `output` is set."""
        return run.outputs if self.places.output else outputs_with_work(run)

    def case(self, row: EvaluatedRow) -> dict[str, object]:
        """Return a `Pair` or an `Item`.

        Raises:
            InputError: A text cannot be found; the message says what was expected.
        """
        task = task_in(row.inputs, self.places.input)
        text = work_in(row.outputs, self.places.output)
        source = context_in(row.context) or self._source(row.inputs, row.outputs)
        if self.kind == "item":
            expected = None
            if row.reference and (row.called or self._names_reference):
                expected = expected_in(row.reference, self.places.reference)
            return item_for(self.judge, task, text, expected=expected, source=source)
        if self.baseline is not None:
            reference = self._reference(row.reference)
            other = work_in(self._other(row, self.baseline), self.places.output)
            return pair_for(task, text, other, reference=reference, source=source)
        if row.reference is None or row.reference == {}:
            raise InputError("`reference`: expected a text to compare with, got nothing")
        other = work_in(row.reference, self.places.reference, "reference")
        return pair_for(task, text, other, source=source)

    def sides(
        self, inputs: object, a: object, b: object, reference: object
    ) -> dict[str, object]:
        """Return the pair of two outputs for the same inputs, with the reference.

        Raises:
            InputError: A text cannot be found.
        """
        task = task_in(inputs, self.places.input)
        texts = [work_in(side, self.places.output) for side in (a, b)]
        source = self._source(inputs, None)
        return pair_for(task, *texts, reference=self._reference(reference), source=source)

    @property
    def _names_reference(self) -> bool:
        return self.places.reference is not None or wants_reference(self.judge)

    def _source(self, inputs: object, outputs: object) -> str | None:
        return source_in(inputs, outputs, self.places.context)

    def _reference(self, reference: object) -> str | None:
        if reference is None or reference == {}:
            return None
        return reference_in(reference, self.places.reference)

    def _other(self, row: EvaluatedRow, baseline: BaselineSource) -> object:
        if callable(baseline):
            return baseline(row.inputs)
        if row.example is None or row.example not in baseline:
            count = f"{len(baseline)}" if baseline else "none"
            raise InputError(
                f"`baseline`: expected outputs for example {row.example}, the mapping has "
                f"{count}"
            )
        return baseline[row.example]
