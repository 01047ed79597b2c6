"""Tests read no key and no address from the machine they run on."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

# The process that hands tests to workers reads this too, before any of them starts: whatever
# is slow to import is imported where it is used.
if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

    from langchain_judges.testing import FakeModelServer
    from tests.model_server import Behaviour

# Each worker has one core: threads of numeric libraries would wait for each other on it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")  # llama.cpp asks for every core by itself

DATA = Path(__file__).parents[2] / "shared" / "data"

# What must outlast a kill is synced to the disk again and again; in memory that costs nothing.
MEMORY = Path("/dev/shm")
ROOM = 2 * 2**30


def pytest_configure() -> None:
    """Keep temporary files in memory where the machine has room for them."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than cores: whole runs wait for programs, unit tests alone seldom do."""
    from xdist.plugin import pytest_xdist_auto_num_workers as cores

    return cores(config) + (not config.option.markexpr)


def pytest_sessionstart() -> None:
    """Sweep nothing while tests are read: imports stay. Give each example any time it takes."""
    from hypothesis import settings

    gc.disable()
    settings.register_profile("tests", settings.default, max_examples=25, deadline=None)
    settings.load_profile("tests")


def pytest_collection_finish() -> None:
    gc.enable()
    gc.set_threshold(10_000)  # of 700 by default: what tests make is small and soon gone


@pytest.fixture(scope="module", autouse=True)
def old_objects_set_aside() -> None:
    """Set aside what stays until the end: each sweep for garbage would read all of it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let clients trust nobody: no test speaks TLS, and reading the list takes 50 ms."""
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build the commands of the application once, not for each time a test calls one."""
    import typer.testing

    from langchain_judges.cli import Commands

    built, build = dict[str, Any](), Commands.get_command

    def get_command(commands: Commands, context: Any, name: str) -> Any:
        if name not in built:
            built[name] = build(commands, context, name)
        return built[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        patch.setattr(Commands, "get_command", get_command)
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("LANGSMITH", "LANGCHAIN", "OPENAI", "ANTHROPIC")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def marked_where_programs_start(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let a test start a program or a model only where its marker says so."""
    if any(map(request.node.get_closest_marker, ("system", "figures", "real"))):
        return

    begin = subprocess.Popen.__init__

    def guard(process: subprocess.Popen[str], command: list[str], *args: Any, **more: Any) -> None:
        # Libraries ask others once: `lscpu` for cores, `uname` for the processor.
        assert command[0] != sys.executable, f"mark this test as `system`: it starts {command}"
        begin(process, command, *args, **more)

    monkeypatch.setattr(subprocess.Popen, "__init__", guard)
    # Nor is the local model loaded, for a second, where a test only names it.
    served = SimpleNamespace(listening_address="http://127.0.0.1:9"), "none"
    monkeypatch.setattr("langchain_judges.asking.local._serve", lambda file: served)


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeModelServer]]:
    """A function that starts a model server; all of them stop with the test."""
    from langchain_judges.testing import FakeModelServer
    from tests.model_server import good

    running: list[FakeModelServer] = []

    def start(behave: Behaviour = good) -> FakeModelServer:
        server = FakeModelServer(behave)
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture
def letter_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the default embedder count letters, where its own model takes seconds to load."""
    monkeypatch.setattr("langchain_judges.asking.embeddings._encoder", lambda: letters_of)


def letters_of(texts: list[str]) -> list[list[float]]:
    return [[1.0 + text.count(chr(97 + n)) for n in range(26)] for text in texts]


@pytest.fixture(scope="session")
def small_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of public sets in small, in the files of the real ones."""
    from tests.small_sets import write_sets

    return write_sets(tmp_path_factory.mktemp("sets"))


def chat(server: FakeModelServer, **options: object) -> ChatOpenAI:
    """A client of the server; a new event loop is safe with each of them."""
    return server.chat(**options)


@pytest.fixture
def traced() -> Iterator[Callable[[Callable[[], object]], Any]]:
    """A function that runs another and returns LangSmith's requests meanwhile."""
    from langchain_core.tracers.langchain import wait_for_all_tracers
    from langsmith import Client
    from langsmith.run_helpers import tracing_context

    from tests.langsmith_server import LangSmithServer

    with LangSmithServer() as server:
        client = Client(api_url=server.url, api_key="x")

        def during(work: Callable[[], object]) -> Any:
            server.runs.clear()
            with tracing_context(enabled=True, client=client, project_name="P"):
                work()
            wait_for_all_tracers()
            client.flush()
            return server.read()

        yield during
        client.cleanup()
