"""The judge beside people: how often they agree, and whether it does as well as one more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from langchain_judges.errors import OptionError
from langchain_judges.metrics.agreement import Ties
from langchain_judges.metrics.alttest import alt_test
from langchain_judges.metrics.arguments import GroupKeys, IntervalOptions, Judgments, Votes
from langchain_judges.metrics.inputs import (
    as_list,
    flat,
    one_of,
    same_length,
    take,
    values_of,
    votes_of,
)
from langchain_judges.metrics.intervals import paired_difference, rate
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.verdict import Label


def people_agreement(
    votes: Votes, *, ties: Ties = "keep", groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return how often two people agree on the same item.

    It is no ceiling: people who are right four times in five agree two times in three, and a
    judge that knows the truth agrees with each of them four times in five. See
    `oracle_agreement` for the most that any judge can reach.

    Args:
        votes: The list of people's votes on each item; all unordered pairs are compared.
        ties: `keep`, or `drop` to leave out votes that are ties.
        groups: The cluster of each item; by default each item is one.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` pairs of votes.

    Source: Zheng et al. 2023 (MT-Bench), human–human agreement.
    """
    one_of("ties", ties, Ties)
    people = [
        [vote for vote in own if ties == "keep" or vote != "tie"] for own in votes_of(votes)
    ]
    hits, clusters = flat([_alike(own) for own in people], groups)
    failed = {"fewer_than_two_votes": sum(len(own) < 2 for own in people)}
    if not hits:
        return Result.undefined("no item has two votes", n_failed=failed)
    agreement = rate(hits, groups=clusters, confidence=confidence)
    return agreement.replace(n_failed=failed)


def _alike(votes: Sequence[Label]) -> list[float]:
    """Return for each two votes whether they are the same."""
    return [float(a == b) for a, b in combinations(votes, 2)]


def oracle_agreement(
    votes: Votes, *, groups: GroupKeys = None, confidence: float = 0.95
) -> Result:
    """Return the share of these votes that the best answers of all match: nobody matches more.

    The best answer to an item is its most frequent vote. With one or two votes an item it is
    high by itself, for every lone vote is matched.

    Args:
        votes: The list of people's votes on each item.
        groups: The cluster of each item; by default the votes on one item are a cluster.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` votes, an upper bound of `vote_agreement` on them.
    """
    people = votes_of(votes)
    matched = [max(Counter(own).values(), default=0) for own in people]
    rows = [
        [1.0] * most + [0.0] * (len(own) - most)
        for own, most in zip(people, matched, strict=True)
    ]
    hits, clusters = flat(rows, groups)
    return rate(hits, groups=clusters, confidence=confidence)


@dataclass(frozen=True)
class BesidePeople(Findings):
    """How a judge does in the place of one more person."""

    judge: Result
    """How often it says what a person says, every item counted alike."""
    people: Result
    """How often another person says it, on the same votes."""
    lead: Result
    """`judge` − `people`, with its paired interval; 0 for a judge exchangeable with people."""
    margin: float
    non_inferior: bool | None
    """Whether the whole interval lies above −`margin`; None without an interval."""
    winning_rate: Result
    """ω of the alternative annotator test, with the places in the lists as annotators."""
    n: int
    """Items with two votes."""
    n_failed: dict[str, int]


def beside_people(
    judge: Judgments,
    votes: Votes,
    *,
    margin: float = 0.05,
    groups: GroupKeys = None,
    confidence: float = 0.95,
) -> BesidePeople:
    """Compare a judge's agreement with people to people's among themselves, item by item.

    On every item the same number of votes counts: as many as every item has, the first ones.
    Where a third person is asked only if two disagree, the later votes are no sample of people:
    counting them makes a judge that is exchangeable with people seem better, or worse. Where
    the votes show that rule but not their order, the two of which the third was asked are
    taken, one of each kind.

    Args:
        judge: The judge's answer to each item, or verdicts or rows; a failed judgment
            agrees with nobody.
        votes: The votes of people on each item, first those that were always asked for.
            Items with fewer than two are left out and counted.
        margin: How far below people a judge may be and still count as no worse.
        groups: The cluster of each item, for the intervals.
        confidence: The level of the intervals.

    Source: exchangeability as in Calderon, Reichart & Dror 2025 (arXiv 2501.10970);
    non-inferiority by the interval as in Wellek 2010.
    """
    if not 0 <= margin < 1:
        raise OptionError(f"`margin` must lie in [0, 1), got {margin!r}")
    judgments, people, clusters = as_list(judge), votes_of(votes), as_list(groups)
    same_length(judge=judgments, votes=people, groups=clusters)
    indices = [index for index, own in enumerate(people) if len(own) > 1]
    rows = _comparable(take(people, indices))
    values, failed = values_of(take(judgments, indices))
    failed["fewer_than_two_votes"] = len(people) - len(indices)
    ours = [
        sum(value == vote for vote in own) / len(own)
        for value, own in zip(values, rows, strict=True)
    ]
    theirs = [fmean(_alike(own)) for own in rows]
    options = IntervalOptions(groups=take(clusters, indices), confidence=confidence)
    lead = paired_difference(ours, theirs, **options)
    places = range(max(map(len, rows), default=0))
    stand_in = alt_test(values, {place: [own[place] for own in rows] for place in places})
    return BesidePeople(
        judge=rate(ours, **options).replace(n_failed=failed),
        people=rate(theirs, **options).replace(n_failed=failed),
        lead=lead.replace(n_failed=failed),
        margin=margin,
        non_inferior=None if lead.interval is None else lead.interval.low > -margin,
        winning_rate=stand_in.winning_rate,
        n=len(indices),
        n_failed=dict(+failed),
    )


def _comparable(people: Sequence[list[Label]]) -> list[list[Label]]:
    """Return as many votes of each item as every item has, without those of a referee."""
    fewest = min(map(len, people), default=0)
    two = [row for row in people if len(row) == 2]
    more = [row for row in people if len(row) > 2]
    alike = all(len(set(row)) == 1 for row in two)
    refereed = bool(two and more) and alike and all(len(set(row)) > 1 for row in more)
    if refereed:
        return [list(dict.fromkeys(row))[:2] if len(row) > 2 else row for row in people]
    return [row[:fewest] for row in people]
