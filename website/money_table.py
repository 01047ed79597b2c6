"""Write the table of docs/money.md: what each verdict of the gallery took, and what it costs.

`make generated` writes it; a test says when it is stale.
"""

from __future__ import annotations

from pathlib import Path

from website.gallery import PAIRS, TEXTS, Example, between, result_of

PAGE = Path(__file__).parents[1] / "docs" / "money.md"
BEGIN, END = "<!-- `make generated` writes this table. -->", "<!-- end of the table -->"
PRICES = ((0.25, 2.0), (2.0, 10.0))
"""Dollars for a million tokens of input and of output: of a small model, of a large one."""


def line(example: Example) -> str:
    """Return the tokens of a verdict, and the dollars of a thousand like it."""
    result = result_of(example)
    usage = result["verdict"]["usage"]
    read, written = usage["input_tokens"], usage["output_tokens"]
    dollars = [f"{(read * price[0] + written * price[1]) / 1000:.2f}" for price in PRICES]
    cells = [f"[`{example.method}`](verdict.md#{example.method})", str(usage["calls"])]
    return f"| {' | '.join([*cells, f'{read:,}', f'{written:,}', *dollars])} |"


def table() -> str:
    """Return the table."""
    prices = [f"${read:g} and ${written:g} a million" for read, written in PRICES]
    head = ["judge", "calls", "tokens in", "tokens out", *prices]
    return "\n".join(
        [f"| {' | '.join(head)} |", "|" + "---|" * 6, *map(line, (*PAIRS, *TEXTS))]
    )


def page() -> str:
    """Return the page with a new table."""
    return between(PAGE.read_text(), BEGIN, END, f"{table()}\n")
