"""Does the judge say what people say? Shares of agreement, and agreement beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from langchain_judges.metrics.inputs import (
    NO_LABEL,
    as_list,
    as_votes,
    is_missing,
    one_of,
    same_length,
    value_of,
)
from langchain_judges.metrics.intervals import rate
from langchain_judges.metrics.result import Result
from langchain_judges.orders import combine
from langchain_judges.verdict import Preference

Errors = Literal["wrong", "drop"]
"""Whether a failed judgment counts as a wrong one, as in the papers, or is left out."""

Ties = Literal["keep", "drop"]
"""Whether a tie is an answer like the others, or ties of people and judge are left out."""

OrdersRule = Literal["both_right", "mean_of_orders", "sign_of_sum", "strict"]
"""How the answers in two orders are scored against one label."""


def share(
    hits: Iterable[float | None],
    failed: Counter[str],
    errors: str,
    groups: Iterable[Any] | None,
    confidence: float,
) -> Result:
    """Return the share of hits; None is a failed judgment, and `failed` says why those did."""
    one_of("errors", errors, Errors)
    counts = [0.0 if hit is None and errors == "wrong" else hit for hit in hits]
    agreement = rate(counts, groups=groups, confidence=confidence)
    if not agreement.n:
        why = "no judged items" if failed.total() else "no items"
        return Result.undefined(why, n_failed=failed)
    return agreement.with_failed(failed)


def labelled(
    judge: Iterable[Any], labels: Iterable[Any], groups: Iterable[Any] | None
) -> tuple[list[tuple[Any, Any]], Counter[str], list[Any] | None]:
    """Return (judgment or None, label) of the labelled items, what failed, their groups."""
    answers, truths = as_list(judge), as_list(labels)
    clusters = None if groups is None else as_list(groups)
    same_length(judge=answers, labels=truths, groups=clusters)
    indices = [index for index, label in enumerate(truths) if not is_missing(label)]
    read = [value_of(answers[index]) for index in indices]
    failed = Counter(reason for value, reason in read if value is None)
    if len(indices) < len(truths):
        failed[NO_LABEL] = len(truths) - len(indices)
    pairs = [(value, truths[index]) for index, (value, _) in zip(indices, read, strict=True)]
    return pairs, failed, clusters and [clusters[index] for index in indices]


def accuracy(
    preferences: Iterable[Any],
    labels: Iterable[Any],
    errors: Errors = "wrong",
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the share of items on which the judge says what the label says: correct / all.

    Args:
        preferences: `A`, `B`, `tie` or None (not judged) for each item; or verdicts, or rows
            of `judge_many`, whose failures then give the reasons; or labels of any kind.
        labels: The right answer to each item; an item without one (None) is left out. A tie
            is right only where the label is a tie.
        errors: `wrong` counts a failed judgment as wrong, `drop` leaves it out.
        groups: The cluster of each item, such as its question, for the interval.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` items, with Wilson's interval. `n_failed` counts failed
        judgments under either setting.

    Source: every paper's accuracy; with one label for each item also the agreement "Ag" of
    Saha et al. 2023.
    """
    pairs, failed, clusters = labelled(preferences, labels, groups)
    hits = [None if value is None else float(value == label) for value, label in pairs]
    return share(hits, failed, errors, clusters, confidence)


class OrderAgreement(Result):
    """How often both orders give the same answer.

    Attributes:
        with_unread: The share if an item on which both orders failed counts as agreeing, as
            LLMBar's own figures have it; NaN without items.
    """

    with_unread: float


