"""Prompts of the judges that label one text by criteria; their words are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.methods import declaration, pairs
from langchain_judges.methods.rubric.criteria import Criterion

# Every prompt that asks for labels, by name.
PROMPTS = pairs.prompts_in("rubric/prompts.yaml", "rubric")
# Every prompt of a judge by one criterion that may leave out the task.
ANSWER_PROMPTS = pairs.prompts_in("rubric/prompts.yaml", "answer")
# Every prompt that asks claim by claim.
CLAIM_PROMPTS = pairs.prompts_in("rubric/prompts.yaml", "claims")

# What the prompts are filled with.
WORDS = pairs.words_in("rubric/prompts.yaml")
# The label of a text that cannot be assessed, where a judge may abstain.
CANNOT_ASSESS = "cannot_assess"
# Labels that are named one by one; of more, the ends.
_LISTED = 11
# The name of a criterion that has none of its own.
_UNNAMED = "rubric"


def label_words(criterion: Criterion) -> str:
    """The labels as a prompt names them, with what they mean, and when there is none.

    >>> label_words(Criterion(name="Topic", labels=["billing", "shipping", "other"]))
    'billing, shipping or other'
    >>> label_words(Criterion(name="Errors", labels=[0, 1, 2], best=0))
    '2, 1 or 0 (2 scores lowest, 0 highest)'
    """
    return _told(criterion) + (criterion.unless and f"; {CANNOT_ASSESS}: {criterion.unless}")


def _told(criterion: Criterion) -> str:
    names = [str(label) for label in criterion.names]
    listed = " or ".join([", ".join(names[:-1]), names[-1]])
    if len(names) > _LISTED:
        listed = f"a whole number from {names[0]} to {names[-1]}"
    meanings = [f"{name}: {meaning}" for name, meaning in criterion.meanings.items()]
    if len(meanings) == len(names):
        return "; ".join(meanings)
    if meanings:
        ends = {names[0], names[-1]} <= {str(name) for name in criterion.meanings}
        return f"{listed} ({'; '.join(meanings)}{'; the others lie between' if ends else ''})"
    if criterion.best is None and not criterion.is_graded:
        return listed
    return f"{listed} ({names[0]} scores lowest, {names[-1]} highest)"


def criterion_words(criterion: Criterion) -> str:
    """The words on what is judged, where it is asked alone."""
    name, description = criterion.name, criterion.description
    if name.casefold() == _UNNAMED and description:
        return description
    return declaration.with_name(name, description)


def listed_criteria(criteria: Sequence[Criterion]) -> str:
    """Several criteria as one prompt lists them."""
    words = WORDS["listed"].format
    about = [(declaration.with_name(c.name, c.description), label_words(c)) for c in criteria]
    listed = (words(number=n, criterion=c, labels=own) for n, (c, own) in enumerate(about, 1))
    return "\n\n".join(listed)


def numbered_steps(steps: Sequence[str], note: str) -> str:
    """The steps by which to judge, and a note on the examples that are shown."""
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "".join(f"\n\n{part}" for part in ("\n".join(lines), note) if part)
