"""`langchain-judges view`: look at rows and verdicts on a page, and label them by keys."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_judges.cli import messages, row_files
from langchain_judges.cli.flags import QuestionFlags, RowFlags, unfolded
from langchain_judges.errors import OptionError, needs
from langchain_judges.rows.files import write_text

if TYPE_CHECKING:
    from langchain_judges.viewer.app import Page


@dataclass(frozen=True)
class PageFlags:
    """Address of the page.

    Attributes:
        export: Write the page as one HTML file, to share, and stop.
        port: Port to listen on; 0: a free one.
    """

    export: Path | None = None
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0


@unfolded
def view(
    data: list[Path],
    labelling: QuestionFlags,
    page: PageFlags,
    table: RowFlags,
    out: Annotated[Path | None, typer.Option("--out", "-o")] = None,
) -> None:
    """Look at rows, verdicts and reports in a browser, and label rows there with single keys.

    The address is local and contains a token; ssh -L PORT:127.0.0.1:PORT opens it from another
    machine. With -o, the texts of a pair are in random positions, and verdicts are hidden until
    your answer is in. Each answer is saved before the next row is shown; trust, audit and
    compare read the file. Ctrl-C ends it; the same command resumes.

    Exit codes: 0 done, 2 wrong use or refused.

    Args:
        data: Rows, results or records of a run, reports, audits, comparisons: files or folders.
            Results contain no texts: name the rows or the written table too.
        out: JSONL file to which your labels are added.

    Examples:
        langchain-judges view rows.jsonl verdicts.jsonl -o labels.jsonl
        langchain-judges view scores.csv report.json --export page.html
    """
    with needs("viewer", "The page"):
        from langchain_judges.viewer.app import Page, export
        from langchain_judges.viewer.desks import open_labels
        from langchain_judges.viewer.items import read_collection
    if out and page.export:
        raise OptionError("--export writes a page to look at; -o labels on a page")
    for flag, path in (("--out", out), ("--export", page.export)):
        if path:
            row_files.check_file(flag, path)
    row_files.check_not_read(data, [page.export, out])
    found = read_collection(data, row_files.named_columns(table.column))
    if table.max_rows:
        found.rows = list(islice(found.rows, table.max_rows))
    for problem in found.problems:
        messages.warn(problem)
    if page.export:
        write_text(page.export, export(Page(found)))
        return
    if out is None:
        serve_page(Page(found), page)
        return
    desk = open_labels(found, out, *labelling.questions)
    with contextlib.closing(desk.file):
        messages.say(desk.asked.sentence(found.rows))
        serve_page(Page(found, desk, labelling.name), page)
        told, command = desk.standing()
    messages.say(f"{len(desk.file.answers)} rows in {out}. {'; '.join(told)}".strip())
    if command:
        messages.say(f"Next: {command}")


def serve_page(shown: Page, flags: PageFlags) -> None:
    """Answer at an address until Ctrl-C.

    Raises:
        OutputError: The port is taken.
    """
    from langchain_judges.viewer.app import Server

    server = Server(shown, port=flags.port)
    typer.echo(server.address)
    messages.say("Open this address in a browser. Ctrl-C ends it.")
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
