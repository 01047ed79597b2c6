"""Read a judge's pair or item from the arguments of an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langsmith.schemas import Run

from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import item_for, pair_for, wants_reference
from langchain_judges.integrations.child_runs import outputs_with_work
from langchain_judges.methods.marks import kind_of
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

BaselineSource = Mapping[str, Any] | Callable[[Any], Any]
"""Outputs to compare with, by the id of the example, or a function of the inputs."""


class TextSources(NamedTuple):
    """Where each text is found."""

    input: TextSource
    output: TextSource
    reference: TextSource
    context: TextSource


class EvaluatedRow(NamedTuple):
    """The fields of one evaluated row."""

    inputs: Any
    outputs: Any
    reference: Any = None
    example: str | None = None
    """The id of the data set's example."""
    context: Any = None
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

    def outputs(self, run: Run) -> Any:
        """Return a run's outputs, with the tools it used unless `output` is set."""
        return run.outputs if self.places.output else outputs_with_work(run)

    def case(self, row: EvaluatedRow) -> dict[str, Any]:
        """Return a `Pair` or an `Item`.

        Raises:
            InputError: A text cannot be found; the message says what was expected.
        """
        task = task_in(row.inputs, self.places.input)
        text = work_in(row.outputs, self.places.output)
        source = context_in(row.context) or self._source(row.inputs, row.outputs)
        if self.kind == "item":
            expected = (
                expected_in(row.reference, self.places.reference)
                if (row.reference and (row.called or self._names_reference))
                else None
            )
            return item_for(self.judge, task, text, expected=expected, source=source)
        if self.baseline is not None:
            reference = self._reference(row.reference)
            other = work_in(self._other(row.inputs, row.example), self.places.output)
            return pair_for(task, text, other, reference=reference, source=source)
        if row.reference is None or row.reference == {}:
            raise InputError("`reference`: expected a text to compare with, got nothing")
        other = work_in(row.reference, self.places.reference, "reference")
        return pair_for(task, text, other, source=source)

    def sides(self, inputs: Any, a: Any, b: Any, reference: Any) -> dict[str, Any]:
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

    def _source(self, inputs: Any, outputs: Any) -> str | None:
        return source_in(inputs, outputs, self.places.context)

    def _reference(self, reference: Any) -> str | None:
        if reference is None or reference == {}:
            return None
        return reference_in(reference, self.places.reference)

    def _other(self, inputs: Any, example: str | None) -> Any:
        assert self.baseline is not None  # noqa: S101 - for the type checker
        if callable(self.baseline):
            return self.baseline(inputs)
        if example is None or example not in self.baseline:
            count = f"{len(self.baseline)}" if self.baseline else "none"
            raise InputError(
                f"`baseline`: expected outputs for example {example}, the mapping has {count}"
            )
        return self.baseline[example]
