"""What a store's vectors come from, in words that a manifest can hold."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.embeddings import Embeddings

_FIELDS = (
    "model",
    "model_name",
    "model_id",
    "repo_id",
    "deployment",
    "revision",
    "dimensions",
    "size",
)
"""What LangChain's embedders call the choice of their model, and of its width."""


def identity_of(embeddings: Embeddings) -> str:
    """Return the class and model of an embedder: `OpenAIEmbeddings(model='…')`.

    Of a path only the last part counts, for the same model lies elsewhere on each machine; a
    cache around an embedder is not a part of it.
    """
    inner: Any = embeddings
    while isinstance(below := getattr(inner, "underlying_embeddings", None), Embeddings):
        inner = below
    values = ((name, getattr(inner, name, None)) for name in _FIELDS)
    fields = ", ".join(
        f"{name}={_short(value)!r}"
        for name, value in values
        if isinstance(value, str | int) and value != ""
    )
    return f"{type(inner).__name__}({fields})"


def _short(value: str | int) -> str | int:
    if isinstance(value, str) and (os.path.isabs(value) or os.path.isdir(value)):
        return os.path.basename(os.path.normpath(value))
    return value
