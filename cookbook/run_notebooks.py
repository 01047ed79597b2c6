"""Run the notebooks of the cookbook and store what they print, so that a diff stays small.

    python cookbook/run_notebooks.py                    # all of them; also `make notebooks`
    python cookbook/run_notebooks.py 08_trust.ipynb     # these
    python cookbook/run_notebooks.py 02_drpe.ipynb --record openai:gpt-5-mini

The notebooks replay the replies of a model that are recorded in `cookbook/recorded`, so they
need no network. Where a prompt, an option or a text has changed, its request is refused: record
that notebook again with `--record` and a model of your choice, and correct what its texts say
of the results.

A notebook is written only when it has run to its end. What differs from run to run or from
machine to machine is not stored: times, counts of execution, progress on stderr, versions,
addresses of objects, ports, folders, random names, and outputs of more than 50,000
characters, of which only the plain text stays.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
LARGEST = 50_000
"""Characters of one output that a reader would still load."""

_PASSING = (
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x…"),
    (re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):\d+"), r"\1:PORT"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"(?<=\w-)[0-9a-f]{8}(?=['\"\s])"), "ID"),  # how LangSmith names experiments
    # A run without a prefix; some versions of LangSmith print a `%s` before its name.
    (re.compile(r"(experiment: )(?:%s )?[a-z]+-[a-z]+-\d+"), r"\1NAME"),
)


_REPLAYED = re.compile(r'ReplayChatModel\(path="([^"]+)"\)')
"""Pattern by which a notebook names its recorded replies."""


def execute(path: Path, timeout: int = 600, model: str | None = None) -> NotebookNode:
    """The notebook, run in its own folder by a new kernel.

    Args:
        path: The notebook.
        timeout: Seconds for a cell.
        model: Ask this model and record its replies instead of replaying them.

    Raises:
        CellExecutionError: A cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    if model:
        for cell in notebook.cells:
            cell.source = recording(cell.source, model)
    NotebookClient(
        notebook,
        timeout=timeout,
        record_timing=False,
        resources={"metadata": {"path": path.parent}},
    ).execute()
    return notebook


def recording(source: str, model: str) -> str:
    """The source with `model` asked, and its replies written next to the old ones.

    >>> recording('model = ReplayChatModel(path="recorded/a.jsonl")', "openai:gpt-5-mini")
    "model = ReplayChatModel(path='recorded/a.jsonl.new', model='openai:gpt-5-mini')"
    """

    def replacement(match: re.Match[str]) -> str:
        return f"ReplayChatModel(path={match[1] + '.new'!r}, model={model!r})"

    return _REPLAYED.sub(replacement, source)


def record(path: Path, model: str, timeout: int = 600) -> None:
    """Run a notebook by a model, and keep its replies when it has run to its end."""
    execute(path, timeout, model)
    for cell in nbformat.read(path, as_version=4).cells:
        for name in _REPLAYED.findall(cell.source):
            (path.parent / f"{name}.new").replace(path.parent / name)


def settled(notebook: NotebookNode) -> NotebookNode:
    """The notebook without what differs from run to run."""
    stable = nbformat.from_dict(notebook)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    stable.metadata = nbformat.from_dict({"kernelspec": kernel})
    for cell in stable.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_settled(each) for each in _joined(cell.outputs)]
    return stable


def _joined(outputs: Sequence[Any]) -> list[Any]:
    """Join what was printed in pieces, which depend on timing; leave progress out."""
    joined: list[Any] = []
    for each in outputs:
        if each.get("name") == "stderr":
            continue
        if joined and each.output_type == joined[-1].output_type == "stream":
            joined[-1].text += each.text
        else:
            joined.append(each)
    return joined


def _settled(output: Any) -> Any:
    if "execution_count" in output:
        output.execution_count = None
    if output.output_type == "stream":
        output.text = _scrubbed(output.text)
    if data := output.get("data"):
        small = {kind: text for kind, text in data.items() if len(str(text)) <= LARGEST}
        output.data = {kind: _scrubbed(text) for kind, text in small.items()}
    return output


def _scrubbed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    places = {str(HERE.parent): "…", str(Path.home()): "~", tempfile.gettempdir(): "TMP"}
    for place, name in sorted(places.items(), key=lambda each: -len(each[0])):
        text = re.sub(rf"{re.escape(place.rstrip(os.sep))}(?=/)", name, text)
    text = re.sub(r"TMP/\w+", "TMP/…", text)
    for pattern, instead in _PASSING:
        text = pattern.sub(instead, text)
    return text


def store(path: Path, timeout: int = 600) -> None:
    """Run a notebook and write it with its outputs, all or nothing."""
    notebook = settled(execute(path, timeout))
    nbformat.validate(notebook)
    half = path.with_suffix(".part")
    nbformat.write(notebook, half)
    half.replace(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the notebooks that the command line names."""
    parser = argparse.ArgumentParser(description="Run the notebooks and store their outputs.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of the cookbook")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a cell")
    parser.add_argument("--record", metavar="MODEL", help="ask this model, and keep its replies")
    options = parser.parse_args(arguments)
    for name in options.notebooks or sorted(HERE.glob("*.ipynb")):
        path = name if name.exists() else HERE / name
        print(path.name, flush=True)
        if options.record:
            record(path, options.record, options.timeout)
        store(path, options.timeout)


if __name__ == "__main__":
    main()
