"""The files that `make generated` writes are as it would write them."""

import pytest

from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.methods.rubric.criteria import ready_names
from langchain_judges.options import rule_of
from langchain_judges.writing import WRITERS
from website import rubrics, verdicts
from website.figures import FOLDER, figures


@pytest.mark.figures
def test_no_page_of_replayed_verdicts_is_stale():
    for path, text in verdicts.pages().items():
        assert path.read_text() == text, f"{path.name} is stale: make generated"


def test_the_page_says_what_the_best_label_of_each_ready_rubric_means():
    assert rubrics.PAGE.read_text() == rubrics.page(), "docs/one-text.md is stale"
    for name in ready_names():
        assert f"`{name}` (" in rubrics.listed()


def test_figures_show_the_graphs_as_they_are_compiled():
    stored = {path.name: path.read_text() for path in FOLDER.glob("*.svg")}
    assert stored == figures(), "docs/figures are stale: make generated"


def test_every_rule_can_be_said():
    for method in [*METHODS.values(), *COMBINATIONS.values(), *WRITERS.values()]:
        for name in method.model_fields:
            assert not rule_of(method, name).startswith("a <")
