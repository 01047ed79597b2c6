"""Look and label: rows, verdicts and reports in a local page (extra `viewer`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_judges.errors import needs
from langchain_judges.rows.files import write_text


class View:
    """A page of rows: shown in a notebook, otherwise saved to a file or opened by address.

    Attributes:
        html: The whole page, if it takes no labels.
        address: Where to label; empty if it takes no labels.
    """

    def __init__(self, html: str = "", server: Any = None) -> None:
        """Hold a page, or the server at its address."""
        self.html, self._server = html, server
        self.address: str = server.address if server else ""

    def _repr_html_(self) -> str:
        """The page in a frame, or its address."""
        if self.address:
            return f'<a href="{escape(self.address)}">{escape(self.address)}</a>'
        style = "width:100%;height:80vh;border:1px solid #ccc"
        frame = f'sandbox="allow-scripts" srcdoc="{escape(self.html)}" style="{style}"'
        return f'<iframe title="rows and verdicts" {frame}></iframe>'

    def __repr__(self) -> str:
        """Address of the page."""
        return self.address or "View: `save(path)` writes it as one HTML file"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page as one HTML file that loads nothing."""
        write_text(path, self.html)

    def close(self) -> None:
        """Stop answering at the address."""
        if self._server:
            self._server.close()


def view(
    run: object,
    rows: Iterable[Mapping[str, Any]] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    labels: str | None = None,
    criteria: Sequence[str] = (),
    name: str = "",
) -> View:
    """Show a run, a report or files on a page.

    Args:
        run: Rows of `judge_many`, a report of `trust` or `compare`, or paths of files.
        rows: The data that was judged; a run keeps no texts.
        out: Where labels go, as JSONL; None: view only.
        labels: Labels of single texts, `"01"` or `"rude,polite"`; None: those in the data.
        criteria: Criteria to ask about, each `NAME` or `NAME=LABELS`.
        name: The name of the person who labels.

    Raises:
        InputError: There is nothing to show.
        OptionError: Labels cannot be told apart.
        OutputError: Somebody else is writing labels to `out`.
        MissingExtraError: The extra `viewer` is not installed.
    """
    with needs("viewer", "The page"):
        from langchain_judges.viewer.app import Page, Server, export
        from langchain_judges.viewer.desks import open_labels
        from langchain_judges.viewer.items import of_run, read_collection

    paths = [run] if isinstance(run, str | PathLike) else run
    are_paths = isinstance(paths, list) and all(isinstance(p, str | PathLike) for p in paths)
    found = read_collection(map(Path, paths)) if are_paths and paths else of_run(run, rows)  # type: ignore[call-overload]  # as checked
    if out is None:
        return View(export(Page(found)))
    desk = open_labels(found, Path(out), labels, criteria)
    return View(server=Server(Page(found, desk, name)).start())


__all__ = ["View", "view"]
