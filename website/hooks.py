"""What the site adds to the pages of docs/: notebooks, and links into the repository."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)\s#]*)(#[^)]*)?\)")
"""A link, its text and its target; a picture's link is one too."""


def outside(link: re.Match[str], page: str, address: str) -> str:
    """Relative link of a page; one that leaves docs/ leads into the repository.

    While the repository has no address, such a link becomes its text.
    """
    text, path, anchor = link[1], link[2], link[3] or ""
    place = normpath(PurePosixPath("docs", page).parent / path)
    if place.startswith("cookbook/") and place.endswith(".ipynb"):
        return f"[{text}](notebooks/{PurePosixPath(place).stem}.md)"
    if place.startswith("docs/"):
        return link[0]
    return f"[{text}]({address}/blob/main/{place}{anchor})" if address else text


def notebook(path: Path) -> str:
    """Notebook as Markdown: its texts, its code, and what that printed."""
    return "\n\n".join(_cells(json.loads(path.read_text(encoding="utf-8"))["cells"])) + "\n"


def _cells(cells: list[dict[str, Any]]) -> Iterator[str]:
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield re.sub(r"\]\(\.\./docs/", "](../", source)
        elif source.strip():
            yield f"```python\n{source}\n```"
            for output in cell.get("outputs", ()):
                text = output.get("text") or output.get("data", {}).get("text/plain") or ""
                if printed := "".join(text).rstrip():
                    yield f"````text\n{printed}\n````"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the notebooks as pages."""
    for path in sorted(Path(__file__).parents[1].glob("cookbook/*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ into the repository."""
    source, address = page.file.src_uri, config.repo_url or ""
    return LINK.sub(lambda link: outside(link, source, address), markdown)
