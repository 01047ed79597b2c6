"""The article that the roles read: cut, and the cut reported, where a context is short."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Failure, Pair

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where an article may not fit."""
_RESERVE = 1500
"""Tokens kept free for instructions, roles and the reply."""
_LEAST = 500
"""Characters of an article that are always shown."""


def article_within(pair: Pair, contexts: Sequence[int | None]) -> str:
    """Return the article of a pair as far as it fits the shortest context.

    Args:
        pair: Its texts, the roles and the reply must fit too.
        contexts: Tokens that each model takes, where known.
    """
    article = transcript(pair["input"])
    tokens = [context for context in contexts if context]
    if not tokens:
        return article
    others = len(judged(pair["output_a"]) + judged(pair["output_b"]))
    others += len(pair.get("reference") or "")
    room = _CHARACTERS * (min(tokens) - _RESERVE) - others
    return article[: max(room, _LEAST)]


def cut_failures(pair: Pair, article: str) -> list[Failure]:
    """Return what a verdict says of an article that was cut.

    Args:
        pair: The pair, whose input is the whole article.
        article: What is shown of it.
    """
    whole = len(transcript(pair["input"]))
    if len(article) == whole:
        return []
    detail = (
        f"the article was cut from {whole:,} to {len(article):,} characters to fit the context"
    )
    return [{"step": "roles", "unit": "article", "reason": "input_cut", "detail": detail}]
