"""The failure memory on Postgres with pgvector, a server of its own on loopback."""

import asyncio
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from langchain_judges import FailureMemory
from tests.memories import Letters
from tests.test_memory import ITEM, example, ids

pytestmark = pytest.mark.system

POSTGRES = "langchain_postgres"


def programs() -> Path | None:
    """The folder of a Postgres that has pgvector: a packaged one or the system's."""
    packaged = importlib.util.find_spec("pgserver")
    if packaged and packaged.origin:
        return Path(packaged.origin).parent / "pginstall" / "bin"
    for control in Path("/usr/share/postgresql").glob("*/extension/vector.control"):
        return Path("/usr/lib/postgresql") / control.parts[4] / "bin"
    return None


@pytest.fixture(scope="module")
def server():
    bin_ = programs()
    if bin_ is None:
        pytest.skip("there is no Postgres with pgvector: pip install pgserver")
    if importlib.util.find_spec(POSTGRES) is None:
        pytest.skip("langchain-postgres is not installed: pip install langchain-postgres")
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    # Postgres refuses to run as root.
    who: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
    if who:
        shutil.chown(folder, **who)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def call(*command):
        return subprocess.run(
            [bin_ / command[0], *command[1:]],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
            extra_groups=[] if who else None,
            **who,
        )

    data = str(folder / "data")
    listen = f"-h 127.0.0.1 -p {port} -k '' -F"
    try:
        call("initdb", "-D", data, "-U", "judge", "-A", "trust", "-E", "UTF8", "--locale=C")
        call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", listen, "start")
        yield f"postgresql+psycopg://judge@127.0.0.1:{port}/postgres"
    except (OSError, subprocess.SubprocessError) as exc:
        pytest.skip(f"Postgres cannot be started here: {exc}")
    finally:
        if (Path(data) / "postmaster.pid").exists():
            call("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def connect(server):
    from langchain_postgres import PGVector
    from sqlalchemy import create_engine

    engine = create_engine(server)

    def make(**options):
        named = {"collection_name": "judges", "use_jsonb": True, **options}
        return FailureMemory(PGVector(Letters(), connection=engine, **named))

    yield make
    engine.dispose()


def test_a_memory_lives_in_postgres(connect):
    memory = connect(pre_delete_collection=True)
    assert memory.recall(ITEM) == []
    names = memory.remember([example(n) for n in range(6)])
    assert memory.remember([example(2)]) == [names[2]]
    memory.remember([example(2, corrected=5, round=3)])
    other = connect()
    assert (other.version, ids(other.examples())) == (memory.version, names)
    for how in ("all", "knn:3", "near:3", "uniform:2"):
        assert ids(other.recall(ITEM, how)) == ids(memory.recall(ITEM, how))
    assert other.recall({**ITEM, "group": "group 0"}, "knn:1")[0]["group"] != "group 0"
    assert other.forget(round=3) == 1
    assert other.examples()[2]["corrected"] == 0
    assert other.forget(auditor="Ann") == 4
    memory.refresh()
    assert ids(memory.examples()) == names[4:]


def test_a_memory_in_postgres_can_be_asynchronous(server):
    from langchain_postgres import PGVector
    from sqlalchemy.ext.asyncio import create_async_engine

    async def work():
        engine = create_async_engine(server)
        store = PGVector(
            Letters(), connection=engine, collection_name="async", use_jsonb=True, async_mode=True
        )
        memory = FailureMemory(store)
        names = await memory.aremember([example(n) for n in range(4)])
        assert len(await memory.arecall(ITEM, "knn:2")) == 2
        assert await memory.aforget(names[0]) == 1
        await memory.arefresh()
        assert ids(await memory.arecall(ITEM, "all")) == names[1:]
        await engine.dispose()

    asyncio.run(work())
