"""What an aid does to people's decisions, and what plans of criteria have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from langchain_judges.errors import OptionError
from langchain_judges.metrics.arguments import (
    GroupKeys,
    IntervalOptions,
    Judgments,
    RightLabels,
)
from langchain_judges.metrics.cases import match_all
from langchain_judges.metrics.inputs import as_list, same_length, take
from langchain_judges.metrics.intervals import mean, paired_difference
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Label

T = TypeVar("T")


@dataclass(frozen=True)
class DecisionAid(Findings):
    """What seeing an aid did to people's answers: right is +1, a tie 0, wrong −1."""

    before: Result
    """The mean score before, in [−1, 1]."""
    after: Result
    mean_change: Result
    """After − before over the answers given both times, with its interval."""
    wrong_to_right: int
    right_to_wrong: int
    n: int
    n_failed: dict[str, int]


def decision_aid(
    before: Judgments,
    after: Judgments,
    truth: RightLabels,
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> DecisionAid:
    """Measure whether an aid, such as a comparison table, helps people to decide.

    Args:
        before: Each person's answer before seeing the aid: `A`, `B`, `tie` or None.
        after: The same person's answer to the same item after seeing it.
        truth: The right answer, `A` or `B`.
        groups: The cluster of each answer, such as its question, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Mean scores, their change, and how many answers went from wrong to right and back.
        A right answer is +1 also where it is a tie. See `decision_aid_by_arm` for several.

    Source: the human study of the Structured Comparative reasoning paper (SC²), Figure 4.
    """
    earlier, later, truths = as_list(before), as_list(after), as_list(truth)
    clusters = as_list(groups)
    same_length(before=earlier, after=later, truth=truths, groups=clusters)
    cases = match_all([earlier, later], truths)
    *answers, labels = cases.columns
    old, new = (
        [_points(answer, label) for answer, label in zip(column, labels, strict=True)]
        for column in answers
    )
    options = IntervalOptions(groups=take(clusters, cases.indices), confidence=confidence)
    moves = Counter(zip(old, new, strict=True))
    return DecisionAid(
        before=mean(old, **options),
        after=mean(new, **options),
        mean_change=paired_difference(new, old, **options),
        wrong_to_right=moves[-1, 1],
        right_to_wrong=moves[1, -1],
        n=cases.n,
        n_failed=dict(cases.failed),
    )


def _points(answer: Label, label: Label) -> int:
    if answer == label:
        return 1
    return 0 if answer == "tie" else -1


def decision_aid_by_arm(
    before: Judgments, after: Judgments, truth: RightLabels, arms: Iterable[T]
) -> dict[T, DecisionAid]:
    """Measure each arm of a study on its own, such as one table against eight.

    Args:
        before: As for `decision_aid`.
        after: As for `decision_aid`.
        truth: As for `decision_aid`.
        arms: The arm of each answer.
    """
    earlier, later, truths = as_list(before), as_list(after), as_list(truth)
    places: dict[T, list[int]] = {}
    for place, (arm, *_) in enumerate(zip(arms, earlier, later, truths, strict=True)):
        places.setdefault(arm, []).append(place)
    return {
        arm: decision_aid(take(earlier, own), take(later, own), take(truths, own))
        for arm, own in places.items()
    }


@dataclass(frozen=True)
class PlanOverlap(Findings):
    """Which criteria the plans of each category share."""

    most_common: dict[str, list[tuple[str, int]]]
    """By category, the most common criteria and in how many of its plans they stand."""
    plans: dict[str, int]
    """By category, how many plans it has."""
    overlap: dict[str, dict[str, float]]
    """Jaccard index of the most common criteria of two categories, in [0, 1]."""
    n: int
    n_failed: dict[str, int]


def plan_overlap(
    plans: Iterable[Sequence[str | Mapping[str, object]] | None],
    categories: Iterable[object],
    top: int = 10,
) -> PlanOverlap:
    """Count the criteria that plans name, and compare categories by their most common ones.

    Args:
        plans: The criteria of each item: their names, or mappings with a `name`; names are
            compared without regard to case and outer spaces, a name counts once for a plan.
            None or an empty plan is left out.
        categories: The category of each item.
        top: How many of the most common criteria stand for a category; equal counts are taken
            in the order of their names.

    Source: the analysis of plans in Saha et al. 2023 (criteria by category); the Jaccard
    index is ours.
    """
    if top < 1:
        raise OptionError(f"`top` must be at least 1, got {top!r}")
    counts: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    empty = 0
    for plan, category in zip(plans, categories, strict=True):
        names = {_name(criterion) for criterion in plan or []} - {""}
        if not names:
            empty += 1
            continue
        sizes[str(category)] += 1
        counts.setdefault(str(category), Counter()).update(names)
    most_common = {
        category: sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:top]
        for category, words in sorted(counts.items())
    }
    names_by_category = {
        category: {name for name, _ in pairs} for category, pairs in most_common.items()
    }
    overlap = {
        one: {other: len(a & b) / len(a | b) for other, b in names_by_category.items()}
        for one, a in names_by_category.items()
    }
    failed = {"no_plan": empty} if empty else {}
    return PlanOverlap(most_common, dict(sorted(sizes.items())), overlap, sizes.total(), failed)


def _name(criterion: str | Mapping[str, object]) -> str:
    name = criterion["name"] if isinstance(criterion, Mapping) else criterion
    return " ".join(str(name).split()).casefold()
