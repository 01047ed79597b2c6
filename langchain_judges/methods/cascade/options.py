"""The options of a cascade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Lt
from pydantic import SkipValidation, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.ensemble_options import (
    Combination,
    MemberLike,
    MembersLike,
)
from langchain_judges.options import NotSerialisable, Owner, Rule

Threshold = Annotated[float, Ge(0), Le(1)]


class Cascade(Combination):
    """Create a judge that asks a cheap judge, and the next one only if that one is unsure.

    "Trust or Escalate" (Jung, Brahman & Choi 2024, arXiv:2407.18370): a judge's verdict is
    accepted if its certainty is at least the threshold; otherwise the next judge is asked. The
    certainty (`metrics.certainty`) is the verdict's confidence: the probability of its label,
    or the agreement of samples or members; else whether both orders say the same. A judge that
    says nothing of it (one order, no log-probabilities) is never certain, and neither is a lead
    of scores, unless `calibrate_cascade` found the thresholds on labelled rows, with a
    guarantee on the agreement. Ours: the stages may be any judges, of any method.

    The judges are given as `members`, or as `first` and `then`. With `agreement` the cascade
    judges nothing until `calibrate_cascade` has found the thresholds that keep it.

    Attributes:
        first: In place of `members`: the judge that is asked first; a model judges with the
            method and options of `then`.
        then: The judge that is asked where `first` is unsure, or several in turn.
        agreement: The share of verdicts that must equal people's labels; the cascade judges
            after `calibrate_cascade`.
        thresholds: The lowest certainty at which a verdict is accepted: one number, or a list.
            Without a number the last judge always decides.
        calibration: Set by `calibrate_cascade`: its rows and the guarantee.

    Returns:
        A compiled graph to `{"verdict", "stage", "stages"}`: the verdict of the judge that
        decided (`stage`), and what each judge said that was asked. Where the last one has a
        threshold and is unsure too, the row is not judged (`unsure`).

    Raises:
        OptionError: An option is not allowed, or the judges do not fit together.
        ModelSetupError: A model cannot be made.
    """

    method = "cascade"
    summary = "Cascade: a cheap judge first, the next one only where it is unsure."
    default_methods = ("relative", "bsm")
    results = ("stages", "stage", "subscores")
    result_tables = {"stages": "Judges asked in turn"}

    first: Annotated[
        MemberLike | None, SkipValidation, NotSerialisable(), Rule("a judge or a model")
    ] = None
    then: Annotated[
        MembersLike | None, SkipValidation, NotSerialisable(), Rule("a judge, or several")
    ] = None
    agreement: Annotated[float, Gt(0), Lt(1)] | None = None
    thresholds: Annotated[
        Threshold | Sequence[Threshold | None],
        Owner(),
        Rule("a number from 0 to 1, or one for each judge (None: it never decides)"),
    ] = 0.5
    calibration: Annotated[
        Mapping[str, Any] | None, Owner(), Rule("what `calibrate_cascade` wrote, or None")
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Cascade:
        if (self.first is None) != (self.then is None):
            raise OptionError("`first` and `then` go together")
        if self.is_open and "thresholds" in self.model_fields_set:
            raise OptionError("give `thresholds`, or an `agreement` to find them for, not both")
        return self

    @property
    def is_open(self) -> bool:
        """Whether thresholds are still to be found for an agreement."""
        return self.agreement is not None and self.calibration is None

    def gates(self, size: int) -> list[float | None]:
        """The threshold of each judge; 0 of one that always decides.

        Args:
            size: How many judges there are.

        Raises:
            OptionError: There are more or fewer thresholds than judges.
        """
        if isinstance(self.thresholds, int | float):
            return [*[float(self.thresholds)] * (size - 1), 0.0]
        thresholds = list(self.thresholds)
        if len(thresholds) not in {size - 1, size}:
            raise OptionError(
                f"`thresholds` must be {size - 1}, or {size} where the last judge may abstain; "
                f"got {thresholds!r}"
            )
        return thresholds if len(thresholds) == size else [*thresholds, 0.0]

    def check_size(self, size: int) -> None:
        """Check that there is a threshold for each judge."""
        self.gates(size)
