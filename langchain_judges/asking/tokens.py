"""How many tokens texts have, by the model's own encoding where it is on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

BYTES = 4
"""UTF-8 bytes that make a token, about, in any language: English has 4 to 5, Chinese 3 to 5."""
_FILES = "https://openaipublic.blob.core.windows.net/encodings"
_VOCABULARY = {
    "cl100k_base": "cl100k_base",
    "o200k_base": "o200k_base",
    "o200k_harmony": "o200k_base",
}


class Tokenizer(NamedTuple):
    """Counts the tokens of texts."""

    name: str
    """Of the encoding, or how tokens are guessed."""
    count: Callable[[Iterable[str]], int]
    exact: bool


def tokenizer_of(model: str) -> Tokenizer:
    """Return what counts a model's tokens; nothing is downloaded for it.

    An encoding of tiktoken is taken where the model's is known and its vocabulary is on disk,
    where tiktoken puts it on first use (`TIKTOKEN_CACHE_DIR`); otherwise bytes are counted.

    Args:
        model: The provider's name for it.
    """
    guess = Tokenizer(f"{BYTES} bytes a token", _by_bytes, exact=False)
    if importlib.util.find_spec("tiktoken") is None:
        return guess
    # Loaded on use: it is needed for estimates alone.
    import tiktoken
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model)
        if not _on_disk(name):
            return guess
        encoding = tiktoken.get_encoding(name)
    except (KeyError, OSError, ValueError):
        return guess

    def count(texts: Iterable[str]) -> int:
        return sum(len(each) for each in encoding.encode_ordinary_batch(list(texts)))

    return Tokenizer(name, count, exact=True)


def bytes_of(texts: Iterable[str]) -> int:
    """Return how many bytes texts have in UTF-8."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _by_bytes(texts: Iterable[str]) -> int:
    return bytes_of(texts) // BYTES


def _on_disk(encoding: str) -> bool:
    """Say whether tiktoken can read an encoding's vocabulary without downloading it."""
    # Named as tiktoken does: by the address where it would be fetched.
    file = f"{_FILES}/{_VOCABULARY.get(encoding)}.tiktoken"
    name = hashlib.sha1(file.encode(), usedforsecurity=False).hexdigest()
    folders = (os.environ.get(each) for each in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    default = Path(tempfile.gettempdir()) / "data-gym-cache"
    folder = next((each for each in folders if each is not None), str(default))
    return bool(folder) and (Path(folder) / name).is_file()
