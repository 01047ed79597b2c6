"""The options of an SC² judge, checked, and what they cost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_args

from langchain_judges.errors import OptionError
from langchain_judges.methods.few_shot import WorkedExample, worked_examples
from langchain_judges.methods.sc2.artefact import AspectSet, load_aspects
from langchain_judges.methods.sc2.aspects import Agreement, distinct
from langchain_judges.methods.sc2.check import TableCheck
from langchain_judges.methods.sc2.inference import Inference, most_comparisons
from langchain_judges.methods.sc2.prompts import TASKS, Task
from langchain_judges.orders import Order, OrderRule, orders_of

AspectsLike = Sequence[str] | AspectSet | str | os.PathLike[str]
"""Aspects as callers give them: a list, what `learn_aspects` returned, its name or path."""


@dataclass(frozen=True)
class Options:
    """Checked options; `aspects` is empty where they are found online."""

    aspects: tuple[str, ...]
    learned: Mapping[str, Any] | None
    """Name, corpus and prompt version of learned aspects."""
    n_aspects: int
    aspect_samples: int
    agreement: Agreement
    samples: int
    inference: Inference
    row_wise: bool
    table_check: TableCheck | None
    max_table: int
    task: Task
    orders: OrderRule
    table_only: bool
    preference_samples: int
    examples: tuple[WorkedExample, ...]
    seed: int
    instructions: str
    repairs: int

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders in which the preference is asked."""
        return orders_of(self.orders)

    @property
    def tables(self) -> int:
        """How many tables are sampled; `random` needs only the one it draws."""
        return 1 if self.inference == "random" else self.samples

    @property
    def proposals(self) -> int:
        """How many online samples name aspects."""
        return 0 if self.aspects else self.aspect_samples

    def calls(self) -> int:
        """Return the calls for one pair, without repairs.

        With m online samples, C tables and a tournament that is m + 2C: C tables, C - 1
        comparisons and a preference.
        """
        lanes = (len(self.aspects) or self.n_aspects) if self.row_wise else 1
        compared = lanes * most_comparisons(self.inference, self.samples)
        asked = len(self.order_list) * self.preference_samples
        return self.proposals + self.tables + compared + asked

    def branches(self) -> int:
        """Return the most calls at work at the same time."""
        lanes = (len(self.aspects) or self.n_aspects) if self.row_wise else 1
        return max(
            self.proposals,
            self.tables,
            lanes * most_comparisons(self.inference, self.samples),
            len(self.order_list) * self.preference_samples,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain data, for metadata and keys."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        check = self.table_check
        return {
            **plain,
            "aspects": list(self.aspects),
            "examples": [dict(example) for example in self.examples],
            "table_check": check.as_json() if check else None,
        }


def check_options(
    *,
    aspects: AspectsLike | None,
    task: str | Mapping[str, str],
    table_check: bool | TableCheck | Mapping[str, Any],
    shots: int,
    examples: Sequence[Mapping[str, Any]] | None,
    instructions: str | None,
    **rest: Any,
) -> Options:
    """Return the options, or say which of them is not allowed.

    Raises:
        OptionError: The message names the rule and the value.
    """
    for name in ("row_wise", "table_only"):
        if not isinstance(rest[name], bool):
            raise OptionError(f"`{name}` must be true or false, got {rest[name]!r}")
    for name, least in _LEAST.items():
        _at_least(name, rest[name], least)
    for name, kind in (("inference", Inference), ("agreement", Agreement)):
        if rest[name] not in get_args(kind):
            allowed = ", ".join(map(repr, get_args(kind)))
            raise OptionError(f"`{name}` must be one of {allowed}, got {rest[name]!r}")
    orders_of(rest["orders"])
    given, learned = read_aspects(aspects)
    return Options(
        aspects=given,
        learned=learned,
        task=read_task(task),
        table_check=_table_check(table_check),
        examples=tuple(worked_examples(shots, examples)),
        instructions=(instructions or "").strip(),
        **rest,
    )


_LEAST = {
    "samples": 1,
    "n_aspects": 1,
    "aspect_samples": 1,
    "preference_samples": 1,
    "max_table": 200,
}


def budget_settings(calls: int, *, aspect_calls: int = 0) -> dict[str, int]:
    """Return the settings that spend a budget of calls for each pair (Table 4).

    A tournament over |C| tables costs 2|C| calls, so |C| is half of the budget; a call that
    is left over becomes another preference sample.

    Args:
        calls: The budget for one pair.
        aspect_calls: Calls for online aspects, which come out of the budget; 0 offline.

    >>> budget_settings(15)
    {'samples': 7, 'preference_samples': 2}
    """
    left = calls - aspect_calls
    if left < 2:
        raise OptionError(f"a budget must leave at least 2 calls, got {left!r}")
    return {"samples": left // 2, "preference_samples": 1 + left % 2}


def read_aspects(
    given: AspectsLike | None,
) -> tuple[tuple[str, ...], Mapping[str, Any] | None]:
    """Return the aspects, each meaning once, and where learned ones came from.

    Raises:
        OptionError: They are of another type or empty, or there is no such artefact.
    """
    if given is None:
        return (), None
    learned = None
    if isinstance(given, str | os.PathLike):
        given = load_aspects(given)
    if isinstance(given, Mapping):
        known = ("name", "corpus", "prompt_version", "model")
        learned = {key: given[key] for key in known if key in given}  # type: ignore[literal-required]
        given = given.get("aspects", [])
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if not listed or not all(isinstance(each, str) and distinct([each]) for each in listed):
        raise OptionError(
            "`aspects` must be a list of at least one text, each with a word, what "
            f"`learn_aspects` returned, or its name or path, got {given!r}"
        )
    return tuple(distinct(listed)), learned


def read_task(task: str | Mapping[str, str]) -> Task:
    """Return a task by name, or one of the caller's.

    Raises:
        OptionError: The name is unknown, there is no question, or a field is no text.
    """
    if isinstance(task, str) and task in TASKS:
        return TASKS[task]
    if not isinstance(task, Mapping) or "question" not in task or task.keys() - _TASK:
        raise OptionError(
            f"`task` must be one of {sorted(TASKS)!r} or {{'question', 'quality'}}, "
            f"got {task!r}"
        )
    question, quality = task["question"], task.get("quality", "")
    if not isinstance(question, str) or not question.strip():
        raise OptionError(
            f"the `question` of a `task` must be a text that is not empty, got {question!r}"
        )
    if not isinstance(quality, str):
        raise OptionError(f"the `quality` of a `task` must be a text, got {quality!r}")
    return {"question": question.strip(), "quality": quality.strip()}


_TASK = {"question", "quality"}


def _table_check(given: bool | TableCheck | Mapping[str, Any]) -> TableCheck | None:
    if given is False or given is None:
        return None
    if isinstance(given, TableCheck):
        return given
    if given is True:
        return TableCheck()
    known = [field.name for field in fields(TableCheck)]
    if not isinstance(given, Mapping) or (set(given) - set(known)):
        raise OptionError(
            f"`table_check` must be true, false, a TableCheck or its fields {known!r}, "
            f"got {given!r}"
        )
    return TableCheck(**given)


def _at_least(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` must be a whole number of at least {least}, got {value!r}")
