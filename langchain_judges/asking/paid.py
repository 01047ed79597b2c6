"""What one reply took: its tokens, those that a provider cached, and the tier that answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage


class Paid(NamedTuple):
    """The tokens of one reply."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that the provider read from its prompt cache."""
    output_tokens: int = 0
    tier: str | None = None
    """As the provider calls its service tier: `default`, `flex`, `priority`; of a reply that a
    batch job brought, `batch`."""
    written_tokens: int = 0
    """The part of `input_tokens` that the provider wrote to its prompt cache for five minutes,
    where it has a price of its own, as Anthropic's has."""

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


def paid_for(message: AIMessage) -> Paid:
    """Return what a reply took."""
    usage: Mapping[str, Any] = message.usage_metadata or {}
    # LangChain writes the tier before what it counts of a reply in another tier than the
    # default one: `flex_cache_read`.
    details = (usage.get("input_token_details") or {}).items()
    cached = sum(count or 0 for name, count in details if name.endswith("cache_read"))
    # The second name where Anthropic also says for how long it is held; the first is then 0.
    writes = {"cache_creation", "ephemeral_5m_input_tokens"}
    written = sum(count or 0 for name, count in details if name in writes)
    metadata = message.response_metadata
    tier = metadata.get("service_tier") or (metadata.get("usage") or {}).get("service_tier")
    tokens = usage.get("input_tokens", 0), cached, usage.get("output_tokens", 0)
    return Paid(*tokens, tier, written)
