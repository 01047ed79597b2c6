"""Write the gallery of docs/verdict.md: a verdict of each method, replayed.

`make generated` writes it; a test says when it is stale. The examples replay what a large
language model replied to the cookbook's notebooks, so they need no network.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from rich.console import Console

from langchain_judges.report.terminal import verdict_panel
from langchain_judges.testing import ReplayChatModel

PAGE = Path(__file__).parents[1] / "docs" / "verdict.md"
COOKBOOK = Path(__file__).parents[1] / "cookbook"
MODEL = '"openai:gpt-5-mini"'
WIDTH = 82


class Words(Embeddings):
    """Stands for the default embedder, as in the notebooks that were recorded."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts by their words."""
        from sklearn.feature_extraction.text import HashingVectorizer  # slow to load

        vectors = HashingVectorizer(stop_words="english").transform(texts)
        return [[float(value) for value in row] for row in vectors.toarray()]

    def embed_query(self, text: str) -> list[float]:
        """Embed a text by its words."""
        return self.embed_documents([text])[0]


@dataclass(frozen=True)
class Row:
    """A row of the cookbook, and the file of what a model replied about it."""

    rows: str
    place: int
    recorded: str

    def shown(self) -> dict[str, Any]:
        """Return the row without its annotations."""
        row = read(COOKBOOK / "data" / f"{self.rows}.jsonl")[self.place]
        annotations = {"label", "category", "group", "family", "id"}
        return {name: value for name, value in row.items() if name not in annotations}


@dataclass(frozen=True)
class Example:
    """A method, what to look at in its verdict, and code that makes `result` of `row`."""

    method: str
    about: str
    row: Row
    code: str


PAIR = Row("contested", 0, "04_same_pair_four_methods")
BSM = """from langchain_judges import create_bsm_judge

result = create_bsm_judge("openai:gpt-5-mini", max_criteria=2).invoke(row)"""
DRPE = """from langchain_judges.methods.drpe import Panel, create_drpe_judge

result = create_drpe_judge("openai:gpt-5-mini", panel=Panel(dynamic=3)).invoke(row)"""
SC2 = """from langchain_judges import create_sc2_judge

aspects = ["physics", "words for a child"]
result = create_sc2_judge("openai:gpt-5-mini", aspects=aspects, samples=3).invoke(row)"""
RUBRIC = """from langchain_judges import create_rubric_judge
from langchain_judges.methods.rubric import Criterion

rubric = [
    Criterion(
        name="Remedy",
        description="Does the reply say what the shop will do about the damage?",
        weight=2,
        required=True,
    ),
    Criterion(
        name="Tone",
        labels={
            "rude": "it blames",
            "neutral": "it neither blames nor regrets",
            "kind": "it regrets",
        },
    ),
    Criterion(
        name="Brevity",
        scale=(1, 5),
        anchors={1: "most of it could be cut", 5: "nothing could be cut"},
    ),
]
judge = create_rubric_judge("openai:gpt-5-mini", rubric=rubric)
result = judge.invoke(row)"""
ALLURE = """from langchain_judges import create_allure_judge

question = (
    "May this reply be sent to the customer? It may if it is polite and answers what was asked."
)
judge = create_allure_judge("openai:gpt-5-mini", rubric=question, explain="first")
result = judge.invoke(row)"""
PAIRS = (
    Example("bsm", "scores on each criterion, in both orders", PAIR, BSM),
    Example("drpe", "each reader's vote and its reason", PAIR, DRPE),
    Example("sc2", "the winning table, and how it won", PAIR, SC2),
)
TEXTS = (
    Example(
        "rubric",
        "a label and a reason for each criterion",
        Row("replies", 2, "09_rubric"),
        RUBRIC,
    ),
    Example("allure", "one label with its reason", Row("support", 4, "06_allure"), ALLURE),
)
NOTEBOOKS = {"drpe": "02_drpe", "sc2": "03_sc2", "allure": "06_allure"}
"""Methods of which a notebook shows a verdict."""
HEAD = """Replies of {model}, recorded on {date} and replayed.
`langchain-judges judge` prints the same when `-o` is left out.
"""
BEGIN, END = "<!-- `make generated` writes this gallery. -->", "<!-- end of the gallery -->"


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def result_of(example: Example) -> dict[str, Any]:
    """Run the example's code on the recorded replies."""
    model = ReplayChatModel(path=COOKBOOK / "recorded" / f"{example.row.recorded}.jsonl")
    names: dict[str, Any] = {"model": model, "row": example.row.shown(), "words": Words()}
    code = example.code.replace(MODEL, "model").replace("panel=", "embeddings=words, panel=")
    exec(code, names)  # noqa: S102 - our own text
    result: dict[str, Any] = names["result"]
    return result


def terminal(example: Example) -> str:
    """Return the result as `judge` prints it, without its frame."""
    result = {**example.row.shown(), **result_of(example)}
    console = Console(width=WIDTH, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(verdict_panel(result))
    first, *lines, _ = capture.get().splitlines()
    inside = (line.removeprefix("│ ").removesuffix("│").rstrip() for line in lines)
    return "\n".join([first.strip("╭─╮ "), "", *inside])


def row_text(row: Row) -> str:
    """Return a row as a list of its fields."""
    fields = row.shown().items()
    return "`row` has\n\n" + "".join(f"- `{name}`: {value}\n" for name, value in fields)


def example_text(example: Example, *, with_row: bool) -> str:
    """Return an example as Markdown: the code, then the result."""
    about = f"Look at {example.about}."
    if with_row:
        about += f" Here {row_text(example.row)}"
    code = f"```python\n{example.code}\n```\n\n```text\n{terminal(example)}\n```\n"
    return f"### {example.method}\n\n{about}\n\n{code}"


def elsewhere(example: Example) -> str:
    """Return where a notebook shows a verdict of a method."""
    path = f"../cookbook/{NOTEBOOKS[example.method]}.ipynb"
    return f"### {example.method}\n\n[A notebook]({path}) shows {example.about}.\n"


def gallery() -> str:
    """Return the gallery."""
    reply = read(COOKBOOK / "recorded" / f"{PAIR.recorded}.jsonl")[0]
    parts = [HEAD.format(**reply), row_text(PAIR)]
    for example in (*PAIRS, *TEXTS):
        is_short = example.method in NOTEBOOKS
        with_row = example in TEXTS
        parts.append(
            elsewhere(example) if is_short else example_text(example, with_row=with_row)
        )
    return "\n".join(parts)


def between(text: str, begin: str, end: str, new: str) -> str:
    """Return a page with new text between two marks."""
    pattern = f"{re.escape(begin)}.*{re.escape(end)}"
    return re.sub(pattern, lambda _: f"{begin}\n\n{new}\n{end}", text, flags=re.DOTALL)


def page() -> str:
    """Return the page with a new gallery."""
    return between(PAGE.read_text(), BEGIN, END, gallery())
