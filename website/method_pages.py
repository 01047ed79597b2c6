"""Write the end of each method's page: a worked example, replayed, and its options.

`make generated` writes them; a test says when one is stale. The examples replay
what a large language model replied to the cookbook's notebooks, so they need no network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from rich.console import Console
from sklearn.feature_extraction.text import HashingVectorizer

from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.report.terminal import text_panel, verdict_panel
from langchain_judges.testing import ReplayChatModel
from langchain_judges.writing.registry import WRITERS
from website.options_page import summary, table

ROOT = Path(__file__).parents[1]
COOKBOOK = ROOT / "cookbook"
MARK = "<!-- `make generated` writes what follows. -->"
MODEL = '"openai:gpt-5-mini"'
WIDTH = 96


class Words(Embeddings):
    """Stands for the default embedder, as in the notebooks that were recorded."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts by their words."""
        vectors = HashingVectorizer(stop_words="english").transform(texts)
        return [[float(value) for value in row] for row in vectors.toarray()]

    def embed_query(self, text: str) -> list[float]:
        """Embed a text by its words."""
        return self.embed_documents([text])[0]


@dataclass(frozen=True)
class Example:
    """A row of the cookbook, and code that judges it or writes for it."""

    recorded: str
    """The file of recorded replies."""
    rows: str
    place: int
    code: str
    """Imports, and what makes `result` of `row`."""


@dataclass(frozen=True)
class MethodPage:
    """What is written at the end of a page."""

    methods: tuple[str, ...]
    examples: tuple[Example, ...]
    of: Mapping[str, type[Any]]


def _pair(code: str) -> Example:
    return Example("04_same_pair_four_methods", "contested", 0, code)


JURY = """from langchain_judges import create_bsm_judge, create_jury
from langchain_judges import create_sc2_judge, create_self_consistency_judge

members = [
    create_bsm_judge("openai:gpt-5-mini", max_criteria=2),
    create_sc2_judge("openai:gpt-5-mini", aspects=["physics", "words for a child"], samples=3),
    create_self_consistency_judge("openai:gpt-5-mini", samples=6),
]
result = create_jury(members).invoke(row)"""
CASCADE = """from langchain_judges import create_bsm_judge, create_cascade
from langchain_judges import create_self_consistency_judge

judges = [
    create_bsm_judge("openai:gpt-5-mini", max_criteria=2),
    create_self_consistency_judge("openai:gpt-5-mini", samples=6),
]
result = create_cascade(judges, thresholds=[0.5]).invoke(row)"""
PAGES = {
    "allure": MethodPage(
        ("allure",),
        (
            Example(
                "06_allure",
                "support",
                4,
                """from langchain_judges import create_allure_judge

question = (
    "May this reply be sent to the customer? It may if it is polite and answers what was asked."
)
judge = create_allure_judge("openai:gpt-5-mini", rubric=question, explain="first")
result = judge.invoke(row)""",
            ),
        ),
        METHODS,
    ),
    "baselines": MethodPage(
        (
            "relative",
            "absolute",
            "direct",
            "cot",
            "cot_sc",
            "relative_sc",
            "plan_solve",
            "llm_score",
        ),
        (
            _pair("""from langchain_judges import create_self_consistency_judge

judge = create_self_consistency_judge("openai:gpt-5-mini", samples=6)
result = judge.invoke(row)"""),
        ),
        METHODS,
    ),
    "bsm": MethodPage(
        ("bsm",),
        (
            _pair("""from langchain_judges import create_bsm_judge

judge = create_bsm_judge("openai:gpt-5-mini", max_criteria=2)
result = judge.invoke(row)"""),
        ),
        METHODS,
    ),
    "drpe": MethodPage(
        ("drpe",),
        (
            _pair("""from langchain_judges import Panel, create_drpe_judge

judge = create_drpe_judge("openai:gpt-5-mini", panel=Panel(dynamic=3))
result = judge.invoke(row)"""),
        ),
        METHODS,
    ),
    "jury": MethodPage(("jury", "cascade"), (_pair(JURY), _pair(CASCADE)), COMBINATIONS),
    "rubrics": MethodPage(
        ("rubric",),
        (
            Example(
                "09_rubric",
                "replies",
                2,
                """from langchain_judges import create_rubric_judge
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
result = judge.invoke(row)""",
            ),
        ),
        METHODS,
    ),
    "sc2": MethodPage(
        ("sc2",),
        (
            _pair("""from langchain_judges import create_sc2_judge

aspects = ["physics", "words for a child"]
judge = create_sc2_judge("openai:gpt-5-mini", aspects=aspects, samples=3)
result = judge.invoke(row)"""),
        ),
        METHODS,
    ),
    "writing": MethodPage(
        ("bsm", "direct"),
        (
            Example(
                "05_writing",
                "concepts",
                1,
                """from langchain_judges import create_bsm_writer

result = create_bsm_writer("openai:gpt-5-mini").invoke(row)""",
            ),
        ),
        WRITERS,
    ),
}
"""What is written at the end of each page of a method."""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def shown_row(example: Example) -> dict[str, Any]:
    """Return the example's row without its annotations."""
    row = read(COOKBOOK / "data" / f"{example.rows}.jsonl")[example.place]
    annotations = {"label", "category", "group", "family", "id"}
    return {name: value for name, value in row.items() if name not in annotations}


def result_of(example: Example) -> dict[str, Any]:
    """Run the example's code on the recorded replies."""
    model = ReplayChatModel(path=COOKBOOK / "recorded" / f"{example.recorded}.jsonl")
    names: dict[str, Any] = {"model": model, "row": shown_row(example), "words": Words()}
    code = example.code.replace(MODEL, "model").replace("panel=", "embeddings=words, panel=")
    exec(code, names)  # noqa: S102 - our own text
    result: dict[str, Any] = names["result"]
    return result


def terminal(example: Example) -> str:
    """Return the result as `--show` prints it."""
    result = {**shown_row(example), **result_of(example)}
    panel = text_panel(result) if "concepts" in result else verdict_panel(result)
    console = Console(width=WIDTH, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(panel)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def example_text(example: Example) -> str:
    """Return an example as Markdown: the row and the code, then the result."""
    fields = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in shown_row(example).items()
    )
    head, _, body = example.code.partition("\n\n")
    code = f"{head}\n\nrow = {{\n{fields},\n}}\n{body}"
    reply = read(COOKBOOK / "recorded" / f"{example.recorded}.jsonl")[0]
    origin = f"With replies of {reply['model']}, recorded on {reply['date']}, `--show` prints:"
    return f"```python\n{code}\n```\n\n{origin}\n\n```text\n{terminal(example)}\n```\n"


def ending(name: str) -> str:
    """Return what follows the mark on a page."""
    page = PAGES[name]
    title = "## A worked example" if len(page.examples) == 1 else "## Worked examples"
    parts = [MARK, "", title, "", *map(example_text, page.examples)]
    parts += ["## Options", ""]
    for method in page.methods:
        kind = page.of[method]
        if len(page.methods) > 1:
            parts += [f"### `{method}`", ""]
        parts += [summary(kind), "", table(kind), ""]
    parts.append(
        "Options that every judge takes: [options](options.md#what-every-judge-takes)."
    )
    return "\n".join(parts) + "\n"


def written(name: str) -> str:
    """Return a page with a new ending."""
    text = (ROOT / "docs" / f"{name}.md").read_text()
    return text.partition(MARK)[0].rstrip() + "\n\n" + ending(name)
