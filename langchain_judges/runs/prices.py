"""What tokens cost, from a file of the user's or the table of genai-prices; never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, ValidationError

from langchain_judges.asking.models import model_name
from langchain_judges.asking.paid import Paid
from langchain_judges.errors import OptionError, needs

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_HALF = ("batch", "flex")
"""Service tiers at the price of batches."""
_BATCH = {"anthropic": 0.5, "openai": 0.5}
"""By what providers multiply all of their prices in a batch; the table does not say."""
TABLE = "genai-prices"
"""Names the package's table where a file could stand."""
_PROVIDERS = {
    "ChatAnthropic": "anthropic",
    "ChatDeepSeek": "deepseek",
    "ChatGoogleGenerativeAI": "google",
    "ChatGroq": "groq",
    "ChatMistralAI": "mistral",
    "ChatOpenAI": "openai",
    "ChatXAI": "x-ai",
}
"""How genai-prices calls those who ask money for a class of chat model."""


class Price(BaseModel):
    """Dollars for a million tokens of a model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached_input: NonNegativeFloat | None = None
    """Of input tokens read from the provider's cache; None: as `input`."""
    batch: NonNegativeFloat = 1.0
    """By what the price is multiplied in a batch job, and in flex processing."""

    def of(self, paid: Paid) -> float | None:
        """Return what a reply cost, in dollars; None where its tier has a price of its own."""
        if paid.tier == "priority":
            return None
        each = self.input if self.cached_input is None else self.cached_input
        fresh = paid.input_tokens - paid.cached_tokens
        dollars = fresh * self.input + paid.cached_tokens * each
        dollars += paid.output_tokens * self.output
        return float(dollars * (self.batch if paid.tier in _HALF else 1)) / 1_000_000


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    date: str
    models: dict[str, Price]


@dataclass(frozen=True)
class Prices:
    """Prices by model."""

    source: str
    """Where they are from, and of when."""
    models: Mapping[str, Price] | None = None
    """By the provider's name for the model; None: those of genai-prices."""
    _known: dict[tuple[str, str], Price | None] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, source: str | PathLike[str]) -> Prices:
        """Read a file of prices, or take the table of genai-prices.

        Args:
            source: A JSON file `{"date", "models": {name: {"input", "output",
                "cached_input"?, "batch"?}}}`, in dollars for a million tokens, or
                `"genai-prices"`.

        Raises:
            OptionError: The file is missing or of another form.
            MissingExtraError: The table needs the extra `prices`.
        """
        if source == TABLE:
            with needs("prices", "A table of prices"):
                import genai_prices  # noqa: F401 - whether it is there

            return cls(f"{TABLE} {metadata.version(TABLE)}")
        try:
            data = _File.model_validate(json.loads(Path(source).read_text(encoding="utf-8")))
        except (OSError, ValueError, ValidationError) as exc:
            raise OptionError(f"{source} is no file of prices ({_problem(exc)})") from exc
        return cls(f"{Path(source).name} of {data.date}", data.models)

    def of(self, model: BaseChatModel) -> Price | None:
        """Return the price of a model; None where none is known."""
        name = model_name(model)
        key = (_address(model), name)
        if key not in self._known:
            if self.models is None:
                self._known[key] = _listed(_provider(model), name)
            else:
                self._known[key] = self.models.get(name)
        return self._known[key]

    def cost(self, model: BaseChatModel, paid: Paid) -> float | None:
        """Return what a reply cost in dollars; None where no price is known."""
        price = self.of(model)
        return None if price is None else price.of(paid)


def _problem(exc: Exception) -> str:
    if not isinstance(exc, ValidationError):
        return str(exc)
    first = exc.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _address(model: BaseChatModel) -> str:
    return str(getattr(model, "openai_api_base", None) or "")


def _provider(model: BaseChatModel) -> str | None:
    """Return who asks money for a model; a server of the user's own asks none that is known."""
    address = urlsplit(_address(model)).hostname
    if address not in (None, "api.openai.com"):
        return None
    return _PROVIDERS.get(type(model).__name__)


@lru_cache(maxsize=256)
def _listed(provider: str | None, name: str) -> Price | None:
    with needs("prices", "A table of prices"):
        from genai_prices import Usage, calc_price
    if provider is None:
        return None

    def dollars(**tokens: int) -> float:
        return float(calc_price(Usage(**tokens), name, provider_id=provider).total_price)

    million = 1_000_000
    try:
        return Price(
            input=dollars(input_tokens=million),
            output=dollars(output_tokens=million),
            cached_input=dollars(input_tokens=million, cache_read_tokens=million),
            batch=_BATCH.get(provider, 1.0),
        )
    except LookupError:
        return None
