"""Shares of items: agreement with people, by votes and orders, and bias by slot or length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from typing_extensions import Unpack

from langchain_judges.metrics import inputs, intervals
from langchain_judges.metrics.inputs import NO_LABEL, IntervalOptions, Judgments, RightLabels, Votes
from langchain_judges.metrics.result import Findings, Result
from langchain_judges.orders import combine
from langchain_judges.verdict import Label

T = TypeVar("T")

# Whether a failed judgment counts as a wrong one, as in the papers, or is left out.
Errors = Literal["wrong", "drop"]

# Whether a tie is an answer like the others, or ties of people and judge are left out.
Ties = Literal["keep", "drop"]

# How the answers in two orders are scored against one label.
OrdersRule = Literal["both_right", "mean_of_orders", "sign_of_sum", "strict"]


def share(
    hits: Iterable[float | None],
    failed: Mapping[str, int],
    *,
    errors: Errors = "drop",
    **options: Unpack[IntervalOptions],
) -> Result:
    """The share of hits; None is a failed judgment, and `failed` counts those by reason."""
    inputs.one_of("errors", errors, Errors)
    counts = [0.0 if hit is None and errors == "wrong" else hit for hit in hits]
    agreement = intervals.rate(counts, **options)
    if not agreement.n:
        why = "no judged items" if any(failed.values()) else "no items"
        return Result.undefined(why, n_failed=failed)
    return agreement.replace(n_failed=failed)


def labelled(
    judge: Judgments, labels: Iterable[T | None], options: IntervalOptions
) -> tuple[list[tuple[Label | None, T]], Counter[str], IntervalOptions]:
    """(judgment or None, label) of the labelled items, failures by reason, their options."""
    answers, truths = inputs.as_list(judge), inputs.as_list(labels)
    clusters = inputs.as_list(options.get("groups"))
    inputs.same_length(judge=answers, labels=truths, groups=clusters)
    cases = inputs.cases_of([inputs.bare(cast("Any", truths), NO_LABEL)])
    values, failed = inputs.values_of(inputs.take(answers, cases.indices))
    pairs: list[Any] = list(zip(values, *cases.columns, strict=True))
    sides = [[v for own in side for v in inputs.as_votes(own)] for side in zip(*pairs, strict=True)]
    if sides:
        inputs.check_labels(*sides)
    return pairs, failed + cases.failed, {**options, "groups": inputs.take(clusters, cases.indices)}


def accuracy(
    preferences: Judgments,
    labels: RightLabels,
    errors: Errors = "wrong",
    **options: Unpack[IntervalOptions],
) -> Result:
    """The share of items on which the judge says what the label says: correct / all.

    Not where one label is common, since always giving it is then mostly right: see
    `balanced_accuracy` and `cohen_kappa`.

    Args:
        preferences: `A`, `B`, `tie` or None (not judged) for each item; or verdicts, or rows
            of `judge_many`, whose failures then give the reasons; or labels of any kind.
        labels: The right answer to each item; an item without one (None) is left out. A tie
            is right only where the label is a tie.
        errors: `wrong` counts a failed judgment as wrong, `drop` leaves it out.
        options: `groups` and `confidence` of the interval, as for `rate`.

    Returns:
        The share in [0, 1] of `n` items, with Wilson's interval. `n_failed` counts failed
        judgments under either setting.

    Source: every paper's accuracy; with one label for each item also the agreement "Ag" of
    Saha et al. 2023.
    """
    pairs, failed, own = labelled(preferences, labels, options)
    hits = [None if value is None else float(value == label) for value, label in pairs]
    return share(hits, failed, errors=errors, **own)


class OrderAgreement(Result):
    """Rate at which both orders give the same answer.

    Attributes:
        with_unread: The share if an item on which both orders failed counts as agreeing, as
            LLMBar's own figures have it; NaN without items.
    """

    with_unread: float


def order_agreement(
    first: Judgments,
    second: Judgments,
    errors: Errors = "wrong",
    **options: Unpack[IntervalOptions],
) -> OrderAgreement:
    """The share of items on which both orders give the same answer.

    It does not say how good the judge is: one that always says A agrees with itself.

    Args:
        first: The preference in the order AB, by identity of the text, for each item.
        second: The preference in the order BA, by identity too.
        errors: `wrong` counts an item as disagreeing if an order failed, even if both did;
            `drop` leaves it out.
        options: `groups` and `confidence` of the interval, as for `rate`.

    Returns:
        The share in [0, 1] of `n` items. `n_failed` has the reason of the first failed order.

    Source: Zeng et al. 2023 (LLMBar). Its own figures count two failed orders as agreement;
    here that is `with_unread`.
    """
    pairs, failed = in_both_orders(first, second)
    hits = [None if None in pair else float(pair[0] == pair[1]) for pair in pairs]
    agreement = share(hits, failed, errors=errors, **options)
    with_unread = sum(one == other for one, other in pairs) / len(pairs) if pairs else math.nan
    return OrderAgreement(agreement, **vars(agreement), with_unread=with_unread)


# What a judge says of an item in either order; None where it failed.
Answers = tuple[Label | None, Label | None]


def in_both_orders(first: Judgments, second: Judgments) -> tuple[list[Answers], Counter[str]]:
    """Answers of both orders for each item, and the reasons of those that failed."""
    ours, theirs = inputs.as_list(first), inputs.as_list(second)
    inputs.same_length(first=ours, second=theirs)
    pairs, failed = [], Counter[str]()
    for one, other in zip(ours, theirs, strict=True):
        (a, why_a), (b, why_b) = inputs.value_of(one), inputs.value_of(other)
        pairs.append((a, b))
        if a is None or b is None:
            failed[why_a if a is None else why_b] += 1
    return pairs, failed


def order_accuracy(
    first: Judgments,
    second: Judgments,
    labels: RightLabels,
    rule: OrdersRule = "both_right",
    errors: Errors = "wrong",
    **options: Unpack[IntervalOptions],
) -> Result:
    """The accuracy of a judge that was asked in both orders, by one of the rules in use.

    Not to compare with a judge that was asked once: `both_right` and `strict` penalise every
    flip, `mean_of_orders` does not.

    Args:
        first: The preference in the order AB, by identity of the text.
        second: The preference in the order BA, by identity.
        labels: The right answer to each item; None leaves the item out.
        rule: `both_right`: right in both orders (LLMBar); `mean_of_orders`: the mean of
            the two accuracies (LLMBar); `sign_of_sum`: win, tie and loss summed, and the sign
            compared (JudgeBench); `strict`: a winner only if both orders agree, else a tie
            (Saha et al. 2023, Algorithm 1; MT-Bench).
        errors: `wrong` counts a failed order as not right (under `strict` the item, under
            `sign_of_sum` as neither side, as JudgeBench's own code does), `drop` leaves the
            item out.
        options: `groups` and `confidence` of the interval, as for `rate`.

    Returns:
        The share in [0, 1] of `n` items.
    """
    inputs.one_of("rule", rule, OrdersRule)
    orders = inputs.as_list(first), inputs.as_list(second)
    inputs.same_length(first=orders[0], second=orders[1])
    both: list[Any] = list(zip(*orders, strict=True))
    items, left_out, own = labelled(both, labels, options)
    said: list[Any] = [pair for pair, _ in items]
    pairs, failed = in_both_orders(*([pair[i] for pair in said] for i in (0, 1)))
    hits = [_score(rule, two, label, errors) for two, (_, label) in zip(pairs, items, strict=True)]
    return share(hits, failed + left_out, errors=errors, **own)


def _score(rule: OrdersRule, pair: Answers, label: object, errors: Errors) -> float | None:
    if None in pair and (errors == "drop" or rule == "strict"):
        return None
    if rule == "sign_of_sum" and None in pair:
        # JudgeBench's own code counts an order that it cannot read as neither side.
        return float(label in pair and label != "tie")
    right = [bool(answer == label) for answer in pair]
    if rule == "both_right":
        return float(all(right))
    if rule == "mean_of_orders":
        return sum(right) / 2
    preferences: Any = pair
    return float(bool(combine("strict" if rule == "strict" else "lenient", preferences) == label))


def majority_vote(votes: Iterable[Label | None] | Label | None) -> Label | None:
    """The answer with the most votes; equal counts are a tie, no votes None.

    Source: the majority variant of Saha et al. 2023 (Table 9); equal counts are our reading.
    """
    counts = Counter(inputs.as_votes(votes)).most_common()
    if not counts:
        return None
    return "tie" if len(counts) > 1 and counts[0][1] == counts[1][1] else counts[0][0]


def vote_agreement(
    preferences: Judgments,
    votes: Votes,
    *,
    ties: Ties = "keep",
    errors: Errors = "wrong",
    **options: Unpack[IntervalOptions],
) -> Result:
    """The share of people's votes that the judge's verdict matches, each vote counted alone.

    Not comparable with `people_agreement` if items have different numbers of votes: see
    `beside_people`.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows.
        votes: The list of people's votes on each item, or its only vote; items without a vote
            are left out.
        ties: `keep` matches a tie with a tie (setup 1 of MT-Bench, what Saha et al. report);
            `drop` leaves out votes and verdicts that are ties (setup 2).
        errors: `wrong` counts the votes on a failed judgment as not matched; `drop` leaves
            them out. `n_failed` counts judgments, not votes.
        options: As for `rate`; by default the votes on one item are a cluster.

    Returns:
        The share in [0, 1] of `n` votes.

    Source: "Ag" of Saha et al. 2023; Zheng et al. 2023 (MT-Bench), `compute_agreement`.
    """
    inputs.one_of("ties", ties, Ties)
    people = [own or None for own in inputs.votes_of(votes)]
    pairs, failed, own = labelled(preferences, people, options)
    rows = [
        [
            None if value is None else float(vote == value)
            for vote in votes
            if ties == "keep" or "tie" not in (vote, value)
        ]
        for value, votes in pairs
    ]
    hits, own["groups"] = inputs.flat(rows, own["groups"])
    return share(hits, failed, errors=errors, **own)


def majority_agreement(
    preferences: Judgments,
    votes: Votes,
    *,
    ties: Ties = "keep",
    errors: Errors = "wrong",
    **options: Unpack[IntervalOptions],
) -> Result:
    """The share of items on which the judge agrees with the majority of the votes.

    Not where people differ much: a majority hides that, and `vote_agreement` shows it.

    Arguments as for `vote_agreement`; `n` counts items.

    Source: Saha et al. 2023, Table 9.
    """
    inputs.one_of("ties", ties, Ties)
    answers = inputs.as_list(preferences)
    labels = [majority_vote(own) for own in inputs.as_list(votes)]
    clusters = inputs.as_list(options.get("groups"))
    inputs.same_length(preferences=answers, votes=labels, groups=clusters)
    if ties == "drop":
        sides = [(label, inputs.value_of(answers[i])[0]) for i, label in enumerate(labels)]
        indices = [i for i, side in enumerate(sides) if "tie" not in side]
        answers, labels = inputs.take(answers, indices), inputs.take(labels, indices)
        options["groups"] = inputs.take(clusters, indices)
    return accuracy(answers, labels, errors, **options)


@dataclass(frozen=True)
class PositionBias(Findings):
    """Position bias: how far verdicts depend on the slot in which a text was shown.

    Attributes:
        flip_rate: The share of items whose verdict differs between the orders, into or out of a
            tie too: "PB" of Saha et al. 2023.
        toward_first: The share of items on which whatever stood in the first slot won, in both
            orders.
        toward_second: The share of items on which whatever stood in the second slot won.
        first_slot_rate: The share of all winners, of either order, that stood first; 0.5 is no
            bias.
    """

    flip_rate: Result
    toward_first: Result
    toward_second: Result
    first_slot_rate: Result


def position_bias(
    first: Judgments, second: Judgments, **options: Unpack[IntervalOptions]
) -> PositionBias:
    """Measure how far verdicts depend on the slot a text was shown in.

    Not from one order.

    Args:
        first: The preference in the order AB (A in the first slot) for each item, by
            identity of the text; or verdicts or rows. Items with a failed order are left
            out and counted.
        second: The preference in the order BA, by identity too.
        options: `groups` and `confidence` of the intervals, as for `rate`.

    Returns:
        Shares in [0, 1]. A judge that always takes the first slot has a flip rate of 1.

    Source: Saha et al. 2023.
    """
    pairs, failed = in_both_orders(first, second)
    options["groups"] = inputs.as_list(options.get("groups"))

    def rate_of(holds: Callable[[Answers], bool]) -> Result:
        hits = [None if None in pair else float(holds(pair)) for pair in pairs]
        return share(hits, failed, **options)

    winners = [[] if None in pair else _slots(pair) for pair in pairs]
    slots, clusters = inputs.flat(winners, options["groups"])
    by_winner: IntervalOptions = {**options, "groups": clusters}
    return PositionBias(
        flip_rate=rate_of(lambda pair: pair[0] != pair[1]),
        toward_first=rate_of(lambda pair: pair == ("A", "B")),
        toward_second=rate_of(lambda pair: pair == ("B", "A")),
        first_slot_rate=share(slots, failed, **by_winner),
    )


def _slots(pair: Answers) -> list[float]:
    """Whether each winner stood in the first slot."""
    return [float(side == slot) for side, slot in zip(pair, "AB", strict=True) if side != "tie"]


def length_bias(
    preferences: Judgments,
    votes: Votes,
    lengths_a: Iterable[float],
    lengths_b: Iterable[float],
    **options: Unpack[IntervalOptions],
) -> Result:
    """Share of the pairs in which people prefer the shorter text and the judge does not: "LB".

    Not a bias by itself, as some of these are plain errors: compare it with how often the
    longer text is missed, which is this with both lengths negated.

    Args:
        preferences: The judge's preference for each item, or verdicts or rows; a failed
            judgment is left out and counted.
        votes: People's label, or the list of their votes, for each item.
        lengths_a: The length of text A; the paper does not name its unit, use characters.
        lengths_b: The length of text B. Items of equal lengths are left out.
        options: As for `rate`; by default the votes on one item are a cluster.

    Returns:
        The share in [0, 1] of the `n` votes for the shorter text (the paper's denominator) on
        which the judge does not prefer that text; a tie of the judge is such a one.

    Source: Saha et al. 2023, section 4.
    """
    answers, people = inputs.as_list(preferences), inputs.votes_of(votes)
    a_column, b_column = inputs.as_list(lengths_a), inputs.as_list(lengths_b)
    inputs.same_length(preferences=answers, votes=people, lengths_a=a_column, lengths_b=b_column)
    rows: list[list[float | None]] = []
    failed = Counter[str]()
    for answer, own, a, b in zip(answers, people, a_column, b_column, strict=True):
        shorter = "A" if a < b else "B"
        count = own.count(shorter) if a != b else 0
        value, reason = inputs.value_of(answer)
        if count and value is None:
            failed[reason] += 1
        rows.append([None if value is None else float(value != shorter)] * count)
    hits, options["groups"] = inputs.flat(rows, options.get("groups"))
    if not any(hit is not None for hit in hits):
        return Result.undefined("the shorter text is never the preferred one", n_failed=failed)
    return share(hits, failed, **options)
