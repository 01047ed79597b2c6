"""The items of an audit before its first round: checked, named, grouped, and held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from langchain_judges.errors import InputError
from langchain_judges.methods.allure.audit.holdout import (
    group_of,
    grouped_by_task,
    split_by_group,
)
from langchain_judges.methods.allure.audit.options import AuditOptions
from langchain_judges.methods.allure.audit.review import AuditItem
from langchain_judges.rows.checks import check_item
from langchain_judges.rows.messages import plain_row


def held_out(
    items: Sequence[AuditItem], options: AuditOptions
) -> tuple[list[AuditItem], list[AuditItem], int]:
    """Return the items to audit and those of dev, and how many were grouped by their task.

    Raises:
        InputError: An item of dev lacks its true label, or belongs with an audited item.
    """
    share, dev_items = None, []
    if isinstance(options.dev, int | float):
        share = options.dev
    elif options.dev is not None:
        dev_items = identified(options.dev, "dev")
    plain = [*items, *dev_items]
    grouped = grouped_by_task(plain)
    pool, dev = grouped[: len(items)], grouped[len(items) :]
    if share:
        pool, dev = split_by_group(pool, share, seed=options.seed)
    elif not options.allow_leak:
        _check_apart(pool, dev)
    for item in dev:
        if item.get(options.truth) is None:
            raise InputError(
                f"{item['id']}: an item of dev needs its true label in `{options.truth}`"
            )
    pairs = zip(grouped, plain, strict=True)
    return pool, dev, sum(new.get("group") != old.get("group") for new, old in pairs)


def _check_apart(items: Sequence[AuditItem], dev: Sequence[AuditItem]) -> None:
    """Check that no item of dev has the id or group of an audited one."""
    groups = {group_of(item, number) for number, item in enumerate(items)}
    ids = {item["id"] for item in items}
    for number, item in enumerate(dev, len(items)):
        if item["id"] in ids or group_of(item, number) in groups:
            raise InputError(
                f"{item['id']} of dev shares its id or group with an audited item; split "
                "by group, or say `allow_leak=True`"
            )


def identified(items: Sequence[Mapping[str, object]], prefix: str) -> list[AuditItem]:
    """Return checked items, each with an id that no other has."""
    if not items or isinstance(items, Mapping | str):
        raise InputError("an audit needs a list of at least one item")
    ids: set[str] = set()
    items_with_ids: list[AuditItem] = []
    for number, raw in enumerate(items):
        item = plain_row(raw) if isinstance(raw, Mapping) else raw
        try:
            check_item(item)
        except InputError as exc:
            raise InputError(f"item {number}: {exc}") from exc
        id = str(item.get("id") or f"{prefix} {number}")
        if id in ids:
            raise InputError(f"item {number}: the id {id!r} stands twice")
        ids.add(id)
        items_with_ids.append(cast("AuditItem", {**item, "id": id}))
    return items_with_ids
