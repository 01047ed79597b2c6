"""Each method's page ends with a worked example that is replayed, and with its options."""

from __future__ import annotations

import pytest

from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.rows.printable import shortened
from langchain_judges.writing.registry import WRITERS
from website.method_pages import PAGES, ROOT, written


# The page of DRPE loads the real embedder.
@pytest.mark.figures
@pytest.mark.parametrize("name", PAGES)
def test_the_end_of_a_methods_page_is_up_to_date(name):
    page = (ROOT / "docs" / f"{name}.md").read_text()
    assert page == written(name), "stale: make generated"
    assert "](figures/" in page


def test_every_method_has_a_page():
    named = [method for page in PAGES.values() for method in page.methods]
    assert sorted(named) == sorted([*METHODS, *COMBINATIONS, *WRITERS])


def test_a_reason_is_cut_at_a_word_and_marked():
    assert shortened("Short.", 20) == "Short."
    assert shortened("x" * 30, 20) == "x" * 18 + " …"
    assert shortened("cut, after a comma", 6) == "cut …"
