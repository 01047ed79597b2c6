"""What a run may cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from langchain_judges.asking.limiter import TokenUsage
from langchain_judges.asking.models import ModelSpec, model_name
from langchain_judges.asking.tokens import BYTES, Tokenizer, bytes_of, tokenizer_of
from langchain_judges.methods.describe import Outline, metadata_of, unwrapped
from langchain_judges.rows.texts import texts_read
from langchain_judges.runs.prices import provider_and_name

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.runs.prices import Price, Prices

    _Model = ModelSpec | BaseChatModel

OVERHEAD = 300
"""Tokens of a call besides the row: the method's own words, and what earlier steps wrote."""
REPLY = 150
"""Tokens of a reply."""
SAMPLE = 1_000
"""Rows whose tokens are counted; the others are taken to have as many for each byte."""


@dataclass(frozen=True)
class Estimate:
    """What a run may cost."""

    input_tokens: int
    output_tokens: int
    dollars: float | None
    """None: no prices, or the price of a model is not known."""
    counted: str
    """How the tokens of the texts were found, and how far the whole may be off."""


def estimate(
    judge: object,
    rows: Iterable[Mapping[str, object]],
    *,
    n: int,
    size: int,
    prices: Prices | None = None,
    tier: str | None = None,
) -> Estimate:
    """Estimate the tokens and dollars of a run; nothing is asked.

    Args:
        judge: A judge of this package, or its outline.
        rows: Its rows; the first thousand are read, if the model's tokens can be counted.
        n: How many rows there are.
        size: Bytes of all of their texts.
        prices: What tokens cost.
        tier: `"batch"` where calls become jobs; None: what the model is set to.
    """
    sample = [list(texts_read(row)) for row in islice(rows, SAMPLE)]
    input_tokens = replies = 0
    costs: list[float | None] = []
    counters: dict[str, Tokenizer] = {}
    for calls, model in _models_of(judge):
        name = _name(model)
        counter = counters.setdefault(name, tokenizer_of(name))
        usage = TokenUsage(
            calls * (_tokens(counter, sample, size) + n * OVERHEAD),
            0,
            calls * n * REPLY,
            tier or _tier(model),
        )
        input_tokens, replies = input_tokens + usage.input_tokens, replies + usage.output_tokens
        price = _price(prices, model)
        costs.append(None if price is None else price.of(usage))
    known = [cost for cost in costs if cost is not None]
    dollars = sum(known) if costs and len(known) == len(costs) else None
    return Estimate(input_tokens, replies, dollars, _counted(counters.values(), len(sample), n))


def _tokens(counter: Tokenizer, sample: list[list[str]], size: int) -> int:
    """Return the tokens of all texts, by those of a sample."""
    texts = [text for row in sample for text in row]
    if not counter.exact or not (part := bytes_of(texts)):
        return size // BYTES
    return round(size * counter.count(texts) / part)


def _counted(counters: Iterable[Tokenizer], sample: int, n: int) -> str:
    names = ", ".join(sorted({counter.name for counter in counters}))
    exact = all(counter.exact for counter in counters)
    of = f" on the first {sample:,} rows" if exact and sample < n else ""
    return (
        f"texts counted by {names}{of}, the method's own words and the replies by their usual "
        "length: it may be off by half or double"
    )


def _name(model: _Model) -> str:
    return provider_and_name(model)[1] if isinstance(model, dict) else model_name(model)


def _tier(model: _Model) -> str | None:
    if isinstance(model, dict):
        return (model.get("settings") or {}).get("service_tier")
    return getattr(model, "service_tier", None)


def _price(prices: Prices | None, model: _Model) -> Price | None:
    if prices is None:
        return None
    return prices.of_named(model) if isinstance(model, dict) else prices.of(model)


def _models_of(judge: object) -> list[tuple[int, _Model]]:
    """Return the calls for a row and the model, of a judge or of each of its members."""
    if isinstance(judge, Outline):
        return list(judge.asked)
    own = unwrapped(judge)
    if members := getattr(own, "members", ()):
        return [each for member in members for each in _models_of(member.judge)]
    model: _Model = ModelSpec(name=own.model) if isinstance(own.model, str) else own.model
    return [(metadata_of(judge)["calls"], model)]
