"""What Branch-Solve-Merge shows beside its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_judges.methods.bsm.replies import OrderResult
from langchain_judges.methods.options import EvidenceTable, TableCells
from langchain_judges.methods.replies import SUBSCORES


def _orders(
    _: Mapping[str, object], by_order: Mapping[str, OrderResult | None]
) -> Sequence[TableCells]:
    return [
        {"order": order, "preference": result and result["preference"]}
        for order, result in by_order.items()
    ]


EVIDENCE = (
    EvidenceTable(
        "by_order",
        "Each order on its own",
        (("order", "Order"), ("preference", "Verdict")),
        _orders,
    ),
    SUBSCORES,
)
