"""The files that `make generated` writes are as it would write them."""

import pytest

from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.options import rule_of
from langchain_judges.writing import WRITERS
from website.figures import FOLDER, figures
from website.generated import FILES, PAGES, ROOT


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_is_stale(path):
    stale = f"{path.relative_to(ROOT)} is stale: make generated"
    assert path.read_text() == FILES[path](), stale


@pytest.mark.figures
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_of_replayed_examples_is_stale(path):
    assert path.read_text() == PAGES[path](), "stale: make generated"


def test_figures_show_the_graphs_as_they_are_compiled():
    stored = {path.name: path.read_text() for path in FOLDER.glob("*.svg")}
    assert stored == figures(), "docs/figures are stale: make generated"


def test_every_rule_can_be_said():
    for method in [*METHODS.values(), *COMBINATIONS.values(), *WRITERS.values()]:
        for name in method.model_fields:
            assert not rule_of(method, name).startswith("a <")
