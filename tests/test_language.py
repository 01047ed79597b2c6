"""The pages that a newcomer reads first: short sentences, terms explained, modern words."""

import re
from pathlib import Path

from tests.cases import for_each

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
START = [ROOT / "README.md", DOCS / "index.md", DOCS / "install.md", DOCS / "verdict.md"]
START += [DOCS / "which-method.md", *sorted((DOCS / "recipes").glob("*.md"))]
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MODULES = [
    each for each in (ROOT / "langchain_judges").rglob("*.py") if each.name != "prompts.py"
]
MOST_WORDS = 30
STILTED = (
    "goes on where", "go on where", "came to nothing", "parts from", "whole and faithful",
    "mend them", "mended", "is told of", "a hair beside", "repairs apart", "most dearly",
    "makes anew", "writes anew", "written anew", "worded anew", "by name alone",
    "beside quality", "lean to a place", "at what price", "as it is compiled", "what most say",
    "holds no other up", "is no report", "after the fact", "are told in a sentence",
)  # fmt: skip
TERMS = {
    "flip": r"disagree|swap|two orders",
    "DRPE": r"Diverse Role-Player|drpe\.md",
    "BSM": r"Branch-Solve-Merge",
}
"""Of a term, what its page says before or where it first uses it."""

each_start_page = for_each("page", START, ids=lambda page: page.name)


def prose(page):
    """Return a page's text without code and addresses; a cell or an item is a sentence."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text)
    return re.sub(r"^ *(\||- |\d\. |#+ )|[|·]", "\n\n", text, flags=re.MULTILINE)


def sentences(page):
    for paragraph in re.split(r"\n\s*\n", prose(page)):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split()))


@each_start_page
def test_a_sentence_has_at_most_thirty_words(page):
    assert [each for each in sentences(page) if len(each.split()) > MOST_WORDS] == []


def stilted_in(path):
    text = " ".join(path.read_text().lower().split())
    return [words for words in STILTED if words in text]


@for_each("page", PAGES, ids=lambda page: page.name)
def test_no_page_has_stilted_words(page):
    if page.name != "style-of-words.md":  # which shows them as what not to write
        assert stilted_in(page) == []


def test_no_docstring_or_error_has_stilted_words():
    assert {path.name: words for path in MODULES if (words := stilted_in(path))} == {}


@each_start_page
def test_a_term_is_explained_where_it_is_first_used(page):
    text = prose(page)
    for term, meaning in TERMS.items():
        if results := re.search(rf"\b{term}\b", text):
            assert re.search(meaning, text[: results.end() + 200]), term
