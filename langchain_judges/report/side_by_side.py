"""A comparison of methods on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from langchain_judges.runs.studies.comparison import Comparison, Rate, Standing


def comparison_table(comparison: Comparison) -> Table:
    """Render a comparison: one column for each method, one line for each number."""
    methods = comparison["methods"]
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for method in methods:
        table.add_column(method, justify="right")
    lines = {
        "settings": [_settings(each["options"]) for each in methods.values()],
        "calls a pair": [f"{each['calls_each']:,}" for each in methods.values()],
    }
    for side in ("A", "B", "tie"):
        lines[side] = [f"{each['verdicts'][side]:,}" for each in methods.values()]
    lines["not judged"] = [f"{each['not_judged']:,}" for each in methods.values()]
    lines["flips"] = [_flips(each) for each in methods.values()]
    lines["failures"] = [_failures(each["failures"]) for each in methods.values()]
    lines["calls"] = [f"{each['calls']:,}" for each in methods.values()]
    lines["tokens"] = [f"{each['tokens']:,}" for each in methods.values()]
    if any(each["labelled"] for each in methods.values()):
        lines["as labelled"] = [_rate(each["labelled"]) for each in methods.values()]
    for other in list(methods)[:-1] if len(methods) > 1 else []:
        lines[f"as {other}"] = [_agreement(comparison, other, method) for method in methods]
    for name, cells in lines.items():
        table.add_row(Text(name, style="bold"), *(Text(cell) for cell in cells))
    return table


def _settings(options: Mapping[str, object]) -> str:
    """Return options in a few words; the names of aspects and the like would fill the page."""
    lines = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            lines += [f"{inner} {setting}" for inner, setting in value.items()]
        elif isinstance(value, list | tuple):
            lines.append(f"{len(value)} {name}")
        else:
            lines.append(f"{name} {str(value)[:20]}")
    return "\n".join(lines) or "-"


def _flips(standing: Standing) -> str:
    if not standing["both_orders"]:
        return "-"
    return f"{standing['flips']:,} of {standing['both_orders']:,}"


def _failures(failures: Mapping[str, int]) -> str:
    total = sum(failures.values())
    reasons = [f"{n} {reason}" for reason, n in sorted(failures.items())]
    return "\n".join([f"{total:,}", *reasons])


def _agreement(comparison: Comparison, first: str, second: str) -> str:
    """Return the agreement of two methods; each pair is shown once, above the diagonal."""
    for entry in comparison["agreement"]:
        if entry["methods"] == [first, second]:
            return _rate(entry["rate"])
    return ""


def _rate(rate: Rate | None) -> str:
    if rate is None or rate["share"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    percents = f"{100 * rate['low']:.0f}–{100 * rate['high']:.0f}"
    return f"{rate['count']:,} of {rate['of']:,}\n{100 * rate['share']:.0f} % [{percents}]"
