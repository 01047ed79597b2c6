"""Methods by name, each loaded when it is asked for."""

import pytest

from langchain_judges.lazy import Lazy
from langchain_judges.methods.registry import BUILDERS, COMBINATIONS, METHODS


@pytest.fixture
def table() -> Lazy[type]:
    """Two names: a class that is there, and one whose module is not."""
    return Lazy("langchain_judges", {"kind": "errors:JudgeError", "gone": "nowhere:Nothing"})


def test_a_name_is_known_and_listed_before_its_class_is_loaded(table):
    assert ["gone" in table, "other" in table] == [True, False]
    assert list(table) == ["kind", "gone"]


def test_a_class_is_loaded_where_it_is_asked_for(table):
    from langchain_judges.errors import JudgeError

    assert table["kind"] is JudgeError
    with pytest.raises(ModuleNotFoundError):
        table["gone"]


def test_two_tables_make_one_and_stay_as_they_were(table):
    both = table | Lazy("langchain_judges", {"kind": "errors:OptionError"})
    assert both["kind"].__name__ == "OptionError"
    assert table["kind"].__name__ == "JudgeError"


def test_every_method_stands_in_the_table_under_its_own_name():
    judges = METHODS | COMBINATIONS
    assert [kind.method for kind in judges.values()] == list(judges)


def test_every_method_has_a_builder():
    builders = {name: BUILDERS[name].__name__ for name in METHODS | COMBINATIONS}
    assert set(builders.values()) == {"build"}
