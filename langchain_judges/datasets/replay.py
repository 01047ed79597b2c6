"""Recorded verdicts as if a judge gave them now: as a run's rows, or as a judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from langchain_judges.errors import InputError, OptionError
from langchain_judges.orders import ORDER_NAMES, Order, OrderRule, combine, disagree, orders_of
from langchain_judges.rows.checks import kind_of_verdict
from langchain_judges.runs.columns import SourceRecord
from langchain_judges.verdict import (
    Failure,
    LabelVerdict,
    Preference,
    Verdict,
    no_usage,
    not_judged,
)

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

_COPIED_FIELDS = ("label", "group", "category", "systems", "turn", "human_votes")
_POINTS: dict[Preference, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}


def replay(
    records: Iterable[SourceRecord],
    rows: Iterable[SourceRecord] = (),
    *,
    orders: OrderRule = "strict",
) -> Iterator[dict[str, Any]]:
    """Yield recorded verdicts as rows of a run, as `judge_many` yields them.

    The verdicts of the two orders on a pair become one by the rule `orders`; `by_order` has
    each. A pair of which an order is recorded as unread, is not judged: its failure is
    `unparsable`. Where only one order was recorded, it decides and `flipped` is None. The
    score is the mean of 1 for A, 0.5 for a tie and 0 for B over the orders, 0.5 for a tie.
    Nothing was asked, so the usage is empty. Grades of one text become label verdicts.

    Args:
        records: What `recorded` yields; several judges and settings may be mixed, and each
            of them is a judge of its own.
        rows: What `load` gives: `label`, `group`, `category`, `systems`, `turn` and
            `human_votes` are put on the verdicts with the same id.
        orders: `"strict"`, `"lenient"`, `"score_mean"`, or `"none"` for A first alone.

    Yields:
        `{"index", "id", "key", "label", …, "verdict", "by_order", "judge"}`, judge by judge
        in the order in which they first appear.
    """
    rule_orders = orders_of(orders)
    row_of = {row["id"]: row for row in rows}
    judges: dict[tuple[str, str], dict[str, list[SourceRecord]]] = {}
    for record in records:
        own = judges.setdefault((record["judge"], record["setting"]), {})
        own.setdefault(record["id"], []).append(record)
    for (judge, setting), by_id in judges.items():
        name = {
            "method": setting,
            "model": judge,
            "mark": _digest(f"{judge}|{setting}|{orders}")[:12],
        }
        for index, (key, own_records) in enumerate(by_id.items()):
            source = row_of.get(key, {})
            yield {
                "index": index,
                "id": key,
                "key": _digest(f"{name['mark']}|{key}"),
                **{field: source[field] for field in _COPIED_FIELDS if field in source},
                **_outcome(own_records, rule_orders, orders),
                "judge": name,
            }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _outcome(
    records: Sequence[SourceRecord], rule_orders: Sequence[Order], rule: OrderRule
) -> dict[str, object]:
    if kind_of_verdict(records[0]) == "item":
        return {"verdict": _graded(records[0])}
    own = [record for record in records if record["order"] in rule_orders]
    by_order = {order: r for order in rule_orders for r in own if r["order"] == order}
    if len(by_order) < len(own):
        raise InputError(f"{records[0]['id']!r} has two verdicts in the same order")
    return {
        "verdict": _verdict(by_order, rule),
        "by_order": {order: {"preference": r["preference"]} for order, r in by_order.items()},
    }


def _verdict(by_order: Mapping[Order, SourceRecord], rule: OrderRule) -> Verdict:
    answers = {order: record["preference"] for order, record in by_order.items()}
    failures: list[Failure] = [
        {
            "step": "recorded",
            "unit": ORDER_NAMES[order],
            "reason": "unparsable",
            "detail": "the source could not read this reply",
        }
        for order, preference in answers.items()
        if preference is None
    ]
    preferences: list[Preference] = [each for each in answers.values() if each is not None]
    if failures or not preferences:
        return not_judged(failures, no_usage())
    preference = combine(rule, preferences)
    points = fmean(_POINTS[each] for each in preferences)
    reasons = [record["raw"] for record in by_order.values() if record.get("raw")]
    return {
        "preference": preference,
        "score": 0.5 if preference == "tie" else points,
        "scores": None,
        "confidence": None,
        "confidence_source": "none",
        "flipped": disagree(preferences),
        "rationale": shorten(reasons[0], 300, placeholder=" …") if reasons else "",
        "failures": [],
        "usage": no_usage(),
    }


def _graded(record: SourceRecord) -> LabelVerdict:
    return {
        "label": record["label"],
        "score": float(record["label"]),
        "confidence": None,
        "confidence_source": "none",
        "rationale": "",
        "failures": [],
        "usage": no_usage(),
        "recalled": [],
    }


def recorded_judge(
    records: Iterable[SourceRecord], *, orders: OrderRule = "strict"
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """Create a judge that answers by recorded verdicts, found by the pair's `id`.

    It is a runnable as every judge is, for `judge_many`, evaluators and tests.

    Args:
        records: The verdicts of one judge in one setting, from `recorded`.
        orders: See `replay`.

    Raises:
        OptionError: There is no record, or there are several judges or settings.
    """
    replayed = list(replay(records, orders=orders))
    judges = {(row["judge"]["model"], row["judge"]["method"]) for row in replayed}
    if len(judges) != 1:
        raise OptionError(
            "a recorded judge is one judge in one setting; name both to `recorded`, got "
            f"{sorted(judges)[:5]!r}"
        )
    model, method = judges.pop()
    metadata = {
        "method": f"recorded:{method}",
        "takes": kind_of_verdict(replayed[0]["verdict"]),
        "model": {"recorded": {"name": model}},
        "options": {"orders": orders},
        "calls": 0,
    }
    by_id = {row["id"]: row for row in replayed}

    def said(pair: dict[str, Any]) -> dict[str, Any]:
        row = by_id.get(pair.get("id"))
        if row is None:
            missing: Failure = {
                "step": "recorded",
                "unit": "",
                "reason": "missing",
                "detail": f"no verdict is recorded on {pair.get('id')!r}",
            }
            return {"verdict": not_judged([missing], no_usage()), "by_order": {}}
        return {name: row[name] for name in ("verdict", "by_order") if name in row}

    # Loaded on use: reading data needs none of it.
    from langchain_core.runnables import RunnableLambda

    return RunnableLambda(said, name="RecordedJudge").with_config(metadata=metadata)
