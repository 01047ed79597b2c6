"""What a sweep will do: its experiment, its split, its runs and what they cost at most."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.recall import Recall, all_, leave_out, uniform
from langchain_judges.methods.allure.holdout import group_of, split_by_group
from langchain_judges.methods.allure.modes import FIVE
from langchain_judges.methods.allure.options import Instruct
from langchain_judges.rows.applications import plain_row

SIZES = (0, 4, 8, 15, 30, 45)
"""Numbers of examples in the paper's sweep (figure 3)."""

Kind = Literal["none", "size", "all", "mode", "curve", "instruct"]
Item = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, and where its items come from."""

    title: str
    dataset: str
    """A name of `datasets.load`."""
    options: Mapping[str, Any]
    """How that set is read."""
    rubric: str
    problem: Callable[[Mapping[str, Any]], str]
    """The type of problem, or planning skill, that an item is counted under."""
    problems: str
    """What these types are called."""


def system_of(item: Mapping[str, Any]) -> str:
    """Return who wrote the response."""
    return " + ".join(map(str, item.get("systems") or ["unknown"]))


EXPERIMENTS = {
    "e1": Experiment(
        title="CogEval: answers to planning tasks against expected answers",
        dataset="cogeval",
        options={},
        rubric="correctness",
        problem=lambda item: str(item.get("category")),
        problems="planning skill",
    ),
    "e2": Experiment(
        title="SummEval: factual consistency of summaries with their article",
        dataset="summeval16",
        # Improve-abs, T5, GPT-2 and Pegasus.
        options={"form": "items", "systems": ["M11", "M17", "M20", "M23"], "threshold": 2.5},
        rubric="consistency",
        problem=system_of,
        problems="system",
    ),
}


@dataclass(frozen=True)
class Arm:
    """One run of the judge over the held-out items."""

    name: str
    """Also that of its results file."""
    kind: Kind
    recall: Recall | None = None
    instruct: Instruct = "steps"
    size: int | None = None
    seed: int | None = None
    mode: str | None = None
    portion: int | None = None
    """Of the learning curve: how many portions of the training items were audited."""


@dataclass(frozen=True)
class Plan:
    """The items of a sweep, split, and what is varied.

    Raises:
        InputError: A held-out item shares its group with a training item, and `allow_leak`
            does not say that it may.
        OptionError: A size, or the number of seeds or portions, is not allowed.
    """

    preset: str
    train: tuple[Item, ...]
    held_out: tuple[Item, ...]
    sizes: tuple[int, ...] = SIZES
    seeds: int = 3
    portions: int = 3
    allow_leak: bool = False
    by_family: bool = False
    """Whether an item is shown examples of its own family alone."""

    def __post_init__(self) -> None:
        """Check that nothing leaks unsaid."""
        if self.preset not in EXPERIMENTS:
            raise OptionError(
                f"`preset` must be one of {sorted(EXPERIMENTS)!r}, got {self.preset!r}"
            )
        if any(not isinstance(m, int) or isinstance(m, bool) or m < 0 for m in self.sizes):
            raise OptionError(f"`sizes` must be whole numbers from 0 on, got {self.sizes!r}")
        for name, value in (("seeds", self.seeds), ("portions", self.portions)):
            if not isinstance(value, int) or value < 1:
                raise OptionError(
                    f"`{name}` must be a whole number of at least 1, got {value!r}"
                )
        train_groups: set[Hashable] = {group_of(item, n) for n, item in enumerate(self.train)}
        for number, item in enumerate(self.held_out, len(self.train)):
            if group_of(item, number) in train_groups and not self.allow_leak:
                raise InputError(
                    f"{item['id']} is held out, but its group {item['group']!r} is among the "
                    "training items; split by group, or say `allow_leak=True`"
                )

    @property
    def experiment(self) -> Experiment:
        """The experiment of the paper."""
        return EXPERIMENTS[self.preset]

    @property
    def items(self) -> list[Item]:
        """All items once."""
        return list({item["id"]: item for item in (*self.train, *self.held_out)}.values())

    @property
    def most_calls(self) -> int:
        """The most calls of the sweep, excluding retries.

        N + H · (s · r + f + p + 2) for N items of which H are held out, s sizes above
        0, r seeds, f = 6 (five failure modes, and none named) and p portions: the judge
        without examples labels all items once; its run over the held-out ones is that of
        size 0 and that of the steps.
        """
        return len(self.items) + len(self.held_out) * self.most_runs

    @property
    def most_runs(self) -> int:
        """The most runs over the held-out items besides the one without examples."""
        sizes = sum(size > 0 for size in set(self.sizes))
        return sizes * self.seeds + 1 + len(FIVE) + 1 + self.portions - 1 + 2

    def first(self, portion: int) -> set[str]:
        """Return the ids of the training items of the first portions."""
        end = -(-len(self.train) * portion // self.portions)
        return {str(item["id"]) for item in self.train[:end]}

    def arms(self, pool: int, modes: Sequence[str]) -> list[Arm]:
        """Return the runs, the one without examples first.

        Args:
            pool: The most examples that an item can be shown; larger sizes fall away.
            modes: The failure modes of the examples; `"None"` are those that have none.
        """
        wide = not self.by_family
        everything = all_(any_family=wide)
        arms = [
            Arm("none", "none", size=0),
            Arm("bare", "instruct", instruct="bare"),
            Arm("criteria", "instruct", instruct="criteria"),
        ]
        if not pool:
            return arms
        arms += [
            Arm(
                f"size-{size}-seed-{seed}",
                "size",
                uniform(size, seed=seed, any_family=wide),
                size=size,
                seed=seed,
            )
            for size in sorted(set(self.sizes))
            if 0 < size < pool
            for seed in range(self.seeds)
        ]
        arms.append(Arm("all", "all", everything))
        arms += [
            Arm(f"without-{_plain(mode)}", "mode", leave_out(mode, everything), mode=mode)
            for mode in modes
        ]
        arms += [
            Arm(f"curve-{portion}", "curve", everything, portion=portion)
            for portion in range(1, self.portions)
        ]
        return arms


def _plain(mode: str) -> str:
    if mode == "None":
        return "unnamed"
    return re.sub(r"\W+", "-", mode).strip("-").lower() or "mode"


def plan_sweep(  # noqa: PLR0913 - what a sweep varies
    preset: str,
    *,
    data: str | PathLike[str] | None = None,
    items: Sequence[Mapping[str, Any]] | None = None,
    sizes: Sequence[int] = SIZES,
    seeds: int = 3,
    portions: int = 3,
    held_out: float = 0.3,
    limit: int | None = None,
    allow_leak: bool = False,
    by_family: bool = False,
    seed: int = 0,
) -> Plan:
    """Plan one of the paper's two experiments.

    Examples come from the training groups alone, and what is measured are items of other
    groups (`e1`: all tasks with an accepted answer in common, `e2`: article). An item is shown
    examples of every family, so that four examples are four; with `by_family` those of its
    own cognitive map alone, as the paper keys its memory. With `allow_leak` the setting is
    the paper's own: keyed by the map, and examples come from the very items that are
    measured. Such figures show how well a judge repeats what it was shown.

    Args:
        preset: `"e1"`, planning answers, or `"e2"`, consistency of summaries.
        data: The folder of the set, `cogeval` or `summeval16`.
        items: The items themselves instead of `data`, each with `id` and `label` 0 or 1.
        sizes: Numbers of examples.
        seeds: Draws of examples for each size.
        portions: Points of the learning curve.
        held_out: Share of the items that is held out, by group.
        limit: Most items, drawn by whole groups.
        allow_leak: Measure on the items that examples come from; sets `by_family` too.
        by_family: Show an item examples of its own family alone.
        seed: Of the split and the draw of `limit`.

    Raises:
        OptionError: An option is not allowed, or the data are nowhere to be read.
        InputError: An item has no label 0 or 1.
    """
    if preset not in EXPERIMENTS:
        raise OptionError(f"`preset` must be one of {sorted(EXPERIMENTS)!r}, got {preset!r}")
    experiment = EXPERIMENTS[preset]
    if items is None:
        from langchain_judges.datasets import load

        items = load(experiment.dataset, data, **experiment.options)
    items_with_problems = [
        {**_checked(item), "problem": experiment.problem(item)} for item in items
    ]
    own = _by_groups(items_with_problems, limit, seed)
    train, measured = (own, own) if allow_leak else split_by_group(own, held_out, seed=seed)
    return Plan(
        preset,
        tuple(train),
        tuple(measured),
        tuple(sizes),
        seeds,
        portions,
        allow_leak,
        by_family or allow_leak,
    )


def _checked(item: Mapping[str, Any]) -> Item:
    if not item.get("id") or item.get("label") not in (0, 1):
        raise InputError(
            f"an item of a sweep needs an `id` and a `label` 0 or 1, got "
            f"{item.get('id')!r} and {item.get('label')!r}"
        )
    return plain_row(item)


def _by_groups(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """Return items group by group, groups in an order by chance, at most `limit`."""
    if limit is not None and limit < 1:
        raise OptionError(f"`limit` must be a whole number of at least 1, got {limit!r}")
    members: dict[Hashable, list[Item]] = {}
    for number, item in enumerate(items):
        members.setdefault(group_of(item, number), []).append(item)
    names = list(members)
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret
    return [item for name in names for item in members[name]][:limit]
