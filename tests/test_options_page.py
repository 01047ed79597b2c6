"""docs/options.md is made from the options themselves."""

from langchain_judges.methods.registry import COMBINATIONS, METHODS
from langchain_judges.options import rule_of
from langchain_judges.writing.registry import WRITERS
from website.options_page import PAGE, page


def test_the_page_of_options_is_up_to_date():
    assert PAGE.read_text() == page(), "python -m website.options_page"


def test_every_rule_can_be_said():
    for method in [*METHODS.values(), *COMBINATIONS.values(), *WRITERS.values()]:
        for name in method.model_fields:
            assert not rule_of(method, name).startswith("a <")
