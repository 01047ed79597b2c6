"""Held-out data for the loop: splits by group, and what a judge is worth and gained."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar, cast

from langchain_judges.asking.reply_log import key_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure.label_checks import nearest, require_labels
from langchain_judges.methods.allure.state import AuditItem, AuditOptions, Gain, JudgeWorth
from langchain_judges.methods.declaration import WORDS
from langchain_judges.rows import fields, texts
from langchain_judges.rows.checks import ANNOTATIONS, check_item
from langchain_judges.verdict import Label, LabelVerdict

HeldOut = TypeVar("HeldOut", bound=Mapping[str, object])
# A group, the true label, and the judge's label (None: not judged).
Case = tuple[Hashable, Label, Label | None]

# What two sums of the same numbers may differ by.
ROUNDING = 1e-12


def split_by_group(
    items: Sequence[HeldOut], share: float = 0.3, *, seed: int = 0
) -> tuple[list[HeldOut], list[HeldOut]]:
    """Split items in two parts that have no group in common.

    Whole groups are drawn until the second part holds about `share` of the items. An item
    without a group is a group of its own.

    Args:
        items: The items.
        share: Share of the items in the second part, above 0 and below 1.
        seed: Of the draw.

    Returns:
        The larger part, for examples, and the held-out part, each in the order given.

    Raises:
        OptionError: `share` is out of bounds, or there are not two groups.
    """
    if not 0 < share < 1:
        raise OptionError(f"`share` must be above 0 and below 1, got {share!r}")
    members: dict[Hashable, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        members[group_of(item, number)].append(number)
    if len(members) < 2:
        raise OptionError(f"a split by `group` needs two groups at least, got {len(members)}")
    names = list(members)
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret
    places: set[int] = set()
    for name in names[:-1]:
        if places and len(places) + len(members[name]) / 2 > share * len(items):
            break
        places.update(members[name])
    return (
        [item for number, item in enumerate(items) if number not in places],
        [item for number, item in enumerate(items) if number in places],
    )


def group_of(item: Mapping[str, object], number: int) -> Hashable:
    """An item's group; without one the item is a group of its own."""
    name = item.get("group")
    return ("alone", number) if name in (None, "") else str(name)


def grouped_by_task(items: Sequence[AuditItem]) -> list[AuditItem]:
    """Items whose group joins all that share an explicit group or nearly a task.

    A task that all items share, such as a rubric's question, does not count.
    """
    tasks = [texts.group_by_task(item["input"], item.get("source")) for item in items]
    if len(set(tasks)) < 2:
        return list(items)
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.setdefault(name, name) != name:
            name = parents[name]
        return name

    for item, task in zip(items, tasks, strict=True):
        # An explicit group becomes the root of a task, so that it names the whole.
        own = root(str(item.get("group") or task))
        if (other := root(task)) != own:
            parents[other] = own
    return [{**item, "group": root(task)} for item, task in zip(items, tasks, strict=True)]


def labelled_cases(
    items: Sequence[Mapping[str, Any]],
    verdicts: Mapping[str, LabelVerdict],
    labels: Sequence[Label] = (0, 1),
) -> list[Case]:
    """The labels of a judge with the true ones.

    Args:
        items: Items with `id` and their true label.
        verdicts: Label verdicts by the id of their item.
        labels: The judge's labels; a true grade between them counts as the nearest.
    """
    said = [verdicts[str(item["id"])]["label"] for item in items]
    return [
        (group_of(item, n), nearest(item["label"], labels, own), own)
        for n, (item, own) in enumerate(zip(items, said, strict=True))
    ]


def balanced_share(cases: Sequence[Case]) -> float:
    """The mean recall of the true labels that occur; NaN without cases."""
    truths = {truth for _, truth, _ in cases}
    recalls = [share_right([case for case in cases if case[1] == truth]) for truth in truths]
    return fmean(recalls) if recalls else math.nan


def share_right(cases: Sequence[Case]) -> float:
    """The share of cases with the right label; NaN without cases."""
    return fmean(truth == label for _, truth, label in cases) if cases else math.nan


def worth_of(cases: Sequence[Case]) -> JudgeWorth:
    """Accuracy of a judge on some cases, and the baseline's."""
    # Loaded on use, because the metrics load scipy.
    from langchain_judges.metrics import rate

    hits, groups = _hits(cases)
    interval = rate(hits, groups=groups).interval
    return {
        "n": len(cases),
        "not_judged": sum(label is None for *_, label in cases),
        "accuracy": share_right(cases),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "majority": Counter(truth for _, truth, _ in cases).most_common(1)[0][1] / len(cases),
        "balanced_accuracy": balanced_share(cases),
    }


def fell(before: Sequence[Case], after: Sequence[Case]) -> bool:
    """Whether accuracy or balanced accuracy is lower after than before."""
    return any(of(after) < of(before) - ROUNDING for of in (share_right, balanced_share))


def changes(before: Sequence[Case], after: Sequence[Case]) -> tuple[int, int]:
    """The number of groups with more right labels after than before, and with fewer.

    Args:
        before: The cases with the labels of the judge as it was.
        after: The same cases, in the same order, with the new labels.
    """
    by_group: Counter[Hashable] = Counter()
    for (group, truth, old), (_, _, new) in zip(before, after, strict=True):
        by_group[group] += (new == truth) - (old == truth)
    values = by_group.values()
    return sum(change > 0 for change in values), sum(change < 0 for change in values)


