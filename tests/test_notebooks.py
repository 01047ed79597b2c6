"""Storing what notebooks print: the same on every run and every machine."""

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from cookbook import run_notebooks

PRINTS = """
import sys, tempfile, uuid, os
print("first", flush=True)
print("progress", file=sys.stderr, flush=True)
print(tempfile.mkdtemp(), "http://127.0.0.1:40123/v1", uuid.uuid4(), os.getcwd())
"""


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """Write a notebook, and take its folder for the project's."""
    monkeypatch.setattr(run_notebooks, "HERE", tmp_path / "cookbook")

    def write(*cells):
        made = new_notebook(cells=[new_markdown_cell("A title"), *map(new_code_cell, cells)])
        made.metadata["language_info"] = {"name": "python", "version": "9.9"}
        path = tmp_path / "cookbook" / "made.ipynb"
        path.parent.mkdir()
        nbformat.write(made, path)
        return path

    return write


def test_stored_outputs_are_the_same_on_every_run(notebook):
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


def test_a_notebook_that_fails_stays_as_it_was(notebook):
    path = notebook("1 / 0")
    before = path.read_text()
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run_notebooks.store(path)
    assert path.read_text() == before
    assert [each.name for each in path.parent.iterdir()] == ["made.ipynb"]


def test_notebooks_import_only_what_there_is():
    # The notebooks themselves run with the real model alone, which takes minutes.
    for path in sorted(Path(run_notebooks.__file__).parent.glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            tree = ast.parse(cell.source if cell.cell_type == "code" else "")
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom):
                    exec(ast.unparse(node))
