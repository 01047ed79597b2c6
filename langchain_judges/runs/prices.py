"""Prices of tokens, by a file or the table of genai-prices, and estimates of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ConfigDict, NonNegativeFloat

from langchain_judges.asking import adapter, reading
from langchain_judges.asking.models import ModelSpec, model_name, own_address
from langchain_judges.errors import OptionError, needs
from langchain_judges.methods.describe import leaves_of, metadata_of, unwrapped
from langchain_judges.methods.registry import CallEstimate
from langchain_judges.rows.texts import BYTES, bytes_of, texts_read

_Model = ModelSpec | BaseChatModel
# Service tiers at the usual price, and flex processing, which has a factor.
_TIERS = (None, "auto", "default", "standard", "on_demand", "flex")
# Name of the package's table, in place of a file.
TABLE = "genai-prices"


# Providers whose prompt caches the calls of a row wait for.
_CACHING = {"anthropic", "azure_openai", "google_genai", "google_vertexai", "openai"}


# Tokens of a text or label in a reply, about.
_PART = 25


class CallTokens(NamedTuple):
    """The tokens of a call.

    Attributes:
        words: Tokens besides the texts of its row: the method's and the caller's own words,
            and what earlier steps wrote.
        reply: Tokens of the reply.
        share: The part of a row's texts that it shows.
    """

    words: int = 300
    reply: int = 150
    share: float = 1.0

    @classmethod
    def of(cls, requests: str, row: Mapping[str, object], calls: int) -> CallTokens:
        """That of a row's requests as `show` prints them, at least the usual if some lack."""
        asked = requests.split(_REPLY)[:-1] or [""]
        texts, usual = texts_read(row), cls()
        seen = sum(bytes_of(text for text in texts if text in each) for each in asked)
        words = max(0, bytes_of([requests]) - seen) // len(asked) // BYTES
        reply = max(usual.reply, _PART * requests.count('"type": "string"') // len(asked))
        if not seen or len(asked) < calls:
            return cls(max(usual.words, words), reply)
        return cls(words, reply, seen / len(asked) / bytes_of(texts))


_REPLY = "\n[the reply]\n"
_USUAL = CallTokens()


class Price(BaseModel):
    """Dollars per million tokens of a model.

    Attributes:
        cached_input: Price of input tokens read from the provider's cache; None for the
            price of `input`.
        cache_write: Price of input tokens written to the provider's cache; None for the
            price of `input`.
        flex: Factor of the price in flex processing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached_input: NonNegativeFloat | None = None
    cache_write: NonNegativeFloat | None = None
    flex: NonNegativeFloat = 1.0

    def of(self, paid: reading.TokenUsage) -> float | None:
        """The cost of a reply in dollars.

        None if its tier or a kind of its tokens has a different price, or nobody counted those
        of its prompt, unless the model costs nothing.
        """
        is_usual = paid.tier in _TIERS and paid.input_tokens
        if not is_usual and any((self.input, self.output, self.cached_input, self.cache_write)):
            return None
        each = self.input if self.cached_input is None else self.cached_input
        written = self.input if self.cache_write is None else self.cache_write
        fresh = paid.input_tokens - paid.cached_tokens - paid.written_tokens
        dollars = fresh * self.input + paid.cached_tokens * each
        dollars += paid.written_tokens * written + paid.output_tokens * self.output
        return float(dollars * (self.flex if paid.tier == "flex" else 1)) / 1_000_000


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    date: str
    models: dict[str, Price]


@dataclass(frozen=True)
class Prices:
    """Prices by model.

    Attributes:
        source: Source and date of the prices.
        models: Prices by the provider's name for the model; None for those of genai-prices.
    """

    source: str
    models: Mapping[str, Price] | None = None

    @classmethod
    def read(cls, source: str | PathLike[str]) -> Prices:
        """Read a file of prices, or use the table of genai-prices.

        Args:
            source: A JSON file `{"date", "models": {name: {"input", "output", "cached_input"?,
                "cache_write"?, "flex"?}}}`, in dollars per million tokens, or `"genai-prices"`.

        Raises:
            OptionError: The file is missing or has another form.
            MissingExtraError: The table needs the extra `prices`.
        """
        if str(source) == TABLE:
            with needs("prices", "A table of prices"):
                import genai_prices  # noqa: F401 - whether it is there

            return cls(f"{TABLE} {metadata.version(TABLE)}")
        try:
            data = _File.model_validate_json(Path(source).read_bytes())
        except (OSError, ValueError) as exc:
            problem = " ".join(str(exc).split())[:300]
            raise OptionError(f"{source} is not a file of prices ({problem})") from exc
        return cls(f"{Path(source).name} of {data.date}", data.models)

    def of(self, model: _Model) -> Price | None:
        """The price of a model, which may not be made yet; None if it is unknown."""
        return self._named(*_provider_and_name(model))

    def _named(self, provider: str, name: str) -> Price | None:
        return _table_price(provider, name) if self.models is None else self.models.get(name)

    def cost(self, model: _Model, paid: reading.TokenUsage) -> float | None:
        """The cost of a reply in dollars; None if the price is unknown.

        Of a router's reply it is that of the model that answered, if its price is known.
        """
        answered = paid.model and self._named(_provider_and_name(model)[0], paid.model)
        price = answered or self.of(model)
        return price.of(paid) if price else None


def _provider_and_name(model: _Model) -> tuple[str, str]:
    """A model's provider and the provider's name for it.

    The provider is empty for a server with another address.
    """
    if isinstance(model, dict):
        name = model["name"]
        provider = "openai" if name.startswith("gpt-") else name.partition(":")[0]
        if ":" in name and not (model.get("base_url") and provider != "openai"):
            name = name.partition(":")[2]
        address = model.get("base_url") or (own_address() if provider == "openai" else None)
    else:
        name, provider = model_name(model), _package_of(model)
        address = getattr(model, "openai_api_base", None)
    is_own = address and urlsplit(str(address)).hostname != "api.openai.com"
    return "" if is_own else provider, name


def _package_of(model: BaseChatModel) -> str:
    """The provider by the package of a chat model, such as `langchain_openai`."""
    packages = (kind.__module__.partition(".")[0] for kind in type(model).__mro__)
    ours = ("langchain_core", "langchain_judges")
    names = (name for name in packages if name.startswith("langchain_") and name not in ours)
    return next(names, "").removeprefix("langchain_")


@lru_cache(maxsize=256)
def _table_price(provider: str, name: str) -> Price | None:
    with needs("prices", "A table of prices"):
        from genai_prices import Usage, calc_price

    def dollars(**tokens: int) -> float:
        price = calc_price(Usage(**tokens), name, provider_id=provider).total_price
        return float(price * 1_000_000 / count)

    # Of a call of usual size: some models cost more for a prompt of hundreds of thousands.
    count = 1_000
    try:
        return Price(
            input=dollars(input_tokens=count),
            output=dollars(output_tokens=count),
            cached_input=dollars(input_tokens=count, cache_read_tokens=count),
            cache_write=dollars(input_tokens=count, cache_write_tokens=count),
            flex=0.5 if provider == "openai" else 1.0,  # which the table does not have
        )
    except LookupError:
        return None


@dataclass(frozen=True)
class Estimate:
    """Estimated tokens and dollars of a run.

    Attributes:
        cached_tokens: The part of `input_tokens` that providers are likely to read from
            their prompt caches.
        dollars: None: no prices, or the price of a model is not known.
    """

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    dollars: float | None


def estimate(
    judge: object, *, n: int, size: int, prices: Prices | None = None, each: CallTokens = _USUAL
) -> Estimate:
    """Estimate the tokens and dollars of a run; nothing is asked.

    Texts count four bytes a token; the whole may be off by half or double. Where a row is long
    enough for the provider's prompt cache, its texts are read from there by all calls but the
    first of each order.

    Args:
        judge: A judge of this package, or an estimate of its calls.
        n: How many rows there are.
        size: Bytes of all of their texts.
        prices: What tokens cost.
        each: What a call takes besides.
    """
    texts = size // BYTES
    input_tokens = cached_tokens = replies = 0
    costs: list[float | None] = []
    for calls, model in _models_of(judge):
        is_cached = texts >= n * adapter.SHORTEST and _has_cache(model)
        usage = reading.TokenUsage(
            calls * (int(texts * each.share) + n * each.words),
            max(0, calls - 2) * texts if is_cached else 0,  # all but the first of each order
            calls * n * each.reply,
            _tier(model),
        )
        input_tokens, replies = input_tokens + usage.input_tokens, replies + usage.output_tokens
        cached_tokens += usage.cached_tokens
        costs.append(prices.cost(model, usage) if prices else None)
    known = [cost for cost in costs if cost is not None]
    dollars = sum(known) if costs and len(known) == len(costs) else None
    return Estimate(input_tokens, cached_tokens, replies, dollars)


def _has_cache(model: _Model) -> bool:
    """Whether the provider of a model caches prompts by how they begin."""
    if not isinstance(model, dict):
        return adapter.prompt_cache_of(model) is not None
    provider, colon, _ = model["name"].partition(":")
    is_openai = not colon and (provider.startswith("gpt-") or "base_url" in model)
    return is_openai or provider in _CACHING


def _tier(model: _Model) -> str | None:
    if isinstance(model, dict):
        return (model.get("settings") or {}).get("service_tier")
    return getattr(model, "service_tier", None)


def _models_of(judge: object) -> list[tuple[int, _Model]]:
    """The calls for a row and the model, of a judge or of each of its members."""
    if isinstance(judge, CallEstimate):
        return [(each.calls, each.model) for each in judge.asked]
    models = [(each, unwrapped(each).model) for each in leaves_of(judge)]
    return [
        (metadata_of(each)["calls"], ModelSpec(name=own) if isinstance(own, str) else own)
        for each, own in models
    ]
