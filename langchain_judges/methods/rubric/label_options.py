"""What the judges that label one text by criteria take."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_judges.errors import InputError
from langchain_judges.methods.options import JudgeOptions, Seed
from langchain_judges.methods.rubric.criteria import Criterion, LabelsLike
from langchain_judges.methods.rubric.prompts import PROMPTS
from langchain_judges.methods.rubric.ready import Needs, Rubric, ready
from langchain_judges.methods.rubric.replies import Explain
from langchain_judges.methods.rubric.tally import Scoring
from langchain_judges.options import Rule
from langchain_judges.verdict import Label

ExampleOrder = Literal["insertion", "shuffle", "modes"]
"""How examples are ordered: as recalled, by a seed, or in blocks of one failure mode."""
BASES: Mapping[str, str] = {"expected": "correctness", "source": "groundedness"}
"""What is judged where nobody says it, by what a row brings."""
_NEEDED: Mapping[Needs | None, str] = {
    None: "a reference to compare with, or a source to check against, or a `rubric` of its own "
    "(`expected`, `source`, `rubric`)",
    "expected": "a reference to compare with (`expected`)",
    "source": "a source to check against (`source`)",
}


class LabelOptions(JudgeOptions):
    """What the judges that label one text have in common."""

    takes = "item"
    templates = PROMPTS

    steps: Annotated[Sequence[str] | None, Rule("a list of texts")] = None
    """How to judge, step by step; default the rubric's own steps."""
    explain: Explain = "first"
    """When the reason is asked: `"first"`, before the label, `"after"` or `"none"`."""
    score: Scoring = "mean"
    """The score if the model gives log-probabilities: `"mean"`, the mean of the labels weighted
    by their probability (arXiv:2503.03064), or `"mode"`, only the label."""
    example_order: ExampleOrder = "insertion"
    """Order of remembered examples: `"insertion"` (as recalled), `"shuffle"` or `"modes"`."""
    seed: Seed = 0
    """Seed of the shuffling."""

    @property
    @abstractmethod
    def own_rubric(self) -> Rubric | None:
        """The rubric of the judge; None: by what a row brings."""

    @property
    @abstractmethod
    def own_labels(self) -> LabelsLike | None:
        """Labels of criteria without their own, and of ready rubrics."""

    @property
    def shows_criteria(self) -> bool:
        """Whether the prompt says what is judged."""
        return True

    @property
    def shows_steps(self) -> bool:
        """Whether the prompt says how to judge."""
        return True

    @property
    def shows_task(self) -> bool:
        """Whether the prompt shows the task."""
        return True

    @property
    def needs_source(self) -> bool:
        """Whether texts are compared with a source."""
        return self.own_rubric is not None and self.own_rubric.needs == "source"

    def rubric_of(self, item: Mapping[str, object]) -> Rubric:
        """Return what an item is judged by: its own rubric, the judge's, or what fits it.

        Raises:
            InputError: There is nothing to judge by.
        """
        if text := item.get("rubric"):
            return rubric_of_text(str(text), self.own_labels)
        if self.own_rubric:
            return self.own_rubric
        basis = next((field for field in BASES if item.get(field)), None)
        if basis is None:
            raise _nothing(None)
        return rubric_of_text(BASES[basis], self.own_labels)

    def check(self, item: Mapping[str, object]) -> None:
        """Check that an item brings what its rubric compares a text with.

        Raises:
            InputError: It does not, so any verdict would be a guess.
        """
        needs = self.rubric_of(item).needs
        if needs and not item.get(needs):
            raise _nothing(needs)

    @property
    def human_labels(self) -> tuple[Label, ...]:
        """What people's labels of a text may be; empty: anything, where there is a total."""
        rubric = self.own_rubric
        if rubric is None:
            return tuple(self.own_labels or (0, 1))
        return rubric.criteria[0].names if len(rubric.criteria) == 1 else ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The sub-scores that every row gets beside its total, by name."""
        criteria = self.own_rubric.criteria if self.own_rubric else ()
        return tuple(criterion.name for criterion in criteria if len(criteria) > 1)

    @property
    def compares(self) -> bool:
        """Whether it compares with a reference where it finds one."""
        return self.own_rubric is None or self.own_rubric.needs == "expected"


def rubric_of_text(text: str, labels: LabelsLike | None) -> Rubric:
    """Return the ready rubric of a name, or a text as a rubric of one criterion.

    Args:
        text: The name, or what is judged.
        labels: Labels to use instead of those of a ready rubric.
    """
    if rubric := ready(text):
        criteria = tuple(_relabelled(criterion, labels) for criterion in rubric.criteria)
        return rubric.model_copy(update={"criteria": criteria})
    criterion = Criterion(name="rubric", description=text.strip())
    return Rubric(criteria=(criterion.with_labels(labels) if labels else criterion,))


def _relabelled(criterion: Criterion, labels: LabelsLike | None) -> Criterion:
    if labels is None:
        return criterion
    same = list(map(str, labels)) == list(map(str, criterion.names))
    if same and not isinstance(labels, Mapping):
        return criterion  # what its labels mean stands in its file
    bare: dict[str, Any] = {"labels": None, "scale": None, "anchors": {}, "least": None}
    return Criterion(**{**dict(criterion), **bare}).with_labels(labels)


def _nothing(needs: Needs | None) -> InputError:
    return InputError(f"there is nothing to judge by: the judge needs {_NEEDED[needs]}")
