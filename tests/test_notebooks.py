"""The notebooks: what they print is what they replay, the same on every run and machine."""

from datetime import date
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from langchain_judges.testing import ReplayChatModel

pytestmark = pytest.mark.system

COOKBOOK = Path(__file__).parents[1] / "cookbook"
NOTEBOOKS = sorted(COOKBOOK.glob("*.ipynb"))

PRINTS = """
import sys, tempfile, uuid, os
print("first", flush=True)
print("progress", file=sys.stderr, flush=True)
print(tempfile.mkdtemp(), "http://127.0.0.1:40123/v1", uuid.uuid4(), os.getcwd())
"""


@pytest.fixture(autouse=True)
def forked_kernels(monkeypatch):
    from jupyter_client.provisioning.factory import KernelProvisionerFactory

    kinds = KernelProvisionerFactory.instance()
    own = EntryPoint("forked", "tests.kernels:Forked", kinds.GROUP_NAME)
    monkeypatch.setitem(kinds.provisioners, "forked", own)
    monkeypatch.setattr(kinds, "default_provisioner_name", "forked")


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """Write a notebook, and take its folder for the project's."""
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from cookbook import run_notebooks

    monkeypatch.setattr(run_notebooks, "HERE", tmp_path / "cookbook")

    def write(*cells):
        document = new_notebook(cells=[new_markdown_cell("A title"), *map(new_code_cell, cells)])
        document.metadata["language_info"] = {"name": "python", "version": "9.9"}
        path = tmp_path / "cookbook" / "made.ipynb"
        path.parent.mkdir()
        nbformat.write(document, path)
        return path

    return write


def test_stored_outputs_are_the_same_on_every_run(notebook):
    import nbformat

    from cookbook import run_notebooks

    path = notebook(PRINTS, "object()", "6 * 7", "'x' * 200_000")
    run_notebooks.main([str(path)])
    once = path.read_text()
    run_notebooks.main([str(path)])
    assert path.read_text() == once
    _, prints, thing, product, large = nbformat.read(path, as_version=4).cells
    assert [each["text"] for each in prints.outputs] == [
        "first\nTMP/… http://127.0.0.1:PORT/v1 ID …/cookbook\n"
    ]
    assert thing.outputs[0]["data"] == {"text/plain": "<object at 0x…>"}
    assert product.outputs[0]["data"] == {"text/plain": "42"}
    assert large.outputs[0]["data"] == {}
    assert all(cell.execution_count is None for cell in (prints, thing, product))
    assert not any(word in once for word in ('"9.9"', '"stderr"', "iopub", "shell."))


def test_every_recorded_file_says_who_answered_and_when():
    files = sorted((COOKBOOK / "recorded").glob("*.jsonl"))
    assert {path.stem for path in files} < {"demo", *(path.stem for path in NOTEBOOKS)}
    for path in files:
        for entry in ReplayChatModel(path=path).recorded:
            assert entry["model"]
            assert date.fromisoformat(entry["date"])


@pytest.mark.figures
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs_and_shows_what_is_stored_in_it(path):
    import nbformat

    from cookbook import run_notebooks

    cells = run_notebooks.settled(run_notebooks.execute(path)).cells
    stored = nbformat.read(path, as_version=4).cells
    for now, before in zip(cells, stored, strict=True):
        assert now.get("outputs") == before.get("outputs"), now.source