def order_agreement(
    first: Iterable[Any],
    second: Iterable[Any],
    errors: Errors = "wrong",
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> OrderAgreement:
    """Return the share of items on which both orders give the same answer.

    Args:
        first: The preference in the order AB, by identity of the text, for each item.
        second: The preference in the order BA, by identity too.
        errors: `wrong` counts an item as disagreeing if an order failed, even if both did;
            `drop` leaves it out.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` items. `n_failed` has the reason of the first failed order.

    Source: Zeng et al. 2023 (LLMBar). Its own figures count two failed orders as agreement;
    here that is `with_unread`.
    """
    pairs, failed = in_both_orders(first, second)
    hits = [None if None in pair else float(pair[0] == pair[1]) for pair in pairs]
    agreement = share(hits, failed, errors, groups, confidence)
    alike = sum(one == other for one, other in pairs)
    more = {"with_unread": alike / len(pairs) if pairs else math.nan}
    return OrderAgreement(float(agreement), **{**agreement.__dict__, **more})


def in_both_orders(
    first: Iterable[Any], second: Iterable[Any]
) -> tuple[list[tuple[Any, Any]], Counter[str]]:
    """Return what both orders say of each item, and why those that failed did."""
    ours, theirs = as_list(first), as_list(second)
    same_length(first=ours, second=theirs)
    pairs, failed = [], Counter[str]()
    for one, other in zip(ours, theirs, strict=True):
        (a, why_a), (b, why_b) = value_of(one), value_of(other)
        pairs.append((a, b))
        if a is None or b is None:
            failed[why_a if a is None else why_b] += 1
    return pairs, failed


def order_accuracy(  # noqa: PLR0913 - what is measured, and two knobs of its interval
    first: Iterable[Any],
    second: Iterable[Any],
    labels: Iterable[Any],
    rule: OrdersRule = "both_right",
    errors: Errors = "wrong",
    *,
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the accuracy of a judge that was asked in both orders, by one of the rules in use.

    Args:
        first: The preference in the order AB, by identity of the text.
        second: The preference in the order BA, by identity.
        labels: The right answer to each item; None leaves the item out.
        rule: `both_right`: right in both orders (LLMBar); `mean_of_orders`: the mean of
            the two accuracies (LLMBar); `sign_of_sum`: win, tie and loss summed, and the sign
            compared (JudgeBench); `strict`: a winner only if both orders agree, else a tie
            (Saha et al. 2023, Algorithm 1; MT-Bench).
        errors: `wrong` counts a failed order as not right (under the last two rules the
            item), `drop` leaves the item out.
        groups: The cluster of each item, for the interval.
        confidence: The level of the interval.
    """
    one_of("rule", rule, OrdersRule)
    ours, theirs, truths = as_list(first), as_list(second), as_list(labels)
    clusters = None if groups is None else as_list(groups)
    same_length(first=ours, second=theirs, labels=truths, groups=clusters)
    indices = [index for index, label in enumerate(truths) if not is_missing(label)]
    pairs, failed = in_both_orders([ours[i] for i in indices], [theirs[i] for i in indices])
    if len(indices) < len(truths):
        failed[NO_LABEL] = len(truths) - len(indices)
    hits = [
        _score(rule, pair, truths[i], errors) for pair, i in zip(pairs, indices, strict=True)
    ]
    return share(hits, failed, errors, clusters and [clusters[i] for i in indices], confidence)


def _score(rule: str, pair: tuple[Any, Any], label: Any, errors: str) -> float | None:
    if None in pair and (errors == "drop" or rule in ("sign_of_sum", "strict")):
        return None
    right = [bool(answer == label) for answer in pair]
    if rule == "both_right":
        return float(all(right))
    if rule == "mean_of_orders":
        return sum(right) / 2
    outcome = combine("strict" if rule == "strict" else "lenient", pair)
    return float(bool(outcome == label))


def majority_vote(votes: Iterable[Preference | None]) -> Preference | None:
    """Return the answer with most votes; equal counts are a tie, no votes None.

    Source: the majority variant of Saha et al. 2023 (Table 9); equal counts are our reading.
    """
    counts = Counter(as_votes(votes)).most_common()
    if not counts:
        return None
    return "tie" if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


def vote_agreement(
    preferences: Iterable[Any],
    votes: Iterable[Sequence[Preference | None]],
    *,
    ties: Ties = "keep",
    errors: Errors = "wrong",
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the share of people's votes that the judge's verdict matches, each on its own.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows.
        votes: The list of people's votes on each item, or its only vote; items without a vote
            are left out.
        ties: `keep` matches a tie with a tie (setup 1 of MT-Bench, what Saha et al. report);
            `drop` leaves out votes and verdicts that are ties (setup 2).
        errors: `wrong` counts the votes on a failed judgment as not matched; `drop` leaves
            them out. `n_failed` counts judgments, not votes.
        groups: The cluster of each item; by default the votes on one item are a cluster.
        confidence: The level of the interval.

    Returns:
        The share in [0, 1] of `n` votes.

    Source: "Ag" of Saha et al. 2023; Zheng et al. 2023 (MT-Bench), `compute_agreement`.
    """
    one_of("ties", ties, Ties)
    people = [as_votes(votes_of_row) for votes_of_row in as_list(votes)]
    labels = [row or None for row in people]
    clusters = range(len(people)) if groups is None else groups
    pairs, failed, keys = labelled(preferences, labels, clusters)
    hits: list[float | None] = []
    spread: list[Any] = []
    for (value, row), key in zip(pairs, keys or [], strict=True):
        for vote in row:
            if ties == "drop" and "tie" in (vote, value):
                continue
            hits.append(None if value is None else float(vote == value))
            spread.append(key)
    return share(hits, failed, errors, spread, confidence)


def majority_agreement(
    preferences: Iterable[Any],
    votes: Iterable[Sequence[Preference | None]],
    *,
    ties: Ties = "keep",
    errors: Errors = "wrong",
    groups: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Result:
    """Return the share of items on which the judge agrees with the majority of the votes.

    Arguments as for `vote_agreement`; `n` counts items.

    Source: Saha et al. 2023, Table 9.
    """
    one_of("ties", ties, Ties)
    answers, labels = as_list(preferences), [majority_vote(row) for row in as_list(votes)]
    clusters = None if groups is None else as_list(groups)
    same_length(preferences=answers, votes=labels, groups=clusters)
    if ties == "drop":
        indices = [
            i for i, label in enumerate(labels) if "tie" not in (label, value_of(answers[i])[0])
        ]
        answers, labels = [answers[i] for i in indices], [labels[i] for i in indices]
        clusters = clusters and [clusters[i] for i in indices]
    return accuracy(answers, labels, errors, groups=clusters, confidence=confidence)
