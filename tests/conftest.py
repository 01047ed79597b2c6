"""Tests read no key and no address from the machine they run on."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from langchain_openai import ChatOpenAI

from langchain_judges.testing import FakeModelServer
from tests.model_server import Behaviour, good
from tests.small_sets import write_sets

# Other processes share the machine: an example may take any time.
settings.register_profile("tests", parent=settings.default, max_examples=40, deadline=None)
settings.load_profile("tests")

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("LANGSMITH", "LANGCHAIN", "OPENAI", "ANTHROPIC")):
            monkeypatch.delenv(name)


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeModelServer]]:
    """Return a function that starts a model server; all of them stop with the test."""
    running: list[FakeModelServer] = []

    def start(behave: Behaviour = good, delay: float = 0.0) -> FakeModelServer:
        server = FakeModelServer(behave, delay)
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture
def letter_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default embedder count letters, where its own model takes seconds to load."""

    class Letters:
        def encode(self, texts: list[str], **_: object) -> list[list[float]]:
            return [[1.0 + text.count(chr(97 + n)) for n in range(26)] for text in texts]

    monkeypatch.setattr("langchain_judges.asking.embeddings._encoder", lambda _: Letters())


@pytest.fixture(scope="session")
def small_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of public sets in small, in the files of the real ones."""
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture
def hub_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes a copy of a hub repository."""
    loader = pytest.importorskip("datasets")
    monkeypatch.setattr(loader.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    root = tmp_path / "repository"

    def write(file: str, records: list[dict], split: str | None = None) -> Path:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            loader.Dataset.from_list(records).to_parquet(path)
        else:
            text = "".join(json.dumps(record) + "\n" for record in records)
            path.write_bytes(gzip.compress(text.encode()) if ".gz" in file else text.encode())
        if split:
            card = f"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: {split}\n"
            (root / "README.md").write_text(f"{card}    path: {file}\n---\n")
        return root

    return write


def chat(server: FakeModelServer, **options: object) -> ChatOpenAI:
    """Return a client of the server; a new event loop is safe with each of them."""
    return server.chat(**options)
