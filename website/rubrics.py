"""The list of ready rubrics on docs/one-text.md: what the best label of each means."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from langchain_judges.methods.rubric.criteria import Rubric, ready_names, ready_rubric

PAGE = Path(__file__).parents[1] / "docs/one-text.md"
PLACE = r"(?s)(## Ready rubrics\n.*?\n\n)- .*?\n\n"


def needed(rubric: Rubric) -> str:
    """Fields that a row must have."""
    documents = ["documents, no output"] * (rubric.judges == "source")
    return ", ".join(documents + [f"`{need}`" for need in rubric.needs]) or "nothing more"


def meaning(rubric: Rubric) -> str:
    """Best label of a rubric, if it is not 1, and its meaning."""
    parts = {f"{c.names[-1]}: {c.meanings[c.names[-1]]}" for c in rubric.criteria}
    return "; ".join(sorted(parts)).replace("1: ", "")


def listed() -> str:
    """Rubrics by what they need of a row."""
    named = ((name, ready_rubric(name)) for name in ready_names())
    rubrics = sorted(named, key=lambda each: needed(each[1]))
    return "".join(
        f"- {need}: " + "; ".join(f"`{name}` ({meaning(rubric)})" for name, rubric in group) + "\n"
        for need, group in groupby(rubrics, lambda each: needed(each[1]))
    )


def page() -> str:
    """Page with the list written anew."""
    return re.sub(PLACE, lambda place: f"{place[1]}{listed()}\n", PAGE.read_text(), count=1)
