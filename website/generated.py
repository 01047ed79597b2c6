"""Every file that is made from the code, written anew: `python -m website.generated`.

The table of options, the reference, the drawings, the gallery, the graphs of the server, and
what tests hold frozen. A test says which of them is stale.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from website import figures, gallery, money_table, options_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROOMS = {
    "": "Judges, rows and verdicts",
    "methods.rubric": "Criteria",
    "methods.drpe": "Panels of DRPE",
    "methods.allure": "Guidelines of ALLURE",
    "methods.sc2": "Aspects and tables of SC²",
    "runs": "Many rows",
    "integrations": "LangChain, LangSmith and servers",
    "memory": "Memory",
    "report": "Reports",
    "datasets": "Data sets",
    "writing": "Writing",
    "metrics": "Statistics",
    "testing": "Testing",
    "rows": "Rows",
    "methods": "Methods of your own",
}
"""The packages that export what they offer, and what a page calls them."""


SERVED = (
    "allure",
    "audit",
    "bsm",
    "cascade",
    "drpe",
    "jury",
    "relative",
    "rubric",
    "sc2",
    "write",
)
"""The graphs of a LangGraph server; a baseline of a study is one line of one's own."""


def described(value: object) -> bool:
    """Return whether a public name is a class or a function of this package."""
    return str(getattr(value, "__module__", "")).startswith("langchain_judges") and callable(
        value
    )


def reference() -> str:
    """Return the page of all options and public names, each where it is exported first."""
    lines = [
        "# Reference\n\nEvery option of every method, then every public name.\n",
        options_page.section(),
    ]
    seen: set[str] = set()
    for room, title in ROOMS.items():
        package = f"langchain_judges.{room}".rstrip(".")
        lines.append(f"\n## {title}\n\n`from {package} import …`")
        module = import_module(package)
        names = [name for name in module.__all__ if name not in seen]
        shown = [name for name in names if described(getattr(module, name))]
        lines += [f"\n::: {package}.{name}" for name in shown]
        if rest := [f"`{name}`" for name in names if name not in shown]:
            lines.append(f"\nTypes and constants: {', '.join(rest)}.")
        seen.update(names)
    return "\n".join(lines) + "\n"


def server_graphs() -> str:
    """Return `graphs/judges.py`."""
    lines = [f'{name} = serve("{name}")' for name in SERVED]
    head = '"""Entry points of a LangGraph server: one line a graph."""\n\n'
    return (
        f"{head}from langchain_judges.integrations import serve\n\n" + "\n".join(lines) + "\n"
    )


def server_config() -> str:
    """Return `langgraph.json`."""
    graphs = {name: f"./graphs/judges.py:{name}" for name in SERVED}
    config = {"dependencies": ["."], "graphs": graphs, "python_version": "3.11"}
    return json.dumps(config, indent=2) + "\n"


FILES: dict[Path, Callable[[], str]] = {
    DOCS / "reference.md": reference,
    ROOT / "graphs" / "judges.py": server_graphs,
    ROOT / "langgraph.json": server_config,
}
"""What makes each file."""
PAGES: dict[Path, Callable[[], str]] = {
    gallery.PAGE: gallery.page,
    money_table.PAGE: money_table.page,
}
"""The same of pages whose examples are replayed."""


def write() -> None:
    """Write every file that is stale, and record what tests hold frozen."""
    for path, make in FILES.items():
        _write(path, make())
    for name, text in figures.figures().items():
        _write(figures.FOLDER / name, text)
    for path, make in PAGES.items():
        _write(path, make())
    subprocess.run(
        [sys.executable, "-m", "tests.test_frozen", "--update"], check=True, cwd=ROOT
    )


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    write()
