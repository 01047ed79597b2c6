"""Tests read no key and no address from the machine they run on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI

from tests.model_server import Behaviour, ModelServer, good

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("LANGSMITH", "LANGCHAIN", "OPENAI", "ANTHROPIC")):
            monkeypatch.delenv(name)


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """Return a function that starts a model server; all of them stop with the test."""
    running: list[ModelServer] = []

    def start(behave: Behaviour = good, delay: float = 0.0) -> ModelServer:
        server = ModelServer(behave, delay)
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__()


def chat(server: ModelServer, **options: object) -> ChatOpenAI:
    """Return a client of the server; a new event loop is safe with each of them."""
    settings = {"model": "fake", "api_key": "x", "use_responses_api": False, **options}
    return ChatOpenAI(base_url=server.url, **settings)
