"""Methods' pages name every table and figure of their papers, and places that exist.

The tables of the papers' prompts are held to: what a prompt must ask and must not.
"""

import re
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.frozen_cases import CASES
from tests.test_frozen import run_case

ROOT = Path(__file__).parents[1]
PARTS = {
    name: (ROOT / f"docs/{name}.md").read_text().partition("\n## The paper, item by item\n")[2]
    for name in ("drpe", "sc2", "bsm", "allure")
}
NUMBERS = r"\d+[abc]?(?:(?:, | and | to )\d+[abc]?)*"


@for_each(
    ("paper", "tables", "figures"),
    [
        ("drpe", (1, 2), (2,)),
        ("sc2", range(1, 7), (*range(1, 7), 18, 19)),
        ("bsm", range(1, 12), (1, 2)),
        ("allure", (), ("1", "3a", "3b", "6", "7a", "7b", "7c", "8", "9")),
    ],
)
def test_every_table_and_figure_of_a_paper_is_on_the_page(paper, tables, figures):
    for kind, numbers in (("table", tables), ("figure", figures)):
        listed = re.findall(rf"\b{kind}s? ({NUMBERS})", PARTS[paper], re.IGNORECASE)
        named = {each for group in listed for span in re.split(", | and ", group)
                 for each in spelt_out(span)}  # fmt: skip
        assert {str(number) for number in numbers} <= named


PROMPTS = [
    (page, [cell.strip() for cell in line.strip().strip("|").split("|")])
    for page, text in PARTS.items()
    for line in text.partition("| preset, step |")[2].splitlines()[2:]
    if line.startswith("|")
]


@pytest.mark.whole
@for_each(("page", "cells"), PROMPTS)
def test_a_prompt_of_a_paper_asks_what_its_page_says_and_nothing_else_it_names(page, cells):
    _, place, asks, never = cells
    (case, step), quoted = place.strip("`").split("`, "), re.compile(r"`([^`]+)`")
    calls = [c for c in run_case(CASES[case])[1] if re.match(rf"(\w+:)?{step}\b", c.name)]
    asked = [f"{call.shape}\n{call.prompt}" for call in calls]
    assert asked, (page, place)
    for text in asked:
        assert not [part for part in quoted.findall(asks) if part not in text], (page, place)
        assert not [part for part in quoted.findall(never) if part in text], (page, place)


def test_every_paper_has_its_prompts_on_its_page():
    assert {page for page, _ in PROMPTS} == set(PARTS)


def test_every_page_says_where_we_differ_and_what_does_not_agree_in_print():
    title = "### Where we differ, and what does not agree in print"
    assert all(part.partition(title)[2].strip() for part in PARTS.values())


def spelt_out(span):
    """`["7", "8", "9"]` for "7 to 9"."""
    first, _, last = span.partition(" to ")
    return [str(n) for n in range(int(first), int(last) + 1)] if last else [first]


def test_sections_are_cited_by_the_papers_numbers():
    # Both papers have a 3.1 (what is made) and a 3.2 (how it is compared), and no 3.3.
    for method in ("drpe", "sc2"):
        for path in (ROOT / "langchain_judges/methods" / method).glob("*.py"):
            cited = set(re.findall(r"[Ss]ections? (\d(?:\.\d)?)", path.read_text()))
            assert cited <= {"3", "3.1", "3.2", "4"}, path.name
