"""The judge beside people: their agreement, and whether it may replace one of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, Literal, TypeVar

import krippendorff
import numpy as np
import scipy
from typing_extensions import Unpack

from langchain_judges.metrics import agreement, contingency, inputs, intervals, result
from langchain_judges.metrics.inputs import Floats, GroupKeys, IntervalOptions, Judgments, Votes
from langchain_judges.verdict import Label

_NO_TWO_VOTES = "no row has answers of two people"


def people_agreement(
    votes: Votes, *, ties: agreement.Ties = "keep", **options: Unpack[IntervalOptions]
) -> result.Result:
    """Share of the pairs of people who agree on the same item.

    Not with a third vote asked only of the disputed items: `beside_people` allows for that.

    It is not a ceiling: people who are right four times in five agree two times in three, and a
    judge that knows the truth agrees with each of them four times in five.

    Args:
        votes: The list of people's votes on each item; all unordered pairs are compared.
        ties: `keep`, or `drop` to leave out votes that are ties.
        options: As for `rate`; by default each item is a cluster.

    Returns:
        The share in [0, 1] of `n` pairs of votes.

    Source: Zheng et al. 2023 (MT-Bench), human–human agreement.
    """
    inputs.one_of("ties", ties, agreement.Ties)
    people = [[v for v in own if ties == "keep" or v != "tie"] for own in inputs.votes_of(votes)]
    hits, options["groups"] = inputs.flat([_alike(own) for own in people], options.get("groups"))
    failed = {"fewer_than_two_votes": sum(len(own) < 2 for own in people)}
    if not hits:
        return result.Result.undefined(_NO_TWO_VOTES, n_failed=failed)
    return intervals.rate(hits, **options).replace(n_failed=failed)


def _alike(votes: Sequence[object]) -> list[float]:
    """The agreement of each two votes."""
    return [float(a == b) for a, b in combinations(votes, 2)]


# Which distances between labels count: none, those of ranks, or of numbers.
AlphaLevel = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True)
class ChanceCorrected(result.Findings):
    """Agreement of several people beyond chance; 1 is perfect.

    Attributes:
        alpha: Krippendorff's α.
        fleiss: Fleiss' κ, of categories.
        ac1: Gwet's AC1, of categories; it stays high where nearly all labels are the same one.
    """

    alpha: result.Result
    fleiss: result.Result
    ac1: result.Result


def people_beyond_chance(
    votes: Votes,
    level: AlphaLevel = "nominal",
    *,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> ChanceCorrected:
    """Chance-corrected agreement of people among themselves, each with its interval.

    Not to compare sets with different shares of labels: α and κ fall where one is rare.

    Args:
        votes: The votes of people on each item; items with fewer than two are left out.
        level: Which distances between labels α counts: `nominal` for categories, `ordinal` or
            `interval` for ratings.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Returns:
        Numbers over the `n` items with two votes or more; intervals by a jackknife over items
        or groups.

    Source: Krippendorff 2004, by the package krippendorff; Fleiss 1971; Gwet 2008.
    """
    intervals.check_shares(confidence=confidence)
    inputs.one_of("level", level, AlphaLevel)
    people: list[Any] = inputs.votes_of(votes)
    if level != "nominal":  # what a CSV has are texts
        people = [inputs.as_floats(own).tolist() for own in people]
    indices = [index for index, own in enumerate(people) if len(own) > 1]
    failed = {"fewer_than_two_votes": len(people) - len(indices)}
    classes = contingency.classes_of(vote for index in indices for vote in people[index])
    if len(classes) < 2:
        why = "people always give the same label" if indices else _NO_TWO_VOTES
        nothing = result.Result.undefined(why, n=len(indices), n_failed=failed)
        return ChanceCorrected(nothing, nothing, nothing)
    counts = np.asarray([[people[i].count(each) for each in classes] for i in indices], float)
    clusters = inputs.Cases([], np.asarray(indices), Counter(), len(people)).clusters(groups)
    values = _beyond_chance(counts, classes, level)
    most = max(10, min(100, 100_000 // len(counts)))
    without = intervals.jackknife(
        clusters, lambda kept: _beyond_chance(counts[kept], classes, level), most
    )
    few = _too_few(counts, len(without))
    results = []
    for value, rest in zip(values, without.T, strict=True):
        error = intervals.jackknife_spread(rest)
        half = error * intervals.student_quantile(confidence, max(1, len(without) - 1))
        interval = None if few or not error > 0 else result.Interval.around(value, half)
        interval = interval and interval.within(-1.0, 1.0)
        parts: Any = {"interval": interval, "no_interval": few or "no row changes it by itself"}
        results.append(result.Result(value, n=len(counts), n_failed=failed, **parts))
    return ChanceCorrected(*results)


def _too_few(counts: Floats, blocks: int) -> str | None:
    """The reason why a table of items by classes has no interval; None where it has."""
    off = counts.sum(axis=1) - counts[:, counts.sum(axis=0).argmax()]
    if blocks < intervals.LEAST_GROUPS:
        return "too few groups"
    if (off > 0).sum() < intervals.LEAST_APART:
        return f"fewer than {intervals.LEAST_APART} items have a label that differs from the rest"
    return None if (counts.max(axis=1) < counts.sum(axis=1)).sum() > 2 else "people hardly differ"


def _beyond_chance(
    counts: Floats, classes: Sequence[Any], level: AlphaLevel
) -> tuple[float, float, float]:
    """The α, κ and AC1 of a table of items by classes."""
    used = counts.sum(axis=0) > 0
    if used.sum() < 2:
        return math.nan, math.nan, math.nan
    table, there = counts[:, used], [c for c, u in zip(classes, used, strict=True) if u]
    domain = None if level == "nominal" else there
    alpha = krippendorff.alpha(value_counts=table, value_domain=domain, level_of_measurement=level)
    raters = table.sum(axis=1)
    alike = float(((table * (table - 1)).sum(axis=1) / (raters * (raters - 1))).mean())
    shares = (table / raters[:, None]).mean(axis=0)
    fleiss, gwet = (shares**2).sum(), (shares * (1 - shares)).sum() / (counts.shape[1] - 1)
    return float(alpha), (alike - fleiss) / (1 - fleiss), (alike - gwet) / (1 - gwet)


@dataclass(frozen=True)
class BesidePeople(result.Findings):
    """Comparison of a judge with one more person.

    Attributes:
        judge: Share of the items on which it agrees with a person.
        people: The same of another person, on the same votes.
        lead: `judge` − `people`, with its paired interval; 0 for a judge exchangeable with
            people.
        winning_rate: ω of the alternative annotator test, with the places in the lists as
            annotators.
        n: Items with two votes or more.
        called_in: Votes that do not count, as they were asked for only where others differ.
    """

    judge: result.Result
    people: result.Result
    lead: result.Result
    winning_rate: result.Result
    n: int
    n_failed: dict[str, int]
    called_in: int


def beside_people(
    judge: Judgments,
    votes: Votes,
    second: Judgments | None = None,
    **options: Unpack[IntervalOptions],
) -> BesidePeople:
    """Compare a judge's agreement with people to people's among themselves, item by item.

    Not with one vote per item: how people differ is then unknown.

    All votes count, however many an item has, unless items with the fewest are those on which
    people agree: where a third person is asked only if two disagree, the third is no sample of
    people, and makes a judge that is exchangeable with people seem better, or worse. Of each
    item then as many votes count as every item has, of those who answered most items; or, where
    nothing tells who was asked first, one of each kind.

    Args:
        judge: The judge's answer to each item, or verdicts or rows; a failed judgment
            agrees with nobody.
        votes: The votes of people on each item, each person in the same place, with None
            where one has no answer. Items with fewer than two are left out and counted.
        second: Its answer in the other order of the texts, if it was asked in both: each order
            is then held against people by itself, as a person sees the texts in one order, and
            `judge` is the answer in the first.
        options: `groups` and `confidence` of the intervals, as for `rate`.

    Source: exchangeability as in Calderon, Reichart & Dror 2025 (arXiv 2501.10970).
    """
    judgments, places = inputs.as_list(judge), [*map(inputs.by_place, inputs.as_list(votes))]
    groups = inputs.as_list(options.get("groups"))
    other = judgments if second is None else inputs.as_list(second)
    inputs.same_length(judge=judgments, votes=places, groups=groups, second=other)
    indices = [index for index, own in enumerate(places) if len(own) - own.count(None) > 1]
    counted = _sample_of_people(inputs.take(places, indices))
    rows = inputs.votes_of(counted)
    values, failed = inputs.values_of(inputs.take(judgments, indices))
    failed["fewer_than_two_votes"] = len(places) - len(indices)
    answers = [values, inputs.values_of(inputs.take(other, indices))[0]]
    ours = [
        fmean(sum(column[i] == vote for vote in own) / len(own) for column in answers)
        for i, own in enumerate(rows)
    ]
    theirs = [fmean(_alike(own)) for own in rows]
    options["groups"] = inputs.take(groups, indices)
    lead = intervals.paired_difference(ours, theirs, spread=1.0, **options)
    stand_in = alt_test(values, dict(enumerate(zip(*counted, strict=True))))
    given = sum(map(len, inputs.votes_of(inputs.take(places, indices))))
    return BesidePeople(
        judge=intervals.rate(ours, **options).replace(n_failed=failed),
        people=intervals.rate(theirs, **options).replace(n_failed=failed),
        lead=lead.replace(n_failed=failed),
        winning_rate=stand_in.winning_rate,
        n=len(indices),
        n_failed=dict(+failed),
        called_in=given - sum(map(len, rows)),
    )


def _sample_of_people(people: Sequence[list[Label | None]]) -> list[list[Label | None]]:
    """The votes on each item that count, in equal places; None instead of any other."""
    votes, width = inputs.votes_of(people), max(map(len, people), default=0)
    rows = [[*row, *[None] * (width - len(row))] for row in people]
    there = np.asarray([[vote is not None for vote in row] for row in rows], bool)
    given, sizes = there.sum(axis=0), there.sum(axis=-1)
    fewest = min(map(len, votes), default=0)
    # As many as every item has, of the same people: a third who is careless is no referee.
    first: Any = given >= np.sort(there * given)[..., -fewest:][..., :1]  # as often is alike
    if fewest == 2 and all((len({*own}) == 1) is (len(own) == 2) for own in votes):
        both = zip(rows, votes, strict=True)
        first = [
            [len(own) == 2 or row.index(v) == i for i, v in enumerate(row)] for row, own in both
        ]
    masked = zip(rows, there & first, strict=True)
    kept = [[v if mark else None for v, mark in zip(*each, strict=True)] for each in masked]
    alike = np.asarray([fmean(_alike(own)) for own in inputs.votes_of(kept)])
    return kept if _agree_more(alike[sizes == fewest], alike[sizes > fewest]) else rows


def _agree_more(short: Floats, long: Floats) -> bool:
    """Whether people agree more often on items with few votes than chance explains."""
    hits, share = short.sum(), (long.sum() + 1) / (len(long) + 2)
    chance = scipy.special.betainc(hits, len(short) - hits + 1, share)
    return bool(len(long) and hits and chance < 0.02)


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Annotator(result.Findings):
    """Comparison of the judge with one annotator.

    Attributes:
        advantage: Share of items on which the judge is at least as close to the others, ρ_j.
        rival: The same share of the annotator.
        p: One-sided p of the t-test that the judge falls short by ε or more.
        rejected: Whether that is rejected, after Benjamini & Yekutieli.
    """

    advantage: result.Result
    rival: float
    p: float
    rejected: bool


@dataclass(frozen=True)
class AltTest(result.Findings):
    """May the judge stand in for an annotator?

    Attributes:
        winning_rate: ω: the share of annotators that the judge may replace.
        advantage: ρ: the mean probability that the judge is at least as good as an annotator.
        passed: ω ≥ 0.5; None if no annotator has enough items.
        n: Annotators that were tested.
    """

    winning_rate: result.Result
    advantage: result.Result
    passed: bool | None
    annotators: Mapping[Hashable, Annotator]
    n: int
    n_failed: dict[str, int]


def alt_test(
    judge: Judgments,
    annotations: Mapping[Name, Sequence[inputs.Judgment]],
    epsilon: float = 0.2,
    *,
    level: float = 0.05,
    least_items: int = 30,
) -> AltTest:
    """Test whether the judge agrees with annotators as well as any of them does.

    Not with fewer than 30 items per annotator, nor for annotators who copied each other.

    Each annotator is left out in turn; on every item the judge and the annotator are scored
    against the rest.

    Args:
        judge: The judge's answer to each item, or verdicts or rows; None is left out.
        annotations: By annotator one answer for each item; None where there is none.
        epsilon: How much worse the judge may be, because it costs less: 0.2 against experts,
            0.15 against trained annotators, 0.1 against the crowd.
        level: q of Benjamini & Yekutieli over the annotators.
        least_items: Annotators with fewer items in common with others are not tested.

    Source: Calderon, Reichart & Dror 2025 (arXiv 2501.10970).
    """
    answers, failed = inputs.values_of(judge)
    rows = {name: inputs.values_of(row)[0] for name, row in annotations.items()}
    inputs.same_length(judge=answers, **{str(name): row for name, row in rows.items()})
    given = [Counter(each) for each in zip(*rows.values(), strict=True)]
    contests = {name: _contests(answers, row, given) for name, row in rows.items()}
    tested = {name: pairs for name, pairs in contests.items() if len(pairs) >= max(2, least_items)}
    failed["annotator_with_few_items"] = len(rows) - len(tested)
    failures = dict(+failed)
    if not tested:
        nobody = result.Result.undefined("no annotator has enough items", n_failed=failures)
        return AltTest(nobody, nobody, None, {}, 0, failures)
    p_values = [_shortfall_p(pairs[:, 0] - pairs[:, 1], epsilon) for pairs in tested.values()]
    adjusted = scipy.stats.false_discovery_control(p_values, method="by")
    rejected = [bool(p <= level) for p in adjusted]
    advantages: dict[Hashable, Annotator] = {}
    for (name, pairs), p, hit in zip(tested.items(), p_values, rejected, strict=True):
        own, theirs = pairs.mean(axis=0).tolist()
        advantages[name] = Annotator(result.Result(own, n=len(pairs)), theirs, p, hit)
    omega = sum(rejected) / len(rejected)
    rho = float(np.mean([float(a.advantage) for a in advantages.values()]))
    n = len(tested)
    wins, lead = (result.Result(each, n=n, n_failed=failures) for each in (omega, rho))
    return AltTest(wins, lead, omega >= 0.5, advantages, n, failures)


Given = Sequence[Label | None]


def _contests(answers: Given, row: Given, given: Sequence[Counter[Label | None]]) -> Floats:
    """W^f and W^h (columns) of the items that judge, annotator and another answered.

    Args:
        answers: The judge's.
        row: The annotator's.
        given: How often all annotators gave each answer to an item.
    """
    pairs = []
    for answer, own, counts in zip(answers, row, given, strict=True):
        others = counts.total() - counts[None] - 1
        if answer is None or own is None or not others:
            continue
        ours, theirs = counts[answer] - (answer == own), counts[own] - 1
        pairs.append((float(ours >= theirs), float(theirs >= ours)))
    return np.asarray(pairs)


def _shortfall_p(lead: Floats, epsilon: float) -> float:
    """The one-sided p of mean(W^h − W^f) ≥ ε, by Student's t."""
    if np.ptp(lead) == 0:
        return 0.0 if -lead[0] < epsilon else 1.0
    error = float(lead.std(ddof=1)) / math.sqrt(len(lead))
    return float(scipy.special.stdtr(len(lead) - 1, (-float(lead.mean()) - epsilon) / error))
