"""The corpus from which aspects are learned: texts, each with the request that it answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import check_text
from langchain_judges.rows.messages import plain_row
from langchain_judges.rows.texts import judged, transcript

TextLike = str | Mapping[str, Any]
"""A text, or a pair, both of whose texts are read beside the request they answer."""


class Passage(NamedTuple):
    """One text of a corpus."""

    request: str
    """What it answers; empty for a text by itself."""
    text: str


def read_corpus(texts: Iterable[TextLike]) -> list[Passage]:
    """Return requests and texts; a pair gives two, a plain text has no request.

    Raises:
        InputError: A text is none.
    """
    several = isinstance(texts, Iterable) and not isinstance(texts, str | Mapping)
    items = list(texts) if several else []
    if not items:
        raise InputError("`texts` must be a list of at least one text or pair")
    corpus: list[Passage] = []
    for index, each in enumerate(items):
        try:
            corpus += _passages(each)
        except InputError as exc:
            raise InputError(f"text {index}: {exc}") from exc
    return corpus


def _passages(text: TextLike) -> list[Passage]:
    if isinstance(text, str):
        check_text(text, "text")
        return [Passage("", text)]
    if not isinstance(text, Mapping):
        raise InputError(f"a text or a pair is wanted, got {type(text).__name__}")
    pair = plain_row(text)
    for field in ("input", "output_a", "output_b"):
        check_text(pair.get(field), field)
    request = transcript(pair["input"])
    return [Passage(request, judged(pair[side])) for side in ("output_a", "output_b")]


def corpus_hash(corpus: Sequence[Passage]) -> str:
    """Return a hash of the texts of a corpus, in their order."""
    data = json.dumps(corpus, ensure_ascii=True)
    return hashlib.sha256(data.encode()).hexdigest()[:16]