def chance_of_rise(before: Sequence[Case], after: Sequence[Case]) -> float:
    """The chance of as large a rise if labels change at random, by a sign test of `changes`.

    Returns:
        The chance that of the groups with more or fewer right labels, each by a coin, as many
        have more; 1 where no label changed.
    """
    better, worse = changes(before, after)
    n = better + worse
    return float(sum(math.comb(n, k) for k in range(better, n + 1)) / 2**n)


def gain_of(before: Sequence[Case], after: Sequence[Case]) -> Gain:
    """The gain of a judge on cases that decided nothing, or why it is not known.

    Args:
        before: The cases with the labels of the judge as it was.
        after: The same cases, in the same order, with the new labels.
    """
    from langchain_judges.metrics import paired_difference
    from langchain_judges.metrics.intervals import LEAST_GROUPS

    groups = len({group for group, *_ in before})
    problem = f"`test` has too few groups of items, {groups} of at least {LEAST_GROUPS}"
    gain = Gain(before=None, after=None, gain=None, low=None, high=None, problem=problem)
    if not groups:
        gain["problem"] = "no items were held out for it"
    if groups < LEAST_GROUPS:
        return gain
    (old, clusters), (new, _) = _hits(before), _hits(after)
    change = paired_difference(new, old, groups=clusters)
    gain |= {"before": worth_of(before), "after": worth_of(after), "gain": float(change)}
    if change.interval:
        gain |= {"low": change.interval.low, "high": change.interval.high}
    return {**gain, "problem": ""}


def _hits(cases: Sequence[Case]) -> tuple[list[float], list[Hashable] | None]:
    """1 for each right label and 0 for another, and their groups if several share one."""
    groups = [group for group, *_ in cases]
    hits = [float(truth == label) for _, truth, label in cases]
    return hits, groups if len(set(groups)) < len(groups) else None


def held_out(
    items: Sequence[AuditItem], labels: Sequence[Label], options: AuditOptions
) -> tuple[list[AuditItem], list[AuditItem], list[AuditItem]]:
    """The items to audit, those of dev and those of test.

    Raises:
        InputError: A held-out item lacks its true label, or belongs with one of another part.
    """
    lists = {
        part: identified(given, part)
        for part, given in (("dev", options.dev), ("test", options.test))
        if given is not None and not isinstance(given, int | float)
    }
    grouped = iter(grouped_by_task([*items, *itertools.chain(*lists.values())]))
    pool = list(itertools.islice(grouped, len(items)))
    own = {part: list(itertools.islice(grouped, len(each))) for part, each in lists.items()}
    check_apart({"the audited items": pool, **own})
    rest, of_test = 1.0, options.test
    if of_test is None and isinstance(options.dev, int | float):
        of_test = min(options.dev, (1 - options.dev) / 2)
    for part, share in (("dev", options.dev), ("test", of_test)):
        if isinstance(share, int | float) and share:
            is_asked = getattr(options, part) is not None
            if is_asked or len({group_of(each, n) for n, each in enumerate(pool)}) > 1:
                pool, own[part] = split_by_group(pool, share / rest, seed=options.seed)
            rest -= share
    for part, each in own.items():
        require_labels(each, labels, part)
    return pool, own.get("dev", []), own.get("test", [])


def check_apart(parts: Mapping[str, Sequence[AuditItem]]) -> None:
    """Check that no item has the id or group of one in another part.

    Raises:
        InputError: One has.
    """
    seen: dict[Hashable, str] = {}
    number = itertools.count()
    for part, items in parts.items():
        for item in items:
            marks = ("id", item["id"]), ("group", group_of(item, next(number)))
            if (other := next((seen[each] for each in marks if each in seen), part)) != part:
                raise InputError(WORDS["in_two_parts"].format(item["id"], part, other))
            seen |= dict.fromkeys(marks, part)


def identified(items: Sequence[Mapping[str, object]], prefix: str) -> list[AuditItem]:
    """Checked items, each with an id that no other has.

    An item without one is identified by its texts, in every list that holds it.
    """
    is_table = hasattr(items, "columns")
    if is_table or isinstance(items, Mapping | str | int) or not items:
        raise InputError(WORDS["no_items"].format(type(items).__name__))
    ids: set[str] = set()
    items_with_ids: list[AuditItem] = []
    for number, raw in enumerate(items, 1):
        item = fields.plain_row(raw) if isinstance(raw, Mapping) else raw
        try:
            check_item(item)
        except InputError as exc:
            raise InputError(f"item {number}: {exc}") from exc
        judged = {name: value for name, value in item.items() if name not in ANNOTATIONS}
        id = str(item.get("id") or _unused(f"{prefix} {key_of(judged)[:10]}", ids))
        if id in ids:
            raise InputError(f"item {number}: the id {id!r} occurs twice")
        ids.add(id)
        items_with_ids.append(cast("AuditItem", {**item, "id": id}))
    return items_with_ids


def _unused(id: str, ids: Collection[str]) -> str:
    """An id, numbered where equal items have it already."""
    numbered = (f"{id} ({n})" for n in itertools.count(2))
    return id if id not in ids else next(each for each in numbered if each not in ids)
