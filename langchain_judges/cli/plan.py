"""What a command will ask, said before anything is asked: calls, tokens, dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from langchain_judges.runs.decision import counted

if TYPE_CHECKING:
    from langchain_judges.methods.describe import Outline
    from langchain_judges.runs.prices import Prices as PriceList


class Amount(NamedTuple):
    """The rows that are to be judged."""

    number: int
    size: int
    """Bytes of all of their texts."""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]]) -> Amount:
        """Return how much some rows are."""
        from langchain_judges.rows.texts import bytes_of, texts_read

        return cls(len(rows), sum(bytes_of(texts_read(row)) for row in rows))


def tell_calls(
    method: str, kind: str, calls: int, rows: int, errors: Console, *, is_local: bool
) -> None:
    """Say how many calls the rows take at most, and what a small local model is worth."""
    errors.print(
        f"{counted(rows, kind)} by {method}: at most {counted(rows * calls, 'call')} "
        f"({calls} for each {kind}), excluding retries."
    )
    if is_local:
        errors.print(
            "A small local model shows how the method works; its verdicts are poor. "
            "Name a larger model for verdicts to rely on.",
            style="yellow",
        )


def _tell_estimate(
    judge: Outline,
    amount: Amount,
    prices: PriceList | None,
    errors: Console,
    *,
    batch: bool,
) -> None:
    """Say about how many tokens the rows take, and dollars where prices are known."""
    from langchain_judges.runs.prices import estimate

    tier = "batch" if batch else None
    cost = estimate(judge, n=amount.number, size=amount.size, prices=prices, tier=tier)
    text = f"About {cost.input_tokens:,} input and {cost.output_tokens:,} output tokens"
    if prices:
        price = "no price is known in" if cost.dollars is None else f"${cost.dollars:,.2f} by"
        text += f", {price} {prices.source}"
    errors.print(f"{text}; it may be off by half or double.", markup=False)


def tell_dry_run(
    judge: Outline,
    amount: Amount,
    prices: Path | None,
    errors: Console,
    *,
    batch: bool = False,
) -> None:
    """Say what a run over some rows will ask and may cost."""
    each, local = judge.calls, judge.is_local
    tell_calls(judge.method, judge.kind, each, amount.number, errors, is_local=local)
    _tell_estimate(judge, amount, price_list(prices), errors, batch=batch)


def price_list(path: Path | None) -> PriceList | None:
    """Return the prices that a file or the name of a table gives."""
    if path is None:
        return None
    from langchain_judges.runs.prices import Prices

    return Prices.read(str(path))
