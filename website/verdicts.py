"""The replayed verdicts of README.md, docs/verdict.md and docs/money.md.

`make generated` writes them into the pages; a test says which are stale. A large language model
replied to the cookbook's notebooks and demo; its recorded replies are judged again here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from rich.console import Console

from cookbook.demo import MAY_BE_SENT
from langchain_judges import create_bsm_judge, load_judge
from langchain_judges.report.terminal import verdict_panel
from langchain_judges.testing import ReplayChatModel

ROOT = Path(__file__).parents[1]
README, GALLERY = ROOT / "README.md", ROOT / "docs/verdict.md"
MONEY = ROOT / "docs/money.md"
EXAMPLE = r"(?ms)^### {}\n.*?^```python\n(.*?)^```\n\n^```text\n(.*?)^```\n"
"""An example of the gallery: its code, and the verdict that the code prints."""
ANNOTATIONS = {"label", "category", "group", "family", "id"}
PRICES = ((0.25, 2.0), (2.0, 10.0))
"""Dollars for a million tokens of input and of output: of a small model, of a large one."""


class Words(Embeddings):
    """Embedder of words, used in place of the default when the notebooks were recorded."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts by their words."""
        from sklearn.feature_extraction.text import HashingVectorizer  # slow to load

        words = HashingVectorizer(n_features=4096, stop_words="english")
        vectors: list[list[float]] = words.transform(texts).toarray().tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a text by its words."""
        return self.embed_documents([text])[0]


def sample(name: str, place: int) -> dict[str, Any]:
    """Row of the cookbook's samples, without its annotations."""
    lines = (ROOT / "cookbook" / "data" / f"{name}.jsonl").read_text().splitlines()
    row = json.loads(lines[place])
    return {field: value for field, value in row.items() if field not in ANNOTATIONS}


def replay(name: str) -> ReplayChatModel:
    """Model that replays a file of recorded replies."""
    return ReplayChatModel(path=ROOT / "cookbook" / "recorded" / f"{name}.jsonl")


def run_example(method: str, model: ReplayChatModel, row: Mapping[str, Any]) -> dict[str, Any]:
    """Result of the gallery's code for a method."""
    found = re.search(EXAMPLE.format(method), GALLERY.read_text())
    names: dict[str, Any] = {"model": model, "row": row}
    exec(found[1].replace('"openai:gpt-5-mini"', "model") if found else "", names)  # noqa: S102
    return {**row, **names["result"]}


def results() -> dict[str, dict[str, Any]]:
    """Result of each method on its sample."""
    pair, text = sample("contested", 0), sample("support", 4)
    four, aspects = replay("04_same_pair_four_methods"), ["physics", "words for a child"]
    drpe = load_judge("drpe", four, panel={"dynamic": 3}, embeddings=Words())
    allure = load_judge("allure", replay("06_allure"), rubric=MAY_BE_SENT, explain="first")
    return {
        "bsm": run_example("bsm", four, pair),
        "drpe": drpe.invoke(pair),
        "sc2": load_judge("sc2", four, aspects=aspects, samples=3).invoke(pair),
        "rubric": run_example("rubric", replay("09_rubric"), sample("replies", 2)),
        "allure": allure.invoke(text),
    }


def panel(result: Mapping[str, Any], width: int) -> str:
    """Verdict as the terminal shows it."""
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(verdict_panel(result))
    return capture.get()


def without_frame(text: str) -> str:
    """Lines of a panel, its title first."""
    first, *lines, _ = text.splitlines()
    inside = (line.removeprefix("│ ").removesuffix("│").rstrip() for line in lines)
    return "\n".join([first.strip("╭─╮ "), "", *inside]) + "\n"


def cost(method: str, usage: Mapping[str, Any]) -> str:
    """Line of the table of costs: tokens of a verdict, dollars of a thousand like it."""
    read, written = usage["input_tokens"], usage["output_tokens"]
    dollars = [f"{(read * price[0] + written * price[1]) / 1000:.2f}" for price in PRICES]
    cells = [f"`{method}`", str(usage["calls"]), f"{read:,}", f"{written:,}", *dollars]
    return f"| {' | '.join(cells)} |\n"


def pages() -> dict[Path, str]:
    """Each page with its verdicts written anew."""
    by_method = results()
    pair = sample("pairs", 0) | {"id": "tides"}
    first = create_bsm_judge(replay("demo"), max_criteria=3).invoke(pair)
    readme = re.sub(
        r"(?ms)^```\n╭.*?╯\n", lambda _: f"```\n{panel({**pair, **first}, 80)}", README.read_text()
    )
    gallery = GALLERY.read_text()
    for method in ("bsm", "rubric"):
        found = re.search(EXAMPLE.format(method), gallery)
        verdict = without_frame(panel(by_method[method], 82))
        gallery = gallery.replace(found[2], verdict) if found else gallery
    costs = "".join(cost(name, each["verdict"]["usage"]) for name, each in by_method.items())
    money = re.sub(r"(?m)(^\| judge .*\n\|[-|]+\n)(?:\|.*\n)+", rf"\1{costs}", MONEY.read_text())
    return {README: readme, GALLERY: gallery, MONEY: money}
