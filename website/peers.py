"""The table of other packages on `docs/compared.md`, made of the names in their wheels.

    python -m pip install --no-deps --target PEERS autorubric deepeval …
    python -m website.peers PEERS

reads the wheels under `PEERS` without importing them, and writes the table; without a folder it
prints the packages. Names are matched by `COLUMNS`: a package may do more than its names tell.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "compared.md"
BEGIN, END = "<!-- made by website/peers.py -->\n", "<!-- until here -->\n"
# By the name of its distribution: what it is made for, and its documentation.
PEERS = {
    "autorubric": ("weighted rubrics of one text", "https://autorubric.org/docs"),
    "deepeval": ("unit tests for LLM apps", "https://deepeval.com/docs/getting-started"),
    "evaluatorq": ("parallel evaluation jobs", "https://github.com/orq-ai/evaluatorq"),
    "inspect_ai": ("evaluations of models", "https://inspect.aisi.org.uk/scorers.html"),
    "mlflow": (
        "tracing and evaluation of apps",
        "https://mlflow.org/docs/latest/genai/eval-monitor/scorers/llm-judge/workflow",
    ),
    "openevals": ("ready evaluators for LLM apps", "https://github.com/langchain-ai/openevals"),
    "ragas": ("RAG and LLM apps", "https://docs.ragas.io"),
}
# The folder of its package on GitHub, at the tag that its release workflow gives a version.
SOURCES = {
    "autorubric": "delip/autorubric/blob/v{}/src/autorubric",
    "deepeval": "confident-ai/deepeval/blob/python-v{}/deepeval",
    "evaluatorq": "orq-ai/evaluatorq/blob/v{}/src/evaluatorq",
    "inspect_ai": "UKGovernmentBEIS/inspect_ai/blob/{}/src/inspect_ai",
    "mlflow": "mlflow/mlflow/blob/v{}/mlflow",
    "openevals": "langchain-ai/openevals/blob/openevals=={}/python/openevals",
    "ragas": "vibrantlabsai/ragas/blob/v{}/src/ragas",
}
# What is looked for in the names of functions and classes.
COLUMNS = {
    "which of two texts": r"^(run_|llm_jury_)?pairwise|^arena|arenametric$|^compare$",
    "several judges": r"^(llm_|run_)jury$|ensemble|^cascade$|majority|multi_scorer",
    "agreement with people": r"kappa$|krippendorff|^agreement|alignmentoptimizer$|^calibrate_",
}
OURS = (
    "| langchain-judges | judges, and how far to trust them "
    "| [four papers' methods](pairs.md), both orders, flips reported "
    "| [juries; cascades with a guarantee](several-judges.md) "
    "| [a report for four uses](trust.md), with intervals; a [memory](allure.md) |\n"
)
_MOST = 5


def exported(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the functions and classes that others may use, each with its file."""
    trees = {path: ast.parse(path.read_text(errors="replace")) for path in folder.rglob("*.py")}
    shown = {
        alias.asname or alias.name
        for path, tree in trees.items()
        if path.name == "__init__.py" and _is_public(path.relative_to(folder))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for path, tree in trees.items():
        own = _is_public(path.relative_to(folder))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if not node.name.startswith("_") and (own or node.name in shown):
                yield node.name, path.relative_to(folder).as_posix()


def _is_public(path: Path) -> bool:
    return not any(re.match(r"_(?!_init__)|tests?\b", part) for part in path.parts)


def row_of(folder: Path, name: str) -> str:
    """Row of a package."""
    purpose, docs = PEERS[name]
    version = next(iter(distributions(name=name, path=[str(folder)]))).version
    source, cells = f"https://github.com/{SOURCES[name].format(version)}", []
    names = dict(sorted(exported(folder / name), reverse=True))  # of twins the first file
    for pattern in COLUMNS.values():
        found = sorted(each for each in names if re.search(pattern, each, re.IGNORECASE))
        links = [f"[`{each}`]({source}/{names[each]})" for each in found[:_MOST]]
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        cells.append(", ".join(links) + more or f"[no such name]({source}/__init__.py)")
    return f"| [{name}]({docs}) {version} | {purpose} | {' | '.join(cells)} |\n"


def table(folder: Path) -> str:
    """Table of all packages."""
    head = f"| package | made for | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 2)}\n"
    return head + OURS + "".join(row_of(folder, name) for name in PEERS)


def main() -> None:
    """Write the table into the page."""
    if len(sys.argv) == 1:
        sys.stdout.write(" ".join(PEERS))
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(Path(sys.argv[1]))}\n{END}{after}")


if __name__ == "__main__":
    main()
