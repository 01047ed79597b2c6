"""How criteria, labels and steps are said in a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_judges.methods.rubric.criteria import Criterion
from langchain_judges.methods.rubric.prompts import CRITERION, FINAL
from langchain_judges.rows.checks import expected_answers
from langchain_judges.verdict import Label

_LISTED = 11
"""Labels that are named one by one; of more, the ends."""
_UNNAMED = "rubric"
"""The name of a criterion that has none of its own."""


def label_words(criterion: Criterion) -> str:
    """Return the labels as a prompt names them, with what they mean.

    >>> label_words(Criterion(name="Tone", labels=["rude", "neutral", "polite"]))
    'rude, neutral or polite (from rude, the lowest, to polite, the highest)'
    """
    names = [str(label) for label in criterion.names]
    listed = " or ".join([", ".join(names[:-1]), names[-1]])
    if len(names) > _LISTED:
        listed = f"a whole number from {names[0]} to {names[-1]}"
    meanings = [f"{name}: {meaning}" for name, meaning in criterion.meanings.items()]
    if meanings:
        between = _between(names, criterion.meanings)
        return f"{listed} ({'; '.join(meanings)}{between})"
    if len(names) == 2 and not criterion.is_graded:
        return listed
    return f"{listed} (from {names[0]}, the lowest, to {names[-1]}, the highest)"


def _between(names: Sequence[str], meanings: Mapping[Label, str]) -> str:
    """Say what labels mean that have no meaning of their own, where both ends have one."""
    ends = {names[0], names[-1]} <= {str(name) for name in meanings}
    return "; the others lie between" if ends and len(meanings) < len(names) else ""


def criterion_words(criterion: Criterion) -> str:
    """Return what is judged, where it is asked alone."""
    name, description = criterion.name, criterion.description
    if name.casefold() == _UNNAMED and description:
        return description
    return f"{name}: {description}" if description else f"The criterion: {name}"


def listed_criteria(criteria: Sequence[Criterion]) -> str:
    """Return several criteria as one prompt lists them."""
    return "\n\n".join(
        CRITERION.format(
            number=number,
            name=criterion.name,
            description=f": {criterion.description}" if criterion.description else "",
            labels=label_words(criterion),
        )
        for number, criterion in enumerate(criteria, 1)
    )


def numbered_steps(
    steps: Sequence[str], item: Mapping[str, object], *, several: bool, examples: str
) -> str:
    """Return how to judge, step by step, by what is shown.

    Args:
        steps: Those of the rubric or of the caller; none: those that fit any rubric.
        item: What is judged.
        several: Whether several criteria are asked at once.
        examples: The step that reads the examples that are shown; empty without.
    """
    first, *others = steps or (_reading(item, several), *FINAL[several])
    sequence = [first, *([examples] if examples else []), *others]
    return "\n".join(f"{number}. {step}" for number, step in enumerate(sequence, 1))


def _reading(item: Mapping[str, object], several: bool) -> str:
    """Say what to read: each text that is shown, for what it is."""
    source = item.get("source")
    answers = len(expected_answers(item))
    what = ["the criteria" if several else "the criterion", "the task"]
    if source:
        what.append("the source that the response may draw on")
    if answers:
        good = (
            ("answer", "a known good one") if answers == 1 else ("answers", "known good ones")
        )
        what.append(f"the expected {good[0]} ({good[1]})")
    return f"Read {', '.join(what)} and the response."
